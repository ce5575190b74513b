"""Many layers of a heavy tail: one big jump.

The distance covered by L content-free layers is a sum of L independent distances, each 0 with the
residual share rho and else spread like ``b/B``; ``t(j)`` is the chance that one of them is at
least j. Where the convolution would be too long, the sum is bracketed: it is at least j if the
largest is,

    P(S >= j) >= 1 - (1 - t(j))^L,

and if the largest is below ``j-m``, with ``m <= j*(L-1)/L``, two of them are at least ``m/(L-1)``:

    P(S >= j) <= 1 - (1 - t(j-m))^L + L*(L-1)/2 * t(m/(L-1))^2.

For tails like ``j^-a`` the two ends meet as eps -> 0 (Foss, Korshunov, Zachary, *An Introduction to
Heavy-Tailed and Subexponential Distributions*, 2013, section 3.1).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from flint import arb

from trf.series.inversion import radius
from trf.series.tails import Series, rational

SPLITS = (Fraction(1, 2), Fraction(1, 4), Fraction(1, 10), Fraction(1, 100), Fraction(1, 1000))


@dataclass(frozen=True)
class OneJump:
    """The share ``t`` for which ``1 - (1-t)^L`` is ``part*eps``."""

    eps: Fraction
    part: Fraction
    n_layer: int

    @property
    def exact(self) -> Fraction | None:
        """Not a rational number in general."""
        return None

    def ball(self) -> arb:
        """The share at the precision in force."""
        miss = -arb(rational(self.eps * self.part))
        return -(miss.log1p() / self.n_layer).expm1()


@dataclass(frozen=True)
class TwoJumps:
    """The share ``t`` for which ``L*(L-1)/2 * t^2`` is ``part*eps``."""

    eps: Fraction
    part: Fraction
    n_layer: int

    @property
    def exact(self) -> Fraction | None:
        """Not a rational number in general."""
        return None

    def ball(self) -> arb:
        """The share at the precision in force."""
        pairs = Fraction(self.n_layer * (self.n_layer - 1), 2)
        return arb(rational(self.eps * self.part / pairs)).sqrt().min(arb("0.5"))


def least_radius(series: Series, eps: Fraction, n_layer: int) -> int:
    """A proved lower bound of ``TRF(eps)`` for L layers whose single kernel is ``series``."""
    return radius(series, OneJump(eps, Fraction(1), n_layer))


def greatest_radius(series: Series, eps: Fraction, n_layer: int) -> int:
    """A proved upper bound of the same, the best over a few ways of splitting eps."""
    ends = []
    for split in SPLITS:
        spread = (n_layer - 1) * radius(series, TwoJumps(eps, split, n_layer))
        jump = radius(series, OneJump(eps, 1 - split, n_layer))
        ends.append(max(jump + spread, _least(spread, n_layer)))
    return min(ends)


def _least(spread: int, n_layer: int) -> int:
    """The least j with ``spread <= j*(L-1)/L``."""
    return -(-spread * n_layer // (n_layer - 1))
