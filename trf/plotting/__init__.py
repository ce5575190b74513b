"""Plots of results, public as `trf.plot`. Theory is dashed, measurement solid.

Functions of one axes (``ax=None`` takes the current one) return it; the ``*_figure`` functions
arrange several. They take plain results (dataclasses, or the records and cells that `trf figures`
and `trf grid` write), never models. One colour stands for an encoding throughout.
"""

from trf.plotting.axes import COLOURS, STYLE, colour, cumulative_mass, perplexity, plt, save
from trf.plotting.records import overlay_figure, perplexity_figure

__all__ = [
    "COLOURS", "STYLE", "colour", "cumulative_mass", "overlay_figure", "perplexity",
    "perplexity_figure", "plt", "save",
]  # fmt: skip
