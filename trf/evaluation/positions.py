"""Loss by position: where in a window is a model good, and does it stay so past training?"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from trf.errors import ParameterError
from trf.evaluation.windows import cost, losses, progress_bar, run_as, segments
from trf.nn.checkpoint import load
from trf.nn.decoder import Decoder
from trf.tokenisers import Text


@dataclass(frozen=True)
class PositionLoss:
    """Mean loss of the target after 1, 2, ..., N tokens of context.

    Attributes:
        encoding, train_length: of the model.
        mode: how it was evaluated, in words.
        length: tokens a window, N.
        nats: at each position, (N,); their mean is `nats_per_token` of `perplexity` at N.
        n_windows: it is the mean of.
        seed: of the windows drawn.
    """

    encoding: str
    train_length: int
    mode: str
    length: int
    nats: np.ndarray
    n_windows: int
    seed: int

    def binned(self, n_bins: int = 64) -> tuple[np.ndarray, np.ndarray]:
        """Bins of about equal width: the last position of each, from 1, and the mean nats in it."""
        edges = np.linspace(0, self.length, min(n_bins, self.length) + 1).round().astype(int)
        sums = np.concatenate([[0.0], self.nats.cumsum()])[edges]
        return edges[1:], np.diff(sums) / np.diff(edges)

    def to_dict(self) -> dict[str, Any]:
        """As JSON-able data."""
        return {**dataclasses.asdict(self), "nats": self.nats.tolist()}


def loss_by_position(
    model: Decoder | str | Path,
    text: Text,
    length: int = 9216,
    *,
    window: int | None = None,
    blocks: int | None = None,
    log_scale: bool = False,
    max_windows: int | None = 8,
    seed: int = 0,
    progress: bool = True,
) -> PositionLoss:
    """Mean loss at every position of windows that don't overlap.

    A curve that falls and stays low is a model that uses its context and holds past training; the
    height of its first few hundred positions is the early token curse.

    Args:
        length: tokens a window, N.
        others: as for `perplexity`; with the same seed the same text is scored.

    Raises:
        As `perplexity`.

    Example:
        >>> from trf.nn import Decoder, DecoderConfig
        >>> model = Decoder(DecoderConfig("alibi", n_layer=1, n_head=1, n_embd=8))
        >>> loss_by_position(model, "abcd" * 20, 16, progress=False).nats.shape
        (16,)
    """
    if not isinstance(length, int) or length < 1:
        raise ParameterError(f"length must be a positive integer, got {length!r}")
    decoder, mode = run_as(load(model), window, blocks, log_scale)
    _, tokens, starts, _ = segments(decoder, text, length, max_windows, seed)
    total = torch.zeros(length, dtype=torch.float64)
    with progress_bar(decoder, cost(length, 1) * len(starts), progress) as bar:
        for nats, _ in losses(decoder, tokens, starts, length, length, bar):
            total += nats.double().sum(dim=0).cpu()
    return PositionLoss(
        encoding=decoder.config.encoding,
        train_length=decoder.config.train_length,
        mode=mode or "non-overlapping",
        length=length,
        nats=(total / len(starts)).numpy(),
        n_windows=len(starts),
        seed=seed,
    )
