"""Cases: follow every answer to a question of sign, and merge the answers into one condition.

A computation that meets a sign it can't know raises `Split`. It is then run once for each sign
that the domain allows: with the inequality as a new constraint, or with the equation solved and
substituted. The tree of outcomes is read back as a condition on the parameters.
"""

# sympy's stubs type the parts and the results of an expression too widely.
# pyright: reportArgumentType=false, reportOperatorIssue=false, reportReturnType=false

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import sympy
from sympy import S
from sympy.logic.boolalg import Boolean

from trf.series.conditions import relate, tidy
from trf.series.signs import Budget, Constraint, Oracle, Signs, Split, Undecidable

_MAX_LEAVES = 64
_MAX_DEPTH = 16


@dataclass(frozen=True)
class Leaf:
    """One case decided: `holds` is None where it could not be, and `detail` says why or how."""

    holds: bool | None
    detail: object
    case: tuple[Boolean, ...]


@dataclass(frozen=True)
class Equation:
    """One way to satisfy ``expr = 0``: a relation, and what follows from it."""

    relation: Boolean
    node: Node


@dataclass(frozen=True)
class Branch:
    """A split on the sign of `expr`; a case that the domain excludes is None."""

    expr: sympy.Expr
    positive: Node | None
    zero: tuple[Equation, ...] | None
    negative: Node | None


Node = Leaf | Branch
Run = Callable[[sympy.Expr, Oracle], tuple[bool, object]]


def explore(run: Run, expr: sympy.Expr, budget: Budget) -> Node:
    """Run ``run(expr, oracle)`` in every case of the parameters that it asks about."""
    return _Explorer(run, budget).visit(expr, (), (), 0)


class _Explorer:
    def __init__(self, run: Run, budget: Budget):
        self.run = run
        self.budget = budget
        self.leaves = 0

    def visit(
        self,
        expr: sympy.Expr,
        constraints: tuple[Constraint, ...],
        case: tuple[Boolean, ...],
        depth: int,
    ) -> Node:
        try:
            holds, detail = self.run(expr, Oracle(constraints, budget=self.budget))
        except Undecidable as reason:
            return self._leaf(None, str(reason), case)
        except Split as split:
            if depth >= _MAX_DEPTH:
                return self._leaf(None, "too many cases of the parameters", case)
            return self._branch(split, expr, constraints, case, depth)
        return self._leaf(holds, detail, case)

    def _leaf(self, holds: bool | None, detail: object, case: tuple[Boolean, ...]) -> Leaf:
        self.leaves += 1
        if self.leaves > _MAX_LEAVES:
            return Leaf(None, "too many cases of the parameters", case)
        return Leaf(holds, detail, case)

    def _branch(
        self,
        split: Split,
        expr: sympy.Expr,
        constraints: tuple[Constraint, ...],
        case: tuple[Boolean, ...],
        depth: int,
    ) -> Branch:
        question = split.expr

        def strict(sign: int) -> Node | None:
            if sign not in split.signs:
                return None
            more = (*constraints, Constraint(question, frozenset({sign})))
            relation = relate(question, ">" if sign > 0 else "<")
            return self.visit(expr, more, (*case, relation), depth + 1)

        zero = None
        if 0 in split.signs:
            equations = tuple(self._equations(question, expr, constraints, case, depth))
            zero = equations or None
        return Branch(question, strict(1), zero, strict(-1))

    def _equations(
        self,
        question: sympy.Expr,
        expr: sympy.Expr,
        constraints: tuple[Constraint, ...],
        case: tuple[Boolean, ...],
        depth: int,
    ) -> Iterator[Equation]:
        solutions = solve(question, Oracle(constraints, budget=self.budget))
        if solutions is None:
            more = (*constraints, Constraint(question, frozenset({0})))
            relation = relate(question, "==")
            yield Equation(relation, self.visit(expr, more, (*case, relation), depth + 1))
            return
        for symbol, value in solutions:
            implied = _within_domain(symbol, value, constraints)
            if implied is None:
                continue
            relation = relate(symbol - value, "==") if value.is_Symbol else sympy.Eq(symbol, value)
            node = self.visit(expr.subs(symbol, value), implied, (*case, relation), depth + 1)
            yield Equation(relation, node)


