"""The theoretical receptive field against known answers, brute force and its own definition."""

from __future__ import annotations

import itertools
import json
import time
from fractions import Fraction
from pathlib import Path

import mpmath
import pytest
import sympy
from hypothesis import given, settings
from hypothesis import strategies as st

from trf import encodings
from trf.errors import DivergenceError, ExpressionError, ParameterError, UndecidedError
from trf.expression import as_bias, distance
from trf.series.balls import Ball
from trf.theory import theoretical_receptive_field as field

RADII = [
    json.loads(line)
    for line in (Path(__file__).parent / "data" / "radii.jsonl").read_text().splitlines()
]
EPS = (0.1, 0.05, 0.01, 0.001)


@pytest.mark.parametrize("case", RADII, ids=lambda c: f"{c['p']} {c['params']} {c['eps']}")
def test_known_radii_to_the_last_digit(case):
    found = field(case["p"], case["eps"], parameters=case["params"])
    assert str(found.radius) == case["radius"]
    assert found.certified
    assert isinstance(found.total, Ball)
    with mpmath.workdps(40):
        known = mpmath.mpf(case["total"])
        unit = abs(known) * mpmath.mpf(10) ** -28
        low, high = found.total.lower, found.total.upper
        assert mpmath.mpf(low.numerator) / low.denominator <= known + unit
        assert mpmath.mpf(high.numerator) / high.denominator >= known - unit


def test_no_known_radius_takes_two_seconds():
    """Processor time, from text to the last digit; the longest has 601 digits."""
    from trf.theory.kernels import limit_series

    limit_series.cache_clear()
    for case in RADII:
        start = time.process_time()
        field(case["p"], case["eps"], parameters=case["params"])
        assert time.process_time() - start < 2


def test_a_radius_of_a_thousand_digits():
    start = time.process_time()
    found = field("-r1*log(1+r2*n)", "1/1000", r1="1003/1000", r2="1/10")
    assert time.process_time() - start < 2
    assert len(str(found.radius)) == 1001
    with mpmath.workdps(1100):
        a, s = mpmath.mpf(10), mpmath.mpf(1003) / 1000
        limit = mpmath.zeta(s, a) / 1000
        j = mpmath.mpf(found.radius)
        # Euler-Maclaurin by hand: at 10^1000 four terms are good to 4000 digits.
        x = a + j

        def tail(x):
            return x ** (1 - s) / (s - 1) + x**-s / 2 + s * x ** (-s - 1) / 12

        assert tail(x) < limit <= tail(x - 1)


@pytest.mark.parametrize(
    ("bias", "radii"),
    [
        ("-n/2", (5, 6, 10, 14)),
        ("-n/16", (37, 48, 74, 111)),
        ("-n/64", (148, 192, 295, 443)),
        ("-n/256", (590, 767, 1179, 1769)),
        ("-2*log(1+n)", (6, 12, 61, 608)),
        ("-log(1+(n/2)^2)", (12, 23, 111, 1099)),
        ("-log(1+(n/16)^2)", (100, 200, 1000, 9988)),
        ("-log(1+(n/256)^2)", (1615, 3250, 16277, 162773)),
        ("-log(1+n)^2", (4, 5, 9, 15)),
        ("-log(3+n/2)^2", (8, 11, 19, 34)),
        ("-log(3+n/16)^2", (65, 89, 154, 275)),
        ("-log(3+n/256)^2", (1039, 1423, 2467, 4397)),
    ],
)
def test_figures_of_the_literature(bias, radii):
    assert tuple(field(bias, eps).radius for eps in EPS) == radii


OTHERS = [
    "-n^2",
    "-n^2/9 + n",
    "-sqrt(n)*log(1+n)",
    "-sqrt(n) - n^(1/3)",
    "-5/2*log(n^2-3*n+7)",
    "-log(1+n)^(3/2)",
    "-3*log(2*n+7) - n/5",
    "2*log(1+n) - n/3",
    "-(n/2)^(5/4)",
    "-n^4/16",
    "-(n/3)^(3/4)/2",
    "-n + 2*sqrt(n)",
    "-2*log(n+2)*log(log(n+2)) - n/50",
]


