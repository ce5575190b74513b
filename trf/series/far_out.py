"""Evaluation far out: a function of n at 10^1000, at a precision at which it can be trusted."""

# sympy's stubs type the parts and the results of an expression too widely.
# pyright: reportArgumentType=false, reportInvalidTypeForm=false, reportOperatorIssue=false
# pyright: reportReturnType=false

from __future__ import annotations

from collections.abc import Callable, Mapping
from time import process_time

import flint
import mpmath
import sympy
from mpmath import mp
from sympy import S

_MAX_DIGITS = 4200
_LARGEST_EXPONENTIAL = mpmath.mpf(10) ** 7


class CannotEvaluate(ArithmeticError):
    """p can't be evaluated at this n; the message says why."""


def attempt(
    expr: sympy.Expr, point: Mapping[sympy.Basic, mpmath.mpf], digits: int, deadline: float
) -> mpmath.mpf | CannotEvaluate:
    """The value, or why there is none."""
    try:
        return agreeing(expr, point, digits, deadline)
    except CannotEvaluate as failed:
        return failed


def agreeing(
    expr: sympy.Expr, point: Mapping[sympy.Basic, mpmath.mpf], digits: int, deadline: float
) -> mpmath.mpf:
    """The value at a point, at a precision at which two evaluations agree."""
    before: mpmath.mpf | None = None
    while digits <= _MAX_DIGITS:
        if process_time() > deadline:
            raise CannotEvaluate("p takes too long to evaluate that far out")
        with mp.workdps(digits):
            value = _value(expr, point)
            if before is not None and abs(value - before) <= mpmath.mpf(10) ** -9 * (
                1 + abs(before)
            ):
                return value
            before = value
        digits = digits * 3 // 2 + 20
    raise CannotEvaluate(f"p can't be evaluated that far out within {_MAX_DIGITS} digits")


_CONSTANTS: dict[sympy.Expr, Callable[[], mpmath.mpf]] = {
    sympy.pi: lambda: +mp.pi,
    sympy.E: lambda: +mp.e,
    sympy.EulerGamma: lambda: +mp.euler,
    sympy.Catalan: lambda: +mp.catalan,
    sympy.GoldenRatio: lambda: +mp.phi,
}


def _exp(x: mpmath.mpf) -> mpmath.mpf:
    if abs(x) > _LARGEST_EXPONENTIAL:
        raise CannotEvaluate("p holds an exponential too large to write down")
    return mp.exp(x)


def _hyperbolic(function: Callable) -> Callable[[mpmath.mpf], mpmath.mpf]:
    def guarded(x: mpmath.mpf) -> mpmath.mpf:
        if abs(x) > _LARGEST_EXPONENTIAL:
            raise CannotEvaluate("p holds an exponential too large to write down")
        return function(x)

    return guarded


def _by_ball(function: Callable[[flint.arb], flint.arb]) -> Callable[[mpmath.mpf], mpmath.mpf]:
    """A function evaluated by python-flint, which is fast for gamma functions near 1 too."""

    def evaluate(x: mpmath.mpf) -> mpmath.mpf:
        before = flint.ctx.prec
        flint.ctx.prec = mp.prec
        try:
            ball = function(flint.arb(x))
        finally:
            flint.ctx.prec = before
        if not ball.is_finite():
            raise CannotEvaluate("a gamma function has no finite value there")
        return mp.make_mpf(ball.mid()._mpf_)

    return evaluate


_FUNCTIONS: dict[type, Callable[..., mpmath.mpf]] = {
    sympy.exp: _exp,
    sympy.log: lambda x: mp.log(x),
    sympy.sin: lambda x: mp.sin(x),
    sympy.cos: lambda x: mp.cos(x),
    sympy.tan: lambda x: mp.tan(x),
    sympy.asin: lambda x: mp.asin(x),
    sympy.acos: lambda x: mp.acos(x),
    sympy.atan: lambda x: mp.atan(x),
    sympy.sinh: _hyperbolic(mp.sinh),
    sympy.cosh: _hyperbolic(mp.cosh),
    sympy.tanh: _hyperbolic(mp.tanh),
    sympy.coth: _hyperbolic(mp.coth),
    sympy.asinh: lambda x: mp.asinh(x),
    sympy.acosh: lambda x: mp.acosh(x),
    sympy.atanh: lambda x: mp.atanh(x),
    sympy.loggamma: _by_ball(flint.arb.lgamma),
    sympy.gamma: lambda x: _exp(_by_ball(flint.arb.lgamma)(x)),
    sympy.erf: lambda x: mp.erf(x),
    sympy.digamma: _by_ball(flint.arb.digamma),
    sympy.LambertW: lambda x: mp.lambertw(x).real,
    sympy.floor: lambda x: mp.floor(x),
    sympy.ceiling: lambda x: mp.ceil(x),
    sympy.frac: lambda x: x - mp.floor(x),
    sympy.Abs: lambda x: abs(x),
    sympy.sign: lambda x: mp.sign(x),
    sympy.Min: min,
    sympy.Max: max,
    sympy.Heaviside: lambda x, half: half if x == 0 else mp.mpf(int(x > 0)),
    sympy.Mod: lambda x, y: x - y * mp.floor(x / y),
}


