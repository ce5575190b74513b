"""Figures of the shipped checkpoints, from the records that `trf figures` writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter

from trf.errors import ParameterError
from trf.plotting.axes import MARKERS, STYLE, colour, cumulative_mass, perplexity, plt

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def overlay_figure(
    records: Sequence[Mapping[str, Any]], *, eps: Sequence[float] = (0.5, 0.1, 0.01)
) -> Figure:
    """TRF against ERF at the same length: one panel an encoding.

    Args:
        records: as `trf figures` writes them: `title`, `encoding`, `status`, `length`, and
            `theory`, `stack` (or None) and `measured`, each with its `curve` and its `radius`
            by eps, the measured one with `low` and `high` too.
        eps: the shares left out, at which the radii are marked and written out.

    Returns:
        The figure; theory dashed, measurement solid.

    Raises:
        ParameterError: there are no records.
    """
    if not records:
        raise ParameterError("there is nothing to draw: no encoding with a bias was measured")
    columns = min(3, len(records))
    rows = -(-len(records) // columns)
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(
            rows, columns, figsize=(3.6 * columns + 0.3, 2.6 * rows + 0.9), sharex=True,
            sharey=True, squeeze=False, layout="constrained",
        )  # fmt: skip
        for ax, record in zip(axes.flat, records, strict=False):
            _overlay_panel(ax, record, eps)
        for ax in axes.flat[len(records) :]:
            ax.set_axis_off()
        for ax in axes[:, 0]:
            ax.set_ylabel("cumulative share of mass")
        for column in range(columns):
            last = max(r for r in range(rows) if r * columns + column < len(records))
            axes[last, column].set_xlabel("newest tokens (distance + 1)")
            axes[last, column].tick_params(labelbottom=True)
        drawn, labels = axes[0, 0].get_legend_handles_labels()
        grey = [Line2D([], [], color="#444444", linestyle=line.get_linestyle()) for line in drawn]
        figure.legend(grey, labels, loc="outside lower center", ncols=columns, fontsize=9)
        shares = ", ".join(f"{e:g}" for e in eps)
        figure.suptitle(
            f"Receptive fields within N = {records[0]['length']} tokens"
            + ("; " if columns > 2 else "\n")
            + f"circles at ε = {shares}",
            fontsize=11,
        )
    return figure


def _overlay_panel(ax: Axes, record: Mapping[str, Any], eps: Sequence[float]) -> None:
    shade = colour(record["encoding"])
    theory, measured, stack = record["theory"], record["measured"], record.get("stack")
    rows = [("TRF", theory["radius"]), ("ERF", measured["radius"])]
    if stack is not None:
        layers = f"TRF, stack of {record['n_layer']} layers, ρ = {stack['residual']:g}"
        cumulative_mass(
            stack["curve"], ax=ax, theory=True, color=shade, linestyle=":", linewidth=1.2,
            label=layers,
        )  # fmt: skip
        rows.insert(1, ("stack", stack["radius"]))
    cumulative_mass(
        theory["curve"], ax=ax, theory=True, color=shade, eps=eps, label="TRF, one layer"
    )
    band = measured["low"], measured["high"]
    cumulative_mass(
        measured["curve"], ax=ax, band=band, color=shade, eps=eps, label="ERF, measured"
    )
    values = "   ".join(f"{name} " + "/".join(str(r[f"{e:g}"]) for e in eps) for name, r in rows)
    ax.set_title(f"{record['title']}: {record['status']}\n", loc="left", fontweight="bold")
    ax.text(0, 1.035, values, transform=ax.transAxes, fontsize=7.5, in_layout=False)


def perplexity_figure(records: Sequence[Mapping[str, Any]]) -> Figure:
    """Perplexity against length, all encodings, non-overlapping windows.

    The left panel shows perplexity itself, the right one its ratio to the value at the shortest
    length, so that encodings of different quality compare by how they extrapolate. The right axis
    fits the encodings with a bias p(n); the others may leave the frame, and the legend says where
    they end.

    Args:
        records: as `trf figures` writes them: `encoding`, `title`, `status`, `heads` (None where
            there is no p(n)), `train_length` and `perplexity`, rows of `length`, `perplexity`
            and `standard_error` in nats (or None).

    Raises:
        ParameterError: there are no records.
    """
    if not records:
        raise ParameterError("there is nothing to draw: no model was measured")
    with plt.rc_context(STYLE):
        figure, (left, right) = plt.subplots(1, 2, figsize=(9.6, 4.0), layout="constrained")
        framed = [1.0]
        for index, record in enumerate(records):
            rows = record["perplexity"]
            lengths = [row["length"] for row in rows]
            values = np.array([row["perplexity"] for row in rows])
            spread = [(row.get("standard_error") or 0.0) * row["perplexity"] for row in rows]
            ratio = values / values[0]
            label = f"{record['title']}: {record['status']}"
            if record["heads"] is not None:
                framed.extend(ratio)
            else:
                label += f" (×{ratio[-1]:.2g} at {lengths[-1]})"
            common: dict[str, Any] = {
                "color": colour(record["encoding"]),
                "label": label,
                "marker": MARKERS[index % len(MARKERS)],
            }
            perplexity(lengths, values, ax=left, error=spread, **common)
            perplexity(lengths, ratio, ax=right, **common)
        for ax in (left, right):
            ax.axvline(records[0]["train_length"], color="#888888", linewidth=0.9, linestyle=":")
        margin = 0.08 * (max(framed) - min(framed)) + 0.005
        right.set_ylim(min(framed) - margin, max(framed) + margin)
        left.set_yscale("log")
        for format_axis in (left.yaxis.set_major_formatter, left.yaxis.set_minor_formatter):
            format_axis(FuncFormatter(lambda y, _: f"{y:g}"))
        left.set_ylabel("perplexity per byte")
        right.set_ylabel(f"perplexity relative to {records[0]['perplexity'][0]['length']} tokens")
        for ax in (left, right):
            ax.set_xlabel("evaluation length (tokens = bytes)")
        handles, labels = left.get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside right center", fontsize=8)
        figure.suptitle(
            "Non-overlapping evaluation beyond the training length (dotted line)", fontsize=10
        )
    return figure
