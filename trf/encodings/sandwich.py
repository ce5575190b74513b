"""Sandwich: the inner product of sinusoidal encodings as a bias (Chi et al., arXiv 2212.10356).

    p(n) = (sum_{i=1}^{D/2} cos(n / 10000^(2i/D)) - D/2) / c_h,   c_h = 8h/H

The same weights come from absolute vectors, concatenated to queries and keys (Su, kexue.fm 9431):
`sandwich-absolute` runs that way.
"""

from __future__ import annotations

from dataclasses import replace

import sympy

from trf.encodings.base import Encoding, Kind
from trf.errors import ParameterError

DIMENSION = 128


def temperatures(n_head: int) -> tuple[sympy.Expr, ...]:
    """The divisor c_h = 8h/H of each head (arXiv 2212.10356)."""
    return tuple(sympy.Rational(8 * h, n_head) for h in range(1, n_head + 1))


def sandwich(dimension: int = DIMENSION) -> Encoding:
    """Sandwich with sinusoids of another dimension D, such as the width of a head.

    Raises:
        ParameterError: unless D is even and positive.

    Example:
        >>> sandwich(4).formula
        '(Sum(cos(n/10000**(2*i/4)),(i,1,2)) - 2)/c'
    """
    if dimension < 2 or dimension % 2:
        raise ParameterError(f"the dimension D must be even and positive, got {dimension}")
    half = dimension // 2
    return Encoding(
        name="sandwich" if dimension == DIMENSION else f"sandwich-{dimension}",
        title="Sandwich" if dimension == DIMENSION else f"Sandwich, D = {dimension}",
        kind=Kind.ADDITIVE,
        formula=f"(Sum(cos(n/10000**(2*i/{dimension})),(i,1,{half})) - {half})/c",
        fixed={"c": temperatures},
        reference=f"Chi, Fan, Rudnicky, Ramadge, arXiv 2212.10356; D = {dimension}",
        note="almost periodic, so its series diverges; it decays only over a finite range",
        settings={"dimension": dimension},
    )


SANDWICH = sandwich()
SANDWICH_ABSOLUTE = replace(
    SANDWICH,
    name="sandwich-absolute",
    title="Sandwich (concatenated)",
    mechanism="concatenate",
    reference=f"{SANDWICH.reference}; as absolute positions: Su, kexue.fm 9431",
    note=f"{SANDWICH.note}; s p_m is concatenated to q and s p_n to k, with s^2 = sqrt(d)/c",
)
