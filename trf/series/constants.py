"""Certified enclosures of constants: an interval that contains the value, never a float's opinion.

`enclose` maps a sympy expression to a python-flint ball that contains its value. A ball that
excludes 0 proves a sign; one that contains 0 proves nothing.
"""

# sympy's stubs type the parts and the results of an expression too widely.
# pyright: reportArgumentType=false, reportAssignmentType=false

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import flint
import sympy
from flint import arb

_NULLARY: dict[sympy.Expr, Callable[[], arb]] = {
    sympy.pi: arb.pi,
    sympy.E: arb.const_e,
    sympy.EulerGamma: arb.const_euler,
    sympy.Catalan: arb.const_catalan,
    sympy.GoldenRatio: lambda: (1 + arb(5).sqrt()) / 2,
}

_FUNCTIONS: dict[type, Callable[..., arb]] = {
    sympy.exp: arb.exp,
    sympy.log: arb.log,
    sympy.sin: arb.sin,
    sympy.cos: arb.cos,
    sympy.tan: arb.tan,
    sympy.cot: arb.cot,
    sympy.asin: arb.asin,
    sympy.acos: arb.acos,
    sympy.atan: arb.atan,
    sympy.sinh: arb.sinh,
    sympy.cosh: arb.cosh,
    sympy.tanh: arb.tanh,
    sympy.coth: arb.coth,
    sympy.asinh: arb.asinh,
    sympy.acosh: arb.acosh,
    sympy.atanh: arb.atanh,
    sympy.Abs: abs,
    sympy.erf: arb.erf,
    sympy.erfc: arb.erfc,
    sympy.erfi: arb.erfi,
    sympy.gamma: arb.gamma,
    sympy.factorial: arb.fac,
    sympy.loggamma: arb.lgamma,
    sympy.digamma: arb.digamma,
    sympy.LambertW: arb.lambertw,
    sympy.li: arb.li,
    sympy.Ei: arb.ei,
    sympy.airyai: arb.airy_ai,
    sympy.Min: arb.min,
    sympy.Max: arb.max,
    sympy.besseli: lambda order, x: x.bessel_i(order),
    sympy.besselj: lambda order, x: x.bessel_j(order),
    sympy.besselk: lambda order, x: x.bessel_k(order),
    sympy.bessely: lambda order, x: x.bessel_y(order),
    sympy.uppergamma: lambda s, x: x.gamma_upper(s),
    sympy.lowergamma: lambda s, x: x.gamma_lower(s),
    sympy.expint: lambda s, x: x.expint(s),
    sympy.zeta: lambda s, a=None: arb.zeta(s) if a is None else arb.zeta(s, a),
}


class NoBall(ArithmeticError):
    """The expression has a part that ball arithmetic can't evaluate."""


@contextmanager
def precision(bits: int) -> Iterator[None]:
    """Work at `bits` bits inside the block."""
    before = flint.ctx.prec
    flint.ctx.prec = bits
    try:
        yield
    finally:
        flint.ctx.prec = before


def enclose(expr: sympy.Basic, values: Mapping[sympy.Basic, arb] | None = None) -> arb:
    """A ball that contains the real value of `expr` at the current precision.

    Raises:
        NoBall: for a symbol without a value, an unknown function, or a value that isn't real.
    """
    ball = _enclose(expr, values or {})
    if not ball.is_finite():
        raise NoBall(f"no finite real ball for {expr}")
    return ball


def _enclose(expr: sympy.Basic, values: Mapping[sympy.Basic, arb]) -> arb:
    if expr in values:
        return values[expr]
    if isinstance(expr, sympy.Rational):
        return arb(flint.fmpq(int(expr.p), int(expr.q)))
    if expr in _NULLARY:
        return _NULLARY[expr]()
    if isinstance(expr, sympy.Add):
        total = arb(0)
        for term in expr.args:
            total += _enclose(term, values)
        return total
    if isinstance(expr, sympy.Mul):
        product = arb(1)
        for factor in expr.args:
            product *= _enclose(factor, values)
        return product
    if isinstance(expr, sympy.Pow):
        return _power(expr, values)
    function = _FUNCTIONS.get(expr.func)
    if function is not None:
        return function(*(_enclose(argument, values) for argument in expr.args))
    return _special(expr, values)


def _special(expr: sympy.Basic, values: Mapping[sympy.Basic, arb]) -> arb:
    if isinstance(expr, sympy.sign):
        ball = _enclose(expr.args[0], values)
        if ball > 0 or ball < 0:
            return arb(1) if ball > 0 else arb(-1)
    if isinstance(expr, sympy.polygamma) and expr.args[0].is_Integer:
        order, x = int(expr.args[0]), _enclose(expr.args[1], values)
        if order == 0:
            return x.digamma()
        return (-1) ** (order + 1) * arb(order).fac() * arb.zeta(arb(order + 1), x)
    if isinstance(expr, sympy.harmonic):
        x = _enclose(expr.args[0], values)
        if len(expr.args) == 1 or expr.args[1] == 1:
            return (x + 1).digamma() + arb.const_euler()
        order = _enclose(expr.args[1], values)
        return arb.zeta(order) - arb.zeta(order, x + 1)
    if isinstance(expr, sympy.CRootOf) and expr.is_real:
        digits = 1 + flint.ctx.prec // 3
        near = expr.eval_rational(n=digits)
        return arb(flint.fmpq(int(near.p), int(near.q))) + arb(0, f"1e-{digits - 1}")
    if isinstance(expr, (sympy.floor, sympy.ceiling)):
        ball = _enclose(expr.args[0], values)
        whole = ball.floor() if isinstance(expr, sympy.floor) else ball.ceil()
        if whole.is_exact():
            return whole
    raise NoBall(f"ball arithmetic does not evaluate {expr}")


def _power(expr: sympy.Pow, values: Mapping[sympy.Basic, arb]) -> arb:
    base, exponent = expr.args
    ball = _enclose(base, values)
    if isinstance(exponent, sympy.Integer) and abs(int(exponent)) < 10**6:
        return ball ** int(exponent)
    if exponent == sympy.S.Half:
        return ball.sqrt()
    return (_enclose(exponent, values) * ball.log()).exp()
