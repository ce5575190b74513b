"""Where training takes the learned parameters of KERPLE (Chi et al., arXiv 2205.09921).

The logarithmic kernel ``-r1 ln(1 + r2 n)`` converges if and only if r1 > 1, and nothing in training
asks for that: whether it is reached is a finding. The power kernel ``-r1 n^r2`` converges whatever
its parameters. Values are followed from the earliest record: the initial ones, which cells with
the same seed share, where the cell has them.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from trf.study.cells import CellResult, Cells
from trf.study.markdown import MISSING, number, share, shares, span, table
from trf.study.scores import loss_rise
from trf.study.theory import beyond, biases, radius, rounded, status, unit, verdicts
from trf.theory import head_curves, mass_curve

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAME = "learned-kerple"
EPS = 0.1
KERNELS = ("kerple-log", "kerple-power")


def summarise(cells: Cells) -> dict[str, Any]:
    """Parameters by head and record, their verdicts and leakage; perplexity far past training."""
    main = cells.main
    compared = [row for cell in main for row in _extrapolation(cell)]
    return {
        "eps": EPS,
        "unit": unit(main),
        "corpora": main.corpora,
        "models": [model for cell in main if cell.encoding in KERNELS for model in _model(cell)],
        "extrapolation": compared,
    }


def _model(cell: CellResult) -> list[dict[str, Any]]:
    """The parameters of a cell at each record; none unless there are two records or more."""
    records = sorted({row["at_tokens"] for row in cell.data["rows"]
                      if row["quantity"].startswith("parameter ")})  # fmt: skip
    found = [(at, heads) for at in records if (heads := biases(cell, at)) is not None]
    if len(found) < 2:
        return []
    names = [parameter.name for parameter in cell.entry.learnable]
    values = [cell.parameters(at) for at, _ in found]
    decided = [verdicts(heads) for _, heads in found]
    return [
        {
            "encoding": cell.encoding,
            "title": cell.title,
            "corpus": cell.corpus,
            "train_length": cell.train_length,
            "at_tokens": [at for at, _ in found],
            "radius": [radius(mass_curve(heads, cell.train_length), EPS) for _, heads in found],
            "heads": [
                {
                    **{name: [value[h][name] for value in values] for name in names},
                    "verdicts": [verdict[h] for verdict in decided],
                }
                for h in range(cell.n_head)
            ],
        }
    ]


def _extrapolation(cell: CellResult) -> list[dict[str, Any]]:
    """Verdict, leakage and rise of the loss from the training length to the longest."""
    heads, longest = biases(cell), max(cell.data["cell"]["preset"]["lengths"])
    rise = loss_rise(cell, longest)
    if heads is None or rise is None:
        return []
    leaked = beyond(head_curves(heads, longest), cell.train_length, longest)
    return [
        {
            "encoding": cell.encoding,
            "title": cell.title,
            "corpus": cell.corpus,
            "learned": bool(cell.entry.learnable),
            "verdicts": verdicts(heads),
            "train_length": cell.train_length,
            "length": longest,
            "leakage": rounded(sum(leaked) / len(leaked)),
            "leakage_by_head": leaked,
            "rise": rise,
            "perplexity_ratio": rounded(math.exp(rise)),
        }
    ]


def words(result: dict[str, Any]) -> dict[str, str]:
    """A table a kernel, the ratios of perplexity beside those of fixed biases, and counts."""
    found: dict[str, str] = {}
    for name in KERNELS:
        models = [model for model in result["models"] if model["encoding"] == name]
        key = "learned_" + name.removeprefix("kerple-")
        heads = [head for model in models for head in model["heads"]]
        found[f"{key}_heads"] = _heads_table(models, result)
        found[f"{key}_trf"] = _trf_table(models, result["eps"])
        for which, at in (("first", 0), ("end", -1)):
            converging = sum(head["verdicts"][at] == "converges" for head in heads)
            found[f"{key}_converge_{which}"] = f"{converging} of {len(heads)}"
            for parameter in ("r1", "r2"):
                found[f"{key}_{parameter}_{which}"] = span([h[parameter][at] for h in heads])
        for parameter in ("r1", "r2"):
            grown = sum(head[parameter][-1] > head[parameter][0] for head in heads)
            found[f"{key}_{parameter}_grown"] = f"{grown} of {len(heads)}"
        rows = [row for row in result["extrapolation"] if row["encoding"] == name]
        found[f"{key}_leakage"] = shares([row["leakage"] for row in rows])
        found[f"{key}_ratio"] = span([row["perplexity_ratio"] for row in rows], 4)
    fixed = [row for row in result["extrapolation"] if not row["learned"]]
    for kind in ("converges", "diverges"):
        rows = [row for row in fixed if set(row["verdicts"]) == {kind}]
        found[f"learned_fixed_{kind}_ratio"] = span([row["perplexity_ratio"] for row in rows], 4)
        found[f"learned_fixed_{kind}_leakage"] = shares([row["leakage"] for row in rows])
    starts = sorted({model["at_tokens"][0] for model in result["models"]})
    found["learned_first_record"] = f"{starts[0]:,}" if starts else MISSING
    found["learned_longest"] = span(sorted({row["length"] for row in result["extrapolation"]}))
    found["learned_extrapolation"] = _extrapolation_table(result)
    return found


def _heads_table(models: list[dict[str, Any]], result: dict[str, Any]) -> str:
    leaked = {
        (row["encoding"], row["corpus"]): row["leakage_by_head"] for row in result["extrapolation"]
    }
    rows = []
    for model in models:
        beyond_training = leaked.get((model["encoding"], model["corpus"]))
        for h, head in enumerate(model["heads"]):
            leak = share(beyond_training[h]) if beyond_training else MISSING
            moves = [" → ".join(number(v) for v in head[name]) for name in ("r1", "r2")]
            rows.append([f"{model['corpus']}, head {h + 1}", *moves, head["verdicts"][-1], leak])
    return table(["corpus", "r1", "r2", "Σ exp p(n) in the end", "leakage"], rows)


def _trf_table(models: list[dict[str, Any]], eps: float) -> str:
    rows = [
        [model["corpus"], *(f"{r} after {at:,}" for r, at in _pairs(model))] for model in models
    ]
    columns = max((len(model["radius"]) for model in models), default=0)
    header = [f"record {k + 1}" for k in range(columns)]
    return table([f"TRF in tokens at ε = {eps:g}", *header], rows)


def _pairs(model: dict[str, Any]) -> list[tuple[int, int]]:
    return list(zip(model["radius"], model["at_tokens"], strict=True))


def _extrapolation_table(result: dict[str, Any]) -> str:
    """Ratio of perplexity by corpus, the learned kernels first."""
    rows_of = sorted(result["extrapolation"], key=lambda row: row["encoding"] not in KERNELS)
    by_cell = {(row["encoding"], row["corpus"]): row for row in rows_of}
    rows = []
    for name, title in {row["encoding"]: row["title"] for row in rows_of}.items():
        here = [row for row in rows_of if row["encoding"] == name]
        ratios = [by_cell.get((name, corpus)) for corpus in result["corpora"]]
        rows.append(
            [
                title,
                status([verdict for row in here for verdict in row["verdicts"]]),
                shares([row["leakage"] for row in here]),
                *(number(row["perplexity_ratio"], 4) if row else MISSING for row in ratios),
            ]
        )
    return table(["encoding", "Σ exp p(n)", "leakage", *result["corpora"]], rows)


def draw(result: dict[str, Any]) -> Figure:
    """Parameters against tokens trained on, head by head."""
    from trf.plotting.learned import learned_figure

    return learned_figure(result)
