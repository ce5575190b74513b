"""Theoretical receptive fields: one head, many heads, several layers, finite lengths.

The definitions (mass, radius, leakage) are those of Qin, Zhong, Deng, *Exploring Transformer
Extrapolation* (arXiv 2307.10156); see `theoretical_receptive_field`.
"""

from trf.theory.design import Design, design, slopes_for_radii
from trf.theory.field import ReceptiveField
from trf.theory.growth import GrowthLaw, growth_law
from trf.theory.leakage import Leakage, leakage
from trf.theory.paths import kernel_paths, path_curve, spread_weights
from trf.theory.radius import theoretical_receptive_field
from trf.theory.stack import head_curves, mass_curve, stack_curve

__all__ = [
    "Design",
    "GrowthLaw",
    "Leakage",
    "ReceptiveField",
    "design",
    "growth_law",
    "head_curves",
    "kernel_paths",
    "leakage",
    "mass_curve",
    "path_curve",
    "slopes_for_radii",
    "spread_weights",
    "stack_curve",
    "theoretical_receptive_field",
]
