"""Perplexity against length: the right tokens, the right sums, clear refusals."""

from __future__ import annotations

import json
import math

import pytest
import torch
import torch.nn.functional as F

import trf
from trf.errors import CheckpointError, ParameterError, TextError
from trf.evaluation import perplexity
from trf.nn import Decoder, DecoderConfig, save

TEXT = "".join(chr(97 + (i * i) % 23) for i in range(1000))


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(0)
    return Decoder(DecoderConfig("alibi", n_layer=2, n_head=2, n_embd=16, train_length=16)).eval()


def by_hand(model, tokens, length, start, count):
    """Cross-entropy of count windows from `start`, one at a time."""
    losses = []
    for w in range(count):
        at = start + w * length
        logits = model(tokens[None, at : at + length])[0]
        losses.append(F.cross_entropy(logits, tokens[at + 1 : at + length + 1]))
    return torch.stack(losses).mean().item()


def test_equals_a_plain_loop(model):
    tokens = torch.tensor(list(TEXT.encode()))
    result = perplexity(model, TEXT, [10, 30], max_windows=None, progress=False)
    assert result.n_segments == result.n_segments_possible == 33
    for length in (10, 30):
        row = result[length]
        assert (row.n_tokens, row.n_windows) == (990, 990 // length)
        nats = by_hand(model, tokens, length, 0, 990 // length)
        assert row.nats_per_token == pytest.approx(nats, rel=1e-5)
        assert row.perplexity == pytest.approx(math.exp(nats), rel=1e-5)
        assert row.bits_per_byte == pytest.approx(nats / math.log(2), rel=1e-5)


def test_one_window_is_the_whole_text(model):
    tokens = torch.tensor(list(TEXT.encode()))
    result = perplexity(model, TEXT, [999], progress=False)
    assert result[999].nats_per_token == pytest.approx(by_hand(model, tokens, 999, 0, 1), rel=1e-5)
    assert result[999].standard_error is None


def test_every_length_scores_the_same_tokens_where_it_divides(model):
    result = perplexity(model, TEXT, [100, 25, 50, 40], max_windows=3, progress=False)
    assert [row.length for row in result.rows] == [25, 40, 50, 100]
    assert [row.n_tokens for row in result.rows] == [300, 240, 300, 300]
    assert result.n_segments == 3
    assert all(row.standard_error > 0 for row in result.rows)


def test_the_seed_draws_the_segments(model):
    def nats(seed):
        result = perplexity(model, TEXT, [50], max_windows=4, seed=seed, progress=False)
        return result[50].nats_per_token

    assert nats(0) == nats(0)
    assert len({nats(seed) for seed in range(5)}) > 1


def test_a_path_text_bytes_and_ids_are_the_same(model, tmp_path):
    path = save(model, tmp_path / "m.safetensors")
    data = TEXT.encode()
    results = [
        perplexity(m, t, [50], progress=False)[50]
        for m, t in [
            (model, TEXT),
            (path, data),
            (str(path), list(data)),
            (model, torch.tensor(list(data))),
        ]
    ]
    assert results == results[:1] * 4


def test_an_untrained_model_is_near_uniform_and_the_result_is_json(model):
    result = perplexity(model, TEXT, [64, 512], progress=False)
    assert 7 < result[64].bits_per_byte < 10
    data = json.loads(json.dumps(result.to_dict()))
    assert data["rows"][0]["length"] == 64
    assert "bits/byte" in str(result)
    with pytest.raises(KeyError, match="measured"):
        result[65]


@pytest.mark.parametrize(
    ("text", "settings", "error", "message"),
    [
        ("", {}, TextError, "empty"),
        ("short", {}, TextError, "at least 513"),
        (TEXT, {"lengths": [0]}, ParameterError, "lengths"),
        (TEXT, {"lengths": []}, ParameterError, "lengths"),
        (TEXT, {"lengths": [2.5]}, ParameterError, "lengths"),
        (TEXT, {"max_windows": 0}, ParameterError, "max_windows"),
        (TEXT, {"model": "nothing-there"}, CheckpointError, "neither a file"),
    ],
)
def test_what_is_refused(model, text, settings, error, message):
    settings = {"model": model, "lengths": [512], "progress": False, **settings}
    with pytest.raises(error, match=message):
        perplexity(text=text, **settings)


def test_it_is_public():
    assert trf.perplexity is perplexity
