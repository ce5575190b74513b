"""Plots of results, public as `trf.plot`. Theory is dashed, measurement solid.

Functions of one axes (``ax=None`` takes the current one) return it; the ``*_figure`` functions
arrange several. They take plain results (dataclasses, or the records that `trf figures` and
`trf study` write), never models. One colour stands for an encoding throughout.
"""

# First, for it names the extra where matplotlib is missing.
from trf.plotting.axes import COLOURS, STYLE, colour, cumulative_mass, perplexity, plt, save

# isort: split
from trf.plotting.agreement import agreement_figure
from trf.plotting.extrapolation import extrapolation_figure
from trf.plotting.fields import fields_figure
from trf.plotting.leakage import leakage_figure
from trf.plotting.learned import learned_figure
from trf.plotting.masks import masks_figure
from trf.plotting.records import overlay_figure, perplexity_figure
from trf.plotting.training import training_figure

__all__ = [
    "COLOURS", "STYLE", "agreement_figure", "colour", "cumulative_mass", "extrapolation_figure",
    "fields_figure", "leakage_figure", "learned_figure", "masks_figure", "overlay_figure",
    "perplexity", "perplexity_figure", "plt", "save", "training_figure",
]  # fmt: skip
