"""Rewriting rules for trigonometric, hyperbolic and inverse functions.

sin and cos of something that grows are bounded and turn on for ever: each becomes a symbol with
a range. Of something that tends to a constant they are analytic.
"""

# sympy's stubs type the parts and the results of an expression too widely.
# pyright: reportArgumentType=false, reportOperatorIssue=false

from __future__ import annotations

from collections.abc import Callable

import sympy
from sympy import S

from trf.series.rewriting import Rewriter
from trf.series.signs import Undecidable

_T = sympy.Dummy("t", real=True)


def _sine_cosine(r: Rewriter, argument: sympy.Expr) -> tuple[sympy.Expr, sympy.Expr]:
    x = r(argument)
    limit = r.limit(x)
    if limit in (S.Infinity, S.NegativeInfinity):
        growing, constant, small = r.split(x)
    else:
        growing, constant, small = S.Zero, limit, x - limit
    sine, cosine = sympy.sin(constant), sympy.cos(constant)
    if small != 0:
        s, c = r.germ("sin", small), r.germ("cos", small)
        sine, cosine = sine * c + cosine * s, cosine * c - sine * s
    if growing != 0:
        phase = r.scale.show(growing)
        s = r.scale.bounded(sympy.sin(phase, evaluate=False), S.NegativeOne, S.One)
        c = r.scale.bounded(sympy.cos(phase, evaluate=False), S.NegativeOne, S.One)
        if sine == 0 and cosine == 1:
            return s, c
        sine, cosine = s * cosine + c * sine, c * cosine - s * sine
    return sine, cosine


def _sin(r: Rewriter, x: sympy.Expr) -> sympy.Expr:
    return _sine_cosine(r, x.args[0])[0]


def _cos(r: Rewriter, x: sympy.Expr) -> sympy.Expr:
    return _sine_cosine(r, x.args[0])[1]


def _tan(r: Rewriter, x: sympy.Expr) -> sympy.Expr:
    sine, cosine = _sine_cosine(r, x.args[0])
    return sine / cosine


def _cot(r: Rewriter, x: sympy.Expr) -> sympy.Expr:
    sine, cosine = _sine_cosine(r, x.args[0])
    return cosine / sine


def _hyperbolic(r: Rewriter, x: sympy.Expr) -> sympy.Expr:
    up, down = sympy.exp(x.args[0]), sympy.exp(-x.args[0])
    half_sum, half_difference = (up + down) / 2, (up - down) / 2
    return r(
        {
            sympy.sinh: half_difference,
            sympy.cosh: half_sum,
            sympy.tanh: half_difference / half_sum,
            sympy.coth: half_sum / half_difference,
            sympy.sech: 1 / half_sum,
            sympy.csch: 1 / half_difference,
        }[x.func]
    )


def _asinh(r: Rewriter, x: sympy.Expr) -> sympy.Expr:
    inner = x.args[0]
    limit = r.limit(r(inner))
    if limit is S.Infinity:
        return r(sympy.log(inner + sympy.sqrt(inner**2 + 1)))
    if limit is S.NegativeInfinity:
        return -_asinh(r, sympy.asinh(-inner, evaluate=False))
    return r.analytic(sympy.Lambda(_T, sympy.asinh(_T)), r(inner))


def _acosh(r: Rewriter, x: sympy.Expr) -> sympy.Expr:
    inner = x.args[0]
    return r(sympy.log(inner + sympy.sqrt(inner - 1) * sympy.sqrt(inner + 1)))


def _atanh(r: Rewriter, x: sympy.Expr) -> sympy.Expr:
    inner = x.args[0]
    if r.limit(r(inner)) == 0:
        return r.analytic(sympy.Lambda(_T, sympy.atanh(_T)), r(inner))
    return r((sympy.log(1 + inner) - sympy.log(1 - inner)) / 2)


def _atan(r: Rewriter, x: sympy.Expr) -> sympy.Expr:
    inner = r(x.args[0])
    limit = r.limit(inner)
    function = sympy.Lambda(_T, sympy.atan(_T))
    if limit is S.Infinity:
        return sympy.pi / 2 - r.analytic(function, 1 / inner)
    if limit is S.NegativeInfinity:
        return -sympy.pi / 2 - r.analytic(function, 1 / inner)
    return r.analytic(function, inner)


def _acos(r: Rewriter, x: sympy.Expr) -> sympy.Expr:
    inner = x.args[0]
    limit = r.limit(r(inner))
    if limit in (S.Infinity, S.NegativeInfinity) or r.oracle.sign(1 - limit**2) < 0:
        raise Undecidable(f"{x} is not real for large n")
    if r.oracle.sign(1 - limit**2) > 0:
        return r.analytic(sympy.Lambda(_T, sympy.acos(_T)), r(inner))
    if limit == -1:
        return sympy.pi - _acos(r, sympy.acos(-inner, evaluate=False))
    return 2 * r(sympy.atan(sympy.sqrt((1 - inner) / (1 + inner))))


def _asin(r: Rewriter, x: sympy.Expr) -> sympy.Expr:
    return sympy.pi / 2 - _acos(r, sympy.acos(x.args[0], evaluate=False))


ELEMENTARY: dict[type, Callable[..., sympy.Expr]] = {
    sympy.sin: _sin,
    sympy.cos: _cos,
    sympy.tan: _tan,
    sympy.cot: _cot,
    sympy.sinh: _hyperbolic,
    sympy.cosh: _hyperbolic,
    sympy.tanh: _hyperbolic,
    sympy.coth: _hyperbolic,
    sympy.sech: _hyperbolic,
    sympy.csch: _hyperbolic,
    sympy.asinh: _asinh,
    sympy.acosh: _acosh,
    sympy.atanh: _atanh,
    sympy.atan: _atan,
    sympy.acos: _acos,
    sympy.asin: _asin,
}
