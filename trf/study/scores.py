"""What the parts read off a cell: perplexity by length in a mode, and the verdict of its series."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from trf.study import theory
from trf.study.cells import CellResult
from trf.study.markdown import span

FLAT = 1.02  # a perplexity past the train length, relative to that at it, that counts as held
PLAIN = "non-overlapping"
LOG_SCALE = "log-n scale"


def window_mode(cell: CellResult) -> str:
    """The window mask of the cell, as the rows name it."""
    return f"window {cell.data['cell']['preset']['window']}"


def blocks_mode(cell: CellResult) -> str:
    """Blockwise causal attention of the cell, as the rows name it."""
    return f"blocks {cell.data['cell']['preset']['window']}"


def sliding_mode(cell: CellResult) -> str:
    """Sliding evaluation of the cell, as the rows name it."""
    return f"sliding by {cell.data['cell']['preset']['stride']}"


def scores(cell: CellResult, mode: str = PLAIN) -> dict[int, dict[str, Any]]:
    """Perplexity of the cell's test text by length in a mode; lengths without a value left out.

    Each has `perplexity`, `nats` and `bits` (bits per byte, or None), and `error`: the standard
    error of the nats per token from the spread over segments, or None. The segments are the same
    in every mode and at every length, so what two scores differ by is known better than either.
    """
    bits = {row["length"]: row.get("value") for row in cell.rows("bits_per_byte", mode=mode)}
    nats = {row["length"]: row for row in cell.rows("nats_per_token", mode=mode)}
    return {
        row["length"]: {
            "perplexity": row["value"],
            "nats": nats[row["length"]]["value"],
            "bits": bits.get(row["length"]),
            "error": nats[row["length"]].get("error"),
        }
        for row in cell.rows("perplexity", mode=mode)
        if "value" in row and "value" in nats.get(row["length"], {})
    }


def loss_rise(cell: CellResult, length: int) -> float | None:
    """Log perplexity of windows of N tokens less that at the training length, in nats a token."""
    ends = [cell.value("nats_per_token", mode=PLAIN, length=n) for n in (cell.train_length, length)]
    return None if ends[0] is None or ends[1] is None else theory.rounded(ends[1] - ends[0])


def verdict(cell: CellResult) -> dict[str, Any]:
    """Whether sum exp(p(n)) converges, head by head, with the learned parameters put in.

    `kind` is "converges" or "diverges" if all heads do, "mixed" if they differ, "none" where the
    encoding has no p(n), "undecided" otherwise; `text` says it in words.
    """
    if cell.entry.bias is None:
        return {"kind": "none", "text": "no p(n)", "converging": None, "n_head": cell.n_head}
    heads = theory.biases(cell)
    found = ["undecided"] if heads is None else theory.verdicts(heads)
    kind = {
        ("converges",): "converges", ("diverges",): "diverges", ("converges", "diverges"): "mixed",
    }.get(tuple(sorted(set(found))), "undecided")  # fmt: skip
    return {
        "kind": kind, "text": theory.status(found), "converging": found.count("converges"),
        "n_head": cell.n_head,
    }  # fmt: skip


def overall_verdict(records: Sequence[dict[str, Any]]) -> str:
    """The verdict on an encoding over its cells, whose learned parameters may differ."""
    texts = list(dict.fromkeys(record["verdict"]["text"] for record in records))
    counts = [record["verdict"]["converging"] for record in records]
    if len(texts) == 1 or None in counts:
        return "; ".join(texts)
    return f"{span(counts)} of {records[0]['verdict']['n_head']} heads converge"


def bits_by_position(cell: CellResult, mode: str = PLAIN) -> tuple[list[int], list[float]] | None:
    """Last position of each bin, and the loss in it in bits per byte; None if not known."""
    curve = cell.curve("loss_by_position", mode=mode)
    if curve is None or None in curve["nats"]:
        return None
    whole = scores(cell, mode).get(curve["length"])
    if whole and whole["bits"]:
        per_nat = whole["bits"] / whole["nats"]
    elif theory.unit([cell]) == "byte":
        per_nat = 1 / math.log(2)
    else:
        return None
    return curve["positions"], [nats * per_nat for nats in curve["nats"]]


def count(number: int, one: str, many: str | None = None) -> str:
    """A number of things in words: "1 cell", "3 cells"."""
    return f"{number} {one if number == 1 else many or one + 's'}"
