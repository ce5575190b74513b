"""Theoretical against empirical receptive field at the training length, by encoding and corpus.

The empirical field is measured at the last of N positions, so the theoretical one is taken at the
same N, never in the limit: `TRF(eps) = min { j : B(j) > (1-eps) B(N) }` with the mean of the heads'
normalised kernels (Qin, Zhong, Deng, arXiv 2307.10156), for one layer and for the stack of all
layers with half of the stream passing each unmixed (attention rollout, arXiv 2005.00928). Beside
them stand the paths through heads with gains from the weights (`trf.theory.path_curve`). The
empirical field is the cumulative normalized gradient of arXiv 2212.10356.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from trf.study.cells import CellResult, Cells
from trf.study.markdown import MISSING, number, span, table
from trf.study.predictors import PREDICTORS, Inputs, NotRecorded
from trf.study.theory import biases, radius, rounded, status, verdicts
from trf.theory import mass_curve, stack_curve

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAME = "trf-vs-erf-by-corpus"
EPS = (0.5, 0.1, 0.01)
MARKED = 0.1  # of the radii in the panels and at the other lengths
RESIDUAL = 0.5
PATHS = "paths-spread"  # the predictor from weights and logits that is drawn too
LAST = ("none", "t5")  # their bias does not decay


def summarise(cells: Cells) -> dict[str, Any]:
    """Curves and radii of every cell with a p(n) at the training length; radii at the others."""
    panels: list[dict[str, Any]] = []
    others: list[dict[str, Any]] = []
    main = cells.main
    for cell in sorted(main, key=lambda c: c.encoding in LAST):
        lengths = set(cell.data["cell"]["preset"]["field_lengths"]) - {cell.train_length}
        panels += _panel(cell, cell.train_length)
        for length in sorted(lengths):
            others += [_radii_only(panel) for panel in _panel(cell, length)]
    return {
        "eps": list(EPS),
        "marked": MARKED,
        "residual": RESIDUAL,
        "corpora": [name for name in main.corpora if name in {p["corpus"] for p in panels}],
        "panels": panels,
        "other_lengths": others,
    }


def _panel(cell: CellResult, length: int) -> list[dict[str, Any]]:
    """Theory and measurement of a cell within N; none where there is no such pair."""
    heads = biases(cell)
    curve = cell.curve("erf", length=length)
    measured = {e: cell.value("erf", length=length, eps=e) for e in EPS}
    if heads is None or curve is None or None in measured.values():
        return []
    kept = np.array(curve["tokens"]) - 1
    fields = {
        "theory": mass_curve(heads, length),
        "stack": stack_curve(heads, length, cell.n_layer, RESIDUAL),
    }
    if length == cell.train_length:
        with suppress(NotRecorded):
            fields["paths"] = PREDICTORS[PATHS].curve(Inputs(cell, length))
    panel = {
        "encoding": cell.encoding,
        "title": cell.title,
        "corpus": cell.corpus,
        "verdicts": verdicts(heads),
        "length": length,
        "train_length": cell.train_length,
        "n_layer": cell.n_layer,
        "tokens": curve["tokens"],
        **{
            name: {
                "curve": [rounded(value) for value in whole[kept]],
                "radius": {f"{e:g}": radius(whole, e) for e in EPS},
            }
            for name, whole in fields.items()
        },
        "measured": {
            **{name: curve[name] for name in ("curve", "low", "high", "n_windows")},
            "radius": {f"{e:g}": int(value) for e, value in measured.items() if value is not None},
        },
    }
    return [panel]


def _radii_only(panel: dict[str, Any]) -> dict[str, Any]:
    names = ("encoding", "title", "corpus", "length", "train_length")
    radii = {name: panel[name]["radius"] for name in ("theory", "stack", "measured")}
    return {**{name: panel[name] for name in names}, **radii}


def words(result: dict[str, Any]) -> dict[str, str]:
    """Tables of radii, and how far measurement and theory are apart at the marked eps."""
    panels, marked = result["panels"], f"{result['marked']:g}"
    radii = [
        tuple(p[name]["radius"][marked] for name in ("theory", "stack", "measured")) for p in panels
    ]
    ratios = [erf / one for one, _, erf in radii]
    stacked = [erf / stack for _, stack, erf in radii]
    return {
        "fields_radii": "\n\n".join(_radii_table(result, f"{e:g}") for e in result["eps"]),
        "fields_other_lengths": _other_lengths(result, marked),
        "fields_cells": str(len(panels)),
        "fields_eps": marked,
        "fields_above": f"{sum(r > 1 for r in ratios)} of {len(ratios)}",
        "fields_above_stack": f"{sum(r > 1 for r in stacked)} of {len(stacked)}",
        "fields_ratio": span(ratios),
        "fields_ratio_median": number(float(np.median(ratios)) if ratios else None),
        "fields_ratio_stack": span(stacked),
        "fields_ratio_stack_median": number(float(np.median(stacked)) if stacked else None),
    }


def _radii_table(result: dict[str, Any], eps: str) -> str:
    """One layer, stack and measurement, a row an encoding and a column a corpus."""
    by_cell = {(p["encoding"], p["corpus"]): p for p in result["panels"]}
    titles = {p["encoding"]: p["title"] for p in result["panels"]}
    rows = []
    for name, title in titles.items():
        cells = [by_cell.get((name, corpus)) for corpus in result["corpora"]]
        found = [verdict for cell in cells if cell for verdict in cell["verdicts"]]
        rows.append([title, status(found), *(_three(cell, eps) for cell in cells)])
    return f"TRF / stack / ERF in tokens at ε = {eps}:\n\n" + table(
        ["encoding", "Σ exp p(n)", *result["corpora"]], rows
    )


def _three(panel: dict[str, Any] | None, eps: str) -> str:
    if panel is None:
        return MISSING
    return " / ".join(str(panel[name]["radius"][eps]) for name in ("theory", "stack", "measured"))


def _other_lengths(result: dict[str, Any], eps: str) -> str:
    """TRF and ERF at the other lengths, each as its range over the corpora."""
    rows_of = result["other_lengths"]
    lengths = sorted({row["length"] for row in rows_of})
    rows = []
    for name, title in {row["encoding"]: row["title"] for row in rows_of}.items():
        row = [title]
        for length in lengths:
            here = [r for r in rows_of if r["encoding"] == name and r["length"] == length]
            row += [span([r[kind][eps] for r in here]) for kind in ("theory", "measured")]
        rows.append(row)
    header = [f"{kind}, N = {length}" for length in lengths for kind in ("TRF", "ERF")]
    return table(["encoding", *header], rows)


def draw(result: dict[str, Any]) -> Figure:
    """Small multiples: a row an encoding, a column a corpus."""
    from trf.plotting.fields import fields_figure

    return fields_figure(result)
