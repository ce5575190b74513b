"""Training: reproducible, resumable after a kill, and it learns."""

from __future__ import annotations

import csv
import os
import signal
import subprocess
import sys
import time

import pytest
import torch

from trf import training
from trf.errors import CheckpointError, ParameterError, TextError, TRFError, UnknownNameError
from trf.nn import load, read_header
from trf.recipe import Recipe
from trf.training import draw_windows, train

SMALL = {
    "batch": 4, "length": 32, "n_layer": 1, "n_head": 2, "n_embd": 16, "learning_rate": 1e-2,
    "threads": 1, "progress": False,
}  # fmt: skip


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    path = tmp_path_factory.mktemp("text") / "text.txt"
    path.write_text("the cat sat on the mat, and the dog sat on the log. " * 200, "utf-8")
    return f"path:{path}"


def losses(out):
    with open(out / training.LOG, encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [int(row["step"]) for row in rows] == list(range(1, len(rows) + 1))
    return [row["loss"] for row in rows]


def test_it_learns_and_says_what_it_did(corpus, tmp_path):
    result = train("alibi", tmp_path, corpus, tokens=100 * 128, **SMALL)
    assert (result.status, result.steps, result.tokens) == ("finished", 100, 12800)
    assert result.valid_bits_per_byte < 3 < 7 < float(losses(tmp_path)[0]) / 0.6931
    model = load(result.checkpoint)
    assert model.config.train_length == 32
    header = read_header(tmp_path)["provenance"]
    assert header["valid_bits_per_byte"] == result.valid_bits_per_byte
    assert header["corpus"]["sha256"] == header["recipe"]["corpus_sha256"]
    assert "--encoding alibi" in header["command"]
    assert not (tmp_path / training.STATE).exists()
    assert "bits per byte" in str(result)
    assert result.to_dict()["checkpoint"] == str(result.checkpoint)


def test_a_finished_run_is_left_alone(corpus, tmp_path):
    first = train("none", tmp_path, corpus, tokens=256, **SMALL)
    again = train("none", tmp_path, corpus, tokens=256, **SMALL)
    assert again.status == "already finished"
    assert again.valid_bits_per_byte == first.valid_bits_per_byte
    with pytest.raises(ParameterError, match="tokens 256 there, 512 here"):
        train("none", tmp_path, corpus, tokens=512, **SMALL)


SCRIPT = """
import sys
from trf.training import train
train("kerple-log", sys.argv[1], sys.argv[2], tokens=150 * 128, save_every=7, valid_every=20,
      batch=4, length=32, n_layer=1, n_head=2, n_embd=16, learning_rate=1e-2, threads=1,
      progress=False)
"""


def test_killed_and_started_again_it_goes_on_along_the_same_curve(corpus, tmp_path):
    settings = {**SMALL, "tokens": 150 * 128, "save_every": 7, "valid_every": 20}
    train("kerple-log", tmp_path / "whole", corpus, **settings)
    out = tmp_path / "killed"
    process = subprocess.Popen([sys.executable, "-c", SCRIPT, str(out), corpus])
    log = out / training.LOG
    deadline = time.monotonic() + 120
    while not log.exists() or log.read_bytes().count(b"\n") < 40:
        assert process.poll() is None, "ended before it could be killed"
        assert time.monotonic() < deadline
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert not (out / "model.safetensors").exists()
    with pytest.raises(ParameterError, match="another recipe"):
        train("kerple-log", out, corpus, **{**settings, "seed": 1})
    resumed = train("kerple-log", out, corpus, **settings)
    assert resumed.resumed_from >= 35
    assert resumed.resumed_from % 7 == 0
    assert losses(out) == losses(tmp_path / "whole")
    whole, again = load(tmp_path / "whole"), load(out)
    for a, b in zip(whole.parameters(), again.parameters(), strict=True):
        assert torch.equal(a, b)


def test_a_loss_that_is_not_finite_stops_and_keeps_the_last_state(corpus, tmp_path, monkeypatch):
    draw = training.draw_windows

    def poisoned(data, seed, step, batch, length):
        if step == 10:
            model.embedding.weight.data[:] = float("nan")
        return draw(data, seed, step, batch, length)

    made = training.Decoder

    def remember(config):
        nonlocal model
        model = made(config)
        return model

    model = None
    monkeypatch.setattr(training, "Decoder", remember)
    monkeypatch.setattr(training, "draw_windows", poisoned)
    with pytest.raises(TRFError, match="not finite at step 11; the last good state stays in"):
        train("alibi", tmp_path, corpus, tokens=20 * 128, save_every=4, **SMALL)
    monkeypatch.undo()
    assert train("alibi", tmp_path, corpus, tokens=20 * 128, **SMALL).resumed_from == 8


def test_windows_are_a_function_of_seed_and_step():
    data = torch.arange(200, dtype=torch.uint8)
    a = draw_windows(data, seed=3, step=7, batch=5, length=10)
    assert a.shape == (5, 11)
    assert torch.equal(a, draw_windows(data, seed=3, step=7, batch=5, length=10))
    assert not torch.equal(a, draw_windows(data, seed=3, step=8, batch=5, length=10))
    assert not torch.equal(a, draw_windows(data, seed=4, step=7, batch=5, length=10))
    assert (a.diff(dim=1) == 1).all()
    assert draw_windows(data[:11], 0, 0, batch=4, length=10).tolist() == [list(range(11))] * 4


def test_learning_rate_warms_up_and_falls_to_a_tenth():
    recipe = Recipe("alibi", tokens=1000 * 8 * 512, batch=8, learning_rate=1.0, warmup=0.1)
    rates = [recipe.rate_at(step) for step in range(recipe.steps)]
    assert rates[0] == pytest.approx(0.01)
    assert rates[99] == rates[100] == pytest.approx(1.0)
    assert rates[-1] == pytest.approx(0.1, abs=1e-4)
    assert sorted(rates[100:], reverse=True) == rates[100:]


def test_the_command_names_what_differs_from_the_defaults():
    assert Recipe("alibi").command() == "trf train --encoding alibi --corpus code --out RUN"
    changed = Recipe("none", seed=3, learning_rate=1e-3).command()
    assert changed == (
        "trf train --encoding none --corpus code --seed 3 --learning-rate 0.001 --out RUN"
    )


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"encoding": "alibbi"}, UnknownNameError, "alibi"),
        ({"encoding": "permuteformer"}, ParameterError, "can't run"),
        ({"corpus": "coed"}, UnknownNameError, "code"),
        ({"learningrate": 1}, ParameterError, "unknown setting 'learningrate'"),
        ({"tokens": 0}, ParameterError, "tokens"),
        ({"tokens": 1e6}, ParameterError, "tokens"),
        ({"seed": -1}, ParameterError, "seed"),
        ({"n_head": 3}, ParameterError, "n_head"),
        ({"warmup": 1.5}, ParameterError, "warmup"),
        ({"learning_rate": 0}, ParameterError, "learning_rate"),
        ({"save_every": 0}, ParameterError, "save_every"),
        ({"accelerator": "abacus"}, ParameterError, "abacus"),
        ({"accelerator": "cpu", "devices": 0}, ParameterError, "devices 0"),
        ({"precision": "3-bit"}, ParameterError, "3-bit"),
        ({"length": 5000}, TextError, "at least 5001"),
    ],
)
def test_what_is_refused(corpus, tmp_path, settings, error, message):
    with pytest.raises(error, match=message):
        train(**{"encoding": "alibi", "corpus": corpus, **SMALL, **settings}, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_an_unwritable_folder(corpus, tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(CheckpointError, match="can't write"):
        train("alibi", tmp_path / "file", corpus, tokens=128, **SMALL)


def test_a_state_of_something_else(corpus, tmp_path):
    (tmp_path / training.STATE).write_bytes(b"nonsense")
    with pytest.raises(CheckpointError, match="not a safetensors file"):
        train("alibi", tmp_path, corpus, tokens=128, **SMALL)
