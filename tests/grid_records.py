"""Records like those of a grid's cells, made up: for tests of what is read off them."""

from __future__ import annotations

import json
import math

import numpy as np

LENGTHS = (512, 1024, 2048, 4096, 9216)
RELATIVE = ("rope", "xpos", "none", "t5", "alibi", "kerple-log", "sandwich", "type1", "inverse-n")


def perplexity_rows(mode, by_length, at_tokens):
    for length, value in by_length.items():
        where = {"mode": mode, "length": length, "at_tokens": at_tokens, "text": "test"}
        nats = math.log(value)
        yield {**where, "quantity": "nats_per_token", "value": nats, "error": 0.1}
        yield {**where, "quantity": "perplexity", "value": value}
        yield {**where, "quantity": "bits_per_byte", "value": nats / math.log(2)}


def cell_record(
    encoding="alibi", corpus="code", *, growth=0.0, seed=0, tokens=1000, parameters=None,
    lengths=LENGTHS, level=4.0,
):  # fmt: skip
    """A cell whose perplexity grows by `growth` from 512 to 9216, and is flat behind the window."""
    at = tokens + 24
    span = math.log(max(lengths) / 512) or 1.0
    plain = {n: level * (1 + growth * math.log(n / 512) / span) for n in lengths}
    flat = dict.fromkeys(lengths, level)
    rows = [*perplexity_rows("non-overlapping", plain, at)]
    rows += perplexity_rows("sliding by 256", {512: 0.98 * level}, at)
    rows += perplexity_rows(
        "log-n scale", {n: 1.01 * plain[n] for n in (2048, 9216) if n in plain}, at
    )
    positions = np.linspace(0, 9216, 65).round().astype(int)[1:]
    text = 1 + 0.2 * np.sin(positions)
    rise = growth * np.maximum(0, np.log(np.maximum(positions - 144, 1) / 512))
    curves = [("non-overlapping", text + rise)]
    masks = encoding != "sinusoidal"
    if masks:
        rows += perplexity_rows("window 512", {n: 1.005 * v for n, v in flat.items()}, at)
        rows += perplexity_rows("blocks 512", {n: 1.002 * v for n, v in flat.items()}, at)
        mode = "blocks 512, log-n scale"
        rows += perplexity_rows(mode, dict.fromkeys((2048, 9216), 1.003 * level), at)
        curves.append(("window 512", text))
    for head, values in enumerate(parameters or []):
        for name, value in values.items():
            rows.append({"quantity": f"parameter {name}", "head": head, "value": value,
                         "at_tokens": at, "text": "test"})  # fmt: skip
    counts = np.unique(np.geomspace(1, 4096, 32).round().astype(int))
    kinds = [("full", counts), ("window 512", np.minimum(counts, 512))][: 1 + masks]
    return {
        "cell": {
            "encoding": encoding, "corpus": corpus, "seed": seed, "tokens": tokens,
            "preset": {"window": 512, "stride": 256},
        },
        "rows": rows,
        "curves": [
            {"quantity": "loss_by_position", "mode": mode, "length": 9216,
             "positions": positions.tolist(), "nats": nats.tolist()}
            for mode, nats in curves
        ] + [
            {"quantity": "entropy", "mode": mode, "length": 4096, "tokens": counts.tolist(),
             "nats": [[(0.7 * np.log(seen)).tolist()] * 4] * 4}
            for mode, seen in kinds
        ],
        "training": {
            "recipe": {"n_layer": 4, "n_head": 4, "length": 512, "tokeniser": "bytes"},
            "tokens": at,
        },
    }  # fmt: skip


def write_cells(folder, records):
    """The records as a grid's folder."""
    (folder / "cells").mkdir(parents=True, exist_ok=True)
    for i, record in enumerate(records):
        (folder / "cells" / f"{i:03}.json").write_text(json.dumps(record))
    return folder
