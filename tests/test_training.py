"""Training: reproducible, resumable after a kill, and it learns."""

from __future__ import annotations

import csv
import errno
import os
import shutil
import signal
import subprocess
import sys
import time

import pytest
import torch

from trf import perplexity, tokenisers, training
from trf.errors import CheckpointError, ParameterError, TextError, TRFError, UnknownNameError
from trf.nn import load, read_header, save
from trf.recipe import Recipe
from trf.training import draw_windows, run, train

SMALL = {
    "batch": 4, "length": 32, "n_layer": 1, "n_head": 2, "n_embd": 16, "learning_rate": 1e-2,
    "threads": 1, "progress": False, "tensorboard": False,
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
    draw = run.draw_windows

    def poisoned(data, seed, step, batch, length):
        if step == 10:
            model.embedding.weight.data[:] = float("nan")
        return draw(data, seed, step, batch, length)

    made = run.Decoder

    def remember(config):
        nonlocal model
        model = made(config)
        return model

    model = None
    monkeypatch.setattr(run, "Decoder", remember)
    monkeypatch.setattr(run, "draw_windows", poisoned)
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
        ({"accumulate": 0}, ParameterError, "accumulate"),
        ({"schedule": "linear"}, UnknownNameError, "inverse-sqrt"),
        ({"tokeniser": "words"}, UnknownNameError, "bpe:SIZE"),
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


def test_inverse_square_root():
    recipe = Recipe(
        "alibi", tokens=1000 * 1024, warmup=0.1, learning_rate=1.0, schedule="inverse-sqrt"
    )
    rates = [recipe.rate_at(step) for step in (0, 99, 100, 399)]
    assert rates == pytest.approx([0.01, 1.0, (100 / 101) ** 0.5, 0.5])
    assert "--schedule inverse-sqrt" in recipe.command()


def test_pieces_give_the_same_gradient(corpus, tmp_path):
    for pieces in (1, 4):
        train("alibi", tmp_path / f"{pieces}", corpus, tokens=640, accumulate=pieces, **SMALL)
    whole, pieces = (list(map(float, losses(tmp_path / name))) for name in ("1", "4"))
    assert pieces == pytest.approx(whole, rel=1e-5)
    with pytest.raises(ParameterError, match="in 3 pieces"):
        train("alibi", tmp_path / "3", corpus, tokens=640, accumulate=3, **SMALL)


def test_bf16_stays_near(corpus, tmp_path):
    for precision in ("32-true", "bf16-mixed"):
        settings = {**SMALL, "tokens": 20 * 128, "precision": precision, "accelerator": "cpu"}
        train("alibi", tmp_path / precision, corpus, **settings)
    full, half = (list(map(float, losses(tmp_path / p))) for p in ("32-true", "bf16-mixed"))
    assert half != full
    assert half == pytest.approx(full, rel=0.03)


def test_models_are_kept_on_the_way(corpus, tmp_path):
    settings = {**SMALL, "tokens": 30 * 128, "checkpoints": [1, 1280, 30 * 128]}
    result = train("kerple-log", tmp_path, corpus, **settings)
    assert sorted(result.kept) == [1, 1280]
    halfway = load(result.kept[1280])
    assert halfway.provenance["tokens"] == 1280
    assert halfway.provenance["of_tokens"] == 30 * 128
    text = b"the cat sat on the log, and the dog " * 9
    scores = [
        perplexity(m, text, [32], progress=False)[32].bits_per_byte
        for m in (result.kept[1], result.kept[1280], result.checkpoint)
    ]
    assert scores == sorted(scores, reverse=True)
    assert train("kerple-log", tmp_path, corpus, **settings).kept == result.kept
    assert list(result.to_dict()["kept"]) == ["1", "1280"]
    with pytest.raises(ParameterError, match="checkpoints"):
        train("alibi", tmp_path / "other", corpus, tokens=128, checkpoints=[129], **SMALL)


def test_bpe_travels_with_the_checkpoint_and_resumes(corpus, tmp_path, monkeypatch):
    pytest.importorskip("tokenizers")
    settings = {**SMALL, "tokens": 24 * 128, "tokeniser": "bpe:280", "save_every": 5}
    whole = train("alibi", tmp_path / "whole", corpus, **settings)
    model = load(whole.checkpoint)
    tokeniser = tokenisers.of(model.provenance)
    assert tokeniser.vocab_size == model.config.vocab_size > 256
    assert whole.train_bits_per_byte < 3
    scores = perplexity(model, "the cat sat on the log. " * 20, [32], progress=False)
    assert scores[32].bits_per_byte < scores[32].nats_per_token / 0.6931
    draw = run.draw_windows

    def stop(data, seed, step, batch, length):
        if step == 13:
            raise KeyboardInterrupt
        return draw(data, seed, step, batch, length)

    monkeypatch.setattr(run, "draw_windows", stop)
    with pytest.raises(KeyboardInterrupt):
        train("alibi", tmp_path / "cut", corpus, **settings)
    monkeypatch.setattr(run, "draw_windows", draw)
    monkeypatch.setattr(tokenisers, "build", None)  # it is read back, not learned again
    assert train("alibi", tmp_path / "cut", corpus, **settings).resumed_from == 10
    assert losses(tmp_path / "cut") == losses(tmp_path / "whole")


def test_an_older_checkpoint_lacks_newer_settings(corpus, tmp_path):
    """Their defaults stand in for them."""
    path = train("alibi", tmp_path, corpus, tokens=128, **SMALL).checkpoint
    model = load(path)
    del model.provenance["recipe"]["schedule"], model.provenance["recipe"]["tokeniser"]
    save(model, path)
    assert train("alibi", tmp_path, corpus, tokens=128, **SMALL).status == "already finished"
    with pytest.raises(ParameterError, match="schedule 'cosine' there, 'inverse-sqrt' here"):
        train("alibi", tmp_path, corpus, tokens=128, schedule="inverse-sqrt", **SMALL)


def test_a_full_disk_keeps_the_last_good_state(corpus, tmp_path, monkeypatch):
    settings = {**SMALL, "tokens": 20 * 128, "save_every": 4}
    flush, calls = os.fsync, []

    def full(descriptor):
        calls.append(descriptor)
        if len(calls) == 3:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        flush(descriptor)

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(CheckpointError, match=r"can't write .*state.*No space left"):
        train("alibi", tmp_path, corpus, **settings)
    monkeypatch.setattr(os, "fsync", flush)
    assert not list(tmp_path.glob(".*.tmp"))
    assert train("alibi", tmp_path, corpus, **settings).resumed_from == 8


def test_tensorboard_where_it_is_installed(corpus, tmp_path):
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    train("alibi", tmp_path, corpus, tokens=5 * 128, **{**SMALL, "tensorboard": True})
    events = EventAccumulator(str(tmp_path)).Reload()
    logged = [event.value for event in events.Scalars("loss")]
    assert logged == pytest.approx(list(map(float, losses(tmp_path))), rel=1e-6)
    assert min(event.value for event in events.Scalars("tokens_per_second")) > 0
    train("alibi", tmp_path / "without", corpus, tokens=128, **SMALL)
    assert not list((tmp_path / "without").glob("events*"))


TWO = """
import sys
from trf.training import train
train("kerple-log", sys.argv[1], sys.argv[2], tokens=12 * 256, batch=8, length=32, n_layer=1,
      n_head=2, n_embd=16, learning_rate=1e-2, threads=1, progress=False, tensorboard=False,
      accelerator="cpu", devices=2, save_every=5)
"""


def test_two_processes_equal_one_with_twice_the_batch(corpus, tmp_path):
    """Each of the two takes 4 windows a step, the one takes 8; by gloo, as torchrun starts them."""
    script = tmp_path / "two.py"
    script.write_text(TWO)
    done = subprocess.run(
        [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2",
         str(script), str(tmp_path / "two"), corpus],
        capture_output=True, text=True, timeout=300,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    settings = {**SMALL, "batch": 8, "tokens": 12 * 256}
    one = train("kerple-log", tmp_path / "one", corpus, **settings)
    expected = list(map(float, losses(tmp_path / "one")))
    assert list(map(float, losses(tmp_path / "two"))) == pytest.approx(expected, rel=1e-5)
    two = read_header(tmp_path / "two")["provenance"]
    assert two["valid_bits_per_byte"] == pytest.approx(one.valid_bits_per_byte, rel=1e-4)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("c++") is None, reason="torch.compile needs a C++ compiler")
def test_compiled_is_the_same(corpus, tmp_path):
    for compiled in (False, True):
        settings = {**SMALL, "tokens": 5 * 128, "compile": compiled, "accelerator": "cpu"}
        train("alibi", tmp_path / str(compiled), corpus, **settings)
    plain, compiled = (list(map(float, losses(tmp_path / n))) for n in ("False", "True"))
    assert compiled == pytest.approx(plain, rel=1e-4)
    assert load(tmp_path / "True").config.encoding == "alibi"
