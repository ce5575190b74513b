"""What runs an encoding that is no bias p(n): one class for each `Encoding.mechanism`.

A mechanism can act in three places, and by default does nothing in any of them:

    x = embed(x)                    vectors added to the token embeddings
    q, k = turn(q, k)               once, before the scalar products
    logits += correct(i, j, q, k)   on a block of queries i and keys j, if `corrects`

and may set `rate`, a decay of every term of q . k (see `trf.nn.attention`).
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor, nn

from trf.encodings import Encoding
from trf.errors import ParameterError


class Mechanism(nn.Module):
    """One that does nothing; the others override what they need.

    Args:
        encoding: whose `settings` it takes.
        n_head, n_embd: heads H and width C of the decoder; a head is D = C/H wide.
        train_length: in tokens.
    """

    rate: Tensor | None = None
    corrects = False

    def __init__(self, encoding: Encoding, n_head: int, n_embd: int, train_length: int):
        super().__init__()
        self.encoding = encoding
        self.settings: Mapping[str, Any] = encoding.settings
        self.n_head = n_head
        self.width = n_embd // n_head

    def embed(self, x: Tensor) -> Tensor:
        """Embeddings with positions, (B, T, C)."""
        return x

    def turn(self, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        """Queries and keys (B, H, T, D) as the scalar product takes them."""
        return q, k

    def correct(self, i: Tensor, j: Tensor, q: Tensor, k: Tensor) -> Tensor:
        """What to add to the logits of queries i and keys j, (B or 1, H, len(i), len(j))."""
        raise NotImplementedError


def sinusoids(length: int, n_embd: int) -> Tensor:
    """Sinusoidal positions, (length, n_embd), float32, for any length.

        s[m, 2i] = sin(m / 10000^(2i/C)),   s[m, 2i+1] = cos(m / 10000^(2i/C))

    Reference: Vaswani et al., arXiv 1706.03762, section 3.5.

    Example:
        >>> sinusoids(2, 2)
        tensor([[0.0000, 1.0000],
                [0.8415, 0.5403]])
    """
    m = torch.arange(length, dtype=torch.float64)
    frequency = 10000.0 ** (-torch.arange(0, n_embd, 2, dtype=torch.float64) / n_embd)
    angle = m[:, None] * frequency  # (N, C/2)
    return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1).float()  # (N, C)


class Sinusoidal(Mechanism):
    """Sinusoids added to the embeddings."""

    def embed(self, x: Tensor) -> Tensor:
        """Embeddings with positions, (B, T, C)."""
        return x + sinusoids(*x.shape[1:]).to(x)


class Learned(Mechanism):
    """One learned vector for each position of the training window, scaled as the embeddings are."""

    def __init__(self, encoding: Encoding, n_head: int, n_embd: int, train_length: int):
        super().__init__(encoding, n_head, n_embd, train_length)
        self.weight = nn.Parameter(torch.empty(train_length, n_embd).normal_(std=n_embd**-0.5))

    def embed(self, x: Tensor) -> Tensor:
        """Embeddings with positions, (B, T, C).

        Raises:
            ParameterError: T is longer than the training windows were.
        """
        T, C = x.shape[1:]
        if len(self.weight) < T:
            raise ParameterError(
                f"learned absolute positions end at the training length {len(self.weight)}, got "
                f"{T} tokens; use an encoding of the distance for longer inputs"
            )
        return x + self.weight[:T] * C**0.5


def rotate(x: Tensor, angles: Tensor) -> Tensor:
    """Turn the pairs (x_i, x_{i+D/2}) of x (..., D) by angles (..., D/2).

    Example:
        >>> rotate(torch.tensor([1.0, 0.0]), torch.tensor([torch.pi / 2])).round()
        tensor([-0., 1.])
    """
    cos, sin = angles.cos().to(x), angles.sin().to(x)
    first, second = x.chunk(2, dim=-1)
    return torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1)


class Rotary(Mechanism):
    """RoPE, and with a decay of every pair xPos.

        theta_i = base^(-2i/D),   zeta_i = (2i + gamma D) / ((1 + gamma) D) or one xi for all

    The pairs are (x_i, x_{i+D/2}) as in GPT-NeoX and Llama; RoFormer pairs neighbours, which is the
    same up to the order of the rows of W_q and W_k. The decay zeta_i^(n/scale_base) enters as
    `rate`, never as the powers zeta_i^(-n/scale_base) of a key alone, which overflow.

    Reference: Su et al., arXiv 2104.09864, equation 16; Sun et al., arXiv 2212.10554, section 3.
    """

    def __init__(self, encoding: Encoding, n_head: int, n_embd: int, train_length: int):
        super().__init__(encoding, n_head, n_embd, train_length)
        D = self.width
        if D % 2:
            raise ParameterError(f"{encoding.title} turns pairs, so n_embd/n_head must be even")
        two_i = torch.arange(0, D, 2, dtype=torch.float64)
        self.theta = float(self.settings["base"]) ** (-two_i / D)  # (D/2,)
        if "scale_base" in self.settings:
            if "xi" in self.settings:
                zeta = torch.full_like(two_i, float(self.settings["xi"]))
            else:
                gamma = float(self.settings["gamma"])
                zeta = (two_i + gamma * D) / ((1 + gamma) * D)
            self.rate = (-zeta.log() / self.settings["scale_base"]).repeat(2).float()  # (D,)

    def angles(self, positions: Tensor) -> Tensor:
        """theta_i times each position, (len(positions), D/2), float64."""
        return positions.double()[:, None] * self.theta.to(positions.device)

    def turn(self, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        """Queries and keys, turned by their positions."""
        angles = self.angles(torch.arange(q.shape[2], device=q.device))
        return rotate(q, angles), rotate(k, angles)


class ReRotary(Rotary):
    """RoPE with the distance held at w: q^T R(min(n, w)) k.

    The correction takes the product at the true distance back and adds the one at w, where n > w.

    Reference: Su, kexue.fm 9708.
    """

    corrects = True

    def correct(self, i: Tensor, j: Tensor, q: Tensor, k: Tensor) -> Tensor:
        """The difference of the logits at distance w and at n, (B, H, len(i), len(j))."""
        w = int(self.settings["window"])
        far = i[:, None] - j > w
        if not bool(far.any()):
            return q.new_zeros(1, 1, 1, 1)
        # q arrives as R(i) q and k as R(j) k: now R(w) q and k
        at_w = rotate(q, self.angles(w - i)) @ rotate(k, self.angles(-j)).mT
        return (at_w - q @ k.mT).masked_fill(~far, 0.0) * self.width**-0.5


class Fire(Mechanism):
    """FIRE: a perceptron of the distance as a share of the query's position.

        correct = W2 relu(W1 u + b1) + b2,   u = ln(1 + c n) / ln(1 + c max(i, L)),   0 <= n <= i

    c and L are learned, kept positive by their absolute values, as in the authors' code.

    Reference: Li et al., arXiv 2310.04418.
    """

    corrects = True

    def __init__(self, encoding: Encoding, n_head: int, n_embd: int, train_length: int):
        super().__init__(encoding, n_head, n_embd, train_length)
        width = int(self.settings["width"])
        self.mlp = nn.Sequential(nn.Linear(1, width), nn.ReLU(), nn.Linear(width, n_head))
        self.c = nn.Parameter(torch.tensor(float(self.settings["c"])))
        self.L_factor = nn.Parameter(torch.tensor(1.0))  # L = L_factor * settings["L"]

    def correct(self, i: Tensor, j: Tensor, q: Tensor, k: Tensor) -> Tensor:
        """The bias of queries i and keys j, (1, H, len(i), len(j))."""
        n = (i[:, None] - j).clamp(min=0).to(q)
        c, L = self.c.abs(), (self.L_factor * float(self.settings["L"])).abs()
        share = torch.log1p(c * n) / torch.log1p(c * torch.maximum(i.to(q), L))[:, None]
        return self.mlp(share[..., None]).permute(2, 0, 1)[None]


class Concatenate(Mechanism):
    """Sandwich as absolute positions: s p_m joined to q and s p_n to k, with s^2 = sqrt(D)/c_h.

    p holds the sines and cosines of m / 10000^(2i/d), i = 1 ... d/2, d the encoding's dimension.
    The logits differ from those of the bias by the constant d/(2 c_h), the weights not at all; the
    scale of the scalar product stays 1/sqrt(D) of the queries as they were.

    Reference: Su, kexue.fm 9431; Chi et al., arXiv 2212.10356.
    """

    def __init__(self, encoding: Encoding, n_head: int, n_embd: int, train_length: int):
        super().__init__(encoding, n_head, n_embd, train_length)
        divisors = [float(head["c"]) for head in encoding.head_values(n_head)]
        self.strength = (self.width**0.5 / torch.tensor(divisors, dtype=torch.float64)).sqrt()

    def turn(self, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        """Queries and keys, widened to D + d."""
        d, T = int(self.settings["dimension"]), q.shape[2]
        two_i = torch.arange(2, d + 1, 2, dtype=torch.float64)
        angles = torch.arange(T, dtype=torch.float64)[:, None] * 10000.0 ** (-two_i / d)
        p = torch.cat([angles.sin(), angles.cos()], dim=-1)  # (T, d)
        joined = (self.strength[:, None, None] * p).to(q).expand(len(q), -1, -1, -1)
        return torch.cat([q, joined], dim=-1), torch.cat([k, joined], dim=-1)


MECHANISMS: Mapping[str, type[Mechanism]] = MappingProxyType(
    {
        "sinusoidal": Sinusoidal,
        "learned": Learned,
        "rotary": Rotary,
        "rerope": ReRotary,
        "fire": Fire,
        "concatenate": Concatenate,
    }
)
