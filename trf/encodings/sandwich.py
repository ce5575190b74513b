"""Sandwich: the inner product of sinusoidal encodings as a bias (Chi et al., arXiv 2212.10356)."""

from __future__ import annotations

import sympy

from trf.encodings.base import Encoding, Kind


def temperatures(n_head: int) -> tuple[sympy.Expr, ...]:
    """The divisor c_h = 8h/H of each head (arXiv 2212.10356)."""
    return tuple(sympy.Rational(8 * h, n_head) for h in range(1, n_head + 1))


SANDWICH = Encoding(
    name="sandwich",
    title="Sandwich",
    kind=Kind.ADDITIVE,
    formula="(Sum(cos(n/10000**(2*i/128)),(i,1,64)) - 64)/c",
    fixed={"c": temperatures},
    reference="Chi, Fan, Rudnicky, Ramadge, arXiv 2212.10356; D = 128",
    note="almost periodic, so its series diverges; it decays only over a finite range",
)
