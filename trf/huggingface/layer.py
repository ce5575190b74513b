"""One layer's position encoding."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from trf import encodings
from trf.encodings.answer import NOT_APPLICABLE
from trf.expression import Bias, as_bias
from trf.series.convergence import converges


def window_bias(width: int) -> Bias:
    """0 within `width` tokens, -oo beyond."""
    return as_bias(f"Piecewise((0, n < {width}), (-oo, True))")


@dataclass(frozen=True)
class LayerEncoding:
    """The position encoding of one layer.

    Attributes:
        layer: from 0.
        encoding: its name in the catalogue.
        biases: p(n) of every head, window included; None where there is no p(n), or where it is
            learned and no weights were given.
        window: the newest tokens that a query sees, itself included; None for all.
        note: what else there is to say.
    """

    layer: int
    encoding: str
    biases: tuple[Bias, ...] | None
    window: int | None = None
    note: str = ""

    @cached_property
    def statuses(self) -> tuple[str, ...]:
        """``converges``, ``diverges``, ... of each head's series, or one for all.

        Without p(n) it is that of the encoding, and ``converges`` within a window: the weights
        beyond it are 0, whatever the logits.
        """
        if self.biases is None:
            known = encodings.get(self.encoding)
            if self.window is not None:
                return ("converges",)
            if known.bias is not None and known.stand_in is None:
                return (NOT_APPLICABLE,)
            return (known.answer().status,)
        found = {str(bias.expr): "" for bias in self.biases}
        for bias in self.biases:
            found[str(bias.expr)] = found[str(bias.expr)] or str(converges(bias).status)
        return tuple(found[str(bias.expr)] for bias in self.biases)

    def bounding_biases(self, n_head: int) -> tuple[Bias, ...] | None:
        """p(n) of each head, or that of the window which bounds a layer without one."""
        if self.biases is None and self.window is not None:
            return (window_bias(self.window),) * n_head
        return self.biases

    def like(self, other: LayerEncoding) -> bool:
        """Whether another layer has the same encoding, biases and window."""
        return (self.encoding, self.window, self.note, self._texts) == (
            other.encoding, other.window, other.note, other._texts
        )  # fmt: skip

    @cached_property
    def _texts(self) -> tuple[str, ...] | None:
        return None if self.biases is None else tuple(str(bias.expr) for bias in self.biases)

    def to_dict(self) -> dict[str, Any]:
        """As JSON-able data."""
        return {
            "layer": self.layer,
            "encoding": self.encoding,
            "biases": None if self._texts is None else list(self._texts),
            "window": self.window,
            "statuses": list(self.statuses),
            "note": self.note,
        }

    def __str__(self) -> str:
        counts = dict.fromkeys(self.statuses)
        if len(counts) == 1:
            status = next(iter(counts))
        else:
            status = ", ".join(f"{self.statuses.count(s)} heads: {s}" for s in counts)
        window = "" if self.window is None else f", window of {self.window}"
        note = f" ({self.note})" if self.note else ""
        return f"{encodings.get(self.encoding).title}{window}: {status}{note}"