@pytest.mark.parametrize("bias", OTHERS)
def test_against_brute_force_summation(bias):
    """An oracle that shares nothing with the enclosures: 60 digits, term by term."""
    with mpmath.workdps(40):
        function = sympy.lambdify(distance(), as_bias(bias).expr, "mpmath")
        terms = []
        for n in itertools.count():
            terms.append(mpmath.exp(function(mpmath.mpf(n))))
            if n > 60 and terms[-1] < mpmath.mpf(10) ** -13:
                break
            if n == 60_000:
                break
        rest = terms[-1] * len(terms)
        total, radii = mpmath.fsum(terms), {}
        for eps in EPS:
            mass = mpmath.mpf(0)
            for j, term in enumerate(terms, 1):
                mass += term
                if mass > (1 - mpmath.mpf(str(eps))) * total:
                    radii[eps] = j
                    break
        found = {eps: field(bias, eps) for eps in EPS}
        assert {eps: one.radius for eps, one in found.items()} == radii
        assert abs(float(found[0.1].total) - float(total)) <= 10 * float(rest) + 1e-13 * float(
            total
        )


ROUGH = [
    "-loggamma(n+1)",
    "-log(n!)/5",
    "-n+sin(n)",
    "-n/10+cos(n)/2-log(1+n)",
    "-floor(n/4)",
    "-n^2/100-ceiling(n/3)",
    "-exp(n/10)",
    "-Abs(n-20)/3",
    "-Max(n/4-3,0)",
    "-Min(n,20)-n/9",
    "-Heaviside(n-5)*n",
    "-acosh(1+n/5)*8",
    "-n*tanh(n)",
    "-log(cosh(n/9))",
    "-log(1+exp(n/20))",
    "log(sinh(n/9+1)/(1+n))-n/3",
    "-5*log((n-5)^2+1)",
]


@pytest.mark.parametrize("bias", ROUGH)
def test_rough_and_rewritten_biases_against_brute_force(bias):
    with mpmath.workdps(30):
        function = sympy.lambdify(distance(), as_bias(bias).expr, "mpmath")
        terms = [mpmath.exp(function(mpmath.mpf(n))) for n in range(1500)]
        total = mpmath.fsum(terms)
        for eps in (0.1, 0.013, 0.0001):
            mass, j = mpmath.mpf(0), 0
            while mass <= (1 - mpmath.mpf(str(eps))) * total:
                mass, j = mass + terms[j], j + 1
            found = field(bias, eps)
            assert found.radius == j
            assert found.certified
        assert float(found.total) == pytest.approx(float(total), rel=1e-11)


def test_a_fractional_power_in_a_logarithm_against_its_antiderivative():
    """(1+2*sqrt(n))^-3: 60,000 terms and the midpoint rule, whose error is below f'(N)/24."""

    def beyond(a):
        s = 1 + 2 * mpmath.sqrt(a)
        return (1 / s - 1 / (2 * s * s)) / 2

    with mpmath.workdps(30):
        terms = [(1 + 2 * mpmath.sqrt(n)) ** -3 for n in range(60_000)]
        total = mpmath.fsum(terms) + beyond(mpmath.mpf(60_000) - 0.5)
        for eps in EPS:
            mass, j = mpmath.mpf(0), 0
            while mass <= (1 - mpmath.mpf(str(eps))) * total:
                mass, j = mass + terms[j], j + 1
            found = field("-3*log(1+2*sqrt(n))", eps)
            assert found.radius == j
        assert abs(float(found.total) - float(total)) < 1e-10


def test_slow_tails_against_asymptotics():
    """1/(n log^2 n): the tail is 1/log j up to 1/j, so the radius is near exp(1/(eps*B))."""
    for shift in ("log(n+3)", "log(n+2)"):
        found = field(f"-log(n+3)-2*log({shift})", "1/20")
        total = float(found.total)
        assert abs(float(mpmath.log(found.radius)) - 20 / total) < 1e-4


def test_three_logarithms():
    found = field("-log(n+20)-log(log(n+20))-3*log(log(log(n+20)))", "1/10")
    assert found.certified
    assert float(found.tail(found.radius)) < 0.1 * float(found.total)
    assert float(found.tail(found.radius - 1)) >= 0.1 * float(found.total) * (1 - 1e-12)


@pytest.mark.parametrize("eps", ["1/2", "1/4", "1/8", "3/4", "1/3", "1/1048576"])
def test_ties_of_a_rational_geometric_series_are_exact(eps):
    """Weights 2^-n: the tail share beyond j is exactly 2^-j."""
    wanted = next(j for j in itertools.count(1) if Fraction(1, 2**j) < Fraction(eps))
    assert field("-n*log(2)", eps).radius == wanted


@pytest.mark.parametrize("eps", ["1/5", "2/5", "1/10", "999/1000", "1/1000000"])
def test_ties_of_a_window_are_exact(eps):
    wanted = next(j for j in range(1, 6) if Fraction(j, 5) > 1 - Fraction(eps))
    window = encodings.get("window")
    assert field(window, eps, w=5).radius == wanted
    assert field("Piecewise((0, n < 5), (-oo, True))", eps).radius == wanted
    assert field("0", eps, length=5).radius == wanted


