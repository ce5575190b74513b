"""Series of positive terms whose tails are balls at any distance.

Every class here answers the same questions, at a precision in bits: the term at ``j``, the tail
``sum_{n>=j} exp(p(n))`` with ``j`` counted from the first admissible ``n``, and the total. The
relative error of a tail is about ``2**-precision`` however far out it lies.

* `Geometric`: ``p = c - a*n``.
* `Hurwitz`: ``p = c - r*log(n+d)``, by the Hurwitz zeta function (NIST DLMF 25.11.1).
* `PartialFractions`: rational weights with rational poles, by polygamma functions.
* `Uniform`: equal weights.
* `FiniteSupport`: all but finitely many terms are 0.
* `Difference`: the first N terms of a convergent series.

`trf.series.summation` has the general ones, by Euler-Maclaurin summation.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction

import flint
import sympy
from flint import acb, arb, fmpq, fmpz

from trf.series.balls import Term, number
from trf.series.rationals import exact_weight

GUARD = 32
MAX_TELESCOPE = 1000
MAX_EXACT_BITS = 20_000


@contextmanager
def working(precision: int) -> Iterator[None]:
    """Ball arithmetic at ``precision`` bits and a few to spare."""
    with flint.ctx.workprec(precision + GUARD):
        yield


class Series(ABC):
    """A convergent series of nonnegative terms; ``j`` counts from ``start``."""

    start: int
    method: str

    @abstractmethod
    def term(self, j: int, precision: int) -> arb:
        """The weight of the term ``start + j``."""

    @abstractmethod
    def tail(self, j: int, precision: int) -> arb:
        """The sum of the terms from ``start + j`` on."""

    def total(self, precision: int) -> arb:
        """The sum of all terms."""
        return self.tail(0, precision)

    def mass(self, j: int, precision: int) -> arb:
        """The sum of the first ``j`` terms."""
        with working(precision):
            return self.total(precision) - self.tail(j, precision)

    def exact_share(self, j: int) -> Fraction | None:
        """``tail(j)/total`` as a rational number, where it is known to be one."""
        return None


@dataclass(frozen=True)
class Geometric(Series):
    """``exp(c - a*n)``: tail ``exp(c - a*(start+j))/(1 - exp(-a))``."""

    offset: sympy.Expr
    rate: sympy.Expr
    start: int = 0
    method: str = "geometric series"

    def term(self, j: int, precision: int) -> arb:
        with working(precision + (self.start + j).bit_length()):
            return (number(self.offset) - number(self.rate) * fmpz(self.start + j)).exp()

    def tail(self, j: int, precision: int) -> arb:
        first = self.term(j, precision)
        with working(precision):
            return first / -(-number(self.rate)).expm1()

    def mass(self, j: int, precision: int) -> arb:
        first = self.term(0, precision)
        with working(precision + j.bit_length()):
            rate = number(self.rate)
            return first * (-rate * fmpz(j)).expm1() / (-rate).expm1()

    def exact_share(self, j: int) -> Fraction | None:
        ratio = sympy.exp(-self.rate)
        if not isinstance(ratio, sympy.Rational) or j * ratio.q.bit_length() > 1 << 20:
            return None
        return Fraction(int(ratio.p), int(ratio.q)) ** j


@dataclass(frozen=True)
class Hurwitz(Series):
    """``exp(c)*(n+d)^-r``: tail ``exp(c)*zeta(r, start+j+d)``."""

    offset: sympy.Expr
    exponent: sympy.Expr
    shift: sympy.Expr
    start: int = 0
    method: str = "Hurwitz zeta function"

    def term(self, j: int, precision: int) -> arb:
        with working(precision):
            at = number(self.shift) + fmpz(self.start + j)
            return number(self.offset).exp() * at ** -number(self.exponent)

    def tail(self, j: int, precision: int) -> arb:
        with working(precision):
            at = number(self.shift) + fmpz(self.start + j)
            zeta = acb(number(self.exponent)).zeta(acb(at)).real
            return number(self.offset).exp() * zeta


@dataclass(frozen=True)
class PartialFractions(Series):
    """``sum a/(n+d)^k`` over ``fractions`` ``(a, d, k)``, all rational, k a positive integer.

    Tail ``-sum_{k=1} a*psi(N+d) + sum_{k>1} a*zeta(k, N+d)`` (NIST DLMF 5.7.6, 25.11.1). Where only
    simple poles occur and their residues cancel among poles that differ by integers, the sum
    telescopes and the tail is a rational number.
    """

    fractions: tuple[tuple[Fraction, Fraction, int], ...]
    start: int = 0
    method: str = "partial fractions: polygamma and Hurwitz zeta functions"

    def term(self, j: int, precision: int) -> arb:
        with working(precision + self._slack(j)):
            at = fmpz(self.start + j)
            return sum(
                (_rational(a) / (at + _rational(d)) ** k for a, d, k in self.fractions), arb(0)
            )

    def tail(self, j: int, precision: int) -> arb:
        with working(precision + self._slack(j)):
            total = arb(0)
            for a, d, k in self.fractions:
                at = arb(fmpz(self.start + j)) + _rational(d)
                value = -at.digamma() if k == 1 else acb(k).zeta(acb(at)).real
                total += _rational(a) * value
            return total

    def _slack(self, j: int) -> int:
        """The poles cancel to their highest order in 1/n."""
        return 64 + (len(self.fractions) + 2) * (self.start + j).bit_length()

    def exact_share(self, j: int) -> Fraction | None:
        tail, total = self._telescoped(self.start + j), self._telescoped(self.start)
        return None if tail is None or total is None else tail / total

    def _telescoped(self, at: int) -> Fraction | None:
        classes: dict[Fraction, list[tuple[Fraction, Fraction]]] = {}
        for a, d, k in self.fractions:
            if k > 1:
                return None
            classes.setdefault(d % 1, []).append((a, d))
        total = Fraction(0)
        for poles in classes.values():
            first = min(d for _, d in poles)
            if sum(a for a, _ in poles) != 0 or max(d for _, d in poles) - first > MAX_TELESCOPE:
                return None
            for a, d in poles:
                total -= a * sum((1 / (at + first + i) for i in range(int(d - first))), Fraction(0))
        return total


def _rational(value: Fraction) -> arb:
    return arb(fmpq(value.numerator, value.denominator))


@dataclass(frozen=True)
class Uniform(Series):
    """``count`` equal weights ``exp(c)``, as of a window."""

    offset: sympy.Expr
    count: int
    start: int = 0
    method: str = "equal weights"

    def term(self, j: int, precision: int) -> arb:
        with working(precision):
            return number(self.offset).exp() if j < self.count else arb(0)

    def tail(self, j: int, precision: int) -> arb:
        with working(precision):
            return number(self.offset).exp() * fmpz(max(0, self.count - j))

    def exact_share(self, j: int) -> Fraction | None:
        return Fraction(max(0, self.count - j), self.count)


@dataclass(frozen=True)
class FiniteSupport(Series):
    """Finitely many terms: ``exp(p(n))`` for ``start <= n < end``, 0 from ``end`` on."""

    weight: Term
    end: int
    start: int = 0
    method: str = "finite sum"
    _tails: dict[int, list[arb]] = field(default_factory=dict, repr=False)
    _exact: list[list[Fraction] | None] = field(default_factory=list, repr=False)

    def term(self, j: int, precision: int) -> arb:
        with working(precision):
            return self.weight.at(self.start + j) if self.start + j < self.end else arb(0)

    def tail(self, j: int, precision: int) -> arb:
        if self.start + j >= self.end:
            return arb(0)
        if precision not in self._tails:
            with working(precision):
                terms = [self.weight.at(n) for n in range(self.start, self.end)]
                self._tails[precision] = suffix_sums(terms, arb(0))
        return self._tails[precision][j]

    def exact_share(self, j: int) -> Fraction | None:
        if not self._exact:
            self._exact.append(self._shares())
        shares = self._exact[0]
        return None if shares is None else shares[min(j, len(shares) - 1)]

    def _shares(self) -> list[Fraction] | None:
        """``tail(j)/total`` for every j, if all weights are rational."""
        weight = exact_weight(self.weight.p, self.weight.n)
        if weight is None:
            return None
        tails = [Fraction(0)]
        for n in range(self.end - 1, self.start - 1, -1):
            value = weight(n)
            if value is None or tails[-1].denominator.bit_length() > MAX_EXACT_BITS:
                return None
            tails.append(tails[-1] + value)
        tails.reverse()
        return [tail / tails[0] for tail in tails]


def suffix_sums(terms: list[arb], last: arb) -> list[arb]:
    """``[terms[0]+...+last, ..., terms[-1]+last, last]``, summed from the small end."""
    result = [last]
    for value in reversed(terms):
        result.append(result[-1] + value)
    result.reverse()
    return result


@dataclass(frozen=True)
class Difference(Series):
    """The terms ``start <= n < end`` of a convergent series, as a difference of its tails."""

    whole: Series
    end: int

    @property
    def start(self) -> int:  # type: ignore[override]
        return self.whole.start

    @property
    def method(self) -> str:  # type: ignore[override]
        return f"{self.whole.method}, tail at the length taken off"

    def term(self, j: int, precision: int) -> arb:
        return self.whole.term(j, precision) if self.start + j < self.end else arb(0)

    def tail(self, j: int, precision: int) -> arb:
        if self.start + j >= self.end:
            return arb(0)
        near = self.whole.tail(j, precision)
        far = self.whole.tail(self.end - self.start, precision)
        with working(precision):
            return near - far

    def mass(self, j: int, precision: int) -> arb:
        return self.whole.mass(min(j, self.end - self.start), precision)


def rational(value: Fraction) -> fmpq:
    """A Fraction as flint's rational."""
    return fmpq(value.numerator, value.denominator)
