"""Learned parameters of a kernel against tokens trained on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, MaxNLocator

from trf.errors import ParameterError
from trf.plotting.axes import MARKERS, STYLE, colour, plt

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Encoding, parameter, and the value above which the series of a head converges.
_ROWS = (("kerple-log", "r1", 1.0), ("kerple-log", "r2", None), ("kerple-power", "r1", None),
         ("kerple-power", "r2", None))  # fmt: skip


def learned_figure(result: Mapping[str, Any]) -> Figure:
    """The parameters of KERPLE's heads against tokens trained on, a column a corpus.

    Args:
        result: `corpora`, and `models`, each with `encoding`, `title`, `corpus`, `at_tokens`, and
            `heads`, each with its values of `r1` and `r2` at these.

    Returns:
        The figure; the values are measured, so solid, and the border of convergence dashed.

    Raises:
        ParameterError: there are no models.
    """
    models = {(model["encoding"], model["corpus"]): model for model in result["models"]}
    if not models:
        raise ParameterError("there is nothing to draw: no kernel with learned parameters")
    titles = {model["encoding"]: model["title"] for model in result["models"]}
    corpora = [name for name in result["corpora"] if any(c == name for _, c in models)]
    shown = [row for row in _ROWS if row[0] in titles]
    with plt.rc_context({**STYLE, "font.size": 8}):
        figure, axes = plt.subplots(
            len(shown), len(corpora),
            figsize=(max(1.6 * len(corpora), 3.2) + 0.8, 1.35 * len(shown) + 0.9),
            sharex=True, sharey="row", squeeze=False, layout="constrained",
        )  # fmt: skip
        for row, (name, parameter, border) in enumerate(shown):
            for ax, corpus in zip(axes[row], corpora, strict=True):
                if (name, corpus) in models:
                    _panel(ax, models[name, corpus], parameter)
                if border is not None:
                    ax.axhline(border, color="#444444", linewidth=1.0, linestyle="--")
            axes[row, 0].set_ylabel(f"{titles[name]}\n{_symbol(parameter)}", color=colour(name))
            axes[row, 0].set_ylim(bottom=0)
        for ax, corpus in zip(axes[0], corpora, strict=True):
            ax.set_title(corpus, fontsize=9)
        axes[-1, 0].set_xlim(left=0)
        axes[-1, 0].xaxis.set_major_locator(MaxNLocator(3))
        axes[-1, 0].xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x / 1e6:g}"))
        figure.supxlabel("million tokens trained on", fontsize=8.5)
        count = max(len(model["heads"]) for model in result["models"])
        handles = [
            Line2D([], [], color="#444444", marker=MARKERS[h % len(MARKERS)], markersize=4,
                   label=f"head {h + 1}")
            for h in range(count)
        ]  # fmt: skip
        if "kerple-log" in titles:
            label = f"{_symbol('r1')} = 1: the log kernel converges above"
            handles.append(Line2D([], [], color="#444444", linestyle="--", label=label))
        figure.legend(
            handles=handles, loc="outside upper center", fontsize=7.5,
            ncols=len(handles) if len(corpora) > 2 else 2, columnspacing=1.0,
        )  # fmt: skip
    return figure


def _panel(ax: Axes, model: Mapping[str, Any], parameter: str) -> None:
    for h, head in enumerate(model["heads"]):
        ax.plot(
            model["at_tokens"], head[parameter], color=colour(model["encoding"]), linewidth=1.1,
            marker=MARKERS[h % len(MARKERS)], markersize=3.5, clip_on=False,
        )  # fmt: skip


def _symbol(parameter: str) -> str:
    return f"$r_{parameter[-1]}$"
