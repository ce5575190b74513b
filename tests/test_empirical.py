"""The empirical receptive field against models whose field is known exactly."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from torch import nn

import trf
from trf.empirical import REDUCTIONS, empirical_receptive_field, measure
from trf.empirical.gradient import squared_norms
from trf.encodings import Encoding
from trf.errors import CheckpointError, ParameterError, TextError, UnknownNameError
from trf.nn import Decoder, DecoderConfig, save
from trf.nn.attention import toeplitz
from trf.nn.decoder import Block

TEXT = "".join(chr(97 + (i * i) % 23) for i in range(1000))
QUIET = {"progress": False}


class ContentFree(Block):
    """Attention by the bias alone, values passed on as they are; with or without the residual."""

    def __init__(self, config, residual):
        super().__init__(config)
        C = config.n_embd
        self.residual = residual
        self.norm_attention = nn.Identity()
        with torch.no_grad():
            self.attention.qkv.weight.zero_()
            self.attention.qkv.weight[2 * C :] = torch.eye(C)
            self.attention.out.weight.copy_(torch.eye(C))

    def forward(self, x, bias):
        y = self.attention(x, bias)
        return x + y if self.residual else y


def content_free(encoding, n_layer=1, residual=False):
    torch.manual_seed(0)
    config = DecoderConfig("mine", n_layer=n_layer, n_head=1, n_embd=8)
    model = Decoder(config, encoding=encoding)
    model.blocks = nn.ModuleList(ContentFree(config, residual) for _ in range(n_layer))
    model.norm = nn.Identity()
    return model


def kernel(encoding, length):
    n = np.arange(length)
    bias = Decoder(DecoderConfig("mine", n_layer=1, n_head=1, n_embd=2), encoding=encoding).bias
    return np.exp(
        np.zeros(length) if bias is None else bias(length)[0].detach().double().numpy()
    ), n


def fixed(text, **values):
    """An encoding of one head whose parameters have these values."""
    return Encoding.from_expression(text, fixed={k: lambda h, v=v: (v,) for k, v in values.items()})


@pytest.mark.parametrize(
    "encoding",
    [
        trf.encodings.get("none"),
        fixed("-m*n", m=0.1),
        fixed("-r*log(1+n)", r=1.5),
        fixed("Piecewise((0, n < 20), (-oo, True))"),
    ],
    ids=lambda e: e.formula,
)
@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_one_content_free_layer_has_the_normalised_kernel(encoding, reduction):
    length = 300
    weights, _ = kernel(encoding, length)
    field = empirical_receptive_field(
        content_free(encoding), TEXT, length=length, n_windows=3, reduction=reduction, **QUIET
    )
    expected = weights / weights.sum()
    assert np.allclose(field.density, expected, atol=1e-6)
    assert np.allclose(field.curve, np.cumsum(expected), atol=1e-5)
    assert np.allclose(field.window_curves, field.curve, atol=1e-5)


@pytest.mark.parametrize("residual", [False, True])
def test_several_layers_are_the_matrix_product(residual):
    """x + A x is twice (I + A)/2, so rho = 1/2 with the residual and 0 without it."""
    encoding, length, n_layer = fixed("-m*n", m=0.05), 200, 3
    field = empirical_receptive_field(
        content_free(encoding, n_layer, residual), TEXT, length=length, n_windows=2, **QUIET
    )
    bias = torch.from_numpy(np.log(kernel(encoding, length)[0]))[None]
    matrix = toeplitz(bias)[0].softmax(-1)
    if residual:
        matrix = (torch.eye(length) + matrix) / 2
    row = torch.linalg.matrix_power(matrix, n_layer)[-1].flip(0).numpy()
    assert np.allclose(field.curve, np.cumsum(row), atol=1e-5)


def test_beyond_the_windows_of_all_layers_the_gradient_is_exactly_zero():
    encoding = fixed("Piecewise((0, n < 7), (-oo, True))")
    model = content_free(encoding, n_layer=3, residual=True)
    field = empirical_receptive_field(model, TEXT, length=100, n_windows=2, **QUIET)
    reach = 3 * (7 - 1) + 1
    assert (field.density[:reach] > 0).all()
    assert (field.density[reach:] == 0).all()


def test_radii_of_a_known_kernel():
    """ALiBi with slope 1/4 in a window of 300: FIELD's formula floor(ln(1/eps)/m) + 1."""
    field = empirical_receptive_field(
        content_free(fixed("-n/4")), TEXT, eps=["1/10", 0.01], length=300, n_windows=1, **QUIET
    )
    assert field.radii == {0.1: 10, 0.01: 19}
    assert (field.eps, field.radius) == (0.1, 10)
    assert field.radius_at(0.001) == 28


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(0)
    shape = {"n_layer": 2, "n_head": 2, "n_embd": 16, "train_length": 32}
    return Decoder(DecoderConfig("kerple-log", **shape)).eval()


