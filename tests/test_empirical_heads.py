"""Attention of layers and heads against models whose attention is known, and against plain code."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")
import torch
from known_fields import QUIET, TEXT, content_free, fixed, kernel
from torch import nn

import trf
import trf.theory
from trf.empirical import attention_field, empirical_receptive_field, measure
from trf.empirical.rows import weight_rows
from trf.errors import CheckpointError, ParameterError
from trf.nn import Decoder, DecoderConfig
from trf.nn.attention import Positions, attention
from trf.nn.windows import Blocks, Window


def small(encoding, n_layer=2, n_embd=32):
    torch.manual_seed(1)
    config = DecoderConfig(encoding, n_layer=n_layer, n_head=2, n_embd=n_embd, train_length=64)
    return Decoder(config).eval()


@pytest.mark.parametrize(
    "how",
    [
        Positions(),
        Positions(bias=-torch.tensor([[0.1], [0.01]]) * torch.arange(50)),
        Positions(span=Window(7)),
        Positions(bias=-torch.tensor([[0.1], [0.01]]) * torch.arange(50), span=Blocks(8)),
        Positions(rate=torch.tensor([0.0, 0.1, 0.02, 0.3])),
        Positions(correction=lambda i, j, q, k: (0.1 * (i[:, None] - j)).sin()[None, None]),
    ],
    ids=["plain", "bias", "window", "blocks", "rate", "correction"],
)
def test_rows_are_those_of_the_reference(how):
    torch.manual_seed(0)
    q, k = torch.randn(2, 3, 2, 50, 4).unbind(0)
    values = torch.eye(50).expand(3, 2, 50, 50)
    wanted = attention(q, k, values, how, "reference", 0.5)
    rows = weight_rows(q, k, how, 0.5)
    got = torch.cat(
        [nn.functional.pad(rows(a, a + 10)[0], (0, 40 - a)) for a in range(0, 50, 10)], 2
    )
    assert torch.allclose(got, wanted, atol=1e-6)


def test_a_content_free_head_has_the_normalised_kernel():
    encoding, N = fixed("-m*n", m=0.1), 120
    field = attention_field(content_free(encoding, 2), TEXT, length=N, n_windows=2, **QUIET)
    weights = kernel(encoding, N)[0]
    assert np.allclose(field.density, weights / weights.sum(), atol=1e-6)
    assert (field.logit_bound == 0).all()
    assert (
        field.radius_at(0.1) == trf.theoretical_receptive_field("-n/10", 0.1, length=N).radius
    ).all()
    rows = np.stack(
        [np.pad(weights[: i + 1] / weights[: i + 1].sum(), (0, N - 1 - i)) for i in range(N)]
    )
    assert np.allclose(field.totals[:, 0, 0], rows.sum(axis=0), rtol=1e-5)
    entropy = -(rows * np.log(np.where(rows > 0, rows, 1))).sum(axis=1)
    assert np.allclose(field.entropy[1, 0], entropy, atol=1e-5)


def test_even_attention_has_the_entropy_of_its_visible_keys_and_no_sink():
    field = attention_field(content_free(trf.encodings.get("none")), TEXT, length=64, **QUIET)
    seen = np.arange(1, 65)
    assert np.allclose(field.entropy[0, 0], np.log(seen), atol=1e-5)
    assert field.sink[0, 0] == pytest.approx((1 / seen[32:]).mean(), rel=1e-5)
    assert field.participation_ratio[0, 0] == pytest.approx(64, rel=1e-5)
    assert field.mean_distance[0, 0] == pytest.approx(31.5, rel=1e-5)


@pytest.mark.parametrize("name", ["kerple-log", "rope", "xpos", "rerope", "fire", "sinusoidal"])
def test_bound_and_loss_are_those_of_plain_code(name):
    model = small(name)
    field = attention_field(model, TEXT, length=40, n_windows=3, **QUIET)
    starts = np.sort(np.random.default_rng(0).permutation(len(TEXT) - 40)[:3])
    windows = torch.stack([torch.tensor(list(TEXT[s : s + 41].encode())) for s in starts])
    with torch.no_grad():
        losses = model.losses(windows[:, :-1], windows[:, 1:]).mean(0)
    assert np.allclose(field.loss, losses.numpy(), atol=1e-5)
    assert np.allclose(field.curve[..., -1], 1, atol=1e-5)
    assert (field.logit_bound > 0).all()
    if name == "kerple-log":
        x = model.blocks[0].norm_attention(model.embed(windows[:, :-1]))
        q, k, _ = model.blocks[0].attention.qkv(x).view(3, 40, 3, 2, 16).unbind(2)
        logits = torch.einsum("bihd,bjhd->bhij", q, k).tril() / 4
        assert np.allclose(field.logit_bound[0], logits.abs().amax((0, 2, 3)).detach(), rtol=1e-5)
        over_keys = [logits[:, :, i, : i + 1].std(-1, unbiased=False) for i in range(20, 40)]
        wanted = torch.stack(over_keys).mean((0, 1)).detach()
        assert np.allclose(field.logit_spread[0], wanted, rtol=1e-4)


def test_batches_and_blocks_do_not_matter(monkeypatch):
    model = small("alibi")
    whole = attention_field(model, TEXT, length=50, n_windows=5, positions=(20, -1), **QUIET)
    monkeypatch.setattr(measure, "TOKENS_AT_ONCE", 100)
    monkeypatch.setattr("trf.empirical.heads._CELLS", 50 * 2 * 2 * 7)
    pieces = attention_field(model, TEXT, length=50, n_windows=5, positions=(20, -1), **QUIET)
    for name in ("density", "totals", "logit_bound", "logit_spread", "entropy", "sink", "loss"):
        assert np.allclose(getattr(whole, name), getattr(pieces, name), atol=1e-5), name
    assert whole.half_windows == (3, 2)


def test_layers_and_heads_beside_the_field():
    model = small("alibi")
    field = empirical_receptive_field(
        model, TEXT, length=30, n_windows=4, layers=True, heads=True, **QUIET
    )
    assert [layer.layer for layer in field.layers] == [0, 1]
    first = field.layers[0]
    assert np.allclose(first.density, first.density_to_embeddings)
    assert first.radius_at(0.1) == first.radius_to_embeddings(0.1)
    alone = attention_field(model, TEXT, length=30, n_windows=4, **QUIET)
    assert np.array_equal(field.heads.density, alone.density)
    data = json.loads(json.dumps(field.to_dict()))
    assert len(data["layers"]) == 2
    assert len(data["heads"]["density"][1][1]) == 30
    assert "layer 1" in str(alone)


@pytest.mark.parametrize("residual", [False, True])
def test_each_content_free_layer_is_one_more_product(residual):
    encoding, N, n_layer = fixed("-m*n", m=0.05), 90, 3
    model = content_free(encoding, n_layer, residual)
    field = empirical_receptive_field(model, TEXT, length=N, n_windows=2, layers=True, **QUIET)
    rho = 0.5 if residual else 0
    for layer in field.layers:
        one = trf.theory.stack_curve("-n/20", N, 1, rho)
        many = trf.theory.stack_curve("-n/20", N, layer.layer + 1, rho)
        assert np.allclose(layer.curve, one, atol=1e-5)
        assert np.allclose(layer.curve_to_embeddings, many, atol=1e-5)


def test_layers_need_a_vector():
    with pytest.raises(ParameterError, match="layers=True"):
        empirical_receptive_field(small("none"), TEXT, length=9, layers=True, reduction="loss")


@pytest.mark.parametrize("layer", [0, 1])
def test_a_layer_that_is_not_finite_is_named(layer):
    model = small("none")
    with torch.no_grad():
        model.blocks[layer].mlp[0].weight[0, 0] = float("nan")
    with pytest.raises(CheckpointError, match=f"layer {layer}"):
        empirical_receptive_field(model, TEXT, length=20, **QUIET)


def test_a_backward_pass_that_is_not_finite_is_named():
    class Root(nn.Module):
        def forward(self, x):
            return torch.where(x > x.max() + 1, x, (x - x).sqrt() + 1)

    model = small("none")
    model.blocks[1].mlp = Root()
    with pytest.raises(CheckpointError, match="backward pass of layer 1"):
        empirical_receptive_field(model, TEXT, length=20, **QUIET)


def test_attention_that_is_not_finite_is_told():
    model = small("none")
    with torch.no_grad():
        model.blocks[1].attention.qkv.weight[0, 0] = float("nan")
    with pytest.raises(CheckpointError, match="weights of layer 1"):
        attention_field(model, TEXT, length=20, **QUIET)


def test_a_window_put_on_at_inference_bounds_the_reach():
    """Uniform attention, window w, L layers: L(w-1)+1 tokens and not one more."""
    model = small("none", n_layer=3).with_window(5)
    field = empirical_receptive_field(
        model, TEXT, length=40, n_windows=2, layers=True, heads=True, **QUIET
    )
    reach = 3 * (5 - 1) + 1
    assert (field.density[:reach] > 0).all()
    assert (field.density[reach:] == 0).all()
    assert all((layer.density[5:] == 0).all() for layer in field.layers)
    assert (field.heads.density[..., 5:] == 0).all()


@pytest.mark.slow
def test_speed_and_memory_are_as_promised():
    """At least 3 times a plain loop at 2048; below 1 GB of added peak at 9216."""
    script = Path(__file__).parent / "bench" / "empirical_speed.py"
    done = subprocess.run(
        [sys.executable, str(script), "--windows", "2", "--repeats", "2"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    speed, *memory = [json.loads(line) for line in done.stdout.splitlines()]
    assert speed["times_faster"] >= 3
    assert speed["largest_difference"] < 1e-5
    assert [row["length"] for row in memory] == [9216] * 3
    assert all(row["added_peak_mb"] < 1000 for row in memory), memory
