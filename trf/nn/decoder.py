"""The shipped decoder: pre-norm, small, and blind to position except through its encoding.

    x = sqrt(C) E[tokens] (+ absolute positions)
    x = x + attention(norm(x)),   x = x + mlp(norm(x)),   L times
    logits = norm(x) E^T

No dropout, no biases, tied embeddings. An encoding plugs in at one of three places: an additive
bias of the distance in the attention logits (`trf.nn.bias`), vectors added to the embeddings, or
nothing at all. A multiplicative encoding will rotate q and k in `Attention`.

After nanoGPT's `model.py` (github.com/karpathy/nanoGPT).
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from trf import encodings
from trf.encodings import Encoding
from trf.errors import ParameterError
from trf.nn.attention import attention
from trf.nn.bias import AdditiveBias


@dataclass(frozen=True)
class DecoderConfig:
    """The shape of a decoder and its position encoding.

    Args:
        encoding: name of an encoding in `trf.encodings`.
        n_layer, n_head, n_embd: layers L, heads H, width C (a multiple of H, and even).
        vocab_size: number of tokens V; 256 for bytes.
        train_length: length of the training windows, in tokens. The decoder runs at any length.

    Raises:
        ParameterError: a size is not a positive integer, or `n_embd` does not divide.
    """

    encoding: str
    n_layer: int = 4
    n_head: int = 4
    n_embd: int = 128
    vocab_size: int = 256
    train_length: int = 512

    def __post_init__(self) -> None:
        for field in ("n_layer", "n_head", "n_embd", "vocab_size", "train_length"):
            value = getattr(self, field)
            if not isinstance(value, int) or value < 1:
                raise ParameterError(f"{field} must be a positive integer, got {value!r}")
        if self.n_embd % self.n_head or self.n_embd % 2:
            raise ParameterError(
                f"n_embd must be even and a multiple of n_head = {self.n_head}, got {self.n_embd}"
            )

    def to_dict(self) -> dict[str, Any]:
        """As JSON-able data; `DecoderConfig(**data)` reads it back."""
        return dataclasses.asdict(self)


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


class Attention(nn.Module):
    """Multi-head causal attention with the bias p(i - j)."""

    def __init__(self, config: DecoderConfig):
        super().__init__()
        self.n_head = config.n_head
        self.path = "lean"
        self.qkv = nn.Linear(config.n_embd, 3 * config.n_embd, bias=False)
        self.out = nn.Linear(config.n_embd, config.n_embd, bias=False)

    def forward(self, x: Tensor, bias: Tensor | None) -> Tensor:
        B, T, C = x.shape
        qkv = self.qkv(x).view(B, T, 3, self.n_head, C // self.n_head)  # (B, T, 3, H, D)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)  # (B, H, T, D) each
        y = attention(q, k, v, bias, self.path)  # (B, H, T, D)
        return self.out(y.transpose(1, 2).reshape(B, T, C))  # (B, T, C)


class Block(nn.Module):
    """One layer: attention and a perceptron of four times the width, each behind a norm."""

    def __init__(self, config: DecoderConfig):
        super().__init__()
        C = config.n_embd
        self.norm_attention = nn.LayerNorm(C, bias=False)
        self.attention = Attention(config)
        self.norm_mlp = nn.LayerNorm(C, bias=False)
        self.mlp = nn.Sequential(
            nn.Linear(C, 4 * C, bias=False), nn.GELU(), nn.Linear(4 * C, C, bias=False)
        )

    def forward(self, x: Tensor, bias: Tensor | None) -> Tensor:
        x = x + self.attention(self.norm_attention(x), bias)
        return x + self.mlp(self.norm_mlp(x))  # (B, T, C)


class Decoder(nn.Module):
    """A decoder-only language model with a position encoding of the catalogue.

    Weights are drawn from torch's global generator: seed it first for a reproducible start.

    Args:
        config: its shape and the name of its encoding.
        encoding: the encoding itself, for one that is not in the catalogue.

    Raises:
        UnknownNameError: no encoding of that name.
        ParameterError: the encoding can't run in a decoder.

    Example:
        >>> import torch
        >>> model = Decoder(DecoderConfig("alibi", n_layer=1, n_head=2, n_embd=16))
        >>> model(torch.tensor([[72, 105]])).shape
        torch.Size([1, 2, 256])
    """

    def __init__(self, config: DecoderConfig, encoding: Encoding | None = None):
        super().__init__()
        self.config = config
        self.encoding = encodings.get(config.encoding) if encoding is None else encoding
        self.provenance: dict[str, Any] = {}  # how it was trained; travels with the checkpoint
        self.embedding = nn.Embedding(config.vocab_size, config.n_embd)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.n_layer))
        self.norm = nn.LayerNorm(config.n_embd, bias=False)
        self.bias: AdditiveBias | None = None
        self.absolute = False
        if self.encoding.bias is not None:
            if self.encoding.bias.expr != 0:
                self.bias = AdditiveBias(self.encoding, config.n_head)
        elif self.encoding.name == "sinusoidal":
            self.absolute = True
        elif self.encoding.kind != "none":
            raise ParameterError(
                f"the encoding {self.encoding.name!r} is {self.encoding.kind}: it can't run in "
                "this decoder, which takes additive biases, sinusoidal and none"
            )
        self._initialise()

    def forward(self, tokens: Tensor) -> Tensor:
        """Logits of the next token at every position: (B, T) integers to (B, T, V)."""
        return self.logits(self.forward_embeddings(self.embed(tokens)))

    def embed(self, tokens: Tensor) -> Tensor:
        """Scaled token embeddings, without positions: (B, T) to (B, T, C)."""
        return self.embedding(tokens.long()) * math.sqrt(self.config.n_embd)

    def forward_embeddings(self, x: Tensor) -> Tensor:
        """Hidden states after the final norm, (B, T, C), from token embeddings (B, T, C).

        The entrance for gradients with respect to the input: `x` is what `embed` returns.
        """
        T, C = x.shape[1:]
        if self.absolute:
            x = x + sinusoids(T, C).to(x)
        bias = None if self.bias is None else self.bias(T).to(x.device)  # (H, T)
        for block in self.blocks:
            x = block(x, bias)
        return self.norm(x)

    def logits(self, hidden: Tensor) -> Tensor:
        """Logits (..., V) from hidden states after the final norm (..., C)."""
        return F.linear(hidden, self.embedding.weight)

    def losses(self, tokens: Tensor, targets: Tensor) -> Tensor:
        """Cross-entropy of every target in nats, (B, T), from tokens and targets (B, T)."""
        logits = self(tokens)  # (B, T, V)
        return F.cross_entropy(
            logits.flatten(0, 1), targets.long().flatten(), reduction="none"
        ).view(targets.shape)

    def use_path(self, path: str) -> Decoder:
        """Run attention by `"lean"` or `"reference"`, in every layer; returns itself."""
        for block in self.blocks:
            block.attention.path = path  # type: ignore[union-attr]
        return self

    def n_parameters(self) -> int:
        """Number of trainable numbers."""
        return sum(p.numel() for p in self.parameters())

    def _initialise(self) -> None:
        """Normal weights of variance 1/fan-in; those that end a residual branch, over 2L more."""
        for name, p in self.named_parameters():
            if name == "embedding.weight":
                nn.init.normal_(p, std=self.config.n_embd**-0.5)
            elif p.dim() == 2:
                ends = name.endswith(("attention.out.weight", "mlp.2.weight"))
                depth = 2 * self.config.n_layer if ends else 1
                nn.init.normal_(p, std=(p.shape[1] * depth) ** -0.5)
