"""Closed forms and asymptotic laws against certified balls, sums and radii."""

from __future__ import annotations

import math

import mpmath
import pytest
import sympy

from trf.errors import DivergenceError, ParameterError, UndecidedError
from trf.series.closed_form import closed_form
from trf.series.closed_rules import EPS, J, theta3
from trf.series.leading import leading
from trf.theory import growth_law, theoretical_receptive_field

N = sympy.Symbol("N", integer=True, positive=True)
QUARTER = sympy.Rational(1, 4)

FORMS = [
    ("-m*n", {"m": QUARTER}),
    ("-m*n - c", {"m": 2, "c": QUARTER}),
    ("-r1*log(1+r2*n)", {"r1": sympy.Rational(5, 2), "r2": QUARTER}),
    ("-2*log(n)", {}),
    ("-3*log(n-4)", {}),
    ("-log(1+(k*n)^2)", {"k": QUARTER}),
    ("-log(n^2-3*n+7)", {}),
]


@pytest.mark.parametrize(("bias", "values"), FORMS)
def test_total_partial_sum_and_tail_against_a_plain_sum(bias, values):
    form = closed_form(bias)
    at = {symbol: values[symbol.name] for symbol in form.bias.parameters}
    function = sympy.lambdify(sympy.Symbol("n", integer=True, nonnegative=True),
                              sympy.exp(form.bias.expr.subs(at)), "mpmath")  # fmt: skip
    five = mpmath.fsum(function(mpmath.mpf(form.start + n)) for n in range(5))
    found = {
        name: complex(getattr(form, name).subs({**at, J: 5}).evalf(20)).real
        for name in ("total", "partial_sum", "tail")
    }
    assert found["partial_sum"] == pytest.approx(float(five), rel=1e-13)
    assert found["partial_sum"] + found["tail"] == pytest.approx(found["total"], rel=1e-13)
    field = theoretical_receptive_field(bias, parameters=values)
    assert found["total"] == pytest.approx(float(field.total), rel=1e-13)
    assert form.checked


def test_the_radius_of_the_geometric_series_is_exact():
    form = closed_form("-m*n")
    (m,) = form.bias.parameters
    for slope in (sympy.Rational(1, 2), sympy.Rational(1, 256)):
        for eps in (sympy.Rational(1, 10), sympy.Rational(1, 1000)):
            wanted = theoretical_receptive_field("-m*n", eps, m=slope).radius
            assert form.radius.subs({m: slope, EPS: eps}) == wanted
    assert form.radius.subs({m: sympy.log(2), EPS: sympy.Rational(1, 8)}) == 4


def test_the_condition_of_the_hurwitz_form():
    form = closed_form("-r1*log(1+r2*n)")
    assert str(form.domain) == "r1 > 1"
    assert "zeta" in str(form.total)


def test_theta_function():
    form = closed_form("-y*n^2")
    (y,) = form.bias.parameters
    direct = 0.5 + 0.5 * float(mpmath.jtheta(3, 0, mpmath.exp(-0.3)))
    assert float(form.total.subs(y, sympy.Rational(3, 10)).evalf()) == pytest.approx(direct)
    assert float(theta3(sympy.Rational(1, 2)).evalf(20)) == pytest.approx(
        1 + 2 * sum(0.5 ** (n * n) for n in range(1, 9))
    )
    low, high = (float(b.subs({y: 1, J: 3}).evalf()) for b in form.tail_bounds)
    assert low < sum(math.exp(-n * n) for n in range(3, 12)) < high


def test_windows_and_constants():
    window = closed_form("Piecewise((0, n < w), (-oo, True))", assume={"w": "positive integer"})
    (w,) = window.bias.parameters
    assert window.radius.subs({w: 5, EPS: sympy.Rational(1, 5)}) == 5
    none = closed_form("0", length=512)
    assert none.radius.subs(EPS, sympy.Rational(1, 2)) == 257
    assert none.partial_sum.subs(J, 600) == 512


@pytest.mark.parametrize(
    ("bias", "length"), [("-m*n", N), ("-log(1+n)", N), ("-r*log(1+n)", N), ("-2*log(n)", 9)]
)
def test_finite_lengths(bias, length):
    form = closed_form(bias, length=length)
    assert form.length == length
    assert form.checked


@pytest.mark.parametrize("eps", ["1/1000000", "1/1000000000000"])
@pytest.mark.parametrize(
    ("bias", "values"),
    [
        ("-r1*log(1+r2*n)", {"r1": sympy.Rational(3, 2), "r2": 2}),
        ("-log(1+(k*n)^2)", {"k": sympy.Rational(1, 8)}),
        ("-r1*log(1+r2*n^r3)", {"r1": 1, "r2": 2, "r3": 2}),
        ("-2*log(1+n)+log(1+log(1+n))", {}),
    ],
)
def test_asymptotic_radii_are_approached(bias, values, eps):
    form = closed_form(bias)
    assert form.radius is None
    assert not form.logarithmic
    field = theoretical_receptive_field(bias, eps, parameters=values)
    at = {symbol: values[symbol.name] for symbol in form.bias.parameters}
    at |= {sympy.Symbol("B", positive=True): float(field.total), EPS: sympy.Rational(eps)}
    ratio = field.radius / float(form.asymptotic_radius.subs(at).evalf())
    slack = 0.35 if "log(1+log" in bias else 0.02
    assert ratio == pytest.approx(1, abs=slack)


