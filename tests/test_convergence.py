"""The verdicts: the encodings of the literature, and what a verdict answers."""

import pytest
import sympy

from trf.errors import UndecidedError
from trf.series.convergence import converges
from trf.series.verdict import Status

FAMILIES = [
    ("0", "diverges"),
    ("-r*n", "converges"),
    ("-r1*log(1+r2*n)", "r1 > 1"),
    ("-log(1+r2*n)", "diverges"),
    ("-r1*n**r2", "converges"),
    ("-r1*log(1+r2*n**r3)", "r1*r3 > 1"),
    ("-log(1+(k*n)**2)", "converges"),
    ("-2*log(n)", "converges"),
    ("-log(3+k*n)**2", "converges"),
    ("-(log(3+k*n)+log(log(3+k*n)))", "diverges"),
    ("-sqrt(k*n)", "converges"),
    ("-(k*n)**Rational(5,4)", "converges"),
    ("-(k*n)**Rational(3,4)/2", "converges"),
    ("log(1+log(1+k*n))-2*log(1+k*n)", "converges"),
    ("Piecewise((0, n < 512), (-oo, True))", "converges"),
    ("n*log(g)", "g < 1"),
    ("s*z**n", None),
]


@pytest.mark.parametrize(("p", "answer"), FAMILIES)
def test_families_of_the_literature(p, answer):
    verdict = converges(p)
    if answer is None:
        assert verdict.status is Status.DIVERGES
    elif answer in ("converges", "diverges"):
        assert verdict.status == answer
    else:
        assert verdict.status is Status.CONDITIONAL
        assert str(verdict.condition) == answer


def test_verdict_answers_yes_no_or_refuses():
    assert converges("-n")
    assert not converges("-log(1+n)")
    with pytest.raises(UndecidedError, match="r1 > 1"):
        bool(converges("-r1*log(1+n)"))


def test_given_puts_numbers_in():
    verdict = converges("-r1*log(1+r2*n)")
    assert verdict.given(r1=2)
    assert not verdict.given({"r1": 1})
    assert verdict.given(r1="101/100").condition == sympy.true


def test_the_start_is_the_first_finite_term():
    assert converges("-log(n)").start == 1
    assert converges("-log(log(n))").start == 2
    assert converges("-log(n-5)").start == 6


def test_a_divergent_verdict_says_what_the_theorem_does_not():
    assert "sufficient only" in converges("-log(1+n)").explanation
