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

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import sympy
from flint import arb

from trf.series.balls import number

TAUS = ("0.5", "0.35", "0.2", "0.1", "0.05")


class NotRegularError(ValueError):
    """The calculus has no bound for an expression on these discs."""


@dataclass(frozen=True)
class _Span:
    low: arb
    high: arb | None
    relative: arb | None
    absolute: arb | None
    elastic: tuple[arb, arb | None]
    slope: arb
    rising: bool
    falling: bool


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
        relative = _below_one(span)
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

    def damping(self, span: _Span) -> arb:
        """A bound on ``exp(-A(z))``."""
        bounds = []
        if span.relative is not None and span.relative < 1:
            bounds.append((-(1 - span.relative) * span.low).exp())
        if span.absolute is not None:
            bounds.append((span.absolute - span.low).exp())
        if not bounds:
            raise NotRegularError("a decaying factor that varies too fast on the discs")
        return bounds[0].min(bounds[-1])

    def swelling(self, span: _Span) -> tuple[arb, arb]:
        """``exp(A(z))``: its bound at N and its growth."""
        if span.absolute is None:
            raise NotRegularError("a growing factor that varies too fast on the discs")
        if span.high is not None:
            return (span.high + span.absolute).exp(), arb(0)
        if not span.rising:
            raise NotRegularError("a growing factor that is not monotone")
        return (span.low + span.absolute).exp(), span.absolute / self.tau

    def span(self, expr: Any) -> _Span:
        """The calculus; ``expr`` must come out positive on [N, oo)."""
        n = self.n
        if not expr.has(n):
            value = number(expr)
            if not value > 0:
                raise NotRegularError(f"{expr} is not positive")
            return _Span(value, value, arb(0), arb(0), (arb(0), arb(0)), arb(0), True, True)
        if expr == n:
            absolute = None if self.end is None else self.tau * self.end
            ends = arb(1), arb(1)
            return _Span(self.start, self.end, self.tau, absolute, ends, self.start, True, False)
        if isinstance(expr, sympy.Add):
            return self._sum(expr)
        if isinstance(expr, sympy.Mul):
            free, bound = expr.as_independent(n, as_Add=False)
            spans = [self.span(factor) for factor in (free, *sympy.Mul.make_args(bound))]
            result = spans[0]
            for other in spans[1:]:
                result = _product(result, other, self.tau)
            return result
        if isinstance(expr, sympy.Pow) and not expr.args[1].has(n):
            return _raised(self.span(expr.args[0]), expr.args[1], self.tau)
        if isinstance(expr, sympy.log):
            return self._logarithm(self.span(expr.args[0]))
        if isinstance(expr, sympy.exp):
            return self._exponential(expr.args[0])
        if isinstance(expr, sympy.loggamma):
            return self._loggamma(self.span(expr.args[0]))
        raise NotRegularError(f"{expr.func.__name__} is outside the calculus of discs")

    def _sum(self, expr: Any) -> _Span:
        plus: list[_Span] = []
        minus: list[_Span] = []
        for part in expr.args:
            negative = part.as_independent(self.n, as_Add=False)[0].is_negative
            (minus if negative else plus).append(self.span(-part if negative else part))
        if not plus:
            raise NotRegularError(f"{expr} is not positive")
        result = _total(plus, self.tau)
        return _difference(result, _total(minus, self.tau)) if minus else result

    def _logarithm(self, inner: _Span) -> _Span:
        relative = _below_one(inner)
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
            ends = _minus(relative / (self.tau * low) if low > 0 else None), None
        return _Span(
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

    def _exponential(self, exponent: Any) -> _Span:
        if self._falls(exponent):
            inner = self.span(-exponent)
            top = (-inner.low).exp()
            absolute = top + self.damping(inner)
            relative = None if inner.absolute is None else inner.absolute.exp() - 1
            steepest = None if inner.absolute is None else inner.absolute / self.tau
            return _Span(
                arb(0),
                top,
                relative,
                absolute,
                (_minus(steepest), arb(0) if inner.rising else steepest),
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
        return _Span(
            low,
            high,
            relative,
            None if high is None else high * relative,
            (inner.slope, None),
            low * inner.slope,
            inner.rising,
            inner.falling,
        )

    def _loggamma(self, inner: _Span) -> _Span:
        """``log Gamma(A)`` for a rising A >= 8, by ``|psi(w)| <= log|w| + 1 + 1/|w|`` near R.

        (DLMF 5.11.2; in the discs ``|arg w| <= pi/4``.) The relative deviation is largest at N, for
        ``(L+c)/(L-1-L*e^-L)`` falls in L = log A, and ``log Gamma(A) >= A*log(A) - A - log(A)``.
        """
        relative = _below_one(inner)
        if not (inner.rising and inner.low >= 8 and relative < arb("0.7")):
            raise NotRegularError("loggamma of an argument that is small or falls")
        low = inner.low.lgamma()
        log = inner.low.log()
        steepness = log + relative.log1p() + 1 + 1 / (inner.low * (1 - relative))
        floor = inner.low * log - inner.low - log
        return _Span(
            low,
            None,
            relative * steepness * inner.low / floor,
            None,
            (inner.elastic[0], None),
            inner.slope * (log - 1 / inner.low),
            True,
            False,
        )


def _below_one(span: _Span) -> arb:
    if span.relative is None or not span.relative < 1:
        raise NotRegularError("the discs reach a zero or a branch point")
    return span.relative


def _minus(bound: arb | None) -> arb:
    return arb.neg_inf() if bound is None else -bound


def _total(spans: list[_Span], tau: arb) -> _Span:
    if len(spans) == 1:
        return spans[0]
    low = _add([s.low for s in spans])
    high = _join([s.high for s in spans], _add)
    absolute = _join([s.absolute for s in spans], _add)
    relative = _relative_of_sum(spans, low)
    tops = _join([s.elastic[1] for s in spans], _largest)
    bottom = spans[0].elastic[0]
    for span in spans[1:]:
        bottom = bottom.min(span.elastic[0])
    for span in spans:
        others = [s for s in spans if s is not span]
        leads = all(
            s.elastic[1] is not None and span.elastic[0] >= s.elastic[1] for s in others
        ) and all(s.rising for s in spans)
        if leads:
            # Its share of the sum only grows: its elasticity counts at least with that at N.
            bottom = bottom + (span.elastic[0] - bottom) * (span.low / low)
            break
    if not bottom >= 0:
        bottom = _bottom_despite_falling(spans, tau)
    return _Span(
        low,
        high,
        relative,
        absolute,
        (bottom, tops),
        _add([s.slope for s in spans]),
        all(s.rising for s in spans),
        all(s.falling for s in spans),
    )


def _bottom_despite_falling(spans: list[_Span], tau: arb) -> arb:
    """``x*(A+B)'/(A+B) >= (e*A - b/tau)/(A + B_high)``, A the rising parts, B the others."""
    rising = [s for s in spans if s.rising]
    others = [s for s in spans if not s.rising]
    if not rising:
        return arb.neg_inf()
    core = _total(rising, tau)
    drop, high = _join([s.absolute for s in others], _add), _join([s.high for s in others], _add)
    if drop is None or high is None or not core.elastic[0] >= 0:
        return arb.neg_inf()
    return (core.elastic[0] * core.low - drop / tau) / (core.low + high)


def _relative_of_sum(spans: list[_Span], low: arb) -> arb | None:
    """The largest relative deviation; parts without one count by their absolute deviation."""
    share, loose = arb(0), arb(0)
    for span in spans:
        if span.relative is not None and span.low > 0:
            share = share.max(span.relative)
        elif span.absolute is not None:
            loose += span.absolute
        else:
            return None
    return share + loose / low if low > 0 else None


def _difference(a: _Span, b: _Span) -> _Span:
    """``A - B`` where B/A only falls: its share at N is then the largest."""
    top = b.elastic[1]
    if b.falling and b.high is not None and a.rising:
        return _less_falling(a, b, b.high)
    if top is None or not a.elastic[0] >= top or not (a.rising and b.rising):
        raise NotRegularError("a difference whose sign is not settled by growth")
    share = b.low / a.low
    if not share < 1:
        raise NotRegularError("a difference that is not yet positive")
    left = 1 - share
    relative = None
    if a.relative is not None and b.relative is not None:
        relative = (a.relative + b.relative * share) / left
    return _Span(
        a.low * left,
        None,
        relative,
        _join([a.absolute, b.absolute], _add),
        (a.elastic[0], None if a.elastic[1] is None else a.elastic[1] / left),
        a.low * a.elastic[0] * left,
        True,
        False,
    )


def _less_falling(a: _Span, b: _Span, most: arb) -> _Span:
    """``A - B``, A rising and B falling."""
    low = a.low - most
    if not low > 0:
        raise NotRegularError("a difference that is not yet positive")
    absolute = _join([a.absolute, b.absolute], _add)
    relative = None
    if absolute is not None:
        relative = absolute / low
    elif a.relative is not None and b.absolute is not None:
        relative = (a.relative * a.low + b.absolute) / low
    return _Span(low, a.high, relative, absolute, (a.elastic[0], None), a.slope, True, False)


def _product(a: _Span, b: _Span, tau: arb) -> _Span:
    low = a.low * b.low
    high = None if a.high is None or b.high is None else a.high * b.high
    relative = None
    if a.relative is not None and b.relative is not None:
        relative = (1 + a.relative) * (1 + b.relative) - 1
    absolute = None
    if high is not None and relative is not None:
        absolute = high * relative
    else:
        absolute = _crossed(a.high, b.high, a.absolute, b.absolute)
    for scale, other in ((a, b), (b, a)):
        if scale.rising and scale.falling and other.absolute is not None:
            absolute = scale.low * other.absolute
    bottom = a.elastic[0] + b.elastic[0]
    top = None if a.elastic[1] is None or b.elastic[1] is None else a.elastic[1] + b.elastic[1]
    rising, falling = a.rising and b.rising, a.falling and b.falling
    at_start = _at_start(a), _at_start(b)
    if not rising and bottom >= 0 and at_start[0] is not None and at_start[1] is not None:
        # The elasticities of a rising and a falling factor balance: the product rises.
        low, rising = at_start[0] * at_start[1], True
        return _Span(low, high, relative, absolute, (bottom, top), low * bottom, rising, falling)
    steepest = None if absolute is None else absolute / tau
    slope = a.low * b.slope + b.low * a.slope if rising else _minus(steepest)
    return _Span(low, high, relative, absolute, (bottom, top), slope, rising, falling)


def _at_start(span: _Span) -> arb | None:
    """The value at N of a quantity that rises or falls."""
    return span.low if span.rising else (span.high if span.falling else None)


def _crossed(a: arb | None, b: arb | None, da: arb | None, db: arb | None) -> arb | None:
    """``|A(z)B(z) - AB| <= A*db + (B + db)*da``."""
    if a is None or b is None or da is None or db is None:
        return None
    return a * db + (b + db) * da


def _raised(a: _Span, exponent: sympy.Expr, tau: arb) -> _Span:
    s = number(exponent)
    if not (s > 0 or s < 0):
        raise NotRegularError(f"the exponent {exponent} has no certain sign")
    whole = isinstance(exponent, sympy.Integer) and bool(exponent.is_positive)
    relative = a.relative
    if relative is not None:
        if s >= 1:
            relative = (1 + relative) ** s - 1
        elif relative < 1:
            relative = abs(1 - (1 - relative) ** s)
        else:
            relative = None
    if not whole:
        _below_one(a)
    low = a.low**s if s > 0 else (arb(0) if a.high is None else a.high**s)
    high = (None if a.high is None else a.high**s) if s > 0 else a.low**s
    absolute = None
    if s <= 1 and a.absolute is not None and a.relative is not None and a.relative < 1:
        absolute = abs(s) * (a.low * (1 - a.relative)) ** (s - 1) * a.absolute
    elif high is not None and relative is not None:
        absolute = high * relative
    ends = (a.elastic[0] * s, None if a.elastic[1] is None else a.elastic[1] * s)
    steepest = _minus(None if absolute is None else absolute / tau)
    if s > 0:
        slope = low * ends[0] if a.rising else steepest
        if s >= 1 and a.rising:
            slope = slope.max(s * a.low ** (s - 1) * a.slope)
        return _Span(low, high, relative, absolute, ends, slope, a.rising, a.falling)
    bottom = arb(0) if ends[1] is None else ends[1]
    if ends[1] is None:
        raise NotRegularError("a negative power of a quantity of unbounded growth")
    return _Span(low, high, relative, absolute, (bottom, ends[0]), steepest, a.falling, a.rising)


def _add(values: list[arb]) -> arb:
    result = values[0]
    for value in values[1:]:
        result = result + value
    return result


def _largest(values: list[arb]) -> arb:
    result = values[0]
    for value in values[1:]:
        result = result.max(value)
    return result


def _join(values: list[arb | None], operation: Callable[[list[arb]], arb]) -> arb | None:
    known = [value for value in values if value is not None]
    return operation(known) if len(known) == len(values) else None
