"""Attention weights a few queries at a time: H x N x N is never held."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from trf.empirical.models import Rows, Watch
from trf.nn.attention import Positions
from trf.nn.decoder import Decoder


def weight_rows(q: Tensor, k: Tensor, how: Positions, scale: float) -> Rows:
    """The weights that `trf.nn.attention.attention` gives `q` and `k`, by rows of queries.

    Args:
        q, k: (B, H, N, D), turned if the encoding turns them.
        how: bias, window, rate and correction, as attention takes them.
        scale: of the scalar product.

    Returns:
        `rows(a, b)`: the weights of queries a ... b-1 to keys 0 ... b-1, (B, H, b-a, b), and their
        logits without the bias p(n): the scaled product, its rate and correction included.
    """
    N = q.shape[2]
    bias = q.new_zeros(1, N) if how.bias is None else how.bias.to(q)

    def rows(a: int, b: int) -> tuple[Tensor, Tensor]:
        i, j = torch.arange(a, b, device=q.device), torch.arange(b, device=q.device)
        queries, keys = q[:, :, a:b], k[:, :, :b]
        if how.rate is not None:
            rate = how.rate.to(q)
            queries = queries * torch.exp(-rate * (i - a)[:, None])
            keys = keys * torch.exp(rate * (j - a)[:, None])
        content = queries @ keys.mT * scale  # (B, H, b-a, b)
        if how.correction is not None:
            content = content + how.correction(i, j, queries, keys)
        n = i[:, None] - j
        hidden = n < 0
        if how.span is not None:
            hidden = hidden | (j < how.span.first(i)[:, None])
        logits = content + bias[:, n.clamp(min=0)]
        return logits.masked_fill_(hidden, -math.inf).softmax(-1), content.masked_fill_(hidden, 0)

    return rows


@contextmanager
def watched_decoder(model: Decoder, watch: Watch) -> Iterator[None]:
    """Call `watch(layer, N, rows)` with every layer's attention while `model` runs."""

    def hook_for(layer: int) -> Any:
        def before(attention: nn.Module, args: tuple[Any, ...]) -> None:
            x, how = args
            q, k, v = attention.heads(x, how)  # type: ignore[operator]
            rows = weight_rows(q, k, how.positions, v.shape[-1] ** -0.5)
            watch(layer, x.shape[1], rows)

        return before

    hooks = [
        block.attention.register_forward_pre_hook(hook_for(layer))  # type: ignore[union-attr]
        for layer, block in enumerate(model.blocks)
    ]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()
