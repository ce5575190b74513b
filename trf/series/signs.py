"""The sign of a constant: a number, or an expression in the parameters.

A number's sign is read off a ball that excludes 0; that a number *is* 0 is accepted only with an
algebraic proof. An expression in the parameters has a *set* of possible signs under the declared
domains and the constraints collected so far. Where the set has one element the question is
answered; otherwise `Oracle.sign` raises `Split`, and `trf.series.cases` follows each answer.
"""

# sympy's stubs type the parts and the results of an expression too widely.
# pyright: reportArgumentType=false, reportAssignmentType=false, reportAttributeAccessIssue=false
# pyright: reportOperatorIssue=false, reportReturnType=false

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import product

import sympy
from sympy import S

from trf.series.constants import NoBall, enclose, precision

Signs = frozenset[int]
ANY: Signs = frozenset({-1, 0, 1})
POSITIVE: Signs = frozenset({1})
NONNEGATIVE: Signs = frozenset({0, 1})
_MOST_TERMS, _MOST_SYMBOLS = 24, 8  # of a sum that is worth factoring
_PRECISIONS = (64, 256, 1024, 4096)


class Undecidable(ArithmeticError):
    """A question that the engine can't answer; the message is the reason a verdict gives."""


class Split(Exception):
    """A sign that depends on the parameters: `expr` can have each of `signs`."""

    def __init__(self, expr: sympy.Expr, signs: Signs):
        super().__init__(f"the sign of {expr} depends on the parameters")
        self.expr = expr
        self.signs = signs


@dataclass
class Budget:
    """A limit on the work of one decision, counted in steps so that it is reproducible."""

    left: int

    def spend(self, steps: int = 1) -> None:
        self.left -= steps
        if self.left < 0:
            raise Undecidable("the expansion ran past its limit of work")


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


@lru_cache(maxsize=20_000)
def number_sign(number: sympy.Expr) -> int:
    """The sign of a real number, proved.

    Raises:
        Undecidable: if neither a ball nor an algebraic proof settles it.
    """
    if isinstance(number, sympy.Rational):
        return (number.p > 0) - (number.p < 0)
    if number is S.Infinity:
        return 1
    if number is S.NegativeInfinity:
        return -1
    for bits in _PRECISIONS:
        with precision(bits):
            try:
                ball = enclose(number)
            except NoBall:
                continue
            if ball > 0:
                return 1
            if ball < 0:
                return -1
        if bits == _PRECISIONS[1] and _is_proved_zero(number):
            return 0
    if _is_proved_zero(number):
        return 0
    raise Undecidable(f"no proof settles whether the constant {number} is 0")


@lru_cache(maxsize=2_000)
def _is_proved_zero(number: sympy.Expr) -> bool:
    number = number.replace(lambda e: e is sympy.GoldenRatio, lambda _: (1 + sympy.sqrt(5)) / 2)
    number = number.replace(
        lambda e: isinstance(e, (sympy.asinh, sympy.acosh, sympy.atanh)),
        lambda e: e.rewrite(sympy.log),
    )
    if sympy.expand(number) == 0 or _is_log_of_one(number) or _is_angle_zero(number):
        return True
    logs = sympy.expand_log(number, force=True)
    if sympy.expand(logs.replace(lambda e: isinstance(e, sympy.log), _factored_log)) == 0:
        return True
    if number.is_algebraic:
        x = sympy.Dummy("x")
        return sympy.minimal_polynomial(number, x) == x
    return sympy.simplify(number) == 0


def _is_log_of_one(number: sympy.Expr) -> bool:
    """``sum q_i log(x_i)`` with algebraic x_i and rational q_i is 0 if ``prod x_i^q_i`` is 1."""
    product: sympy.Expr = S.One
    for term in sympy.Add.make_args(number):
        factor, logarithm = term.as_coeff_Mul()
        if not isinstance(logarithm, sympy.log) or not logarithm.args[0].is_algebraic:
            return False
        if abs(factor.p) > 60 or factor.q > 60:
            return False
        product *= logarithm.args[0] ** factor
    x = sympy.Dummy("x")
    return sympy.minimal_polynomial(product, x) == x - 1


