"""Gradients of one position's output with respect to everything before it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from trf.empirical.models import Model, recorded
from trf.errors import CheckpointError

REDUCTIONS = ("projection", "jacobian", "logit", "loss")


@dataclass(frozen=True)
class Squares:
    """Squared gradient norms of a batch of windows, float64 on the CPU.

    Attributes:
        output: of the model's output at each position, with respect to the embeddings; one row a
            projection, summed over the directions of a Jacobian. (P, B, K, N)
        layer_input, layer_embeddings: of every layer's output, with respect to its own input and
            to the embeddings. (L, P, B, N)
    """

    output: Tensor
    layer_input: Tensor
    layer_embeddings: Tensor


def squared_norms(
    model: Model,
    windows: Tensor,
    reduction: str,
    probes: Tensor | None,
    positions: Sequence[int],
    layers: bool = False,
) -> Squares:
    """|| d o / d e_m ||^2 at every m, for windows (B, N + 1) of tokens.

    The last token of a window is only a target of `"loss"`. `probes` are the directions in which a
    hidden state is differentiated, (B or 1, K, C); None for the reductions to a scalar.
    """
    windows = windows.to(next(iter(model.parameters())).device)
    x = model.embed(windows[:, :-1]).detach().requires_grad_()  # (B, N, C)
    with recorded(model) if layers else nullcontext([]) as states:
        hidden = model.forward_embeddings(x)  # (B, N, C)
    B, N = x.shape[:2]
    keep = probes is not None and reduction == "projection"
    K = probes.shape[1] if keep and probes is not None else 1
    output = torch.zeros(len(positions), B, K, N, dtype=torch.float64)
    to_input = torch.zeros(len(states), len(positions), B, N, dtype=torch.float64)
    to_embeddings = torch.zeros_like(to_input)
    for p, position in enumerate(positions):
        for k, scalar in enumerate(_scalars(model, hidden[:, position], windows[:, position + 1],
                                            reduction, probes)):  # fmt: skip
            (gradient,) = torch.autograd.grad(scalar, x, retain_graph=True)
            output[p, :, k if keep else 0] += _squared(gradient)
        for layer, (entered, left) in enumerate(states):
            assert probes is not None
            for u in probes.to(left).unbind(1):  # (B or 1, C)
                inputs = [entered] if entered is x else [entered, x]
                grads = torch.autograd.grad(
                    (left[:, position] * u).sum(), inputs, retain_graph=True
                )
                to_input[layer, p] += _squared(grads[0])
                to_embeddings[layer, p] += _squared(grads[-1])
    return Squares(output, to_input, to_embeddings)


def _scalars(
    model: Model, hidden: Tensor, targets: Tensor, reduction: str, probes: Tensor | None
) -> list[Tensor]:
    """What is differentiated, from the hidden states (B, C) at one position."""
    if probes is not None:
        return [(hidden * u).sum() for u in probes.to(hidden).unbind(1)]
    logits = model.logits(hidden)  # (B, V)
    if reduction == "logit":
        return [logits.amax(dim=-1).sum()]
    return [F.cross_entropy(logits.float(), targets.long(), reduction="sum")]


def _squared(gradient: Tensor) -> Tensor:
    return gradient.detach().square().sum(dim=-1, dtype=torch.float64).cpu()  # (B, N)


def directions(
    reduction: str, width: int, n_projections: int, n_windows: int, seed: int
) -> Tensor | None:
    """The directions u in which each window's hidden state is differentiated, (W, K, C).

    Random ones are drawn anew for every window, so that their noise averages out over windows.
    """
    if reduction == "jacobian":
        return torch.eye(width).expand(n_windows, -1, -1)
    if reduction == "projection":
        generator = torch.Generator().manual_seed(seed)
        return torch.randn(n_windows, n_projections, width, generator=generator)
    return None


def explain_failure(model: Model, window: Tensor, position: int) -> CheckpointError:
    """Why a window's gradient is zero or not finite, and in which layer it happens."""
    device = next(iter(model.parameters())).device
    x = model.embed(window[None, :-1].to(device)).detach().requires_grad_()
    with recorded(model) as states:
        hidden = model.forward_embeddings(x)
    if not bool(torch.isfinite(x).all()):
        return _not_finite("the embeddings are not finite (a NaN or infinite weight)")
    for layer, (_, left) in enumerate(states):
        if not bool(torch.isfinite(left).all()):
            return _not_finite(f"the output of layer {layer} (of 0 ... {len(states) - 1}) is not")
    if not bool(torch.isfinite(hidden).all()):
        return _not_finite("every layer's output is finite, that of the final norm is not")
    entered = [before for before, _ in states]
    grads = torch.autograd.grad(hidden[:, position].sum(), [*entered, x], allow_unused=True)
    for layer in reversed(range(len(states))):
        gradient = grads[layer]
        if gradient is not None and not bool(torch.isfinite(gradient).all()):
            return _not_finite(f"outputs are finite, the backward pass of layer {layer} is not")
    return CheckpointError(
        "the gradient of the model's output with respect to its input is zero; there is no "
        "receptive field"
    )


def _not_finite(where: str) -> CheckpointError:
    return CheckpointError(
        "the gradient of the model's output with respect to its input is not finite: "
        f"{where}; there is no receptive field"
    )
