"""One cell: train, measure everything the experiment needs, keep the numbers, drop the model."""

from __future__ import annotations

import csv
import json
import math
import shutil
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from filelock import FileLock, Timeout

import trf
from trf import corpora, tokenisers
from trf.errors import CheckpointError, TRFError
from trf.evaluation import perplexity
from trf.files import write_json
from trf.grid import measure
from trf.grid.plan import Cell, Preset
from trf.nn import checkpoint, load
from trf.tokenisers import tokenise
from trf.training import LOG, initial_decoder, train

COLUMNS = (
    "encoding", "corpus", "seed", "tokens", "at_tokens", "text", "quantity", "mode", "length",
    "eps", "layer", "head", "value", "error",
)  # fmt: skip
_LOG_POINTS = 200  # of the training curve that is kept


class CellBusy(TRFError):
    """Another process is at work on this cell."""


def cell_file(out: Path, cell: Cell) -> Path:
    """Where the numbers of a cell are."""
    return out / "cells" / f"{cell.name}.json"


def run_cell(cell: Cell, out: Path, threads: int = 1, keep: bool = False) -> dict[str, Any]:
    """Train and measure a cell, or go on where an earlier call was stopped; returns its record.

    The record is written to ``OUT/cells/NAME.json`` when it is whole; until then the training state
    is in ``OUT/runs/NAME``. With `keep` the checkpoints stay there, and the cell is measured again
    without training if its record is deleted.

    Raises:
        CellBusy: another process has it.
        TRFError: it can't be trained (the loss is not finite, the disk is full).
    """
    path, work = cell_file(out, cell), out / "runs" / cell.name
    try:
        work.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(work.with_suffix(".lock"), timeout=0):
            if path.exists():
                return json.loads(path.read_text("utf-8"))
            record = _measure(cell, work, threads)
            write_json(path, record)
            if not keep:
                shutil.rmtree(work, ignore_errors=True)
    except Timeout as error:
        raise CellBusy(f"another process is at work on {cell.name}") from error
    except OSError as error:
        raise CheckpointError(f"{cell.name}: {error.filename or out}: {error.strerror}") from error
    return record


def _measure(cell: Cell, work: Path, threads: int) -> dict[str, Any]:
    preset = cell.preset
    if cell.encoding == "learned":
        preset = _within(preset, preset.train_length)
        cell = replace(cell, preset=preset)
    trained = train(
        cell.encoding,
        work,
        cell.corpus,
        threads=threads,
        precision=preset.precision,
        checkpoints=cell.on_the_way,
        tensorboard=False,
        progress=False,
        seed=cell.seed,
        tokens=cell.tokens,
        **preset.training,
    )
    began = time.perf_counter()
    torch.set_num_threads(threads)
    model = load(trained.checkpoint).to("cuda" if torch.cuda.is_available() else "cpu")
    tokeniser = tokenisers.of(model.provenance)
    ids = tokenise(
        corpora.load(cell.corpus).test,
        max(preset.lengths) + 1,
        model.config.vocab_size,
        tokeniser,
    )
    rows: list[dict[str, Any]] = []
    curves: list[dict[str, Any]] = []
    rows += measure.parameters(initial_decoder(trained.recipe, model.config.vocab_size), 0)
    for at, path in sorted(trained.kept.items()):
        kept = load(path).to(next(model.parameters()).device)
        measure.receptive_field(kept, ids, preset.train_length, cell, at, rows, curves)
        rows += measure.parameters(kept, at)
    for length in preset.field_lengths:
        measure.receptive_field(model, ids, length, cell, trained.tokens, rows, curves)
        measure.attention(model, ids, length, cell, rows, curves)
    measure.entropy(model, ids, cell, rows, curves)
    rows += [*measure.parameters(model, trained.tokens), *measure.gains(model, ids, preset)]
    measure.evaluate(model, ids, cell, rows, curves)
    for name, file in cell.texts:
        text = corpora.read_text(file)
        lengths = [n for n in preset.lengths if n < len(tokeniser.encode(text))]
        if lengths:
            result = perplexity(
                model, text, lengths, max_windows=preset.n_segments, seed=cell.seed, progress=False
            )
            rows += [{**row, "text": name} for row in measure.scores(result)]
    for name in ("train_bits_per_byte", "valid_bits_per_byte"):
        rows.append({"quantity": name, "value": getattr(trained, name)})
    provenance = {k: v for k, v in model.provenance.items() if k != "tokeniser"}
    return {
        "cell": cell.to_dict(),
        "rows": [_tidy({"at_tokens": trained.tokens, "text": "test", **row}) for row in rows],
        "curves": curves,
        "log": _training_curve(work),
        "training": provenance,
        "seconds": {
            "training": trained.seconds,
            "measuring": round(time.perf_counter() - began, 1),
        },
        "versions": {**checkpoint.versions(), "trf": trf.__version__},
    }


def _within(preset: Preset, longest: int) -> Preset:
    """Measure nothing longer: learned absolute positions end with the training window."""
    names = ("lengths", "log_scale_lengths", "sliding_lengths", "field_lengths")
    kept = {name: tuple(n for n in getattr(preset, name) if n <= longest) for name in names}
    return replace(preset, **{**kept, "lengths": kept["lengths"] or (longest,)})


def _training_curve(work: Path) -> dict[str, list[float | None]]:
    """Tokens, loss and speed of the run, averaged down to a few hundred points."""
    with open(work / LOG, encoding="utf-8", newline="") as file:
        log = list(csv.DictReader(file))
    names = ("tokens", "loss", "tokens_per_second")
    pieces = np.array_split(np.arange(len(log)), min(_LOG_POINTS, len(log)))
    return {
        name: measure.rounded(np.array([np.mean([float(log[i][name]) for i in p]) for p in pieces]))
        for name in names
    }


def _tidy(row: dict[str, Any]) -> dict[str, Any]:
    """A row without what is not known; a number that is not finite is a missing one."""
    return {
        name: float(f"{value:.7g}") if isinstance(value, float) else value
        for name, value in row.items()
        if value is not None and (not isinstance(value, float) or math.isfinite(value))
    }
