"""Plots on one axes: a curve of cumulative mass, perplexity against length.

Every function draws on one axes (``ax=None`` takes the current one) and returns it. One colour
stands for an encoding throughout.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from trf.errors import ParameterError, missing_extra
from trf.files import write

try:
    import matplotlib.pyplot as plt
    from matplotlib.ticker import FuncFormatter, NullLocator
except ImportError as error:
    raise missing_extra("matplotlib", "plot") from error

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's palette and darker companions: distinct for colour-blind readers.
COLOURS = {
    "alibi": "#0072B2",
    "kerple-log": "#D55E00",
    "kerple-power": "#E69F00",
    "type1": "#009E73",
    "type2": "#CC79A7",
    "inverse-n": "#7F3C8D",
    "inverse-n-log-n": "#A5A519",
    "sandwich": "#56B4E9",
    "none": "#555555",
    "sinusoidal": "#000000",
    "rope": "#8C564B",
    "t5": "#B2182B",
    "xpos": "#35978F",
}
_SPARE = ("#1B7837", "#762A83", "#2166AC", "#4D4D4D", "#BF812D", "#C51B7D", "#01665E")
MARKERS = "osD^vPX*<>hp"

STYLE: dict[Any, Any] = {
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e6e6e6",
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "figure.dpi": 120,
    "savefig.dpi": 200,
    "pdf.fonttype": 42,
}


def colour(encoding: str) -> str:
    """The colour of an encoding: fixed for those of the catalogue, stable for any other name."""
    if encoding in COLOURS:
        return COLOURS[encoding]
    return _SPARE[sum(encoding.encode()) % len(_SPARE)]


def cumulative_mass(
    curve: Sequence[float] | np.ndarray | Any,
    *,
    ax: Axes | None = None,
    theory: bool = False,
    band: tuple[Any, Any] | None = None,
    eps: float | Sequence[float] = (),
    color: str | None = None,
    label: str | None = None,
    **line: Any,
) -> Axes:
    """Cumulative mass against the number of newest tokens, on a logarithmic axis.

    Args:
        curve: the share of the mass in the j newest tokens, j = 1..N; or a result that has it
            as `.curve`, such as an `EmpiricalReceptiveField`.
        ax: where to draw; the current axes if None.
        theory: dashed if True (a TRF), solid otherwise (an ERF).
        band: lower and upper curve, drawn as a shade.
        eps: mark the radius at each: the least j with a share above 1 - eps.
        color, label, **line: as in `matplotlib.axes.Axes.plot`.

    Returns:
        The axes.

    Raises:
        ParameterError: if the curve is empty or not one-dimensional.
    """
    values = np.asarray(getattr(curve, "curve", curve), dtype=float)
    if values.ndim != 1 or values.size == 0:
        raise ParameterError(f"a curve is a list of shares, got shape {values.shape}")
    ax = plt.gca() if ax is None else ax
    tokens = np.arange(1, values.size + 1)
    style = {"linestyle": "--" if theory else "-", "linewidth": 1.6, **line}
    (drawn,) = ax.plot(tokens, values, color=color, label=label, **style)
    if band is not None:
        low, high = (np.asarray(edge, dtype=float) for edge in band)
        ax.fill_between(tokens, low, high, color=drawn.get_color(), alpha=0.18, linewidth=0)
    marked = [np.flatnonzero(values > 1 - e)[:1] for e in np.atleast_1d(np.asarray(eps))]
    at = np.concatenate([*marked, np.array([], dtype=int)]).astype(int)
    if at.size:
        ax.plot(
            tokens[at], values[at], marker="o", markersize=5, linestyle="none",
            markerfacecolor="white" if theory else drawn.get_color(),
            markeredgecolor=drawn.get_color(), zorder=5, clip_on=False,
        )  # fmt: skip
    ax.set_xscale("log")
    ax.set_xlim(1, values.size)
    ax.set_ylim(0, 1.02)
    ax.xaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
    return ax


def perplexity(
    lengths: Sequence[int],
    values: Sequence[float] | np.ndarray,
    *,
    ax: Axes | None = None,
    error: Sequence[float] | None = None,
    train_length: int | None = None,
    color: str | None = None,
    label: str | None = None,
    **line: Any,
) -> Axes:
    """Perplexity against evaluation length, on a base-2 logarithmic length axis.

    Args:
        lengths: evaluation lengths in tokens.
        values: perplexity per token at each.
        error: standard errors, drawn as bars.
        train_length: drawn as a dotted vertical line.
        ax, color, label, **line: as in `cumulative_mass`.

    Raises:
        ParameterError: if lengths and values differ in number.
    """
    if len(lengths) != len(values):
        raise ParameterError(f"{len(lengths)} lengths for {len(values)} values")
    ax = plt.gca() if ax is None else ax
    style = {"linewidth": 1.5, "markersize": 4.5, "marker": "o", "capsize": 2, **line}
    ax.errorbar(lengths, values, yerr=error, color=color, label=label, **style)
    ax.set_xscale("log", base=2)
    ax.set_xticks(list(lengths), [str(length) for length in lengths])
    ax.xaxis.set_minor_locator(NullLocator())
    if train_length is not None:
        ax.axvline(train_length, color="#888888", linewidth=0.9, linestyle=":")
    return ax


def save(figure: Figure, stem: Path) -> list[Path]:
    """Write a figure as ``stem.pdf`` and ``stem.png``, the same bytes for the same figure."""
    kinds: tuple[tuple[str, dict[str, Any]], ...] = (
        ("pdf", {"CreationDate": None}),
        ("png", {}),
    )
    paths = []
    for kind, metadata in kinds:
        path = stem.with_name(f"{stem.name}.{kind}")
        paths.append(
            write(path, lambda to, k=kind, m=metadata: figure.savefig(to, format=k, metadata=m))
        )
    return paths
