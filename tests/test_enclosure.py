"""The machinery of certified sums, piece by piece, against independent arithmetic."""

from __future__ import annotations

import cmath
import math
import random
from fractions import Fraction

import flint
import mpmath
import pytest
import sympy
from flint import arb

from trf.series.balls import Ball, Estimate, NotEvaluable, compile_expression, compile_term
from trf.series.discs import disc_bound, rises
from trf.series.enclosure import NoEnclosureError, direct, enclose, truncate
from trf.series.integrals import DivergentIntegral, tail_integral
from trf.series.inversion import Share, UndecidedTailError, below, radius
from trf.series.quadrature import area, quadrature
from trf.series.rationals import exact_weight
from trf.series.smoothing import majorant, smoothed
from trf.series.spans import NotRegularError
from trf.series.tails import FiniteSupport, Geometric, Hurwitz, PartialFractions, Uniform

N = sympy.Symbol("n", integer=True, nonnegative=True)
X = sympy.Symbol("n", positive=True)


def parse(text: str, symbol: sympy.Symbol = X) -> sympy.Expr:
    """Test expressions are trusted text."""
    return sympy.sympify(text, {"n": symbol})


SMOOTH = [
    "-2*log(1+n)",
    "-log(n+3)-2*log(log(n+3))",
    "-n**Rational(3,4)",
    "-log(1+(n/2)**2)",
    "-log(3+n/256)**2",
    "log(1+log(1+n/16))-2*log(1+n/16)",
    "-log(1+n)-2*sqrt(log(1+n))",
    "-n**2/50",
    "-n+2*sqrt(n)",
    "-2*log(n-10)",
    "-Rational(5,2)*log(n**2-3*n+7)",
    "2*log(1+n)-n/3",
    "-log(1+n)**Rational(3,2)",
    "-sqrt(n)*log(1+n)",
    "-loggamma(n+1)/50",
    "-n/9-log((1+exp(-2*n/9))/2)",
    "-Rational(11,10)*log(n+2)-1/(n+1)",
    "-n*(1-exp(-n))/(1+exp(-n))/40",
    "-n**2/(n+5)/9",
    "-n/(1+log(1+n))/9",
    "-sqrt(n)/log(n+2)**2",
]


@pytest.mark.parametrize("text", SMOOTH)
def test_disc_bounds_hold_at_sampled_points(text):
    """|f(z)| <= height*(x/N)^growth on discs around real x >= N, and the decay is a lower bound."""
    p = parse(text)
    function = sympy.lambdify(X, p, ["mpmath"])
    chance = random.Random(text)
    found = 0
    for start, tau in ((20, 0.3), (60, 0.5), (60, 0.1), (400, 0.35)):
        try:
            bound = disc_bound(p, X, arb(start), arb(tau))
        except NotRegularError:
            continue
        found += 1
        height, growth, decay = float(bound.height.log()), float(bound.growth), float(bound.decay)
        for _ in range(40):
            x = start * 10 ** chance.uniform(0, 4)
            z = x * (1 + tau * chance.random() * cmath.exp(2j * math.pi * chance.random()))
            value = mpmath.re(function(mpmath.mpmathify(z)))
            assert value <= height + growth * math.log(x / start) + 1e-9
            slope = mpmath.diff(lambda y: mpmath.re(function(y)), mpmath.mpf(x)) * x
            assert -slope >= decay - 1e-6 * max(1, abs(decay))
    assert found


@pytest.mark.parametrize("text", ["-n/9+sqrt(n)", "sqrt(n)-log(1+n)", "-n*exp(-n/50)", "n/40"])
def test_disc_bounds_on_a_stretch(text):
    """With an end, growing exponents have a bound too."""
    p = parse(text)
    function = sympy.lambdify(X, p, ["mpmath"])
    chance = random.Random(text)
    for start, end, tau in ((3, 20, 0.3), (20, 300, 0.1)):
        bound = disc_bound(p, X, arb(start), arb(tau), arb(end))
        for _ in range(60):
            x = chance.uniform(start, end)
            z = x * (1 + tau * chance.random() * cmath.exp(2j * math.pi * chance.random()))
            value = mpmath.re(function(mpmath.mpmathify(z)))
            assert (
                value
                <= float(bound.height.log()) + float(bound.growth) * math.log(x / start) + 1e-9
            )


def test_discs_refuse_what_they_cannot_bound():
    for text in ("sin(n)", "-log(5-n)", "log(n)-sqrt(n-100)", "exp(n)", "-floor(n)"):
        with pytest.raises(NotRegularError):
            disc_bound(parse(text), X, arb(20), arb(0.3))
    assert rises(parse("log(1+n)"), X, arb(5))
    assert not rises(parse("1/n"), X, arb(5))


