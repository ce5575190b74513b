"""Causal attention with positions, by paths that agree.

    out_i = sum_j softmax_j( q_i . k_j / sqrt(D) + p(i - j) ) v_j ,   j <= i

`reference` builds the N x N matrix of logits and says what is meant. `lean` never does: with the
keys reversed, j = b - 1 - j', the distance i - j becomes i + j' + const, so the matrix of biases is
a Hankel matrix, and that is a strided view of one vector a head, with -inf at negative distances.
The kernel behind `scaled_dot_product_attention` takes the view as it is. Queries go in blocks: a
block sees only the keys up to its last query, which saves half of the work at long lengths, and
bounds the memory where the kernel must fall back to explicit logits (a bias that is being learned).
With a window the keys of a block begin where the window of its first query does, so time and
memory grow as N times the width. `flex` is FlexAttention, for CUDA (`trf.nn.flex`).

Two further things can happen to a logit. `rate` multiplies every term of the scalar product by
exp(-rate_d (i - j)) (xPos); a block counts positions from its own first query, so no factor
exceeds exp(rate * 256) at any length. `correction` adds what depends on more than the distance.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from trf.errors import ParameterError, unknown_name
from trf.nn.windows import Span, Window

BLOCK = 256  # queries at a time; 128 to 512 measure within 10% of each other on a CPU
PATHS = ("lean", "reference", "flex")
NEGLIGIBLE = 40.0  # logarithm of a weight that makes no difference beside the token's own
_RECOMPUTE_FROM = 4  # blocks; explicit logits of longer sequences are computed twice, not kept

Correction = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]
"""(i, j, q_i, k_j) -> what to add to the logits, (B or 1, H, len(i), len(j))."""


@dataclass(frozen=True)
class Positions:
    """All that position does to the logits.

    Attributes:
        bias: p(0) ... p(N-1) of each head, (H, N); None for no bias. `-inf` is a weight of 0; the
            bias must be finite at n = 0.
        span: the keys a query may see; None for all up to itself.
        rate: (D,), the logarithmic decay a token of each term of q . k; None for none.
        correction: added to the logits of queries i and keys j.
    """

    bias: Tensor | None = None
    span: Span | None = None
    rate: Tensor | None = None
    correction: Correction | None = None

    def __post_init__(self) -> None:
        if isinstance(self.span, Window) and self.span.bidirectional:
            raise ParameterError("attention here is causal: it takes no bidirectional window")

    @property
    def plain(self) -> bool:
        """Whether there is nothing but the causal mask."""
        return all(x is None for x in (self.bias, self.span, self.rate, self.correction))


def attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    bias: Tensor | Positions | None = None,
    path: str = "lean",
    scale: float | None = None,
) -> Tensor:
    """Causal attention of `q`, `k`, `v` with the bias p(i - j) added after the 1/sqrt(D).

    Args:
        q, k: (B, H, N, D).
        v: (B, H, N, E).
        bias: p(0) ... p(N-1) of each head, (H, N), or all of `Positions`; None for no bias.
        path: `"lean"`, `"reference"`, or, on CUDA, `"flex"`; the same to 1e-5 in float32,
            gradients included.
        scale: of the scalar product; 1/sqrt(D) unless given.

    Returns:
        (B, H, N, E). Position i depends on positions j <= i only, its gradient with respect to
        later ones is exactly zero.

    Raises:
        UnknownNameError: no such path.
        ParameterError: the path can't do this.

    Example:
        >>> import torch
        >>> q, k, v = torch.zeros(1, 1, 2, 4), torch.zeros(1, 1, 2, 4), torch.eye(2, 4)[None, None]
        >>> attention(q, k, v, bias=torch.tensor([[0.0, -1.0]]))[0, 0, 1]  # weights 1 and 1/e
        tensor([0.2689, 0.7311, 0.0000, 0.0000])
    """
    how = bias if isinstance(bias, Positions) else Positions(bias)
    scale = float(q.shape[-1] ** -0.5) if scale is None else scale
    if path == "lean":
        return _lean(q, k, v, how, scale)
    if path == "reference":
        return _reference(q, k, v, how, scale)
    if path == "flex":
        from trf.nn.flex import flex

        return flex(q, k, v, how, scale)
    raise unknown_name("attention path", path, PATHS)


def toeplitz(bias: Tensor) -> Tensor:
    """The matrix p(i - j), -inf above the diagonal: (H, N) to (H, N, N)."""
    i = torch.arange(bias.shape[1], device=bias.device)
    n = i[:, None] - i  # (N, N) distances
    return bias[:, n.clamp(min=0)].masked_fill(n < 0, -math.inf)


def _reference(q: Tensor, k: Tensor, v: Tensor, how: Positions, scale: float) -> Tensor:
    N = q.shape[2]
    i = torch.arange(N, device=q.device)
    if how.rate is None:
        logits = q @ k.mT  # (B, H, N, N)
    else:
        n = (i[:, None] - i).clamp(min=0)
        logits = torch.zeros_like(q[..., :1] @ k[..., :1].mT)
        for d, rate in enumerate(how.rate.tolist()):
            logits = logits + q[..., d, None] * k[..., None, :, d] * torch.exp(-rate * n)
    logits = logits * scale
    if how.correction is not None:
        logits = logits + how.correction(i, i, q, k)
    bias = q.new_zeros(1, N) if how.bias is None else how.bias
    logits = logits + toeplitz(bias).to(q.dtype)
    if how.span is not None:
        logits = logits.masked_fill(~how.span.mask(N).to(q.device), -math.inf)
    return logits.softmax(-1) @ v  # (B, H, N, E)


def _lean(q: Tensor, k: Tensor, v: Tensor, how: Positions, scale: float) -> Tensor:
    N = q.shape[2]
    if how.plain:
        return F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=scale)
    edges = how.span.edges(N, BLOCK) if how.span is not None else [*range(0, N, BLOCK), N]
    keys, values = _Reversed(k, edges, how.span), _Reversed(v, edges, how.span)
    reach = max(b - keys.until(t) for t, b in enumerate(edges[1:]))
    by_distance = _by_distance(q, k, how, scale, reach)
    learning = torch.is_grad_enabled() and (by_distance.requires_grad or how.correction is not None)
    recompute = learning and len(edges) > _RECOMPUTE_FROM + 1
    queries = q.split(_sizes(edges), dim=2)
    blocks = []
    for t, (a, b) in enumerate(pairwise(edges)):  # queries a ... b-1 see keys b-1 ... s
        s = keys.until(t)
        block = _Block(a, b, s, how, scale)
        inputs = (queries[t], keys.of(t, s), values.of(t, s), by_distance)
        if recompute:
            out = checkpoint(block, *inputs, use_reentrant=False, preserve_rng_state=False)
        else:
            out = block(*inputs)
        blocks.append(out)
    return torch.cat(blocks, dim=2)  # (B, H, N, E)


def _by_distance(q: Tensor, k: Tensor, how: Positions, scale: float, reach: int) -> Tensor:
    """x[h, BLOCK - 1 + n] = p(n) for n < reach, and -inf for n < 0 and where nothing is seen.

    Nothing is seen outside a window, nor where the weight is certain to be below exp(-40) of the
    token's own: with |q . k| scale <= U it is at most exp(p(n) - p(0) + 2U) of it. That is far
    below the precision of float32, and spares the processor denormal numbers, which are slow.

    Returns (H or 1, BLOCK - 1 + reach): a block of queries meets no smaller n than 1 - BLOCK.
    """
    bias = q.new_zeros(1, reach) if how.bias is None else how.bias[:, :reach].to(q.dtype)
    if how.bias is not None and how.correction is None:
        with torch.no_grad():
            U = q.norm(dim=-1).amax((0, 2)) * k.norm(dim=-1).amax((0, 2)) * scale  # (H,)
            unseen = bias < bias[:, :1] - (NEGLIGIBLE + 2 * U)[:, None]
        bias = bias.masked_fill(unseen, -math.inf)
    if isinstance(how.span, Window) and how.span.width < reach:
        seen = bias[:, : how.span.width]
        bias = torch.cat([seen, seen.new_full((len(bias), reach - seen.shape[1]), -math.inf)], 1)
    return torch.cat([bias.new_full((len(bias), BLOCK - 1), -math.inf), bias], dim=1)


def _sizes(edges: list[int]) -> list[int]:
    return [b - a for a, b in pairwise(edges)]


class _Reversed:
    """Keys or values, newest first, and the run of them that a block of queries sees.

    Without a window a run is a view of the whole. With one it is put together from pieces, so
    that its gradient touches the pieces only: a view's gradient is as long as the whole sequence.
    """

    def __init__(self, x: Tensor, edges: list[int], span: Span | None):
        self.edges, self.span, self.length = edges, span, x.shape[2]
        self.whole = x.flip(2)  # what stood at j now stands at N-1-j
        self.pieces = () if span is None else self.whole.split(_sizes(edges)[::-1], dim=2)

    def until(self, t: int) -> int:
        """The oldest position that the queries of block t are given: an edge."""
        if self.span is None:
            return 0
        first = int(self.span.first(torch.tensor(self.edges[t])))
        return self.edges[bisect_right(self.edges, first) - 1]

    def of(self, t: int, s: int) -> Tensor:
        """Positions edges[t+1] - 1 ... s, (B, H, n, D)."""
        if self.span is None:
            return self.whole[:, :, self.length - self.edges[t + 1] :]
        newest, oldest = len(self.pieces) - 1 - t, len(self.pieces) - 1 - self.edges.index(s)
        return torch.cat(self.pieces[newest : oldest + 1], dim=2)


@dataclass(frozen=True)
class _Block:
    """Attention of queries a ... b-1 to keys b-1 ... s, in that order."""

    a: int
    b: int
    s: int
    how: Positions
    scale: float

    def __call__(self, q: Tensor, k: Tensor, v: Tensor, by_distance: Tensor) -> Tensor:
        a, b, s, how = self.a, self.b, self.s, self.how
        H, width = by_distance.shape
        start = BLOCK + a - b
        mask = by_distance.as_strided((1, H, b - a, b - s), (0, width, 1, 1), start)
        if how.rate is not None or how.correction is not None:
            i = torch.arange(a, b, device=q.device)
            j = torch.arange(b - 1, s - 1, -1, device=q.device)
            if how.rate is not None:
                rate = how.rate.to(q)
                q = q * torch.exp(-rate * (i - a)[:, None])
                k = k * torch.exp(rate * (j - a)[:, None])
            if how.correction is not None:
                mask = mask + how.correction(i, j, q, k)
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=self.scale)
