"""Where a series starts: the first n from which every term is a finite real number."""

# sympy's stubs type the parts and the results of an expression too widely.
# pyright: reportArgumentType=false, reportAttributeAccessIssue=false

from __future__ import annotations

import sympy
from flint import arb
from sympy import S

from trf.series.constants import NoBall, enclose, precision

_CALM = 8
_LARGEST = 60  # powers of 2 up to this one are tried


def first_finite(expr: sympy.Expr, n: sympy.Symbol) -> int:
    """The first n from which every term exp(p(n)) is finite; p = -oo counts as the term 0.

    n is tried up to 8 and at the real roots of what a logarithm, a root or a denominator holds;
    for nested logarithms also at powers of 2, where the border is then bisected. 0 if the terms
    are infinite for ever.
    """
    start = 0
    roots = _singular_points(expr, n)
    for k in sorted({*range(_CALM), *roots}):
        if not _is_finite(expr, n, k):
            start = k + 1
    inner = _logarithmic_arguments(expr, n)
    bad = [k for k in range(3, _LARGEST, 3) if not _is_real(inner, n, 2**k)] if inner else []
    if not bad:
        return 0 if start > max(_CALM - 1, *roots, 0) else start
    low, high = 2 ** bad[-1], 2 ** (bad[-1] + 3)
    while high - low > 1:
        middle = (low + high) // 2
        if _is_real(inner, n, middle):
            high = middle
        else:
            low = middle
    return max(start, high)


def _logarithmic_arguments(expr: sympy.Expr, n: sympy.Symbol) -> list[sympy.Expr]:
    """What logarithms and roots are taken of, where that is made of n and logarithms only."""
    found = []
    for part in expr.atoms(sympy.log, sympy.Pow):
        inner = part.args[0]
        if inner.free_symbols != {n} or (part.is_Pow and part.exp.is_integer):
            continue
        if inner.has(sympy.log) and not inner.atoms(sympy.Function) - inner.atoms(sympy.log):
            found.append(inner)
    return found


def _is_real(arguments: list[sympy.Expr], n: sympy.Symbol, k: int) -> bool:
    """Whether every argument is positive at n = k, or can't be told not to be."""
    try:
        with precision(256):
            return all(enclose(argument, {n: arb(k)}) > 0 for argument in arguments)
    except NoBall:
        return False


def _is_finite(expr: sympy.Expr, n: sympy.Symbol, k: int) -> bool:
    try:
        value = expr.subs(n, k)
    except (ValueError, ZeroDivisionError):  # totient(0) and the like
        return False
    if value is S.NegativeInfinity:
        return True
    if value.has(S.NaN, S.ComplexInfinity, S.Infinity, sympy.I):
        return False
    return _is_real(_real_arguments(value), n, k)


def _real_arguments(value: sympy.Expr) -> list[sympy.Expr]:
    """What must be positive for the value to be real, as far as sympy leaves it unevaluated."""
    found = [part.args[0] for part in value.atoms(sympy.log)]
    found += [part.base for part in value.atoms(sympy.Pow) if part.exp.is_integer is False]
    return [part for part in found if not part.free_symbols and part.has(sympy.log)]


def _singular_points(expr: sympy.Expr, n: sympy.Symbol) -> set[int]:
    """The integers next to a root of a logarithm's argument, of a base or of a denominator."""
    points: set[int] = set()
    for part in expr.atoms(sympy.log, sympy.Pow, sympy.Function):
        inner = part.args[0] if part.args else part
        if not isinstance(inner, sympy.Expr) or not inner.is_polynomial(n):
            continue
        if inner.free_symbols != {n} or sympy.degree(inner, n) > 4:
            continue
        for root in sympy.Poly(inner, n).nroots():
            if root.is_real and -1 < root < 10**9:
                nearest = int(root)
                points |= {max(0, nearest - 1), nearest, nearest + 1}
    return points
