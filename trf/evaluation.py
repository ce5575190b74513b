"""Perplexity against length, on windows that don't overlap: does a model hold past training?

For each length N the text is cut into windows of N tokens. A window starts without any context,
and its N targets are the tokens that follow its N inputs. Longer windows have fewer such cold
starts, so part of a gain with length is the *early token curse* and no merit of the encoding
(Press, Smith, Lewis, arXiv 2108.12409, appendix B).
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tqdm.auto import tqdm

from trf.corpora import Text, tokenise
from trf.errors import ParameterError
from trf.nn.checkpoint import load
from trf.nn.decoder import Decoder

_TOKENS_AT_ONCE = 8192  # bounds the memory of a forward pass
_OVERHEAD = 2000  # a token costs about as much as attending to so many, for the progress bar


@dataclass(frozen=True)
class LengthPerplexity:
    """How well a model predicts at one length.

    Attributes:
        length: tokens a window, N.
        nats_per_token: mean cross-entropy.
        standard_error: of `nats_per_token`, from the spread over segments; None for one segment.
        perplexity: exp(nats_per_token), per token.
        bits_per_byte: the same per byte of text, in bits; for a model of bytes, nats / ln 2.
        n_tokens, n_windows: scored.
    """

    length: int
    nats_per_token: float
    standard_error: float | None
    perplexity: float
    bits_per_byte: float
    n_tokens: int
    n_windows: int


@dataclass(frozen=True)
class Perplexity:
    """Perplexity against length of one model on one text.

    Attributes:
        encoding, train_length: of the model.
        rows: one `LengthPerplexity` a length, ascending; `result[512]` picks one.
        segment_length: tokens of a segment: the longest length.
        n_segments: segments scored, of how many were possible (`n_segments_possible`).
        seed: that chose them.
        provenance: of the checkpoint.
    """

    encoding: str
    train_length: int
    rows: tuple[LengthPerplexity, ...]
    segment_length: int
    n_segments: int
    n_segments_possible: int
    seed: int
    provenance: dict[str, Any]

    def __getitem__(self, length: int) -> LengthPerplexity:
        for row in self.rows:
            if row.length == length:
                return row
        raise KeyError(f"no length {length}; measured: {[row.length for row in self.rows]}")

    def to_dict(self) -> dict[str, Any]:
        """As JSON-able data."""
        return dataclasses.asdict(self)

    def __str__(self) -> str:
        rows = (f"{r.length:8d}  {r.perplexity:10.4g}  {r.bits_per_byte:7.3f}" for r in self.rows)
        head = f"{self.encoding}, trained at {self.train_length}\n  length  perplexity  bits/byte"
        return "\n".join([head, *rows])


def perplexity(
    model: Decoder | str | Path,
    text: Text,
    lengths: Sequence[int] = (512, 1024, 2048, 4096, 9216),
    *,
    max_windows: int | None = 8,
    seed: int = 0,
    progress: bool = True,
) -> Perplexity:
    """Perplexity of `model` on `text` at each length, on windows that don't overlap.

    What is scored: the text is cut into segments as long as the longest length, and `max_windows`
    of them are drawn at random. Each length N cuts every segment into floor(segment / N) windows,
    from its start. So all lengths score the same tokens where N divides the longest length; where
    it doesn't, the last segment mod N tokens of each segment are left out at that N.

    Args:
        model: a decoder, a checkpoint file, or the name of a shipped one.
        text: str, bytes, or token ids.
        lengths: tokens a window, any order; past the training length too.
        max_windows: segments at most; None for the whole text.
        seed: of the draw.
        progress: show a progress bar.

    Returns:
        A `Perplexity`, with rows by ascending length. Memory stays bounded at any length: no
        N x N matrix is built.

    Raises:
        TextError: the text is empty, or shorter than the longest length + 1 tokens.
        CheckpointError: `model` is no checkpoint.
        ParameterError: a length or `max_windows` is not a positive integer.

    Example:
        >>> from trf.nn import Decoder, DecoderConfig
        >>> model = Decoder(DecoderConfig("alibi", n_layer=1, n_head=1, n_embd=8))
        >>> result = perplexity(model, "abcd" * 20, lengths=[8, 32], progress=False)
        >>> result[8].n_tokens, result[32].n_tokens
        (64, 64)
    """
    ordered = sorted(set(lengths))
    if not ordered or any(not isinstance(n, int) or n < 1 for n in ordered):
        raise ParameterError(f"lengths must be positive integers, got {list(lengths)}")
    if max_windows is not None and max_windows < 1:
        raise ParameterError(f"max_windows must be positive or None, got {max_windows}")
    decoder = load(model)
    longest = ordered[-1]
    tokens = torch.from_numpy(tokenise(text, longest + 1, decoder.config.vocab_size))
    possible = (len(tokens) - 1) // longest
    chosen = np.random.default_rng(seed).permutation(possible)[:max_windows]
    starts = torch.from_numpy(np.sort(chosen)) * longest  # (S,)
    cost = [longest // n * n * (n + _OVERHEAD) for n in ordered]
    rows = []
    with tqdm(
        total=sum(cost) * len(starts),
        desc=f"perplexity {decoder.config.encoding}",
        bar_format="{l_bar}{bar}| {elapsed}<{remaining}",
        disable=not progress,
    ) as bar:
        for length in ordered:
            bar.set_postfix(length=length)
            rows.append(_score(decoder, tokens, starts, longest, length, bar))
    return Perplexity(
        encoding=decoder.config.encoding,
        train_length=decoder.config.train_length,
        rows=tuple(rows),
        segment_length=longest,
        n_segments=len(starts),
        n_segments_possible=possible,
        seed=seed,
        provenance=decoder.provenance,
    )


@torch.no_grad()
def _score(
    model: Decoder, tokens: torch.Tensor, starts: torch.Tensor, segment: int, length: int, bar: tqdm
) -> LengthPerplexity:
    """One length on all segments."""
    device = next(model.parameters()).device
    per_segment = segment // length
    offsets = torch.arange(per_segment) * length
    begins = (starts[:, None] + offsets).flatten()  # (S * per_segment,)
    means = []
    for chunk in begins.split(max(1, _TOKENS_AT_ONCE // length)):
        windows = torch.stack([tokens[b : b + length + 1] for b in chunk.tolist()]).to(device)
        losses = model.losses(windows[:, :-1], windows[:, 1:])  # (B, N)
        means.append(losses.double().mean(dim=1).cpu())
        bar.update(len(chunk) * length * (length + _OVERHEAD))
    by_segment = torch.cat(means).view(len(starts), per_segment).mean(dim=1)
    nats = by_segment.mean().item()
    spread = by_segment.std().item() / math.sqrt(len(starts)) if len(starts) > 1 else None
    return LengthPerplexity(
        length=length,
        nats_per_token=nats,
        standard_error=spread,
        perplexity=math.exp(min(nats, 700.0)),
        bits_per_byte=nats / math.log(2),
        n_tokens=len(begins) * length,
        n_windows=len(begins),
    )
