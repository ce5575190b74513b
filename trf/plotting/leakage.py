"""What perplexity loses past the training length, against the leakage of the theory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from trf.errors import ParameterError
from trf.plotting.axes import MARKERS, STYLE, colour, plt

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_LINEAR = 0.01  # the axis of the loss is linear within this, logarithmic beyond
_TICKS = (-1, -0.3, -0.1, -0.03, -0.01, -0.005, 0, 0.005, 0.01, 0.03, 0.1, 0.3, 1, 3, 10)


def leakage_figure(result: Mapping[str, Any]) -> Figure:
    """Loss against leakage: a colour an encoding, a marker a corpus.

    Left the rise of non-overlapping perplexity, at each length (small to large markers, the lengths
    of a model joined); right the loss at the last positions against the same model behind a window
    mask of the training length.

    Args:
        result: `unit`, `corpora`, and `points`, each with `encoding`, `title`, `corpus`, `length`,
            `train_length`, `leakage`, `rise` and perhaps `beyond_window`.

    Raises:
        ParameterError: there are no points.
    """
    points = result["points"]
    if not points:
        raise ParameterError("there is nothing to draw: no encoding with a bias was measured")
    markers = dict(zip(result["corpora"], MARKERS, strict=False))
    titles = {point["encoding"]: point["title"] for point in points}
    longest, trained = max(point["length"] for point in points), points[0]["train_length"]
    with plt.rc_context({**STYLE, "font.size": 8.5}):
        figure, (left, right) = plt.subplots(1, 2, figsize=(8.4, 4.1), layout="constrained")
        _rise(left, points, markers)
        late = [point for point in points if "beyond_window" in point]
        for point in late:
            right.plot(
                point["leakage"], point["beyond_window"], linestyle="none", markersize=5.5,
                **_mark(point, markers),
            )  # fmt: skip
        per = f"nats per {result['unit']}"
        left.set_ylabel(f"rise of log perplexity ({per})")
        left.set_title(f"Windows of N > {trained} tokens", fontsize=9)
        right.set_ylabel(f"loss less that behind a window of {trained} ({per})")
        right.set_title(f"Last quarter of {longest} tokens, by position", fontsize=9)
        _scale(left, [point["rise"] for point in points])
        _scale(right, [point["beyond_window"] for point in late])
        for ax in (left, right):
            ax.set_xlim(-0.03, 1.0)
            ax.axhline(0, color="#888888", linewidth=0.8, zorder=0)
            ax.set_xlabel(f"leakage $1 - B({trained})/B(N)$, mean of the heads")
        figure.legend(
            handles=_legend(titles, markers, sorted({point["length"] for point in points})),
            loc="outside right center", fontsize=7.5,
        )  # fmt: skip
    return figure


def _mark(point: Mapping[str, Any], markers: Mapping[str, str]) -> dict[str, Any]:
    return {
        "color": colour(point["encoding"]), "marker": markers.get(point["corpus"], "x"),
        "markeredgecolor": "white", "markeredgewidth": 0.5,
    }  # fmt: skip


def _rise(ax: Axes, points: Sequence[Mapping[str, Any]], markers: Mapping[str, str]) -> None:
    lengths = sorted({point["length"] for point in points})
    for encoding, corpus in dict.fromkeys((p["encoding"], p["corpus"]) for p in points):
        here = [p for p in points if (p["encoding"], p["corpus"]) == (encoding, corpus)]
        along = [p["leakage"] for p in here], [p["rise"] for p in here]
        ax.plot(*along, color=colour(encoding), linewidth=0.6, alpha=0.6)
        for point in here:
            ax.plot(
                point["leakage"], point["rise"], linestyle="none",
                markersize=_size(lengths.index(point["length"])), **_mark(point, markers),
            )  # fmt: skip


def _size(rank: int) -> float:
    return 3.0 + 1.1 * rank


def _scale(ax: Axes, values: Sequence[float]) -> None:
    """Linear about zero, logarithmic beyond, with ticks that don't crowd."""
    ax.set_yscale("symlog", linthresh=_LINEAR, linscale=1)
    low, high = min([*values, -_LINEAR / 2]), max([*values, _LINEAR])
    ax.set_ylim(low * 1.3, high * 1.3)
    ax.yaxis.set_major_locator(FixedLocator([t for t in _TICKS if low * 1.3 <= t <= high * 1.3]))
    ax.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:g}"))
    ax.yaxis.set_minor_locator(NullLocator())


def _legend(
    titles: Mapping[str, str], markers: Mapping[str, str], lengths: Sequence[int]
) -> list[Any]:
    dots: dict[str, Any] = {"linestyle": "none", "color": "#444444"}
    return [
        *(Line2D([], [], color=colour(name), linewidth=3, label=title)
          for name, title in titles.items()),
        *(Line2D([], [], marker=marker, markersize=5, label=corpus, **dots)
          for corpus, marker in markers.items()),
        *(Line2D([], [], marker="o", markersize=_size(k), label=f"N = {length}", **dots)
          for k, length in enumerate(lengths)),
    ]  # fmt: skip
