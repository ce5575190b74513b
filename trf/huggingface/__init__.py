"""Hugging Face models: which position encoding they use, and how to measure their fields.

`encoding_from_config` and `encoding_from_model` say what the theory makes of each layer and head;
`load` wraps a causal language model so that `trf.empirical_receptive_field` can measure it.
Needs `pip install trf[hf]` to load one; reading a config needs nothing.
"""

from __future__ import annotations

from trf.huggingface.encoding import (
    LayerEncoding,
    ModelEncoding,
    encoding_from_config,
    encoding_from_model,
)
from trf.huggingface.model import HuggingFaceModel, load

__all__ = [
    "HuggingFaceModel",
    "LayerEncoding",
    "ModelEncoding",
    "encoding_from_config",
    "encoding_from_model",
    "load",
]