def test_the_jacobian_is_the_jacobian(model):
    window = torch.tensor([list(TEXT[:13].encode())])
    x = model.embed(window[:, :-1]).detach()
    jacobian = torch.autograd.functional.jacobian(
        lambda e: model.forward_embeddings(e)[0, -1], x
    )  # (C, 1, N, C)
    exact = jacobian[:, 0].double().square().sum(dim=(0, 2)).sqrt()
    got = squared_norms(model, window, "jacobian", torch.eye(16)[None], [-1]).output.sqrt()
    assert torch.allclose(got[0, 0, 0], exact, rtol=1e-5)


def test_projections_estimate_the_jacobian(model):
    exact = empirical_receptive_field(model, TEXT, length=64, reduction="jacobian", **QUIET)
    near = empirical_receptive_field(model, TEXT, length=64, n_projections=64, **QUIET)
    assert np.abs(near.curve - exact.curve).max() < 0.02


def test_the_result_repeats_and_batches_do_not_matter(model, monkeypatch):
    first = empirical_receptive_field(model, TEXT, length=50, n_windows=7, **QUIET)
    again = empirical_receptive_field(model, TEXT.encode(), length=50, n_windows=7, **QUIET)
    assert np.array_equal(first.curve, again.curve)
    other = empirical_receptive_field(model, TEXT, length=50, n_windows=7, seed=1, **QUIET)
    assert not np.array_equal(first.curve, other.curve)
    monkeypatch.setattr(measure, "TOKENS_AT_ONCE", 100)
    small = empirical_receptive_field(model, TEXT, length=50, n_windows=7, **QUIET)
    assert np.allclose(first.window_curves, small.window_curves, atol=1e-5)


def test_the_model_is_left_as_it_was(model):
    empirical_receptive_field(model, TEXT, length=20, n_windows=2, **QUIET)
    assert all(p.requires_grad and p.grad is None for p in model.parameters())


def test_what_the_result_holds(model, tmp_path):
    path = save(model, tmp_path / "m.safetensors")
    field = empirical_receptive_field(str(path), TEXT, length=40, n_windows=5, **QUIET)
    assert (field.length, field.n_windows, field.seed) == (40, 5, 0)
    assert (field.reduction, field.n_projections) == ("projection", 4)
    assert (field.encoding, field.train_length) == ("kerple-log", 32)
    lower, upper = field.band()
    assert (lower <= upper).all()
    assert field.density.sum() == pytest.approx(1)
    data = json.loads(json.dumps(field.to_dict()))
    assert data["radii"] == {"0.01": field.radius}
    assert len(data["curve"]) == len(data["band"][0]) == 40
    assert "tokens" in str(field)


def test_a_text_with_few_windows_gives_all_of_them(model):
    field = empirical_receptive_field(model, TEXT[:42], length=40, n_windows=32, **QUIET)
    assert field.n_windows == 2


def test_nan_weights_are_told():
    torch.manual_seed(0)
    broken = Decoder(DecoderConfig("none", n_layer=1, n_head=1, n_embd=8))
    broken.embedding.weight.data[97] = float("nan")
    with pytest.raises(CheckpointError, match="not finite"):
        empirical_receptive_field(broken, TEXT, length=40, **QUIET)


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"text": ""}, TextError, "empty"),
        ({"length": 1000}, TextError, "at least 1,001"),
        ({"eps": 0}, ParameterError, "eps"),
        ({"eps": 1.0}, ParameterError, "eps"),
        ({"eps": []}, ParameterError, "eps"),
        ({"eps": "a tenth"}, ParameterError, "eps"),
        ({"n_windows": 0}, ParameterError, "n_windows"),
        ({"reduction": "logits"}, UnknownNameError, "Did you mean 'logit'"),
        ({"model": "nothing-there"}, CheckpointError, "neither a file"),
    ],
)
def test_what_is_refused(model, settings, error, message):
    with pytest.raises(error, match=message):
        empirical_receptive_field(**{"model": model, "text": TEXT, **QUIET, **settings})
