"""Leakage and design, against sums and against the radii they claim."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import pytest

from trf import encodings
from trf.errors import ParameterError
from trf.theory import design, leakage, slopes_for_radii, theoretical_receptive_field
from trf.theory.design import decimal


def test_leakage_of_a_divergent_bias_tends_to_one():
    shares = [float(leakage("-log(1+n)", 512, N).share) for N in (512, 1024, 2**20, 2**200)]
    exact = [1 - mpmath.harmonic(512) / mpmath.harmonic(N) for N in (512, 1024, 2**20, 2**200)]
    assert shares == pytest.approx([float(e) for e in exact], rel=1e-12, abs=1e-20)
    assert float(leakage("-log(1+n)", 512).limit) == 1.0


def test_leakage_of_a_convergent_bias_stays_below_its_limit():
    found = leakage("-2*log(1+n)", 512, 4096)
    exact = mpmath.zeta(2, 513) / mpmath.zeta(2)
    assert float(found.limit) == pytest.approx(float(exact), rel=1e-13)
    assert found.share.upper < found.limit.lower
    assert "leakage of -2*log(1+n) from 512 to 4096" in str(found)


def test_leakage_of_heads_is_their_mean():
    found = leakage(encodings.get("alibi"), 64, 256, n_head=4)
    singles = [leakage(f"-n/{4**h}", 64, 256) for h in (1, 2, 3, 4)]
    assert float(found.share) == pytest.approx(sum(float(s.share) for s in singles) / 4)
    assert found.to_dict()["heads"][3]["share"] == float(singles[3].share)


def test_leakage_of_a_window_and_of_a_start_past_zero():
    assert float(leakage("Piecewise((0, n < 8), (-oo, True))", 8, 64).share) == 0
    share = leakage("-2*log(n)", 3, 5).share
    assert float(share) == pytest.approx((1 / 9 + 1 / 16) / (1 + 1 / 4 + 1 / 9 + 1 / 16))


@pytest.mark.parametrize("lengths", [(0, 5), (8, 4), (True, 4), (4, "8")])
def test_leakage_refuses_lengths_that_are_none(lengths):
    with pytest.raises(ParameterError, match="length"):
        leakage("-n", *lengths)


@pytest.mark.parametrize(
    ("bias", "parameter", "radius", "others"),
    [
        ("-m*n", "m", 512, {}),
        ("-r1*log(1+r2*n)", "r1", 2048, {"r2": 1}),
        ("-r1*log(1+r2*n)", "r2", 2048, {"r1": 2}),
        ("-r1*log(1+r2*n)", "r1", 10**30, {"r2": 1}),
        ("-k*n^2", "k", 50, {}),
        ("-n^a", "a", 20, {}),
        ("-log(3+k*n)^2", "k", 2048, {}),
    ],
)
def test_the_designed_parameter_gives_the_radius(bias, parameter, radius, others):
    found = design(bias, parameter, radius, 0.01, **others)
    check = theoretical_receptive_field(bias, 0.01, parameters={**others, parameter: found.value})
    assert found.radius == check.radius == radius
    assert check.certified
    assert f"{parameter} = " in str(found)


def test_design_of_an_integer_parameter():
    found = design(encodings.get("window").bias, "w", 2048)
    assert found.value.denominator == 1
    assert found.radius == 2048


def test_design_at_a_finite_length_reaches_divergent_parameters():
    found = design("-r1*log(1+n)", "r1", 1000, length=1024)
    assert found.value < 1
    assert found.radius == 1000


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (("-m*n", "q", 5), {}, "not a parameter"),
        (("-m*n", "m", 5), {"m": 1}, "can't be given a value"),
        (("-m*n", "m", 0), {}, "positive integer"),
        (("-m*n", "m", 100), {"bracket": (1, 2)}, "reachable are 3 tokens to 5 tokens"),
        (("-2*log(1+n)-a", "a", 5), {}, "reachable are 61 tokens to 61 tokens"),
        (("-r1*log(1+n)", "r1", 2000), {"length": 1024}, "reachable are 1 token to 1014 tokens"),
        (("-m*n", "m", 5), {"assume": {"m": "real"}}, "give bracket"),
    ],
)
def test_design_says_what_is_reachable(arguments, options, message):
    with pytest.raises(ParameterError, match=message):
        design(*arguments, **options)


@pytest.mark.parametrize(
    ("n_head", "smallest", "largest"), [(1, 50, 50), (8, 10, 2048), (12, 2, 9)]
)
def test_slopes_for_radii_give_geometric_radii(n_head, smallest, largest):
    slopes = slopes_for_radii(n_head, smallest, largest)
    radii = [theoretical_receptive_field("-m*n", m=m).radius for m in slopes]
    assert (radii[0], radii[-1]) == (smallest, largest)
    ratio = (largest / smallest) ** (1 / max(1, n_head - 1))
    assert radii == [round(smallest * ratio**h) for h in range(n_head)]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("9/1000", "0.009"),
        ("1/3", "1/3"),
        ("5", "5"),
        ("-3/2", "-1.5"),
        ("20", "20"),
        ("1/8", "0.125"),
    ],
)
def test_decimals(value, text):
    assert decimal(Fraction(value)) == text
