"""Windows of a text and their losses, in bounded memory: what the evaluations share."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor
from tqdm.auto import tqdm

from trf import tokenisers
from trf.errors import ParameterError
from trf.nn.decoder import Decoder
from trf.tokenisers import Text, tokenise

_TOKENS_AT_ONCE = 8192  # bounds the memory of a forward pass
_LOGITS_AT_ONCE = 1 << 24  # numbers; bounds that of the logits of a large vocabulary
_OVERHEAD = 2000  # a token costs about as much as attending to so many, for the progress bar


def run_as(
    model: Decoder, window: int | None, blocks: int | None, log_scale: bool
) -> tuple[Decoder, str]:
    """The model run in another way, and that way in words."""
    if window is not None and blocks is not None:
        raise ParameterError("a model runs behind a window or in blocks, not both")
    words = []
    if window is not None:
        model, words = model.with_window(window), [f"window {window}"]
    if blocks is not None:
        model, words = model.with_blocks(blocks), [f"blocks {blocks}"]
    if log_scale:
        model, words = model.with_log_scale(), [*words, "log-n scale"]
    return model, ", ".join(words)


def segments(
    model: Decoder, text: Text, length: int, max_windows: int | None, seed: int
) -> tuple[tokenisers.Tokeniser, Tensor, Tensor, int]:
    """Tokeniser, tokens, where the segments drawn begin, and how many there could be."""
    if max_windows is not None and max_windows < 1:
        raise ParameterError(f"max_windows must be positive or None, got {max_windows}")
    tokeniser = tokenisers.of(model.provenance)
    ids = tokenise(text, length + 1, model.config.vocab_size, tokeniser)
    possible = (len(ids) - 1) // length
    chosen = np.random.default_rng(seed).permutation(possible)[:max_windows]
    starts = torch.from_numpy(np.sort(chosen)) * length  # (S,)
    return tokeniser, torch.from_numpy(ids), starts, possible


@torch.no_grad()
def losses(
    model: Decoder, tokens: Tensor, begins: Tensor, length: int, scored: int, bar: tqdm
) -> Iterator[tuple[Tensor, Tensor]]:
    """Nats and targets of the last `scored` tokens of windows, (B, scored) each, in batches."""
    device = next(model.parameters()).device
    rows = max(1, _LOGITS_AT_ONCE // model.config.vocab_size)
    for chunk in begins.split(max(1, _TOKENS_AT_ONCE // length)):
        windows = torch.stack([tokens[b : b + length + 1] for b in chunk.tolist()])
        targets = windows[:, -scored:]
        hidden = model.forward_embeddings(model.embed(windows[:, :-1].to(device)))
        hidden = hidden[:, -scored:].flatten(0, 1)
        parts = zip(hidden.split(rows), targets.flatten().to(device).split(rows), strict=True)
        nats = [F.cross_entropy(model.logits(h), t, reduction="none") for h, t in parts]
        yield torch.cat(nats).view(targets.shape), targets
        bar.update(cost(length, len(chunk)))


def cost(length: int, windows: int) -> int:
    """Of windows of a length, in units of their own, for the progress bar."""
    return windows * length * (length + _OVERHEAD)


def progress_bar(model: Decoder, total: int, progress: bool) -> tqdm:
    """A bar for `total` units of `cost`."""
    return tqdm(
        total=total,
        desc=f"evaluating {model.config.encoding}",
        bar_format="{l_bar}{bar}| {elapsed}<{remaining}",
        disable=not progress,
    )
