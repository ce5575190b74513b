"""The shipped decoder, its attention paths and its checkpoints. Needs `pip install trf[nn]`."""

from __future__ import annotations

from trf.errors import missing_extra

try:
    import safetensors as _safetensors  # noqa: F401
    import torch as _torch  # noqa: F401
except ImportError as error:
    raise missing_extra(error.name or "torch", "nn") from error

from trf.nn.attention import Positions, attention
from trf.nn.bias import AdditiveBias
from trf.nn.checkpoint import load, read_header, save, zoo_names
from trf.nn.decoder import Decoder, DecoderConfig
from trf.nn.windows import Blocks, Window

__all__ = [
    "AdditiveBias",
    "Blocks",
    "Decoder",
    "DecoderConfig",
    "Positions",
    "Window",
    "attention",
    "load",
    "read_header",
    "save",
    "zoo_names",
]
