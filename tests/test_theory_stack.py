"""Layers and curves: known figures, dense matrices, plain convolution, and proved brackets."""

from __future__ import annotations

import time
from fractions import Fraction

import numpy as np
import pytest

from trf import encodings
from trf.errors import DivergenceError, ParameterError
from trf.expression import as_bias
from trf.theory import head_curves, mass_curve, stack_curve
from trf.theory import theoretical_receptive_field as field
from trf.theory.jump import greatest_radius, least_radius
from trf.theory.kernels import limit_series

ALIBI = encodings.get("alibi")
FINITE = {
    (512, "0"): ("257/461/487/507", "499/512/512/512", "409/506/510/512"),
    (512, "alibi"): ("19/207/308/455", "205/464/495/511", "65/352/433/501"),
    (512, "-2*log(1+n)"): ("1/6/12/54", "5/27/49/172", "2/13/25/102"),
    (512, "-log(1+n)^2"): ("2/4/5/9", "5/10/12/17", "3/7/8/13"),
    (512, "-log(1+n)"): ("17/259/364/479", "230/471/496/511", "70/391/455/504"),
    (2048, "alibi"): ("19/249/414/822", "231/781/1010/1501", "68/481/688/1159"),
    (2048, "-2*log(1+n)"): ("1/6/12/59", "5/27/52/225", "2/13/26/118"),
    (2048, "-log(1+n)"): ("34/902/1359/1887", "722/1814/1948/2036", "176/1447/1750/1998"),
}


@pytest.mark.parametrize(("length", "bias"), FINITE)
def test_figures_of_stacks_at_a_finite_length(length, bias):
    what, options = (ALIBI, {"n_head": 4}) if bias == "alibi" else (bias, {})
    rows = []
    for n_layer, residual in ((1, 0), (4, 0), (4, 0.5)):
        radii = [
            field(what, eps, length=length, n_layer=n_layer, residual=residual, **options).radius
            for eps in (0.5, 0.1, 0.05, 0.01)
        ]
        rows.append("/".join(map(str, radii)))
    assert tuple(rows) == FINITE[length, bias]


@pytest.mark.parametrize(
    ("bias", "n_layer", "residual", "radii"),
    [
        ("-n/256", 1, 0, (590, 767, 1179)),
        ("-n/256", 6, 0, (2372, 2689, 3354)),
        ("-n/256", 12, 0, (4244, 4656, 5496)),
        (ALIBI, 1, 0, (181, 308, 666)),
        (ALIBI, 6, 0, (810, 1030, 1535)),
        (ALIBI, 12, 0, (1379, 1651, 2246)),
        (ALIBI, 6, 0.5, (493, 684, 1141)),
        (ALIBI, 12, 0.5, (835, 1067, 1592)),
    ],
)
def test_figures_of_stacks_in_the_limit(bias, n_layer, residual, radii):
    found = [
        field(bias, eps, n_layer=n_layer, residual=residual).radius for eps in (0.1, 0.05, 0.01)
    ]
    assert tuple(found) == radii


def _dense(biases, length, residual):
    import sympy

    from trf.expression import distance

    total = np.zeros((length, length))
    for bias in biases:
        p = sympy.lambdify(distance(), as_bias(bias).expr, "math")
        b = np.array([np.exp(p(n)) for n in range(length)])
        rows = np.array(
            [[b[i - k] if k <= i else 0.0 for k in range(length)] for i in range(length)]
        )
        total += rows / rows.sum(axis=1, keepdims=True) / len(biases)
    return residual * np.eye(length) + (1 - residual) * total


@pytest.mark.parametrize("residual", [0.0, 0.3])
@pytest.mark.parametrize("biases", [["-n/7"], ["-n/3", "-3/2*log(1+n)", "0"], ["log(1+n)"]])
def test_stacks_against_dense_matrices(biases, residual):
    length = 60
    power = np.linalg.matrix_power(_dense(biases, length, residual), 5)
    curve = stack_curve(biases, length, 5, residual)
    np.testing.assert_allclose(curve, np.cumsum(power[-1, ::-1]), atol=1e-13)


def test_the_limit_against_plain_convolution():
    kernel = np.exp(-np.arange(4000) / 9)
    kernel = 0.25 * (np.arange(4000) == 0) + 0.75 * kernel / kernel.sum()
    plain = kernel
    for _ in range(2):
        plain = np.convolve(plain, kernel)
    found = field("-n/9", 0.001, n_layer=3, residual=0.25)
    assert found.radius == int(np.argmax(np.cumsum(plain) > 0.999)) + 1
    assert not found.certified
    assert "FFT" in found.assumptions[0]
    assert float(found.share(20)) == pytest.approx(np.cumsum(plain)[19], abs=1e-12)


def test_a_long_stack_takes_seconds_and_little_memory():
    start = time.process_time()
    found = field(ALIBI, 0.01, length=2**17, n_layer=12, residual=0.5)
    assert found.radius == 1592
    assert time.process_time() - start < 10


@pytest.mark.parametrize(
    ("bias", "n_layer"), [("-3/2*log(1+n)", 3), ("-2*log(1+n)", 4), ("-n/9", 5)]
)
def test_the_one_jump_bracket_holds_the_convolution(bias, n_layer):
    eps = Fraction(1, 50)
    exact = field(bias, eps, n_layer=n_layer).radius
    series = limit_series(as_bias(bias))
    assert least_radius(series, eps, n_layer) <= exact <= greatest_radius(series, eps, n_layer)


def test_a_tail_too_heavy_to_convolve_is_bracketed_and_says_so():
    found = field("-11/10*log(1+n)", 0.01, n_layer=6)
    assert found.radius > 10**20
    assert not found.certified
    assert "proved: between" in found.assumptions[0]


def test_curves():
    heads = ["-n/2", "-n/50"]
    each = head_curves(heads, 100)
    assert each.shape == (2, 100)
    np.testing.assert_allclose(mass_curve(heads, 100), each.mean(axis=0))
    np.testing.assert_allclose(each[:, -1], 1)
    n = np.arange(100)
    np.testing.assert_allclose(each[1], np.cumsum(np.exp(-n / 50)) / np.exp(-n / 50).sum())
    np.testing.assert_allclose(mass_curve("-m*n", 9, m=2), mass_curve("-2*n", 9))
    np.testing.assert_allclose(mass_curve("-2*log(n)", 3), [0, 0.8, 1])
    np.testing.assert_allclose(mass_curve("900+n", 3)[-1], 1)
    assert mass_curve(ALIBI, 64, n_head=4).shape == (64,)
    np.testing.assert_allclose(stack_curve("0", 8, 1), mass_curve("0", 8))


def test_window_curves():
    np.testing.assert_allclose(
        mass_curve(encodings.get("window"), 6, w=3), [1 / 3, 2 / 3, 1, 1, 1, 1]
    )


@pytest.mark.parametrize(
    ("bias", "options", "error"),
    [
        ("-2*log(n)", {"n_layer": 2, "length": 64}, ParameterError),
        ("-2*log(n)", {"n_layer": 2}, ParameterError),
        ("-log(1+n)", {"n_layer": 2}, DivergenceError),
        ("-n", {"n_layer": 2, "logit_bound": 1}, ParameterError),
        ("-n", {"n_layer": 2, "bidirectional": True}, ParameterError),
        ("-n", {"n_layer": 0}, ParameterError),
    ],
)
def test_stacks_that_make_no_sense(bias, options, error):
    with pytest.raises(error):
        field(bias, **options)
