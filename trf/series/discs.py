"""Bounds on ``exp(p)`` over complex discs around every real ``x >= N`` at once.

For the remainder of Euler-Maclaurin summation and of Gauss-Legendre quadrature one needs a bound
on ``|f(z)|``, ``f = exp(p)``, for all ``|z - x| <= tau*x`` and all real ``x >= N``. It is found by
walking the expression with a small calculus. For each positive quantity ``A`` it carries

    low <= A(x) <= high             on [N, oo),
    |A(z)/A(x) - 1| <= relative     and    |A(z) - A(x)| <= absolute     on the discs,
    slope <= x*A'(x)                on [N, oo), and whether A rises or falls.

Rules: the relative deviation of a sum of positive quantities is at most the largest of its parts;
``|log(1+w)| <= -log(1-|w|)``; ``|(1+w)^s - 1| <= (1+r)^s - 1`` for ``s >= 1`` and
``<= |1 - (1-r)^s|`` for ``s < 1`` (integrate ``s*(1+t*w)^(s-1)*w`` over ``t`` in [0, 1]). A
logarithm is taken only where the relative deviation is below 1, so its argument stays in the right
half plane and the principal branch is analytic: that ``f`` is analytic on the discs is part of what
is proved. By Cauchy's estimate ``|x*A'(x)| <= absolute/tau``, which bounds growth.

All bounds are themselves balls, so rounding is accounted for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import sympy
from flint import arb

from trf.series.balls import number
from trf.series.spans import (
    NotRegularError,
    Span,
    below_one,
    difference,
    minus,
    product,
    raised,
    total,
)

TAUS = ("0.5", "0.35", "0.2", "0.1", "0.05")


@dataclass(frozen=True)
class DiscBound:
    """``|f(z)| <= height*(x/N)**growth`` for ``|z - x| <= tau*x``, ``x >= N``.

    ``decay`` is a lower bound of ``-x*p'(x)`` on ``[N, oo)``: where it exceeds 1 the series
    converges and ``integral_X^oo f <= X*f(X)/(decay - 1)`` for ``X >= N``.
    """

    start: arb
    tau: arb
    height: arb
    growth: arb
    decay: arb


def disc_bound(
    p: sympy.Expr, n: sympy.Symbol, start: arb, tau: arb, end: arb | None = None
) -> DiscBound:
    """The bound of the module docstring for ``f = exp(p)``.

    With ``end`` it is claimed for ``start <= x <= end`` only, where more expressions have one.

    Raises:
        NotRegularError: no bound found (``start`` too small, or a function outside the calculus).
    """
    walk = _Walk(n, start, tau, end)
    height, growth, decay = arb(1), arb(0), arb(0)
    falls: list[sympy.Expr] = []
    rises: list[sympy.Expr] = []
    for part in sympy.Add.make_args(p):
        if not part.has(n):
            height *= number(part).exp()
            continue
        free, bound = part.as_independent(n, as_Add=False)
        scale = number(free)
        if isinstance(bound, sympy.log):
            factor, power, slope = walk.power(bound.args[0], scale)
            height, growth, decay = height * factor, growth + power, decay + slope
        else:
            (falls if free.is_negative else rises).append(part if free.is_positive else -part)
    try:
        if falls:
            span = walk.span(sympy.Add(*falls) - sympy.Add(*rises))
            height, decay, rises = height * walk.damping(span), decay + span.slope, []
    except NotRegularError:
        for part in falls:
            span = walk.span(part)
            height, decay = height * walk.damping(span), decay + span.slope
    for part in rises:
        factor, power = walk.swelling(walk.span(part))
        height, growth, decay = height * factor, growth + power, decay - power
    return DiscBound(start, tau, height.upper(), growth.upper(), decay.lower())


def try_disc_bound(
    p: sympy.Expr, n: sympy.Symbol, start: arb, tau: arb, end: arb | None = None
) -> DiscBound | None:
    """`disc_bound`, or None where it has no bound."""
    try:
        return disc_bound(p, n, start, tau, end)
    except NotRegularError:
        return None


def rises(expr: sympy.Expr, n: sympy.Symbol, start: arb) -> bool:
    """Whether the calculus shows that ``expr`` is positive and nondecreasing on ``[start, oo)``."""
    try:
        return _Walk(n, start, arb("0.01")).span(expr).rising
    except NotRegularError:
        return False


@dataclass(frozen=True)
class _Walk:
    n: sympy.Symbol
    start: arb
    tau: arb
    end: arb | None = None

    def power(self, inner: sympy.Expr, scale: arb) -> tuple[arb, arb, arb]:
        """``A(z)**scale``: its bound at N, its growth, a lower bound of ``-scale*x*A'/A``."""
        span = self.span(inner)
        relative = below_one(span)
        bottom, top = span.elastic
        if top is None:
            top = relative / self.tau
        if scale < 0:
            return (span.low * (1 - relative)) ** scale, arb(0), -scale * bottom
        if span.high is not None:
            return (span.high * (1 + relative)) ** scale, arb(0), -scale * top
        if not span.rising:
            raise NotRegularError("a growing factor that is not monotone")
        return (span.low * (1 + relative)) ** scale, scale * top, -scale * top

    def damping(self, span: Span) -> arb:
        """A bound on ``exp(-A(z))``."""
        bounds = []
        if span.relative is not None and span.relative < 1:
            bounds.append((-(1 - span.relative) * span.low).exp())
        if span.absolute is not None:
            bounds.append((span.absolute - span.low).exp())
        if not bounds:
            raise NotRegularError("a decaying factor that varies too fast on the discs")
        return bounds[0].min(bounds[-1])

    def swelling(self, span: Span) -> tuple[arb, arb]:
        """``exp(A(z))``: its bound at N and its growth."""
        if span.absolute is None:
            raise NotRegularError("a growing factor that varies too fast on the discs")
        if span.high is not None:
            return (span.high + span.absolute).exp(), arb(0)
        if not span.rising:
            raise NotRegularError("a growing factor that is not monotone")
        return (span.low + span.absolute).exp(), span.absolute / self.tau

    def span(self, expr: Any) -> Span:
        """The calculus; ``expr`` must come out positive on [N, oo)."""
        n = self.n
        if not expr.has(n):
            value = number(expr)
            if not value > 0:
                raise NotRegularError(f"{expr} is not positive")
            return Span(value, value, arb(0), arb(0), (arb(0), arb(0)), arb(0), True, True)
        if expr == n:
            absolute = None if self.end is None else self.tau * self.end
            ends = arb(1), arb(1)
            return Span(self.start, self.end, self.tau, absolute, ends, self.start, True, False)
        if isinstance(expr, sympy.Add):
            return self._sum(expr)
        if isinstance(expr, sympy.Mul):
            free, bound = expr.as_independent(n, as_Add=False)
            spans = [self.span(factor) for factor in (free, *sympy.Mul.make_args(bound))]
            result = spans[0]
            for other in spans[1:]:
                result = product(result, other, self.tau)
            return result
        if isinstance(expr, sympy.Pow) and not expr.args[1].has(n):
            return raised(self.span(expr.args[0]), expr.args[1], self.tau)
        if isinstance(expr, sympy.log):
            return self._logarithm(self.span(expr.args[0]))
        if isinstance(expr, sympy.exp):
            return self._exponential(expr.args[0])
        if isinstance(expr, sympy.loggamma):
            return self._loggamma(self.span(expr.args[0]))
        raise NotRegularError(f"{expr.func.__name__} is outside the calculus of discs")

    def _sum(self, expr: Any) -> Span:
        plus: list[Span] = []
        minus: list[Span] = []
        for part in expr.args:
            negative = part.as_independent(self.n, as_Add=False)[0].is_negative
            (minus if negative else plus).append(self.span(-part if negative else part))
        if not plus:
            raise NotRegularError(f"{expr} is not positive")
        result = total(plus, self.tau)
        return difference(result, total(minus, self.tau)) if minus else result

    def _logarithm(self, inner: Span) -> Span:
        relative = below_one(inner)
        if not inner.low >= 1:
            raise NotRegularError("a logarithm that is not positive")
        low = inner.low.log()
        absolute = -(1 - relative).log()
        bottom, top = inner.elastic
        if top is None:
            top = relative / self.tau
        if inner.rising:
            ends = arb(0), top / low if low > 0 else None
        else:
            ends = minus(relative / (self.tau * low) if low > 0 else None), None
        return Span(
            low,
            None if inner.high is None else inner.high.log(),
            absolute / low if low > 0 else None,
            absolute,
            ends,
            bottom,
            inner.rising,
            inner.falling,
        )

    def _falls(self, exponent: Any) -> bool:
        """Whether every part that moves with n has a negative coefficient."""
        moving = [part for part in sympy.Add.make_args(exponent) if part.has(self.n)]
        signs = {part.as_independent(self.n, as_Add=False)[0].is_negative for part in moving}
        return signs == {True}

    def _exponential(self, exponent: Any) -> Span:
        if self._falls(exponent):
            inner = self.span(-exponent)
            top = (-inner.low).exp()
            absolute = top + self.damping(inner)
            relative = None if inner.absolute is None else inner.absolute.exp() - 1
            steepest = None if inner.absolute is None else inner.absolute / self.tau
            return Span(
                arb(0),
                top,
                relative,
                absolute,
                (minus(steepest), arb(0) if inner.rising else steepest),
                -absolute / self.tau,
                inner.falling,
                inner.rising,
            )
        inner = self.span(exponent)
        if inner.absolute is None:
            raise NotRegularError("an exponential that varies too fast on the discs")
        low = inner.low.exp()
        relative = inner.absolute.exp() - 1
        high = None if inner.high is None else inner.high.exp()
        return Span(
            low,
            high,
            relative,
            None if high is None else high * relative,
            (inner.slope, None),
            low * inner.slope,
            inner.rising,
            inner.falling,
        )

    def _loggamma(self, inner: Span) -> Span:
        """``log Gamma(A)`` for a rising A >= 8, by ``|psi(w)| <= log|w| + 1 + 1/|w|`` near R.

        (DLMF 5.11.2; in the discs ``|arg w| <= pi/4``.) The relative deviation is largest at N, for
        ``(L+c)/(L-1-L*e^-L)`` falls in L = log A, and ``log Gamma(A) >= A*log(A) - A - log(A)``.
        """
        relative = below_one(inner)
        if not (inner.rising and inner.low >= 8 and relative < arb("0.7")):
            raise NotRegularError("loggamma of an argument that is small or falls")
        low = inner.low.lgamma()
        log = inner.low.log()
        steepness = log + relative.log1p() + 1 + 1 / (inner.low * (1 - relative))
        floor = inner.low * log - inner.low - log
        return Span(
            low,
            None,
            relative * steepness * inner.low / floor,
            None,
            (inner.elastic[0], None),
            inner.slope * (log - 1 / inner.low),
            True,
            False,
        )
