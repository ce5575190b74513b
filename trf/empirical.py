"""The empirical receptive field: how far back a trained model's output depends on its input.

The *cumulative normalised gradient* (Chi, Fan, Rudnicky, Ramadge, arXiv 2212.10356): for the
output o at the last of N positions and the input embeddings e_m,

    s_m = || d o / d e_m ||,   S_m = s_m / sum_m s_m,   C(j) = sum of the j newest S,
    ERF(eps) = min { j : C(j) > 1 - eps }   in tokens, the token itself included.

It is measured in windows of N tokens, so it compares with the theoretical field *at the same N*
(`theoretical_receptive_field(..., length=N)`), not with the limit.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor
from tqdm.auto import tqdm

from trf.corpora import Text, tokenise
from trf.errors import CheckpointError, ParameterError, unknown_name
from trf.expression import exact
from trf.nn.checkpoint import load
from trf.nn.decoder import Decoder

REDUCTIONS = ("projection", "jacobian", "logit", "loss")
_TOKENS_AT_ONCE = 8192  # bounds the memory of a forward and backward pass
Number = float | Fraction | Decimal | str


@dataclass(frozen=True, eq=False)
class EmpiricalReceptiveField:
    """How far back the output at the last position depends on the input.

    Attributes:
        density: S at distance n = 0 ... N-1, mean over windows; sums to 1. (N,)
        curve: C(j) for j = 1 ... N: the share of the gradient on the j newest tokens. (N,)
        window_curves: C(j) of every window. (n_windows, N)
        radii: eps -> ERF(eps) of the mean curve, in tokens.
        length: N, tokens a window.
        n_windows: windows averaged over.
        seed: of the windows and of the projections.
        reduction, n_projections: how the output was reduced; 0 projections where there are none.
        encoding, train_length: of the model.
        provenance: of the checkpoint.
    """

    density: np.ndarray
    curve: np.ndarray
    window_curves: np.ndarray
    radii: dict[float, int]
    length: int
    n_windows: int
    seed: int
    reduction: str
    n_projections: int
    encoding: str
    train_length: int
    provenance: dict[str, Any]

    @property
    def eps(self) -> float:
        """The (first) eps that was asked for."""
        return next(iter(self.radii))

    @property
    def radius(self) -> int:
        """ERF(eps) at the (first) eps, in tokens, the token itself included."""
        return self.radii[self.eps]

    def radius_at(self, eps: Number) -> int:
        """ERF at another eps: the least j with C(j) > 1 - eps."""
        return _radius(self.curve, _checked_eps(eps))

    def band(self, level: float = 0.9) -> tuple[np.ndarray, np.ndarray]:
        """The central `level` of the windows' curves: lower and upper, (N,) each.

        The spread from window to window, not the uncertainty of the mean.
        """
        low, high = (1 - level) / 2, (1 + level) / 2
        lower, upper = np.quantile(self.window_curves, [low, high], axis=0)
        return lower, upper

    def to_dict(self) -> dict[str, Any]:
        """As JSON-able data, without the windows' own curves."""
        data = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        del data["window_curves"]
        lower, upper = self.band()
        arrays = {"density": self.density, "curve": self.curve, "band": np.stack([lower, upper])}
        return {
            **data,
            **{name: array.tolist() for name, array in arrays.items()},
            "radii": {str(eps): radius for eps, radius in self.radii.items()},
        }

    def __str__(self) -> str:
        radii = ", ".join(f"ERF({eps:g}) = {radius}" for eps, radius in self.radii.items())
        return (
            f"{self.encoding}, {radii} tokens, measured in {self.n_windows} windows of "
            f"{self.length} ({self.reduction})"
        )


