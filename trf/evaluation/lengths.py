"""Perplexity against length, on windows that don't overlap or that slide."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from tqdm.auto import tqdm

from trf import tokenisers
from trf.errors import ParameterError
from trf.evaluation.windows import cost, losses, progress_bar, run_as, segments
from trf.nn.checkpoint import load
from trf.nn.decoder import Decoder
from trf.tokenisers import Text


@dataclass(frozen=True)
class LengthPerplexity:
    """How well a model predicts at one length.

    Attributes:
        length: tokens a window, N.
        nats_per_token: mean cross-entropy.
        standard_error: of `nats_per_token`, from the spread over segments; None for one segment.
        perplexity: exp(nats_per_token), per token.
        bits_per_byte: the same nats per byte of text, in bits, so that tokenisers compare; None
            for a model whose tokeniser is not known.
        n_tokens, n_windows: scored.
        seconds: it took.
    """

    length: int
    nats_per_token: float
    standard_error: float | None
    perplexity: float
    bits_per_byte: float | None
    n_tokens: int
    n_windows: int
    seconds: float = field(compare=False)


@dataclass(frozen=True)
class Perplexity:
    """Perplexity against length of one model on one text.

    Attributes:
        encoding, train_length: of the model.
        mode: how it was evaluated, in words.
        rows: one `LengthPerplexity` a length, ascending; `result[512]` picks one.
        segment_length: tokens of a segment.
        n_segments: segments scored, of `n_segments_possible` in the text.
        seed: of the segments drawn.
        tokeniser: its name.
        provenance: of the checkpoint.
    """

    encoding: str
    train_length: int
    mode: str
    rows: tuple[LengthPerplexity, ...]
    segment_length: int
    n_segments: int
    n_segments_possible: int
    seed: int
    tokeniser: str
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
        rows = (
            f"{r.length:8d}  {r.perplexity:10.4g}  "
            + ("      -" if r.bits_per_byte is None else f"{r.bits_per_byte:7.3f}")
            for r in self.rows
        )
        head = f"{self.encoding}, trained at {self.train_length}, {self.mode}"
        return "\n".join([head, "  length  perplexity  bits/byte", *rows])


def perplexity(
    model: Decoder | str | Path,
    text: Text,
    lengths: Sequence[int] = (512, 1024, 2048, 4096, 9216),
    *,
    stride: int | None = None,
    window: int | None = None,
    blocks: int | None = None,
    log_scale: bool = False,
    max_windows: int | None = 8,
    segment_length: int | None = None,
    seed: int = 0,
    progress: bool = True,
) -> Perplexity:
    """Perplexity of `model` on `text` at each length.

    What is scored: the text is cut into segments, as long as the longest length unless told
    otherwise, and `max_windows` of them are drawn at random. Each length N cuts every segment into
    windows of N tokens.

    - Without overlap (the default) there are floor(segment / N), from the segment's start. So all
      lengths score the same tokens where N divides the longest length; where it doesn't, the last
      segment mod N tokens of each segment are left out at that N.
    - With a stride s, windows begin at 0, s, 2s, ...; the first is scored whole, the others in
      their last s tokens, so that every token of the segment is scored once, at every N. The cost
      a token grows as N / s. With N the whole segment there is one window, whatever the stride.

    Args:
        model: a decoder, a checkpoint file, or the name of a shipped one.
        text: str, bytes, or token ids; the checkpoint's own tokeniser reads the first two.
        lengths: tokens a window, any order; past the training length too.
        stride: tokens between windows; None for windows that don't overlap. A length that is
            shorter than the stride is evaluated without overlap.
        window: run the model behind the window mask of this width.
        blocks: run it with blockwise causal attention of this width.
        log_scale: multiply q by max(1, log_M(i)), M the training length.
        max_windows: segments at most; None for the whole text.
        segment_length: tokens a segment, at least the longest length; two calls with the same
            one score the same text.
        seed: of the draw.
        progress: show a progress bar.

    Returns:
        A `Perplexity`, with rows by ascending length. Memory stays bounded at any length: no
        N x N matrix is built.

    Raises:
        TextError: the text is empty, or shorter than the longest length + 1 tokens.
        CheckpointError: `model` is no checkpoint.
        ParameterError: a number is not a positive integer, or the encoding takes no window.

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
    if stride is not None and (not isinstance(stride, int) or stride < 1):
        raise ParameterError(f"stride must be a positive integer or None, got {stride!r}")
    decoder, mode = run_as(load(model), window, blocks, log_scale)
    if stride is not None:
        mode = ", ".join([f"sliding by {stride}", *([mode] if mode else [])])
    longest = ordered[-1] if segment_length is None else segment_length
    if not isinstance(longest, int) or longest < ordered[-1]:
        raise ParameterError(
            f"segment_length must be an integer of at least the longest length, {ordered[-1]}, "
            f"got {segment_length!r}"
        )
    tokeniser, tokens, starts, possible = segments(decoder, text, longest, max_windows, seed)
    plans = {n: list(_windows(longest, n, min(stride or n, n), stride is None)) for n in ordered}
    rows = []
    with progress_bar(
        decoder, sum(cost(n, len(plans[n])) for n in ordered) * len(starts), progress
    ) as bar:
        for length in ordered:
            bar.set_postfix(length=length)
            rows.append(_score(decoder, tokeniser, tokens, starts, length, plans[length], bar))
    return Perplexity(
        encoding=decoder.config.encoding,
        train_length=decoder.config.train_length,
        mode=mode or "non-overlapping",
        rows=tuple(rows),
        segment_length=longest,
        n_segments=len(starts),
        n_segments_possible=possible,
        seed=seed,
        tokeniser=tokeniser.name,
        provenance={key: v for key, v in decoder.provenance.items() if key != "tokeniser"},
    )


