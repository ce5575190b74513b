"""Seeing the attention weights of a Hugging Face model while it runs.

Models that take their attention from `transformers.AttentionInterface` are given one that makes
the weights for a block of queries at a time. The others (BLOOM, MPT, Falcon) compute H x N x N by
themselves; one layer's is seen, summed up and dropped before the next.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from trf.errors import CheckpointError
from trf.huggingface.model import HuggingFaceModel, attention_modules

_NAME = "trf_watched"
_CELLS = 1 << 22  # weights made at once
_watch: list[Callable[..., None]] = []  # the innermost running watch is the last


@contextmanager
def watched(model: HuggingFaceModel, watch: Callable[..., None]) -> Iterator[None]:
    """Call `watch(layer, N, rows)` with every layer's attention while `model` runs."""
    source = sys.modules[type(model.model).__module__]
    way = _interface if hasattr(source, "ALL_ATTENTION_FUNCTIONS") else _hooks
    with way(model, watch):
        yield


@contextmanager
def _interface(model: HuggingFaceModel, watch: Callable[..., None]) -> Iterator[None]:
    from transformers import AttentionInterface, AttentionMaskInterface
    from transformers.masking_utils import sdpa_mask

    AttentionInterface.register(_NAME, _attention)
    AttentionMaskInterface.register(_NAME, sdpa_mask)
    config = model.base.config
    before = config._attn_implementation
    config._attn_implementation = _NAME
    _watch.append(watch)
    try:
        yield
    finally:
        _watch.pop()
        config._attn_implementation = before


def _attention(
    module: Any,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    softcap: float | None = None,
    **others: Any,
) -> tuple[Tensor, None]:
    """What `transformers` calls for one layer: q (B, H, N, D), k and v (B, H or fewer, N, D)."""
    if others.get("s_aux") is not None:
        raise CheckpointError("attention with learned sinks is not measured by head")
    H, N = query.shape[1:3]
    key, value = (x.repeat_interleave(H // x.shape[1], dim=1) for x in (key, value))
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling

    def rows(a: int, b: int) -> tuple[Tensor, Tensor]:
        content = query[:, :, a:b] @ key[:, :, :b].mT * scale  # (B, H, b-a, b)
        if softcap is not None:
            content = (content / softcap).tanh() * softcap
        i, j = torch.arange(a, b, device=query.device), torch.arange(b, device=query.device)
        hidden = j > i[:, None]
        logits = content
        if attention_mask is not None:
            part = attention_mask[..., a:b, :b]
            if part.dtype == torch.bool:
                hidden = hidden | ~part
            else:
                logits = content + part
        weights = logits.masked_fill(hidden, -math.inf).float().softmax(-1)
        return weights.to(query.dtype), content.masked_fill(hidden, 0)

    _watch[-1](module.layer_idx, N, rows)
    step = max(1, _CELLS // (N * H * len(query)))
    parts = [
        rows(a, min(a + step, N))[0] @ value[:, :, : min(a + step, N)] for a in range(0, N, step)
    ]
    return torch.cat(parts, dim=2).transpose(1, 2), None


@contextmanager
def _hooks(model: HuggingFaceModel, watch: Callable[..., None]) -> Iterator[None]:
    modules = list(attention_modules(model))
    seen = set()

    def ask(_: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        asked = {**kwargs, "output_attentions": True}
        if model.provenance["model_type"] == "falcon" and isinstance(kwargs.get("alibi"), Tensor):
            # Its mask holds the bias already; with output_attentions it would be added twice.
            asked["alibi"] = torch.zeros_like(kwargs["alibi"])
        return args, asked

    def hook_for(layer: int) -> Any:
        def after(_: nn.Module, __: tuple[Any, ...], output: Any) -> None:
            found = [x for x in output[1:] if isinstance(x, Tensor) and x.dim() == 4]
            if not found:
                raise CheckpointError(
                    f"layer {layer} of {model.source} does not show its attention weights; its "
                    "heads can't be measured"
                )
            weights = found[0]  # (B, H, N, N)
            seen.add(layer)
            watch(layer, weights.shape[2], lambda a, b: (weights[:, :, a:b, :b], None))

        return after

    hooks = [module.register_forward_pre_hook(ask, with_kwargs=True) for module in modules]
    hooks += [module.register_forward_hook(hook_for(i)) for i, module in enumerate(modules)]
    try:
        yield
        if len(seen) != model.config.n_layer:
            raise CheckpointError(
                f"the attention of {len(seen)} of {model.config.n_layer} layers of {model.source} "
                "was seen; its heads can't be measured"
            )
    finally:
        for hook in hooks:
            hook.remove()
