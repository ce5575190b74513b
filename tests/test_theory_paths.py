"""Paths through heads, against random matrices, explicit words and sampled logits."""

import itertools

import numpy as np
import pytest

from trf.errors import ParameterError
from trf.expression import as_bias
from trf.theory import path_curve, spread_weights
from trf.theory.stack import weights

HEADS = ["-log(1+n)", "-n/3"]


def attention(bias, N):
    w = weights(as_bias(bias), N)
    i = np.arange(N)
    n = i[:, None] - i
    A = np.where(n >= 0, w[np.maximum(n, 0)], 0.0)
    return A / A.sum(axis=1, keepdims=True)


def by_words(heads, N, gains, sink=None):
    """The sum over all words, with dense matrices."""
    L, H = np.shape(gains)
    total = np.zeros(N)
    for word in itertools.product(range(H + 1), repeat=L):
        K, share = np.eye(N), 1.0
        for layer, step in enumerate(word):
            if step:
                A = attention(heads[step - 1], N)
                if sink is not None:
                    s = sink[layer][step - 1]
                    A = (1 - s) * A + s * np.eye(N)[[0] * N]
                K = A @ K
                share *= gains[layer][step - 1] ** 2
        total += share * K[-1] ** 2
    s = np.sqrt(total)[::-1]
    return np.cumsum(s) / s.sum()


@pytest.mark.parametrize("sink", [None, [[0.1, 0.0], [0.3, 0.2], [0.0, 0.5]]])
def test_it_is_the_sum_over_words(sink):
    gains = [[0.5, 1.0], [0.2, 0.7], [2.0, 0.0]]
    np.testing.assert_allclose(
        path_curve(HEADS, 12, gains, sink=sink), by_words(HEADS, 12, gains, sink), rtol=1e-12
    )


def test_it_is_the_jacobian_of_a_stack_with_random_matrices():
    N, C, L = 24, 48, 3
    rng = np.random.default_rng(0)
    gains = np.array([[0.6, 0.9], [0.8, 0.3], [0.5, 1.2]])
    A = [attention(head, N) for head in HEADS]
    squares = np.zeros(N)
    for _ in range(12):
        J = np.zeros((N, N, C, C))  # of position i with respect to token m
        J[np.arange(N), np.arange(N)] = np.eye(C)
        for layer in range(L):
            out = J.copy()
            for h in range(2):
                W = rng.standard_normal((C, C)) / np.sqrt(C) * gains[layer, h]
                out += W @ np.einsum("ik,kmab->imab", A[h], J)
            J = out
        squares += np.square(J[-1]).sum(axis=(1, 2))
    s = np.sqrt(squares)[::-1]
    measured = np.cumsum(s) / s.sum()
    assert np.abs(path_curve(HEADS, N, gains) - measured).max() < 0.01
    stack = path_curve(HEADS, N, np.full((L, 2), 10.0))  # other gains are told apart
    assert np.abs(stack - measured).max() > 0.05


def test_one_layer_of_one_head():
    w = 0.5 ** np.arange(3)
    s = 2.0 * w / w.sum()
    s[0] = np.hypot(1.0, s[0])
    np.testing.assert_allclose(
        path_curve("-n*log(2)", 3, [[2.0]]), np.cumsum(s) / s.sum(), rtol=1e-12
    )


@pytest.mark.parametrize(
    ("kernel", "spread"),
    [(1 / (1 + np.arange(40.0)), 0.5), (np.exp(-np.arange(30.0) / 3), 2.0), (np.ones(5), 6.0)],
)
def test_spread_weights_are_the_mean_of_sampled_softmaxes(kernel, spread):
    rng = np.random.default_rng(1)
    z = spread * rng.standard_normal((60_000, len(kernel))) + np.log(kernel)
    p = np.exp(z - z.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    found = spread_weights(kernel, spread)
    assert found.sum() == pytest.approx(1)
    assert np.abs(np.cumsum(found) - np.cumsum(p.mean(axis=0))).max() < 0.006


def test_spread_weights_at_the_ends():
    kernel = np.array([8.0, 0.0, 1.0, 1.0])
    np.testing.assert_allclose(spread_weights(kernel, 0), kernel / 10)
    np.testing.assert_allclose(spread_weights(kernel, 1e-2), kernel / 10, atol=1e-4)
    far = spread_weights(kernel, 20)  # the largest logit takes all: nearly a third each
    assert far[1] == 0
    assert 1 / 3 < far[0] < 0.45
    small = np.exp(-np.arange(2000.0))  # down to 0
    assert np.isfinite(spread_weights(small, 3)).all()


def test_a_spread_of_zero_changes_nothing():
    gains = [[0.5, 1.0], [0.2, 0.7]]
    plain = path_curve(HEADS, 16, gains)
    np.testing.assert_allclose(path_curve(HEADS, 16, gains, spread=np.zeros((2, 2))), plain)
    wider = path_curve(HEADS, 16, gains, spread=np.full((2, 2), 2.0))
    assert wider[3] < plain[3]


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"gains": [[1.0]]}, "2 heads"),
        ({"gains": [[1.0, -1.0]]}, "gains must"),
        ({"gains": [[1.0, np.nan]]}, "gains must"),
        ({"gains": np.ones((20, 2))}, "paths"),
        ({"sink": [[0.5, 1.5]]}, "sink must"),
        ({"spread": [[1.0, 1.0]] * 2}, "spread has 2 layers"),
        ({"spread": [[1.0, 50.0]]}, "spread must"),
    ],
)
def test_what_does_not_fit_is_refused(change, match):
    with pytest.raises(ParameterError, match=match):
        path_curve(HEADS, 8, **{"gains": [[1.0, 1.0]], **change})


@pytest.mark.parametrize("kernel", [[], [0.0], [-1.0, 2.0], [np.inf], [[1.0]]])
def test_spread_weights_refuses_what_is_no_kernel(kernel):
    with pytest.raises(ParameterError, match="kernel"):
        spread_weights(np.array(kernel), 1.0)
