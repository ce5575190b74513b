"""Series of positive terms whose tails are balls at any distance.

Every class here answers the same questions, at a precision in bits: the term at ``j``, the tail
``sum_{n>=j} exp(p(n))`` with ``j`` counted from the first admissible ``n``, and the total. The
relative error of a tail is about ``2**-precision`` however far out it lies.

* `Geometric`: ``p = c - a*n``.
* `Hurwitz`: ``p = c - r*log(n+d)``, by the Hurwitz zeta function (NIST DLMF 25.11.1).
* `PartialFractions`: rational weights with rational poles, by polygamma functions.
* `FiniteSupport`: all but finitely many terms are 0.
* `Difference`, `Truncated`: the first N terms of a convergent series, and of any.
* `EulerMaclaurin`: everything else that is smooth far out (NIST DLMF 2.10.1),

      sum_{n>=N} f(n) = I(N) + f(N)/2 - sum_{k=1}^{K} B_{2k}/(2k)! f^(2k-1)(N) + R,
      |R| <= 4/(2*pi)^(2K) * integral_N^oo |f^(2K)|,

  where the tail integral ``I`` is a closed form (`trf.series.integrals`) or a certified quadrature,
  the derivatives are Taylor coefficients in balls, and Cauchy's estimate on the discs of
  `trf.series.discs` bounds the last integral by
  ``(2K)!/tau^(2K) * height * N^(1-2K)/(2K-1-growth)``. Far out a few terms give thousands of bits.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction

import flint
import sympy
from flint import acb, arb, arb_series, fmpq, fmpz

from trf.series.balls import Term, number
from trf.series.discs import TAUS, DiscBound, NotRegularError, try_disc_bound

GUARD = 32
MAX_HEAD = 1 << 18
MAX_ORDER = 4096
MAX_TELESCOPE = 1000
GOOD_ORDER = 16


@contextmanager
def working(precision: int) -> Iterator[None]:
    """Ball arithmetic at ``precision`` bits and a few to spare."""
    with flint.ctx.workprec(precision + GUARD):
        yield


@contextmanager
def _series_length(length: int) -> Iterator[None]:
    before = flint.ctx.cap
    flint.ctx.cap = length
    try:
        yield
    finally:
        flint.ctx.cap = before


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
class FiniteSupport(Series):
    """Finitely many terms: ``exp(p(n))`` for ``start <= n < end``, 0 from ``end`` on."""

    weight: Term
    end: int
    start: int = 0
    method: str = "finite sum"
    _tails: dict[int, list[arb]] = field(default_factory=dict, repr=False)

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
        if not self.weight.p.has(self.weight.n):
            return Fraction(self.end - self.start - j, self.end - self.start)
        exact: list[Fraction] = []
        for n in range(self.start, self.end):
            value = sympy.exp(self.weight.p.subs(self.weight.n, n))
            if not isinstance(value, sympy.Rational):
                return None
            exact.append(Fraction(int(value.p), int(value.q)))
        return sum(exact[j:], Fraction(0)) / sum(exact)


def suffix_sums(terms: list[arb], last: arb) -> list[arb]:
    """``[terms[0]+...+last, ..., terms[-1]+last, last]``, summed from the small end."""
    result = [last]
    for value in reversed(terms):
        result.append(result[-1] + value)
    result.reverse()
    return result


@dataclass(frozen=True)
class EulerMaclaurin(Series):
    """Direct summation up to a point, Euler-Maclaurin from there (module docstring).

    ``weight`` gives the terms, ``smooth`` is the exponent that holds from ``smooth_from`` on (the
    same but for a piecewise head), ``integral(a)`` the tail integral of ``exp(smooth)``.
    """

    weight: Term
    smooth: Term
    smooth_from: int
    integral: Callable[[arb], arb]
    start: int
    method: str
    by_quadrature: bool = False
    _heads: dict[int, list[arb]] = field(default_factory=dict, repr=False)
    _far: dict[tuple[int, int], arb] = field(default_factory=dict, repr=False)

    def term(self, j: int, precision: int) -> arb:
        with working(precision):
            return self.weight.at(self.start + j)

    def tail(self, j: int, precision: int) -> arb:
        head = self._head(precision)
        if j < len(head):
            return head[j]
        key = (j, precision)
        if key not in self._far:
            tail, first = self._from(self.start + j, precision)
            with working(precision):
                for n in range(first - 1, self.start + j - 1, -1):
                    tail += self.smooth.at(n)
            self._far[key] = tail
        return self._far[key]

    def _head(self, precision: int) -> list[arb]:
        if precision not in self._heads:
            first = max(self.start, self.smooth_from, 12 + int(0.4 * precision))
            tail, first = self._from(first, precision)
            with working(precision):
                terms = [self.weight.at(n) for n in range(self.start, first)]
                self._heads[precision] = suffix_sums(terms, tail)
        return self._heads[precision]

    def _from(self, first: int, precision: int) -> tuple[arb, int]:
        """The tail from ``first``, or from the next point where it is known well enough."""
        step = 0
        with working(precision):
            scale = _log(self.smooth.at(first).lower()) - precision * math.log(2)
        while step <= MAX_HEAD:
            point = first + step
            tail = self._negligible(point, scale, precision)
            if tail is None:
                tail = self._euler_maclaurin(point, scale, precision)
            if tail is not None:
                return tail, point
            step = 2 * step + 16
        raise NotRegularError(
            f"no remainder below 2^-{precision} was proved within {MAX_HEAD} terms of n = {first}"
        )

    def _negligible(self, at: int, log_target: float, precision: int) -> arb | None:
        """``[0, f(at)*(1 + at/(decay-1))]`` where that is below the target."""
        with working(precision):
            value = self.smooth.at(at)
            if _log(value) >= log_target:
                return None
            bound = steepest(self.smooth, arb(fmpz(at)))
            if bound is None:
                return None
            top = (value * (1 + bound.start / (bound.decay - 1))).upper()
            return arb(top / 2, top / 2) if _log(top) < log_target else None

    def _euler_maclaurin(self, at: int, log_target: float, precision: int) -> arb | None:
        with working(precision):
            found = remainder(self.smooth, at, log_target)
            area = None
            if found is None:
                area = self.integral(arb(fmpz(at)))
                log_target = max(log_target, _log(area.lower()) - precision * math.log(2))
                found = remainder(self.smooth, at, log_target)
            if found is None:
                return None
            order, error = found
            if area is None:
                area = self.integral(arb(fmpz(at)))
            return area + boundary(self.smooth, at, order) + arb(0, error)


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


@dataclass(frozen=True)
class Truncated(Series):
    """The terms ``start <= n < end`` of any series, convergent or not.

    Euler-Maclaurin between the first smooth point and ``end``; ``integral(a, b)`` is the integral
    of ``exp(smooth)`` over [a, b].
    """

    weight: Term
    smooth: Term
    smooth_from: int
    integral: Callable[[arb, arb], arb]
    start: int
    end: int
    method: str
    _heads: dict[int, list[arb]] = field(default_factory=dict, repr=False)
    _far: dict[tuple[int, int], arb] = field(default_factory=dict, repr=False)

    def term(self, j: int, precision: int) -> arb:
        with working(precision):
            return self.weight.at(self.start + j) if self.start + j < self.end else arb(0)

    def tail(self, j: int, precision: int) -> arb:
        if self.start + j >= self.end:
            return arb(0)
        if precision not in self._heads:
            first = max(self.start, self.smooth_from, 12 + int(0.4 * precision))
            first = min(first, self.end)
            tail, first = self._from(first, precision)
            with working(precision):
                terms = [self.weight.at(n) for n in range(self.start, first)]
                self._heads[precision] = suffix_sums(terms, tail)
        head = self._heads[precision]
        if j < len(head):
            return head[j]
        key = (j, precision)
        if key not in self._far:
            tail, first = self._from(self.start + j, precision)
            with working(precision):
                for n in range(first - 1, self.start + j - 1, -1):
                    tail += self.smooth.at(n)
            self._far[key] = tail
        return self._far[key]

    def _from(self, first: int, precision: int) -> tuple[arb, int]:
        if first >= self.end:
            return arb(0), self.end
        step = 0
        with working(precision):
            scale = _log(self.smooth.at(first).lower()) - precision * math.log(2)
            while step <= MAX_HEAD:
                point = first + step
                if point >= self.end:
                    return arb(0), self.end
                found = remainder(self.smooth, point, scale)
                if found is not None:
                    order, error = found
                    area = self.integral(arb(fmpz(point)), arb(fmpz(self.end)))
                    ends = boundary(self.smooth, point, order) - boundary(
                        self.smooth, self.end, order
                    )
                    return area + ends + arb(0, error), point
                step = 2 * step + 16
        raise NotRegularError(
            f"no remainder below 2^-{precision} was proved within {MAX_HEAD} terms of n = {first}"
        )

    def exact_share(self, j: int) -> Fraction | None:
        if self.weight.p.has(self.weight.n):
            return None
        return Fraction(self.end - self.start - j, self.end - self.start)


def remainder(smooth: Term, at: int, log_target: float) -> tuple[int, arb] | None:
    """A number of terms K whose remainder is below the target, and that remainder."""
    best: tuple[int, arb] | None = None
    taus = [arb(tau) for tau in TAUS]
    with flint.ctx.workprec(64):
        while taus:
            tau = taus.pop(0)
            bound = try_disc_bound(smooth.p, smooth.n, arb(fmpz(at)), tau)
            if bound is None:
                continue
            order = _order(bound, at, log_target)
            if order is not None and (best is None or order < best[0]):
                best = order, _remainder_ball(bound, order)
            if order is not None and order <= GOOD_ORDER:
                break
            if not taus and best is None and bound.decay * tau > 8:
                # f falls so fast that it varies too much on discs of fixed proportion.
                taus.append((4 / bound.decay).mid())
    return best


def boundary(smooth: Term, at: int, order: int) -> arb:
    """``f(N)/2 - sum_{k=1}^{K} B_{2k}/(2k)! f^(2k-1)(N)``."""
    with _series_length(2 * order):
        taylor = smooth(arb_series([arb(fmpz(at)), 1]))
    result = taylor[0] / 2
    for k in range(1, order + 1):
        result -= taylor[2 * k - 1] * arb.bernoulli(2 * k) / (2 * k)
    return result


def steepest(term: Term, at: arb) -> DiscBound | None:
    """A bound at ``at`` that proves ``-x*p'(x) > 1`` from there on, if one does."""
    for tau in TAUS:
        bound = try_disc_bound(term.p, term.n, at, arb(tau))
        if bound is not None and bound.decay > 1:
            return bound
    return None


