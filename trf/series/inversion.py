"""The least ``j`` with ``tail(j) < eps*total``, proved.

The tail falls over hundreds of orders of magnitude, so it is inverted in three steps:

1. ``j`` is bracketed between powers ``2^(2^k)``.
2. Newton on ``log tail`` against ``log j`` at low precision, kept inside the bracket, brings ``j``
   to a few right digits.
3. Newton's steps ``j += (tail(j) - eps*total)/f(j)``, each at about twice the precision of the
   last, bring the rest (``-f`` is the discrete derivative of the tail).

Last, ``tail(j) < eps*total <= tail(j-1)`` is checked in balls; the precision is raised until both
comparisons are decided. Where a comparison stays undecided it may be a tie: then the series is
asked for the exact rational share.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

import sympy
from flint import arb, fmpz

from trf.series.balls import number
from trf.series.tails import Series, rational, working

BASE_BITS = 96
MAX_BITS = 40_000
MAX_DOUBLINGS = 15


class UndecidedTailError(ValueError):
    """A comparison of the tail with its target was not decided; the message says at which j."""


class Threshold(Protocol):
    """The share of the mass that a tail has to fall below."""

    @property
    def exact(self) -> Fraction | None:
        """The share as a rational number, where it is one."""
        ...

    def ball(self) -> arb:
        """The share at the precision in force."""
        ...


@dataclass(frozen=True)
class Share:
    """The share of the mass that the tail has to fall below.

    With logits bounded by ``|q.k|/sqrt(d) <= U`` the mass beyond ``j`` is at most
    ``e^U*T/(e^-U*(B-T) + e^U*T)``, ``T = tail(j)``: it is below ``eps`` where ``T/B`` is below
    ``r/(1+r)``, ``r = e^(-2U)*eps/(1-eps)``; for U = 0 that is ``eps``.
    """

    eps: Fraction
    logit_bound: sympy.Expr = sympy.S.Zero

    @property
    def exact(self) -> Fraction | None:
        """The share as a rational number, where it is one."""
        return self.eps if self.logit_bound == 0 else None

    def ball(self) -> arb:
        """The share at the precision in force."""
        if self.logit_bound == 0:
            return arb(rational(self.eps))
        ratio = (-2 * number(self.logit_bound)).exp() * rational(self.eps / (1 - self.eps))
        return ratio / (1 + ratio)


def radius(series: Series, share: Threshold) -> int:
    """``min{j >= 1 : tail(j) < eps*total}``, the least number of terms that holds ``1-eps`` of all.

    Raises:
        UndecidedTailError: a comparison could not be decided within the limits of precision.
    """
    if below(series, 1, share, BASE_BITS):
        return 1
    low, high = _bracket(series, share)
    if high - low > 8:
        low, high = _narrow(series, share, low, high)
    return _settle(series, share, low, high)


def below(series: Series, j: int, share: Threshold, precision: int) -> bool:
    """Whether ``tail(j) < eps*total``; precision is raised from the given one until decided."""
    limit = min(MAX_BITS, max(2048, 4 * j.bit_length() + 1024))
    while precision <= limit:
        difference = _gap(series, j, share, precision)
        if difference > 0:
            return False
        if difference < 0:
            return True
        if precision >= 2 * BASE_BITS + 2 * j.bit_length():
            exact = series.exact_share(j)
            if exact is not None and share.exact is not None:
                return exact < share.exact
        precision *= 2
    wanted = share.exact or "its share"
    raise UndecidedTailError(
        f"whether the tail beyond {j} is below {wanted} of the whole was not decided at "
        f"{precision // 2} bits: the two may be equal"
    )


def _gap(series: Series, j: int, share: Threshold, precision: int) -> arb:
    tail, total = series.tail(j, precision), series.total(precision)
    with working(precision):
        return tail - total * share.ball()


def _bracket(series: Series, share: Threshold) -> tuple[int, int]:
    """``low < radius <= high`` for the radius above 1, from powers ``2^(2^k)``."""
    low, high = 1, 2
    for _ in range(MAX_DOUBLINGS):
        if below(series, high, share, BASE_BITS):
            return low, high
        low, high = high, high * high
    raise UndecidedTailError(
        f"the radius lies beyond 2^{high.bit_length() // 2}, the largest distance tried"
    )


def _narrow(series: Series, share: Threshold, low: int, high: int) -> tuple[int, int]:
    """A bracket (or a nearly exact low end) by Newton in log-log, kept inside by bisection."""
    j = _integer_exp((math.log(low) + math.log(high)) / 2)
    for _ in range(100):
        if high - low <= 1:
            break
        j = min(max(j, low + 1), high - 1)
        log_ratio, slope = _log_ratio(series, share, j)
        if log_ratio > 0:
            low = j
        else:
            high = j
        if abs(log_ratio) < 1e-7 or (j < 1 << 50 and 4 * j * abs(log_ratio) < slope):
            return j, j + 1
        middle = (math.log(low) + math.log(high)) / 2
        target = math.log(j) + log_ratio / slope if slope > 0 else middle
        inside = math.log(low) < target < math.log(high)
        j = _integer_exp(target if inside else middle)
    return low, high


def _log_ratio(series: Series, share: Threshold, j: int) -> tuple[float, float]:
    """``log(tail(j)/(eps*total))`` and ``-d log(tail)/d log(j)``, about ``j*f(j)/tail(j)``."""
    tail, total, term = (
        series.tail(j, BASE_BITS),
        series.total(BASE_BITS),
        series.term(j, BASE_BITS),
    )
    with working(BASE_BITS):
        ratio = tail / (total * share.ball())
        slope = term * fmpz(j) / tail
        if not (ratio > 0 and slope > 0):
            return -math.inf, 0.0
        return float(ratio.log().mid()), float(slope.mid())


def _integer_exp(x: float) -> int:
    """``floor(e^x)`` to the precision of a float, for any size."""
    shift = max(0, int(x / math.log(2)) - 60)
    return int(math.exp(x - shift * math.log(2))) << shift


def _settle(series: Series, share: Threshold, low: int, high: int) -> int:
    """Newton from the bracket, then the two comparisons that prove the radius."""
    j = low
    precision = BASE_BITS
    wanted = max(BASE_BITS, 64 + int(1.1 * j.bit_length()))
    for _ in range(200):
        gap = _gap(series, j, share, precision)
        step = _newton_step(series, j, gap, precision)
        if step is None or (precision < wanted and abs(step).bit_length() < 8):
            precision = min(MAX_BITS, 2 * precision)
            if step is None and precision >= wanted:
                break
            continue
        if step == 0:
            break
        j = max(1, j + step)
        if precision < wanted:
            precision = min(wanted, 2 * precision)
    return _walk(series, share, max(j, 1), wanted)


def _newton_step(series: Series, j: int, gap: arb, precision: int) -> int | None:
    """``ceil(gap/f(j))`` rounded to a whole number of tokens; None where it is not known."""
    term = series.term(j, precision)
    with working(precision):
        step = gap / term
        if not step.is_finite():
            return None
        if step.rad() > abs(step.mid()) and step.rad() > 1:
            return None
        return int(step.mid().ceil().unique_fmpz() or fmpz(0))


def _walk(series: Series, share: Threshold, j: int, precision: int) -> int:
    """From a near guess to the radius, by proved comparisons, galloping if the guess is off."""
    step = 1
    if below(series, j, share, precision):
        high = j
        while high > 1:
            low = max(high - step, 0)
            if low == 0 or not below(series, low, share, precision):
                break
            high, step = low, 2 * step
        low = max(high - step, 0)
    else:
        low = j
        while not below(series, low + step, share, precision):
            low, step = low + step, 2 * step
        high = low + step
    while high - low > 1:
        middle = (low + high) // 2
        if below(series, middle, share, precision):
            high = middle
        else:
            low = middle
    return high
