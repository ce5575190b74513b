"""Gains of the heads, against the exact Jacobian of decoders that are simple enough."""

import json

import numpy as np
import pytest

pytest.importorskip("torch")

import torch

from trf import corpora
from trf.empirical import branch_gains, empirical_receptive_field, predicted_receptive_field
from trf.errors import CheckpointError, ParameterError
from trf.nn import Decoder, DecoderConfig
from trf.theory import path_curve

N = 48
TEXT = bytes(np.random.default_rng(0).integers(0, 256, 600, dtype=np.uint8))


def decoder(n_layer, seed=0, **changes):
    torch.manual_seed(seed)
    model = Decoder(DecoderConfig("alibi", n_layer=n_layer, n_head=2, n_embd=64))
    with torch.no_grad():
        for block in model.blocks:
            for name, factor in changes.items():
                if name == "mlp":
                    block.mlp[2].weight.mul_(factor)
                elif name == "qk":
                    block.attention.qkv.weight[:128].mul_(factor)
                elif name == "out":
                    block.attention.out.weight.mul_(factor)
    return model


def measured(model):
    return empirical_receptive_field(
        model, TEXT, length=N, n_windows=6, reduction="jacobian", progress=False
    ).curve


def predicted(model, *, keys=True):
    gains = branch_gains(model, TEXT, length=N, n_windows=6)
    g = np.hypot(gains.value, gains.key) if keys else gains.value
    return path_curve(model.encoding.head_biases(2), N, g)


@pytest.mark.parametrize("out", [0.5, 2.0, 6.0])
def test_value_gains_give_the_jacobian_where_attention_has_no_content(out):
    model = decoder(1, mlp=0.0, qk=0.0, out=out)
    gains = branch_gains(model, TEXT, length=N, n_windows=6)
    assert gains.key.max() < 1e-6
    assert np.abs(predicted(model) - measured(model)).max() < 0.02


def test_key_gains_are_part_of_it_where_there_is_content():
    model = decoder(1, mlp=0.0, qk=0.7, out=3.0)
    curve = measured(model)
    with_keys = np.abs(predicted(model) - curve).max()
    assert with_keys < 0.04
    assert np.abs(predicted(model, keys=False) - curve).max() > 1.5 * with_keys


def test_layers_and_perceptrons():
    model = decoder(3, mlp=1.0, qk=0.3, out=3.0)
    assert np.abs(predicted(model) - measured(model)).max() < 0.06


def test_gains_scale_with_the_heads_and_the_share_follows():
    small, large = (
        branch_gains(decoder(1, out=factor), TEXT, length=N, n_windows=2) for factor in (1.0, 3.0)
    )
    np.testing.assert_allclose(large.value, 3 * small.value, rtol=1e-5)
    np.testing.assert_allclose(large.key, 3 * small.key, rtol=1e-4)
    np.testing.assert_allclose(small.stream, large.stream)
    np.testing.assert_allclose(large.residual, 1 / (1 + large.value.sum(axis=1)))
    assert set(small.to_dict()) == {"value", "key", "stream", "residual"}


def test_what_is_no_model_is_refused():
    with pytest.raises(CheckpointError):
        branch_gains("no-such-model", TEXT, length=N)
    with pytest.raises(ParameterError, match="n_windows"):
        branch_gains(decoder(1), TEXT, length=N, n_windows=0)


def test_the_predicted_field_is_near_the_measured_one_of_trained_models():
    text = corpora.load("code").test[:60_000]
    for name in ("type1", "type2", "inverse-n"):
        erf = empirical_receptive_field(name, text, [0.5, 0.1], n_windows=8, progress=False)
        found = predicted_receptive_field(name, text, [0.5, 0.1], n_windows=4, progress=False)
        assert found.length == len(found.curve) == 512
        error = abs(np.log(found.radii[0.1] / erf.radii[0.1]))
        assert error < np.log(1.35)
        assert found.radius == found.radii[0.5] == found.radius_at("1/2")
        assert "predicted ERF(0.1)" in str(found)
        assert json.loads(json.dumps(found.to_dict()))["radii"]["0.1"] == found.radii[0.1]


@pytest.mark.parametrize("name", ["rope", "xpos", "sandwich-absolute", "t5", "learned", "fire"])
def test_every_kind_of_encoding_has_gains(name):
    model = Decoder(DecoderConfig(name, n_layer=2, n_head=2, n_embd=16, train_length=N))
    gains = branch_gains(model, TEXT, length=N, n_windows=2)
    assert gains.value.shape == gains.key.shape == (2, 2)
    assert (gains.value > 0).all()
    assert (gains.key > 0).all()


def test_appended_positions_change_no_gain():
    torch.manual_seed(0)
    plain, appended = (
        Decoder(DecoderConfig(name, n_layer=1, n_head=2, n_embd=16, train_length=N))
        for name in ("sandwich", "sandwich-absolute")
    )
    appended.load_state_dict(plain.state_dict(), strict=False)
    one, other = (branch_gains(m, TEXT, length=N, n_windows=2) for m in (plain, appended))
    np.testing.assert_allclose(one.key, other.key, rtol=1e-5)
    with pytest.raises(ParameterError, match="adds the same bias"):
        predicted_receptive_field(appended, TEXT, length=N)


def test_what_has_no_bias_has_no_prediction():
    with pytest.raises(ParameterError, match="no bias p"):
        predicted_receptive_field("sinusoidal", TEXT, length=N)
    with pytest.raises(ParameterError, match="eps"):
        predicted_receptive_field(decoder(1), TEXT, [], length=N)
