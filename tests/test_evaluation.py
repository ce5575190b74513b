"""Perplexity against length: the right tokens, the right sums, clear refusals."""

from __future__ import annotations

import json
import math
import subprocess
import sys

import pytest
import torch
import torch.nn.functional as F

import trf
from trf import tokenisers
from trf.errors import CheckpointError, ParameterError, TextError
from trf.evaluation import loss_by_position, perplexity, windows
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


def test_sliding_equals_a_plain_loop(model):
    """Every token once; with stride 1 each but the first few has N tokens before it."""
    tokens = torch.tensor(list(TEXT.encode()))
    segment, length = 40, 12
    for stride in (1, 5, 12):
        result = perplexity(
            model, TEXT[:401], [length, segment], stride=stride, max_windows=None, progress=False
        )
        nats = []
        for s in range(0, 10 * segment, segment):
            seen = 0
            begins = [*range(0, segment - length + 1, stride)]
            begins += [segment - length] if begins[-1] != segment - length else []
            for begin in begins:
                at = s + begin
                logits = model(tokens[None, at : at + length])[0]
                targets = tokens[at + 1 : at + length + 1]
                each = F.cross_entropy(logits, targets, reduction="none")
                nats += each[seen - begin :].tolist()
                seen = begin + length
        assert len(nats) == result[length].n_tokens == 10 * segment
        assert result[length].nats_per_token == pytest.approx(sum(nats) / len(nats), rel=1e-5)
        assert result[length].n_windows == 10 * len(begins)


def test_all_modes_agree_where_one_window_is_the_whole_segment(model):
    plain = perplexity(model, TEXT, [64], progress=False)[64]
    for other in (
        {"stride": 7},
        {"stride": 64},
        {"stride": 100},
        {"window": 64},
        {"window": 500},
        {"blocks": 64},
        {"blocks": 32},
    ):
        row = perplexity(model, TEXT, [64], **other, progress=False)[64]
        assert row.nats_per_token == pytest.approx(plain.nats_per_token, rel=1e-5)
    by_position = loss_by_position(model, TEXT, 64, progress=False)
    assert by_position.nats.mean() == pytest.approx(plain.nats_per_token, rel=1e-6)


def test_a_window_is_what_the_decoder_calls_one(model):
    tokens = torch.tensor(list(TEXT.encode()))
    for settings, view in (
        ({"window": 5}, model.with_window(5)),
        ({"blocks": 5}, model.with_blocks(5)),
        ({"window": 40, "log_scale": True}, model.with_window(40).with_log_scale()),
        ({"log_scale": True}, model.with_log_scale()),
    ):
        row = perplexity(model, TEXT, [90], max_windows=None, **settings, progress=False)[90]
        expected = by_hand(view, tokens, 90, 0, 11)
        assert row.nats_per_token == pytest.approx(expected, rel=1e-5)
        assert expected != pytest.approx(by_hand(model, tokens, 90, 0, 11), rel=1e-6)


def test_within_training_the_log_scale_changes_nothing(model):
    plain = perplexity(model, TEXT, [16], progress=False)
    scaled = perplexity(model, TEXT, [16], log_scale=True, progress=False)
    assert scaled[16].nats_per_token == pytest.approx(plain[16].nats_per_token, rel=1e-6)
    assert scaled.mode == "log-n scale"
    both = perplexity(model, TEXT, [16], stride=4, window=8, log_scale=True, progress=False)
    assert both.mode == "sliding by 4, window 8, log-n scale"


def test_loss_by_position_is_the_mean_over_windows(model):
    tokens = torch.tensor(list(TEXT.encode()))
    result = loss_by_position(model, TEXT, 20, max_windows=None, progress=False)
    assert result.n_windows == 49
    windows = torch.stack([tokens[s : s + 21] for s in range(0, 980, 20)])
    expected = model.losses(windows[:, :-1], windows[:, 1:]).mean(dim=0)
    torch.testing.assert_close(torch.from_numpy(result.nats).float(), expected, rtol=1e-5, atol=0)
    edges, nats = result.binned(7)
    assert edges[-1] == 20
    assert (nats * [3, 3, 3, 2, 3, 3, 3]).sum() == pytest.approx(result.nats.sum())
    assert len(json.dumps(result.to_dict())) > 100


def test_bits_per_byte_compare_tokenisers():
    """The same uniform model in another vocabulary: nats differ, bytes make up for it."""
    pytest.importorskip("tokenizers")
    words = " ".join(TEXT[i : i + 3] for i in range(0, 900, 3))
    tokeniser = tokenisers.build("bpe:300", words)
    config = DecoderConfig("none", n_layer=1, n_head=1, n_embd=8, vocab_size=tokeniser.vocab_size)
    model = Decoder(config).eval()
    model.provenance = {"tokeniser": tokeniser.to_dict()}
    ids = tokeniser.encode(words)
    result = perplexity(model, words, [50], max_windows=None, progress=False)
    row = result[50]
    n_bytes = int(tokeniser.byte_counts[ids[1 : row.n_tokens + 1]].sum())
    assert n_bytes > 1.2 * row.n_tokens
    nats = row.nats_per_token * row.n_tokens
    assert row.bits_per_byte == pytest.approx(nats / n_bytes / math.log(2), rel=1e-6)
    assert result.tokeniser == "bpe:300"
    assert "definition" not in json.dumps(result.to_dict())
    model.provenance = {}
    unknown = perplexity(model, torch.from_numpy(ids), [50], progress=False)
    assert unknown[50].bits_per_byte is None
    assert "-" in str(unknown)


def test_a_large_vocabulary_goes_in_pieces(model, monkeypatch):
    whole = perplexity(model, TEXT, [64], progress=False)[64]
    monkeypatch.setattr(windows, "_LOGITS_AT_ONCE", 256 * 10)
    again = perplexity(model, TEXT, [64], progress=False)[64]
    assert again.nats_per_token == pytest.approx(whole.nats_per_token, rel=1e-6)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"stride": 0}, "stride"),
        ({"stride": 1.5}, "stride"),
        ({"window": 0}, "positive integer"),
        ({"blocks": -3}, "positive integer"),
        ({"window": 5, "blocks": 5}, "not both"),
    ],
)
def test_modes_that_are_refused(model, settings, message):
    with pytest.raises(ParameterError, match=message):
        perplexity(model, TEXT, [64], **settings, progress=False)


def test_absolute_positions_take_no_window():
    model = Decoder(DecoderConfig("sinusoidal", n_layer=1, n_head=1, n_embd=8))
    with pytest.raises(ParameterError, match="absolute"):
        loss_by_position(model, TEXT, 64, window=8, progress=False)


@pytest.mark.slow
def test_a_few_windows_of_9216_in_bounded_memory_and_time():
    """Peak memory of a fresh process at 9216, over that at 512, and the time of each mode."""
    script = """
import json, resource, sys, time, torch
from trf import perplexity
torch.set_num_threads(1)
text = bytes(range(32, 127)) * 300
perplexity("alibi", text, [512], max_windows=1, progress=False)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
took = {}
for name, how in {"plain": {}, "window": {"window": 512}, "blocks": {"blocks": 512}}.items():
    began = time.perf_counter()
    perplexity("alibi", text, [9216], max_windows=3, progress=False, **how)
    took[name] = time.perf_counter() - began
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(json.dumps({"MB": after - before, **took}))
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=300
    )
    measured = json.loads(done.stdout)
    assert measured["MB"] < 600  # the 9216 x 9216 logits of four heads alone are 1,300
    assert measured["plain"] < 60
    assert measured["window"] < measured["plain"]
