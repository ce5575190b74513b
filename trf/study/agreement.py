"""Does theory predict the measured field? Every predictor against every cell.

The predictor is chosen on one corpus and half of the encodings (`SELECTION`), by the least mean
|ln(predicted radius / measured radius)|, and judged on all other cells. Nothing is fitted.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.stats import spearmanr

from trf.study import theory
from trf.study.agreement_words import words
from trf.study.cells import CellResult, Cells
from trf.study.predictors import DIAGNOSTIC, INPUTS, NULL, PAPERS, PREDICTORS, Inputs

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["NAME", "draw", "errors", "is_selected", "radii_of", "summarise", "words"]

NAME = "agreement"
CORPUS = "code"
SELECTION = ("alibi", "kerple-log", "type1", "inverse-n")
FLAT = ("none", "t5")  # their bias does not decay; ranks are given without them too
TARGET = {"rank": 0.95, "factor": 1.25}


def summarise(cells: Cells) -> dict[str, Any]:
    """Radii of every predictor and cell, and how well each predictor does.

    Returns:
        `rows`: one a cell, length and eps, `measured` and the radius of each predictor;
        `predictors`: the errors of each on the selection and on the rest; `paper` and `chosen`:
        names of two of them;
        `by_eps`: errors on the rest, beside those of `NULL`: one radius for all encodings, the
        geometric mean of the selection's at that eps, which any theory has to beat;
        `ranks`: rank correlation over encodings by corpus and eps, `decaying` without those of
        `FLAT`, `seen` on the corpus of the selection; `lengths`: errors of the paper's and the
        chosen predictor at the lengths that were not looked at, for the cells that were not either;
        `budgets`: the same cells at other budgets, and `inputs`, what the paths read of them.
    """
    proper = cells.main
    rows = [row for cell in proper for row in radii_of(cell, cell.train_length, PREDICTORS)]
    chosen = _choose(rows)
    few = {name: PREDICTORS[name] for name in dict.fromkeys([PAPERS, chosen]) if name}
    elsewhere = [
        row
        for cell in proper
        for length in _lengths(cell)
        if length != cell.train_length
        for row in radii_of(cell, length, few)
        if not is_selected(row)
    ]
    others = [
        row
        for cell in cells
        if cell.tokens != cells.budget and cell.seed == proper[0].seed
        for row in radii_of(cell, cell.train_length, [*few, DIAGNOSTIC[-1]])
    ]
    return {
        "selection": {"corpus": CORPUS, "encodings": list(SELECTION)},
        "target": TARGET,
        "corpora": proper.corpora,
        "paper": PAPERS,
        "chosen": chosen,
        "rows": rows,
        "predictors": [
            {
                "name": name,
                "title": PREDICTORS[name].title,
                "reads": PREDICTORS[name].reads,
                "diagnostic": name in DIAGNOSTIC,
                "selection": errors(filter(is_selected, rows), name),
                "rest": errors((row for row in rows if not is_selected(row)), name),
            }
            for name in PREDICTORS
        ],
        "by_eps": _by_eps(rows, few),
        "ranks": [
            {"corpus": corpus, "eps": eps, "n": len(group), "seen": corpus == CORPUS,
             **_ranks(group),
             "decaying": _ranks([row for row in group if row["encoding"] not in FLAT])}
            for corpus in cells.corpora
            for eps in sorted({row["eps"] for row in rows}, reverse=True)
            if len(group := [r for r in rows if r["corpus"] == corpus and r["eps"] == eps]) > 2
        ],
        "lengths": [
            {"length": length, "predictor": name,
             **errors((r for r in elsewhere if r["length"] == length), name)}
            for length in sorted({row["length"] for row in elsewhere})
            for name in few
        ],
        "budgets": others,
        "inputs": _inputs(cells),
    }  # fmt: skip


def radii_of(cell: CellResult, length: int, predictors: Iterable[str]) -> list[dict[str, Any]]:
    """A row an eps: the measured radius and each predictor's; none without a bias p(n)."""
    measured = {
        row["eps"]: int(row["value"])
        for row in cell.rows("erf", length=length)
        if "value" in row
    }  # fmt: skip
    if theory.biases(cell) is None or not measured:
        return []
    given = Inputs(cell, length)
    radii = {name: PREDICTORS[name].radii(given, measured) for name in predictors}
    return [
        {
            "encoding": cell.encoding,
            "corpus": cell.corpus,
            "seed": cell.seed,
            "tokens": cell.tokens,
            "length": length,
            "eps": eps,
            "measured": radius,
            **{name: predicted[eps] for name, predicted in radii.items()},
        }
        for eps, radius in sorted(measured.items(), reverse=True)
    ]


