"""The arithmetic of `trf.series.discs`: positive quantities with what they do on the discs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import sympy
from flint import arb

from trf.series.balls import number


class NotRegularError(ValueError):
    """The calculus has no bound for an expression on these discs."""


@dataclass(frozen=True)
class Span:
    """A positive quantity A on [N, oo); the bounds are those of `trf.series.discs`.

    ``elastic`` bounds ``x*A'/A`` from below and above; None stands for no bound.
    """

    low: arb
    high: arb | None
    relative: arb | None
    absolute: arb | None
    elastic: tuple[arb, arb | None]
    slope: arb
    rising: bool
    falling: bool


def below_one(span: Span) -> arb:
    """The relative deviation, which has to be below 1: no zero or branch point is met."""
    if span.relative is None or not span.relative < 1:
        raise NotRegularError("the discs reach a zero or a branch point")
    return span.relative


def minus(bound: arb | None) -> arb:
    """The negative of a bound; minus infinity for none."""
    return arb.neg_inf() if bound is None else -bound


def total(spans: list[Span], tau: arb) -> Span:
    """``A + B + ...``"""
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
    return Span(
        low,
        high,
        relative,
        absolute,
        (bottom, tops),
        _add([s.slope for s in spans]),
        all(s.rising for s in spans),
        all(s.falling for s in spans),
    )


def _bottom_despite_falling(spans: list[Span], tau: arb) -> arb:
    """``x*(A+B)'/(A+B) >= (e*A - b/tau)/(A + B_high)``, A the rising parts, B the others."""
    rising = [s for s in spans if s.rising]
    others = [s for s in spans if not s.rising]
    if not rising:
        return arb.neg_inf()
    core = total(rising, tau)
    drop, high = _join([s.absolute for s in others], _add), _join([s.high for s in others], _add)
    if drop is None or high is None or not core.elastic[0] >= 0:
        return arb.neg_inf()
    return (core.elastic[0] * core.low - drop / tau) / (core.low + high)


def _relative_of_sum(spans: list[Span], low: arb) -> arb | None:
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


def difference(a: Span, b: Span) -> Span:
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
    return Span(
        a.low * left,
        None,
        relative,
        _join([a.absolute, b.absolute], _add),
        (a.elastic[0], None if a.elastic[1] is None else a.elastic[1] / left),
        a.low * a.elastic[0] * left,
        True,
        False,
    )


def _less_falling(a: Span, b: Span, most: arb) -> Span:
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
    return Span(low, a.high, relative, absolute, (a.elastic[0], None), a.slope, True, False)


def product(a: Span, b: Span, tau: arb) -> Span:
    """``A*B``."""
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
        return Span(low, high, relative, absolute, (bottom, top), low * bottom, rising, falling)
    steepest = None if absolute is None else absolute / tau
    slope = a.low * b.slope + b.low * a.slope if rising else minus(steepest)
    return Span(low, high, relative, absolute, (bottom, top), slope, rising, falling)


def _at_start(span: Span) -> arb | None:
    """The value at N of a quantity that rises or falls."""
    return span.low if span.rising else (span.high if span.falling else None)


def _crossed(a: arb | None, b: arb | None, da: arb | None, db: arb | None) -> arb | None:
    """``|A(z)B(z) - AB| <= A*db + (B + db)*da``."""
    if a is None or b is None or da is None or db is None:
        return None
    return a * db + (b + db) * da


def raised(a: Span, exponent: sympy.Expr, tau: arb) -> Span:
    """``A**s``."""
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
        below_one(a)
    low = a.low**s if s > 0 else (arb(0) if a.high is None else a.high**s)
    high = (None if a.high is None else a.high**s) if s > 0 else a.low**s
    absolute = None
    if s <= 1 and a.absolute is not None and a.relative is not None and a.relative < 1:
        absolute = abs(s) * (a.low * (1 - a.relative)) ** (s - 1) * a.absolute
    elif high is not None and relative is not None:
        absolute = high * relative
    ends = (a.elastic[0] * s, None if a.elastic[1] is None else a.elastic[1] * s)
    steepest = minus(None if absolute is None else absolute / tau)
    if s > 0:
        slope = low * ends[0] if a.rising else steepest
        if s >= 1 and a.rising:
            slope = slope.max(s * a.low ** (s - 1) * a.slope)
        return Span(low, high, relative, absolute, ends, slope, a.rising, a.falling)
    bottom = arb(0) if ends[1] is None else ends[1]
    if ends[1] is None:
        raise NotRegularError("a negative power of a quantity of unbounded growth")
    return Span(low, high, relative, absolute, (bottom, ends[0]), steepest, a.falling, a.rising)


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
