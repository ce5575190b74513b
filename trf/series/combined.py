"""Series made of series: the mean kernel of heads, a residual share, both sides of a query."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from flint import arb

from trf.series.tails import Series, rational, working


@dataclass(frozen=True)
class Mean(Series):
    """The mean of the normalised kernels ``b_h/B_h``: its total is 1."""

    parts: tuple[Series, ...]

    @property
    def start(self) -> int:  # type: ignore[override]
        return max(part.start for part in self.parts)

    @property
    def method(self) -> str:  # type: ignore[override]
        return "mean of the heads' normalised kernels: " + _joined(self.parts)

    def term(self, j: int, precision: int) -> arb:
        with working(precision):
            shares = [p.term(j, precision) / p.total(precision) for p in self.parts]
            return sum(shares, arb(0)) / len(self.parts)

    def tail(self, j: int, precision: int) -> arb:
        if j == 0:
            return arb(1)
        with working(precision):
            shares = [p.tail(j, precision) / p.total(precision) for p in self.parts]
            return sum(shares, arb(0)) / len(self.parts)

    def exact_share(self, j: int) -> Fraction | None:
        shares = [part.exact_share(j) for part in self.parts]
        known = [share for share in shares if share is not None]
        return sum(known, Fraction(0)) / len(known) if len(known) == len(shares) else None


@dataclass(frozen=True)
class WithResidual(Series):
    """``residual`` of the mass at distance 0 and the rest spread like the kernel: total 1."""

    kernel: Series
    residual: Fraction

    @property
    def start(self) -> int:  # type: ignore[override]
        return self.kernel.start

    @property
    def method(self) -> str:  # type: ignore[override]
        return f"{self.kernel.method}, with a residual share of {self.residual}"

    def term(self, j: int, precision: int) -> arb:
        with working(precision):
            term = self.kernel.term(j, precision) / self.kernel.total(precision)
            term *= rational(1 - self.residual)
            return term + rational(self.residual) if j == 0 else term

    def tail(self, j: int, precision: int) -> arb:
        if j == 0:
            return arb(1)
        with working(precision):
            share = self.kernel.tail(j, precision) / self.kernel.total(precision)
            return share * rational(1 - self.residual)

    def exact_share(self, j: int) -> Fraction | None:
        share = self.kernel.exact_share(j)
        if share is None:
            return None
        return share * (1 - self.residual) if j else Fraction(1)


@dataclass(frozen=True)
class TwoSided(Series):
    """Both sides of a query: the first j terms are the distances below j, on the right and left.

    Distance 0, where its weight is finite, is counted once, with the right side.
    """

    right: Series
    left: Series

    @property
    def start(self) -> int:  # type: ignore[override]
        return self.right.start

    @property
    def method(self) -> str:  # type: ignore[override]
        return f"{_joined((self.right, self.left))}, both sides"

    def _center(self, j: int, precision: int) -> arb:
        once = j == 0 and self.right.start == 0
        return self.left.term(0, precision) if once else arb(0)

    def term(self, j: int, precision: int) -> arb:
        with working(precision):
            both = self.right.term(j, precision) + self.left.term(j, precision)
            return both - self._center(j, precision)

    def tail(self, j: int, precision: int) -> arb:
        with working(precision):
            both = self.right.tail(j, precision) + self.left.tail(j, precision)
            return both - self._center(j, precision)


def _joined(parts: tuple[Series, ...]) -> str:
    return "; ".join(dict.fromkeys(part.method for part in parts))
