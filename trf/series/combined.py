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
    """``exp(p(|n|))`` over all integers: the first j terms are the distances below j, both sides.

    Distance 0 is counted once, where its weight is finite.
    """

    side: Series

    @property
    def start(self) -> int:  # type: ignore[override]
        return self.side.start

    @property
    def method(self) -> str:  # type: ignore[override]
        return f"{self.side.method}, both sides"

    def _is_center(self, j: int) -> bool:
        return j == 0 and self.side.start == 0

    def term(self, j: int, precision: int) -> arb:
        value = self.side.term(j, precision)
        return value if self._is_center(j) else 2 * value

    def tail(self, j: int, precision: int) -> arb:
        with working(precision):
            both = 2 * self.side.tail(j, precision)
            return both - self.side.term(0, precision) if self._is_center(j) else both

    def mass(self, j: int, precision: int) -> arb:
        with working(precision):
            both = 2 * self.side.mass(j, precision)
            return both - self.side.term(0, precision) if j and self.side.start == 0 else both


def _joined(parts: tuple[Series, ...]) -> str:
    return "; ".join(dict.fromkeys(part.method for part in parts))
