"""Predicted against measured radii, and how far every predictor is off."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, NullFormatter

from trf import encodings
from trf.errors import ParameterError
from trf.plotting.axes import MARKERS, STYLE, colour, plt

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def agreement_figure(result: Mapping[str, Any]) -> Figure:
    """Radii of the paper's and of the chosen predictor against the measured ones, and all errors.

    Args:
        result: of `trf.study.agreement.summarise`.

    Returns:
        The figure. In the scatter plots hollow marks are the cells that the predictor was chosen
        on; the diagonal is agreement, the grey band the target factor.

    Raises:
        ParameterError: no encoding with a bias was measured.
    """
    rows = result["rows"]
    if not rows or result["chosen"] is None:
        raise ParameterError("there is nothing to draw: no encoding with a bias was measured")
    titles = {entry["name"]: entry["title"] for entry in result["predictors"]}
    corpora = [name for name in result["corpora"] if name in {row["corpus"] for row in rows}]
    shown = list(dict.fromkeys([result["paper"], result["chosen"]]))
    radii = [row[name] for row in rows for name in ("measured", *shown) if row[name] is not None]
    limits = 0.8, 1.25 * max(radii)
    with plt.rc_context(STYLE):
        figure = plt.figure(figsize=(11.4, 7.4), layout="constrained")
        grid = figure.add_gridspec(2, 2, height_ratios=[1.5, 1.0])
        first = None
        for column, name in enumerate(shown):
            ax = figure.add_subplot(grid[0, column], sharex=first, sharey=first)
            first = first or ax
            _scatter(ax, rows, name, titles[name], corpora, limits, result)
        _errors(figure.add_subplot(grid[1, :]), result)
        names = list(dict.fromkeys(row["encoding"] for row in rows))
        handles = [
            Line2D([], [], marker="o", linestyle="none", color=colour(name),
                   label=encodings.get(name).title)
            for name in names
        ]  # fmt: skip
        handles += [
            Line2D(
                [],
                [],
                marker=MARKERS[i % len(MARKERS)],
                linestyle="none",
                color="#444444",
                label=corpus,
            )
            for i, corpus in enumerate(corpora)
        ]
        handles.append(
            Line2D([], [], marker="o", linestyle="none", markerfacecolor="none", color="#444444",
                   label="seen in choosing")
        )  # fmt: skip
        figure.legend(handles=handles, loc="outside right upper", fontsize=8)
    return figure


def _scatter(
    ax: Axes,
    rows: Sequence[Mapping[str, Any]],
    name: str,
    title: str,
    corpora: list[str],
    limits: tuple[float, float],
    result: Mapping[str, Any],
) -> None:
    factor, selection = result["target"]["factor"], result["selection"]
    rows = [row for row in rows if row[name] is not None]
    ends = np.array(limits)
    ax.fill_between(ends, ends / factor, ends * factor, color="#000000", alpha=0.07, linewidth=0)
    ax.plot(ends, ends, color="#888888", linewidth=0.9)
    for row in rows:
        seen = row["corpus"] == selection["corpus"] and row["encoding"] in selection["encodings"]
        shade = colour(row["encoding"])
        ax.plot(
            row["measured"], row[name], linestyle="none", markersize=5.5, alpha=0.85,
            marker=MARKERS[corpora.index(row["corpus"]) % len(MARKERS)], markeredgecolor=shade,
            markerfacecolor="none" if seen else shade,
        )  # fmt: skip
    for set_scale in (ax.set_xscale, ax.set_yscale):
        set_scale("log")
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
        axis.set_minor_formatter(NullFormatter())
    ax.set_xlim(*limits)
    ax.set_ylim(*limits)
    eps = ", ".join(f"{e:g}" for e in sorted({row["eps"] for row in rows}, reverse=True))
    ax.set_title(title, loc="left", fontweight="bold")
    ax.set_xlabel(f"ERF measured (tokens), ε = {eps}")
    ax.set_ylabel("predicted (tokens)")


def _errors(ax: Axes, result: Mapping[str, Any]) -> None:
    """Typical factor between predicted and measured radius, a line a predictor."""
    entries = result["predictors"]
    for line, entry in enumerate(entries):
        shade = "#0072B2" if entry["name"] == result["chosen"] else "#444444"
        for group, filled in (("selection", False), ("rest", True)):
            if entry[group]["n"]:
                ax.plot(
                    entry[group]["mean"], line, marker="o", markersize=6, color=shade,
                    markerfacecolor=shade if filled else "white", zorder=3 if filled else 4,
                )  # fmt: skip
    ax.set_yticks(
        range(len(entries)),
        [entry["title"] + (" *" if entry["diagnostic"] else "") for entry in entries],
    )
    ax.invert_yaxis()
    ax.set_xscale("log")
    target = result["target"]["factor"]
    ax.axvline(target, color="#888888", linewidth=0.9, linestyle=":")
    ax.annotate(
        f"target ×{target:g}", (target, 0), xytext=(4, 0), textcoords="offset points", fontsize=8,
        color="#666666", va="center",
    )  # fmt: skip
    for set_format in (ax.xaxis.set_major_formatter, ax.xaxis.set_minor_formatter):
        set_format(FuncFormatter(lambda x, _: f"{x:g}"))
    ax.tick_params(axis="x", which="minor", labelsize=8)
    ax.set_xlabel(
        "typical factor between predicted and measured radius, exp(mean |ln ratio|)\n"
        "hollow: cells it was chosen on; filled: all others; * reads the measured attention"
    )
