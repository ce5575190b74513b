"""The window mask and its kin at inference: perplexity at the longest length, entropy by tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from trf.errors import ParameterError
from trf.plotting.axes import STYLE, colour, plt

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# A marker a way: plain filled, the others open, so that those that agree can be told apart.
_MARKS: Mapping[str, Mapping[str, Any]] = {
    "plain": {"marker": "o", "markersize": 6},
    "log-n scale": {"marker": "x", "markersize": 6},
    "window": {"marker": "s", "markersize": 7.5, "fillstyle": "none"},
    "BCA": {"marker": "D", "markersize": 4.5, "fillstyle": "none"},
    "BCA, log-n scale": {"marker": "+", "markersize": 7},
}
_TICKS = (0.8, 0.9, 1, 1.1, 1.3, 2, 4, 10, 30, 100)
_NEAR = 0.1  # the axis of ratios is about even within so much of 1, and logarithmic beyond


def masks_figure(result: Mapping[str, Any]) -> Figure:
    """A column a corpus: perplexity at the longest length in each way, and entropy of attention.

    Above, a row an encoding: perplexity relative to the best plain one of the corpus. Below:
    entropy in one window against the number of tokens, a line an encoding, thin behind the window
    mask; dashed its greatest possible value, the logarithm of that number.

    Args:
        result: as `trf.study.masks.summarise` returns it.

    Raises:
        ParameterError: there are no records.
    """
    records, corpora, names = result["records"], result["corpora"], result["encodings"]
    if not records:
        raise ParameterError("there is nothing to draw: no relative encoding was run masked")
    titles = {record["encoding"]: record["title"] for record in records}
    with plt.rc_context(STYLE):
        upper = 0.27 * len(names) + 0.7
        figure, axes = plt.subplots(
            2, len(corpora), figsize=(max(2.3 * len(corpora), 5.0) + 1.2, upper + 4.0),
            sharex="row", sharey="row", squeeze=False, layout="constrained",
            gridspec_kw={"height_ratios": [upper, 2.6]},
        )  # fmt: skip
        for (above, below), corpus in zip(axes.T, corpora, strict=True):
            found = [record for record in records if record["corpus"] == corpus]
            _dots(above, found, names)
            _entropy(below, found)
            below.set_xlabel("tokens (= bytes)" if result["unit"] == "byte" else "tokens")
            above.set_title(corpus, fontweight="bold")
        longest, trained = records[0]["longest"], records[0]["train_length"]
        axes[0, 0].set_yticks(range(len(names)), [titles[name] for name in names])
        axes[0, 0].set_ylim(len(names) - 0.5, -0.5)
        for label, name in zip(axes[0, 0].get_yticklabels(), names, strict=True):
            label.set_color(colour(name))
        axes[1, 0].set_ylabel("entropy of attention (nats)\nmean over layers and heads")
        figure.legend(
            [Line2D([], [], color="#444444", linestyle="none", **_MARKS[view]) for view in _MARKS]
            + [
                Line2D([], [], color="#444444", linewidth=1.8),
                Line2D([], [], color="#444444", linewidth=0.8),
                Line2D([], [], color="#444444", linewidth=1.0, linestyle="--"),
            ],
            [*_MARKS, "entropy, plain", "entropy, window", "ln(tokens)"],
            loc="outside lower center", ncols=4, fontsize=8,
        )  # fmt: skip
        figure.suptitle(
            f"Masks of {records[0]['window']} tokens at inference, trained at {trained}; "
            f"perplexity at {longest} tokens\nrelative to the best plain one of the corpus "
            "(axis widened near 1)",
            fontsize=9.5,
        )
    return figure


def _dots(ax: Axes, records: Sequence[Mapping[str, Any]], names: Sequence[str]) -> None:
    """Perplexity at the longest length in each way, a row an encoding."""
    for record in records:
        for view, mark in _MARKS.items():
            rows = record["views"][view]
            at = [row["best"] for row in rows if row["length"] == record["longest"]]
            ax.plot(
                at, [names.index(record["encoding"])] * len(at), linestyle="none",
                color=colour(record["encoding"]), clip_on=False, **mark,
            )  # fmt: skip
    ax.axvline(1.0, color="#888888", linewidth=0.9, linestyle=":")
    ax.set_xscale(
        "function",
        functions=(
            lambda x: np.arcsinh((np.asarray(x) - 1) / _NEAR),
            lambda y: 1 + _NEAR * np.sinh(np.asarray(y)),
        ),
    )
    ax.margins(x=0.08)
    ax.xaxis.set_major_locator(FixedLocator(_TICKS))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
    ax.tick_params(axis="x", labelsize=7.5)
    ax.set_xlabel("perplexity / best")


def _entropy(ax: Axes, records: Sequence[Mapping[str, Any]]) -> None:
    """Entropy against the number of tokens, before and behind the window mask."""
    most = 1
    for record in records:
        for name, width in (("full", 1.6), ("window", 0.8)):
            curve = record["entropy"].get(name)
            if curve is None:
                continue
            tokens, nats = np.array(curve["tokens"]), np.array(curve["nats"])
            kept = tokens >= (record["train_length"] if name == "window" else 16)
            ax.plot(tokens[kept], nats[kept], color=colour(record["encoding"]), linewidth=width)
            most = max(most, int(tokens[-1]))
    if most > 1:
        counts = np.geomspace(16, most, 50)
        ax.plot(counts, np.log(counts), color="#444444", linewidth=1.0, linestyle="--")
    ax.axvline(records[0]["train_length"], color="#888888", linewidth=0.9, linestyle=":")
    ax.set_xscale("log", base=2)
    ticks = [n for n in (16, 64, 256, 1024, 4096, 16384) if n <= max(most, 64)]
    ax.set_xticks(ticks, [str(n) for n in ticks], fontsize=7.5)
    ax.xaxis.set_minor_locator(NullLocator())
