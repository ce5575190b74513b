"""Closed forms of the total, the partial sum, the tail and the radius, in the parameters.

==============================  ====================================================================
``p(n)``                        in closed form
==============================  ====================================================================
``c - a*n``                     everything (geometric series)
``c - r*log(k*n+b)``            total, partial sum, tail (Hurwitz zeta, NIST DLMF 25.11.1)
``c - log(a*(n+d)^2 + b)``      total, partial sum, tail (digamma of a complex argument, DLMF 5.7.6)
``c - r*n^2``                   total (Jacobi's theta function, DLMF 20.2.3)
``c`` for n < w, else -oo       everything (window)
``c - r*n^a``                   bounds on the tail (incomplete gamma, DLMF 8.2.2)
constant, at a length N         everything
==============================  ====================================================================

At a length N: the geometric series, the window, the constant, and ``c - r*log(k*n+b)`` (for r = 1
by digamma functions). Everywhere else the asymptotic form of the radius for eps -> 0 is given,
where `trf.series.leading` finds it, and called asymptotic.

A form is returned only after it was found inside the certified ball at sampled parameters.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import flint
import sympy
from flint import arb

from trf.errors import DivergenceError, ParameterError, UndecidedError
from trf.expression import Bias, Domain, as_bias, distance
from trf.series.closed_rules import (
    EPS,
    TOTAL,
    ClosedForm,
    J,
    constant,
    first,
    geometric,
    hurwitz,
    power,
    quadratic,
    theta,
    window,
)
from trf.series.convergence import converges
from trf.series.enclosure import NoEnclosureError, enclose, first_index, truncate
from trf.series.integrals import DivergentIntegral
from trf.series.inversion import Share, radius
from trf.series.leading import leading, radius_for_small_eps
from trf.series.spans import NotRegularError
from trf.series.tails import Series
from trf.series.verdict import Status

DIGITS = 25


def closed_form(
    bias: Any, *, length: Any = None, assume: dict[str, Domain] | None = None
) -> ClosedForm:
    """The closed forms of a bias, parameters left free.

    Args:
        bias: p(n), as `trf.expression.as_bias` takes it.
        length: None for the limit; N, an int or a symbol, for the first N terms.
        assume: domains of parameters that are not positive reals.

    Returns:
        A `ClosedForm`; the fields that are not known are None.

    Raises:
        DivergenceError: the series diverges whatever the parameters, and no length is given.
        UndecidedError: nothing is known in closed form, not even the radius for small eps.

    References: the table in the docstring of this module.

    Examples:
        >>> form = closed_form("-m*n")
        >>> form.total, form.radius
        (1/(1 - exp(-m)), floor(log(1/eps)/m) + 1)
        >>> closed_form("-r1*log(1+r2*n)").domain
        r1 > 1
    """
    read = as_bias(bias, assume)
    n = sympy.Symbol("n", nonnegative=True)
    p = sympy.expand_mul(sympy.expand_log(read.expr.xreplace({distance(): n})))
    if length is not None:
        length = sympy.sympify(length)
        if length.is_number and not (length.is_Integer and length > 0):
            raise ParameterError(f"length must be a positive integer or a symbol, got {length}")
        found = first((constant, window, geometric, hurwitz), p, n, length)
    else:
        found = first((window, geometric, hurwitz, quadratic, theta, power), p, n, None)
    form = ClosedForm(read, "asymptotics") if found is None else found(read)
    if length is None and form.radius is None:
        form = _with_asymptotics(form, p, n)
    if form.domain == False or _diverges(form, read):  # noqa: E712
        raise DivergenceError(
            f"the sum of exp({read.expr}) diverges: give length=N, a number or a symbol, for the "
            "closed form of the first N terms"
        )
    if not any(True for _ in form.known()):
        raise UndecidedError(
            f"no closed form is known for the sum of exp({read.expr})"
            + ("" if length is None else f" over {length} terms")
            + "; theoretical_receptive_field gives its radius for given parameters"
        )
    return _checked(form)


def _diverges(form: ClosedForm, bias: Bias) -> bool:
    unknown = form.length is None and not any(True for _ in form.known())
    return unknown and converges(bias).status is Status.DIVERGES


def _with_asymptotics(form: ClosedForm, p: Any, n: sympy.Symbol) -> ClosedForm:
    behaviour = leading(p, n)
    if behaviour is None:
        return form
    total = TOTAL if form.total is None else form.total
    found = radius_for_small_eps(behaviour, total, EPS)
    if found is None:
        return form
    value, logarithmic, condition = found
    return replace(
        form,
        asymptotic_radius=value,
        logarithmic=logarithmic,
        domain=sympy.And(form.domain, condition),
    )


def _checked(form: ClosedForm) -> ClosedForm:
    """The form, if the certified ball confirms it wherever it is sampled."""
    confirmed = []
    for values in itertools.islice(_samples(form), 3):
        if not _agrees(form, values):
            raise UndecidedError(
                f"the closed form of {form.bias.source} disagrees with the certified sum at "
                f"{values}; it is not returned"
            )
        confirmed.append({str(symbol): value for symbol, value in values.items()})
    return replace(form, checked=tuple(confirmed))


def _samples(form: ClosedForm) -> Iterator[dict[sympy.Symbol, Any]]:
    """Parameter values in the domains that fulfil the condition."""
    symbols: list[Any] = list(form.bias.parameters)
    if isinstance(form.length, sympy.Symbol):
        symbols.append(form.length)
    values = [sympy.Rational(3, 2), sympy.Integer(3), sympy.Rational(1, 2), sympy.Integer(7)]
    for shift in range(len(values) ** max(1, len(symbols))):
        choice = {}
        for place, symbol in enumerate(symbols):
            value = values[(shift // len(values) ** place + place) % len(values)]
            if symbol == form.length or symbol.is_integer:
                value = sympy.Integer(5 + 7 * (shift % 3))
            choice[symbol] = value
        allowed = all(_allowed(symbol, value) for symbol, value in choice.items())
        if allowed and form.domain.subs(choice) == True:  # noqa: E712
            yield choice
        if not symbols:
            return


def _allowed(symbol: Any, value: Any) -> bool:
    facts = {**symbol.assumptions0, **({"integer": None} if symbol.is_integer is None else {})}
    wanted = {key: fact for key, fact in facts.items() if key in ("positive", "negative", "even")}
    return all(fact is None or getattr(value, f"is_{key}") == fact for key, fact in wanted.items())


def _agrees(form: ClosedForm, values: dict[Any, Any]) -> bool:
    n = distance()
    p = form.bias.expr.subs(values)
    try:
        if form.length is None:
            series = enclose(p, n)
        else:
            series = truncate(p, n, int(form.length.subs(values)))
        return _inside(form, values, series) and first_index(p, n) == form.start
    except (NoEnclosureError, NotRegularError, DivergentIntegral):
        return form.total is None and form.tail is None and form.radius is None


def _inside(form: ClosedForm, values: dict[Any, Any], series: Series) -> bool:
    checks = [(form.total, {}, series.total(100))]
    for j in (1, 4):
        checks.append((form.partial_sum, {J: j}, series.mass(j, 100)))
        checks.append((form.tail, {J: j}, series.tail(j, 100)))
    for expression, at, ball in checks:
        if expression is not None and not _near(expression.subs({**values, **at}), ball):
            return False
    if form.tail_bounds is not None:
        low, high = (_float(bound.subs({**values, J: 4})) for bound in form.tail_bounds)
        tail = float(series.tail(4, 100).mid())
        if not low * (1 - 1e-12) <= tail <= high * (1 + 1e-12):
            return False
    if form.radius is not None:
        for eps in (Fraction(3, 10), Fraction(1, 7), Fraction(1, 1000)):
            at = {**values, EPS: sympy.Rational(eps.numerator, eps.denominator)}
            if int(form.radius.subs(at)) != radius(series, Share(eps)):
                return False
    return True


def _near(expression: Any, ball: arb) -> bool:
    """Whether the value, good to `DIGITS` digits, meets the ball."""
    with flint.ctx.workprec(120):
        value = arb(str(sympy.re(expression.evalf(DIGITS + 5, maxn=400))))
        error = abs(value) * arb(10) ** -DIGITS + arb(10) ** -DIGITS
        return bool((value + arb(0, error.upper())).overlaps(ball))


def _float(expression: Any) -> float:
    return float(sympy.re(expression.evalf(20)))
