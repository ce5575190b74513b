"""TRF against ERF as small multiples: a row an encoding, a column a corpus."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, NullLocator

from trf.errors import ParameterError
from trf.plotting.axes import STYLE, colour, plt

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_SMALL: dict[Any, Any] = {
    "font.size": 8,
    "axes.titlesize": 8.5,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
}
_PATHS = "#222222"


def fields_figure(result: Mapping[str, Any]) -> Figure:
    """TRF against ERF at the same N: one panel an encoding and corpus.

    Args:
        result: `corpora`, `marked` (the eps of the radii written out), `residual`, and `panels`,
            each with `encoding`, `title`, `corpus`, `length`, `n_layer`, `tokens`, and `theory`,
            `stack` and `measured`, each with its `curve` at these tokens and its `radius` by eps,
            the measured one with `low` and `high` too; a panel may have `paths` like `theory`.

    Returns:
        The figure; theory dashed, its stack of layers dotted, paths dash-dotted, measurement solid.

    Raises:
        ParameterError: there are no panels.
    """
    panels, corpora = result["panels"], result["corpora"]
    if not panels:
        raise ParameterError("there is nothing to draw: no encoding with a bias was measured")
    titles = {panel["encoding"]: panel["title"] for panel in panels}
    by_cell = {(panel["encoding"], panel["corpus"]): panel for panel in panels}
    with plt.rc_context({**STYLE, **_SMALL}):
        figure, axes = plt.subplots(
            len(titles), len(corpora),
            figsize=(max(1.75 * len(corpora), 3.5) + 0.75, 1.08 * len(titles) + 1.0),
            sharex=True, sharey=True, squeeze=False, layout="constrained",
        )  # fmt: skip
        for row, name in enumerate(titles):
            for column, corpus in enumerate(corpora):
                panel = by_cell.get((name, corpus))
                if panel is None:
                    _empty(axes[row, column])
                else:
                    _panel(axes[row, column], panel, f"{result['marked']:g}")
            axes[row, 0].set_ylabel(_broken(titles[name]), color=colour(name), fontweight="bold")
        for ax, corpus in zip(axes[0], corpora, strict=True):
            ax.set_title(corpus)
        length = panels[0]["length"]
        for ax in axes[-1]:
            ax.set_xscale("log")
            ax.set_xlim(1, length)
            ax.set_ylim(0, 1.04)
            ax.set_yticks([0, 0.5, 1], ["0", "0.5", "1"])
            ax.set_xticks([1, 10, 100, length])
            ax.xaxis.set_minor_locator(NullLocator())
            ax.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
        figure.supxlabel("newest tokens (distance + 1)", fontsize=8.5)
        figure.supylabel("cumulative share of mass", fontsize=8.5)
        wide = len(corpora) > 2
        figure.legend(
            handles=_legend(panels[0], result["residual"]), fontsize=7.5,
            loc="outside upper center", ncols=5 if wide else 2, columnspacing=1.2,
            title=f"Receptive fields within N = {length} tokens{'; ' if wide else chr(10)}"
            f"radii at ε = {result['marked']:g}", title_fontsize=8.5,
        )  # fmt: skip
    return figure


def _panel(ax: Axes, panel: Mapping[str, Any], eps: str) -> None:
    shade, tokens = colour(panel["encoding"]), panel["tokens"]
    measured = panel["measured"]
    low, high = (np.array(measured[edge], dtype=float) for edge in ("low", "high"))
    ax.fill_between(tokens, low, high, color=shade, alpha=0.2, linewidth=0)
    ax.plot(tokens, panel["stack"]["curve"], color=shade, linestyle=":", linewidth=1.1)
    ax.plot(tokens, panel["theory"]["curve"], color=shade, linestyle="--", linewidth=1.3)
    if "paths" in panel:
        ax.plot(tokens, panel["paths"]["curve"], color=_PATHS, linestyle="-.", linewidth=0.9)
    ax.plot(tokens, np.array(measured["curve"], dtype=float), color=shade, linewidth=1.5)
    for name, kind in (("theory", "white"), ("measured", shade)):
        at = panel[name]["radius"][eps]
        ax.plot(
            [at], [1 - float(eps)], marker="o", markersize=3.2, markeredgecolor=shade,
            markerfacecolor=kind, linestyle="none", clip_on=False, zorder=5,
        )  # fmt: skip
    text = "\n".join(
        f"{label} {panel[name]['radius'][eps]}"
        for label, name in (
            ("TRF", "theory"), ("stack", "stack"), ("paths", "paths"), ("ERF", "measured"),
        )
        if name in panel
    )  # fmt: skip
    corner = (0.985, 0.04, "right", "bottom") if _low(panel) else (0.02, 0.97, "left", "top")
    x, y, across, along = corner
    ax.text(
        x, y, text, transform=ax.transAxes, ha=across, va=along, fontsize=6.5, linespacing=1.15,
        zorder=6, bbox={"facecolor": "white", "alpha": 0.75, "edgecolor": "none", "pad": 0.8},
    )  # fmt: skip


def _low(panel: Mapping[str, Any]) -> bool:
    """Whether the lower right corner holds no more of the curves than the upper left one."""
    along = np.log(panel["tokens"]) / np.log(panel["length"])
    upper = lower = 0
    for name in ("theory", "stack", "measured"):
        curve = np.array(panel[name]["curve"], dtype=float)
        lower += np.sum((along > 0.62) & (curve < 0.42))
        upper += np.sum((along < 0.38) & (curve > 0.58))
    return bool(lower <= upper)


def _empty(ax: Axes) -> None:
    ax.grid(visible=False)
    ax.text(
        0.5, 0.5, "not measured", transform=ax.transAxes, ha="center", va="center", fontsize=7,
        color="#999999",
    )  # fmt: skip


def _broken(title: str) -> str:
    """A title over two lines, at its bracket."""
    return title.replace(" (", "\n(")


def _legend(panel: Mapping[str, Any], residual: float) -> list[Any]:
    grey, layers = "#444444", f"TRF, {panel['n_layer']} layers, ρ = {residual:g}"
    paths = [Line2D([], [], color=_PATHS, linestyle="-.", linewidth=0.9, label="paths (weights)")]
    return [
        Line2D([], [], color=grey, linestyle="--", label="TRF, one layer"),
        Line2D([], [], color=grey, linestyle=":", label=layers),
        *(paths if "paths" in panel else []),
        Line2D([], [], color=grey, label="ERF, measured"),
        Patch(color=grey, alpha=0.2, linewidth=0, label="90 % of windows"),
    ]
