"""The grid: self-contained cells, skipped when done, resumed when killed, in parallel, by Dask."""

from __future__ import annotations

import csv
import json
import math
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import pytest

pytest.importorskip("torch")

from filelock import FileLock

from trf import grid
from trf.errors import (
    CheckpointError,
    MissingExtraError,
    ParameterError,
    TextError,
    TRFError,
    UnknownNameError,
)
from trf.grid import PRESETS, merge, run_grid
from trf.grid.plan import Budget, parse_budget

ONE = {"jobs": 1, "threads": 1, "progress": False}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    path = tmp_path_factory.mktemp("text") / "text.txt"
    path.write_text("the cat sat on the mat, and the dog sat on the log. " * 200, "utf-8")
    return f"path:{path}"


@pytest.fixture(scope="module")
def made(corpus, tmp_path_factory):
    out = tmp_path_factory.mktemp("grid")
    novel = out / "novel.txt"
    novel.write_text("It was the best of times. " * 30, "utf-8")
    names = ["kerple-log", "sinusoidal"]
    result = run_grid(
        names, [corpus], out, preset="smoke", texts={"novel": novel}, jobs=2, progress=False
    )
    return out, result


def cells(out):
    return [json.loads(path.read_text()) for path in sorted((out / "cells").glob("*.json"))]


def values(cell, quantity, **where):
    return [
        row["value"]
        for row in cell["rows"]
        if row["quantity"] == quantity and all(row.get(k) == v for k, v in where.items())
    ]


def test_a_cell_holds_all_that_the_experiment_needs(made):
    out, result = made
    assert len(result.done) == 2
    assert not result.failed
    assert result.tokens == 2048
    kerple, sinusoidal = cells(out)
    assert kerple["cell"]["encoding"] == "kerple-log"
    modes = {row["mode"] for row in kerple["rows"] if row["quantity"] == "perplexity"}
    assert modes == {
        "non-overlapping", "sliding by 16", "log-n scale", "window 32", "blocks 32",
        "blocks 32, log-n scale",
    }  # fmt: skip
    assert not any("window" in row.get("mode", "") for row in sinusoidal["rows"])
    for length in (32, 64, 128):
        where = {"mode": "non-overlapping", "length": length, "text": "test"}
        (nats,) = values(kerple, "nats_per_token", **where)
        assert values(kerple, "perplexity", **where) == [pytest.approx(math.exp(nats))]
        assert values(kerple, "bits_per_byte", **where) == [pytest.approx(nats / math.log(2))]
    assert len(values(kerple, "perplexity", mode="sliding by 16")) == 2
    assert len(values(kerple, "perplexity", text="novel")) == 3
    for length in (32, 64):
        radii = values(kerple, "erf", length=length, at_tokens=2048)
        assert len(radii) == 4
        assert sorted(radii) == radii
        assert len(values(kerple, "entropy", length=length, mode=None)) == 2  # layers times heads
        assert min(values(kerple, "logit_bound", length=length)) > 0
        assert min(values(kerple, "logit_spread", length=length)) > 0
    assert len(values(kerple, "value_gain")) == len(values(kerple, "key_gain")) == 2
    assert len(values(kerple, "entropy", mode="full")) == 2
    assert max(values(kerple, "entropy", mode="window 32")) <= math.log(32)
    (attention,) = (
        curve
        for curve in kerple["curves"]
        if (curve["quantity"], curve["length"]) == ("attention", 32)
    )
    assert [len(heads) for heads in attention["heads"]] == [2]  # heads of the one layer
    assert attention["heads"][0][0][-1] == pytest.approx(1, abs=1e-4)
    assert len(values(kerple, "erf", length=32, at_tokens=1024)) == 4
    assert len(values(kerple, "parameter r1", at_tokens=1024)) == 2
    assert all(0.01 <= r1 <= 2 for r1 in values(kerple, "parameter r1", at_tokens=0))
    assert values(kerple, "parameter r1", at_tokens=0) != values(
        kerple, "parameter r1", at_tokens=1024
    )
    assert values(kerple, "parameter r1", at_tokens=1024) != values(
        kerple, "parameter r1", at_tokens=2048
    )
    kinds = [(curve["quantity"], curve["length"]) for curve in kerple["curves"]]
    assert kinds.count(("erf", 32)) == 2
    assert kinds.count(("loss_by_position", 128)) == 3
    assert kinds.count(("attention", 64)) == 1
    assert kinds.count(("entropy", 64)) == 2
    assert kerple["training"]["corpus"]["sha256"]
    assert kerple["training"]["recipe"]["seed"] == 0
    assert kerple["seconds"]["training"] > 0
    assert kerple["versions"]["trf"]
    assert len(kerple["log"]["loss"]) == 16


