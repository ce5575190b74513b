"""The rules behind `trf.series.closed_form`: one family each, with its reference there.

A rule takes p, n and the length (None for the limit) and gives what makes a `ClosedForm` of a
bias, or None where it does not fit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import mpmath
import sympy
from sympy.logic.boolalg import Boolean

from trf.expression import Bias

J = sympy.Symbol("j", integer=True, nonnegative=True)
EPS = sympy.Symbol("eps", positive=True)
TOTAL = sympy.Symbol("B", positive=True)


class theta3(sympy.Function):
    """Jacobi's ``theta_3(0, q) = 1 + 2*sum_{n>=1} q^(n^2)``, 0 <= q < 1 (NIST DLMF 20.2.3)."""

    nargs = 1

    def _eval_evalf(self, prec: int) -> Any:
        nome: Any = self.args[0]
        with mpmath.workprec(prec + 8):
            value = mpmath.jtheta(3, 0, nome._to_mpmath(prec + 8))
        return sympy.Float._new(value._mpf_, prec)

    def _latex(self, printer: Any) -> str:
        return rf"\theta_3\left(0, {printer.doprint(self.args[0])}\right)"


_LATEX = {
    "TRF(eps) =": r"\mathrm{TRF}(\varepsilon) =",
    "TRF(eps) ~": r"\mathrm{TRF}(\varepsilon) \sim",
    "log TRF(eps) ~ log": r"\log \mathrm{TRF}(\varepsilon) \sim \log",
    "tail(j) =": "B - B(j) =",
}


@dataclass(frozen=True)
class ClosedForm:
    """What is known of ``sum exp(p(n))`` in closed form; None where nothing is.

    Attributes:
        bias: what it is the closed form of.
        name: the function behind it.
        total: B, in the parameters.
        partial_sum: B(j), in ``j`` and the parameters.
        tail: ``B - B(j)``.
        tail_bounds: a lower and an upper bound of the tail, where the tail itself is not known.
        radius: TRF(eps), exactly.
        asymptotic_radius: its behaviour for eps -> 0, where it is not known exactly; ``B`` stands
            for the total.
        logarithmic: True if only ``log(radius) ~ log(asymptotic_radius)`` holds.
        domain: the condition on the parameters under which all this holds.
        start: the first n; j counts from there.
        length: N if the sum has N terms, else None.
        checked: the parameter values at which the certified ball confirmed it.
    """

    bias: Bias
    name: str
    total: Any = None
    partial_sum: Any = None
    tail: Any = None
    tail_bounds: tuple[Any, Any] | None = None
    radius: Any = None
    asymptotic_radius: Any = None
    logarithmic: bool = False
    domain: Boolean = sympy.true
    start: int = 0
    length: Any = None
    checked: tuple[dict[str, Any], ...] = ()

    def __str__(self) -> str:
        parts = [f"sum exp({self.bias.expr}) [{self.name}]"]
        for name, value in self.known():
            parts.append(f"{name} {value}")
        if self.domain is not sympy.true:
            parts.append(f"for {self.domain}")
        return "; ".join(parts)

    def known(self) -> Iterator[tuple[str, Any]]:
        where = "B =" if self.length is None else "B(N) ="
        rows = [
            (where, self.total),
            ("B(j) =", self.partial_sum),
            ("tail(j) =", self.tail),
            ("TRF(eps) =", self.radius),
            ("log TRF(eps) ~ log" if self.logarithmic else "TRF(eps) ~", self.asymptotic_radius),
        ]
        if self.tail_bounds is not None:
            low, high = self.tail_bounds
            rows.append(("tail(j) between", f"{low} and {high}"))
        return ((name, value) for name, value in rows if value is not None)

    def _repr_latex_(self) -> str:
        rows = [
            rf"{_LATEX.get(name, name)} {sympy.latex(value)}"
            for name, value in self.known()
            if not isinstance(value, str)
        ]
        body = r" \\ ".join("&" + row for row in rows)
        return rf"$\displaystyle \begin{{aligned}}{body}\end{{aligned}}$"

    def to_dict(self) -> dict[str, Any]:
        """JSON-able: the formulas as text."""
        return {
            "bias": str(self.bias.expr),
            "name": self.name,
            **{name.rstrip("= ~"): str(value) for name, value in self.known()},
            "domain": str(self.domain),
            "start": self.start,
            "length": None if self.length is None else str(self.length),
        }


