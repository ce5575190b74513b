"""Rewriting rules for special functions: asymptotic expansions with proved error orders.

A remainder that is only bounded is written as a symbol with a range, so that a decision that
would depend on it is not made. References are to the NIST Digital Library of Mathematical
Functions (DLMF) unless another is given.
"""

# sympy's stubs type the parts and the results of an expression too widely.
# pyright: reportArgumentType=false, reportGeneralTypeIssues=false, reportOperatorIssue=false

from __future__ import annotations

from collections.abc import Callable

import sympy
from sympy import S

from trf.series.arithmetic import ARITHMETIC, ARITHMETIC_LOGARITHMS
from trf.series.elementary import ELEMENTARY
from trf.series.rewriting import Rewriter
from trf.series.signs import Undecidable
from trf.series.sums import log_product, rewrite_integral, rewrite_product, rewrite_sum

_T = sympy.Dummy("t", real=True)
_LOG_TWO_PI = sympy.log(2) + sympy.log(sympy.pi)


def _settled(r: Rewriter, function: Callable, inner: sympy.Expr) -> sympy.Expr:
    return r.analytic(sympy.Lambda(_T, function(_T)), inner)


# -- the gamma family: DLMF 5.11.1, 5.5.1 ------------------------------------------------------


def _loggamma_at(r: Rewriter, argument: sympy.Expr) -> sympy.Expr:
    z = r(argument)
    limit = r.limit(z)
    if limit is S.Infinity:
        log_z = r.log(z)
        leading = sympy.expand_mul((z - S.Half) * log_z, deep=False) - z
        return leading + _LOG_TWO_PI / 2 + r.germ("stirling", 1 / z)
    if limit is S.NegativeInfinity:
        raise Undecidable(f"gamma({argument}) has poles for arbitrarily large n")
    if limit == 0:
        return _settled(r, sympy.loggamma, sympy.expand_mul(1 + z)) - r.log(z)
    if r.oracle.sign(limit) < 0:
        raise Undecidable(f"loggamma({argument}) is not real for large n")
    return _settled(r, sympy.loggamma, z)


def _loggamma(r: Rewriter, x: sympy.Expr) -> sympy.Expr:
    return _loggamma_at(r, x.args[0])


def _log_factorial(r: Rewriter, x: sympy.Expr) -> sympy.Expr:
    return _loggamma_at(r, x.args[0] + 1)


def _log_binomial(r: Rewriter, x: sympy.Expr) -> sympy.Expr:
    upper, lower = x.args
    parts = (_loggamma_at(r, v + 1) for v in (upper, lower, sympy.expand(upper - lower)))
    first, second, third = parts
    return first - second - third


def _log_rising(r: Rewriter, x: sympy.Expr) -> sympy.Expr:
    start, length = x.args
    return _loggamma_at(r, start + length) - _loggamma_at(r, start)


def _log_falling(r: Rewriter, x: sympy.Expr) -> sympy.Expr:
    start, length = x.args
    return _loggamma_at(r, start + 1) - _loggamma_at(r, start - length + 1)


def _log_beta(r: Rewriter, x: sympy.Expr) -> sympy.Expr:
    a, b = x.args
    return _loggamma_at(r, a) + _loggamma_at(r, b) - _loggamma_at(r, a + b)


def _log_catalan(r: Rewriter, x: sympy.Expr) -> sympy.Expr:
    m = x.args[0]
    return _loggamma_at(r, 2 * m + 1) - _loggamma_at(r, m + 1) - _loggamma_at(r, m + 2)


def _exponentiated(rule: Callable) -> Callable[[Rewriter, sympy.Expr], sympy.Expr]:
    def handler(r: Rewriter, x: sympy.Expr) -> sympy.Expr:
        return r.exp(rule(r, x))

    return handler


def _gamma(r: Rewriter, x: sympy.Expr) -> sympy.Expr:
    z = r(x.args[0])
    if r.limit(z) == 0:
        return _settled(r, sympy.gamma, sympy.expand_mul(1 + z)) / z
    return r.exp(_loggamma_at(r, x.args[0]))


def _subfactorial(r: Rewriter, x: sympy.Expr) -> sympy.Expr:
    """!m is the integer nearest to m!/e."""
    error = r.scale.bounded(x, -S.Half, S.Half)
    return r(sympy.factorial(x.args[0]) / sympy.E) + error


def _digamma_at(r: Rewriter, argument: sympy.Expr) -> sympy.Expr:
    z = r(argument)
    limit = r.limit(z)
    if limit is S.Infinity:
        return r.log(z) + r.germ("psi", 1 / z)
    if limit == 0:
        return _settled(r, sympy.digamma, sympy.expand_mul(1 + z)) - 1 / z
    return _settled(r, sympy.digamma, z)


