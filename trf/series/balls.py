"""Balls: real numbers with a proved error, and the terms of a series evaluated in them.

A bias ``p`` is compiled once into closures over python-flint's ``arb`` (balls) and
``arb_series`` (truncated power series with ball coefficients); the same closures serve both, so
that a value and its Taylor coefficients come from one formula. Every operation of Arb encloses
the exact result (Johansson, *Arb: efficient arbitrary-precision midpoint-radius interval
arithmetic*, arXiv 1611.02831), so what comes out is a theorem, not an estimate.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, reduce
from operator import add, mul
from typing import Any

import flint
import sympy
from flint import arb, fmpq, fmpz

from trf.series.rationals import NotRationalError, decide, polynomial

NAN = arb.nan()


class NotEvaluable(ValueError):
    """An expression holds a function that has no evaluation in balls here."""


@dataclass(frozen=True)
class Estimate:
    """A float with an estimate of its error: not proved, and so not a `Ball`."""

    value: float
    error: float

    def __float__(self) -> float:
        return self.value

    def __str__(self) -> str:
        return f"about {self.value:.12g} (error near {self.error:.1g}, estimated)"


@dataclass(frozen=True)
class Ball:
    """A real number with a proved error: the exact value lies in ``[lower, upper]``.

    Prints its error: ``str(ball)`` is like ``[1.64493406684823 +/- 4e-15]``.

    Examples:
        >>> ball = Ball.exact(Fraction(1, 3))
        >>> ball.lower <= Fraction(1, 3) <= ball.upper
        True
    """

    value: arb

    @classmethod
    def exact(cls, value: Fraction | int) -> Ball:
        """The ball around a rational number, as tight as 128 bits allow."""
        value = Fraction(value)
        with flint.ctx.workprec(128):
            return cls(arb(fmpq(value.numerator, value.denominator)))

    @property
    def lower(self) -> Fraction:
        """A rational at or below the exact value."""
        return _fraction(self.value.mid()) - _fraction(self.value.rad())

    @property
    def upper(self) -> Fraction:
        """A rational at or above the exact value."""
        return _fraction(self.value.mid()) + _fraction(self.value.rad())

    @property
    def radius(self) -> float:
        """The proved bound on the error of the midpoint (rounded to a float)."""
        return float(self.value.rad())

    def __float__(self) -> float:
        return float(self.value.mid())

    def __contains__(self, number: object) -> bool:
        if isinstance(number, int | Fraction):
            return self.lower <= number <= self.upper
        if isinstance(number, arb):
            return bool(self.value.contains(number))
        return False

    def digits(self, count: int = 15) -> str:
        """The value to at most ``count`` digits, every printed digit right, with its error."""
        bits = int(count * 3.33) + 16
        with flint.ctx.workprec(max(bits, 32)):
            return self.value.str(count)

    def __str__(self) -> str:
        return self.digits(15)


def _fraction(exact: arb) -> Fraction:
    parts = exact.man_exp()
    mantissa, exponent = int(parts[0]), int(parts[1])
    if exponent >= 0:
        return Fraction(mantissa << exponent)
    return Fraction(mantissa, 1 << -exponent)


@lru_cache(maxsize=4096)
def constant(value: sympy.Expr) -> Callable[[], arb]:
    """A number as a closure that gives its ball at the precision in force."""
    if isinstance(value, sympy.Integer):
        integer = fmpz(int(value))
        return lambda: arb(integer)
    if isinstance(value, sympy.Rational):
        rational = fmpq(int(value.p), int(value.q))
        return lambda: arb(rational)
    if value is sympy.pi:
        return arb.pi
    if value is sympy.E:
        return arb.const_e
    if value is sympy.EulerGamma:
        return arb.const_euler
    if value is sympy.Catalan:
        return arb.const_catalan
    if value is sympy.GoldenRatio:
        return lambda: (arb(5).sqrt() + 1) / 2
    if value.free_symbols:
        raise NotEvaluable(f"{value} is not a number")
    if isinstance(value, sympy.Add | sympy.Mul):
        operation = add if isinstance(value, sympy.Add) else mul
        parts = [constant(part) for part in value.args]
        return _remembered(lambda: reduce(operation, [part() for part in parts]))
    compiled = _compile_node(value, sympy.Dummy())
    return _remembered(lambda: compiled(arb(0)))


def _remembered(evaluate: Callable[[], arb]) -> Callable[[], arb]:
    """The same, evaluated once for each precision."""
    known: dict[int, arb] = {}

    def value() -> arb:
        precision = flint.ctx.prec
        if precision not in known:
            known[precision] = evaluate()
        return known[precision]

    return value


def number(value: sympy.Expr) -> arb:
    """The ball of a sympy number at the precision in force."""
    return constant(sympy.sympify(value))()


def _head(x: Any) -> arb:
    return x if isinstance(x, arb) else x[0]


def _log(x: Any) -> Any:
    return x.log() if _head(x) > 0 else x * NAN


def _power(exponent: sympy.Expr) -> Callable[[Any], Any]:
    """``x -> x**exponent`` for a real number ``exponent``, on the domain where that is real."""
    if isinstance(exponent, sympy.Integer):
        k = int(exponent)
        if k >= 0:
            return lambda x: x**k
        return lambda x: (1 / x) ** -k if _head(x) != 0 else x * NAN
    if exponent == sympy.S.Half:
        return lambda x: x.sqrt() if _head(x) >= 0 else x * NAN
    ball = constant(exponent)
    positive = bool(exponent.is_positive)

    def power(x: Any) -> Any:
        head = _head(x)
        if head > 0:
            return x ** ball() if isinstance(x, arb) else (x.log() * ball()).exp()
        if isinstance(x, arb) and positive and head == 0:
            return arb(0)
        return x * NAN

    return power


_METHODS: dict[Any, str] = {
    sympy.exp: "exp",
    sympy.sin: "sin",
    sympy.cos: "cos",
    sympy.tan: "tan",
    sympy.atan: "atan",
    sympy.asin: "asin",
    sympy.acos: "acos",
    sympy.sinh: "sinh",
    sympy.cosh: "cosh",
    sympy.tanh: "tanh",
    sympy.coth: "coth",
    sympy.sech: "sech",
    sympy.csch: "csch",
    sympy.asinh: "asinh",
    sympy.acosh: "acosh",
    sympy.atanh: "atanh",
    sympy.erf: "erf",
    sympy.erfc: "erfc",
    sympy.gamma: "gamma",
    sympy.loggamma: "lgamma",
    sympy.LambertW: "lambertw",
    sympy.digamma: "digamma",
    sympy.li: "li",
}

_UNARY: dict[Any, Callable[[Any], Any]] = {
    sympy.log: _log,
    sympy.factorial: lambda x: (x + 1).gamma(),
    sympy.harmonic: lambda x: (x + 1).digamma() + arb.const_euler(),
    sympy.floor: lambda x: x.floor(),
    sympy.ceiling: lambda x: x.ceil(),
    sympy.Abs: abs,
    sympy.sign: lambda x: x.sgn(),
    sympy.zeta: lambda x: x.zeta(),
}


def compile_expression(expr: Any, n: sympy.Symbol) -> Callable[[Any], Any]:
    """``expr`` as a function of ``n`` that takes and gives balls (or series of balls).

    Where the expression is undefined or not real the value is a NaN ball.

    Raises:
        NotEvaluable: a function in ``expr`` is not known here.
    """
    if not expr.has(n):
        ball = constant(expr)
        return lambda x: ball() if isinstance(x, arb) else x * 0 + ball()
    return _compile_node(expr, n)


def _compile_node(expr: Any, n: sympy.Symbol) -> Callable[[Any], Any]:
    if expr == n:
        return lambda x: x
    if isinstance(expr, sympy.Add):
        free, bound = expr.as_independent(n, as_Add=True)
        parts = [compile_expression(a, n) for a in sympy.Add.make_args(bound)]
        if free == 0:
            return lambda x: reduce(add, [part(x) for part in parts])
        offset = constant(free)
        return lambda x: reduce(add, [part(x) for part in parts]) + offset()
    if isinstance(expr, sympy.Mul):
        free, bound = expr.as_independent(n, as_Add=False)
        parts = [compile_expression(a, n) for a in sympy.Mul.make_args(bound)]
        if free == 1:
            return lambda x: reduce(mul, [part(x) for part in parts])
        scale = constant(free)
        return lambda x: reduce(mul, [part(x) for part in parts]) * scale()
    if isinstance(expr, sympy.Pow):
        base, exponent = expr.args
        if not exponent.has(n):
            inner, power = compile_expression(base, n), _power(exponent)
            return lambda x: power(inner(x))
        low, high = compile_expression(base, n), compile_expression(exponent, n)
        return lambda x: (_log(low(x)) * high(x)).exp()
    if isinstance(expr, sympy.Sum | sympy.Product):
        spread = expr.doit()
        if isinstance(spread, sympy.Sum | sympy.Product):
            raise NotEvaluable(f"{expr.func.__name__} with symbolic limits")
        return compile_expression(spread, n)
    if isinstance(expr, sympy.Piecewise):
        return _compile_piecewise(expr, n)
    if isinstance(expr, sympy.Max | sympy.Min):
        items = [compile_expression(a, n) for a in expr.args]
        largest = isinstance(expr, sympy.Max)

        def extreme(x: Any) -> Any:
            values: list[Any] = [item(x) for item in items]
            return reduce(lambda a, b: a.max(b) if largest else a.min(b), values)

        return extreme
    if isinstance(expr, sympy.floor | sympy.ceiling):
        step = _compile_step(expr, n)
        if step is not None:
            return step
    if len(expr.args) == 1:
        inner = compile_expression(expr.args[0], n)
        if expr.func in _UNARY:
            function = _UNARY[expr.func]
            return lambda x: function(inner(x))
        if expr.func in _METHODS:
            name = _METHODS[expr.func]
            return lambda x: getattr(inner(x), name)()
    raise NotEvaluable(f"no evaluation in balls for {expr.func.__name__}")


def _compile_step(expr: Any, n: sympy.Symbol) -> Callable[[Any], Any] | None:
    """``floor`` or ``ceiling`` of a rational polynomial, exactly at integers."""
    try:
        exact = polynomial(expr.args[0], n)
    except NotRationalError:
        return None
    up = isinstance(expr, sympy.ceiling)

    def step(x: Any) -> arb:
        value = exact(int(str(x.unique_fmpz())))
        return arb(fmpz(math.ceil(value) if up else math.floor(value)))

    return step


def _nothing(_: Any) -> arb:
    return arb.neg_inf()


def _compile_piecewise(expr: Any, n: sympy.Symbol) -> Callable[[Any], Any]:
    try:
        pieces = [
            (_nothing if v == -sympy.oo else compile_expression(v, n), decide(condition, n))
            for v, condition in expr.args
        ]
    except NotRationalError as error:
        raise NotEvaluable(f"the condition {error} is not one on a polynomial in n") from error

    def piecewise(x: Any) -> Any:
        if not isinstance(x, arb):
            raise NotEvaluable("a piecewise expression has no Taylor series here")
        at = int(str(x.unique_fmpz()))
        for value, holds in pieces:
            if holds(at):
                return value(x)
        return NAN

    return piecewise


@dataclass(frozen=True)
class Term:
    """The weight ``exp(p(n))``, compiled: ``term(ball)`` and ``term(series)``.

    ``p`` is split as ``sum c_i*log(A_i) + rest`` so that powers are taken as powers
    (``(1+n)**-2`` rather than ``exp(-2*log(1+n))``), which is faster and tighter.
    """

    p: sympy.Expr
    n: sympy.Symbol
    _weight: Callable[[Any], Any]

    def __call__(self, x: Any) -> Any:
        return self._weight(x)

    def at(self, index: int) -> arb:
        """The weight at an integer, at the precision in force."""
        return self._weight(arb(fmpz(index)))


def compile_term(p: sympy.Expr, n: sympy.Symbol) -> Term:
    """Compile ``exp(p)``; see `Term`."""
    factors: list[Callable[[Any], Any]] = []
    rest: list[sympy.Expr] = []
    for part in sympy.Add.make_args(p):
        free, bound = part.as_independent(n, as_Add=False)
        if isinstance(bound, sympy.log) and free.is_real:
            factors.append(_positive_power(compile_expression(bound.args[0], n), free))
        else:
            rest.append(part)
    if rest:
        exponent = compile_expression(sympy.Add(*rest), n)
        factors.append(lambda x: _exp(exponent(x)))
    return Term(p, n, lambda x: reduce(mul, [factor(x) for factor in factors]))


def _exp(x: Any) -> Any:
    if isinstance(x, arb) and not x.is_finite() and x < 0:
        return arb(0)
    return x.exp()


def _positive_power(inner: Callable[[Any], Any], exponent: sympy.Expr) -> Callable[[Any], Any]:
    """``exp(exponent*log(A))``: NaN unless A > 0, for log(A) is not finite there."""
    power = _power(exponent)

    def factor(x: Any) -> Any:
        value = inner(x)
        return power(value) if _head(value) > 0 else value * NAN

    return factor
