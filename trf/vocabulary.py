"""The functions and constants that an expression may use, in SymPy's meaning, with size limits.

SymPy evaluates some calls on plain numbers at once (``factorial(10**9)``, ``floor(exp(exp(99)))``);
the guards here refuse numbers that would make that costly, before SymPy sees them.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import sympy

from trf.errors import ExpressionError

MAX_BITS = 14_000  # of an exact number: what Python still prints in decimal
MAX_ROOT_BITS = 512  # of a number under a root: SymPy looks for its factors
MAX_EXPONENTIAL = 10_000  # of a number inside exp, sinh, cosh

CONSTANTS: dict[str, sympy.Basic] = {
    "pi": sympy.pi,
    "E": sympy.E,
    "oo": sympy.oo,
    "EulerGamma": sympy.EulerGamma,
    "Catalan": sympy.Catalan,
    "GoldenRatio": sympy.GoldenRatio,
    "True": sympy.true,
    "False": sympy.false,
}


@dataclass(frozen=True)
class Function:
    """One callable of the vocabulary: how to build it, and how many arguments it takes.

    `number_limit` bounds every argument that is a plain number.
    """

    build: Callable[..., Any]
    least: int = 1
    most: int = 1
    number_limit: int | None = None


def magnitude(value: Any) -> float:
    """``|value|`` as a float, for a SymPy number; 0 for anything with a symbol in it."""
    if not getattr(value, "is_number", False) or value in (sympy.oo, -sympy.oo):
        return 0.0
    try:
        return abs(complex(value.evalf(15)))
    except (TypeError, OverflowError):
        return float("inf") if value.is_finite is not False else 0.0


def power(base: Any, exponent: Any) -> Any:
    """``base**exponent``, refusing numbers with more than `MAX_BITS` bits."""
    if base.is_number and exponent.is_number:
        if base.is_Rational and exponent.is_Rational:
            size = math.log2(max(abs(base.p), base.q, 1))
            bits = size * magnitude(exponent)
            trivial = base in (0, 1, -1)
            if not exponent.is_Integer and size > MAX_ROOT_BITS:
                raise ExpressionError(
                    f"a root of a number with more than {MAX_ROOT_BITS} bits is not evaluated"
                )
        else:
            size = magnitude(sympy.log(sympy.Abs(base))) if base != 0 else 0.0
            bits, trivial = size * magnitude(exponent), False
        if bits > MAX_BITS and not trivial:
            raise ExpressionError(
                f"a power of numbers with more than {MAX_BITS} bits is not evaluated"
            )
    return base**exponent


def _exponential(function: Any) -> Callable[[Any], Any]:
    @functools.wraps(function, updated=())
    def build(argument: Any) -> Any:
        if magnitude(argument) > MAX_EXPONENTIAL:
            raise ExpressionError(
                f"{function.__name__} of a number beyond {MAX_EXPONENTIAL} is not evaluated"
            )
        return function(argument)

    return build


def _log(argument: Any, base: Any = None) -> Any:
    return sympy.log(argument) if base is None else sympy.log(argument) / sympy.log(base)


def _rational(p: Any, q: Any = sympy.S.One) -> Any:
    if not (p.is_Rational and q.is_Rational) or q == 0:
        raise ExpressionError(f"Rational takes two numbers, the second not 0; got {p}, {q}")
    return p / q


def _integer(p: Any) -> Any:
    if not p.is_Integer:
        raise ExpressionError(f"Integer takes a whole number, got {p}")
    return p


def _plain(build: Callable[..., Any], names: str) -> dict[str, Function]:
    return {name: Function(build) for name in names.split()}


_ONE_ARGUMENT: dict[str, Function] = {
    **_plain(sympy.Abs, "Abs abs"),
    **_plain(sympy.LambertW, "LambertW lambertw W"),
    **_plain(sympy.acos, "acos arccos"),
    **_plain(sympy.asin, "asin arcsin"),
    **_plain(sympy.atan, "atan arctan"),
    **_plain(sympy.acosh, "acosh arccosh"),
    **_plain(sympy.asinh, "asinh arcsinh"),
    **_plain(sympy.atanh, "atanh arctanh"),
    **_plain(sympy.airyai, "airyai Ai"),
    **_plain(sympy.cos, "cos"),
    **_plain(sympy.sin, "sin"),
    **_plain(sympy.tan, "tan"),
    **_plain(sympy.cot, "cot"),
    **_plain(sympy.tanh, "tanh"),
    **_plain(sympy.coth, "coth"),
    **_plain(sympy.erf, "erf"),
    **_plain(sympy.erfc, "erfc"),
    **_plain(sympy.erfi, "erfi"),
    **_plain(sympy.li, "li"),
    **_plain(sympy.Ei, "Ei"),
    **_plain(lambda x: power(x, sympy.S.Half), "sqrt"),
    **_plain(sympy.sign, "sign sgn"),
    **_plain(lambda x: 1 / (1 + sympy.exp(-x)), "sigmoid"),
    **_plain(lambda x: sympy.log(1 + sympy.exp(x)), "softplus"),
    **_plain(lambda x: sympy.log(1 + x), "log1p"),
    **_plain(lambda x: sympy.log(x) / sympy.log(2), "log2"),
    **_plain(lambda x: sympy.log(x) / sympy.log(10), "log10"),
    "exp": Function(_exponential(sympy.exp)),
    "sinh": Function(_exponential(sympy.sinh)),
    "cosh": Function(_exponential(sympy.cosh)),
}


def _limited(build: Callable[..., Any], limit: int, least: int = 1, most: int = 1) -> Function:
    return Function(build, least, most, limit)


_LIMITED: dict[str, Function] = {
    "factorial": _limited(sympy.factorial, 500),
    "subfactorial": _limited(sympy.subfactorial, 500),
    "catalan": _limited(sympy.catalan, 500),
    "fibonacci": _limited(sympy.fibonacci, 500),
    "gamma": _limited(sympy.gamma, 500),
    "Gamma": _limited(sympy.gamma, 500),
    "loggamma": _limited(sympy.loggamma, 500),
    "lgamma": _limited(sympy.loggamma, 500),
    "digamma": _limited(sympy.digamma, 500),
    "psi": _limited(sympy.digamma, 500),
    "primepi": _limited(sympy.primepi, 100_000),
    "totient": _limited(sympy.totient, 10**9),
    "divisor_sigma": _limited(sympy.divisor_sigma, 10**9, 1, 2),
    "binomial": _limited(sympy.binomial, 300, 2, 2),
    "rf": _limited(sympy.rf, 50, 2, 2),
    "ff": _limited(sympy.ff, 50, 2, 2),
    "harmonic": _limited(sympy.harmonic, 200, 1, 2),
    "polygamma": _limited(sympy.polygamma, 100, 2, 2),
    "zeta": _limited(sympy.zeta, 100, 1, 2),
    "uppergamma": _limited(sympy.uppergamma, 100, 2, 2),
    "lowergamma": _limited(sympy.lowergamma, 100, 2, 2),
    "expint": _limited(sympy.expint, 100, 2, 2),
    "beta": _limited(sympy.beta, 100, 2, 2),
    "besseli": _limited(sympy.besseli, 100, 2, 2),
    "besselj": _limited(sympy.besselj, 100, 2, 2),
    "besselk": _limited(sympy.besselk, 100, 2, 2),
    "bessely": _limited(sympy.bessely, 100, 2, 2),
    "floor": _limited(sympy.floor, 10**60),
    "ceiling": _limited(sympy.ceiling, 10**60),
    "ceil": _limited(sympy.ceiling, 10**60),
    "frac": _limited(sympy.frac, 10**60),
    "Mod": _limited(sympy.Mod, 10**60, 2, 2),
}

FUNCTIONS: dict[str, Function] = {
    **_ONE_ARGUMENT,
    **_LIMITED,
    "log": Function(_log, 1, 2),
    "ln": Function(_log),
    "Heaviside": Function(sympy.Heaviside, 1, 2),
    "Max": Function(sympy.Max, 1, 8),
    "max": Function(sympy.Max, 1, 8),
    "Min": Function(sympy.Min, 1, 8),
    "min": Function(sympy.Min, 1, 8),
    "Rational": Function(_rational, 1, 2),
    "Integer": Function(_integer),
    "Eq": Function(sympy.Eq, 2, 2),
    "Ne": Function(sympy.Ne, 2, 2),
    "Lt": Function(sympy.Lt, 2, 2),
    "Le": Function(sympy.Le, 2, 2),
    "Gt": Function(sympy.Gt, 2, 2),
    "Ge": Function(sympy.Ge, 2, 2),
    "And": Function(sympy.And, 1, 64),
    "Or": Function(sympy.Or, 1, 64),
    "Not": Function(sympy.Not),
}
# These take tuples: (value, condition) pairs, or (index, from, to) ranges.
PAIRS = {"Piecewise"}
RANGES: dict[str, Callable[..., Any]] = {
    "Sum": sympy.Sum,
    "Product": sympy.Product,
    "Integral": sympy.Integral,
}


def names() -> list[str]:
    """Every function name that an expression may call."""
    return sorted({*FUNCTIONS, *PAIRS, *RANGES})


def call(name: str, arguments: list[Any]) -> Any:
    """Apply the vocabulary's function `name`, within its limits."""
    function = FUNCTIONS[name]
    if not function.least <= len(arguments) <= function.most:
        wanted = (
            str(function.least)
            if function.least == function.most
            else f"{function.least} to {function.most}"
        )
        raise ExpressionError(f"{name} takes {wanted} argument(s), got {len(arguments)}")
    if function.number_limit is not None:
        for argument in arguments:
            if magnitude(argument) > function.number_limit:
                raise ExpressionError(
                    f"{name} of a number beyond {function.number_limit:.0e} is not evaluated"
                )
    return function.build(*arguments)