def _value(expr: sympy.Basic, values: Mapping[sympy.Basic, mpmath.mpf]) -> mpmath.mpf:
    if expr in values:
        return values[expr]
    if isinstance(expr, sympy.Rational):
        return mp.mpf(int(expr.p)) / int(expr.q)
    if expr in _CONSTANTS:
        return _CONSTANTS[expr]()
    if isinstance(expr, sympy.Add):
        return mp.fsum(_value(term, values) for term in expr.args)
    if isinstance(expr, sympy.Mul):
        return mp.fprod(_value(factor, values) for factor in expr.args)
    if isinstance(expr, sympy.Pow):
        return _power(expr, values)
    if isinstance(expr, sympy.Piecewise):
        return _piecewise(expr, values)
    if isinstance(expr, sympy.harmonic) and len(expr.args) == 1:
        return _by_ball(flint.arb.digamma)(_value(expr.args[0], values) + 1) + mp.euler
    function = _FUNCTIONS.get(expr.func)
    if function is None and isinstance(expr, sympy.Symbol):
        raise CannotEvaluate("n is too large to write down")
    if function is None:
        raise CannotEvaluate(f"{expr.func.__name__} can't be evaluated that far out")
    result = function(*(_value(argument, values) for argument in expr.args))
    if isinstance(result, mpmath.mpc) or not mpmath.isfinite(result):
        raise CannotEvaluate(f"{expr} is not a finite real number there")
    return result


def _power(expr: sympy.Pow, values: Mapping[sympy.Basic, mpmath.mpf]) -> mpmath.mpf:
    base, exponent = _value(expr.base, values), _value(expr.exp, values)
    if base == 0 and exponent <= 0:
        raise CannotEvaluate(f"{expr} is not a finite real number there")
    if base != 0 and abs(exponent * mp.log(abs(base))) > _LARGEST_EXPONENTIAL:
        raise CannotEvaluate("p holds a power too large to write down")
    result = mp.power(base, exponent)
    if isinstance(result, mpmath.mpc):
        raise CannotEvaluate(f"{expr} is not a real number there")
    return result


def _piecewise(expr: sympy.Piecewise, values: Mapping[sympy.Basic, mpmath.mpf]) -> mpmath.mpf:
    for value, condition in expr.args:  # type: ignore[misc]
        exact = condition.subs({s: sympy.Integer(int(v)) for s, v in values.items()})
        if exact == S.true:
            return _value(value, values)
    raise CannotEvaluate(f"no branch of {expr} holds there")


_FACTORIALS = (sympy.gamma, sympy.factorial, sympy.binomial, sympy.rf, sympy.catalan)


def stable(expr: sympy.Expr) -> sympy.Expr:
    """p with logarithms of factorials and the like written by loggamma, so that none overflows."""
    return expr.replace(lambda e: isinstance(e, sympy.log), lambda e: _log(e.args[0]))


def _log(x: sympy.Expr) -> sympy.Expr:
    if isinstance(x, sympy.Mul) and x.has(*_FACTORIALS):
        huge = [factor for factor in x.args if factor.has(*_FACTORIALS)]
        rest = sympy.Mul(*(factor for factor in x.args if not factor.has(*_FACTORIALS)))
        return sympy.Add(sympy.log(rest), *(_log(factor) for factor in huge))
    if isinstance(x, sympy.Pow) and (x.base.is_positive or isinstance(x.base, _FACTORIALS)):
        return x.exp * _log(x.base)
    if isinstance(x, sympy.catalan):
        m = x.args[0]
        return _log(sympy.binomial(2 * m, m)) - sympy.log(m + 1)
    if isinstance(x, sympy.gamma):
        return sympy.loggamma(x.args[0])
    if isinstance(x, sympy.factorial):
        return sympy.loggamma(x.args[0] + 1)
    if isinstance(x, sympy.binomial):
        upper, lower = x.args
        return (
            sympy.loggamma(upper + 1)
            - sympy.loggamma(lower + 1)
            - sympy.loggamma(upper - lower + 1)
        )
    if isinstance(x, sympy.rf):
        return sympy.loggamma(x.args[0] + x.args[1]) - sympy.loggamma(x.args[0])
    return sympy.log(x)
