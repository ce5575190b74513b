"""Ranges of constants: intervals that contain every value on the parameters' domains."""

# sympy's stubs type the parts and the results of an expression too widely.
# pyright: reportArgumentType=false

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import sympy
from sympy import S

from trf.series.numbers import number_sign

Signs = frozenset[int]
ANY: Signs = frozenset({-1, 0, 1})
POSITIVE: Signs = frozenset({1})
NONNEGATIVE: Signs = frozenset({0, 1})


@dataclass(frozen=True)
class Constraint:
    """`expr`, in reduced form, has one of `signs`."""

    expr: sympy.Expr
    signs: Signs


@dataclass(frozen=True)
class Interval:
    """The range of a constant; an end is excluded where `open_*` is set."""

    low: sympy.Expr
    high: sympy.Expr
    open_low: bool = False
    open_high: bool = False


_REALS = Interval(S.NegativeInfinity, S.Infinity, True, True)


class Intervals:
    """Interval arithmetic over the domains and constraints of an oracle."""

    constraints: tuple[Constraint, ...]
    ranges: dict[sympy.Symbol, Interval]

    def _structural(self, e: sympy.Expr) -> Signs:
        raise NotImplementedError

    def _symbol(self, symbol: sympy.Symbol) -> Signs:
        raise NotImplementedError

    def _interval_signs(self, e: sympy.Expr) -> Signs:
        interval = self.interval(e)
        signs = set(ANY)
        low, high = number_sign(interval.low), number_sign(interval.high)
        if low > 0 or (low == 0 and interval.open_low):
            signs -= {0, -1}
        elif low == 0:
            signs -= {-1}
        if high < 0 or (high == 0 and interval.open_high):
            signs -= {0, 1}
        elif high == 0:
            signs -= {1}
        return frozenset(signs)

    def interval(self, e: sympy.Expr) -> Interval:
        """A range that contains every value of `e` on the domain."""
        if not e.free_symbols:
            return Interval(e, e)
        if isinstance(e, sympy.Symbol):
            return self._symbol_interval(e)
        if isinstance(e, (sympy.sin, sympy.cos)):
            return Interval(S.NegativeOne, S.One)
        if isinstance(e, (sympy.tanh, sympy.erf)):
            inner = self._structural(e.args[0])
            low = S.Zero if inner <= NONNEGATIVE else S.NegativeOne
            return Interval(low, S.One, inner == POSITIVE or low is not S.Zero, True)
        if isinstance(e, sympy.Add):
            parts = [self.interval(term) for term in e.args]
            low = sympy.Add(*(part.low for part in parts))
            high = sympy.Add(*(part.high for part in parts))
            return Interval(
                low, high, any(p.open_low for p in parts), any(p.open_high for p in parts)
            )
        if isinstance(e, (sympy.exp, sympy.log, sympy.atan)):
            return self._monotone(e)
        if isinstance(e, sympy.Abs):
            inner = self.interval(e.args[0])
            if number_sign(inner.low) < 0 < number_sign(inner.high):
                return Interval(S.Zero, sympy.Max(inner.high, -inner.low))
        if isinstance(e, sympy.sign):
            return Interval(S.NegativeOne, S.One)
        if isinstance(e, (sympy.Max, sympy.Min)):
            inside = [self.interval(argument) for argument in e.args]
            return Interval(e.func(*(i.low for i in inside)), e.func(*(i.high for i in inside)))
        if isinstance(e, sympy.Mul):
            return self._product_interval(e)
        if isinstance(e, sympy.Pow) and isinstance(e.exp, sympy.Rational):
            return self._power_interval(e)
        return self._by_signs(e)

    def _by_signs(self, e: sympy.Expr) -> Interval:
        signs = self._structural(e)
        low = S.Zero if signs <= NONNEGATIVE else S.NegativeInfinity
        high = S.Zero if signs <= {-1, 0} else S.Infinity
        return Interval(low, high, 0 not in signs or low != 0, 0 not in signs or high != 0)

    def _product_interval(self, e: sympy.Mul) -> Interval:
        number, rest = e.as_coeff_Mul()
        if number == 1:
            parts = [self.interval(factor) for factor in e.args]
            if any(number_sign(part.low) < 0 for part in parts):
                ends = [end for part in parts for end in (part.low, part.high)]
                if S.Infinity in ends or S.NegativeInfinity in ends or len(parts) > 4:
                    return self._by_signs(e)
                corners = [
                    sympy.Mul(*choice) for choice in product(*((p.low, p.high) for p in parts))
                ]
                return Interval(sympy.Min(*corners), sympy.Max(*corners))
            if any(part.high is S.Infinity for part in parts):
                high = S.Infinity
            else:
                high = sympy.Mul(*(part.high for part in parts))
            low = sympy.Mul(*(part.low for part in parts))
            return Interval(
                low,
                high,
                any(part.open_low for part in parts),
                any(part.open_high for part in parts),
            )
        inner = self.interval(rest)
        low, high = number * inner.low, number * inner.high
        if number > 0:
            return Interval(low, high, inner.open_low, inner.open_high)
        return Interval(high, low, inner.open_high, inner.open_low)

    def _power_interval(self, e: sympy.Pow) -> Interval:
        inner = self.interval(e.base)
        if number_sign(inner.low) < 0:
            if e.exp == 2 and S.Infinity not in (inner.high, -inner.low):
                return Interval(S.Zero, sympy.Max(inner.high**2, inner.low**2))
            return self._by_signs(e)
        if e.exp > 0:
            high = S.Infinity if inner.high is S.Infinity else inner.high**e.exp
            return Interval(inner.low**e.exp, high, inner.open_low, inner.open_high)
        low = S.Zero if inner.high is S.Infinity else inner.high**e.exp
        high = S.Infinity if inner.low == 0 else inner.low**e.exp
        return Interval(low, high, inner.open_high, inner.open_low)

    def _monotone(self, e: sympy.Expr) -> Interval:
        inner = self.interval(e.args[0])
        if isinstance(e, sympy.log) and number_sign(inner.low) < 0:
            return _REALS
        function = e.func
        low = (
            S.NegativeInfinity if function is sympy.log and inner.low == 0 else function(inner.low)
        )
        return Interval(low, function(inner.high), inner.open_low, inner.open_high)

    def _symbol_interval(self, symbol: sympy.Symbol) -> Interval:
        if symbol in self.ranges:
            return self.ranges[symbol]
        signs = self._symbol(symbol)
        low, open_low = (
            (S.Zero, 0 not in signs) if signs <= NONNEGATIVE else (S.NegativeInfinity, True)
        )
        if symbol.is_integer and symbol.is_positive:
            low, open_low = (sympy.Integer(2), False) if symbol.is_even else (S.One, False)
        high, open_high = (S.Zero, 0 not in signs) if signs <= {-1, 0} else (S.Infinity, True)
        for constraint in self.constraints:
            bound = symbol - constraint.expr
            if bound.free_symbols:
                continue
            if constraint.signs <= NONNEGATIVE and number_sign(bound - low) >= 0:
                low, open_low = bound, 0 not in constraint.signs
            if constraint.signs <= {-1, 0} and number_sign(high - bound) >= 0:
                high, open_high = bound, 0 not in constraint.signs
        return Interval(low, high, open_low, open_high)
