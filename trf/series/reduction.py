"""Simpler expressions of the same sign: inverse functions, factors, joined logarithms."""

# sympy's stubs type the parts and the results of an expression too widely.
# pyright: reportOperatorIssue=false

from __future__ import annotations

from functools import lru_cache
from typing import Any

import sympy
from sympy import S

from trf.series.numbers import number_sign

_MOST_TERMS, _MOST_SYMBOLS = 24, 8  # of a sum that is worth factoring


def invert(term: sympy.Expr, value: sympy.Expr) -> tuple[sympy.Expr, int] | None:
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
def factored(e: sympy.Expr) -> sympy.Expr:
    if len(e.args) > _MOST_TERMS or len(e.free_symbols) > _MOST_SYMBOLS:
        return e
    together: Any = sympy.together(e)
    if isinstance(together, sympy.Add) or together.is_Mul:
        numerator, denominator = together.as_numer_denom()
        expanded = sympy.expand(numerator)
        if expanded == 0:
            return S.Zero
        return sympy.factor(expanded) / denominator
    return together


def joined_logs(e: sympy.Add) -> sympy.Expr | None:
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