def test_within_the_window_the_modes_agree(made):
    for cell in cells(made[0])[:1]:
        (plain,) = values(cell, "nats_per_token", mode="non-overlapping", length=32, text="test")
        for mode in ("window 32", "blocks 32", "log-n scale"):
            assert values(cell, "nats_per_token", mode=mode, length=32) == [
                pytest.approx(plain, rel=1e-5)
            ]


def test_done_cells_are_skipped_and_merged_alike(made, corpus):
    out, first = made
    before = first.table.read_bytes()
    again = run_grid(["kerple-log"], [corpus], out, preset="smoke", **ONE)
    assert (len(again.done), len(again.skipped)) == (0, 1)
    assert again.table.read_bytes() == before
    with open(again.table, encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == sum(len(cell["rows"]) for cell in cells(out))
    assert {row["encoding"] for row in rows} == {"kerple-log", "sinusoidal"}
    assert len(json.loads((out / "results.json").read_text())["cells"]) == 2
    assert not list((out / "runs").glob("*/"))
    assert "2 cells measured" in str(first)
    assert json.loads(json.dumps(first.to_dict()))["tokens"] == 2048


def test_another_preset_needs_another_folder(made, corpus):
    other = replace(PRESETS["smoke"], n_windows=5)
    with pytest.raises(ParameterError, match="another preset"):
        run_grid(["alibi"], [corpus], made[0], preset=other, **ONE)


SCRIPT = """
import sys
from trf.grid import run_grid
if __name__ == "__main__":
    run_grid(["alibi", "none"], [sys.argv[2]], sys.argv[1], preset="smoke", budget=300 * 128,
             jobs=2, threads=1, progress=False)
"""


def test_killed_in_the_middle_it_goes_on(corpus, tmp_path):
    script = tmp_path / "grid.py"
    script.write_text(SCRIPT)
    out = tmp_path / "killed"
    process = subprocess.Popen(
        [sys.executable, str(script), str(out), corpus], start_new_session=True
    )
    deadline = time.monotonic() + 120
    while not list(out.glob("runs/*/state.safetensors")):
        assert process.poll() is None, "ended before it could be killed"
        assert time.monotonic() < deadline
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    begun = list(out.glob("runs/*/state.safetensors"))
    assert begun
    assert not list(out.glob("cells/*.json"))
    settings = {"preset": "smoke", "budget": 300 * 128, **ONE}
    resumed = run_grid(["alibi", "none"], [corpus], out, **settings)
    assert len(resumed.done) == 2
    run_grid(["alibi", "none"], [corpus], tmp_path / "whole", **settings)
    for a, b in zip(cells(out), cells(tmp_path / "whole"), strict=True):
        assert a["log"]["loss"] == b["log"]["loss"]
        rows = [[row for row in cell["rows"] if row["quantity"] != "seconds"] for cell in (a, b)]
        assert rows[0] == rows[1]


def test_a_cell_in_other_hands_is_left_to_them(corpus, tmp_path):
    (tmp_path / "runs").mkdir()
    name = run_grid(["none"], [corpus], tmp_path / "other", preset="smoke", **ONE).done[0]
    with FileLock(tmp_path / "runs" / f"{name}.lock"):
        result = run_grid(["none"], [corpus], tmp_path, preset="smoke", **ONE)
    assert result.busy == (name,)
    assert not result.done


def test_a_cell_that_fails_says_why_and_the_others_go_on(corpus, tmp_path):
    hot = replace(PRESETS["smoke"], training={**PRESETS["smoke"].training, "learning_rate": 1e30})
    result = run_grid(["alibi", "none"], [corpus], tmp_path, preset=hot, **ONE)
    assert len(result.failed) == 2
    assert all("not finite" in why for why in result.failed.values())
    assert not cells(tmp_path)
    assert "2 failed" in str(result)


def test_learned_positions_are_measured_within_training(corpus, tmp_path):
    result = run_grid(["learned"], [corpus], tmp_path, preset="smoke", **ONE)
    assert not result.failed
    (cell,) = cells(tmp_path)
    assert {row.get("length") for row in cell["rows"]} == {None, 32}


def test_a_budget_in_minutes_is_the_same_for_every_cell(corpus, tmp_path, monkeypatch):
    monkeypatch.setattr(grid, "_speed", lambda preset: 1000.0)
    first = run_grid(["none"], [corpus], tmp_path, preset="smoke", budget="1s", **ONE)
    assert first.tokens == 8 * 128  # a second at 1000 tokens a second, in whole steps of 128
    monkeypatch.setattr(grid, "_speed", None)  # measured once a folder
    again = run_grid(["none"], [corpus], tmp_path, preset="smoke", budget="2s", seeds=[0, 1], **ONE)
    assert again.tokens == 16 * 128
    assert len({cell["cell"]["seed"] for cell in cells(tmp_path)}) == 2
    assert len(cells(tmp_path)) == 3


def test_speed_is_measured():
    assert grid._speed(PRESETS["smoke"], steps=4) > 10


@pytest.mark.parametrize(
    ("text", "budget"),
    [
        ("4min", Budget(None, 240)),
        ("90s", Budget(None, 90)),
        ("1.5h", Budget(None, 5400)),
        ("3M", Budget(3_000_000)),
        (1024, Budget(1024)),
        ("20k", Budget(20_000)),
    ],
)
def test_budgets(text, budget):
    assert parse_budget(text) == budget


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"budget": "soon"}, ParameterError, "soon"),
        ({"budget": 0}, ParameterError, "budget"),
        ({"budget": "-3"}, ParameterError, "budget"),
        ({"preset": "lapdog"}, UnknownNameError, "laptop"),
        ({"encodings": ["alibbi"]}, UnknownNameError, "alibi"),
        ({"encodings": ["permuteformer"]}, ParameterError, "can't run"),
        ({"encodings": []}, ParameterError, "needs an encoding"),
        ({"corpora": ["coed"]}, UnknownNameError, "code"),
        ({"corpora": ["path:/nothing/there"]}, TextError, "nothing at"),
        ({"seeds": [-1]}, ParameterError, "seed"),
        ({"jobs": 0}, ParameterError, "jobs"),
        ({"texts": {"a": "/nothing/there"}}, TextError, "can't read"),
    ],
)
def test_what_is_refused_before_anything_starts(corpus, tmp_path, settings, error, message):
    defaults = {"encodings": ["alibi"], "corpora": [corpus], "preset": "smoke", "progress": False}
    with pytest.raises(error, match=message):
        run_grid(**{**defaults, **settings}, out=tmp_path / "grid")
    assert not (tmp_path / "grid").exists()


