"""Euler-Maclaurin summation with a proved remainder (NIST DLMF 2.10.1).

    sum_{n>=N} f(n) = I(N) + f(N)/2 - sum_{k=1}^{K} B_{2k}/(2k)! f^(2k-1)(N) + R,
    |R| <= 4/(2*pi)^(2K) * integral_N^oo |f^(2K)|.

The tail integral ``I`` is a closed form (`trf.series.integrals`) or a certified quadrature, the
derivatives are Taylor coefficients in balls, and Cauchy's estimate on the discs of
`trf.series.discs` bounds the last integral by ``(2K)!/tau^(2K) * height * N^(1-2K)/(2K-1-growth)``.
Far out a few terms give thousands of bits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import flint
from flint import arb, arb_series, fmpz

from trf.series.balls import Term
from trf.series.discs import TAUS, DiscBound, try_disc_bound
from trf.series.spans import NotRegularError
from trf.series.tails import Series, suffix_sums, working

MAX_HEAD = 1 << 18
MAX_ORDER = 4096
GOOD_ORDER = 16


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
        return _kept_tail(self, j, precision)

    def _from(self, first: int, precision: int) -> tuple[arb, int]:
        """The tail from ``first``, or from the next point where it is known well enough."""
        step = 0
        with working(precision):
            unit = self.smooth.at(first).lower()
        while step <= MAX_HEAD:
            point = first + step
            tail = self._negligible(point, unit, precision)
            if tail is None:
                tail = self._euler_maclaurin(point, unit, precision)
            if tail is not None:
                return tail, point
            step = 2 * step + 16
        raise NotRegularError(
            f"no remainder below 2^-{precision} was proved within {MAX_HEAD} terms of n = {first}"
        )

    def _negligible(self, at: int, unit: arb, precision: int) -> arb | None:
        """``[0, f(at)*(1 + at/(decay-1))]`` where that is below ``2^-precision`` units."""
        with working(precision):
            value = self.smooth.at(at)
            target = unit * arb(2) ** -precision
            if not value < target:
                return None
            bound = steepest(self.smooth, arb(fmpz(at)))
            if bound is None:
                return None
            top = (value * (1 + bound.start / (bound.decay - 1))).upper()
            return arb(top / 2, top / 2) if top < target else None

    def _euler_maclaurin(self, at: int, unit: arb, precision: int) -> arb | None:
        with working(precision):
            found = remainder(self.smooth, at, unit, precision)
            area = None
            if found is None:
                area = self.integral(arb(fmpz(at)))
                found = remainder(self.smooth, at, unit.max(area).lower(), precision)
            if found is None:
                return None
            order, error = found
            if area is None:
                area = self.integral(arb(fmpz(at)))
            return area + boundary(self.smooth, at, order) + arb(0, error)


@dataclass(frozen=True)
class Dominated(Series):
    """Direct summation of terms that fall fast, the rest bounded by the tail of a larger series.

    ``bound`` is a series of terms at least as large from ``bound_from`` on.
    """

    weight: Term
    bound: Series
    bound_from: int
    start: int
    method: str = "direct summation, the rest below a majorant"
    _sums: dict[int, tuple[int, list[arb]]] = field(default_factory=dict, repr=False)

    def term(self, j: int, precision: int) -> arb:
        with working(precision):
            return self.weight.at(self.start + j)

    def tail(self, j: int, precision: int) -> arb:
        first, sums = self._sums.get(precision, (j, []))
        if not first <= j < first + len(sums):
            first, sums = self._sums[precision] = j, self._summed(j, precision)
        return sums[j - first]

    def _summed(self, j: int, precision: int) -> list[arb]:
        """The tails from j to where the rest is negligible."""
        step = 32
        while step <= MAX_HEAD:
            end = max(self.start + j + step, self.bound_from)
            rest = self.bound.tail(end - self.bound.start, 64)
            with working(precision):
                top = rest.upper()
                small = arb(2) ** -precision
                scale = self._largest(j).max(self._largest(0) * small).lower()
                if top < scale * small:
                    terms = [self.weight.at(n) for n in range(self.start + j, end)]
                    return suffix_sums(terms, arb(top / 2, top / 2))[:-1]
            step *= 2
        raise NotRegularError(
            f"the terms fall too slowly to be summed directly within {MAX_HEAD} terms"
        )

    def _largest(self, j: int) -> arb:
        """The largest of a few terms from ``j`` on."""
        largest = arb(0)
        for n in range(self.start + j, self.start + j + 8):
            largest = largest.max(self.weight.at(n))
        return largest


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
        return _kept_tail(self, j, precision)

    def _from(self, first: int, precision: int) -> tuple[arb, int]:
        if first >= self.end:
            return arb(0), self.end
        step = 0
        with working(precision):
            unit = self.smooth.at(first).lower()
            while step <= MAX_HEAD:
                point = first + step
                if point >= self.end:
                    return arb(0), self.end
                found = remainder(self.smooth, point, unit, precision)
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


def _kept_tail(series: EulerMaclaurin | Truncated, j: int, precision: int) -> arb:
    """The tail from term j: of the summed head, or from far out back to j; computed once."""
    if precision not in series._heads:
        first = max(series.start, series.smooth_from, 12 + int(0.4 * precision))
        if isinstance(series, Truncated):
            first = min(first, series.end)
        tail, first = series._from(first, precision)
        with working(precision):
            terms = [series.weight.at(n) for n in range(series.start, first)]
            series._heads[precision] = suffix_sums(terms, tail)
    head = series._heads[precision]
    if j < len(head):
        return head[j]
    key = (j, precision)
    if key not in series._far:
        tail, first = series._from(series.start + j, precision)
        with working(precision):
            for n in range(first - 1, series.start + j - 1, -1):
                tail += series.smooth.at(n)
        series._far[key] = tail
    return series._far[key]


def remainder(smooth: Term, at: int, unit: arb, precision: int) -> tuple[int, arb] | None:
    """A number of terms K whose remainder is below ``2^-precision`` units, and that remainder."""
    best: tuple[int, arb] | None = None
    taus = [arb(tau) for tau in TAUS]
    with flint.ctx.workprec(64 + at.bit_length()):
        while taus:
            tau = taus.pop(0)
            bound = try_disc_bound(smooth.p, smooth.n, arb(fmpz(at)), tau)
            if bound is None:
                continue
            order = _order(bound, at, unit, precision)
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


def _order(bound: DiscBound, at: int, unit: arb, precision: int) -> int | None:
    """The least K with a remainder below the target, in floats (the bound itself is a ball)."""
    step = math.log(2 * math.pi * float(bound.tau)) + math.log(at)
    growth = float(bound.growth)
    base = math.log(4 * at) + _log(bound.height / unit) + precision * math.log(2) + 1e-6

    def excess(order: int) -> float:
        free = 2 * order - 1 - growth
        return base + math.lgamma(2 * order + 1) - 2 * order * step - math.log(free)

    low = max(1, int(min(growth, 4.0 * MAX_ORDER) / 2) + 2)
    if low > MAX_ORDER:
        return None
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
    """A float near ``log(x)``; -inf for zero, inf for what is not finite."""
    if not x.is_finite():
        return math.inf
    return float(x.log().mid()) if x > 0 else -math.inf


@contextmanager
def _series_length(length: int) -> Iterator[None]:
    before = flint.ctx.cap
    flint.ctx.cap = length
    try:
        yield
    finally:
        flint.ctx.cap = before