def empirical_receptive_field(
    model: Decoder | str | Path,
    text: Text,
    eps: Number | Sequence[Number] = 0.01,
    *,
    length: int = 512,
    n_windows: int = 32,
    seed: int = 0,
    reduction: str = "projection",
    n_projections: int = 4,
    progress: bool = True,
) -> EmpiricalReceptiveField:
    """Measure the empirical receptive field of `model` on windows drawn from `text`.

        s_m = || d o / d e_m ||,   S = s / sum s,   averaged over windows,
        ERF(eps) = min { j : the j newest S sum to more than 1 - eps }

    Args:
        model: a decoder, a checkpoint file, or the name of a shipped one.
        text: str, bytes, or token ids.
        eps: share of the gradient left out, 0 < eps < 1: a number or text such as `"1/100"`;
            several give several radii.
        length: tokens a window, N; past the training length too.
        n_windows: windows, drawn without replacement; all of them if the text has fewer.
        seed: of the windows and the projections.
        reduction: how the output o at the last position becomes something to differentiate.

            - `"projection"` (default): o is the hidden state after the final norm, s_m the
              Frobenius norm of its Jacobian, estimated from `n_projections` random directions u:
              E |u' d o / d e_m|^2 = || d o / d e_m ||_F^2 for u ~ N(0, I).
            - `"jacobian"`: that norm exactly, by one backward pass a dimension of o.
            - `"logit"`: o is the largest logit.
            - `"loss"`: o is the cross-entropy of the token that follows the window.

        n_projections: random directions, for `"projection"`.
        progress: show a progress bar.

    Returns:
        An `EmpiricalReceptiveField`. Memory is bounded at any length: windows go in batches, no
        N x N matrix is built, and parameters are held fixed, so only input gradients are kept.

    Raises:
        TextError: the text is empty or shorter than `length + 1` tokens.
        CheckpointError: `model` is no checkpoint, or its gradients vanish or are not finite.
        UnknownNameError: no such reduction.
        ParameterError: eps outside (0, 1), or a count that is not a positive integer.

    Example:
        >>> import torch
        >>> from trf.nn import Decoder, DecoderConfig
        >>> model = Decoder(DecoderConfig("alibi", n_layer=1, n_head=1, n_embd=8))
        >>> field = empirical_receptive_field(model, "To be or not to be", length=8, n_windows=2,
        ...                                   progress=False)
        >>> field.curve.shape, round(float(field.curve[-1]), 6)
        ((8,), 1.0)
    """
    several = [eps] if isinstance(eps, str) or not isinstance(eps, Sequence) else list(eps)
    wanted = [_checked_eps(e) for e in several]
    if not wanted:
        raise ParameterError("give at least one eps")
    if reduction not in REDUCTIONS:
        raise unknown_name("reduction", str(reduction), REDUCTIONS)
    for name, count in (
        ("length", length),
        ("n_windows", n_windows),
        ("n_projections", n_projections),
    ):
        if not isinstance(count, int) or count < 1:
            raise ParameterError(f"{name} must be a positive integer, got {count!r}")
    decoder = load(model)
    tokens = torch.from_numpy(tokenise(text, length + 1, decoder.config.vocab_size))
    starts = np.random.default_rng(seed).permutation(len(tokens) - length)[:n_windows]
    windows = torch.stack([tokens[s : s + length + 1] for s in np.sort(starts).tolist()])
    probes = _probes(reduction, decoder.config.n_embd, n_projections, seed)

    norms = []
    with (
        _frozen(decoder),
        tqdm(
            total=len(windows), desc=f"ERF {decoder.config.encoding}", disable=not progress
        ) as bar,
    ):
        for batch in windows.split(max(1, _TOKENS_AT_ONCE // length)):
            norms.append(gradient_norms(decoder, batch, reduction, probes))
            bar.update(len(batch))
    s = torch.cat(norms).double().flip(1).numpy()  # (W, N), newest token first
    total = s.sum(axis=1, keepdims=True)
    if not np.isfinite(total).all() or (total == 0).any():
        raise CheckpointError(
            "the gradient of the model's output with respect to its input is "
            f"{'zero' if np.isfinite(total).all() else 'not finite'}; there is no receptive field"
        )
    share = s / total
    density = share.mean(axis=0)
    curve = np.cumsum(density)
    return EmpiricalReceptiveField(
        density=density,
        curve=curve,
        window_curves=np.cumsum(share, axis=1),
        radii={e: _radius(curve, e) for e in wanted},
        length=length,
        n_windows=len(windows),
        seed=seed,
        reduction=reduction,
        n_projections=n_projections if reduction == "projection" else 0,
        encoding=decoder.config.encoding,
        train_length=decoder.config.train_length,
        provenance=decoder.provenance,
    )


def gradient_norms(
    model: Decoder, windows: Tensor, reduction: str, probes: Tensor | None
) -> Tensor:
    """|| d o / d e_m || at every position m, (B, N), for windows of N + 1 tokens.

    The last token of a window is only the target of `"loss"`. `probes` are the directions (K, C)
    in which the hidden state is differentiated; None for the reductions to a scalar.
    """
    windows = windows.to(next(model.parameters()).device)
    x = model.embed(windows[:, :-1]).detach().requires_grad_()  # (B, N, C)
    hidden = model.forward_embeddings(x)[:, -1]  # (B, C)
    if probes is not None:
        outputs = [(hidden @ u).sum() for u in probes.to(hidden)]
    elif reduction == "logit":
        outputs = [model.logits(hidden).amax(dim=-1).sum()]
    else:
        outputs = [F.cross_entropy(model.logits(hidden), windows[:, -1], reduction="sum")]
    squares = torch.zeros(x.shape[:2], dtype=torch.float64)
    for i, output in enumerate(outputs):
        (grad,) = torch.autograd.grad(output, x, retain_graph=i + 1 < len(outputs))
        squares += grad.double().square().sum(dim=-1).cpu()
    return squares.sqrt()


def _probes(reduction: str, width: int, n_projections: int, seed: int) -> Tensor | None:
    if reduction == "jacobian":
        return torch.eye(width)
    if reduction == "projection":
        return torch.randn(n_projections, width, generator=torch.Generator().manual_seed(seed))
    return None


@contextlib.contextmanager
def _frozen(model: Decoder) -> Iterator[None]:
    """Hold parameters fixed, so that a learned bias takes the lean path as a fixed one does."""
    before = [(p, p.requires_grad) for p in model.parameters()]
    model.requires_grad_(False)
    try:
        yield
    finally:
        for p, flag in before:
            p.requires_grad_(flag)


def _checked_eps(eps: Any) -> float:
    value = exact(eps, "eps")
    if not 0 < value < 1:
        raise ParameterError(f"eps must lie in 0 < eps < 1, got {eps}")
    return float(value)


def _radius(curve: np.ndarray, eps: float) -> int:
    """The least j with C(j) > 1 - eps; at most N, where C is 1 up to rounding."""
    above = curve > 1 - eps
    return int(above.argmax()) + 1 if above.any() else len(curve)
