"""What a larger budget changes, and how far apart seeds are.

The spread over seeds is that of the logarithm of each number, pooled over the encodings that were
trained with several seeds. Two single models differ by more than their seeds if the ratio of their
numbers is beyond ``exp(t sqrt(2) sd)``, t the quantile of Student's law for 95 % of pairs at the
degrees of freedom of sd: were the logarithms normal, and their spread that of every encoding.
A number that a model lacks is missing, and left out where the others are compared.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.stats import t as student

from trf.study.cells import CellResult, Cells
from trf.study.markdown import MISSING, number, span, table
from trf.study.scores import PLAIN, loss_rise
from trf.study.theory import biases, radius, rounded, unit
from trf.theory import mass_curve, stack_curve

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAME = "budget-and-seeds"
EPS = (0.5, 0.1, 0.01)
MARKED = 0.1
RESIDUAL = 0.5
METRICS = {
    "erf_0_5": "ERF in tokens, ε = 0.5",
    "erf_0_1": "ERF in tokens, ε = 0.1",
    "erf_0_01": "ERF in tokens, ε = 0.01",
    "perplexity": "perplexity at the train length",
    "ratio": "perplexity, longest over train length",
}


def summarise(cells: Cells) -> dict[str, Any]:
    """Runs that differ in the budget only, and runs that differ in the seed only."""
    known = [cell for cell in cells if any(v is not None for v in _metrics(cell).values())]
    seed = min((cell.seed for cell in known), default=0)
    budgets = _groups([cell for cell in known if cell.seed == seed], "tokens")
    seeds = _groups(known, "seed")
    spread = [_spread(group) for group in seeds]
    return {
        "unit": unit(cells),
        "marked": MARKED,
        "residual": RESIDUAL,
        "budgets": [[_run(cell) for cell in group] for group in budgets],
        "seeds": [[_run(cell) for cell in group] for group in seeds],
        "spread": spread,
        "pooled": (pooled := _pooled(spread)),
        "pairs": _pairs(cells.main, pooled) if spread else [],
    }


def _groups(cells: Sequence[CellResult], varying: str) -> list[list[CellResult]]:
    """Cells alike but for `varying`, where there are two or more."""
    alike: dict[tuple[Any, ...], list[CellResult]] = {}
    same = {"tokens", "seed"} - {varying}
    for cell in cells:
        key = cell.encoding, cell.corpus, *(getattr(cell, name) for name in sorted(same))
        alike.setdefault(key, []).append(cell)
    return [group for group in alike.values() if len(group) > 1]


def _metrics(cell: CellResult) -> dict[str, float | None]:
    """The numbers that are compared, None for a missing one.

    There is no ratio where nothing past the train length was measured: learned absolute positions
    end there.
    """
    found: dict[str, float | None] = {
        f"erf_{eps:g}".replace(".", "_"): cell.value("erf", length=cell.train_length, eps=eps)
        for eps in EPS
    }
    found["perplexity"] = cell.value("perplexity", mode=PLAIN, length=cell.train_length)
    longest = max(cell.data["cell"]["preset"]["lengths"])
    rise = loss_rise(cell, longest) if longest > cell.train_length else None
    found["ratio"] = None if rise is None else rounded(math.exp(rise))
    return found


def _run(cell: CellResult) -> dict[str, Any]:
    """One model: its numbers, its fields on the way, and the theory at the same N."""
    length, heads = cell.train_length, biases(cell)
    records = sorted({row["at_tokens"] for row in cell.data["rows"] if row["quantity"] == "erf"})
    way = [(at, cell.value("erf", length=length, eps=MARKED, at_tokens=at)) for at in records]
    theory = None if heads is None else radius(mass_curve(heads, length), MARKED)
    stack = None if heads is None else radius(
        stack_curve(heads, length, cell.n_layer, RESIDUAL), MARKED
    )  # fmt: skip
    where = {"mode": PLAIN, "length": length}
    return {
        "encoding": cell.encoding,
        "title": cell.title,
        "corpus": cell.corpus,
        "seed": cell.seed,
        "tokens": cell.tokens,
        "trained": cell.trained,
        "train_length": length,
        "longest": max(cell.data["cell"]["preset"]["lengths"]),
        "trf": theory,
        "stack": stack,
        **_metrics(cell),
        "bits_per_byte": cell.value("bits_per_byte", **where),
        "on_the_way": [{"at_tokens": at, "erf": value} for at, value in way if value is not None],
    }


def _spread(group: Sequence[CellResult]) -> dict[str, Any]:
    """Range over seeds, and standard deviation of the logarithm, of each number."""
    metrics = [_metrics(cell) for cell in group]
    first = group[0]
    found: dict[str, Any] = {
        "encoding": first.encoding, "title": first.title, "corpus": first.corpus,
        "tokens": first.tokens, "seeds": [cell.seed for cell in group],
    }  # fmt: skip
    for name in METRICS:
        values = [metric[name] for metric in metrics]
        logs = np.log(known := [value for value in values if value is not None])
        sd = rounded(np.std(logs, ddof=1)) if len(known) > 1 else None
        found[name] = {"values": values, "sd": sd, "degrees_of_freedom": max(0, len(known) - 1)}
    return found


def _pooled(spread: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The standard deviations pooled, and the ratio that two models must exceed; None without."""
    pooled: dict[str, Any] = {}
    for name in METRICS:
        known = [row[name] for row in spread if row[name]["sd"] is not None]
        freedom = [row["degrees_of_freedom"] for row in known]
        if not known:
            pooled[name] = None
            continue
        sd = math.sqrt(np.average([row["sd"] ** 2 for row in known], weights=freedom))
        beyond = math.sqrt(2) * float(student.ppf(0.975, sum(freedom)))
        pooled[name] = {
            "degrees_of_freedom": sum(freedom),
            "sd": rounded(sd),
            "ratio": rounded(math.exp(beyond * sd)),
        }
    return pooled


