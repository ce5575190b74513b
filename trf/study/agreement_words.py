"""The words of `trf.study.agreement`: its tables and phrases for the report."""

from __future__ import annotations

from typing import Any

from trf import encodings
from trf.study.markdown import number, table
from trf.study.predictors import DIAGNOSTIC, INPUTS, NULL, PAPERS, PREDICTORS


def words(result: dict[str, Any]) -> dict[str, str]:
    """Tables `agreement_predictors`, `agreement_by_eps`, `agreement_ranks`, `agreement_lengths` and
    `agreement_budgets`.

    Phrases: `agreement_chosen`, and for `paper`, `chosen` and `attention` (the paths with measured
    attention) on the rest `agreement_*_factor` (median), `_mean`, `_worst`, `_within` (percent),
    `_rank` (the mean over eps and the corpora not chosen on of the rank correlation over
    encodings). `agreement_null_factor` and `_mean`: of one radius for all encodings.
    `agreement_of_*`: the typical factor of a predictor on the rest, by its name.
    """
    entries = {entry["name"]: entry for entry in result["predictors"]}
    chosen = result["chosen"] or PAPERS
    found = {
        "agreement_predictors": _predictors_table(result),
        "agreement_by_eps": _eps_table(result),
        "agreement_ranks": _ranks_table(result, chosen),
        "agreement_lengths": _lengths_table(result, entries),
        "agreement_budgets": _budgets_table(result, chosen),
        "agreement_chosen": entries[chosen]["title"],
        "agreement_selection": ", ".join(
            encodings.get(name).title for name in result["selection"]["encodings"]
        ),
        "agreement_n_rest": str(entries[chosen]["rest"]["n"]),
    }
    for name, entry in entries.items():
        found[f"agreement_of_{name.replace('-', '_')}"] = number(entry["rest"].get("mean"))
    null = [r for r in result["by_eps"] if r["predictor"] == NULL and r["eps"] is None]
    for key in ("factor", "mean"):
        found[f"agreement_null_{key}"] = number(null[0].get(key) if null else None)
    for label, name in (("paper", PAPERS), ("chosen", chosen), ("attention", DIAGNOSTIC[-1])):
        rest = entries[name]["rest"]
        for key in ("factor", "mean", "worst"):
            found[f"agreement_{label}_{key}"] = number(rest.get(key))
        within = rest.get("within")
        found[f"agreement_{label}_within"] = number(None if within is None else 100 * within)
        found[f"agreement_{label}_rank"] = number(_mean_rank(result, name))
        found[f"agreement_{label}_rank_decaying"] = number(_mean_rank(result, name, True))
    return found


def _mean_rank(result: dict[str, Any], name: str, decaying: bool = False) -> float | None:
    """The mean over eps and the corpora that the predictor was not chosen on."""
    rows = [row for row in result["ranks"] if not row["seen"]]
    ranks = [(row["decaying"] if decaying else row)[name] for row in rows]
    found = [rank for rank in ranks if rank is not None]
    return sum(found) / len(found) if found else None


def _predictors_table(result: dict[str, Any]) -> str:
    """Every predictor tried: on the cells it was chosen on, and on all others."""
    rows = []
    for entry in result["predictors"]:
        mark = " **(chosen)**" if entry["name"] == result["chosen"] else ""
        rows.append([
            entry["title"] + mark, entry["reads"],
            number(entry["selection"].get("mean")), number(entry["rest"].get("mean")),
            number(entry["rest"].get("factor")), number(entry["rest"].get("ratio")),
            number(entry["rest"].get("worst")), number(_mean_rank(result, entry["name"])),
            number(_mean_rank(result, entry["name"], True)),
        ])  # fmt: skip
    header = ["predictor", "reads", "typical factor, selection", "typical factor, rest",
              "median factor, rest", "median predicted / measured, rest", "worst factor, rest",
              "rank correlation, other corpora", "the same, decaying biases"]  # fmt: skip
    return table(header, rows)


def _eps_table(result: dict[str, Any]) -> str:
    """Typical factors on the rest by eps: at small ones every wide field ends near N."""
    every = list(dict.fromkeys(row["eps"] for row in result["by_eps"]))
    names = list(dict.fromkeys(row["predictor"] for row in result["by_eps"]))
    found = {(row["predictor"], row["eps"]): row.get("mean") for row in result["by_eps"]}
    rows = [
        ["one radius for all" if name == NULL else PREDICTORS[name].title,
         *(number(found[name, eps]) for eps in every)]
        for name in names
    ]  # fmt: skip
    return table(["typical factor, rest", *("all" if e is None else f"ε = {e:g}" for e in every)],
                 rows)  # fmt: skip


def _ranks_table(result: dict[str, Any], chosen: str) -> str:
    """Rank correlation over encodings: the paper's predictor, the chosen one, the diagnostic."""
    shown = (PAPERS, chosen, DIAGNOSTIC[-1])
    rows = []
    for row in result["ranks"]:
        seen = " (seen in choosing)" if row["seen"] else ""
        group = f"{row['corpus']}, ε = {row['eps']:g}{seen}"
        rows.append([group, row["n"], *(number(row[name]) for name in shown)])
    titles = [PREDICTORS[name].title for name in shown]
    return table(["corpus, ε", "encodings", *titles], rows)


def _lengths_table(result: dict[str, Any], entries: dict[str, Any]) -> str:
    """Typical factors at the lengths, and of the cells, that were not looked at."""
    rows = [
        [f"{entries[row['predictor']]['title']}, N = {row['length']}", row["n"],
         number(row.get("mean")), number(row.get("factor")), number(row.get("rank"))]
        for row in result["lengths"]
    ]  # fmt: skip
    header = ["predictor, N", "radii", "typical factor", "median factor", "rank correlation"]
    return table(header, rows)


def _budgets_table(result: dict[str, Any], chosen: str) -> str:
    """Predicted and measured radii of the same encoding at several budgets, and what grows."""
    inputs = {(i["encoding"], i["corpus"], i["tokens"]): i for i in result["inputs"]}
    rows = sorted(
        (
            row
            for row in [*result["rows"], *result["budgets"]]
            if (row["encoding"], row["corpus"], row["tokens"]) in inputs
            and row["eps"] in (0.5, 0.1)
        ),
        key=lambda row: (row["encoding"], row["corpus"], -row["eps"], row["tokens"]),
    )
    body = []
    for row in rows:
        given = inputs[row["encoding"], row["corpus"], row["tokens"]]
        body.append([
            f"{encodings.get(row['encoding']).title} on {row['corpus']}, ε = {row['eps']:g}",
            f"{row['tokens']:,}", row[PAPERS], row[chosen], row[DIAGNOSTIC[-1]], row["measured"],
            *(number(given[name]) for name in INPUTS),
        ])  # fmt: skip
    header = ["encoding, corpus, ε", "trained on (tokens)", PREDICTORS[PAPERS].title,
              PREDICTORS[chosen].title, PREDICTORS[DIAGNOSTIC[-1]].title, "ERF measured",
              *INPUTS.values()]  # fmt: skip
    return table(header, body)
