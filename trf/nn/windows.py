"""Which keys a query may see: the window of the super-strong baseline, and blockwise attention.

Both are put on a trained model at inference (`Decoder.with_window`, `Decoder.with_blocks`).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from trf.errors import ParameterError


def _check(width: int) -> None:
    if isinstance(width, bool) or not isinstance(width, int) or width < 1:
        raise ParameterError(f"the width of a window must be a positive integer, got {width!r}")


@dataclass(frozen=True)
class Window:
    """The `width` newest tokens, the token itself included.

        0 <= i - j < width,   or |i - j| < width if bidirectional

    Args:
        width: in tokens.
        bidirectional: keys on both sides; for encoders, the decoder here takes causal ones only.

    Raises:
        ParameterError: `width` is not a positive integer.

    Reference: Su, kexue.fm 9431; its theory is `trf.encodings.get("window").answer()`.

    Example:
        >>> Window(2).mask(3).int().tolist()
        [[1, 0, 0], [1, 1, 0], [0, 1, 1]]
    """

    width: int
    bidirectional: bool = False

    def __post_init__(self) -> None:
        _check(self.width)

    def first(self, i: Tensor) -> Tensor:
        """The first key that each query `i` may see."""
        return (i - (self.width - 1)).clamp(min=0)

    def edges(self, length: int, block: int) -> list[int]:
        """Where to cut the sequence so that a piece sees few keys that its queries may not."""
        return [*range(0, length, block), length]

    def mask(self, length: int) -> Tensor:
        """Whether query i may see key j: (length, length), boolean."""
        i = torch.arange(length)
        if self.bidirectional:
            return (i[:, None] - i).abs() < self.width
        return (i <= i[:, None]) & (i >= self.first(i)[:, None])


@dataclass(frozen=True)
class Blocks:
    """Blockwise causal attention: the query's own block, up to itself, and the block before.

        floor(i/width) - 1 <= floor(j/width),   j <= i

    Args:
        width: of a block, in tokens.

    Raises:
        ParameterError: `width` is not a positive integer.

    Reference: Sun et al., arXiv 2212.10554, blockwise causal attention.

    Example:
        >>> Blocks(2).mask(6).sum(1).tolist()
        [1, 2, 3, 4, 3, 4]
    """

    width: int

    def __post_init__(self) -> None:
        _check(self.width)

    def first(self, i: Tensor) -> Tensor:
        """The first key that each query `i` may see."""
        return ((i // self.width - 1) * self.width).clamp(min=0)

    def edges(self, length: int, block: int) -> list[int]:
        """Where to cut the sequence: at every block, and within long ones."""
        starts = range(0, length, self.width)
        inner = (range(a, min(a + self.width, length), block) for a in starts)
        return [*(edge for cuts in inner for edge in cuts), length]

    def mask(self, length: int) -> Tensor:
        """Whether query i may see key j: (length, length), boolean."""
        i = torch.arange(length)
        return (i <= i[:, None]) & (i >= self.first(i)[:, None])


Span = Window | Blocks