@given(
    weights=st.lists(st.fractions(min_value="1/20", max_value=3), min_size=1, max_size=6),
    eps=st.fractions(min_value="1/50", max_value="49/50", max_denominator=60),
)
@settings(max_examples=25, deadline=None)
def test_finite_supports_exactly(weights, eps):
    n = distance()
    pieces = [
        (sympy.log(sympy.Rational(w.numerator, w.denominator)), sympy.Eq(n, k))
        for k, w in enumerate(weights)
    ]
    bias = as_bias(sympy.Piecewise(*pieces, (-sympy.oo, True)))
    total = sum(weights)
    wanted = next(
        j for j in range(1, len(weights) + 1) if sum(weights[:j], Fraction(0)) > (1 - eps) * total
    )
    assert field(bias, eps).radius == wanted


@given(
    r1=st.fractions(min_value="11/10", max_value=4, max_denominator=20),
    r2=st.fractions(min_value="1/50", max_value=5, max_denominator=50),
    eps=st.fractions(min_value="1/200", max_value="9/10", max_denominator=400),
)
@settings(max_examples=30, deadline=None)
def test_kerple_log_fulfils_the_definition(r1, r2, eps):
    found = field("-r1*log(1+r2*n)", eps, r1=r1, r2=r2)
    with mpmath.workdps(60):
        a = mpmath.mpf(r2.denominator) / r2.numerator
        s = mpmath.mpf(r1.numerator) / r1.denominator
        limit = mpmath.mpf(eps.numerator) / eps.denominator * mpmath.zeta(s, a)
        assert mpmath.zeta(s, a + found.radius) < limit
        if found.radius > 1:
            assert mpmath.zeta(s, a + found.radius - 1) >= limit


def test_masses_and_shares_are_balls_that_agree():
    found = field("-2*log(1+n)", 0.01)
    three = 1 + Fraction(1, 4) + Fraction(1, 9)
    assert three in found.mass(3)
    assert abs(float(found.share(3)) - float(three) * 6 / float(mpmath.pi) ** 2) < 1e-14
    assert float(found.mass(0)) == pytest.approx(0, abs=1e-25)
    assert "+/-" in str(found.total)


def test_the_sum_starts_where_terms_are_finite():
    found = field("-2*log(n)", 0.1)
    assert (found.start, found.radius) == (1, 6)
    assert field("-log(n-5)*3", 0.1).start == 6
    assert field("-log(n)-2*log(log(n))", 0.5).start == 2


@pytest.mark.parametrize("length", [1, 2, 100, 512, 5000, 100_000])
@pytest.mark.parametrize(
    "bias", ["0", "-log(1+n)", "-2*log(1+n)", "-n/300", "-log(3+n)-log(log(3+n))"]
)
def test_finite_lengths_against_floats(bias, length):
    import numpy as np

    from trf.theory import mass_curve

    curve = mass_curve(bias, length)
    for eps in (0.5, 0.1, 0.013):
        found = field(bias, eps, length=length)
        assert found.length == length
        margin = np.abs(curve - (1 - eps)).min()
        if margin > 1e-11:
            assert found.radius == int(np.argmax(curve > 1 - eps)) + 1


def test_a_finite_length_of_any_size():
    """B(N) of 1/(1+n) is a harmonic number, so the radius at 10^30 is known from the digamma."""
    found = field("-log(1+n)", "1/2", length=10**30)
    with mpmath.workdps(60):
        half = mpmath.harmonic(10**30) / 2
        assert mpmath.harmonic(found.radius) > half >= mpmath.harmonic(found.radius - 1)


def test_growth_of_a_convergent_bias_with_length_stops_at_its_limit():
    radii = [field("-2*log(1+n)", 0.01, length=N).radius for N in (100, 1000, 10**6, 10**12)]
    assert radii == sorted(radii)
    assert radii[-1] == field("-2*log(1+n)", 0.01).radius


def test_heads_have_their_own_radii_and_a_mean():
    found = field(encodings.get("alibi"), 0.01)
    assert [head.radius for head in found.heads] == [10, 19, 37, 74, 148, 295, 590, 1179]
    assert (found.radius, found.smallest.radius, found.largest.radius) == (666, 10, 1179)
    assert [field(encodings.get("alibi"), eps).radius for eps in (0.1, 0.05)] == [181, 308]
    assert field(["-n/2", "-n/2"], 0.01).radius == field("-n/2", 0.01).radius


def test_bounded_logits_widen_the_field_by_two_u_over_m():
    plain, bounded = (
        field("-n/256", "1/10^9".replace("10^9", "1000000000"), logit_bound=u).radius
        for u in (0, 1)
    )
    assert abs(bounded - plain - 512) <= 1


