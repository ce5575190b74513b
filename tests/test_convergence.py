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


@pytest.mark.parametrize(
    ("p", "assume", "condition"),
    [
        ("-r*n", {"r": "real"}, "r > 0"),
        ("-log(n)*k", {"k": "positive integer"}, "k > 1"),
        ("-a*log(n)-b*log(log(n))", {"a": "real", "b": "real"}, "(a > 1) | (Eq(a, 1) & (b > 1))"),
        ("-a*log(n)-sqrt(log(n))", {"a": "real"}, "a >= 1"),
        ("-Abs(a-b)*n", None, "Ne(a, b)"),
        ("-Min(a,b)*log(n)", None, "(a > 1) & (b > 1)"),
        ("-Max(a,b)*log(n)", None, "(a > 1) | (b > 1)"),
        ("-(r1+r2*sin(n))*log(n)", None, "r1 - r2 > 1"),
        ("-n*log(a+b)", None, "a + b > 1"),
        ("-a**2*n", {"a": "real"}, "Ne(a, 0)"),
        ("log(binomial(2*n,n))-n*log(r)", None, "r > 4"),
    ],
)
def test_conditions_read_as_a_mathematician_writes_them(p, assume, condition):
    assert str(converges(p, assume=assume).condition) == condition


@pytest.mark.parametrize(
    ("p", "status"),
    [
        ("-r*abs(n)", "converges"),
        ("-r*|m-n|", "converges"),
        ("-r*n", "diverges"),
        ("n*log(xi)", "diverges"),
        ("s*xi**n", "diverges"),
        ("-n**2", "converges"),
        (r"-r_1 \log(1 + r_2 |m-n|)", "conditional"),
    ],
)
def test_both_tails(p, status):
    assert converges(p, bidirectional=True).status == status


def test_a_bias_is_a_function_of_the_distance_in_both_directions():
    bias = converges("-r*n").bias
    assert converges(bias, bidirectional=True)


def test_a_sympy_expression_of_a_plain_n_is_signed():
    n, r = sympy.symbols("n r")
    assert not converges(-r * n, bidirectional=True)
    assert converges(-r * sympy.Abs(n), bidirectional=True)


def test_given_keeps_both_tails():
    assert not converges("n*log(xi)", bidirectional=True).given(xi="1/2")


def test_reasons_are_given_for_what_is_undecided():
    verdict = converges("-n**2*Abs(sin(n))")
    assert verdict.status is Status.UNDECIDED
    assert verdict.condition is None
    assert "how closely" in verdict.reason
    with pytest.raises(UndecidedError, match="undecided"):
        bool(verdict)


def test_floats_mean_their_decimals():
    assert not converges("-1.0*log(n)")
    assert converges("-1.1*log(n)")
    n = sympy.Symbol("n")
    assert not converges(-1.0 * sympy.log(n))


def test_proof_renders_everywhere():
    verdict = converges("-r1*log(1+r2*n)")
    markdown = verdict._repr_markdown_()
    assert markdown.startswith("$")
    assert "iff" in verdict._repr_latex_()
    data = verdict.to_dict()
    assert data["condition"] == "r1 > 1"
    assert [step["rule"] for step in data["proof"]]


def test_check_sees_what_the_proof_claims():
    assert converges("-2*log(n)").check().agrees is True
    assert converges("-primepi(n)").check().agrees is None
    assert "primepi" in converges("-primepi(n)").check().reason


def test_a_check_can_disagree():
    from trf.expression import distance
    from trf.series.check import check
    from trf.series.proof import Claim

    n = distance()
    assert check(-2 * sympy.log(n), n, (Claim((), 3 * sympy.log(n)),)).agrees is False
    assert check(-sympy.sqrt(n), n, (Claim((), None),)).agrees is False


def test_sandwich_diverges_but_decays_over_its_horizon():
    verdict = converges("(Sum(cos(n/10000**(2*i/128)),(i,1,64))-64)/c")
    assert not verdict
    assert verdict.horizon is None
    horizon = verdict.given(c=8).horizon
    assert horizon.exponent == pytest.approx(6.95 / 8, rel=0.02)
    assert horizon.density == pytest.approx(4.3e-4, rel=0.02)
    assert 1e4 < horizon.from_n < 1e5
    assert verdict.given(c=1).horizon.density == pytest.approx(5.8e-22, rel=0.05)
    assert converges("-log(n)").horizon is None
