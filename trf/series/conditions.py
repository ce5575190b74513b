"""Conditions on parameters: written as a mathematician would, without what is implied."""

# sympy's stubs type the parts and the results of an expression too widely.
# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportOperatorIssue=false

from __future__ import annotations

from collections.abc import Iterable

import sympy
from sympy import S
from sympy.core.relational import Relational
from sympy.logic.boolalg import Boolean

from trf.series.signs import Constraint, Oracle, Signs, Undecidable, flip, number_sign

Clause = tuple[Boolean, ...]
_MAX_CLAUSES = 12


_MIRRORED = {">": "<", "<": ">", ">=": "<=", "<=": ">="}


def relate(expr: sympy.Expr, operator: str) -> Boolean:
    """``expr > 0`` (or another operator) as a mathematician would write it."""
    constant, rest = expr.as_coeff_Add()
    positive = [t for t in sympy.Add.make_args(rest) if t.as_coeff_Mul()[0] > 0]
    negative = [-t for t in sympy.Add.make_args(rest) if t.as_coeff_Mul()[0] <= 0]
    if not positive:
        return relate(-expr, _MIRRORED.get(operator, operator))
    if constant == 0:
        left, right = sympy.Add(*positive), sympy.Add(*negative)
    elif not rest.as_ordered_terms()[0].could_extract_minus_sign():
        left, right = rest, -constant
    else:
        left, right = sympy.Add(*positive), sympy.Add(*negative) - constant
    numbers = [t for t in sympy.Add.make_args(left) if not t.free_symbols]
    left, right = left - sympy.Add(*numbers), right - sympy.Add(*numbers)
    order = (not left.is_Symbol, _first_name(left)) > (not right.is_Symbol, _first_name(right))
    if right.free_symbols and order:
        left, right = right, left
        operator = _MIRRORED.get(operator, operator)
    coefficient, term = left.as_independent(*left.free_symbols, as_Add=False)
    if term != left and not right.free_symbols and number_sign(coefficient) > 0:
        left, right = term, right / coefficient
    return {
        ">": sympy.Gt, "<": sympy.Lt, ">=": sympy.Ge, "<=": sympy.Le,
        "==": sympy.Eq, "!=": sympy.Ne,
    }[operator](left, right)  # fmt: skip


def _first_name(expr: sympy.Expr) -> str:
    return min((symbol.name for symbol in expr.free_symbols), default="")  # type: ignore[attr-defined]


_RELATION_SIGNS: dict[type, Signs] = {
    sympy.StrictGreaterThan: frozenset({1}),
    sympy.GreaterThan: frozenset({0, 1}),
    sympy.StrictLessThan: frozenset({-1}),
    sympy.LessThan: frozenset({-1, 0}),
    sympy.Equality: frozenset({0}),
    sympy.Unequality: frozenset({-1, 1}),
}


def implied(relation: Boolean, by: Iterable[Boolean]) -> bool:
    """Whether the relations `by`, on the symbols' domains, imply `relation`."""
    by = tuple(by)
    if relation in by:
        return True
    if not isinstance(relation, Relational):
        return False
    solved = {}
    constraints = []
    for known in by:
        if not isinstance(known, Relational):
            continue
        if isinstance(known, sympy.Eq) and known.lhs.is_Symbol:
            solved[known.lhs] = known.rhs
            continue
        reduced, orientation = Oracle().reduce(known.lhs - known.rhs)
        signs = _RELATION_SIGNS[known.func]
        constraints.append(Constraint(reduced, signs if orientation > 0 else flip(signs)))
    oracle = Oracle(tuple(constraints))
    difference = (relation.lhs - relation.rhs).subs(solved)
    try:
        return oracle.signs(difference) <= _RELATION_SIGNS[relation.func]
    except Undecidable:
        return False


def tidy(found: Boolean) -> Boolean:
    """An equivalent of `found` (a monotone formula of relations) without what is implied."""
    if not isinstance(found, (sympy.And, sympy.Or)):
        return found
    clauses = _clauses(found)
    if clauses is None:
        return found
    clauses = [clause for clause in clauses if not _contradicts(clause)]
    clauses = [_saturated(clause, clauses) for clause in clauses]
    for index in range(len(clauses)):
        clauses[index] = _resolved(clauses, index)
    clauses = [_minimal(clause) for clause in clauses]
    kept: list[Clause] = []
    for index, clause in enumerate(clauses):
        others = kept + clauses[index + 1 :]
        if not any(_implies(clause, other) for other in others):
            kept.append(clause)
    return _factored(kept)


def _clauses(found: Boolean) -> list[Clause] | None:
    flat = sympy.to_dnf(found, simplify=False)
    clauses = [
        tuple(sorted(sympy.And.make_args(clause), key=sympy.default_sort_key))
        for clause in sympy.Or.make_args(flat)
    ]
    return clauses if len(clauses) <= _MAX_CLAUSES else None


def _contradicts(clause: Clause) -> bool:
    return any(
        implied(relation.negated, clause[:place])
        for place, relation in enumerate(clause)
        if isinstance(relation, Relational)
    )


def _saturated(clause: Clause, clauses: list[Clause]) -> Clause:
    """The clause with every relation of the formula that it implies."""
    pool = dict.fromkeys(relation for other in clauses for relation in other)
    return (*clause, *(r for r in pool if r not in clause and implied(r, clause)))


def _resolved(clauses: list[Clause], index: int) -> Clause:
    """The clause without relations whose negation leads to another clause."""
    clause = clauses[index]
    for relation in clause:
        rest = tuple(r for r in clause if r != relation)
        if not isinstance(relation, Relational):
            continue
        opposite = (*rest, relation.negated)
        others = [c for at, c in enumerate(clauses) if at != index]
        if any(_implies(opposite, other) for other in others):
            clause = rest
    return clause


def _minimal(clause: Clause) -> Clause:
    kept = list(clause)
    for relation in reversed(clause):
        others = [other for other in kept if other != relation]
        if implied(relation, others):
            kept = others
    return tuple(kept)


def _implies(first: Clause, second: Clause) -> bool:
    return all(implied(relation, first) for relation in second)


def _factored(clauses: list[Clause]) -> Boolean:
    """``(A & B) | (A & C)`` as ``A & (B | C)``."""
    if not clauses:
        return S.false
    common = [r for r in clauses[0] if all(r in clause for clause in clauses)]
    if len(clauses) == 1 or not common:
        return sympy.Or(*_grouped(clauses))
    rests = [tuple(r for r in clause if r not in common) for clause in clauses]
    return sympy.And(*common, _factored(rests))


def _grouped(clauses: list[Clause]) -> list[Boolean]:
    """Clauses that share an equation are factored, as the cases of a border are written."""
    left = list(clauses)
    grouped: list[Boolean] = []
    while left:
        first = left.pop(0)
        equation = next((r for r in first if isinstance(r, sympy.Eq)), None)
        same = [clause for clause in left if equation is not None and equation in clause]
        left = [clause for clause in left if clause not in same]
        grouped.append(_factored([first, *same]) if same else sympy.And(*first))
    return grouped