def test_bounded_logits_are_the_worst_case():
    from math import exp

    bound, eps, m = 0.5, 0.05, 0.25
    tail = [exp(-m * j) for j in range(200)]
    worst = [exp(bound) * t / (exp(-bound) * (1 - t) + exp(bound) * t) for t in tail]
    wanted = next(j for j in range(1, 200) if worst[j] < eps)
    assert field("-n/4", eps, logit_bound=bound).radius == wanted


def test_both_sides():
    found = field("-abs(n)/8", 0.05, bidirectional=True)
    terms = [mpmath.exp(-mpmath.mpf(n) / 8) * (1 if n == 0 else 2) for n in range(800)]
    total = mpmath.fsum(terms)
    wanted = next(j for j in range(1, 800) if mpmath.fsum(terms[:j]) > 0.95 * total)
    assert found.radius == wanted
    assert abs(float(found.total) - float(total)) < 1e-12
    assert field(as_bias("-n/8"), 0.05, bidirectional=True).radius == wanted


def test_both_sides_of_a_signed_distance():
    with pytest.raises(DivergenceError):
        field("-n/8", 0.05, bidirectional=True)
    found = field("-n^2/9-n/5", 0.01, bidirectional=True)
    terms = [mpmath.exp(-(mpmath.mpf(n) ** 2) / 9 - mpmath.mpf(n) / 5) for n in range(-99, 100)]
    total = mpmath.fsum(terms)
    wanted = next(j for j in range(1, 90) if mpmath.fsum(terms[99 - j + 1 : 99 + j]) > 0.99 * total)
    assert found.radius == wanted


def test_a_residual_share_of_one_layer():
    found = field("-n/4", 0.1, residual="1/2")
    assert found.radius == field("-n/4", 0.2).radius
    assert field("-n/4", 0.6, residual="1/2").radius == 1


@pytest.mark.parametrize("eps", [0, 1, -0.1, 2, "0", "1"])
def test_eps_lies_strictly_between_0_and_1(eps):
    with pytest.raises(ParameterError, match="strictly between 0 and 1"):
        field("-n", eps)


@pytest.mark.parametrize(
    ("arguments", "options", "error", "message"),
    [
        (("-log(1+n)",), {}, DivergenceError, "diverges.*length=N.*parameters"),
        (("0",), {}, DivergenceError, "diverges"),
        (("-r1*log(1+r2*n)",), {"r1": 1, "r2": 2}, DivergenceError, "diverges"),
        (("-m*n",), {}, ParameterError, r"needs a value for m \(positive real\)"),
        (("-m*n",), {"m": -1}, ParameterError, "m"),
        (("-n",), {"q": 1}, ParameterError, "'q' is not a parameter"),
        (("-m*n",), {"m": 1, "parameters": {"m": 1}}, ParameterError, "given twice"),
        (("-n",), {"length": 0}, ParameterError, "length must be a positive integer"),
        (("-n",), {"residual": 1}, ParameterError, "residual"),
        (("-n",), {"n_head": 4}, ParameterError, "list of biases"),
        (([],), {}, ParameterError, "empty list"),
        (("-2*log(1+n)+sin(n)",), {}, UndecidedError, "could not be enclosed"),
        ((encodings.get("rope"),), {}, ExpressionError, "no additive bias"),
    ],
)
def test_errors_say_what_and_why(arguments, options, error, message):
    with pytest.raises(error, match=message):
        field(*arguments, **options)


def test_a_parameter_called_like_an_option_is_given_in_parameters():
    assert field("-eps*n", 0.01, parameters={"eps": "1/16"}).radius == 74


def test_numbers_of_every_kind_mean_the_same():
    from decimal import Decimal

    radii = {
        field("-m*n", eps, m=m).radius
        for eps in (0.01, "1/100", "0.01", Fraction(1, 100), Decimal("0.01"))
        for m in (0.0625, "1/16", Fraction(1, 16), Decimal("0.0625"))
    }
    assert radii == {74}


def test_the_result_prints_in_a_line_and_turns_into_json():
    found = field("-r1*log(1+r2*n)", "1/1000", r1="201/200", r2="1/10")
    line = str(found)
    assert "\n" not in line
    assert len(line) < 200
    assert "601 digits" in line
    assert "certified" in line
    data = json.loads(json.dumps(found.to_dict()))
    assert len(data["radius"]) == 601
    assert data["certified"] is True
    assert json.dumps(field("-n", 0.1).to_dict()["radius"]) == "3"
    assert found._repr_latex_().startswith("$")
    assert "**" in found._repr_markdown_()