def _pairs(main: Cells, pooled: dict[str, Any]) -> list[dict[str, Any]]:
    """How many pairs of encodings on one corpus differ by more than their seeds, by number."""
    found = []
    for corpus in main.corpora:
        metrics = [_metrics(cell) for cell in main.where(corpus=corpus)]
        here = {name: _apart([m[name] for m in metrics], pooled[name]) for name in METRICS}
        if any(counts["pairs"] for counts in here.values()):
            found.append({"corpus": corpus, **here})
    return found


def _apart(values: Sequence[float | None], pooled: dict[str, Any] | None) -> dict[str, int | None]:
    """Pairs of values, and how many of them differ by more than the pooled ratio."""
    pairs = list(combinations((value for value in values if value is not None), 2))
    if pooled is None:
        return {"pairs": len(pairs), "beyond": None}
    least = math.log(pooled["ratio"])
    beyond = sum(abs(math.log(a / b)) > least for a, b in pairs)
    return {"pairs": len(pairs), "beyond": beyond}


def words(result: dict[str, Any]) -> dict[str, str]:
    """A table of budgets, one of seeds, and for each number the ratio beyond the seeds."""
    found = {
        "training_budgets": _budget_table(result),
        "training_on_the_way": _way_table(result),
        "training_seeds": _seed_table(result),
        "training_pairs": _pair_table(result),
        "training_seeds_freedom": span(
            [pooled["degrees_of_freedom"] for pooled in result["pooled"].values() if pooled]
        ),
    }
    for name in METRICS:
        pooled = result["pooled"][name]
        found[f"training_seeds_{name}"] = number(pooled["ratio"] if pooled else None)
        for group in result["budgets"]:
            key = group[0]["encoding"].replace("-", "_") + "_" + group[0]["corpus"]
            if key.replace("_", "").isalnum():
                values = [run[name] for run in group]
                found[f"training_{key.lower()}_{name}"] = " → ".join(map(_text, values))
    return found


def _text(value: float | None) -> str:
    return str(value) if isinstance(value, int) else number(value, 4)


def _budget_table(result: dict[str, Any]) -> str:
    rows = [
        [
            f"{run['title']}, {run['corpus']}",
            f"{run['trained']:,}",
            *(MISSING if run[name] is None else run[name] for name in ("trf", "stack")),
            *(_text(run[name]) for name in ("erf_0_5", "erf_0_1", "erf_0_01", "perplexity")),
            number(run["bits_per_byte"]),
            _text(run["ratio"]),
        ]
        for group in result["budgets"]
        for run in group
    ]
    marked = f"ε = {result['marked']:g}"
    header = ["encoding", "tokens trained on", f"TRF, {marked}", f"stack, {marked}",
              *(METRICS[name] for name in ("erf_0_5", "erf_0_1", "erf_0_01", "perplexity")),
              "bits per byte", METRICS["ratio"]]  # fmt: skip
    return table(header, rows)


def _way_table(result: dict[str, Any]) -> str:
    """The field at each record on the way of each run."""
    rows = [
        [
            f"{run['title']}, {run['corpus']}, {run['tokens']:,} tokens",
            " → ".join(f"{row['erf']:g} ({row['at_tokens']:,})" for row in run["on_the_way"]),
        ]
        for group in result["budgets"]
        for run in group
    ]
    return table(["run", f"ERF at ε = {result['marked']:g} (after tokens)"], rows)


def _seed_table(result: dict[str, Any]) -> str:
    rows = [
        [
            f"{METRICS[name]}: {row['title']}, {row['corpus']}",
            " / ".join(_text(value) for value in row[name]["values"]),
            MISSING if row[name]["sd"] is None else f"{100 * row[name]['sd']:.2g} %",
        ]
        for name in METRICS
        for row in result["spread"]
    ]
    return table(["number", "by seed", "sd of the logarithm"], rows)


def _pair_table(result: dict[str, Any]) -> str:
    rows = [
        [METRICS[name], number(pooled["ratio"]),
         *(f"{row[name]['beyond']} of {row[name]['pairs']}" for row in result["pairs"])]
        for name, pooled in result["pooled"].items()
        if pooled and result["pairs"]
    ]  # fmt: skip
    corpora = [row["corpus"] for row in result["pairs"]]
    return table(["pairs of encodings apart by more than seeds in", "ratio", *corpora], rows)


def draw(result: dict[str, Any]) -> Figure:
    """Field and perplexity against tokens trained on, with the seeds beside."""
    from trf.plotting.training import training_figure

    return training_figure(result)
