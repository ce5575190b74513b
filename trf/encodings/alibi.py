"""ALiBi: a linear bias whose slope is fixed per head (Press, Smith, Lewis, arXiv 2108.12409)."""

from __future__ import annotations

import sympy

from trf.encodings.base import Encoding, Kind


def slopes(n_head: int) -> tuple[sympy.Expr, ...]:
    """The slope of each head, exactly.

    m_h = 2^(-8h/H), h = 1..H, for H a power of two; otherwise the slopes of the power of two c
    below H, then every other slope of 2c until there are H (arXiv 2108.12409, section 3, and
    the authors' code).

    Example:
        >>> slopes(4)
        (1/4, 1/16, 1/64, 1/256)
    """
    below = 1 << (n_head.bit_length() - 1)
    if below == n_head:
        return tuple(
            sympy.Integer(2) ** sympy.Rational(-8 * h, n_head) for h in range(1, n_head + 1)
        )
    return slopes(below) + slopes(2 * below)[::2][: n_head - below]


ALIBI = Encoding(
    name="alibi",
    title="ALiBi",
    kind=Kind.ADDITIVE,
    formula="-m*n",
    fixed={"m": slopes},
    reference="Press, Smith, Lewis, arXiv 2108.12409, section 3",
)
