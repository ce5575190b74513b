"""TISA: a sum of Gaussians of the distance (Wennberg, Henter, arXiv 2106.01950)."""

from __future__ import annotations

from trf.encodings.base import Encoding, Kind, Learnable, StandIn

KERNELS = 3
_EACH = range(1, KERNELS + 1)

TISA = Encoding(
    name="tisa",
    title="TISA",
    kind=Kind.ADDITIVE,
    formula=" + ".join(f"a{s}*exp(-b{s}*(n-c{s})**2)" for s in _EACH),
    learnable=tuple(
        parameter
        for s in _EACH
        for parameter in (
            Learnable(f"a{s}", -1.0, 1.0, minimum=None),
            Learnable(f"b{s}", 0.0, 1.0),
            Learnable(f"c{s}", 0.0, 16.0, minimum=None),
        )
    ),
    assume={f"{letter}{s}": "real" for s in _EACH for letter in "ac"},
    reference="Wennberg, Henter, arXiv 2106.01950: amplitudes a, sharpness b > 0, offsets c",
    note="tends to 0, so its series diverges; three kernels a head, initial ranges are ours",
    stand_in=StandIn(
        "-A",
        "every Gaussian lies between 0 and 1, so p(n) >= -A with A the sum of all |a|, and no "
        "weight is less than exp(-A)",
    ),
)
