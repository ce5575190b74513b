"""Records of cells with plausible numbers, as a grid would write them, for tests of the study."""

from __future__ import annotations

import math

import numpy as np

from trf import encodings
from trf.study.cells import CellResult, Cells

TRAIN, LENGTHS, FIELDS = 32, (32, 64, 128), (16, 32, 64)
EPS = (0.5, 0.1, 0.05, 0.01)
PRESET = {
    "name": "smoke", "lengths": list(LENGTHS), "field_lengths": list(FIELDS), "window": TRAIN,
    "stride": 16, "eps": list(EPS), "shares": [0.25, 0.5],
}  # fmt: skip


def cell(encoding, corpus="code", seed=0, tokens=4096, *, rise=0.1, scale=8.0, drift=0.0):
    """A cell whose loss rises by `rise` a doubling, with an exponential field of `scale` tokens.

    Learned parameters of head h begin at 0.5 + 0.4 h and move by `drift` from record to record.
    """
    kept, end = [round(share * tokens) for share in PRESET["shares"]], tokens + 32
    rows, curves = [], []

    def row(quantity, value, **where):
        rows.append(
            {"at_tokens": end, "text": "test", "quantity": quantity, "value": value} | where
        )

    for at, lengths in [*((at, [TRAIN]) for at in kept), (end, FIELDS)]:
        for length in lengths:
            mass = 1 - np.exp(-np.arange(1, length + 1) / scale)
            mass /= mass[-1]
            where = {"length": length, "at_tokens": at}
            curves.append(
                {**where, "quantity": "erf", "tokens": list(range(1, length + 1)),
                 "curve": mass.tolist(), "low": (0.9 * mass).tolist(), "high": mass.tolist(),
                 "n_windows": 4}
            )  # fmt: skip
            for eps in EPS:
                row("erf", int(np.argmax(mass > 1 - eps)) + 1, eps=eps, **where)
    for step, at in enumerate([*kept, end]):
        for parameter in encodings.get(encoding).learnable:
            for head in range(2):
                value = 0.5 + 0.4 * head + drift * step
                row(f"parameter {parameter.name}", value, at_tokens=at, head=head)
    for mode in ("non-overlapping", f"window {TRAIN}"):
        for length in LENGTHS:
            steps = math.log2(length / TRAIN) if mode == "non-overlapping" else 0
            nats, where = 1.5 + 0.01 * seed + rise * steps, {"mode": mode, "length": length}
            row("nats_per_token", nats, **where)
            row("perplexity", math.exp(nats), **where)
            row("bits_per_byte", nats / math.log(2), **where)
        ends = np.arange(1, 17) * (max(LENGTHS) // 16)
        late = np.where(ends > TRAIN, rise * (mode == "non-overlapping"), 0.0)
        curves.append(
            {"quantity": "loss_by_position", "mode": mode, "length": max(LENGTHS),
             "positions": ends.tolist(), "nats": (1.5 + late).tolist()}
        )  # fmt: skip
    recipe = {"n_layer": 2, "n_head": 2, "length": TRAIN, "tokeniser": "bytes"}
    return CellResult(
        {
            "cell": {"encoding": encoding, "corpus": corpus, "seed": seed, "tokens": tokens,
                     "preset": PRESET},
            "rows": rows,
            "curves": curves,
            "training": {"recipe": recipe, "tokens": end},
        }
    )  # fmt: skip


def cells(*made):
    """A grid of these."""
    return Cells(made)
