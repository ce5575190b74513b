"""`empirical_receptive_field`: windows, gradients, curves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from tqdm.auto import tqdm

from trf.corpora import Text
from trf.empirical.field import (
    EmpiricalReceptiveField,
    LayerField,
    Number,
    checked_list,
    radius_of,
)
from trf.empirical.gradient import (
    REDUCTIONS,
    Squares,
    directions,
    explain_failure,
    squared_norms,
)
from trf.empirical.heads import AttentionField, measure_heads
from trf.empirical.models import Model, as_model, frozen, token_windows
from trf.errors import ParameterError, unknown_name
from trf.nn.decoder import Decoder

TOKENS_AT_ONCE = 8192  # bounds the memory of a forward and backward pass


def empirical_receptive_field(
    model: Decoder | str | Path | Any,
    text: Text,
    eps: Number | Sequence[Number] = 0.01,
    *,
    length: int = 512,
    n_windows: int = 32,
    seed: int = 0,
    reduction: str = "projection",
    n_projections: int = 4,
    positions: int | Sequence[int] = -1,
    layers: bool = False,
    heads: bool = False,
    progress: bool = True,
) -> EmpiricalReceptiveField:
    """Measure the empirical receptive field of `model` on windows drawn from `text`.

        s_m = || d o / d e_m ||,   S = s / sum s,   averaged over windows,
        ERF(eps) = min { j : the j newest S sum to more than 1 - eps }

    Args:
        model: a decoder, a checkpoint file, or the name of a shipped one; a Hugging Face causal
            language model, its folder, its name `owner/name`, or `hf:NAME`.
        text: str, bytes, or token ids. A Hugging Face model takes a str by its own tokeniser.
        eps: share of the gradient left out, 0 < eps < 1: a number or text such as `"1/100"`;
            several give several radii.
        length: tokens a window, N; past the training length too.
        n_windows: windows, drawn without replacement; all of them if the text has fewer.
        seed: of the windows and the projections.
        reduction: how the output o at a position becomes something to differentiate.

            - `"projection"` (default): o is the hidden state after the final norm, s_m the
              Frobenius norm of its Jacobian, estimated from `n_projections` random directions u:
              E |u' d o / d e_m|^2 = || d o / d e_m ||_F^2 for u ~ N(0, I). The result tells the
              standard error.
            - `"jacobian"`: that norm exactly, by one backward pass a dimension of o.
            - `"logit"`: o is the largest logit.
            - `"loss"`: o is the cross-entropy of the token that follows.

        n_projections: random directions, for `"projection"`, drawn anew for each window.
        positions: whose output is differentiated: a position in the window, or several; -1 is the
            last. Position i sees i + 1 tokens; the mean over several takes S as 0 beyond those.
        layers: measure each layer too: its output before any later layer, with respect to its own
            input and to the embeddings, by the same directions. Needs a reduction to a vector.
        heads: measure the attention of each layer and head too (`attention_field`), in the same
            windows and at the same positions.
        progress: show a progress bar.

    Returns:
        An `EmpiricalReceptiveField`. Memory is bounded at any length: windows go in batches, no
        N x N matrix is built, and parameters are held fixed, so only input gradients are kept.
        (For Hugging Face models that depends on their own attention.)

    Raises:
        TextError: the text is empty, shorter than `length + 1` tokens, or not in the vocabulary.
        CheckpointError: `model` is no causal language model with an entrance at its embeddings,
            or its gradients vanish or are not finite (it says in which layer).
        UnknownNameError: no such reduction.
        ParameterError: eps outside (0, 1), a count that is not a positive integer, or a position
            outside the window.

    Reference: Chi, Fan, Rudnicky, Ramadge, arXiv 2212.10356, the cumulative normalised gradient.

    Example:
        >>> import torch
        >>> from trf.nn import Decoder, DecoderConfig
        >>> model = Decoder(DecoderConfig("alibi", n_layer=1, n_head=1, n_embd=8))
        >>> field = empirical_receptive_field(model, "To be or not to be", length=8, n_windows=2,
        ...                                   progress=False)
        >>> field.curve.shape, round(float(field.curve[-1]), 6)
        ((8,), 1.0)
    """
    wanted = checked_list(eps)
    if reduction not in REDUCTIONS:
        raise unknown_name("reduction", str(reduction), REDUCTIONS)
    check_counts(length=length, n_windows=n_windows, n_projections=n_projections)
    if layers and reduction in ("logit", "loss"):
        raise ParameterError(
            f"layers=True needs a reduction of vectors, 'projection' or 'jacobian': {reduction!r} "
            "exists at the model's output only"
        )
    places = checked_positions(positions, length)
    subject = as_model(model)
    windows = token_windows(subject, text, length, n_windows, seed)
    measured = _measure(subject, windows, reduction, n_projections, places, layers, seed, progress)
    attention = None
    if heads:
        with frozen(subject):
            attention = measure_heads(subject, windows, places, TOKENS_AT_ONCE, progress)
    curve = np.cumsum(measured.density)
    config = subject.config
    return EmpiricalReceptiveField(
        density=measured.density,
        curve=curve,
        window_curves=measured.window_curves,
        radii={e: radius_of(curve, e) for e in wanted},
        length=length,
        n_windows=len(windows),
        seed=seed,
        reduction=reduction,
        n_projections=n_projections if reduction == "projection" else 0,
        encoding=config.encoding,
        train_length=config.train_length,
        provenance=subject.provenance,
        positions=places,
        position_curves=measured.position_curves,
        projection_error=measured.projection_error,
        layers=measured.layers,
        heads=attention,
    )


def attention_field(
    model: Decoder | str | Path | Any,
    text: Text,
    *,
    length: int = 512,
    n_windows: int = 32,
    seed: int = 0,
    positions: int | Sequence[int] = -1,
    progress: bool = True,
) -> AttentionField:
    """Measure the attention of every layer and head of `model` on windows drawn from `text`.

        S(n) = a_{i, i-n},   ERF(eps) = min { j : S(0) + ... + S(j-1) > 1 - eps }

    with the real attention weights a. The same pass gives the measured logit bound, the entropy,
    the sinks and the loss by position: see `AttentionField`.

    Args:
        model, text, length, n_windows, seed, positions, progress: as for
            `empirical_receptive_field`; `positions` are the queries of `density`.

    Returns:
        An `AttentionField`. Weights are made for a block of queries at a time and summed up, so
        H x N x N is never held (a Hugging Face model that computes it by itself does hold one
        layer's).

    Raises:
        TextError, CheckpointError, ParameterError: as `empirical_receptive_field`.

    Reference: Chi, Fan, Rudnicky, Ramadge, arXiv 2212.10356, receptive field of attention maps;
    sinks: Xiao et al., arXiv 2309.17453.

    Example:
        >>> from trf.nn import Decoder, DecoderConfig
        >>> model = Decoder(DecoderConfig("alibi", n_layer=1, n_head=2, n_embd=8))
        >>> field = attention_field(model, "To be or not to be", length=8, progress=False)
        >>> field.radius_at(0.1).shape
        (1, 2)
    """
    check_counts(length=length, n_windows=n_windows)
    places = checked_positions(positions, length)
    subject = as_model(model)
    windows = token_windows(subject, text, length, n_windows, seed)
    with frozen(subject):
        return measure_heads(subject, windows, places, TOKENS_AT_ONCE, progress)


def check_counts(**counts: Any) -> None:
    """Refuse what is not a positive integer."""
    for name, count in counts.items():
        if isinstance(count, bool) or not isinstance(count, int) or count < 1:
            raise ParameterError(f"{name} must be a positive integer, got {count!r}")


def checked_positions(positions: Any, length: int) -> tuple[int, ...]:
    """Positions as 0 ... N-1, ascending, each once."""
    several = [positions] if isinstance(positions, int) else list(positions)
    for p in several:
        if isinstance(p, bool) or not isinstance(p, (int, np.integer)) or not -length <= p < length:
            raise ParameterError(
                f"positions lie in 0 ... {length - 1}, or -{length} ... -1 from the end, got {p!r}"
            )
    if not several:
        raise ParameterError("give at least one position")
    return tuple(sorted({int(p) % length for p in several}))


@dataclass(frozen=True)
class _Measured:
    density: np.ndarray
    window_curves: np.ndarray
    position_curves: dict[int, np.ndarray]
    projection_error: np.ndarray
    layers: tuple[LayerField, ...]


def _measure(
    model: Model,
    windows: Tensor,
    reduction: str,
    n_projections: int,
    positions: tuple[int, ...],
    layers: bool,
    seed: int,
    progress: bool,
) -> _Measured:
    W, N = len(windows), windows.shape[1] - 1
    probes = directions(reduction, model.config.n_embd, n_projections, W, seed)
    batch = max(1, TOKENS_AT_ONCE // N)
    curves, errors = [], np.zeros(N)
    by_position = np.zeros((len(positions), N))
    by_layer: np.ndarray | float = 0.0
    with (
        frozen(model),
        tqdm(total=W, desc=f"ERF {model.config.encoding}", disable=not progress) as bar,
    ):
        for first in range(0, W, batch):
            rows = slice(first, first + batch)
            found = squared_norms(
                model, windows[rows], reduction, None if probes is None else probes[rows],
                positions, layers,
            )  # fmt: skip
            share = _shares(found.output.mean(dim=2), positions)  # (P, B, N) by distance
            _refuse(share, model, windows[rows], positions)
            by_position += share.sum(axis=1)
            curves.append(np.cumsum(share.mean(axis=0), axis=-1))
            if reduction == "projection":
                errors += _jackknife(found.output, positions).sum(axis=0)
            by_layer = by_layer + _layer_shares(found, positions)
            bar.update(len(share[0]))
    by_position /= W
    fields = np.asarray(by_layer) / W
    return _Measured(
        density=by_position.mean(axis=0),
        window_curves=np.concatenate(curves),
        position_curves={p: np.cumsum(by_position[i, : p + 1]) for i, p in enumerate(positions)},
        projection_error=np.sqrt(errors) / W,
        layers=tuple(LayerField(i, *pair) for i, pair in enumerate(fields)) if layers else (),
    )


def _shares(squares: Tensor, positions: tuple[int, ...]) -> np.ndarray:
    """S by distance, of squared norms (..., P, B, N) by place; zero beyond a position's reach."""
    s = squares.sqrt().numpy()
    share = np.zeros_like(s)
    for i, p in enumerate(positions):
        share[..., i, :, : p + 1] = s[..., i, :, p::-1]
    with np.errstate(invalid="ignore", divide="ignore"):
        return share / share.sum(axis=-1, keepdims=True)


def _layer_shares(found: Squares, positions: tuple[int, ...]) -> np.ndarray:
    """Summed over windows, mean over positions: (L, 2, N)."""
    both = [_shares(x, positions) for x in (found.layer_input, found.layer_embeddings)]
    return np.stack(both, axis=1).sum(axis=3).mean(axis=2)


def _jackknife(squares: Tensor, positions: tuple[int, ...]) -> np.ndarray:
    """The variance of each window's curve that its K projections cause, (B, N).

    (K-1)/K sum_k (C without k - mean of those)^2; Efron, Tibshirani, equation 11.5.
    """
    K = squares.shape[2]
    if K == 1:  # one projection does not show its own error
        return np.full((squares.shape[1], squares.shape[3]), np.nan)
    total = squares.sum(dim=2)
    left_out = np.stack(
        [
            np.cumsum(_shares(total - squares[:, :, k], positions).mean(axis=0), axis=-1)
            for k in range(K)
        ]
    )  # (K, B, N)
    return (K - 1) * left_out.var(axis=0)


def _refuse(share: np.ndarray, model: Model, windows: Tensor, positions: tuple[int, ...]) -> None:
    """Raise if a window's gradient is zero or not finite."""
    bad = ~np.isfinite(share).all(axis=-1)  # (P, B)
    if bad.any():
        place, window = (int(i) for i in np.argwhere(bad)[0])
        with torch.enable_grad():
            raise explain_failure(model, windows[window], positions[place])
