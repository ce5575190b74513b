"""The attention paths agree, in values and gradients, with every kind of position; all causal."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from trf.errors import ParameterError, UnknownNameError
from trf.nn.attention import BLOCK, Positions, attention, toeplitz
from trf.nn.windows import Blocks, Window

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


SPANS = [None, Window(1), Window(5), Window(300), Window(10_000), Blocks(7), Blocks(300)]


def some_positions(kind, length, span):
    """Positions of a kind, and the tensors in them that learn."""
    if kind == "rate":
        return Positions(span=span, rate=torch.linspace(0.001, 0.01, 8)), []
    if kind == "correction":
        strength = torch.tensor([0.3, 0.1, 0.2], requires_grad=True)

        def correction(i, j, q, k):
            wave = torch.sin((i[:, None] - j) / 9) * torch.cos(i[:, None] / 50)
            return strength[:, None, None] * wave + 0.1 * q @ k.mT

        return Positions(span=span, correction=correction), [strength]
    bias = some_bias(length, "log").clone()
    if kind == "learned bias":
        bias.requires_grad_()
        return Positions(bias, span), [bias]
    return Positions(bias, span) if kind == "bias" else Positions(span=span), []


@pytest.mark.parametrize("span", SPANS, ids=str)
@pytest.mark.parametrize("kind", ["nothing", "bias", "learned bias", "rate", "correction"])
def test_windows_rates_and_corrections_agree_with_the_reference(span, kind):
    length = 2 * BLOCK + 90
    results = []
    for path in ("reference", "lean"):
        q, k, v = random_qkv(length, batch=1)
        how, learned = some_positions(kind, length, span)
        out = attention(q, k, v, how, path)
        weights = torch.randn(out.shape, generator=torch.Generator().manual_seed(1))
        (out * weights).sum().backward()
        results.append([out.detach(), *(x.grad for x in (q, k, v, *learned))])
    for reference, lean in zip(*results, strict=True):
        assert torch.allclose(reference, lean, atol=1e-5, rtol=1e-5)


def test_explicit_logits_of_many_blocks_are_computed_again_with_the_same_gradients():
    length = 6 * BLOCK + 5
    results = []
    for path in ("reference", "lean"):
        q, k, v = random_qkv(length, batch=1, heads=3, width=4)
        how, learned = some_positions("learned bias", length, None)
        (attention(q, k, v, how, path) ** 2).sum().backward()
        results.append([x.grad for x in (q, k, v, *learned)])
    for reference, lean in zip(*results, strict=True):
        assert torch.allclose(reference, lean, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("span", SPANS, ids=str)
def test_nothing_is_seen_outside_the_span(span):
    length, at = 2 * BLOCK + 90, 2 * BLOCK + 17
    q, k, v = random_qkv(length, batch=1)
    attention(q, k, v, Positions(span=span))[:, :, at].sum().backward()
    seen = torch.arange(length) <= at if span is None else span.mask(length)[at]
    for x in (k, v):
        assert (x.grad[:, :, ~seen] == 0).all()
    assert (v.grad[:, :, seen] != 0).any(-1).all()


def test_masks_are_what_the_definitions_say():
    i, j = torch.arange(20)[:, None], torch.arange(20)
    assert torch.equal(Window(4).mask(20), (i >= j) & (i - j < 4))
    assert torch.equal(Window(4, bidirectional=True).mask(20), (i - j).abs() < 4)
    assert torch.equal(Blocks(4).mask(20), (i >= j) & (i // 4 - j // 4 <= 1))


@pytest.mark.parametrize("width", [0, -1, 2.0, True])
def test_a_width_is_a_positive_integer(width):
    for span in (Window, Blocks):
        with pytest.raises(ParameterError, match="width"):
            span(width)


def test_a_bidirectional_window_is_no_span_of_causal_attention():
    with pytest.raises(ParameterError, match="causal"):
        Positions(span=Window(4, bidirectional=True))


def test_a_rate_never_overflows():
    # exp(rate * n) alone would be 1e70 at n = 65,536; here the same exponents at a shorter length.
    length = 4096
    q, k, v = random_qkv(length, batch=1, heads=1, width=4)
    rate = torch.full((4,), 160.0 / length)
    out = attention(q, k, v, Positions(rate=rate))
    out.sum().backward()
    assert all(torch.isfinite(x).all() for x in (out, q.grad, k.grad, v.grad))
    n = torch.arange(length - 1, -1, -1)
    logits = (q[0, 0, -1] * k[0, 0]).sum(-1) * torch.exp(-160.0 / length * n) / 2
    assert torch.allclose(out[0, 0, -1], logits.softmax(-1) @ v[0, 0], atol=1e-5)


@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
@pytest.mark.parametrize("span", SPANS, ids=str)
@pytest.mark.parametrize("kind", ["nothing", "bias"])
def test_flex_computes_the_same_forward(span, kind):
    q, k, v = random_qkv(300, batch=1)
    how, _ = some_positions(kind, 300, span)
    with torch.no_grad():
        out = attention(q, k, v, how, "flex")
    assert torch.allclose(out, attention(q, k, v, how), atol=1e-5)


@pytest.mark.parametrize(
    ("how", "message"),
    [(Positions(), "CUDA only"), (Positions(rate=torch.ones(8)), "for this encoding use")],
)
def test_flex_says_what_it_cannot_do(how, message):
    with pytest.raises(ParameterError, match=message):
        attention(*random_qkv(16), how, "flex")


@pytest.mark.skipif(not torch.cuda.is_available(), reason="FlexAttention has gradients on CUDA")
@pytest.mark.parametrize("span", SPANS, ids=str)
@pytest.mark.parametrize("kind", ["nothing", "bias", "learned bias"])
def test_flex_agrees_on_cuda_with_gradients(span, kind):
    results = []
    for path in ("reference", "flex"):
        q, k, v = (x.detach().cuda().requires_grad_() for x in random_qkv(300, width=16))
        how, learned = some_positions(kind, 300, span)
        moved = Positions(None if how.bias is None else how.bias.cuda(), span)
        out = attention(q, k, v, moved, path)
        (out**2).sum().backward()
        results.append([out.detach().cpu(), *(x.grad.cpu() for x in (q, k, v, *learned))])
    for reference, flex in zip(*results, strict=True):
        assert torch.allclose(reference, flex, atol=1e-5, rtol=1e-4)


class Sizes(TorchDispatchMode):
    """Numbers in the largest tensor that was computed, and in all of them together."""

    def __init__(self):
        super().__init__()
        self.largest = self.total = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        for x in result if isinstance(result, (tuple, list)) else [result]:
            if isinstance(x, torch.Tensor):
                self.largest = max(self.largest, x.numel())
                self.total += x.numel()
        return result


def sizes_of(length, kind, span):
    q, k, v = random_qkv(length, batch=1, heads=1, width=4)
    how, _ = some_positions(kind, length, span)
    how = replace(how, bias=None if how.bias is None else how.bias[:1])
    with Sizes() as sizes:
        attention(q, k, v, how).sum().backward()
    return sizes


@pytest.mark.parametrize("kind", ["bias", "learned bias"])
def test_no_tensor_is_as_large_as_all_pairs(kind):
    assert sizes_of(4096, kind, None).largest <= BLOCK * 4096


@pytest.mark.parametrize("span", [Window(300), Blocks(300)], ids=str)
@pytest.mark.parametrize("kind", ["nothing", "bias", "learned bias"])
def test_work_with_a_window_grows_with_the_length_alone(kind, span):
    short, long = (sizes_of(length, kind, span) for length in (3000, 6000))
    assert long.total < 2.1 * short.total
    assert long.largest <= max(short.largest, 4 * 6000)


def test_weights_that_are_dropped_make_no_difference_even_beside_large_logits():
    # Keys so large that the window of what is seen must widen by their logits.
    q, k, v = (3 * x.detach() for x in random_qkv(600, batch=1))
    bias = -torch.tensor([0.9, 0.3, 2.0])[:, None] * torch.arange(600)
    exact = attention(q.double(), k.double(), v.double(), bias.double(), "reference")
    assert torch.allclose(attention(q, k, v, bias).double(), exact, atol=1e-5)
    far = torch.zeros_like(bias)
    far[:, 300:] = -60.0
    k[:, :, 0] = q[:, :, -1] * 5  # one far key outweighs the bias against it
    exact = attention(q.double(), k.double(), v.double(), far.double(), "reference")
    assert torch.allclose(attention(q, k, v, far).double(), exact, atol=1e-3)
    assert (exact[0, :, -1] - v[0, :, 0]).abs().max() < 1e-3
