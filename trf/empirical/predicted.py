"""The field that theory expects of a trained model, from its weights and forward passes only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from trf.empirical.field import Number, checked_eps, checked_list, radius_of
from trf.empirical.gains import BranchGains, branch_gains
from trf.empirical.measure import attention_field
from trf.errors import ParameterError
from trf.nn.checkpoint import load
from trf.nn.decoder import Decoder
from trf.theory import path_curve
from trf.tokenisers import Text


@dataclass(frozen=True, eq=False)
class PredictedReceptiveField:
    """The receptive field expected of a model within N tokens; an estimate, not a bound.

    Attributes:
        curve: the share on the j newest tokens, j = 1 ... N. (N,)
        radii: eps -> the least j with a share above 1 - eps, in tokens.
        length: N.
        gains: of the heads.
        spread: sigma of the content of the logits. (L, H)
        encoding: of the model.
    """

    curve: np.ndarray
    radii: dict[float, int]
    length: int
    gains: BranchGains
    spread: np.ndarray
    encoding: str

    @property
    def radius(self) -> int:
        """At the (first) eps, in tokens, the token itself included."""
        return next(iter(self.radii.values()))

    def radius_at(self, eps: Number) -> int:
        """At another eps: the least j with a share above 1 - eps."""
        return radius_of(self.curve, checked_eps(eps))

    def to_dict(self) -> dict[str, Any]:
        """As JSON-able data."""
        return {
            "curve": self.curve.tolist(),
            "radii": {str(eps): radius for eps, radius in self.radii.items()},
            "length": self.length,
            "gains": self.gains.to_dict(),
            "spread": self.spread.tolist(),
            "encoding": self.encoding,
        }

    def __str__(self) -> str:
        radii = ", ".join(f"predicted ERF({eps:g}) = {r}" for eps, r in self.radii.items())
        return f"{self.encoding}, {radii} tokens, within {self.length} (paths, an estimate)"


def predicted_receptive_field(
    model: Decoder | str | Path,
    text: Text,
    eps: Number | Sequence[Number] = 0.01,
    *,
    length: int = 512,
    n_windows: int = 8,
    seed: int = 0,
    progress: bool = True,
) -> PredictedReceptiveField:
    """The empirical receptive field to expect of `model`, without a gradient.

        s(n)^2 = sum over words w of heads, (product of g_h^2 + k_h^2) K_w(n)^2

    with the learned bias of every head, its gains through values and keys (`branch_gains`), and the
    spread of its logits (`attention_field`); see `trf.theory.path_curve`. Where the measured field
    (`empirical_receptive_field`) differs, attention is not what its bias says. Gains and spread are
    measured at N, here; in the cells of a grid (`trf.study`) the gains are those of the training
    length at every N, and the spread alone is that of N.

    Args:
        model: a decoder, a checkpoint file, or the name of a shipped one; its encoding has a p(n).
        text: str, bytes, or token ids, for the sizes of stream and logits.
        eps: share left out, 0 < eps < 1; several give several radii.
        length: tokens, N.
        n_windows, seed: of the windows of `text`.
        progress: show a progress bar.

    Raises:
        ParameterError: the encoding has no bias p(n), or not as an addition to the logits, or the
            model has too many layers and heads.
        TextError, CheckpointError: as `attention_field`.

    Example:
        >>> from trf.nn import Decoder, DecoderConfig
        >>> model = Decoder(DecoderConfig("alibi", n_layer=1, n_head=2, n_embd=8))
        >>> predicted_receptive_field(model, "To be or not to be", length=8,
        ...                           progress=False).curve.shape
        (8,)
    """
    wanted = checked_list(eps)
    decoder = load(model)
    heads = decoder.head_biases()
    if heads is None:
        raise ParameterError(
            f"{decoder.encoding.title} has no bias p(n), so no field follows from it; measure it "
            "with empirical_receptive_field"
        )
    if decoder.mechanism is not None:
        raise ParameterError(
            f"{decoder.encoding.title} writes its bias into queries and keys, where it can't be "
            "told from the content of the logits; take the encoding that adds the same bias"
        )
    where: dict[str, Any] = {"length": length, "n_windows": n_windows, "seed": seed}
    gains = branch_gains(decoder, text, **where)
    spread = attention_field(decoder, text, progress=progress, **where).logit_spread
    curve = path_curve(heads, length, np.hypot(gains.value, gains.key), spread=spread)
    return PredictedReceptiveField(
        curve=curve,
        radii={e: radius_of(curve, e) for e in wanted},
        length=length,
        gains=gains,
        spread=spread,
        encoding=decoder.config.encoding,
    )
