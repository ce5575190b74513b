"""Records of cells with plausible numbers, as a grid would write them, for tests of the study."""

from __future__ import annotations

import math

import numpy as np

from trf import encodings
from trf.encodings import Kind
from trf.study.cells import CellResult, Cells

TRAIN, LENGTHS = 32, (32, 64, 128)
LAPTOP = {"train": 512, "lengths": (512, 1024, 2048, 4096, 9216)}
EPS = (0.5, 0.1, 0.05, 0.01)
SHARES = (0.25, 0.5)
N_LAYER, BINS = 2, 64
# Perplexity in each mode: relative to the plain one, or where masked to that at the train length.
SLIDING, LOG_SCALE, WINDOW, BLOCKS, BLOCKS_LOG_SCALE = 0.98, 1.01, 1.005, 1.002, 1.003


def rise_to(ratio):
    """Nats a doubling that make the perplexity at 9216 tokens so many times that at 512."""
    return math.log(ratio) / math.log2(9216 / 512)


def text_at(positions):
    """What the text at these positions adds to the loss, whatever the model; in nats."""
    return 0.2 * np.sin(positions)


def cell(
    encoding, corpus="code", seed=0, tokens=4096, *, train=TRAIN, lengths=LENGTHS, rise=0.1,
    level=4.0, scale=8.0, drift=0.0, parameters=None,
):  # fmt: skip
    """A cell whose loss rises by `rise` a doubling, with an exponential field of `scale` tokens.

    Perplexity is `level` at the train length with seed 0, and flat behind the window. The loss at
    position p is `text_at` p more, and rises past the train length too. Learned parameters, a
    mapping a head, move by `drift` from record to record; unless given, there are two heads, and
    the parameters of head h begin at 0.5 + 0.4 h.
    """
    kept, end = [round(share * tokens) for share in SHARES], tokens + 32
    longest, entry = max(lengths), encodings.get(encoding)
    masks = entry.kind is not Kind.ABSOLUTE
    fields = [n for n in (train // 2, train, 2 * train) if n <= longest]
    if parameters is None:
        names = [parameter.name for parameter in entry.learnable]
        parameters = [dict.fromkeys(names, 0.5 + 0.4 * head) for head in range(2)]
    rows, curves = [], []

    def row(quantity, value, **where):
        rows.append(
            {"at_tokens": end, "text": "test", "quantity": quantity, "value": value} | where
        )

    for at, within in [*((at, [train]) for at in kept), (end, fields)]:
        for length in within:
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
        for head, values in enumerate(parameters):
            for name, value in values.items():
                row(f"parameter {name}", value + drift * step, at_tokens=at, head=head)

    base = math.log(level) + 0.01 * seed
    plain = {n: base + rise * math.log2(n / train) for n in lengths}
    flat = dict.fromkeys(lengths, base)
    scaled = [n for n in lengths if n > train and n in (4 * train, longest)]
    modes = {
        "non-overlapping": (1, plain),
        f"sliding by {train // 2}": (SLIDING, {train: base}),
        "log-n scale": (LOG_SCALE, {n: plain[n] for n in scaled}),
    }
    if masks:
        modes |= {
            f"window {train}": (WINDOW, flat),
            f"blocks {train}": (BLOCKS, flat),
            f"blocks {train}, log-n scale": (BLOCKS_LOG_SCALE, {n: flat[n] for n in scaled}),
        }
    for mode, (factor, by_length) in modes.items():
        for length, value in by_length.items():
            nats, where = value + math.log(factor), {"mode": mode, "length": length}
            row("nats_per_token", nats, error=0.1, **where)
            row("perplexity", math.exp(nats), **where)
            row("bits_per_byte", nats / math.log(2), **where)

    ends = np.arange(1, BINS + 1) * (longest // BINS)
    here = base + text_at(ends)
    late = here + rise * np.log2(np.maximum(ends / train, 1))
    counts = np.unique(np.geomspace(1, 8 * train, 32).round().astype(int))
    views = [
        ("non-overlapping", late, "full", counts),
        (f"window {train}", here, f"window {train}", np.minimum(counts, train)),
    ]
    for mode, loss, view, seen in views[: 1 + masks]:
        heads = [(0.7 * np.log(seen)).tolist()] * len(parameters)
        curves += [
            {"quantity": "loss_by_position", "mode": mode, "length": longest,
             "positions": ends.tolist(), "nats": loss.tolist()},
            {"quantity": "entropy", "mode": view, "length": 8 * train, "tokens": counts.tolist(),
             "nats": [heads] * N_LAYER},
        ]  # fmt: skip
    preset = {
        "name": "made up", "lengths": list(lengths), "field_lengths": fields, "window": train,
        "stride": train // 2, "eps": list(EPS), "shares": list(SHARES),
    }  # fmt: skip
    recipe = {
        "n_layer": N_LAYER, "n_head": len(parameters), "length": train, "tokeniser": "bytes",
    }  # fmt: skip
    return CellResult(
        {
            "cell": {"encoding": encoding, "corpus": corpus, "seed": seed, "tokens": tokens,
                     "preset": preset},
            "rows": rows,
            "curves": curves,
            "training": {"recipe": recipe, "tokens": end},
        }
    )  # fmt: skip


def cells(*made):
    """A grid of these."""
    return Cells(made)
