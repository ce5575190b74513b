"""How much a layer's heads add to the stream that passes them: residual share and head weights.

In a pre-norm layer ``x + sum_h W_O^h W_V^h (a_h * norm(x))`` the Jacobian has a part that passes
unmixed, the identity, and one of every head. Their Frobenius norms, over the square root of the
width so that the identity counts 1, are the gains:

    value gain  g = || W_O^h W_V^h diag(gamma) ||_F / (sqrt(C) * sigma),

sigma the standard deviation of the stream's components, which the norm divides by. A head acts
through its weights too: the key of a token changes how much attention it gets. That part is as
large as

    key gain  k = || W_K' q || / sqrt(D) * || W_O (v - mean v) || / (sqrt(C) * sigma),

root mean square over tokens, times the token's attention weight, as the value part is. None of it
is fitted to a gradient: weights, and the size of the stream on a text.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from trf.empirical.measure import check_counts
from trf.empirical.models import frozen, recorded, token_windows
from trf.nn.checkpoint import load
from trf.nn.decoder import Decoder
from trf.tokenisers import Text


@dataclass(frozen=True, eq=False)
class BranchGains:
    """Gains of the heads of L layers, relative to the stream, whose own is 1.

    Attributes:
        value: through the values, g. (L, H)
        key: through the keys, k. (L, H)
        stream: sigma, the standard deviation of the stream's components where it enters. (L,)
    """

    value: np.ndarray
    key: np.ndarray
    stream: np.ndarray

    @property
    def residual(self) -> np.ndarray:
        """The share that passes each layer unmixed, 1 / (1 + sum_h g_h). (L,)"""
        return 1 / (1 + self.value.sum(axis=1))

    def to_dict(self) -> dict[str, Any]:
        """As JSON-able data."""
        names = ("value", "key", "stream", "residual")
        return {name: getattr(self, name).tolist() for name in names}


def branch_gains(
    model: Decoder | str | Path,
    text: Text,
    *,
    length: int = 512,
    n_windows: int = 8,
    seed: int = 0,
) -> BranchGains:
    """The gains of every layer and head of `model` in windows of `text`.

    Args:
        model: a decoder, a checkpoint file, or the name of a shipped one.
        text, length, n_windows, seed: as for `attention_field`.

    Raises:
        TextError, ParameterError: as `attention_field`.
        CheckpointError: `model` is no checkpoint.

    Example:
        >>> from trf.nn import Decoder, DecoderConfig
        >>> model = Decoder(DecoderConfig("alibi", n_layer=1, n_head=2, n_embd=8))
        >>> branch_gains(model, "To be or not to be", length=8, n_windows=2).value.shape
        (1, 2)
    """
    check_counts(length=length, n_windows=n_windows)
    decoder = load(model)
    windows = token_windows(decoder, text, length, n_windows, seed)
    entered: list[tuple[Tensor, Any]] = []

    def keep(_: nn.Module, args: tuple[Any, ...]) -> None:
        entered.append((args[0], args[1]))

    hooks = [block.attention.register_forward_pre_hook(keep) for block in decoder.blocks]  # type: ignore[union-attr]
    try:
        with torch.no_grad(), frozen(decoder), recorded(decoder) as states:
            decoder.forward_embeddings(
                decoder.embed(windows[:, :-1].to(next(decoder.parameters()).device))
            )
            gains = [
                _gains(block, state[0], *into)
                for block, state, into in zip(decoder.blocks, states, entered, strict=True)
            ]
    finally:
        for hook in hooks:
            hook.remove()
    value, key, stream = zip(*gains, strict=True)
    return BranchGains(np.array(value), np.array(key), np.array(stream))


def _gains(
    block: Any, stream: Tensor, normed: Tensor, how: Any
) -> tuple[list[float], list[float], float]:
    """Value gains and key gains of the heads (H), and the size of the stream."""
    attention = block.attention
    H, C = attention.n_head, stream.shape[-1]
    D = C // H
    sigma = stream.float().var(dim=-1, unbiased=False).mean().sqrt().item()
    gamma = block.norm_attention.weight
    _, W_K, W_V = (attention.qkv.weight.view(3, H, D, C) * gamma).unbind(0)  # (H, D, C) each
    W_O = attention.out.weight.view(C, H, D).permute(1, 0, 2)  # (H, C, D)
    scale = math.sqrt(C) * max(sigma, 1e-12)
    value = (W_O @ W_V).flatten(1).norm(dim=1) / scale  # (H,)
    q, _, v = attention.heads(normed, how)  # (B, H, T, D)
    q = q[..., :D]  # without positions that an encoding appends
    turned = (q @ W_K[None]).square().sum(-1).mean((0, 2)).sqrt() / math.sqrt(D)  # (H,)
    moved = (v - v.mean(dim=2, keepdim=True)) @ W_O.mT[None]  # (B, H, T, C)
    key = turned * moved.square().sum(-1).mean((0, 2)).sqrt() / scale
    return value.tolist(), key.tolist(), sigma
