"""Perplexity against length of many encodings on many corpora, and the loss by position."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from trf.errors import ParameterError
from trf.plotting.axes import MARKERS, STYLE, colour, perplexity, plt

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_FRAME = 1.25  # of the ratio, at most; the legend says where what leaves the frame ends
_TICKS = (0.7, 0.8, 0.85, 0.9, 0.95, 1.0, 1.05, 1.1, 1.15, 1.2, 1.25)
_WIDTH = 1.25  # a smoothed bin reaches from a position to at least so many times it


def extrapolation_figure(result: Mapping[str, Any]) -> Figure:
    """Perplexity by length and loss by position: a column a corpus, a line an encoding.

    Above: perplexity in windows that don't overlap, relative to the train length. Middle: loss by
    position in bits per byte, in bins that widen with the position. Below: what of that loss is due
    to the tokens past the train length (`excess`).

    Args:
        result: as `trf.study.extrapolation.summarise` returns it.

    Raises:
        ParameterError: there are no records.
    """
    records, corpora = result["records"], result["corpora"]
    if not records:
        raise ParameterError("there is nothing to draw: no cell has a perplexity by length")
    markers = {e: MARKERS[i % len(MARKERS)] for i, e in enumerate(result["encodings"])}
    lines: dict[str, Any] = {}
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(
            3, len(corpora), figsize=(max(2.5 * len(corpora), 5.6) + 0.6, 8.8), sharey="row",
            squeeze=False, layout="constrained",
        )  # fmt: skip
        for column, corpus in zip(axes.T, corpora, strict=True):
            found = [record for record in records if record["corpus"] == corpus]
            _column(column, found, markers, result["unit"])
            column[0].set_title(corpus, fontweight="bold")
            for handle, encoding in zip(*column[0].get_legend_handles_labels(), strict=True):
                lines.setdefault(encoding, handle)
        _frame([*axes[:, 0]], records)
        trained = records[0]["train_length"]
        axes[0, 0].set_ylabel(f"perplexity relative to\n{trained} tokens")
        axes[1, 0].set_ylabel("loss at the position\n(bits per byte)")
        axes[2, 0].set_ylabel(f"added by attending past {trained}\n(bits per byte)")
        labels = [
            _label(result["series"][e], [r for r in records if r["encoding"] == e]) for e in lines
        ]
        figure.legend(
            [*lines.values()], labels, loc="outside lower center", fontsize=8,
            ncols=3 if len(corpora) > 2 else 2, title_fontsize=8,
            title=f"in brackets: where the perplexity relative to {trained} tokens ends, at "
            f"{max(record['lengths'][-1] for record in records)}",
        )  # fmt: skip
    return figure


def _column(
    axes: Sequence[Axes],
    records: Sequence[Mapping[str, Any]],
    markers: Mapping[str, str],
    unit: str,
) -> None:
    """The three panels of a corpus."""
    above, middle, below = axes
    for record in records:
        style: dict[str, Any] = {"color": colour(record["encoding"]), "linewidth": 1.3}
        perplexity(
            record["lengths"], record["ratio"], ax=above, label=record["encoding"],
            marker=markers[record["encoding"]], **style,
        )  # fmt: skip
        position = record["position"]
        if position is None:
            continue
        middle.plot(*_smooth(position["positions"], position["bits"]), **style)
        if position["excess"] is not None:
            at, excess = _smooth(position["positions"], position["excess"])
            past = at > record["train_length"]
            below.plot(at[past], excess[past], **style)
    above.tick_params(axis="x", labelsize=7.5)
    what = "tokens = bytes" if unit == "byte" else "tokens"
    above.set_xlabel(f"evaluation length ({what})")
    ticks = max((record["lengths"] for record in records), key=len)
    above.set_xticks(ticks, [str(n) for n in ticks])
    for ax in axes:
        ax.axvline(records[0]["train_length"], color="#888888", linewidth=0.9, linestyle=":")
    for ax in (middle, below):
        ax.set_xscale("log", base=2)
        ax.set_xticks(ticks, [str(n) for n in ticks], fontsize=7.5)
        ax.xaxis.set_minor_locator(NullLocator())
        ax.set_xlabel(f"position ({what})")
    below.set_xlim(above.get_xlim())
    below.axhline(0.0, color="#888888", linewidth=0.9)


def _smooth(positions: Sequence[int], values: Sequence[float]) -> tuple[np.ndarray, np.ndarray]:
    """Neighbouring bins drawn together, so that they are even on a logarithmic axis."""
    edges = np.array([0, *positions])
    cuts = [0]
    for i in range(1, len(edges)):
        if edges[i] >= _WIDTH * edges[cuts[-1]]:
            cuts.append(i)
    cuts[-1] = len(edges) - 1  # the last bin takes the rest
    sums = np.concatenate([[0.0], np.cumsum(np.asarray(values) * np.diff(edges))])
    ends = edges[cuts]
    return (ends[:-1] + ends[1:]) / 2, np.diff(sums[cuts]) / np.diff(ends)


def _frame(axes: Sequence[Axes], records: Sequence[Mapping[str, Any]]) -> None:
    """Limits of the rows: they fit the encodings with a p(n) that stay below `_FRAME`."""
    framed = [r for r in records if r["verdict"]["kind"] != "none" and max(r["ratio"]) <= _FRAME]
    above, middle, below = axes
    ratios = [ratio for r in framed for ratio in r["ratio"]] or [1.0]
    most = _FRAME if any(max(r["ratio"]) > _FRAME for r in records) else max(ratios)
    above.set_yscale("log")
    above.set_ylim(min(ratios) / 1.01, max(most, max(ratios)) * 1.01)
    above.yaxis.set_major_locator(FixedLocator(_TICKS))
    above.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:g}"))
    above.yaxis.set_minor_locator(NullLocator())
    for ax, name in ((middle, "bits"), (below, "excess")):
        shown = [r["position"] for r in framed if r["position"] and r["position"][name]]
        values = [v for p in shown for v in _smooth(p["positions"], p[name])[1]]
        if values:
            margin = 0.06 * (max(values) - min(values)) + 0.02
            ax.set_ylim(min(values) - margin, max(values) + margin)


def _label(series: str, records: Sequence[Mapping[str, Any]]) -> str:
    """The encoding, its verdict, and where its ratio ends over the corpora."""
    if all(record["lengths"][-1] == record["train_length"] for record in records):
        return f"{records[0]['title']}: {series}"
    last = [record["ratio"][-1] for record in records]
    ends = [
        f"{end:.3f}" if end < 2 else f"{end:.3g}" if end < 999.5 else f"{end:.0f}"
        for end in (min(last), max(last))
    ]
    return f"{records[0]['title']}: {series} (×{' to '.join(dict.fromkeys(ends))})"
