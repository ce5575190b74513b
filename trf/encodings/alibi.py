"""ALiBi: a linear bias whose slope is fixed per head (Press, Smith, Lewis, arXiv 2108.12409)."""

from __future__ import annotations

import math

import sympy

from trf.encodings.base import Encoding, HeadRule, Kind
from trf.expression import exact

BIAS_MAX = 8


def slopes(n_head: int, bias_max: int = BIAS_MAX) -> tuple[sympy.Expr, ...]:
    """The slope of each head, exactly.

    m_h = 2^(-8h/H), h = 1..H, for H a power of two; otherwise the slopes of the power of two c
    below H, then every other slope of 2c until there are H (arXiv 2108.12409, section 3, and
    the authors' code). `bias_max` takes the place of the 8, as MPT's `alibi_bias_max` does.

    Example:
        >>> slopes(4)
        (1/4, 1/16, 1/64, 1/256)
    """
    below = 1 << (n_head.bit_length() - 1)
    if below == n_head:
        return tuple(
            sympy.Integer(2) ** sympy.Rational(-bias_max * h, n_head) for h in range(1, n_head + 1)
        )
    return slopes(below, bias_max) + slopes(2 * below, bias_max)[::2][: n_head - below]


def falcon_slopes(head_dim: int) -> HeadRule:
    """The rule of Falcon: slopes rounded to bfloat16, and divided by sqrt(head_dim) with q . k.

    Example:
        >>> falcon_slopes(64)(2)
        (1/128, 1/2048)
    """

    def rule(n_head: int) -> tuple[sympy.Expr, ...]:
        return tuple(_bfloat16(float(m)) / sympy.sqrt(head_dim) for m in slopes(n_head))

    return rule


def _bfloat16(value: float) -> sympy.Rational:
    """The nearest number of 8 significant bits, ties to even."""
    mantissa, exponent = math.frexp(value)
    return exact(math.ldexp(round(mantissa * 256), exponent - 8))


ALIBI = Encoding(
    name="alibi",
    title="ALiBi",
    kind=Kind.ADDITIVE,
    formula="-m*n",
    fixed={"m": slopes},
    reference="Press, Smith, Lewis, arXiv 2108.12409, section 3",
    note="slopes as in BLOOM and, with bias_max = 8, MPT; Falcon's are `alibi.falcon_slopes`",
)
