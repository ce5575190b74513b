"""One cell: train, measure everything the experiment needs, keep the numbers, drop the model.

Curves over distances are kept at some hundred distances, evenly spread on a logarithmic axis
(`tokens`, counted from 1); radii are read off the whole curve.
"""

from __future__ import annotations

import csv
import json
import math
import shutil
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from filelock import FileLock, Timeout

import trf
from trf import corpora, tokenisers
from trf.empirical import (
    AttentionField,
    attention_field,
    branch_gains,
    empirical_receptive_field,
)
from trf.encodings import Kind
from trf.errors import CheckpointError, TRFError
from trf.evaluation import loss_by_position, perplexity
from trf.evaluation.windows import run_as
from trf.files import write_json
from trf.grid.plan import Cell, Preset
from trf.nn import Decoder, checkpoint, load
from trf.tokenisers import tokenise
from trf.training import LOG, initial_decoder, train

COLUMNS = (
    "encoding", "corpus", "seed", "tokens", "at_tokens", "text", "quantity", "mode", "length",
    "eps", "layer", "head", "value", "error",
)  # fmt: skip
_LOG_POINTS = 200  # of the training curve that is kept
_CURVE_POINTS = 128
_ENTROPY_POINTS = 32
_QUERIES = 16  # the last of each window, whose attention is kept by distance


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
    rows += _parameters(initial_decoder(trained.recipe, model.config.vocab_size), 0)
    for at, path in sorted(trained.kept.items()):
        kept = load(path).to(next(model.parameters()).device)
        _field(kept, ids, preset.train_length, cell, at, rows, curves)
        rows += _parameters(kept, at)
    for length in preset.field_lengths:
        _field(model, ids, length, cell, trained.tokens, rows, curves)
        _attention(model, ids, length, cell, rows, curves)
    _entropy(model, ids, cell, rows, curves)
    rows += [*_parameters(model, trained.tokens), *_gains(model, ids, preset)]
    _evaluate(model, ids, cell, rows, curves)
    for name, file in cell.texts:
        text = corpora.read_text(file)
        lengths = [n for n in preset.lengths if n < len(tokeniser.encode(text))]
        if lengths:
            result = perplexity(
                model, text, lengths, max_windows=preset.n_segments, seed=cell.seed, progress=False
            )
            rows += [{**row, "text": name} for row in _scores(result)]
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


def _evaluate(
    model: Decoder, ids: np.ndarray, cell: Cell, rows: list[Any], curves: list[Any]
) -> None:
    """Perplexity in every mode that the encoding takes, and loss by position."""
    preset = cell.preset
    longest = max(preset.lengths)
    common: dict[str, Any] = {
        "max_windows": preset.n_segments, "seed": cell.seed, "progress": False
    }  # fmt: skip
    rows += _scores(perplexity(model, ids, preset.lengths, **common))
    if preset.sliding_lengths:
        sliding = {"stride": preset.stride, "segment_length": longest}
        rows += _scores(perplexity(model, ids, preset.sliding_lengths, **sliding, **common))
    views: list[dict[str, Any]] = [{}, {"log_scale": True}]
    if model.encoding.kind is not Kind.ABSOLUTE:
        # Behind a window of the training length no query sees more keys than in training, so that
        # the log-n scale is 1; in blocks it sees up to twice as many.
        blocks = {"blocks": preset.window}
        views += [{"window": preset.window}, blocks, {**blocks, "log_scale": True}]
    for view in views:
        scaled = "log_scale" in view
        lengths = preset.log_scale_lengths if scaled else preset.lengths
        if view and lengths:
            rows += _scores(perplexity(model, ids, lengths, segment_length=longest, **view,
                                       **common))  # fmt: skip
        if not scaled:
            result = loss_by_position(model, ids, longest, **view, **common)
            positions, nats = result.binned()
            curves.append(
                {
                    "quantity": "loss_by_position",
                    "mode": result.mode,
                    "length": longest,
                    "positions": positions.tolist(),
                    "nats": _rounded(nats),
                }
            )


def _scores(result: Any) -> Iterator[dict[str, Any]]:
    """Rows of a `Perplexity`."""
    for row in result.rows:
        where = {"mode": result.mode, "length": row.length}
        yield {**where, "quantity": "nats_per_token", "value": row.nats_per_token,
               "error": row.standard_error}  # fmt: skip
        yield {**where, "quantity": "perplexity", "value": row.perplexity}
        yield {**where, "quantity": "bits_per_byte", "value": row.bits_per_byte}
        yield {**where, "quantity": "seconds", "value": row.seconds}


