"""Receptive field and perplexity against tokens trained on, and the spread over seeds."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

from trf.errors import ParameterError
from trf.plotting.axes import MARKERS, STYLE, colour, plt

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_PANELS = ("erf_0_1", "perplexity", "ratio")


def training_figure(result: Mapping[str, Any]) -> Figure:
    """ERF, perplexity and its ratio past training against tokens trained on, on a log axis.

    Args:
        result: `marked`, `unit`, and `budgets` and `seeds`: groups of runs, each with `encoding`,
            `title`, `corpus`, `trained`, `train_length`, `longest`, `trf`, `erf_0_1`,
            `perplexity`, `ratio` (each or None) and `on_the_way`.

    Returns:
        The figure: ends of runs joined over budgets, the field on the way of each run in small
        marks, the other seeds as open ones; the TRF dashed. A colour stands for an encoding, a
        marker for a corpus.

    Raises:
        ParameterError: no two runs differ in budget or seed.
    """
    runs = [run for group in (*result["budgets"], *result["seeds"]) for run in group]
    if not runs:
        raise ParameterError("there is nothing to draw: no runs of several budgets or seeds")
    corpora = dict.fromkeys(run["corpus"] for run in runs)
    markers = {name: MARKERS[i % len(MARKERS)] for i, name in enumerate(corpora)}
    with plt.rc_context({**STYLE, "font.size": 8.5}):
        figure, axes = plt.subplots(1, 3, figsize=(8.6, 3.3), layout="constrained")
        _on_the_way(axes[0], result, markers)
        for ax, name in zip(axes, _PANELS, strict=True):
            for group in result["budgets"]:
                line = [run["trained"] for run in group], [_known(run[name]) for run in group]
                ax.plot(
                    *line, color=colour(group[0]["encoding"]), marker=markers[group[0]["corpus"]],
                    markersize=4.5,
                )  # fmt: skip
            for run in [run for group in result["seeds"] for run in group]:
                ax.plot(
                    run["trained"], _known(run[name]), marker=markers[run["corpus"]],
                    markersize=6.5, linestyle="none", markerfacecolor="none",
                    markeredgecolor=colour(run["encoding"]),
                )  # fmt: skip
            ax.set_xscale("log")
            ax.set_xlabel("million tokens trained on")
            ax.xaxis.set_major_locator(FixedLocator(_ticks(runs)))
            ax.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x / 1e6:.2g}"))
            ax.xaxis.set_minor_locator(NullLocator())
            ax.yaxis.set_major_locator(MaxNLocator(6))
        trained, longest = runs[0]["train_length"], max(run["longest"] for run in runs)
        axes[0].set_ylim(bottom=0)
        axes[0].set_ylabel(f"radius at ε = {result['marked']:g} (tokens), N = {trained}")
        axes[1].set_ylabel(f"perplexity per {result['unit']} at {trained} tokens")
        axes[2].set_ylabel(f"perplexity at {longest} over {trained} tokens")
        figure.legend(
            handles=_legend(runs, markers, bool(result["seeds"])), loc="outside upper center",
            fontsize=7.5, ncols=7, columnspacing=1.0, handletextpad=0.5,
        )  # fmt: skip
    return figure


def _known(value: float | None) -> float:
    return math.nan if value is None else value


def _on_the_way(ax: Axes, result: Mapping[str, Any], markers: Mapping[str, str]) -> None:
    for run in [run for group in result["budgets"] for run in group]:
        along = run["on_the_way"]
        ax.plot(
            [row["at_tokens"] for row in along], [row["erf"] for row in along],
            color=colour(run["encoding"]), linewidth=0.6, alpha=0.7, marker=markers[run["corpus"]],
            markersize=2,
        )  # fmt: skip
    theory = {
        (run["encoding"], run["trf"])
        for group in (*result["budgets"], *result["seeds"])
        for run in group
        if run["trf"] is not None
    }
    for name, at in sorted(theory):
        ax.axhline(at, color=colour(name), linestyle="--", linewidth=1.2)


def _ticks(runs: list[Mapping[str, Any]]) -> list[int]:
    """The ends of the runs, but none that crowds another."""
    kept: list[int] = []
    for at in sorted({run["trained"] for run in runs}):
        if not kept or at > 1.3 * kept[-1]:
            kept.append(at)
    return kept


def _legend(runs: list[Mapping[str, Any]], markers: Mapping[str, str], seeds: bool) -> list[Line2D]:
    """Encodings by colour; corpora by marker, where there are several."""
    titles = {run["encoding"]: run["title"] for run in runs}
    (corpus, marker), *others = markers.items()
    if not others:
        titles = {name: f"{title}, {corpus}" for name, title in titles.items()}

    def grey(label: str, **look: Any) -> Line2D:
        return Line2D([], [], color="#444444", label=label, **look)

    ends = {f"end of a run, {name}" if others else "end of a run": m for name, m in markers.items()}
    return [
        *(Line2D([], [], color=colour(name), linewidth=3, label=title)
          for name, title in titles.items()),
        *(grey(label, marker=m, markersize=4.5) for label, m in ends.items()),
        grey("on the way", marker=marker, markersize=2, linewidth=0.6),
        *([grey("seeds", marker=marker, markersize=6.5, markerfacecolor="none", linestyle="none")]
          if seeds else []),
        grey("TRF, one layer", linestyle="--"),
    ]  # fmt: skip