def _is_angle_zero(number: sympy.Expr) -> bool:
    """``sum q_i atan(r_i) + q pi``, already known to be nearly 0, by exact Gaussian rationals."""
    if number.has(1 / sympy.pi):
        number = sympy.expand(number * sympy.pi)
    scale = sympy.ilcm(*(t.as_coeff_Mul()[0].q for t in sympy.Add.make_args(number)))
    product: sympy.Expr = S.One
    for term in sympy.Add.make_args(sympy.expand(number * scale)):
        factor, angle = term.as_coeff_Mul()
        if angle == sympy.pi and factor.is_Integer:
            product *= S.NegativeOne**factor
        elif isinstance(angle, sympy.atan) and angle.args[0].is_Rational and abs(factor) < 60:
            product = sympy.expand(product * (1 + sympy.I * angle.args[0]) ** factor)
        else:
            return False
    product = sympy.nsimplify(sympy.expand_complex(product))
    return sympy.im(product) == 0 and sympy.re(product).is_positive is True


def _factored_log(logarithm: sympy.Expr) -> sympy.Expr:
    argument = logarithm.args[0]
    if isinstance(argument, sympy.Rational) and argument > 0:
        return sympy.Add(
            *(power * sympy.log(prime) for prime, power in sympy.factorrat(argument).items())
        )
    return logarithm


def flip(signs: Signs) -> Signs:
    """The signs of -x."""
    return frozenset(-sign for sign in signs)


def _add(first: Signs, second: Signs) -> Signs:
    if first == {0}:
        return second
    if second == {0}:
        return first
    either = first | second
    if -1 in either and 1 in either:
        return ANY
    return frozenset(
        sign for sign in either if sign != 0 or (0 in first and 0 in second)
    )  # fmt: skip


def _multiply(first: Signs, second: Signs) -> Signs:
    return frozenset(a * b for a in first for b in second)


