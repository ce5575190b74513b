"""Reading expressions: what is meant, what is refused, and how exactly numbers are taken."""

import time
from decimal import Decimal
from fractions import Fraction

import pytest
import sympy

from trf.errors import ExpressionError, ParameterError
from trf.expression import as_bias, distance, exact

n = distance()
r1, r2 = sympy.symbols("r1 r2", positive=True)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("-log(1+r2*n)", -sympy.log(1 + r2 * n)),
        ("-r1*ln(1+r2*n)", -r1 * sympy.log(1 + r2 * n)),
        ("-r1*|m-n|", -r1 * n),
        ("-r1*abs(m-n)", -r1 * n),
        ("-r1*abs(n-m)", -r1 * n),
        ("-r1*abs(i-j)", -r1 * n),
        ("-r1*|j - i|", -r1 * n),
        ("-n^2", -(n**2)),
        ("-n**2", -(n**2)),
        ("2^-n", sympy.Integer(2) ** -n),
        ("2^n^2", sympy.Integer(2) ** (n**2)),
        ("-2 ln(1+n)", -2 * sympy.log(1 + n)),
        ("-2n", -2 * n),
        ("-0.1*n", -n / 10),
        ("-1e-3*n", -n / 1000),
        ("-n/3/2", -n / 6),
        ("1-2-n", -1 - n),
        ("--n", n),
        ("-n!", -sympy.factorial(n)),
        ("||n-3|-2|", sympy.Abs(sympy.Abs(n - 3) - 2)),
        ("−n·2", -2 * n),
        ("Piecewise((0, (n<3)|(n>5)), (-oo, True))",
         sympy.Piecewise((0, (n < 3) | (n > 5)), (-sympy.oo, True))),
        ("p(n) = -2*n", -2 * n),
        ("b(m-n) = -r1*|m-n|", -r1 * n),
        ("log(n, 3)", sympy.log(n) / sympy.log(3)),
    ],
)  # fmt: skip
def test_meaning(text, expected):
    assert as_bias(text).expr == expected


def test_a_free_m_without_the_distance_form_is_a_parameter():
    assert as_bias("-m*n").domains == {"m": "positive real"}


@pytest.mark.parametrize("text", ["-m*|m-n|", "-m*|i-j|", "-n*|i-j|", "abs(m-n)+n", "|m-n|*i"])
def test_the_distance_form_leaves_no_other_index(text):
    with pytest.raises(ExpressionError, match="stands for the distance"):
        as_bias(text)


@pytest.mark.parametrize("name", ["lambda", "gamma", "zeta", "beta", "W", "S", "N", "I", "Q", "λ"])
def test_any_identifier_can_be_a_parameter(name):
    bias = as_bias(f"-{name}*n")
    assert [p.name for p in bias.parameters] == [name]
    assert bias.substitute({name: "1/2"}).expr == -n / 2


HOSTILE = [
    "__import__('os')",
    "n.real",
    "(1).__class__",
    "foo(n)",
    "r1(n+1)",
    "exec(n)",
    "eval(n)",
    "lambda: 0",
    "[n]",
    "n[0]",
    "{n}",
    "n;n",
    "n=3",
    "'n'",
    "f'{n}'",
    "n\\",
    "9**9**9**9",
    "9^9^9^9*n",
    "exp(exp(exp(100)))",
    "factorial(10**9)",
    "factorial(factorial(1000))",
    "floor(exp(9999))",
    "rf(n, 10**7)",
    "zeta(10**6)",
    "binomial(10**9, 10**8)",
    "primepi(10**15)",
    "totient(10**90+1)",
    "10**4000*10**4000",
    "1e99999999*n",
    "1e-99999999*n",
    "9" * 5000,
    "(" * 10_000,
    ")" * 10_000,
    "()" * 5_000,
    "[" * 10_000,
    "|" * 10_000,
    "-" * 10_000 + "n",
    "n**" * 3_000 + "n",
    "sin(" * 3_000,
    "n+" * 9_000 + "n",
    "n" * 30_000,
    "(1+2*|" * 13 + "n" + "|^2)" * 13,
    "abs(" * 30 + "n-a" + ")" * 30,
    "p = -n",
    "",
    "   ",
    "n n",
    "2*(n",
    "n)",
    "1/2n",
    "n<1<2",
    "0x10",
    "1/0",
    "log(0)",
    "sqrt(-2)*n",
    "n < 3",
    "(n, 3)",
    "Sum(n)",
    "Sum(k, (n, 1, 3))",
    "Piecewise(n)",
    "exp(n, 2)",
    "exp()",
    "_x*2_000",
]  # fmt: skip


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: text[:30])
def test_refused_at_once(text):
    begin = time.perf_counter()
    with pytest.raises(ExpressionError) as info:
        as_bias(text)
    assert time.perf_counter() - begin < 1
    assert len(str(info.value)) < 500


