"""Every predictor of an empirical field that was tried, from the paper's to paths with content.

None is fitted to a gradient. The last two read the measured attention in place of the bias: they
are no theory of a field, but tell which part of an error is the attention's and which the stack's.
What each reads: the bias with its learned parameters (`p`), the weights (`gains`), or the logits on
held-out text (`bound`, `spread`, `sink`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from trf.expression import Bias
from trf.study import theory
from trf.study.cells import CellResult
from trf.theory import head_curves, kernel_paths, mass_curve, path_curve, stack_curve
from trf.theory.paths import MAX_PATHS
from trf.theory.stack import weights


class NotRecorded(LookupError):
    """A cell lacks what a predictor reads."""


@dataclass(frozen=True, eq=False)
class Inputs:
    """What a predictor may read of a cell, at N tokens."""

    cell: CellResult
    length: int

    @cached_property
    def heads(self) -> list[Bias]:
        """The biases, with learned parameters put in."""
        found = theory.biases(self.cell)
        if found is None:
            raise NotRecorded(f"{self.cell.encoding} has no bias p(n), or its values are not known")
        return found

    def table(self, quantity: str) -> np.ndarray:
        """A number by layer and head, measured at this length. (L, H)"""
        return self._known(quantity, self.length)

    def gains(self, quantity: str) -> np.ndarray:
        """A gain by layer and head, measured at the training length whatever N is. (L, H)

        A cell has no gains at other lengths; `predicted_receptive_field` measures them at its N,
        so at other N than the training length its radii are not the ones here.
        """
        return self._known(quantity, self.cell.train_length)

    def _known(self, quantity: str, length: int) -> np.ndarray:
        found = np.array(self.cell.by_head(quantity, length=length, mode=None))
        if not np.isfinite(found).all():
            raise NotRecorded(f"{self.cell.encoding}: {quantity} at {length} tokens")
        return found

    @cached_property
    def both_gains(self) -> np.ndarray:
        """Through values and keys: sqrt(g^2 + k^2). (L, H)"""
        return np.hypot(self.gains("value_gain"), self.gains("key_gain"))

    @cached_property
    def residual(self) -> float:
        """The share that passes a layer unmixed, from the value gains; mean over layers."""
        return float((1 / (1 + self.gains("value_gain").sum(axis=1))).mean())

    @cached_property
    def excess_sink(self) -> np.ndarray:
        """The attention on the first token beyond what exp(p(n)) puts there. (L, H)"""
        late = np.arange(self.length // 2, self.length)
        natural = []
        for bias in self.heads:
            w = weights(bias, self.length)
            natural.append((w / np.cumsum(w))[late].mean())
        share = np.array(natural)
        return np.clip((self.table("sink") - share) / (1 - share), 0.0, 1.0)

    @cached_property
    def attention(self) -> np.ndarray:
        """The measured mean attention by distance. (L, H, N)"""
        kept = self.cell.curve("attention", length=self.length)
        if kept is None or "heads" not in kept:
            raise NotRecorded(f"{self.cell.encoding}: attention by head at {self.length} tokens")
        shares = np.array(kept["heads"])  # (L, H, P)
        at = [0, *kept["tokens"]]
        everywhere = np.arange(self.length + 1)
        curves = [[np.interp(everywhere, at, [0.0, *head]) for head in layer] for layer in shares]
        return np.diff(np.array(curves), axis=-1)


def _bounded(given: Inputs) -> np.ndarray:
    """The least share within j that logits up to the measured U allow; mean over layers and heads.

    ``e^-U B(j) / (e^-U B(j) + e^U (B - B(j)))``: the certified field of a real head.
    """
    inside = head_curves(given.heads, given.length)  # (H, N)
    ratio = np.exp(2 * given.table("logit_bound"))[..., None]  # (L, H, 1)
    return (inside / (inside + ratio * (1 - inside))).mean(axis=(0, 1))


def _stack(residual: float) -> Callable[[Inputs], np.ndarray]:
    return lambda given: stack_curve(given.heads, given.length, given.cell.n_layer, residual)


def _paths(*, keys: bool = True, spread: bool = False, sink: bool = False):
    def curve(given: Inputs) -> np.ndarray:
        _check_paths(given)
        return path_curve(
            given.heads,
            given.length,
            given.both_gains if keys else given.gains("value_gain"),
            spread=given.table("logit_spread") if spread else None,
            sink=given.excess_sink if sink else None,
        )

    return curve


def _paths_of_attention(given: Inputs) -> np.ndarray:
    _check_paths(given)
    return kernel_paths(given.attention, given.both_gains)


def _check_paths(given: Inputs) -> None:
    """Deep and wide decoders, such as 12 layers of 12 heads, have more words than can be summed."""
    if (given.cell.n_head + 1) ** given.cell.n_layer > MAX_PATHS:
        raise NotRecorded(f"{given.cell.n_layer} layers of {given.cell.n_head} heads")


@dataclass(frozen=True)
class Predictor:
    """A way to predict the cumulative curve of an empirical field.

    Attributes:
        title: in words.
        reads: what of the model.
        curve: the share within j tokens, j = 1 ... N; raises `NotRecorded`.
    """

    title: str
    reads: str
    curve: Callable[[Inputs], np.ndarray]

    def radii(self, given: Inputs, eps: Iterable[float]) -> dict[float, int | None]:
        """The radius at each eps, in tokens; None where the cell lacks what is read."""
        try:
            curve = self.curve(given)
        except NotRecorded:
            return dict.fromkeys(eps)
        return {e: theory.radius(curve, e) for e in eps}


PREDICTORS: Mapping[str, Predictor] = {
    "one-layer": Predictor(
        "one layer (the paper's TRF)", "p", lambda g: mass_curve(g.heads, g.length)
    ),
    "stack-half": Predictor("stack, ρ = 1/2", "p", _stack(0.5)),
    "stack-none": Predictor("stack, ρ = 0", "p", _stack(0.0)),
    "logit-bound": Predictor("one layer, worst case within |q·k|/√d ≤ U", "p, bound", _bounded),
    "stack-weights": Predictor(
        "stack, ρ from the weights",
        "p, gains",
        lambda g: stack_curve(g.heads, g.length, g.cell.n_layer, g.residual),
    ),
    "paths-value": Predictor("paths, value gains", "p, gains", _paths(keys=False)),
    "paths": Predictor("paths, value and key gains", "p, gains", _paths()),
    "paths-sink": Predictor("paths with sinks", "p, gains, sink", _paths(sink=True)),
    "paths-spread": Predictor("paths with logit spread", "p, gains, spread", _paths(spread=True)),
    "paths-spread-sink": Predictor(
        "paths with logit spread and sinks", "p, gains, spread, sink",
        _paths(spread=True, sink=True),
    ),
    "attention": Predictor(
        "mean attention map (measured)",
        "attention",
        lambda g: np.cumsum(g.attention.mean(axis=(0, 1))),
    ),
    "paths-attention": Predictor(
        "paths with measured attention", "attention, gains", _paths_of_attention
    ),
}  # fmt: skip
PAPERS = "one-layer"
NULL = "null"  # one radius for all encodings
INPUTS = {"value_gain": "value gain", "key_gain": "key gain", "logit_spread": "logit spread"}
DIAGNOSTIC = ("attention", "paths-attention")
