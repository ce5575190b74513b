"""The two attention paths agree, in values and gradients, and are causal."""

from __future__ import annotations

import math

import pytest
import torch

from trf.errors import UnknownNameError
from trf.nn.attention import BLOCK, attention, toeplitz

LENGTHS = [1, 2, 37, BLOCK, BLOCK + 1, 2 * BLOCK + 13]


def random_qkv(length, seed=0, batch=2, heads=3, width=8):
    g = torch.Generator().manual_seed(seed)
    return [
        torch.randn(batch, heads, length, width, generator=g, requires_grad=True) for _ in range(3)
    ]


def some_bias(length, kind):
    n = torch.arange(length)
    slopes = torch.tensor([0.3, 0.01, 1.5])[:, None]
    if kind == "linear":
        return -slopes * n
    if kind == "log":
        return -slopes * torch.log1p(n)
    return torch.where(n < 5, 0.0, -math.inf).broadcast_to(3, length)


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("kind", [None, "linear", "log", "window"])
def test_lean_equals_reference_with_gradients(length, kind):
    bias = None if kind is None else some_bias(length, kind)
    results = []
    for path in ("reference", "lean"):
        q, k, v = random_qkv(length)
        out = attention(q, k, v, bias, path)
        weights = torch.randn(out.shape, generator=torch.Generator().manual_seed(1))
        (out * weights).sum().backward()
        results.append((out.detach(), q.grad, k.grad, v.grad))
    for reference, lean in zip(*results, strict=True):
        assert torch.allclose(reference, lean, atol=1e-5)


@pytest.mark.parametrize("length", LENGTHS)
def test_gradient_of_a_learned_bias_agrees(length):
    grads = []
    for path in ("reference", "lean"):
        q, k, v = random_qkv(length)
        bias = some_bias(length, "log").clone().requires_grad_()
        out = attention(q, k, v, bias, path)
        weights = torch.randn(out.shape, generator=torch.Generator().manual_seed(1))
        (out * weights).sum().backward()
        grads.append(bias.grad)
    assert torch.allclose(*grads, atol=1e-5)


@pytest.mark.parametrize("path", ["lean", "reference"])
@pytest.mark.parametrize("with_bias", [False, True])
def test_gradients_to_the_future_are_exactly_zero(path, with_bias):
    length, at = BLOCK + 20, BLOCK - 3
    q, k, v = random_qkv(length)
    bias = some_bias(length, "log") if with_bias else None
    attention(q, k, v, bias, path)[:, :, at].sum().backward()
    for x in (k, v):
        assert (x.grad[:, :, at + 1 :] == 0).all()
        assert (x.grad[:, :, at] != 0).any()


@pytest.mark.parametrize("path", ["lean", "reference"])
def test_outside_a_window_nothing_is_seen(path):
    q, k, v = random_qkv(300)
    attention(q, k, v, some_bias(300, "window"), path)[:, :, -1].sum().backward()
    assert (v.grad[:, :, :-5] == 0).all()
    assert (v.grad[:, :, -5:] != 0).any()


def test_toeplitz_holds_the_distance():
    got = toeplitz(torch.tensor([[0.0, -1.0, -2.0]]))[0]
    inf = math.inf
    assert got.tolist() == [[0, -inf, -inf], [-1, 0, -inf], [-2, -1, 0]]


def test_unknown_path_is_named():
    q, k, v = random_qkv(2)
    with pytest.raises(UnknownNameError, match="lean"):
        attention(q, k, v, None, "leen")
