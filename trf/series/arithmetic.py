"""Rewriting rules for functions of integers: rounding, primes, divisors, sums over an index."""

# sympy's stubs type the parts and the results of an expression too widely.
# pyright: reportArgumentType=false, reportGeneralTypeIssues=false, reportOperatorIssue=false

from __future__ import annotations

from collections.abc import Callable

import sympy
from sympy import S

from trf.series.rewriting import Rewriter
from trf.series.signs import Undecidable


def _fraction(r: Rewriter, argument: sympy.Expr, shown: sympy.Expr) -> sympy.Expr:
    """The fractional part of the argument: a constant where it settles, else a bounded symbol."""
    inner = r(argument)
    if r.turning(inner):
        return inner - sympy.floor(inner)
    limit = r.limit(inner)
    if limit in (S.Infinity, S.NegativeInfinity):
        return r.scale.bounded(sympy.frac(argument, evaluate=False), S.Zero, S.One)
    rest = r(argument) - limit
    if not limit.is_number:
        raise Undecidable(f"where {shown} jumps depends on the parameters")
    whole = sympy.floor(limit)
    if limit != whole or rest == 0 or r.sign(rest) >= 0:
        return r(argument) - whole
    return r(argument) - whole + 1


def _floor(r: Rewriter, x: sympy.Expr) -> sympy.Expr:
    return sympy.expand_mul(r(x.args[0]) - _fraction(r, x.args[0], x))


def _ceiling(r: Rewriter, x: sympy.Expr) -> sympy.Expr:
    return sympy.expand_mul(r(x.args[0]) + _fraction(r, -x.args[0], x))


def _frac(r: Rewriter, x: sympy.Expr) -> sympy.Expr:
    return _fraction(r, x.args[0], x)


def _mod(r: Rewriter, x: sympy.Expr) -> sympy.Expr:
    dividend, divisor = x.args
    if r.n in divisor.free_symbols:
        raise Undecidable(f"{x} has a modulus that changes with n")
    return divisor * _fraction(r, dividend / divisor, x)


def _primepi(r: Rewriter, x: sympy.Expr) -> sympy.Expr:
    """|pi(x) - li(x)| < 0.28 x exp(-sqrt(log x / 6.455)), T. Trudgian (2016), Theorem 2."""
    z = r(x.args[0])
    if r.limit(z) is not S.Infinity:
        raise Undecidable(f"the growth of {x} is not known")
    error = r.scale.bounded(x, -S.One, S.One)
    small = r.exp(-r.power(r.log(z), S.Half) * sympy.sqrt(sympy.Rational(1000, 6455)))
    return r(sympy.li(x.args[0])) + error * z * small


def _log_log_log(r: Rewriter, argument: sympy.Expr) -> sympy.Expr:
    return r.log(r.log(r.log(r(argument))))


def _log_totient(r: Rewriter, x: sympy.Expr) -> sympy.Expr:
    """m/(3 log log m) < phi(m) <= m for large m (Rosser and Schoenfeld, 1962)."""
    error = r.scale.bounded(x, S.Zero, S(2))
    return r.log(r(x.args[0])) - error * _log_log_log(r, x.args[0])


def _log_divisor_sigma(r: Rewriter, x: sympy.Expr) -> sympy.Expr:
    """m <= sigma(m) < 3 m log log m; sigma_k(m) between m^k and zeta(k) m^k for k > 1."""
    m = x.args[0]
    k = x.args[1] if len(x.args) > 1 else S.One
    log_m = r.log(r(m))
    if k == 1:
        return log_m + r.scale.bounded(x, S.Zero, S(2)) * _log_log_log(r, m)
    if k == 0:
        return r.scale.bounded(x, S.Zero, S.One) * log_m / r.log(log_m) * 2
    if k.is_number and r.oracle.sign(k - 1) > 0:
        return k * log_m + r.scale.bounded(x, S.Zero, sympy.log(sympy.zeta(k)))
    raise Undecidable(f"the growth of {x} is not known")


def _fibonacci(r: Rewriter, x: sympy.Expr) -> sympy.Expr:
    """Binet's formula; the second term is less than the inverse of the first."""
    if len(x.args) > 1:
        raise Undecidable(f"the growth of {x} is not known")
    z = r(x.args[0])
    growing = r.exp(z * sympy.log(sympy.GoldenRatio))
    return growing / sympy.sqrt(5) + r.scale.bounded(x, -S.One, S.One) / growing


ARITHMETIC: dict[type, Callable[..., sympy.Expr]] = {
    sympy.floor: _floor,
    sympy.ceiling: _ceiling,
    sympy.frac: _frac,
    sympy.Mod: _mod,
    sympy.primepi: _primepi,
    sympy.totient: lambda r, x: r.exp(_log_totient(r, x)),
    sympy.divisor_sigma: lambda r, x: r.exp(_log_divisor_sigma(r, x)),
    sympy.fibonacci: _fibonacci,
}

ARITHMETIC_LOGARITHMS: dict[type, Callable[..., sympy.Expr]] = {
    sympy.totient: _log_totient,
    sympy.divisor_sigma: _log_divisor_sigma,
}