def _windows(segment: int, length: int, stride: int, whole: bool) -> Iterator[tuple[int, int]]:
    """Where each window of a segment begins and how many of its last targets are scored.

    With `whole`, windows that would overlap to reach the segment's end are left out.
    """
    yield 0, length
    begin = 0
    while begin + stride + length <= segment:
        begin += stride
        yield begin, stride
    rest = segment - length - begin
    if rest and not whole:
        yield begin + rest, rest


def _score(
    model: Decoder,
    tokeniser: tokenisers.Tokeniser,
    tokens: Tensor,
    starts: Tensor,
    length: int,
    windows: Sequence[tuple[int, int]],
    bar: tqdm,
) -> LengthPerplexity:
    """One length on all segments."""
    began = time.perf_counter()
    known = tokeniser.vocab_size == model.config.vocab_size
    bytes_of = torch.from_numpy(tokeniser.byte_counts) if known else None
    by_segment = torch.zeros(len(starts), dtype=torch.float64)
    n_bytes = 0
    for scored in dict.fromkeys(scored for _, scored in windows):
        offsets = torch.tensor([begin for begin, count in windows if count == scored])
        begins = (starts[:, None] + offsets).flatten()  # (S * windows a segment,)
        sums = []
        for nats, targets in losses(model, tokens, begins, length, scored, bar):
            sums.append(nats.double().sum(dim=1).cpu())
            n_bytes += 0 if bytes_of is None else int(bytes_of[targets].sum())
        by_segment += torch.cat(sums).view(len(starts), -1).sum(dim=1)
    per_segment = sum(scored for _, scored in windows)
    means = by_segment / per_segment
    nats_per_token = means.mean().item()
    spread = means.std().item() / math.sqrt(len(starts)) if len(starts) > 1 else None
    return LengthPerplexity(
        length=length,
        nats_per_token=nats_per_token,
        standard_error=spread,
        perplexity=math.exp(min(nats_per_token, 700.0)),
        bits_per_byte=by_segment.sum().item() / n_bytes / math.log(2) if n_bytes else None,
        n_tokens=per_segment * len(starts),
        n_windows=len(windows) * len(starts),
        seconds=round(time.perf_counter() - began, 3),
    )