CLOSED = [
    ("-2*log(1+n)", "power"),
    ("-log(n+3)-2*log(log(n+3))", "power"),
    ("-n**Rational(3,4)", "incomplete gamma"),
    ("-log(1+(n/2)**2)", "Gauss hypergeometric"),
    ("-log(3+n/256)**2", "error function"),
    ("log(1+log(1+n/16))-2*log(1+n/16)", "incomplete gamma"),
    ("-log(1+n)-2*sqrt(log(1+n))", "incomplete gamma"),
    ("-n**2/9+n", "error function"),
    ("-3*log(2*n+7)-n/5", "incomplete gamma"),
    ("-2*log(1+n**2)-log(n)", "Gauss hypergeometric"),
    ("-log(n+20)-log(log(n+20))-3*log(log(log(n+20)))", "power"),
]


@pytest.mark.parametrize(("text", "name"), CLOSED)
def test_tail_integrals_by_their_derivative_and_by_quadrature(text, name):
    p = parse(text)
    closed = tail_integral(sympy.expand_log(p), X)
    assert closed is not None
    assert closed.name == name
    function = sympy.lambdify(X, sympy.exp(p), "mpmath")
    with flint.ctx.workprec(200):
        for a in (20, 1000):
            step = mpmath.quad(function, [a, a + 1, a + 2])
            low, high = closed.evaluate(arb(a)), closed.evaluate(arb(a + 2))
            assert float(low - high) == pytest.approx(float(step), rel=1e-12)
            assert low > high > 0
        far = closed.evaluate(arb(10) ** 60)
        assert far < closed.evaluate(arb(1000))


@pytest.mark.parametrize("text", ["-log(n)", "-log(n+3)-log(log(n+3))", "0", "n", "-log(1+n**2)/2"])
def test_divergent_integrals_are_seen(text):
    with pytest.raises(DivergentIntegral):
        tail_integral(parse(text), X)


@pytest.mark.parametrize(
    "text", ["-2*log(1+n)", "-log(3+n/256)**2", "-n**Rational(3,4)", "-log(n+3)-3*log(log(n+3))"]
)
def test_certified_quadrature_against_closed_forms(text):
    p = parse(text)
    closed, numeric = tail_integral(p, X), quadrature(p, X)
    assert closed is not None
    for precision in (64, 160):
        with flint.ctx.workprec(precision + 32):
            for a in (80, 500):
                exact, found = closed.evaluate(arb(a)), numeric(arb(a))
                assert found.overlaps(exact)
                assert found.rel_accuracy_bits() > precision - 20
    with flint.ctx.workprec(128):
        exact = closed.evaluate(arb(80)) - closed.evaluate(arb(5000))
        assert area(p, X)(arb(80), arb(5000)).overlaps(exact)


def test_quadrature_of_two_shifts_is_bracketed_by_one():
    numeric = quadrature(parse("-log(n+2)-2*log(log(n+3))"), X)
    with flint.ctx.workprec(128):
        value = numeric(arb(100))
        assert 1 / arb(103).log() < value < 1 / arb(102).log()
        assert value.rel_accuracy_bits() > 80


@pytest.mark.parametrize("text", [t for t in SMOOTH if "n-10" not in t])
@pytest.mark.parametrize("precision", [64, 200])
def test_tails_agree_with_direct_differences(text, precision):
    """T(j) - T(j+k) is a sum of k terms, summed here in mpmath."""
    series = enclose(parse(text, N), N)
    function = sympy.lambdify(N, sympy.exp(parse(text, N)), "mpmath")
    with mpmath.workdps(80):
        for j, k in ((0, 7), (40, 90), (300, 20)):
            direct_sum = mpmath.fsum(function(mpmath.mpf(n)) for n in range(j, j + k))
            with flint.ctx.workprec(precision + 32):
                difference = series.tail(j, precision) - series.tail(j + k, precision)
                close = arb(mpmath.nstr(direct_sum, 75)) + arb(0, 1) * arb(10) ** -70
            assert difference.overlaps(close)


@pytest.mark.parametrize("text", ["-2*log(1+n)", "-sqrt(n)", "-log(n+3)-2*log(log(n+3))"])
def test_relative_accuracy_far_out(text):
    series = enclose(parse(text, N), N)
    for j in (10**6, 10**60):
        assert series.tail(j, 150).rel_accuracy_bits() > 100


