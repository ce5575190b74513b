"""FIRE: a learned function of the distance relative to the query's position (arXiv 2310.04418)."""

from __future__ import annotations

from trf.encodings.base import Encoding, Kind, StandIn

FIRE = Encoding(
    name="fire",
    title="FIRE",
    kind=Kind.LENGTH_DEPENDENT,
    formula=None,
    score="q.k/sqrt(d) + MLP(log(1+c*n)/log(1+c*max(i,L)))",
    mechanism="fire",
    settings={"width": 32, "c": 0.1, "L": 512.0},
    reference="Li et al., arXiv 2310.04418: functional interpolation with a threshold L",
    note="its bias depends on the query's position i besides the distance, so it is no p(n); it is "
    "bounded; i counts from 0, c and L are learned and kept positive, one function for all layers",
    stand_in=StandIn(
        "-A",
        "its perceptron is continuous on [0, 1], where its argument lies, so its values are at "
        "least some -A at every length, and no weight is less than exp(-A)",
    ),
)
