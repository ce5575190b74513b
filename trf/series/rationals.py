"""Weights that are rational numbers, exactly: windows, integer powers of rational functions.

They are what makes ties possible: a tail equal to ``eps`` times the total. Ties are settled here in
exact arithmetic, for no precision of balls would.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import sympy
from sympy.core.relational import Relational

Exact = Callable[[int], "Fraction | None"]


class NotRationalError(ValueError):
    """An expression whose values are not rational by its form."""


def exact_weight(p: Any, n: sympy.Symbol) -> Exact | None:
    """``exp(p(n))`` as a function from int to Fraction (None: undefined there), if it is rational.

    Examples:
        >>> n = sympy.Symbol("n", integer=True, nonnegative=True)
        >>> exact_weight(-2 * sympy.log(1 + n), n)(2)
        Fraction(1, 9)
    """
    try:
        return _weight(p, n)
    except NotRationalError:
        return None


def _weight(p: Any, n: sympy.Symbol) -> Exact:
    if p == -sympy.oo:
        return lambda _: Fraction(0)
    if isinstance(p, sympy.Piecewise):
        cases: Any = p.args
        pieces = [(_weight(value, n), decide(condition, n)) for value, condition in cases]
        return lambda at: next((f(at) for f, holds in pieces if holds(at)), None)
    factors = [_factor(part, n) for part in sympy.Add.make_args(p)]
    return lambda at: _product([factor(at) for factor in factors])


def _factor(part: Any, n: sympy.Symbol) -> Exact:
    if part == 0:
        return lambda _: Fraction(1)
    if isinstance(part, sympy.Piecewise):
        return _weight(part, n)
    scale, core = part.as_independent(n, as_Add=False)
    if not part.has(n) and isinstance(part, sympy.log):
        scale, core = sympy.S.One, part
    elif not part.has(n):
        scale, core = part.as_coeff_Mul()
    if not (isinstance(core, sympy.log) and isinstance(scale, sympy.Integer)):
        raise NotRationalError(str(part))
    value, power = polynomial(core.args[0], n), int(scale)

    def factor(at: int) -> Fraction | None:
        base = value(at)
        return base**power if base > 0 else None

    return factor


def _product(values: list[Fraction | None]) -> Fraction | None:
    result = Fraction(1)
    for value in values:
        if value is None:
            return None
        result *= value
    return result


def polynomial(expr: Any, n: sympy.Symbol) -> Callable[[int], Fraction]:
    """A polynomial in n with rational coefficients as an exact function of int."""
    if not expr.is_polynomial(n):
        raise NotRationalError(str(expr))
    coefficients = sympy.Poly(expr, n).all_coeffs()
    if not all(isinstance(c, sympy.Rational) for c in coefficients):
        raise NotRationalError(str(expr))
    exact = [Fraction(int(c.p), int(c.q)) for c in coefficients]

    def value(at: int) -> Fraction:
        result = Fraction(0)
        for coefficient in exact:
            result = result * at + coefficient
        return result

    return value


def decide(condition: Any, n: sympy.Symbol) -> Callable[[int], bool]:
    """A condition on n (relations of polynomials, and, or, not) as an exact function of int."""
    if condition in (True, sympy.true):
        return lambda _: True
    if condition in (False, sympy.false):
        return lambda _: False
    if isinstance(condition, sympy.And | sympy.Or):
        parts = [decide(part, n) for part in condition.args]
        both = isinstance(condition, sympy.And)
        return lambda at: all(f(at) for f in parts) if both else any(f(at) for f in parts)
    if isinstance(condition, sympy.Not):
        inner = decide(condition.args[0], n)
        return lambda at: not inner(at)
    if isinstance(condition, Relational):
        relation: Any = condition
        difference = polynomial(relation.lhs - relation.rhs, n)
        compare = _COMPARISONS[relation.rel_op]
        return lambda at: compare(difference(at))
    raise NotRationalError(str(condition))


_COMPARISONS: dict[str, Callable[[Fraction], bool]] = {
    "==": lambda d: d == 0,
    "!=": lambda d: d != 0,
    "<": lambda d: d < 0,
    "<=": lambda d: d <= 0,
    ">": lambda d: d > 0,
    ">=": lambda d: d >= 0,
}
