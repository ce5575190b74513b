"""Where a series starts: the first n from which every term is a finite real number."""

from __future__ import annotations

import sympy
from sympy import S

_SCANNED = 24
_CALM = 8


def first_finite(expr: sympy.Expr, n: sympy.Symbol) -> int:
    """The first n from which every term exp(p(n)) is finite; p = -oo counts as the term 0."""
    start = 0
    roots = _singular_points(expr, n)
    candidates = sorted({*range(_CALM), *roots})
    k = 0
    while k <= max(start + _CALM, *candidates) and k < _SCANNED:
        if not _is_finite(expr, n, k):
            start = k + 1
        k += 1
    for root in roots:
        if root >= k and not _is_finite(expr, n, root):
            start = max(start, root + 1)
    return start


def _is_finite(expr: sympy.Expr, n: sympy.Symbol, k: int) -> bool:
    try:
        value = expr.subs(n, k)
    except (ValueError, ZeroDivisionError):  # totient(0) and the like
        return False
    if value is S.NegativeInfinity:
        return True
    return not (value.has(S.NaN, S.ComplexInfinity, S.Infinity, sympy.I))


def _singular_points(expr: sympy.Expr, n: sympy.Symbol) -> set[int]:
    """The integers at which a logarithm's argument, a base or a denominator may vanish."""
    points: set[int] = set()
    for part in expr.atoms(sympy.log, sympy.Pow, sympy.Function):
        inner = part.args[0] if part.args else part
        if not isinstance(inner, sympy.Expr) or not inner.is_polynomial(n):
            continue
        if inner.free_symbols != {n} or sympy.degree(inner, n) > 4:
            continue
        for root in sympy.Poly(inner, n).nroots():
            if root.is_real and -1 < root < 10**9:
                points |= {
                    max(0, int(root) + shift) for shift in (-1, 0, 1) if int(root) + shift >= 0
                }
    return points