@dataclass
class Oracle:
    """Answers questions of sign under the parameters' domains and `constraints`.

    `ranges` gives the range of symbols that are no parameters: bounded functions of n.
    """

    constraints: tuple[Constraint, ...] = ()
    ranges: dict[sympy.Symbol, Interval] = field(default_factory=dict)
    budget: Budget = field(default_factory=lambda: Budget(20_000))
    _known: dict[sympy.Expr, Signs] = field(default_factory=dict)

    def sign(self, constant: sympy.Expr) -> int:
        """The sign of `constant`.

        Raises:
            Split: if it depends on the parameters.
        """
        signs = self.signs(constant)
        if len(signs) == 1:
            return next(iter(signs))
        reduced, orientation = self.reduce(constant)
        if reduced.free_symbols & set(self.ranges):
            raise Undecidable(f"the sign of {constant} keeps changing with n")
        signs = self.signs(reduced)
        if len(signs) == 1:
            return next(iter(signs)) * orientation
        if isinstance(reduced, sympy.Mul):
            for factor in reduced.args:
                orientation *= self.sign(factor)
                if orientation == 0:
                    break
            return orientation
        if isinstance(reduced, sympy.Pow) and reduced.exp.is_Integer and reduced.exp % 2 == 0:
            return abs(self.sign(reduced.base)) * orientation
        if isinstance(reduced, sympy.Add) and signs == NONNEGATIVE:
            terms = [self.signs(term) for term in reduced.args]
            if all(term <= NONNEGATIVE for term in terms):
                return orientation * max(self.sign(term) for term in reduced.args)
        raise Split(reduced, signs)

    def signs(self, constant: sympy.Expr) -> Signs:
        """Every sign that `constant` may have: one that it can't have may be among them."""
        if isinstance(constant, sympy.Rational):
            return frozenset({(constant.p > 0) - (constant.p < 0)})
        known = self._known.get(constant)
        if known is None:
            self.budget.spend()
            known = self._known[constant] = self._signs(constant)
        return known

    def _signs(self, constant: sympy.Expr) -> Signs:
        if not constant.free_symbols:
            return frozenset({number_sign(constant)})
        signs = self._structural(constant)
        if len(signs) == 1:
            return signs
        reduced, orientation = self.reduce(constant)
        if not reduced.free_symbols:
            return frozenset({number_sign(reduced) * orientation})
        if reduced != constant:
            inner = self._structural(reduced)
            signs &= inner if orientation > 0 else flip(inner)
        inner = self._constrained(reduced)
        signs &= inner if orientation > 0 else flip(inner)
        if len(signs) > 1 and isinstance(constant, sympy.Add):
            signs &= self._interval_signs(constant)
        if len(signs) > 1 and isinstance(reduced, sympy.Add) and reduced != constant:
            inner = self._interval_signs(reduced)
            signs &= inner if orientation > 0 else flip(inner)
        return signs

    def _structural(self, e: sympy.Expr) -> Signs:
        if not e.free_symbols:
            return frozenset({number_sign(e)})
        if isinstance(e, sympy.Symbol):
            return self._symbol(e)
        if isinstance(e, sympy.Mul):
            result = POSITIVE
            for factor in e.args:
                result = _multiply(result, self._structural(factor))
            return result
        if isinstance(e, sympy.Add):
            result = frozenset({0})
            for term in e.args:
                result = _add(result, self._structural(term))
                if result == ANY:
                    break
            return result
        if isinstance(e, sympy.Pow):
            return self._power(e)
        if isinstance(e, (sympy.exp, sympy.cosh, sympy.gamma, sympy.erfc)):
            if isinstance(e, sympy.gamma) and self._structural(e.args[0]) != POSITIVE:
                return ANY
            return POSITIVE
        if isinstance(e, sympy.Abs):
            return frozenset(abs(sign) for sign in self._structural(e.args[0]))
        if isinstance(e, (sympy.tanh, sympy.sinh, sympy.atan, sympy.asinh, sympy.erf, sympy.sign)):
            return self._structural(e.args[0])
        if isinstance(e, sympy.log):
            return self.signs(e.args[0] - 1)
        if isinstance(e, sympy.zeta) and len(e.args) == 1:
            return POSITIVE if self.signs(e.args[0] - 1) == POSITIVE else ANY
        if isinstance(e, (sympy.Max, sympy.Min)):
            inside = [self._structural(argument) for argument in e.args]
            larger = max if isinstance(e, sympy.Max) else min
            return frozenset(larger(a, b) for a in inside[0] for b in inside[1])
        return ANY

    def _symbol(self, symbol: sympy.Symbol) -> Signs:
        if symbol in self.ranges:
            return self._interval_signs(symbol)
        if symbol.is_positive:
            return POSITIVE
        if symbol.is_negative:
            return frozenset({-1})
        signs = ANY
        if symbol.is_zero:
            return frozenset({0})
        if symbol.is_nonnegative:
            signs = NONNEGATIVE
        elif symbol.is_nonpositive:
            signs = frozenset({-1, 0})
        if symbol.is_nonzero:
            signs -= {0}
        for constraint in self.constraints:
            if constraint.expr == symbol:
                signs &= constraint.signs
        return signs

    def _power(self, e: sympy.Pow) -> Signs:
        base = self.signs(e.base) if isinstance(e.base, sympy.Add) else self._structural(e.base)
        if base == POSITIVE:
            return POSITIVE
        if isinstance(e.exp, sympy.Integer):
            if int(e.exp) % 2 == 0:
                return frozenset(abs(sign) for sign in base)
            return base
        if base <= NONNEGATIVE:
            return NONNEGATIVE
        return ANY

    def _constrained(self, e: sympy.Expr) -> Signs:
        signs = ANY
        for constraint in self.constraints:
            if constraint.expr == e:
                signs &= constraint.signs
            elif constraint.expr == -e:
                signs &= flip(constraint.signs)
        if len(signs) > 1 and self.constraints:
            free = Oracle(ranges=self.ranges, budget=self.budget)
            for substituted in self._shifts(e):
                signs &= free._structural(substituted)
                if len(signs) == 1:
                    break
        return signs

    def _shifts(self, e: sympy.Expr) -> Iterable[sympy.Expr]:
        """Forms of `e` in which a constrained symbol is written as its bound plus a slack."""
        forms = [e]
        for constraint in (*self.constraints, *self.constraints):
            if (0 in constraint.signs and len(constraint.signs) != 2) or len(constraint.signs) > 2:
                continue
            forms += [
                shifted
                for form in forms
                for symbol in sorted(constraint.expr.free_symbols & form.free_symbols, key=str)
                if (shifted := _shift(form, symbol, constraint)) is not None
            ]
            forms = forms[:16]
        return forms[1:]

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

    def reduce(self, e: sympy.Expr) -> tuple[sympy.Expr, int]:
        """A simpler expression with the same sign up to the returned orientation."""
        orientation = 1
        for _ in range(12):
            simpler, turned = self._reduce_once(e)
            orientation *= turned
            if simpler == e:
                break
            e = simpler
        return e, orientation

    def _reduce_once(self, e: sympy.Expr) -> tuple[sympy.Expr, int]:
        if not e.free_symbols:
            return e, 1
        if isinstance(e, sympy.Mul):
            return self._reduce_product(e)
        if isinstance(e, sympy.Pow) and isinstance(e.exp, sympy.Rational):
            if isinstance(e.exp, sympy.Integer) and e.exp % 2 == 0:
                return (e.base**2, 1) if e.exp != 2 else (e, 1)
            return e.base, 1
        if isinstance(e, (sympy.tanh, sympy.sinh, sympy.atan, sympy.asinh, sympy.erf)):
            return e.args[0], 1
        if isinstance(e, sympy.log):
            return e.args[0] - 1, 1
        if isinstance(e, sympy.Add):
            return self._reduce_sum(e)
        return e, 1

    def _reduce_product(self, e: sympy.Mul) -> tuple[sympy.Expr, int]:
        orientation = 1
        kept = []
        for factor in e.args:
            signs = self._structural(factor)
            if signs == POSITIVE:
                continue
            if signs == {-1}:
                orientation = -orientation
            else:
                kept.append(factor)
        if len(kept) == 1:
            return kept[0], orientation
        return sympy.Mul(*kept), orientation

    def _reduce_sum(self, e: sympy.Add) -> tuple[sympy.Expr, int]:
        constant, rest = e.as_coeff_Add()
        number, term = rest.as_coeff_Mul()
        if not isinstance(term, sympy.Add):
            solved = _invert(term, -constant / number)
            if solved is not None:
                return solved[0], solved[1] * number_sign(number)
        factored = _factored(e)
        if not isinstance(factored, sympy.Add):
            if isinstance(factored, sympy.Mul):
                return self._reduce_product(factored)
            return factored, 1
        content, primitive = factored.primitive()
        lead = primitive.as_ordered_terms()[0].as_coeff_Mul()[0]
        if content != 1:
            return primitive, number_sign(content)
        logs = _joined_logs(e)
        if logs is not None:
            return logs, 1
        if lead < 0 and all(term.as_coeff_Mul()[0] < 0 for term in primitive.args):
            return -primitive, -1
        return (primitive, 1) if primitive != e else (e, 1)