def _digamma(r: Rewriter, x: sympy.Expr) -> sympy.Expr:
    return _digamma_at(r, x.args[0])


def _polygamma(r: Rewriter, x: sympy.Expr) -> sympy.Expr:
    """DLMF 5.15.8."""
    order, argument = x.args
    if order == 0:
        return _digamma_at(r, argument)
    z = r(argument)
    limit = r.limit(z)
    if limit is S.Infinity and order.is_Integer:
        return r.germ("polygamma", 1 / z, order)
    if limit == 0 and order.is_Integer:
        pole = S.NegativeOne ** (order + 1) * sympy.factorial(order) / z ** (order + 1)
        return pole + _settled(r, lambda t: sympy.polygamma(order, t), sympy.expand_mul(1 + z))
    return _settled(r, lambda t: sympy.polygamma(order, t), z)


def _harmonic(r: Rewriter, x: sympy.Expr) -> sympy.Expr:
    """H_m = psi(m+1) + gamma; H_m^(s) by Euler-Maclaurin summation (DLMF 25.11.43)."""
    m = x.args[0]
    if len(x.args) == 1 or x.args[1] == 1:
        return _digamma_at(r, m + 1) + sympy.EulerGamma
    s = x.args[1]
    if r.n in s.free_symbols:
        raise Undecidable(f"{x} has an order that changes with n")
    if r.oracle.sign(s - 1) == 0:
        return _digamma_at(r, m + 1) + sympy.EulerGamma
    z = r(m)
    if r.limit(z) is not S.Infinity:
        raise Undecidable(f"{x} is not expanded about a finite point")
    tail = r.power(z, 1 - s) * r.germ("hurwitz", 1 / z, s)
    return sympy.zeta(s) + sympy.expand_mul(tail, deep=False)


# -- exponential integrals and the like: DLMF 6.12, 7.12, 8.11, 8.20 ---------------------------


def _ei_at(r: Rewriter, y: sympy.Expr, shown: sympy.Expr) -> sympy.Expr:
    limit = r.limit(y)
    if limit is S.Infinity:
        return r.exp(y) / y * r.germ("ei", 1 / y)
    if limit is S.NegativeInfinity:
        return r.exp(y) / y * r.germ("ei", 1 / y)
    if limit == 0:
        entire = _settled(r, lambda t: sympy.Ei(t) - sympy.log(t), y)
        raise Undecidable(f"{shown} is not expanded about 0: {entire}")
    return _settled(r, sympy.Ei, y)


def _ei(r: Rewriter, x: sympy.Expr) -> sympy.Expr:
    return _ei_at(r, r(x.args[0]), x)


def _li(r: Rewriter, x: sympy.Expr) -> sympy.Expr:
    return _ei_at(r, r(sympy.log(x.args[0])), x)


def _expint(r: Rewriter, x: sympy.Expr) -> sympy.Expr:
    order, argument = x.args
    z = r(argument)
    if r.n in order.free_symbols and r.limit(r(order)) is S.Infinity:
        # 1/(z+s) < e^z E_s(z) <= 1/(z+s-1), DLMF 8.19.21
        return r.exp(-z) / (z + r(order) - r.scale.bounded(x, S.Zero, S.One))
    if r.limit(z) is S.Infinity and r.n not in order.free_symbols:
        return r.exp(-z) / z * r.germ("upper", 1 / z, 1 - order)
    if r.limit(z) == 0 and order == 1:
        bound = r.scale.bounded(x, S.Zero, S.One)
        return -r.log(z) - sympy.EulerGamma + bound * z
    raise Undecidable(f"the growth of {x} is not known")


def _uppergamma(r: Rewriter, x: sympy.Expr) -> sympy.Expr:
    s, argument = x.args
    if r.n in s.free_symbols:
        return r(sympy.gamma(s)) - _lowergamma(r, sympy.lowergamma(s, argument, evaluate=False))
    z = r(argument)
    limit = r.limit(z)
    if limit is S.Infinity:
        return r.power(z, s - 1) * r.exp(-z) * r.germ("upper", 1 / z, s)
    if limit == 0 and r.oracle.sign(s) > 0:
        return sympy.gamma(s) - _lowergamma(r, sympy.lowergamma(s, argument, evaluate=False))
    if limit == 0:
        raise Undecidable(f"the growth of {x} is not known")
    return _settled(r, lambda t: sympy.uppergamma(s, t), z)


