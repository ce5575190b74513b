"""What is measured of the trained model of a cell, as the rows and curves of its record.

Curves over distances are kept at some hundred distances, evenly spread on a logarithmic axis
(`tokens`, counted from 1); radii are read off the whole curve.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from trf.empirical import (
    AttentionField,
    attention_field,
    branch_gains,
    empirical_receptive_field,
)
from trf.encodings import Kind
from trf.errors import CheckpointError
from trf.evaluation import loss_by_position, perplexity
from trf.evaluation.windows import run_as
from trf.grid.plan import Cell, Preset
from trf.nn import Decoder

_CURVE_POINTS = 128
_ENTROPY_POINTS = 32
_QUERIES = 16  # the last of each window, whose attention is kept by distance


def receptive_field(
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
            "curve": rounded(measured.curve[kept - 1]),
            "low": rounded(low[kept - 1]),
            "high": rounded(high[kept - 1]),
            "n_windows": measured.n_windows,
        }
    )
    rows += [
        {**where, "quantity": "erf", "eps": eps, "value": radius}
        for eps, radius in measured.radii.items()
    ]


def attention(
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
        "curve": rounded(shares.mean(axis=(0, 1))),
        "n_windows": field.n_windows,
    }
    if length == cell.preset.train_length:
        curve["heads"] = [[rounded(h, 5) for h in layer] for layer in shares]
    curves.append(curve)


def entropy(
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
                "nats": [[rounded(h[kept - 1]) for h in layer] for layer in field.entropy],
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


def gains(model: Decoder, ids: np.ndarray, preset: Preset) -> Iterator[dict[str, Any]]:
    """What the heads add to the stream, by layer and head, at the training length."""
    found = branch_gains(model, ids, length=preset.train_length)
    for layer, head in np.ndindex(*found.value.shape):
        where = {"length": preset.train_length, "layer": layer, "head": head}
        yield {**where, "quantity": "value_gain", "value": float(found.value[layer, head])}
        yield {**where, "quantity": "key_gain", "value": float(found.key[layer, head])}
    for layer, size in enumerate(found.stream):
        yield {"quantity": "stream", "layer": layer, "value": float(size)}


def parameters(model: Decoder, at: int) -> list[dict[str, Any]]:
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


def evaluate(
    model: Decoder, ids: np.ndarray, cell: Cell, rows: list[Any], curves: list[Any]
) -> None:
    """Perplexity in every mode that the encoding takes, and loss by position."""
    preset = cell.preset
    longest = max(preset.lengths)
    common: dict[str, Any] = {
        "max_windows": preset.n_segments, "seed": cell.seed, "progress": False
    }  # fmt: skip
    rows += scores(perplexity(model, ids, preset.lengths, **common))
    if preset.sliding_lengths:
        sliding = {"stride": preset.stride, "segment_length": longest}
        rows += scores(perplexity(model, ids, preset.sliding_lengths, **sliding, **common))
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
            rows += scores(perplexity(model, ids, lengths, segment_length=longest, **view,
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
                    "nats": rounded(nats),
                }
            )


def scores(result: Any) -> Iterator[dict[str, Any]]:
    """Rows of a `Perplexity`."""
    for row in result.rows:
        where = {"mode": result.mode, "length": row.length}
        yield {**where, "quantity": "nats_per_token", "value": row.nats_per_token,
               "error": row.standard_error}  # fmt: skip
        yield {**where, "quantity": "perplexity", "value": row.perplexity}
        yield {**where, "quantity": "bits_per_byte", "value": row.bits_per_byte}
        yield {**where, "quantity": "seconds", "value": row.seconds}


def _windows(cell: Cell, length: int) -> int:
    """Fewer of longer ones, so that the number of tokens stays the same; two at least."""
    return max(2, cell.preset.n_windows * cell.preset.train_length // max(length, 1))


def _spread(length: int, points: int = _CURVE_POINTS) -> np.ndarray:
    """Numbers of tokens 1 ... length, evenly spread on a logarithmic axis."""
    return np.unique(np.geomspace(1, length, min(points, length)).round().astype(int))


def rounded(values: np.ndarray, digits: int = 7) -> list[float | None]:
    """As a list, to so many significant digits; a number that is not finite is a missing one."""
    return [float(f"{value:.{digits}g}") if math.isfinite(value) else None for value in values]
