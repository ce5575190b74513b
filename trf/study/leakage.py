"""Leakage against what perplexity loses past the training length M.

The leakage ``1 - B(M)/B(N)`` is the share of the theoretical mass of N tokens on distances that
were never trained, the mean over the heads with their learned parameters (the Cauchy tail of Qin,
Zhong, Deng, arXiv 2307.10156). Three measures are set against it, in nats a token:

* `rise`: log perplexity of non-overlapping windows of N tokens less that of windows of M. The same
  text is scored at each length.
* `late`: loss at the positions of the last quarter of the longest window less that in the bins of
  positions that end in the second half of M. The text at the two places differs.
* `beyond_window`: loss at the positions of the last quarter less that of the same model on the same
  positions behind a window mask of M tokens: what the keys farther away do, good or bad.

The pairs of one encoding or one model are not independent of each other, so the correlations
describe these cells and no test of significance goes with them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.stats import pearsonr, spearmanr

from trf.study.cells import CellResult, Cells
from trf.study.markdown import MISSING, number, shares, span, table
from trf.study.scores import PLAIN, loss_rise, window_mode
from trf.study.theory import beyond, biases, rounded, status, unit, verdicts
from trf.theory import head_curves

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAME = "leakage"
LEAST = 4  # pairs, below which no correlation is given
CONSTANT = ("none", "t5")  # biases that don't decay: the same at every distance, or from some on
MEASURES = {
    "rise": "non-overlapping windows",
    "late": "last quarter, by position",
    "beyond_window": "last quarter, against the window mask",
}


def summarise(cells: Cells) -> dict[str, Any]:
    """Leakage and loss of every cell with a p(n) at each length, and their correlations."""
    main = cells.main
    points = [point for cell in main for point in _points(cell)]
    known = [point for point in points if point["leakage"] is not None]
    return {
        "unit": unit(main),
        "corpora": main.corpora,
        "points": known,
        "without": [point for point in points if point["leakage"] is None],
        "correlations": _correlations(known),
    }


def _points(cell: CellResult) -> list[dict[str, Any]]:
    """One a length beyond training; `late` and `beyond_window` at the longest only."""
    heads, lengths = biases(cell), cell.data["cell"]["preset"]["lengths"]
    if heads is None and cell.entry.bias is not None:
        return []
    curves = None if heads is None else head_curves(heads, max(lengths))
    decided = None if heads is None else verdicts(heads)
    points = []
    for length in sorted(n for n in lengths if n > cell.train_length):
        rise = loss_rise(cell, length)
        if rise is None:
            continue
        leaked = None if curves is None else beyond(curves, cell.train_length, length)
        late = _late(cell, length) if length == max(lengths) else {}
        points.append(
            {
                "encoding": cell.encoding,
                "title": cell.title,
                "corpus": cell.corpus,
                "verdicts": decided,
                "train_length": cell.train_length,
                "length": length,
                "leakage": None if leaked is None else rounded(sum(leaked) / len(leaked)),
                "rise": rise,
                **late,
            }
        )
    return points


def _late(cell: CellResult, length: int) -> dict[str, float]:
    """Loss in the last quarter of the window, against before M and against the window mask."""
    plain = cell.curve("loss_by_position", mode=PLAIN, length=length)
    masked = cell.curve("loss_by_position", mode=window_mode(cell), length=length)
    if plain is None or None in plain["nats"]:
        return {}
    ends, nats = np.array(plain["positions"]), np.array(plain["nats"])
    last = ends > 0.75 * ends[-1]
    before = (ends > cell.train_length / 2) & (ends <= cell.train_length)
    found = {}
    if before.any():
        found["late"] = rounded(nats[last].mean() - nats[before].mean())
    if masked is not None and None not in masked["nats"]:
        found["beyond_window"] = rounded((nats - np.array(masked["nats"]))[last].mean())
    return found


def _correlations(points: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Of the leakage with each measure: over all pairs, and within each corpus and length.

    Over the decaying biases too: the constant ones lie far from the others on both axes.
    """
    found = []
    for measure in MEASURES:
        chosen = [point for point in points if measure in point]
        decaying = [point for point in chosen if point["encoding"] not in CONSTANT]
        groups = {("all", "all"): chosen, ("all", "decaying"): decaying}
        for name in ("corpus", "length") if measure == "rise" else ("corpus",):
            for value in dict.fromkeys(point[name] for point in chosen):
                groups[name, value] = [point for point in chosen if point[name] == value]
        for (name, value), here in groups.items():
            pairs = [(point["leakage"], point[measure]) for point in here]
            found.append(
                {"measure": measure, "over": name, "value": value, "n": len(pairs),
                 **_correlation(pairs)}
            )  # fmt: skip
    return found