def _lowergamma(r: Rewriter, x: sympy.Expr) -> sympy.Expr:
    """gamma(s, z) = z^s e^-z / s (1 + z/(s+1) + ...), DLMF 8.11.4."""
    s, argument = x.args
    z, order = r(argument), r(s)
    growing_order = r.n in s.free_symbols and r.limit(order) is S.Infinity
    if growing_order and r.limit(z - order) not in (S.Infinity, S.NegativeInfinity):
        # Q(s, s + O(1)) = 1/2 + O(s^-1/2), DLMF 8.12.3
        error = r.scale.bounded(x, S.NegativeInfinity, S.Infinity) * r.power(order, -S.Half)
        return r(sympy.gamma(s)) * (S.Half + error)
    if growing_order and r.limit(z / order) == 0:
        limit = r.limit(z)
        if limit is S.Infinity:
            raise Undecidable(f"the growth of {x} is not known")
        size = r.scale.bounded(x, S.Zero, S(2))
        return r.exp(order * r.log(z)) * r.exp(-z) / order * (1 + size * z / order)
    if r.n in s.free_symbols:
        raise Undecidable(f"the growth of {x} is not known")
    limit = r.limit(z)
    if limit is S.Infinity:
        return sympy.gamma(s) - _uppergamma(r, sympy.uppergamma(s, argument, evaluate=False))
    if limit == 0:
        return r.power(z, s) * r.germ("lower", z, s)
    return _settled(r, lambda t: sympy.lowergamma(s, t), z)


def _erfc_at(r: Rewriter, z: sympy.Expr) -> sympy.Expr:
    limit = r.limit(z)
    if limit is S.Infinity:
        gauss = r.exp(-sympy.expand_mul(z**2))
        return gauss / (z * sympy.sqrt(sympy.pi)) * r.germ("erfc", z**-2)
    if limit is S.NegativeInfinity:
        return 2 - _erfc_at(r, -z)
    return _settled(r, sympy.erfc, z)


def _erfc(r: Rewriter, x: sympy.Expr) -> sympy.Expr:
    return _erfc_at(r, r(x.args[0]))


def _erf(r: Rewriter, x: sympy.Expr) -> sympy.Expr:
    z = r(x.args[0])
    if r.limit(z) in (S.Infinity, S.NegativeInfinity):
        return 1 - _erfc_at(r, z)
    return _settled(r, sympy.erf, z)


def _erfi(r: Rewriter, x: sympy.Expr) -> sympy.Expr:
    z = r(x.args[0])
    if r.limit(z) is S.Infinity:
        gauss = r.exp(sympy.expand_mul(z**2))
        return gauss / (z * sympy.sqrt(sympy.pi)) * r.germ("erfc", -(z**-2))
    return _settled(r, sympy.erfi, z)


# -- Bessel and Airy: DLMF 10.40, 10.17, 9.7 ---------------------------------------------------


def _besselk(r: Rewriter, x: sympy.Expr) -> sympy.Expr:
    order, argument = x.args
    z = r(argument)
    if r.limit(z) is S.Infinity and r.n not in order.free_symbols:
        front = sympy.sqrt(sympy.pi / 2) * r.power(z, -S.Half) * r.exp(-z)
        return front * r.germ("bessel", 1 / z, order)
    if r.limit(z) == 0 and r.n not in order.free_symbols:
        return _besselk_small(r, r.absolute(order), z, x)
    raise Undecidable(f"the growth of {x} is not known")


def _besselk_small(r: Rewriter, order: sympy.Expr, z: sympy.Expr, x: sympy.Expr) -> sympy.Expr:
    """K_0(z) ~ -log(z/2) - gamma, K_v(z) ~ Gamma(v)/2 (z/2)^-v (DLMF 10.30.2, 10.31.2)."""
    error = r.scale.bounded(x, S.NegativeInfinity, S.Infinity)
    if r.oracle.sign(order) == 0:
        return -r.log(z) + sympy.log(2) - sympy.EulerGamma + error * z
    front = sympy.gamma(order) / 2 * r.power(z / 2, -order)
    return front * (1 + error * (z + r.power(z, order)))


def _besseli(r: Rewriter, x: sympy.Expr) -> sympy.Expr:
    order, argument = x.args
    z = r(argument)
    if r.limit(z) is S.Infinity and r.n not in order.free_symbols:
        front = r.power(z, -S.Half) * r.exp(z) / sympy.sqrt(2 * sympy.pi)
        return front * r.germ("bessel", -1 / z, order)
    if r.limit(z) not in (S.Infinity, S.NegativeInfinity) and order.is_Integer:
        return _settled(r, lambda t: sympy.besseli(order, t), z)
    raise Undecidable(f"the growth of {x} is not known")


def _besselj(r: Rewriter, x: sympy.Expr) -> sympy.Expr:
    order, argument = x.args
    z = r(argument)
    if r.limit(z) is S.Infinity and r.n not in order.free_symbols:
        return r.power(z, -S.Half) * r.scale.bounded(x, S.NegativeOne, S.One)
    if r.limit(z) not in (S.Infinity, S.NegativeInfinity) and order.is_Integer:
        return _settled(r, lambda t: sympy.besselj(order, t), z)
    raise Undecidable(f"the growth of {x} is not known")


