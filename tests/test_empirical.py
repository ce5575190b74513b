"""The empirical receptive field against models whose field is known exactly."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from known_fields import QUIET, TEXT, content_free, fixed, kernel

import trf
from trf import tokenisers
from trf.empirical import REDUCTIONS, empirical_receptive_field, measure
from trf.empirical.gradient import squared_norms
from trf.errors import CheckpointError, ParameterError, TextError, UnknownNameError
from trf.nn import Decoder, DecoderConfig, save
from trf.nn.attention import toeplitz


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


def test_the_error_of_the_projections_is_of_the_size_told(model):
    exact = empirical_receptive_field(model, TEXT, length=64, reduction="jacobian", **QUIET)
    near = empirical_receptive_field(model, TEXT, length=64, n_projections=8, **QUIET)
    inner = slice(1, 50)
    ratio = (near.curve - exact.curve)[inner] / near.projection_error[inner]
    assert np.abs(ratio).max() < 4
    assert near.projection_error.max() < 0.02
    assert (exact.projection_error == 0).all()
    one = empirical_receptive_field(model, TEXT, length=64, n_projections=1, **QUIET)
    assert np.isnan(one.projection_error).all()
    json.dumps(one.to_dict(), allow_nan=False)


def test_several_positions_are_those_measured_one_by_one(model):
    settings = {"length": 50, "n_windows": 4, "reduction": "jacobian", **QUIET}
    both = empirical_receptive_field(model, TEXT, positions=(-1, 19), **settings)
    assert both.positions == (19, 49)
    densities = []
    for position in both.positions:
        alone = empirical_receptive_field(model, TEXT, positions=position, **settings)
        assert np.allclose(both.position_curves[position], alone.curve[: position + 1])
        assert (alone.density[position + 1 :] == 0).all()
        densities.append(alone.density)
    assert np.allclose(both.density, np.mean(densities, axis=0))
    shorter = empirical_receptive_field(model, TEXT[:20], length=20 - 1, n_windows=1, **QUIET)
    assert shorter.positions == (18,)


def test_intervals_are_the_bootstrap_of_the_windows(model):
    field = empirical_receptive_field(model, TEXT, 0.1, length=60, n_windows=12, **QUIET)
    low, high = field.radius_interval()
    assert low <= field.radius <= high
    wide = field.radius_interval(level=0.999)
    assert wide[0] <= low
    assert wide[1] >= high
    assert field.radius_interval() == (low, high)
    lower, upper = field.confidence(0.95)
    assert (lower <= field.curve + 1e-12).all()
    assert (field.curve <= upper + 1e-12).all()
    # the bootstrap's width is 2 * 1.96 standard errors, about
    error = field.window_curves.std(axis=0) / np.sqrt(field.n_windows)
    assert np.allclose((upper - lower)[2:40], 3.92 * error[2:40], rtol=0.25)
    assert f"[{low}, {high}]" in str(field)
    single = empirical_receptive_field(model, TEXT, 0.1, length=60, n_windows=1, **QUIET)
    assert single.radius_interval() == (single.radius, single.radius)


def test_spread_and_mean_of_an_even_field():
    model = content_free(trf.encodings.get("none"))
    field = empirical_receptive_field(model, TEXT, length=100, n_windows=1, **QUIET)
    assert field.participation_ratio == pytest.approx(100, rel=1e-4)
    assert field.mean_distance == pytest.approx(49.5, rel=1e-4)


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
        ({"positions": 512}, ParameterError, "positions"),
        ({"positions": []}, ParameterError, "position"),
        ({"text": [0, 256] * 300}, TextError, "0 ... 255"),
        ({"model": 3}, CheckpointError, "decoder"),
        ({"reduction": "logits"}, UnknownNameError, "Did you mean 'logit'"),
        ({"model": "nothing-there"}, CheckpointError, "neither a file"),
    ],
)
def test_what_is_refused(model, settings, error, message):
    with pytest.raises(error, match=message):
        empirical_receptive_field(**{"model": model, "text": TEXT, **QUIET, **settings})


def test_a_text_is_read_by_the_checkpoints_own_tokeniser():
    pytest.importorskip("tokenizers")
    words = "the receptive field of the model is the field that the model sees. " * 40
    bpe = tokenisers.build("bpe:300", words)
    torch.manual_seed(0)
    config = DecoderConfig("alibi", n_layer=1, n_head=1, n_embd=8, vocab_size=bpe.vocab_size)
    model = Decoder(config)
    model.provenance["tokeniser"] = bpe.to_dict()
    options = {"length": 16, "n_windows": 3, "progress": False}
    by_text = empirical_receptive_field(model, words, **options)
    by_ids = empirical_receptive_field(model, bpe.encode(words), **options)
    np.testing.assert_array_equal(by_text.curve, by_ids.curve)