Maker = Callable[[Bias], ClosedForm]
Rule = Callable[[Any, sympy.Symbol, Any], "Maker | None"]


def first(rules: tuple[Rule, ...], p: Any, n: sympy.Symbol, length: Any) -> Maker | None:
    for rule in rules:
        found = rule(p, n, length)
        if found is not None:
            return found
    return None


def constant(p: Any, n: sympy.Symbol, length: Any) -> Maker | None:
    if p.has(n):
        return None
    return _equal_weights(p, length, length, "constant")


def _equal_weights(c: Any, count: Any, length: Any, name: str) -> Maker:
    weight = sympy.exp(c)
    return lambda bias: ClosedForm(
        bias,
        name,
        total=count * weight,
        partial_sum=sympy.Min(J, count) * weight,
        tail=sympy.Max(count - J, 0) * weight,
        radius=sympy.floor((1 - EPS) * count) + 1,
        length=length,
    )


def window(p: Any, n: sympy.Symbol, length: Any) -> Maker | None:
    if not (isinstance(p, sympy.Piecewise) and len(p.args) == 2):
        return None
    cases: Any = p.args
    (value, condition), (rest, _) = cases
    if rest != -sympy.oo or value.has(n) or not isinstance(condition, sympy.Lt):
        return None
    width: Any = condition.rhs
    if condition.lhs != n or width.has(n) or not width.is_integer:
        return None
    count = width if length is None else sympy.Min(width, length)
    return _equal_weights(value, count, length, "window")


def geometric(p: Any, n: sympy.Symbol, length: Any) -> Maker | None:
    offset, bound = p.as_independent(n, as_Add=True)
    scale, core = bound.as_independent(n, as_Add=False)
    if core != n:
        return None
    a = -scale
    weight, ratio = sympy.exp(offset), 1 - sympy.exp(-a)
    if length is None:
        return lambda bias: ClosedForm(
            bias,
            "geometric series",
            total=weight / ratio,
            partial_sum=weight * (1 - sympy.exp(-a * J)) / ratio,
            tail=weight * sympy.exp(-a * J) / ratio,
            radius=sympy.floor(sympy.log(1 / EPS) / a) + 1,
            domain=_condition(a > 0),
        )
    whole = 1 - sympy.exp(-a * length)
    return lambda bias: ClosedForm(
        bias,
        "geometric series",
        total=weight * whole / ratio,
        partial_sum=weight * (1 - sympy.exp(-a * J)) / ratio,
        tail=weight * (sympy.exp(-a * J) - sympy.exp(-a * length)) / ratio,
        radius=sympy.floor(-sympy.log(1 - (1 - EPS) * whole) / a) + 1,
        domain=_condition(a > 0),
        length=length,
    )


def hurwitz(p: Any, n: sympy.Symbol, length: Any) -> Maker | None:
    offset, bound = p.as_independent(n, as_Add=True)
    scale, core = bound.as_independent(n, as_Add=False)
    if not isinstance(core, sympy.log):
        return None
    k = sympy.diff(core.args[0], n)
    if k.has(n) or not k.is_positive:
        return None
    shift = sympy.expand(core.args[0] / k - n)
    if not (shift.is_nonnegative or shift.is_Rational):
        return None
    r, weight = -scale, sympy.exp(offset) * k**scale
    start = 0 if shift.is_positive else int(sympy.floor(-shift)) + 1
    first = shift + start

    def beyond(j: Any) -> Any:
        return sympy.zeta(r, first + j)

    if length is None:
        return lambda bias: ClosedForm(
            bias,
            "Hurwitz zeta function",
            total=weight * beyond(0),
            partial_sum=weight * (beyond(0) - beyond(J)),
            tail=weight * beyond(J),
            domain=_condition(r > 1),
            start=start,
        )
    if r == 1:

        def below(j: Any) -> Any:
            return sympy.digamma(first + j) - sympy.digamma(first)
    else:

        def below(j: Any) -> Any:
            return beyond(0) - beyond(j)

    terms = length - start
    return lambda bias: ClosedForm(
        bias,
        "digamma function" if r == 1 else "Hurwitz zeta function",
        total=weight * below(terms),
        partial_sum=weight * below(J),
        tail=weight * (below(terms) - below(J)),
        domain=sympy.true if r == 1 else _condition(sympy.Ne(r, 1)),
        start=start,
        length=length,
    )