def _invert(term: sympy.Expr, value: sympy.Expr) -> tuple[sympy.Expr, int] | None:
    """``f(x) - value`` as ``x - f^-1(value)`` for a monotone f; None where that doesn't apply."""
    if isinstance(term, sympy.log):
        return term.args[0] - sympy.exp(value), 1
    if value.free_symbols:
        return None
    if isinstance(term, sympy.Pow) and value == 1 and term.base.is_positive:
        return term.exp * sympy.log(term.base), 1
    if isinstance(term, sympy.cosh) and number_sign(value - 1) >= 0:
        return term.args[0] ** 2 - sympy.acosh(value) ** 2, 1
    if isinstance(term, sympy.exp):
        if number_sign(value) <= 0:
            return S.One, 1
        return term.args[0] - sympy.log(value), 1
    if isinstance(term, sympy.Pow) and isinstance(term.exp, sympy.Rational):
        base_positive = term.base.is_positive
        if term.exp == 1 or not base_positive:
            return None
        if number_sign(value) <= 0:
            return S.One, 1
        return term.base - value ** (1 / term.exp), 1 if term.exp > 0 else -1
    if isinstance(term, sympy.Pow) and not term.base.free_symbols:
        size = number_sign(term.base - 1)
        if number_sign(term.base) > 0 and size != 0:
            if number_sign(value) <= 0:
                return S.One, 1
            return term.exp - sympy.log(value) / sympy.log(term.base), size
    return None


@lru_cache(maxsize=20_000)
def _factored(e: sympy.Expr) -> sympy.Expr:
    if len(e.args) > _MOST_TERMS or len(e.free_symbols) > _MOST_SYMBOLS:
        return e
    together = sympy.together(e)
    if isinstance(together, sympy.Add) or together.is_Mul:
        numerator, denominator = together.as_numer_denom()
        expanded = sympy.expand(numerator)
        if expanded == 0:
            return S.Zero
        return sympy.factor(expanded) / denominator
    return together


def _joined_logs(e: sympy.Add) -> sympy.Expr | None:
    """``sum q_i log(x_i) + q`` as ``prod x_i^q_i exp(q) - 1``, of the same sign."""
    product: sympy.Expr = S.One
    for term in e.args:
        number, rest = term.as_coeff_Mul()
        if not number.is_Rational:
            return None
        if isinstance(rest, sympy.log):
            product *= rest.args[0] ** number
        elif rest == 1:
            product *= sympy.exp(number)
        else:
            return None
    return product - 1


def _shift(e: sympy.Expr, symbol: sympy.Symbol, constraint: Constraint) -> sympy.Expr | None:
    slope = constraint.expr.diff(symbol)
    if slope.free_symbols or not slope.is_number or slope == 0:
        return None
    assumption: Mapping[str, bool] = (
        {"nonnegative": True} if 0 in constraint.signs else {"positive": True}
    )
    slack = sympy.Dummy("t", **assumption)
    if constraint.signs <= {-1, 0}:
        slack = -slack
    elif not constraint.signs <= NONNEGATIVE:
        return None
    offset = constraint.expr.subs(symbol, 0)
    return sympy.expand(e.subs(symbol, (slack - offset) / slope))