def solve(question: sympy.Expr, oracle: Oracle) -> list[tuple[sympy.Symbol, sympy.Expr]] | None:
    """All solutions of ``question = 0`` for one of its symbols; None if not found in full."""
    symbols = sorted(question.free_symbols, key=lambda s: s.name, reverse=True)  # type: ignore[attr-defined]
    linear = []
    for symbol in symbols:
        slope = sympy.expand(question.diff(symbol))
        if symbol not in slope.free_symbols and 0 not in oracle.signs(slope):
            value = sympy.cancel(-question.subs(symbol, 0) / slope)
            linear.append((not slope.is_number, symbol, value))
    if linear:
        linear.sort(key=lambda item: item[0])
        return [(linear[0][1], linear[0][2])]
    for symbol in symbols:
        if question.is_polynomial(symbol) and sympy.degree(question, symbol) == 2:
            a, b, c = sympy.Poly(question, symbol).all_coeffs()
            discriminant = sympy.factor(b**2 - 4 * a * c)
            if 0 in oracle.signs(a) or not oracle.signs(discriminant) <= {0, 1}:
                continue
            root = sympy.sqrt(discriminant)
            roots = {sympy.simplify((-b + root) / (2 * a)), sympy.simplify((-b - root) / (2 * a))}
            return [(symbol, value) for value in sorted(roots, key=sympy.default_sort_key)]
    return None


def _within_domain(
    symbol: sympy.Symbol, value: sympy.Expr, constraints: tuple[Constraint, ...]
) -> tuple[Constraint, ...] | None:
    """The constraints after ``symbol = value``; None if the domain excludes that."""
    if symbol.is_integer and value.is_integer is False:
        return None
    if symbol.is_even and value.is_even is False:
        return None
    wanted: list[tuple[sympy.Expr, Signs]] = []
    if symbol.is_positive:
        wanted.append((value, frozenset({1})))
    elif symbol.is_negative:
        wanted.append((value, frozenset({-1})))
    elif symbol.is_nonnegative:
        wanted.append((value, frozenset({0, 1})))
    elif symbol.is_nonpositive:
        wanted.append((value, frozenset({-1, 0})))
    wanted += [(c.expr.subs(symbol, value), c.signs) for c in constraints]
    kept: list[Constraint] = []
    for expr, signs in wanted:
        oracle = Oracle(tuple(kept))
        possible = oracle.signs(expr)
        if not possible & signs:
            return None
        if possible <= signs:
            continue
        reduced, orientation = oracle.reduce(expr)
        oriented = signs if orientation > 0 else frozenset(-sign for sign in signs)
        kept.append(Constraint(reduced, oriented))
    return tuple(kept)


# -- reading the tree back ------------------------------------------------------------------


def leaves(node: Node) -> Iterator[Leaf]:
    """Every case of the tree, the ones with the larger expression first."""
    if isinstance(node, Leaf):
        yield node
        return
    if node.positive is not None:
        yield from leaves(node.positive)
    for equation in node.zero or ():
        yield from leaves(equation.node)
    if node.negative is not None:
        yield from leaves(node.negative)


def condition(node: Node) -> Boolean:
    """When the tree's answer is yes; every leaf must have one."""
    if isinstance(node, Leaf):
        return S.true if node.holds else S.false
    return tidy(_merged(node))


def _merged(node: Branch) -> Boolean:
    above = None if node.positive is None else condition(node.positive)
    below = None if node.negative is None else condition(node.negative)
    parts = [(equation.relation, condition(equation.node)) for equation in node.zero or ()]
    between = _joint(parts, above, below)
    known = [c for c in (above, between, below) if c is not None]
    if between is not None or not parts:
        if known and all(c == known[0] for c in known):
            return known[0]
        pieces: list[Boolean] = []
        if between is not None and above == between:
            pieces = [_and(node.expr, ">=", above), _and(node.expr, "<", below)]
        elif between is not None and below == between:
            pieces = [_and(node.expr, ">", above), _and(node.expr, "<=", below)]
        elif above is not None and above == below:
            equal = _equation_case(parts)
            pieces = [_and(node.expr, "!=", above), equal]
        else:
            pieces = [_and(node.expr, ">", above), _equation_case(parts)]
            pieces.append(_and(node.expr, "<", below))
        return sympy.Or(*pieces)
    return sympy.Or(_and(node.expr, ">", above), _equation_case(parts), _and(node.expr, "<", below))


def _joint(
    parts: list[tuple[Boolean, Boolean]], above: Boolean | None, below: Boolean | None
) -> Boolean | None:
    """The common condition of all solutions, written as that of a neighbour where it agrees."""
    if not parts:
        return None
    for neighbour in (above, below):
        if neighbour is not None and all(
            c == neighbour or c == neighbour.subs(relation.lhs, relation.rhs)  # type: ignore[attr-defined]
            for relation, c in parts
            if isinstance(relation, sympy.Eq)
        ):
            return neighbour
    first = parts[0][1]
    return first if all(c == first for _, c in parts) else None


def _equation_case(parts: list[tuple[Boolean, Boolean]]) -> Boolean:
    return sympy.Or(*(sympy.And(relation, c) for relation, c in parts))


def _and(expr: sympy.Expr, operator: str, inner: Boolean | None) -> Boolean:
    if inner is None or inner == S.false:
        return S.false
    return sympy.And(relate(expr, operator), inner)