def _correlation(pairs: Sequence[tuple[float, float]]) -> dict[str, float | None]:
    if len(pairs) < LEAST or any(len(set(column)) < 2 for column in zip(*pairs, strict=True)):
        return {"pearson": None, "spearman": None}
    x, y = np.array(pairs).T
    return {
        "pearson": rounded(pearsonr(x, y)[0]),
        "spearman": rounded(spearmanr(x, y)[0]),
    }


def words(result: dict[str, Any]) -> dict[str, str]:
    """Tables of correlations and of the cells, and the ranges of convergent and divergent ones."""
    points = result["points"]
    longest = max((p["length"] for p in points + result["without"]), default=None)
    last = [point for point in points if point["length"] == longest]
    outside = [point for point in result["without"] if point["length"] == longest]
    found = {
        "leakage_correlations": _correlation_table(result),
        "leakage_by_encoding": _by_encoding(last, result["corpora"]),
        "leakage_without": _by_encoding(outside, result["corpora"]),
        "leakage_cells": str(len(last)),
        "leakage_longest": MISSING if longest is None else str(longest),
        "leakage_unit": result["unit"],
        "leakage_without_rise": span([p["rise"] for p in outside], 2),
    }
    for row in result["correlations"]:
        if row["over"] == "all":
            key = f"leakage_{row['measure']}" + ("_decaying" if row["value"] != "all" else "")
            for kind in ("pearson", "spearman"):
                found[f"{key}_{kind}"] = number(row[kind], 2)
            found[f"{key}_pairs"] = str(row["n"])
    for kind in ("converges", "diverges"):
        here = [point for point in last if set(point["verdicts"]) == {kind}]
        found[f"leakage_{kind}_share"] = shares([point["leakage"] for point in here])
        found[f"leakage_{kind}_rise"] = span([point["rise"] for point in here], 2)
        windowed = [point["beyond_window"] for point in here if "beyond_window" in point]
        found[f"leakage_{kind}_beyond_window"] = span(windowed, 2)
    return found


def _correlation_table(result: dict[str, Any]) -> str:
    rows = [
        [
            MEASURES[row["measure"]],
            _group(row),
            row["n"],
            number(row["pearson"], 2),
            number(row["spearman"], 2),
        ]
        for row in result["correlations"]
        if row["n"]
    ]
    return table(["measure of the loss", "over", "pairs", "Pearson", "Spearman"], rows)


def _group(row: dict[str, Any]) -> str:
    if row["over"] == "all":
        return "all" if row["value"] == "all" else "decaying biases"
    return str(row["value"]) if row["over"] == "corpus" else f"N = {row['value']}"


def _by_encoding(points: list[dict[str, Any]], corpora: list[str]) -> str:
    """Rise / beyond the window, in nats, a row an encoding and a column a corpus."""
    rows = []
    for name, title in {point["encoding"]: point["title"] for point in points}.items():
        here = {point["corpus"]: point for point in points if point["encoding"] == name}
        decided = [verdict for point in here.values() for verdict in point["verdicts"] or []]
        leaked = [point["leakage"] for point in here.values() if point["leakage"] is not None]
        rows.append(
            [
                title,
                status(decided) if decided else "no p(n)",
                shares(leaked),
                *(_two(here.get(corpus)) for corpus in corpora),
            ]
        )
    return table(["encoding", "Σ exp p(n)", "leakage", *corpora], rows)


def _two(point: dict[str, Any] | None) -> str:
    if point is None:
        return MISSING
    return f"{_signed(point['rise'])} / {_signed(point.get('beyond_window'))}"


def _signed(value: float | None) -> str:
    if value is None:
        return MISSING
    return f"{value:+.3f}" if abs(value) >= 0.0005 else "0.000"


def draw(result: dict[str, Any]) -> Figure:
    """Loss against leakage."""
    from trf.plotting.leakage import leakage_figure

    return leakage_figure(result)
