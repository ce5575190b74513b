"""Growth of log-exp expressions: leading terms, cancellations, signs."""

import pytest
import sympy
from sympy import Rational, S, exp, log, sqrt

from trf.expression import distance
from trf.series.asymptotics import Scale
from trf.series.rewriting import Rewriter
from trf.series.signs import Oracle, Split, number_sign
from trf.series.special import HANDLERS, LOGARITHMS

n = distance()


def leading(expr):
    """The leading term of an expression, as a function of n."""
    scale = Scale(Oracle())
    lead = scale.lead(Rewriter(scale, HANDLERS, LOGARITHMS)(expr))
    return scale.show(lead.coefficient * scale.value(lead.monomial))


@pytest.mark.parametrize(
    ("expr", "term"),
    [
        (n - sqrt(n**2 + 2 * n * log(n)), -log(n)),
        ((log(n) ** (1 + 1 / log(n)) - log(n)) / log(log(n)), S.One),
        ((n ** (1 + 1 / n) - n) / log(n), S.One),
        ((log(n) + sympy.loggamma(log(log(n)))) / log(n), S.One),
        (exp(n + exp(-n)) - exp(n), S.One),
        (exp(exp(n) + 1 / n) - exp(exp(n)), exp(exp(n)) / n),
        (1 / log(n) - 1 / log(n + 1), 1 / (n * log(n) ** 2)),
        (1 / (log(n) - log(log(n)) + 1 / n) - 1 / (log(n) - log(log(n))), -1 / (n * log(n) ** 2)),
        (sympy.harmonic(n) - log(n) - sympy.EulerGamma, 1 / (2 * n)),
        (sympy.erfc(n) * exp(n**2), 1 / (sqrt(sympy.pi) * n)),
        (1 - n * sympy.sin(1 / n), 1 / (6 * n**2)),
        (log(1 + exp(-n)), exp(-n)),
    ],
)
def test_leading_terms(expr, term):
    assert sympy.simplify(leading(expr) - term) == 0


def test_an_exact_cancellation_is_zero():
    assert leading((n + 1) ** 2 - n**2 - 2 * n - 1) == 0
    assert leading(log(n**2 + n) - log(n) - log(n + 1)) == 0


def test_a_leading_term_that_depends_on_a_parameter_splits_the_cases():
    a, b = sympy.symbols("a b", positive=True)
    with pytest.raises(Split) as split:
        leading(n**a - n**b)
    assert split.value.expr in (a - b, b - a)


@pytest.mark.parametrize(
    ("number", "sign"),
    [
        (sqrt(2) + sqrt(3) - sqrt(5 + 2 * sqrt(6)), 0),
        (log(6) - log(2) - log(3), 0),
        (262537412640768744 / exp(sympy.pi * sqrt(163)) - 1, 1),
        (sympy.tanh(30) - 1, -1),
        (sympy.erf(10) - 1, -1),
        (16 * sympy.atan(Rational(1, 5)) - 4 * sympy.atan(Rational(1, 239)) - sympy.pi, 0),
        (log(sympy.GoldenRatio) - sympy.asinh(S.Half), 0),
        (Rational(1, 10**40), 1),
    ],
)
def test_signs_of_numbers_are_proved(number, sign):
    assert number_sign(number) == sign
