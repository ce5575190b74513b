"""Germs: functions with a known (convergent or asymptotic) power series at an infinitesimal.

``Germ(kind, j, x, *data)`` is the j-th derivative of the function `kind` at an x that tends to 0.
The series ``sum_i c_i x^i`` of each kind stands in `KINDS` as the rule i -> c_i.
"""

# sympy's stubs type the parts and the results of an expression too widely.
# pyright: reportArgumentType=false, reportOperatorIssue=false, reportReturnType=false

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import sympy
from sympy import S

from trf.series.signs import Undecidable


def _taylor_of(i: int, function: sympy.Lambda, point: sympy.Expr) -> sympy.Expr:
    return _derivative(function, i).subs(function.variables[0], point) / sympy.factorial(i)


@lru_cache(maxsize=512)
def _derivative(function: sympy.Lambda, i: int) -> sympy.Expr:
    if i == 0:
        return function.expr
    return _derivative(function, i - 1).diff(function.variables[0])


def _stirling(i: int) -> sympy.Expr:
    """log Gamma(z) - (z - 1/2) log z + z - log(2 pi)/2 = sum c_i z^-i (DLMF 5.11.1)."""
    if i % 2 == 0:
        return S.Zero
    return sympy.bernoulli(i + 1) / (i * (i + 1))


def _psi(i: int) -> sympy.Expr:
    """psi(z) - log z = sum c_i z^-i (DLMF 5.11.2)."""
    if i == 0:
        return S.Zero
    if i == 1:
        return -S.Half
    return -sympy.bernoulli(i) / i


def _polygamma(i: int, order: sympy.Integer) -> sympy.Expr:
    """psi^(k)(z) = sum c_i z^-i (DLMF 5.15.8)."""
    k = int(order)
    sign = S.NegativeOne ** (k + 1)
    if i == k:
        return sign * sympy.factorial(k - 1)
    if i == k + 1:
        return sign * sympy.factorial(k) / 2
    j = i - k
    if j <= 0 or j % 2:
        return S.Zero
    return sign * sympy.bernoulli(j) * sympy.factorial(j + k - 1) / sympy.factorial(j)


def _hurwitz(i: int, s: sympy.Expr) -> sympy.Expr:
    """(H_m^(s) - zeta(s)) m^(s-1) = sum c_i m^-i (DLMF 25.11.43)."""
    if i == 0:
        return 1 / (1 - s)
    if i == 1:
        return S.Half
    if i % 2:
        return S.Zero
    return -sympy.bernoulli(i) / sympy.factorial(i) * sympy.Mul(*(s + j for j in range(i - 1)))


def _bessel(i: int, order: sympy.Expr) -> sympy.Expr:
    """K_v(z) sqrt(2z/pi) e^z = sum a_i(v) z^-i (DLMF 10.40.2)."""
    product = sympy.Mul(*(4 * order**2 - (2 * j - 1) ** 2 for j in range(1, i + 1)))
    return product / (sympy.factorial(i) * 8**i)


def _airy(i: int) -> sympy.Expr:
    """Ai(z) 2 sqrt(pi) z^(1/4) e^x = sum (-1)^i u_i x^-i, x = 2/3 z^(3/2) (DLMF 9.7.5)."""
    product = sympy.Mul(*(2 * i + 1 + 2 * j for j in range(2 * i)))
    return S.NegativeOne**i * product / (S(216) ** i * sympy.factorial(i))


KINDS: dict[str, Callable[..., sympy.Expr]] = {
    "taylor": _taylor_of,
    "stirling": _stirling,
    "psi": _psi,
    "polygamma": _polygamma,
    "hurwitz": _hurwitz,
    "ei": lambda i: sympy.factorial(i),
    "upper": lambda i, s: sympy.ff(s - 1, i),
    "lower": lambda i, s: S.NegativeOne**i / (sympy.factorial(i) * (s + i)),
    "erfc": lambda i: (-S.Half) ** i * sympy.factorial2(2 * i - 1),
    "bessel": _bessel,
    "airy": _airy,
    "stieltjes": lambda i: S.NegativeOne**i * sympy.stieltjes(i) / sympy.factorial(i),
    "lambertw": lambda i: S.Zero if i == 0 else S(-i) ** (i - 1) / sympy.factorial(i),
    "sin": lambda i: S.Zero if i % 2 == 0 else S.NegativeOne ** (i // 2) / sympy.factorial(i),
    "cos": lambda i: S.Zero if i % 2 else S.NegativeOne ** (i // 2) / sympy.factorial(i),
}


class Germ(sympy.Function):
    """The j-th derivative of a germ: ``Germ(kind, j, x, *data)``."""

    @classmethod
    def of(cls, kind: str, x: sympy.Expr, *data: sympy.Basic) -> Germ:
        """The germ `kind` itself at x."""
        return cls(sympy.Symbol(kind), S.Zero, x, *data)  # type: ignore[return-value]

    def _eval_is_real(self) -> bool:
        return True

    def taylor(self, centre: sympy.Expr, j: int) -> sympy.Expr:
        """The j-th Taylor coefficient about `centre`, itself an infinitesimal or 0."""
        kind, order, _, *data = self.args
        order = int(order)
        if centre != 0:
            return Germ(kind, sympy.Integer(order + j), centre, *data) / sympy.factorial(j)
        i = order + j
        coefficient = sympy.ff(i, order) * KINDS[kind.name](i, *data)  # type: ignore[attr-defined]
        if coefficient.has(S.NaN, S.ComplexInfinity, S.Infinity, S.NegativeInfinity):
            raise Undecidable(f"{self.plain_name()} has no power series at its limit")
        return coefficient

    def plain_name(self) -> str:
        """The function that the germ belongs to."""
        kind, _, _, *data = self.args
        return str(data[0].expr) if data and isinstance(data[0], sympy.Lambda) else str(kind)

    def plain(self) -> sympy.Expr:
        """The germ in ordinary functions, or as the O of its first term."""
        kind, order, x, *data = self.args
        if order == 0 and kind.name == "taylor":  # type: ignore[attr-defined]
            function, point = data
            return function(point + x)  # type: ignore[operator]
        if order == 0 and kind.name in ("sin", "cos"):  # type: ignore[attr-defined]
            return getattr(sympy, kind.name)(x)  # type: ignore[attr-defined]
        head, i = S.Zero, int(order)
        rule = KINDS[kind.name]  # type: ignore[attr-defined]
        if order == 0 and rule(0, *data) != 0:
            head, i = rule(0, *data), 1
        while rule(i, *data) == 0:
            i += 1
        return head + sympy.Function("O")(x ** (i - int(order)))
