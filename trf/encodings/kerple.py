"""KERPLE: kernelized biases with learned parameters (Chi et al., arXiv 2205.09921).

Initial values and the lower clamp are those of the authors' code; with them about half of the
logarithmic heads start with r1 < 1, where the series diverges.
"""

from __future__ import annotations

from trf.encodings.base import Encoding, Kind, Learnable

KERPLE_LOG = Encoding(
    name="kerple-log",
    title="KERPLE-log",
    kind=Kind.ADDITIVE,
    formula="-r1*log(1+r2*n)",
    learnable=(Learnable("r1", 0.0, 2.0), Learnable("r2", 0.0, 1.0)),
    reference="Chi, Fan, Ramadge, Rudnicky, arXiv 2205.09921, logarithmic variant",
)

KERPLE_POWER = Encoding(
    name="kerple-power",
    title="KERPLE-power",
    kind=Kind.ADDITIVE,
    formula="-r1*n**r2",
    learnable=(Learnable("r1", 0.0, 1.0), Learnable("r2", 0.0, 2.0, maximum=2.0)),
    reference="Chi, Fan, Ramadge, Rudnicky, arXiv 2205.09921, power variant",
)

KERPLE_LOG3 = Encoding(
    name="kerple-log3",
    title="KERPLE 3-parameter log",
    kind=Kind.ADDITIVE,
    formula="-r1*log(1+r2*n**r3)",
    learnable=(
        Learnable("r1", 0.0, 2.0),
        Learnable("r2", 0.0, 1.0),
        Learnable("r3", 0.0, 2.0, maximum=2.0),
    ),
    reference="Chi, Fan, Ramadge, Rudnicky, arXiv 2205.09921, 3-parameter logarithmic kernel",
)
