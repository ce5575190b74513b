"""The sign of a constant: a number, or an expression in the parameters.

A number's sign is read off a ball that excludes 0; that a number *is* 0 is accepted only with an
algebraic proof. An expression in the parameters has a *set* of possible signs under the declared
domains and the constraints collected so far. Where the set has one element the question is
answered; otherwise `Oracle.sign` raises `Split`, and `trf.series.cases` follows each answer.
"""

# sympy's stubs type the parts and the results of an expression too widely.
# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportOperatorIssue=false
# pyright: reportReturnType=false

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import sympy

from trf.series.intervals import (
    ANY,
    NONNEGATIVE,
    POSITIVE,
    Constraint,
    Interval,
    Intervals,
    Signs,
)
from trf.series.numbers import Undecidable, number_sign
from trf.series.reduction import factored, invert, joined_logs

__all__ = [
    "Budget",
    "Constraint",
    "Interval",
    "Oracle",
    "Signs",
    "Split",
    "Undecidable",
    "flip",
    "number_sign",
]


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
class Oracle(Intervals):
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
            solved = invert(term, -constant / number)
            if solved is not None:
                return solved[0], solved[1] * number_sign(number)
        product = factored(e)
        if not isinstance(product, sympy.Add):
            if isinstance(product, sympy.Mul):
                return self._reduce_product(product)
            return product, 1
        content, primitive = product.primitive()
        lead = primitive.as_ordered_terms()[0].as_coeff_Mul()[0]
        if content != 1:
            return primitive, number_sign(content)
        logs = joined_logs(e)
        if logs is not None:
            return logs, 1
        if lead < 0 and all(term.as_coeff_Mul()[0] < 0 for term in primitive.args):
            return -primitive, -1
        return (primitive, 1) if primitive != e else (e, 1)


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
