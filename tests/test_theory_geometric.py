"""Geometric weights however they are written: the slope may be a sum of logarithms."""

import math

import pytest

from trf import theoretical_receptive_field


@pytest.mark.parametrize(
    ("p", "ratio"),
    [
        ("n*log(9/10)", 0.9),
        ("n*log(3/4) - n/7", 0.75 * math.exp(-1 / 7)),
        ("n*log(1-2^(-5))", 31 / 32),
        ("-n*log(10) + 2*n*log(3)", 0.9),
        ("n*(log(2)-log(3))", 2 / 3),
        ("-n*sqrt(2)/100", math.exp(-math.sqrt(2) / 100)),
    ],
)
@pytest.mark.parametrize("eps", ["1/10", "1/100", "1/1000"])
def test_the_radius_of_a_geometric_series(p, ratio, eps):
    # tail(j)/total = ratio^j, so the radius is the least j with ratio^j < eps.
    field = theoretical_receptive_field(p, eps)
    top, bottom = map(int, eps.split("/"))
    assert field.radius == math.floor(math.log(top / bottom) / math.log(ratio)) + 1
    assert field.certified


def test_a_retention_gate_of_a_given_value():
    assert theoretical_receptive_field("n*log(gamma)", 0.01, gamma="31/32").radius == 146
    assert theoretical_receptive_field("n*log(2/3) - log(1+n)", 0.01).radius == 8