def test_kinds_of_series():
    kinds = {
        "-n/3": Geometric,
        "-2*log(3+n)": Hurwitz,
        "-log(1+n)-log(2+n)": PartialFractions,
        "Piecewise((0, n<9), (-oo, True))": Uniform,
        "Piecewise((-n, n<9), (-oo, True))": FiniteSupport,
    }
    for text, kind in kinds.items():
        assert isinstance(enclose(parse(text, N), N), kind)


def test_partial_fractions_and_euler_maclaurin_agree():
    exact = enclose(parse("-log(1+n)-2*log(2*n+7)", N), N)
    other = enclose(parse("-log(1+n)-2*log(2*n+7)+Piecewise((0,n<1),(0,True))", N), N)
    assert isinstance(exact, PartialFractions)
    for j in (0, 5, 10**9):
        assert exact.tail(j, 100).overlaps(other.tail(j, 100))


def test_telescoping_tails_are_rational():
    series = enclose(parse("-log(1+n)-log(2+n)", N), N)
    assert series.exact_share(9) == Fraction(1, 10)
    assert enclose(parse("-log(1+n)-2*log(2+n)", N), N).exact_share(9) is None
    assert radius(series, Share(Fraction(1, 1000))) == 1000


def test_truncated_sums_of_divergent_series():
    for length in (10, 5000, 10**9):
        series = truncate(parse("-log(1+n)", N), N, length)
        with mpmath.workdps(40):
            harmonic = mpmath.harmonic(length)
            with flint.ctx.workprec(132):
                ball = arb(mpmath.nstr(harmonic, 38)) + arb(0, arb(10) ** -34)
        assert series.total(100).overlaps(ball)
    assert direct(parse("sin(n)", N), N, 50).total(64) > 0
    with pytest.raises(NoEnclosureError):
        truncate(parse("sin(n)", N), N, 10**6)


def test_starts():
    for text, start in (("-2*log(n)", 1), ("-log(n-6)*3", 7), ("-3*log(log(n))-2*log(n)", 2),
                        ("-2*log((n-4)**2)", 5), ("-n-1/n", 1), ("log(n)-n", 1)):  # fmt: skip
        assert enclose(parse(text, N), N).start == start


def test_a_comparison_that_stays_a_tie_is_not_guessed():
    series = enclose(parse("-n*log(3)", N), N)
    assert not below(series, 4, Share(Fraction(1, 81)), 64)
    assert below(series, 5, Share(Fraction(1, 81)), 64)

    class Silent(Geometric):
        def exact_share(self, j):
            return None

    with pytest.raises(UndecidedTailError, match="may be equal"):
        below(Silent(sympy.S.Zero, sympy.log(3)), 4, Share(Fraction(1, 81)), 64)


def test_balls():
    third = Ball.exact(Fraction(1, 3))
    assert Fraction(1, 3) in third
    assert Fraction(1, 3) + Fraction(1, 10**30) not in third
    assert third.upper - third.lower < Fraction(1, 10**36)
    assert float(third) == 1 / 3
    assert "+/-" in str(third)
    assert third.digits(5).startswith("[0.3333")
    assert "estimated" in str(Estimate(0.5, 1e-12))
    assert float(Estimate(0.5, 1e-12)) == 0.5


def test_compiled_expressions_know_their_domain():
    with flint.ctx.workprec(64):
        assert compile_term(parse("-2*log(n)"), X).at(0).is_nan()
        assert compile_term(parse("-2*log(n-3)"), X).at(1).is_nan()
        assert compile_term(parse("2*log(n)-n"), X).at(0).is_nan()
        assert compile_term(parse("Piecewise((0, n<5), (-oo, True))", N), N).at(5) == 0
        assert compile_expression(parse("floor(n/3)", N), N)(arb(9)) == 3
        assert compile_expression(sympy.pi * N + sympy.E, N)(arb(2)).contains(
            2 * arb.pi() + arb.const_e()
        )
    with pytest.raises(NotEvaluable, match="besselj"):
        compile_expression(sympy.besselj(0, N), N)


def test_exact_weights():
    weight = exact_weight(parse("-2*log(1+n)+log(3)", N), N)
    assert weight is not None
    assert weight(2) == Fraction(1, 3)
    assert exact_weight(parse("-n", N), N) is None
    assert exact_weight(parse("-log(1+n)/2", N), N) is None


def test_rewriting():
    assert smoothed(sympy.log(1 + sympy.exp(X)), X) == X + sympy.log(1 + sympy.exp(-X))
    assert smoothed(sympy.log(sympy.factorial(X)), X) == sympy.loggamma(X + 1)
    assert majorant(sympy.sin(X) - X, X) == 1 - X
    assert majorant(-X, X) is None