def _airyai(r: Rewriter, x: sympy.Expr) -> sympy.Expr:
    z = r(x.args[0])
    limit = r.limit(z)
    if limit is S.Infinity:
        size = S(2) / 3 * r.power(z, S(3) / 2)
        front = r.power(z, -S(1) / 4) / (2 * sympy.sqrt(sympy.pi))
        return front * r.exp(-sympy.expand_mul(size, deep=False)) * r.germ("airy", 1 / size)
    if limit is S.NegativeInfinity:
        return r.power(-z, -S(1) / 4) * r.scale.bounded(x, S.NegativeOne, S.One)
    return _settled(r, sympy.airyai, z)


# -- Lambert W: DLMF 4.13 ----------------------------------------------------------------------


def _lambertw(r: Rewriter, x: sympy.Expr) -> sympy.Expr:
    """w = log z - log w, iterated; each round divides the error by log z (DLMF 4.13.10)."""
    z = r(x.args[0])
    limit = r.limit(z)
    if limit == 0:
        return r.germ("lambertw", z)
    if limit is S.NegativeInfinity:
        raise Undecidable(f"{x} is not real for large n")
    if limit is not S.Infinity and r.oracle.sign(limit + sympy.exp(-1)) <= 0:
        raise Undecidable(f"{x} is not real for large n")
    if limit is not S.Infinity:
        return _settled(r, sympy.LambertW, z)
    log_z = r.log(z)
    w = log_z - r.log(log_z)
    for _ in range(3):
        w = log_z - r.log(w)
    error = r.scale.bounded(x, -S(2), S(2))
    return w + error * r.log(log_z) / log_z**4


def _log_lambertw(r: Rewriter, x: sympy.Expr) -> sympy.Expr:
    """log W(z) = log z - W(z)."""
    if r.limit(r(x.args[0])) is not S.Infinity:
        return r.log(r(x))
    return r.log(r(x.args[0])) - r(x)


def _zeta(r: Rewriter, x: sympy.Expr) -> sympy.Expr:
    """Far out 1 + 2^-s + O(3^-s); the Laurent series at 1, DLMF 25.2.4."""
    if len(x.args) > 1:
        raise Undecidable(f"the growth of {x} is not known")
    s = r(x.args[0])
    limit = r.limit(s)
    if limit is S.Infinity:
        rest = r.scale.bounded(x, S.One, S(4))
        return 1 + r.exp(-s * sympy.log(2)) + rest * r.exp(-s * sympy.log(3))
    if limit is S.NegativeInfinity:
        raise Undecidable(f"the growth of {x} is not known")
    distance = sympy.expand_mul(s - limit)
    if r.oracle.sign(limit - 1) == 0:
        return 1 / distance + r.germ("stieltjes", distance)
    return sympy.zeta(limit) + distance * r.scale.bounded(x, -(S(10) ** 9), S(10) ** 9)


LOGARITHMS: dict[type, Callable[..., sympy.Expr]] = {
    sympy.LambertW: _log_lambertw,
    **ARITHMETIC_LOGARITHMS,
    sympy.Product: log_product,
    sympy.gamma: _loggamma,
    sympy.factorial: _log_factorial,
    sympy.binomial: _log_binomial,
    sympy.rf: _log_rising,
    sympy.ff: _log_falling,
    sympy.beta: _log_beta,
    sympy.catalan: _log_catalan,
}

HANDLERS: dict[type, Callable[..., sympy.Expr]] = {
    **ELEMENTARY,
    **{function: _exponentiated(rule) for function, rule in LOGARITHMS.items()},
    **ARITHMETIC,
    sympy.Sum: rewrite_sum,
    sympy.Product: rewrite_product,
    sympy.Integral: rewrite_integral,
    sympy.gamma: _gamma,
    sympy.loggamma: _loggamma,
    sympy.subfactorial: _subfactorial,
    sympy.digamma: _digamma,
    sympy.polygamma: _polygamma,
    sympy.harmonic: _harmonic,
    sympy.Ei: _ei,
    sympy.li: _li,
    sympy.expint: _expint,
    sympy.uppergamma: _uppergamma,
    sympy.lowergamma: _lowergamma,
    sympy.erf: _erf,
    sympy.erfc: _erfc,
    sympy.erfi: _erfi,
    sympy.besselk: _besselk,
    sympy.besseli: _besseli,
    sympy.besselj: _besselj,
    sympy.bessely: _besselj,
    sympy.airyai: _airyai,
    sympy.LambertW: _lambertw,
    sympy.zeta: _zeta,
}