@pytest.mark.parametrize(
    ("bias", "values", "eps"),
    [
        ("-log(n+3)-b*log(log(n+3))", {"b": 2}, "1/1000"),
        ("-log(1+n)-c*sqrt(log(1+n))", {"c": 1}, "1/1000000000000000000"),
        ("-c*log(1+n)^2", {"c": 1}, "1/" + "1" + "0" * 400),
    ],
)
def test_logarithmic_asymptotics_are_approached(bias, values, eps):
    form = closed_form(bias)
    assert form.logarithmic
    field = theoretical_receptive_field(bias, eps, parameters=values)
    at = {symbol: values[symbol.name] for symbol in form.bias.parameters}
    at |= {sympy.Symbol("B", positive=True): float(field.total), EPS: sympy.Rational(eps)}
    ratio = math.log(field.radius) / float(sympy.log(form.asymptotic_radius.subs(at)).evalf())
    assert ratio == pytest.approx(1, abs=0.3)


def test_divergent_and_unknown_forms_say_so():
    for bias in ("0", "-log(1+n)", "-log(1+n)/2"):
        with pytest.raises(DivergenceError, match="length=N"):
            closed_form(bias)
    with pytest.raises(UndecidedError, match="no closed form is known"):
        closed_form("-n+sin(n)")
    with pytest.raises(ParameterError, match="length"):
        closed_form("-n", length=-3)


def test_forms_print():
    form = closed_form("-log(1+(k*n)^2)")
    assert "digamma" in str(form)
    assert form._repr_latex_().startswith("$")
    assert form.to_dict()["name"] == "digamma function"
    assert "~" in str(closed_form("-r1*log(1+r2*n^r3)"))


def test_a_form_that_is_wrong_is_not_returned(monkeypatch):
    """The check can fail: a total that is off by one part in a million is refused."""
    from trf.series import closed_form as module

    honest = module.geometric

    def off(p, n, length):
        make = honest(p, n, length)
        if make is None:
            return None
        from dataclasses import replace

        return lambda bias: replace(
            make(bias), total=make(bias).total * (1 + sympy.Rational(1, 10**6))
        )

    monkeypatch.setattr(module, "geometric", off)
    with pytest.raises(UndecidedError, match="disagrees"):
        closed_form("-m*n")


@pytest.mark.parametrize(
    ("bias", "law", "bounded"),
    [
        ("0", "N*(1 - eps)", False),
        ("-log(1+n)", "N**(1 - eps)", False),
        ("-log(1+n)/2", "N*(1 - eps)**2", False),
        ("log(1+n)", "N*sqrt(1 - eps)", False),
        ("-log(3+n)-log(log(3+n))", "exp(log(N)**(1 - eps))", False),
        ("-log(3+n)-log(log(3+n))/2", "N**((1 - eps)**2)", False),
        ("-n", "TRF", True),
        ("-2*log(1+n)", "TRF", True),
        ("Piecewise((-n/9, n < 99), (-11, True))", "N*(1 - eps)", False),
    ],
)
def test_growth_laws(bias, law, bounded):
    found = growth_law(bias)
    assert (str(found.law), found.bounded) == (law, bounded)


def test_growth_that_the_parameters_decide():
    found = growth_law("-r1*log(1+r2*n)")
    assert found.bounded is None
    (r1,) = (s for s in found.bias.parameters if s.name == "r1")
    assert str(found.law.subs(r1, 1)) == "N**(1 - eps)"
    assert str(found.law.subs(r1, 2)) == "TRF"
    assert "grows like" in str(found)


def test_growth_laws_against_radii():
    for bias, eps in (("-log(1+n)/2", 0.25), ("0", 0.1)):
        law = growth_law(bias).law.subs({EPS: sympy.Rational(str(eps)), "N": 10**12})
        law = law.subs(sympy.Symbol("N", integer=True, positive=True), 10**12)
        radius = theoretical_receptive_field(bias, eps, length=10**12).radius
        assert radius / float(law) == pytest.approx(1, rel=1e-4)
    small, large = (
        theoretical_receptive_field("-log(1+n)", "1/2", length=10**k).radius for k in (20, 40)
    )
    assert math.log(large / small) == pytest.approx(10 * math.log(10), rel=1e-3)


def test_growth_outside_the_class_is_undecided():
    with pytest.raises(UndecidedError, match="length=N"):
        growth_law("sin(n)")


def test_leading_behaviour():
    n, r = sympy.symbols("n r", positive=True)
    found = leading(-r * sympy.log(1 + 3 * n**2) - 2 * sympy.log(sympy.log(n + 7)), n)
    assert (found.power, found.iterated, found.heavy) == (2 * r, 2, None)
    assert leading(-n + 5 * sympy.sqrt(n), n).heavy == ("power", 1, 1)
    assert leading(sympy.sin(n), n) is None