def test_a_text_shorter_than_the_lengths_fails_its_cell(tmp_path):
    path = tmp_path / "short.txt"
    path.write_text("a short text, but one to train on. " * 60, "utf-8")
    result = run_grid(["none"], [f"path:{path}"], tmp_path / "g", preset="smoke", **ONE)
    assert "must have at least 129" in next(iter(result.failed.values()))


def test_files_that_are_no_cells(tmp_path):
    (tmp_path / "cells").mkdir()
    (tmp_path / "cells" / "a.json").write_text("[]")
    with pytest.raises(CheckpointError, match="no cell"):
        merge(tmp_path)
    (tmp_path / "plan.json").write_text("[]")
    with pytest.raises(CheckpointError, match="no plan"):
        run_grid(["none"], ["code"], tmp_path, preset="smoke", **ONE)


def test_dask_with_two_workers(corpus, tmp_path, made):
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=50
    ) as cluster:
        result = run_grid(
            ["kerple-log", "none"], [corpus], tmp_path, preset="smoke", progress=False,
            dask=cluster.scheduler_address,
        )  # fmt: skip
        assert len(result.done) == 2
    kerple = cells(tmp_path)[0]
    here = cells(made[0])[0]
    for name in ("perplexity", "erf", "entropy"):
        there = values(kerple, name, text="test")
        assert there == pytest.approx(values(here, name, text="test"), rel=1e-4)


def test_no_dask_there(corpus, tmp_path, monkeypatch):
    pytest.importorskip("distributed")
    settings = {"preset": "smoke", "progress": False}
    with pytest.raises(ParameterError, match="no Dask scheduler"):
        run_grid(["none"], [corpus], tmp_path, dask="nowhere", **settings)
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(MissingExtraError, match=r"trf\[grid\]"):
        run_grid(["none"], [corpus], tmp_path, dask="tcp://127.0.0.1:1", **settings)


def test_a_process_that_dies_stops_the_grid_with_the_remedy(corpus, tmp_path, monkeypatch):
    from trf.grid import workers

    class Dying:
        def __init__(self, *_, **__):
            pass

        def __enter__(self):
            return self

        def __exit__(self, *_):
            return False

        def submit(self, *_):
            raise workers.BrokenProcessPool("gone")

    monkeypatch.setattr(workers, "ProcessPoolExecutor", Dying)
    with pytest.raises(TRFError, match="the same call goes on"):
        run_grid(["none", "alibi"], [corpus], tmp_path, preset="smoke", jobs=2, progress=False)


def test_presets_are_whole():
    for name, preset in PRESETS.items():
        assert preset.name == name
        assert max(preset.field_lengths) <= max(preset.lengths)
    assert PRESETS["laptop"].train_length == PRESETS["paper"].train_length == 512
    assert PRESETS["paper"].training["n_layer"] == 6
    assert PRESETS["paper-12"].training["n_layer"] == 12
