"""Kinds of series that an independent check of the engine found wrong, each with its answer."""

import contextlib

import pytest
import sympy

from trf import converges
from trf.errors import TRFError
from trf.series.verdict import Status

# A sum over an index whose terms oscillate about a mean that is not 0 is not bounded.
MEANS = [
    ("-Sum(sin(k)**2,(k,1,n))", "converges"),  # -n/2 + O(1)
    ("-3*Sum(sin(k)**2/k,(k,1,n))", "converges"),  # -(3/2) log n + O(1)
    ("-2*Sum(sin(k)**2/k,(k,1,n))", "diverges"),  # -log n + O(1)
    ("-2*Sum(Abs(sin(k))/k,(k,1,n))", "converges"),  # -(4/pi) log n + O(1)
    ("-Sum(Abs(sin(k))/k,(k,1,n))", "diverges"),  # -(2/pi) log n + O(1)
    ("-Integral(sin(t)**2,(t,0,n))", "converges"),
    ("-3*Integral(sin(t)**2/t,(t,1,n))", "converges"),
    ("-Sum((2+sin(k))/k,(k,1,n))", "converges"),  # -2 log n + O(1)
    ("-Sum(log(2+sin(k)),(k,1,n))", "converges"),  # mean log((2+sqrt(3))/2) > 0
    ("-5*Sum(frac(k*sqrt(2))/k,(k,1,n))", "converges"),  # mean 1/2
    ("-Sum(cos(k)/k,(k,1,n))", "diverges"),  # mean 0: bounded
    ("-Sum(sin(k),(k,1,n))", "diverges"),  # bounded
]


# The error of an asymptotic sum counts: what is dropped from the terms, summed, may be unbounded,
# and two sums have two errors, which do not cancel.
ERRORS = [
    ("log(Product(1-1/(k*log(k+1)),(k,2,n)))", "diverges"),  # the product is ~ C/log n
    ("Sum(log(k*log(k)+1),(k,2,n))-loggamma(n+1)-n*log(log(n))/2", "diverges"),
    ("-Sum(log(k*log(k)+1),(k,2,n))+loggamma(n+1)+n*log(log(n))/2", "converges"),
    ("3*Sum(log(log(k+1))-log(log(k)),(k,2,n))-log(n)-2*log(log(n))", "diverges"),
]


@pytest.mark.parametrize(("p", "answer"), ERRORS)
def test_sums_are_known_up_to_their_error_only(p, answer):
    assert converges(p).status in (answer, Status.UNDECIDED)


def test_of_several_minimisers_of_a_phase_the_flattest_dominates_the_average():
    # Near |sin n| = 1 the minimum is of order 2, near sin n = 0 of order 1.
    p = "-(2+Abs(sin(n))-Abs(sin(n))**3+sin(sqrt(2)*n))*log(n)+log(log(n))/4"
    assert converges(p).status in ("diverges", Status.UNDECIDED)


@pytest.mark.parametrize(("p", "answer"), MEANS)
def test_sums_of_oscillating_terms_grow_by_their_mean(p, answer):
    assert converges(p).status in (answer, Status.UNDECIDED)


@pytest.mark.parametrize(
    ("p", "assume", "values"),
    [
        ("sqrt(a-b)*n", {"a": "real", "b": "real"}, {"a": 1, "b": 2}),  # |exp(p)| = 1
        ("n*log(1-a)", {}, {"a": 5}),  # |exp(p)| = 4**n
        ("log(a-b)*n", {"a": "real", "b": "real"}, {"a": 0, "b": 5}),  # |exp(p)| = 5**n
    ],
)
def test_a_bias_that_is_not_real_for_some_parameters_is_not_said_to_converge_there(
    p, assume, values
):
    try:
        verdict = converges(p, assume=assume)
    except TRFError:
        return
    if verdict.status is not Status.UNDECIDED:
        symbols = {s: values[s.name] for s in verdict.bias.parameters}
        assert verdict.condition.subs(symbols) == sympy.false


@pytest.mark.parametrize("p", ["-2*Integral(1/(t-5),(t,1,n))", "-LambertW(-n)"])
def test_what_does_not_exist_does_not_converge(p):
    with contextlib.suppress(TRFError):
        assert converges(p).status is not Status.CONVERGES


@pytest.mark.parametrize(
    "p",
    [
        "expint(1,0)",
        "tan(pi*n/2)",
        "-log(n)/(a-b)",
        "-n/(a-1)",
        "-n*(-8)**Rational(1,3)",
        "-log(n)*a**(1/(a-1))",
        "-n**2*sin(n)**2+(-1)**n",
        "(-(a+1/a)*log(n)/2)*(cosh(1)**2-sinh(1)**2)",
        "Piecewise((0, sin(n) > 1-1/n), (-n, True))",
        "Piecewise((n,n))",
        "n*log(Abs(1-g))",
        "-cosh(sin(n))*log(n)",
        "-(2+cos(pi*(2*n+1)/101))*log(n)",
        "Piecewise((-r1*n, Eq(Mod(n,128),0)), (-oo, True))",
        "log(exp(-Sum(1/(k*log(k)),(k,2,n))))",
    ],
)
def test_strange_input_is_a_verdict_or_a_clear_error(p):
    try:
        verdict = converges(p)
    except TRFError:
        return
    assert verdict.status in set(Status)