def _windows(cell: Cell, length: int) -> int:
    return max(2, cell.preset.n_windows * cell.preset.train_length // max(length, 1))


def _field(
    model: Decoder,
    ids: np.ndarray,
    length: int,
    cell: Cell,
    at: int,
    rows: list[Any],
    curves: list[Any],
) -> None:
    """The empirical receptive field at N, or that it can't be measured."""
    where: dict[str, Any] = {"length": length, "at_tokens": at}
    try:
        measured = empirical_receptive_field(
            model, ids, cell.preset.eps, length=length, n_windows=_windows(cell, length),
            seed=cell.seed, progress=False,
        )  # fmt: skip
    except CheckpointError as error:
        curves.append({**where, "quantity": "erf", "missing": str(error)})
        rows += [{**where, "quantity": "erf", "eps": eps} for eps in cell.preset.eps]
        return
    low, high = measured.band()
    curves.append(
        {
            **where,
            "quantity": "erf",
            "tokens": (kept := _spread(length)).tolist(),
            "curve": _rounded(measured.curve[kept - 1]),
            "low": _rounded(low[kept - 1]),
            "high": _rounded(high[kept - 1]),
            "n_windows": measured.n_windows,
        }
    )
    rows += [
        {**where, "quantity": "erf", "eps": eps, "value": radius}
        for eps, radius in measured.radii.items()
    ]


def _attention(
    model: Decoder, ids: np.ndarray, length: int, cell: Cell, rows: list[Any], curves: list[Any]
) -> None:
    """Logit bound and spread, sink and entropy of every layer and head; and their mean curves."""
    field = attention_field(
        model, ids, length=length, n_windows=max(2, _windows(cell, length) // 4),
        seed=cell.seed, positions=range(length - min(_QUERIES, length), length), progress=False,
    )  # fmt: skip
    rows += _by_head(field, {"length": length})
    kept = _spread(length)
    shares = field.curve[..., kept - 1]
    curve: dict[str, Any] = {
        "quantity": "attention",
        "length": length,
        "tokens": kept.tolist(),
        "curve": _rounded(shares.mean(axis=(0, 1))),
        "n_windows": field.n_windows,
    }
    if length == cell.preset.train_length:
        curve["heads"] = [[_rounded(h, 5) for h in layer] for layer in shares]
    curves.append(curve)


def _entropy(
    model: Decoder, ids: np.ndarray, cell: Cell, rows: list[Any], curves: list[Any]
) -> None:
    """Entropy of attention against the number of keys, with the window mask and without."""
    length, window = cell.preset.entropy_length, cell.preset.window
    views: list[tuple[str, dict[str, Any]]] = [("full", {})]
    if model.encoding.kind is not Kind.ABSOLUTE:
        views.append((f"window {window}", {"window": window}))
    elif model.config.encoding == "learned":
        length = cell.preset.train_length
    kept = _spread(length, _ENTROPY_POINTS)
    for mode, view in views:
        seen, _ = run_as(model, view.get("window"), None, False)
        field = attention_field(
            seen, ids, length=length, n_windows=1, seed=cell.seed, progress=False
        )
        rows += _by_head(field, {"length": length, "mode": mode})
        curves.append(
            {
                "quantity": "entropy",
                "mode": mode,
                "length": length,
                "tokens": kept.tolist(),
                "nats": [[_rounded(h[kept - 1]) for h in layer] for layer in field.entropy],
                "n_windows": field.n_windows,
            }
        )


def _by_head(field: AttentionField, where: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Rows of every layer and head."""
    for layer, head in np.ndindex(field.n_layer, field.n_head):
        for name, values in (
            ("sink", field.sink),
            ("entropy", field.entropy[..., -1]),
            ("logit_bound", field.logit_bound),
            ("logit_spread", field.logit_spread),
        ):
            value = float(values[layer, head])
            yield {**where, "layer": layer, "head": head, "quantity": name, "value": value}


def _spread(length: int, points: int = _CURVE_POINTS) -> np.ndarray:
    """Numbers of tokens 1 ... length, evenly spread on a logarithmic axis."""
    return np.unique(np.geomspace(1, length, min(points, length)).round().astype(int))


def _parameters(model: Decoder, at: int) -> list[dict[str, Any]]:
    """The learned parameters of the bias, a row a head."""
    if model.bias is None:
        return []
    learned = [parameter.name for parameter in model.encoding.learnable]
    return [
        {"quantity": f"parameter {name}", "at_tokens": at, "head": head, "value": values[name]}
        for head, values in enumerate(model.bias.values())
        for name in learned
        if name in values
    ]


def _gains(model: Decoder, ids: np.ndarray, preset: Preset) -> Iterator[dict[str, Any]]:
    """What the heads add to the stream, by layer and head, at the training length."""
    gains = branch_gains(model, ids, length=preset.train_length)
    for layer, head in np.ndindex(*gains.value.shape):
        where = {"length": preset.train_length, "layer": layer, "head": head}
        yield {**where, "quantity": "value_gain", "value": float(gains.value[layer, head])}
        yield {**where, "quantity": "key_gain", "value": float(gains.key[layer, head])}
    for layer, size in enumerate(gains.stream):
        yield {"quantity": "stream", "layer": layer, "value": float(size)}


def _training_curve(work: Path) -> dict[str, list[float | None]]:
    """Tokens, loss and speed of the run, averaged down to a few hundred points."""
    with open(work / LOG, encoding="utf-8", newline="") as file:
        log = list(csv.DictReader(file))
    names = ("tokens", "loss", "tokens_per_second")
    pieces = np.array_split(np.arange(len(log)), min(_LOG_POINTS, len(log)))
    return {
        name: _rounded(np.array([np.mean([float(log[i][name]) for i in p]) for p in pieces]))
        for name in names
    }


def _tidy(row: dict[str, Any]) -> dict[str, Any]:
    """A row without what is not known; a number that is not finite is a missing one."""
    return {
        name: float(f"{value:.7g}") if isinstance(value, float) else value
        for name, value in row.items()
        if value is not None and (not isinstance(value, float) or math.isfinite(value))
    }


def _rounded(values: np.ndarray, digits: int = 7) -> list[float | None]:
    return [float(f"{value:.{digits}g}") if math.isfinite(value) else None for value in values]
