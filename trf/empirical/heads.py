"""The attention of every layer and head: its mass by distance, logits, entropy and sinks.

The *attention-map* receptive field (Chi, Fan, Rudnicky, Ramadge, arXiv 2212.10356): with the real
attention weights a_ij in place of the normalised gradient, for one layer and head,

    S(n) = a_{i, i-n},   C(j) = sum of S(n) over n < j,   ERF(eps) = min { j : C(j) > 1 - eps }.

The same pass tells how large the logits get (the U of the certified theoretical field), the
entropy of the weights against the number of visible keys, the share that goes to the first token
(a *sink*), and the loss by position.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor
from tqdm.auto import tqdm

from trf.empirical.field import Number, checked_eps
from trf.empirical.models import Model, Rows, watched
from trf.errors import CheckpointError

_CELLS = 1 << 22  # attention weights held at once
_LOGITS = 1 << 24  # logits of the vocabulary held at once


@dataclass(frozen=True, eq=False)
class AttentionField:
    """The attention of L layers with H heads in windows of N tokens, averaged over windows.

    Attributes:
        density: the weight at distance n = 0 ... N-1 of the queries at `positions`. (L, H, N)
        totals: the weight at each distance, summed over all queries of the even-numbered windows
            and of the odd-numbered ones; what a fit reads. (2, L, H, N)
        half_windows: windows in each of those.
        log_weights: the mean log-weight at distance n = 0 ... N//2 - 1, over the queries of the
            second half of the same halves of the windows, all of which see those distances; -inf
            where a weight was 0. (2, L, H, N//2)
        logit_bound: the largest |q . k| times its scale that occurred, the bias p(n) left out;
            NaN where the model does not show its logits. (L, H)
        logit_spread: the standard deviation of the same logits over the keys that a query sees,
            mean over the queries of a window's second half; NaN as above. (L, H)
        entropy: of the weights of a query with i + 1 visible keys, i = 0 ... N-1, in nats; at most
            ln(i + 1). (L, H, N)
        sink: the weight on the first token, mean over the queries of a window's second half; even
            weights would give about 1.4/N. (L, H)
        loss: cross-entropy of the token after position i = 0 ... N-1, in nats. (N,)
        positions: the queries of `density`.
        length, n_windows: N, and how many windows.
        encoding: of the model.
    """

    density: np.ndarray
    totals: np.ndarray
    half_windows: tuple[int, int]
    log_weights: np.ndarray
    logit_bound: np.ndarray
    logit_spread: np.ndarray
    entropy: np.ndarray
    sink: np.ndarray
    loss: np.ndarray
    positions: tuple[int, ...]
    length: int
    n_windows: int
    encoding: str

    @property
    def n_layer(self) -> int:
        """L."""
        return self.density.shape[0]

    @property
    def n_head(self) -> int:
        """H."""
        return self.density.shape[1]

    @property
    def curve(self) -> np.ndarray:
        """The share of the weight on the j newest tokens, j = 1 ... N. (L, H, N)"""
        return np.cumsum(self.density, axis=-1)

    def radius_at(self, eps: Number = 0.01) -> np.ndarray:
        """ERF(eps) of every layer and head, in tokens, (L, H), integers."""
        above = self.curve > 1 - checked_eps(eps)
        return np.where(above.any(axis=-1), above.argmax(axis=-1) + 1, self.length)

    @property
    def mean_distance(self) -> np.ndarray:
        """sum n S(n) of every layer and head, in tokens. (L, H)"""
        return self.density @ np.arange(self.length)

    @property
    def participation_ratio(self) -> np.ndarray:
        """1 / sum S^2 of every layer and head, in tokens. (L, H)"""
        return 1 / np.square(self.density).sum(axis=-1)

    def to_dict(self) -> dict[str, Any]:
        """As JSON-able data, without what a fit reads (totals and log-weights)."""
        return {
            "density": self.density.tolist(),
            "logit_bound": _known(self.logit_bound),
            "logit_spread": _known(self.logit_spread),
            "entropy": self.entropy.tolist(),
            "sink": self.sink.tolist(),
            "loss": self.loss.tolist(),
            "positions": list(self.positions),
            "length": self.length,
            "n_windows": self.n_windows,
            "encoding": self.encoding,
        }  # fmt: skip

    def __str__(self) -> str:
        radii = self.radius_at(0.1)
        lines = [
            f"  layer {layer}: " + ", ".join(
                f"{radii[layer, h]} (U {self.logit_bound[layer, h]:.3g}, "
                f"sink {self.sink[layer, h]:.2g})"
                for h in range(self.n_head)
            )
            for layer in range(self.n_layer)
        ]  # fmt: skip
        head = f"{self.encoding}, ERF(0.1) of the attention of each head within {self.length}:"
        return "\n".join([head, *lines])


class _Sums:
    """Running sums over windows; one call of `add` a layer and batch."""

    def __init__(self, n_layer: int, n_head: int, length: int, positions: Sequence[int]):
        self.positions = positions
        self.density = np.zeros((n_layer, n_head, length))
        self.totals = np.zeros((2, n_layer, n_head, length))
        self.log_weights = np.zeros((2, n_layer, n_head, length // 2))
        self.logit_bound = np.zeros((n_layer, n_head))
        self.logit_spread = np.zeros((n_layer, n_head))
        self.entropy = np.zeros((n_layer, n_head, length))
        self.sink = np.zeros((n_layer, n_head))
        self.loss = np.zeros(length)
        self.first = 0  # number of the batch's first window
        self.batch = 1

    def add(self, layer: int, N: int, rows: Rows) -> None:
        """All queries of one layer, a block at a time."""
        a = 0
        while a < N:
            b = min(N, a + self._block(N))
            weights, content = rows(a, b)  # (B, H, b-a, b)
            if not bool(torch.isfinite(weights).all()):
                raise CheckpointError(f"the attention weights of layer {layer} are not finite")
            self._add_block(layer, N, a, weights)
            if content is None:
                self.logit_bound[layer] = self.logit_spread[layer] = np.nan
            else:
                largest = content.abs().amax(dim=(0, 2, 3)).cpu().numpy()
                self.logit_bound[layer] = np.maximum(self.logit_bound[layer], largest)
                self.logit_spread[layer] += _spreads(content[:, :, max(N // 2, a) - a :])
            a = b

    def _block(self, N: int) -> int:
        return max(1, min(256, _CELLS // (N * self.density.shape[1] * self.batch)))

    def _add_block(self, layer: int, N: int, a: int, weights: Tensor) -> None:
        B, b = weights.shape[0], weights.shape[3]
        half = (self.first + torch.arange(B)) % 2
        by_distance = diagonal_sums(weights)  # (B, H, b)
        for h in (0, 1):
            self.totals[h, layer, :, :b] += by_distance[half == h].sum(0).numpy()
        entropy = torch.special.entr(weights).sum(-1).double().sum(0)  # (H, b-a)
        self.entropy[layer, :, a:b] += entropy.cpu().numpy()
        late = max(N // 2, a) - a
        if late < b - a:
            logs = diagonal_sums(weights[:, :, late:].log())[..., : N // 2]
            for h in (0, 1):
                self.log_weights[h, layer] += logs[half == h].sum(0).numpy()
            self.sink[layer] += weights[:, :, late:, 0].double().sum((0, 2)).cpu().numpy()
        for p in self.positions:
            if a <= p < b:
                row = weights[:, :, p - a, : p + 1].flip(-1).double().sum(0)
                self.density[layer, :, : p + 1] += row.cpu().numpy()


def _known(values: np.ndarray) -> list[list[float | None]]:
    return [[None if math.isnan(u) else u for u in row] for row in values.tolist()]


def _spreads(content: Tensor) -> np.ndarray:
    """Standard deviations over the keys seen, whose logits are not the 0 of a mask; (H,) sums."""
    seen = (content != 0).sum(-1).clamp(min=1)
    mean = content.sum(-1) / seen
    variance = (content.square().sum(-1) / seen - mean.square()).clamp(min=0)
    return variance.sqrt().double().sum((0, 2)).cpu().numpy()


def diagonal_sums(weights: Tensor) -> Tensor:
    """Sums over queries by distance, (B, H, b) float64, of weights (B, H, b-a, b) of a ... b-1.

    With the keys reversed, row r is shifted by r when the rows, padded to b + R numbers, are read
    as rows of b + R - 1.

    Example:
        >>> diagonal_sums(torch.tensor([[[[0.5, 0.5, 0.0], [0.2, 0.2, 0.6]]]])).squeeze()
        tensor([1.1000, 0.7000, 0.2000], dtype=torch.float64)
    """
    B, H, R, b = weights.shape
    shifted = F.pad(weights.flip(-1), (0, R)).flatten(2)[..., : R * (b + R - 1)]
    sums = shifted.view(B, H, R, b + R - 1).sum(2, dtype=torch.float64)
    return sums[..., R - 1 :].cpu()  # what came before are keys after the query: weight 0


def measure_heads(
    model: Model,
    windows: Tensor,
    positions: tuple[int, ...],
    tokens_at_once: int,
    progress: bool,
) -> AttentionField:
    """The attention of `model` in windows (W, N + 1) of tokens; see `attention_field`."""
    W, N = len(windows), windows.shape[1] - 1
    config = model.config
    sums = _Sums(config.n_layer, config.n_head, N, positions)
    device = next(iter(model.parameters())).device
    with (
        torch.no_grad(),
        watched(model, sums.add),
        tqdm(total=W, desc=f"attention {config.encoding}", disable=not progress) as bar,
    ):
        for batch in windows.split(max(1, tokens_at_once // N)):
            sums.batch = len(batch)
            hidden = model.forward_embeddings(model.embed(batch[:, :-1].to(device)))
            sums.loss += losses(model, hidden, batch[:, 1:].to(device)).sum(0).numpy()
            sums.first += len(batch)
            bar.update(len(batch))
    counts = ((W + 1) // 2, W // 2)
    queries = np.maximum(counts, 1)[:, None, None, None] * (N - N // 2)
    return AttentionField(
        density=sums.density / (W * len(positions)),
        totals=sums.totals,
        half_windows=counts,
        log_weights=sums.log_weights / queries,
        logit_bound=sums.logit_bound,
        logit_spread=sums.logit_spread / (W * (N - N // 2)),
        entropy=sums.entropy / W,
        sink=sums.sink / (W * (N - N // 2)),
        loss=sums.loss / W,
        positions=positions,
        length=N,
        n_windows=W,
        encoding=config.encoding,
    )


def losses(model: Model, hidden: Tensor, targets: Tensor) -> Tensor:
    """Cross-entropy at every position, (B, N) float64 on the CPU, a run of positions at a time."""
    step = max(1, _LOGITS // (len(hidden) * model.config.vocab_size))
    parts = []
    for h, t in zip(hidden.split(step, 1), targets.split(step, 1), strict=True):
        logits = model.logits(h).float().transpose(1, 2)  # (B, V, n)
        parts.append(F.cross_entropy(logits, t.long(), reduction="none").double().cpu())
    return torch.cat(parts, dim=1)
