"""Disguises: the same series written in other ways must get the same verdict."""

from fractions import Fraction

import sympy
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from trf.expression import distance
from trf.series.convergence import converges
from trf.series.verdict import Status

N = distance()
LOGS = [sympy.log(N), sympy.log(sympy.log(N)), sympy.log(sympy.log(sympy.log(N)))]
QUICK = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])

coefficients = st.fractions(min_value=-2, max_value=3, max_denominator=4)


def rational(value: Fraction) -> sympy.Rational:
    return sympy.Rational(value.numerator, value.denominator)


def bertrand(exponents) -> tuple[sympy.Expr, bool]:
    """sum 1/(n^a log(n)^b loglog(n)^c): the first exponent that is not 1 decides."""
    p = -sum(rational(e) * log for e, log in zip(exponents, LOGS, strict=True))
    first = next((e for e in exponents if e != 1), None)
    return p, first is not None and first > 1


def verdict_of(p: sympy.Expr) -> Status:
    return converges(p).status


@QUICK
@given(st.tuples(coefficients, coefficients, coefficients))
def test_bertrand_series(exponents):
    p, answer = bertrand(exponents)
    assert verdict_of(p) is (Status.CONVERGES if answer else Status.DIVERGES)


@QUICK
@given(st.tuples(st.just(Fraction(1)), coefficients, coefficients), st.integers(1, 50))
def test_a_shift_changes_nothing(exponents, shift):
    p, answer = bertrand(exponents)
    assert verdict_of(p.subs(N, N + shift)) is (Status.CONVERGES if answer else Status.DIVERGES)


@QUICK
@given(st.tuples(st.just(Fraction(1)), coefficients, coefficients))
def test_exp_of_log_and_log_of_exp_change_nothing(exponents):
    p, answer = bertrand(exponents)
    wanted = Status.CONVERGES if answer else Status.DIVERGES
    assert verdict_of(sympy.log(sympy.exp(p) * (1 + 1 / N))) is wanted
    assert verdict_of(p + sympy.log(1 + sympy.exp(-sympy.sqrt(N)))) is wanted


@QUICK
@given(st.tuples(st.just(Fraction(1)), coefficients, coefficients), st.integers(2, 5))
def test_condensation(exponents, base):
    """Cauchy: sum f(n) and sum b^n f(b^n) converge together."""
    p, answer = bertrand(exponents)
    condensed = p.subs(N, base**N) + N * sympy.log(base)
    assert verdict_of(condensed) is (Status.CONVERGES if answer else Status.DIVERGES)


@QUICK
@given(coefficients, st.fractions(min_value=Fraction(1, 8), max_value=2, max_denominator=8))
def test_power_against_logarithm(a, b):
    """n^b beats every multiple of log n."""
    p = -rational(a) * N ** rational(b) + 7 * sympy.log(N)
    assert verdict_of(p) is (Status.CONVERGES if a > 0 else Status.DIVERGES)


@QUICK
@given(coefficients, coefficients)
def test_numbers_put_in_agree_with_the_condition(a, b):
    verdict = converges("-a*log(n)-b*log(log(n))", assume={"a": "real", "b": "real"})
    assert bool(verdict.given(a=a, b=b)) is (a > 1 or (a == 1 and b > 1))


@QUICK
@given(coefficients, st.integers(1, 3))
def test_a_bounded_oscillation_changes_nothing(a, frequency):
    p = -rational(a) * sympy.log(N) + 3 * sympy.cos(frequency * N)
    assert verdict_of(p) is (Status.CONVERGES if a > 1 else Status.DIVERGES)


@QUICK
@given(
    st.fractions(min_value=0, max_value=3, max_denominator=4),
    st.fractions(min_value=0, max_value=2, max_denominator=4),
)
def test_an_oscillating_exponent_is_decided_by_its_minimum(a, b):
    p = -(rational(a) + rational(b) * sympy.sin(N)) * sympy.log(N)
    assert verdict_of(p) is (Status.CONVERGES if a - b > 1 else Status.DIVERGES)