def quadratic(p: Any, n: sympy.Symbol, length: Any) -> Maker | None:
    offset, bound = p.as_independent(n, as_Add=True)
    scale, core = bound.as_independent(n, as_Add=False)
    if scale != -1 or not isinstance(core, sympy.log) or not core.args[0].is_polynomial(n):
        return None
    polynomial = sympy.Poly(core.args[0], n)
    if polynomial.degree() != 2:
        return None
    a, b, c = polynomial.all_coeffs()
    shift, height = b / (2 * a), sympy.simplify(c / a - (b / (2 * a)) ** 2)
    if not (a.is_positive and height.is_positive):
        return None
    width, weight = sympy.sqrt(height), sympy.exp(offset) / a

    def beyond(j: Any) -> Any:
        return weight * sympy.im(sympy.digamma(j + shift + sympy.I * width)) / width

    total = beyond(sympy.S.Zero)
    if shift == 0:
        ratio = sympy.pi * width
        total = weight * (1 + ratio * sympy.coth(ratio)) / (2 * height)
    return lambda bias: ClosedForm(
        bias,
        "digamma function",
        total=sympy.expand(total) if shift == 0 else total,
        partial_sum=total - beyond(J),
        tail=beyond(J),
    )


def theta(p: Any, n: sympy.Symbol, length: Any) -> Maker | None:
    monomial = _monomial(p, n)
    if monomial is None or monomial[2] != 2:
        return None
    offset, r, _ = monomial
    nome: Any = theta3(sympy.exp(-r))
    total = sympy.exp(offset) * (1 + nome) / 2
    low, high = _gamma_bounds(offset, r, sympy.Integer(2))
    return lambda bias: ClosedForm(
        bias, "Jacobi theta function", total=total, tail_bounds=(low, high),
        domain=_condition(r > 0),
    )  # fmt: skip


def power(p: Any, n: sympy.Symbol, length: Any) -> Maker | None:
    monomial = _monomial(p, n)
    if monomial is None:
        return None
    offset, r, a = monomial
    bounds = _gamma_bounds(offset, r, a)
    return lambda bias: ClosedForm(
        bias, "incomplete gamma bounds", tail_bounds=bounds, domain=_condition(r > 0)
    )


def _monomial(p: Any, n: sympy.Symbol) -> tuple[Any, Any, Any] | None:
    """``(c, r, a)`` for ``c - r*n^a``, a > 0."""
    offset, bound = p.as_independent(n, as_Add=True)
    scale, core = bound.as_independent(n, as_Add=False)
    base, exponent = core.as_base_exp()
    if base != n or exponent.has(n) or not exponent.is_positive:
        return None
    return offset, -scale, exponent


def _gamma_bounds(offset: Any, r: Any, a: Any) -> tuple[Any, Any]:
    """``I(j) <= tail(j) <= I(j) + f(j)`` for a falling f, I its tail integral."""
    area = sympy.exp(offset) * sympy.uppergamma(1 / a, r * J**a) / (a * r ** (1 / a))
    return area, area + sympy.exp(offset - r * J**a)


def _condition(relation: Any) -> Any:
    return sympy.true if relation == True else relation  # noqa: E712
