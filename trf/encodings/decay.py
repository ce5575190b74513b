"""Exponential decay gates: a weight gamma^n (RetNet, Sun et al., arXiv 2307.08621)."""

from __future__ import annotations

import sympy

from trf.encodings.base import Encoding, Kind


def rates(n_head: int) -> tuple[sympy.Expr, ...]:
    """gamma_h = 1 - 2^(-5-h), h = 0..H-1, as RetNet sets them.

    Example:
        >>> rates(2)
        (31/32, 63/64)
    """
    return tuple(1 - sympy.Rational(1, 2 ** (5 + h)) for h in range(n_head))


DECAY = Encoding(
    name="decay",
    title="decay (RetNet)",
    kind=Kind.ADDITIVE,
    formula="n*log(gamma)",
    fixed={"gamma": rates},
    reference="Sun et al., arXiv 2307.08621, section 2: the decay of multi-scale retention",
    aliases=("retnet",),
    note="geometric, for gamma < 1; in the decoder it is added to the logits of softmax attention",
)