def _order(bound: DiscBound, at: int, log_target: float) -> int | None:
    """The least K with a remainder below the target, in floats (the bound itself is a ball)."""
    step = math.log(2 * math.pi * float(bound.tau)) + math.log(at)
    growth = float(bound.growth)
    base = math.log(4) + _log(bound.height) + math.log(at) - log_target + 1e-6

    def excess(order: int) -> float:
        free = 2 * order - 1 - growth
        return base + math.lgamma(2 * order + 1) - 2 * order * step - math.log(free)

    low = max(1, int(growth / 2) + 2)
    high = min(MAX_ORDER, low + int(math.exp(min(step, 12.0)) / 2))
    if excess(high) >= 0:
        return None
    while low < high:
        middle = (low + high) // 2
        if excess(middle) < 0:
            high = middle
        else:
            low = middle + 1
    return high


def _remainder_ball(bound: DiscBound, order: int) -> arb:
    scale = 2 * arb.pi() * bound.tau * bound.start
    free = 2 * order - 1 - bound.growth
    ball = 4 * arb(2 * order).fac() * bound.height * bound.start / (scale ** (2 * order) * free)
    return ball.upper()


def _log(x: arb) -> float:
    """A float near ``log(x)``; -inf for zero."""
    return float(x.log().mid()) if x > 0 else -math.inf


def rational(value: Fraction) -> fmpq:
    """A Fraction as flint's rational."""
    return fmpq(value.numerator, value.denominator)
