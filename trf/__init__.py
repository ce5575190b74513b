"""Theoretical and empirical receptive fields of transformer position encodings.

``trf.converges("-log(1+r2*n)")`` decides whether a bias extrapolates;
``trf.theoretical_receptive_field("-m*n", eps=0.01, m="1/16")`` says how far it sees;
``trf.empirical_receptive_field(model, text)`` measures how far a trained model sees.

Names are loaded when first used: importing the package loads neither sympy, torch nor matplotlib.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_MODULES = {"encodings": "trf.encodings", "errors": "trf.errors", "plot": "trf.plotting"}
_NAMES = {
    "Bias": "trf.expression",
    "as_bias": "trf.expression",
    "Encoding": "trf.encodings",
    "Status": "trf.series.verdict",
    "Verdict": "trf.series.verdict",
    "converges": "trf.series.convergence",
    "ReceptiveField": "trf.theory",
    "theoretical_receptive_field": "trf.theory",
    "AttentionField": "trf.empirical",
    "EmpiricalReceptiveField": "trf.empirical",
    "attention_field": "trf.empirical",
    "empirical_receptive_field": "trf.empirical",
    "predicted_receptive_field": "trf.empirical",
    "encoding_from_config": "trf.huggingface",
    "encoding_from_model": "trf.huggingface",
    "fit_field": "trf.fit",
    "closed_form": "trf.series.closed_form",
    "design": "trf.theory",
    "growth_law": "trf.theory",
    "leakage": "trf.theory",
    "slopes_for_radii": "trf.theory",
    "perplexity": "trf.evaluation",
    "loss_by_position": "trf.evaluation",
    "train": "trf.training",
    "load": "trf.nn",
    "TRFError": "trf.errors",
    "ExpressionError": "trf.errors",
}

__all__ = [
    "AttentionField",
    "Bias",
    "EmpiricalReceptiveField",
    "Encoding",
    "ExpressionError",
    "ReceptiveField",
    "Status",
    "TRFError",
    "Verdict",
    "__version__",
    "as_bias",
    "attention_field",
    "closed_form",
    "converges",
    "design",
    "empirical_receptive_field",
    "encoding_from_config",
    "encoding_from_model",
    "encodings",
    "errors",
    "fit_field",
    "growth_law",
    "leakage",
    "load",
    "loss_by_position",
    "perplexity",
    "plot",
    "predicted_receptive_field",
    "slopes_for_radii",
    "theoretical_receptive_field",
    "train",
]

if TYPE_CHECKING:
    from trf import encodings, errors
    from trf import plotting as plot
    from trf.empirical import (
        AttentionField,
        EmpiricalReceptiveField,
        attention_field,
        empirical_receptive_field,
        predicted_receptive_field,
    )
    from trf.encodings import Encoding
    from trf.errors import ExpressionError, TRFError
    from trf.evaluation import loss_by_position, perplexity
    from trf.expression import Bias, as_bias
    from trf.fit import fit_field
    from trf.huggingface import encoding_from_config, encoding_from_model
    from trf.nn import load
    from trf.series.closed_form import closed_form
    from trf.series.convergence import converges
    from trf.series.verdict import Status, Verdict
    from trf.theory import (
        ReceptiveField,
        design,
        growth_law,
        leakage,
        slopes_for_radii,
        theoretical_receptive_field,
    )
    from trf.training import train


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        value: Any = importlib.import_module(_MODULES[name])
    elif name in _NAMES:
        value = getattr(importlib.import_module(_NAMES[name]), name)
    else:
        raise AttributeError(f"module 'trf' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
