"""Attention by FlexAttention: on CUDA the bias and the window are compiled into the kernel.

Its backward pass exists on CUDA only. On a CPU the forward pass runs, uncompiled, which is how the
formulas here are tested where there is no CUDA device.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import torch
from torch import Tensor
from torch.nn.attention.flex_attention import BlockMask, create_block_mask, flex_attention

from trf.errors import ParameterError
from trf.nn.attention import Positions
from trf.nn.windows import Span


def flex(q: Tensor, k: Tensor, v: Tensor, how: Positions, scale: float) -> Tensor:
    """`trf.nn.attention.attention` by FlexAttention; see there.

    Raises:
        ParameterError: a rate or a correction, which only the other paths take, or gradients
            away from CUDA.
    """
    if how.rate is not None or how.correction is not None:
        raise ParameterError(
            'path "flex" takes biases of the distance and windows; for this encoding use "lean"'
        )
    learning = torch.is_grad_enabled() and any(
        x is not None and x.requires_grad for x in (q, k, v, how.bias)
    )
    if learning and not q.is_cuda:
        raise ParameterError(
            f'path "flex" has gradients on CUDA only, got {q.device.type}; use path "lean"'
        )
    if not q.is_cuda:  # there it refuses tensors that could have a gradient, wanted or not
        q, k, v = q.detach(), k.detach(), v.detach()
    bias = None if how.bias is None else how.bias.to(q)

    def add_bias(score: Tensor, _batch: Tensor, head: Tensor, i: Tensor, j: Tensor) -> Tensor:
        assert bias is not None
        return score + bias[head, (i - j).abs()]

    kernel: Any = _compiled() if q.is_cuda else flex_attention
    return kernel(
        q, k, v,
        score_mod=None if bias is None else add_bias,
        block_mask=_block_mask(how.span, q.shape[2], str(q.device)),
        scale=scale,
    )  # fmt: skip


@lru_cache(maxsize=1)
def _compiled() -> Any:
    return torch.compile(flex_attention)


@lru_cache(maxsize=16)
def _block_mask(span: Span | None, length: int, device: str) -> BlockMask:
    """Which blocks of keys a block of queries needs: causal, within the span."""

    def visible(_batch: Tensor, _head: Tensor, i: Tensor, j: Tensor) -> Tensor:
        return (j <= i) if span is None else (j <= i) & (j >= span.first(i))

    return create_block_mask(visible, None, None, length, length, device=device)