def is_selected(row: dict[str, Any]) -> bool:
    """Whether a row was there to choose the predictor by."""
    return row["corpus"] == CORPUS and row["encoding"] in SELECTION


def errors(rows: Iterable[dict[str, Any]], name: str) -> dict[str, Any]:
    """How far a predictor is off.

    Returns:
        `n` rows; `factor`, the median of exp|ln(predicted / measured)|; `mean`, exp of the mean
        |ln|; `worst`; `ratio`, the median of predicted / measured; `within`, the share of rows
        within the target factor; `rank`, Spearman's correlation over encodings, mean over corpora
        and eps (radii of several eps together would be in order whatever the theory).
    """
    rows = list(rows)
    pairs = _pairs(rows, name)
    if not len(pairs):
        return {"n": 0}
    logs = np.log(pairs[:, 0] / pairs[:, 1])
    size = np.abs(logs)
    return {
        "n": len(pairs),
        "factor": _round(np.exp(np.median(size))),
        "mean": _round(np.exp(size.mean())),
        "worst": _round(np.exp(size.max())),
        "ratio": _round(np.exp(np.median(logs))),
        "within": _round((size <= np.log(TARGET["factor"])).mean()),
        "rank": _mean([_rank(_pairs(group, name)) for group in _groups(rows)]),
    }


def _groups(rows: Sequence[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """Rows of one corpus and eps each."""
    groups: dict[tuple[str, float], list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault((row["corpus"], row["eps"]), []).append(row)
    return list(groups.values())


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return _round(np.mean(known)) if known else None


def _by_eps(rows: Sequence[dict[str, Any]], names: Iterable[str]) -> list[dict[str, Any]]:
    """Errors on the rest at each eps, and at all; none without a selection."""
    if not any(map(is_selected, rows)):
        return []
    every = sorted({row["eps"] for row in rows}, reverse=True)
    level = {
        eps: float(np.exp(np.mean(np.log(seen))))
        for eps in every
        if (seen := [r["measured"] for r in rows if is_selected(r) and r["eps"] == eps])
    }
    rest = [row | {NULL: level.get(row["eps"])} for row in rows if not is_selected(row)]
    groups = [(eps, [row for row in rest if row["eps"] == eps]) for eps in every]
    return [
        {"eps": eps, "predictor": name, **errors(group, name)}
        for eps, group in [*groups, (None, rest)]
        for name in (NULL, *names, DIAGNOSTIC[-1])
    ]


def _lengths(cell: CellResult) -> list[int]:
    return sorted({row["length"] for row in cell.rows("erf")})


def _choose(rows: Sequence[dict[str, Any]]) -> str | None:
    """The predictor with the least mean |ln ratio| on the selection; None without one.

    A predictor that lacks a radius of the selection is not compared with those that have all.
    """
    selected = [row for row in rows if is_selected(row)]
    if not selected:
        return None
    eligible = [
        name
        for name in PREDICTORS
        if name not in DIAGNOSTIC and all(row[name] is not None for row in selected)
    ]
    return min(eligible, key=lambda name: errors(selected, name)["mean"])


def _ranks(rows: list[dict[str, Any]]) -> dict[str, float | None]:
    return {name: _rank(_pairs(rows, name)) for name in PREDICTORS}


def _pairs(rows: Iterable[dict[str, Any]], name: str) -> np.ndarray:
    """Predicted and measured radii, (n, 2)."""
    pairs = [[row[name], row["measured"]] for row in rows if row[name] is not None]
    return np.array(pairs, dtype=float).reshape(-1, 2)


def _rank(pairs: np.ndarray) -> float | None:
    if len(pairs) < 3 or np.ptp(pairs, axis=0).min() == 0:
        return None
    return _round(spearmanr(pairs[:, 0], pairs[:, 1])[0])


def _round(value: Any) -> float:
    return float(f"{float(value):.4g}")


def _inputs(cells: Cells) -> list[dict[str, Any]]:
    """What the paths read, mean over layers and heads, of encodings trained on several budgets."""
    found = []
    for cell in cells:
        alike = cells.where(encoding=cell.encoding, corpus=cell.corpus, seed=cell.seed)
        if len({other.tokens for other in alike}) > 1 and theory.biases(cell) is not None:
            means = {
                name: np.mean(cell.by_head(name, length=cell.train_length, mode=None))
                for name in INPUTS
            }
            found.append(
                {"encoding": cell.encoding, "corpus": cell.corpus, "tokens": cell.tokens,
                 **{name: _round(mean) if np.isfinite(mean) else None
                    for name, mean in means.items()}}
            )  # fmt: skip
    return found


def draw(result: dict[str, Any]) -> Figure:
    """Measured against predicted radii, the paper's predictor beside the chosen one."""
    from trf.plotting.agreement import agreement_figure

    return agreement_figure(result)