def test_a_misspelt_function_is_named():
    with pytest.raises(ExpressionError, match="did you mean 'log'"):
        as_bias("-logg(n)")


def test_domains():
    assert as_bias("-r*n", {"r": "real"}).domains == {"r": "real"}
    assert as_bias("-k*n", {"k": "positive integer"}).domains == {"k": "positive integer"}
    assert as_bias("-k*n", {"k": {"negative": True}}).domains == {"k": "negative real"}
    with pytest.raises(ParameterError, match="can't be read"):
        as_bias("-k*n", {"k": "large"})
    with pytest.raises(ParameterError, match="not a parameter"):
        as_bias("-k*n", {"q": "real"})
    with pytest.raises(ParameterError, match="contradicts"):
        as_bias("-k*n", {"k": "positive negative"})


def test_sympy_input_keeps_declared_domains_and_makes_plain_symbols_positive():
    x, y, plain_n = sympy.Symbol("x"), sympy.Symbol("y", real=True), sympy.Symbol("n")
    bias = as_bias(-x * plain_n + y)
    assert bias.domains == {"x": "positive real", "y": "real"}
    assert distance() in bias.expr.free_symbols


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0.1, Fraction(1, 10)),
        ("1/100", Fraction(1, 100)),
        ("0.01", Fraction(1, 100)),
        ("1e-3", Fraction(1, 1000)),
        (Decimal("0.05"), Fraction(1, 20)),
        (Fraction(2, 3), Fraction(2, 3)),
        (3, Fraction(3)),
        (sympy.Rational(1, 7), Fraction(1, 7)),
    ],
)
def test_exact_numbers(value, expected):
    got = exact(value)
    assert Fraction(int(got.p), int(got.q)) == expected


@pytest.mark.parametrize(
    "value", ["x", "", "1/0", float("nan"), float("inf"), True, None, "1e99999999", [1], 1j]
)
def test_inexact_numbers_are_refused(value):
    with pytest.raises(ParameterError):
        exact(value)


def test_numpy_floats_mean_their_shortest_decimal():
    numpy = pytest.importorskip("numpy")
    assert exact(numpy.float64(0.1)) == sympy.Rational(1, 10)
    assert exact(numpy.float32(0.1)) == sympy.Rational(1, 10)
    assert exact(numpy.int64(3)) == 3


def test_substitution_checks_names_and_domains():
    bias = as_bias("-r1*log(1+r2*n)")
    assert (
        bias.substitute({"r1": 0.1, "r2": "sqrt(2)"}).expr == -sympy.log(1 + sympy.sqrt(2) * n) / 10
    )
    with pytest.raises(ParameterError, match="its parameters: r1, r2"):
        bias.substitute({"r3": 1})
    with pytest.raises(ParameterError, match="must be positive real"):
        bias.substitute({"r1": -1})
    with pytest.raises(ParameterError, match="must be positive real"):
        bias.substitute({"r1": 0})
