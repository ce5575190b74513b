"""Fitting families to attention: known biases are recovered, from synthetic and trained heads."""

from __future__ import annotations

import json

import numpy as np
import pytest

from trf.errors import ParameterError, UnknownNameError
from trf.fit import DEFAULT, fit_field, fit_head, fit_logs

N = 256
n = np.arange(N)


def totals(bias, noise=0.0, seed=0, windows=1):
    """Attention by the bias, with content logits of standard deviation `noise`, by distance."""
    generator = np.random.default_rng(seed)
    found = np.zeros(N)
    for _ in range(windows):
        for i in range(N):
            logits = bias[: i + 1] + noise * generator.standard_normal(i + 1)
            weights = np.exp(logits - logits.max())
            found[: i + 1] += weights / weights.sum()
    return found


KNOWN = {
    "none": (np.zeros(N), {}),
    "alibi": (-0.05 * n, {"m": 0.05}),
    "inverse-n": (-np.log(1 + 0.2 * n), {"k": 0.2}),
    "kerple-log": (-2.5 * np.log(1 + 0.3 * n), {"r1": 2.5, "r2": 0.3}),
    "kerple-power": (-0.4 * n**0.5, {"r1": 0.4, "r2": 0.5}),
    "type1": (-np.log(1 + (0.1 * n) ** 2), {"k": 0.1}),
    "type2": (-(np.log(3 + 0.1 * n) ** 2), {"k": 0.1}),
    "window": (np.where(n < 37, 0.0, -np.inf), {"w": 37}),
}


@pytest.mark.parametrize("family", KNOWN)
def test_a_known_bias_is_recovered(family):
    bias, parameters = KNOWN[family]
    fit = fit_head(totals(bias), 1)
    assert fit.best.family == family
    assert fit.best.parameters == pytest.approx(parameters, rel=2e-3)


def test_buckets_of_t5_are_recovered():
    from trf.encodings.t5 import bucket

    values = np.random.default_rng(0).normal(size=32)
    bias = values[[bucket(int(d)) for d in n]]
    fit = fit_head(totals(bias, windows=8), 8)
    assert fit.best.family == "t5"
    got = [fit.best.parameters[f"b{k}"] for k in range(1, 32)]
    assert np.allclose(got, values[1:] - values[0], atol=2e-2)
    assert not fit.best.verdict


def test_content_that_does_not_depend_on_distance_changes_nothing():
    bias, _ = KNOWN["alibi"]
    fit = fit_head(totals(bias, noise=1.0, windows=4), 4, families=("none", "alibi", "type1"))
    assert fit.best.family == "alibi"
    assert fit.best.parameters["m"] == pytest.approx(0.05, rel=0.05)


def test_the_fit_gives_its_theory():
    fit = fit_head(totals(KNOWN["alibi"][0]), 1, families=("alibi", "inverse-n"))
    assert fit.best.verdict
    assert fit.best.receptive_field(0.01).radius == 93  # floor(ln(100)/0.05) + 1
    assert not fit["inverse-n"].verdict
    assert fit["inverse-n"].receptive_field(0.1, length=N).radius <= N
    assert sum(fit.weights().values()) == pytest.approx(1)
    assert json.loads(json.dumps(fit.to_dict()))["fits"][0]["family"] == "alibi"
    assert "alibi" in str(fit)


def test_held_out_windows_choose_too():
    bias = KNOWN["type1"][0]
    halves = np.stack([totals(bias, 0.5, seed, windows=2) for seed in (1, 2)])
    families = ("none", "alibi", "type1", "type2")
    fit = fit_head(halves, (2, 2), families=families, criterion="held-out")
    assert fit.best.family == "type1"
    assert all(f.held_out is not None and np.isfinite(f.held_out) for f in fit.fits)


def test_what_is_refused_of_log_weights():
    with pytest.raises(ParameterError, match="finite log-weights"):
        fit_logs(np.full(20, -np.inf))
    with pytest.raises(ParameterError, match="fit_head"):
        fit_logs(-np.arange(20.0), families=("window",))
    with pytest.raises(ParameterError, match="shape"):
        fit_logs(np.zeros((3, 20)))
    with pytest.raises(UnknownNameError, match="way to fit"):
        fit_field(None, of="gradient")


@pytest.mark.parametrize(
    ("weights", "windows", "options", "error", "message"),
    [
        (np.ones(8), 2, {}, ParameterError, "must sum to"),
        (np.full(8, np.nan), 1, {}, ParameterError, "finite"),
        (np.ones((3, 8)), 1, {}, ParameterError, "shape"),
        (np.ones(8), 1, {"families": ("linear",)}, UnknownNameError, "family"),
        (np.ones(8), 1, {"criterion": "aic"}, UnknownNameError, "criterion"),
        (np.ones(8), 1, {"criterion": "held-out"}, ParameterError, "two halves"),
    ],
)
def test_what_is_refused(weights, windows, options, error, message):
    with pytest.raises(error, match=message):
        fit_head(weights, windows, **options)


@pytest.mark.parametrize(
    ("model", "parameter"), [("alibi", "m"), ("type1", "k"), ("type2", "k"), ("inverse-n", "k")]
)
def test_trained_heads_of_the_first_layer_show_their_bias(model, parameter):
    """Content moves the parameters by some percent there; deeper it can hide the family."""
    pytest.importorskip("torch")
    from trf import corpora
    from trf.empirical import attention_field
    from trf.encodings.alibi import slopes

    text = corpora.load("code").test
    field = attention_field(model, text, length=512, n_windows=4, progress=False)
    fits = fit_field(field, families=("none", "alibi", "type1", "type2", "inverse-n"))
    assert len(fits) == 4
    found = [head[model].parameters[parameter] for head in fits[0]]
    assert found == pytest.approx([float(m) for m in slopes(4)], rel=0.12)
    assert [head.best.family for head in fits[0]][:2] == [model, model]


@pytest.mark.parametrize("family", [f for f in KNOWN if f != "window"])
def test_log_weights_show_the_bias(family):
    bias, parameters = KNOWN[family]
    noise = 1e-3 * np.random.default_rng(0).standard_normal((2, N))
    for criterion in ("bic", "held-out"):
        fit = fit_logs(bias - 3 + noise, criterion=criterion)
        assert fit[family].parameters == pytest.approx(parameters, rel=1e-2)
        assert criterion != "bic" or fit.best.family == family
    assert fit.count == N - 1


def test_content_falls_out_of_the_log_weights():
    pytest.importorskip("torch")
    import torch

    from trf import encodings
    from trf.empirical import attention_field
    from trf.nn import Decoder, DecoderConfig

    torch.manual_seed(0)
    model = Decoder(DecoderConfig("type1", n_layer=1, n_head=2, n_embd=32))
    with torch.no_grad():
        model.blocks[0].attention.qkv.weight[:64] *= 2
    text = bytes(np.random.default_rng(0).integers(0, 256, 3000).astype(np.uint8))
    field = attention_field(model, text, length=256, n_windows=8, progress=False)
    assert (field.logit_bound > 2).all()
    fits = fit_field(field, families=("none", "alibi", "type1", "type2", "inverse-n"))
    slopes = [float(head["k"]) for head in encodings.get("type1").head_values(2)]
    assert fits[0][0].best.family == "type1"
    assert fits[0][0].best.parameters["k"] == pytest.approx(slopes[0], rel=0.05)
    mass = fit_field(field, of="mass", families=("none", "type1"))
    assert mass[0][0].best.family == "type1"


def test_every_family_is_an_encoding_of_the_catalogue():
    from trf import encodings

    assert all(encodings.get(name).name == name for name in DEFAULT)
