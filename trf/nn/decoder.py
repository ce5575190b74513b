"""The shipped decoder: pre-norm, small, and blind to position except through its encoding.

    x = sqrt(C) E[tokens] (+ absolute positions)
    x = x + attention(norm(x)),   x = x + mlp(norm(x)),   L times
    logits = norm(x) E^T

No dropout, no biases, tied embeddings. An encoding is a bias of the distance in the attention
logits, compiled from its formula (`trf.nn.bias`), or a mechanism (`trf.nn.mechanisms`): vectors
added to the embeddings, queries and keys turned, logits corrected.

After nanoGPT's `model.py` (github.com/karpathy/nanoGPT).
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from trf import encodings
from trf.encodings import Encoding, Kind, definition
from trf.errors import ParameterError, unknown_name
from trf.expression import Bias
from trf.nn.attention import PATHS, Positions, attention
from trf.nn.bias import AdditiveBias
from trf.nn.mechanisms import MECHANISMS, Mechanism
from trf.nn.windows import Blocks, Span, Window


@dataclass(frozen=True)
class DecoderConfig:
    """The shape of a decoder and its position encoding.

    Args:
        encoding: name of an encoding in `trf.encodings`.
        n_layer, n_head, n_embd: layers L, heads H, width C (a multiple of H, and even).
        vocab_size: number of tokens V; 256 for bytes.
        train_length: length of the training windows, in tokens. The decoder runs at any length.
        custom: the definition of an encoding that is not in the catalogue; `Decoder` puts it in.

    Raises:
        ParameterError: a size is not a positive integer, or `n_embd` does not divide.
    """

    encoding: str
    n_layer: int = 4
    n_head: int = 4
    n_embd: int = 128
    vocab_size: int = 256
    train_length: int = 512
    custom: Mapping[str, Any] | None = field(default=None, hash=False)

    def __post_init__(self) -> None:
        for name in ("n_layer", "n_head", "n_embd", "vocab_size", "train_length"):
            value = getattr(self, name)
            if not isinstance(value, int) or value < 1:
                raise ParameterError(f"{name} must be a positive integer, got {value!r}")
        if self.n_embd % self.n_head or self.n_embd % 2:
            raise ParameterError(
                f"n_embd must be even and a multiple of n_head = {self.n_head}, got {self.n_embd}"
            )

    def to_dict(self) -> dict[str, Any]:
        """As JSON-able data; `DecoderConfig(**data)` reads it back."""
        data = asdict(self)
        if self.custom is None:
            del data["custom"]
        return data


@dataclass(frozen=True)
class View:
    """How a decoder is run, none of which its weights depend on.

    Attributes:
        path: of attention: `"lean"`, `"reference"` or `"flex"`.
        span: the keys a query may see; None for all before it.
        log_scale: the length M of the log-n scale; None for none.
    """

    path: str = "lean"
    span: Span | None = None
    log_scale: int | None = None

    def gain(self, length: int, device: torch.device) -> Tensor | None:
        """max(1, ln(i) / ln(M)) for the i keys that each query sees, (length, 1)."""
        if self.log_scale is None:
            return None
        i = torch.arange(length, device=device)
        seen = i + 1 if self.span is None else i + 1 - self.span.first(i)
        return (seen.double().log() / math.log(self.log_scale)).clamp(min=1.0)[:, None]


@dataclass(frozen=True)
class Pass:
    """What the layers share in one pass: positions, the turning of q and k, the path."""

    positions: Positions
    turn: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]] | None
    gain: Tensor | None
    path: str


class Attention(nn.Module):
    """Multi-head causal attention with positions."""

    def __init__(self, config: DecoderConfig):
        super().__init__()
        self.n_head = config.n_head
        self.qkv = nn.Linear(config.n_embd, 3 * config.n_embd, bias=False)
        self.out = nn.Linear(config.n_embd, config.n_embd, bias=False)

    def forward(self, x: Tensor, how: Pass) -> Tensor:
        q, k, v = self.heads(x, how)
        y = attention(q, k, v, how.positions, how.path, v.shape[-1] ** -0.5)  # (B, H, T, D)
        return self.out(y.transpose(1, 2).reshape(x.shape))  # (B, T, C)

    def heads(self, x: Tensor, how: Pass) -> tuple[Tensor, Tensor, Tensor]:
        """Queries and keys as the scalar product takes them, and values: (B, H, T, D) each."""
        B, T, C = x.shape
        qkv = self.qkv(x).view(B, T, 3, self.n_head, C // self.n_head)  # (B, T, 3, H, D)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        if how.gain is not None:
            q = q * how.gain.to(q)
        if how.turn is not None:
            q, k = how.turn(q, k)
        return q, k, v


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

    def forward(self, x: Tensor, how: Pass) -> Tensor:
        x = x + self.attention(self.norm_attention(x), how)
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
        if encoding is not None and encodings.REGISTRY.get(config.encoding) is not encoding:
            custom = definition.define(encoding, config.n_head)
            config = replace(config, custom=custom)
        elif encoding is None and config.custom is not None:
            encoding = definition.read(config.encoding, config.custom)
        self.config = config
        self.encoding = encodings.get(config.encoding) if encoding is None else encoding
        self.view = View()
        self.provenance: dict[str, Any] = {}  # how it was trained; travels with the checkpoint
        self.embedding = nn.Embedding(config.vocab_size, config.n_embd)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.n_layer))
        self.norm = nn.LayerNorm(config.n_embd, bias=False)
        self.bias: AdditiveBias | None = None
        self.mechanism: Mechanism | None = None
        if self.encoding.mechanism:
            if self.encoding.mechanism not in MECHANISMS:
                raise unknown_name("mechanism", self.encoding.mechanism, MECHANISMS)
            self.mechanism = MECHANISMS[self.encoding.mechanism](
                self.encoding, config.n_head, config.n_embd, config.train_length
            )
        elif self.encoding.bias is None or self.encoding.kind is Kind.MULTIPLICATIVE:
            raise ParameterError(
                f"the encoding {self.encoding.name!r} is {self.encoding.kind} and here for theory "
                f"only: it can't run in this decoder. It would do this to the logits: "
                f"{self.encoding.score}"
            )
        elif self.encoding.bias.expr != 0:
            self.bias = AdditiveBias(self.encoding, config.n_head)
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
        T, mechanism = x.shape[1], self.mechanism
        if mechanism is not None:
            x = mechanism.embed(x)
        how = Pass(
            Positions(
                bias=None if self.bias is None else self.bias(T).to(x.device),  # (H, T)
                span=self.view.span,
                rate=None if mechanism is None else mechanism.rate,
                correction=mechanism.correct if mechanism and mechanism.corrects else None,
            ),
            turn=None if mechanism is None else mechanism.turn,
            gain=self.view.gain(T, x.device),
            path=self.view.path,
        )
        for block in self.blocks:
            x = block(x, how)
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
        """Run attention by `"lean"`, `"reference"` or, on CUDA, `"flex"`; returns itself.

        Raises:
            UnknownNameError: no such path.
        """
        if path not in PATHS:
            raise unknown_name("attention path", path, PATHS)
        self.view = replace(self.view, path=path)
        return self

    def with_window(self, width: int) -> Decoder:
        """The same weights behind a window: every token sees the `width` newest tokens.

        No retraining; the original is left as it is. Time and memory grow as length times width.

        Raises:
            ParameterError: positions are absolute, or `width` is not a positive integer.

        Reference: the "super-strong baseline", Su, kexue.fm 9431.

        Example:
            >>> model = Decoder(DecoderConfig("rope", n_layer=1, n_head=1, n_embd=8))
            >>> model.with_window(512)(torch.zeros(1, 9, dtype=torch.long)).shape
            torch.Size([1, 9, 256])
        """
        return self._seeing(Window(width))

    def with_blocks(self, width: int) -> Decoder:
        """The same weights with blockwise causal attention: its own block and the one before.

        Raises:
            ParameterError: as `with_window`.

        Reference: Sun et al., arXiv 2212.10554.
        """
        return self._seeing(Blocks(width))

    def with_log_scale(self, train_length: int | None = None) -> Decoder:
        """The same weights with q multiplied by max(1, log_M(i)), i the number of visible keys.

        It scales the products q . k; an additive bias is left as it is.

        Args:
            train_length: M, in tokens, at least 2; that of the configuration unless given.

        Reference: Su, kexue.fm 8823.
        """
        M = self.config.train_length if train_length is None else train_length
        if isinstance(M, bool) or not isinstance(M, int) or M < 2:
            raise ParameterError(f"train_length must be an integer of at least 2, got {M!r}")
        return self._viewed(replace(self.view, log_scale=M))

    def _seeing(self, span: Span) -> Decoder:
        if self.encoding.kind is Kind.ABSOLUTE:
            raise ParameterError(
                f"{self.encoding.title} positions are absolute: a window doesn't bring the later "
                "ones into the range of training; use a relative encoding"
            )
        return self._viewed(replace(self.view, span=span))

    def _viewed(self, view: View) -> Decoder:
        """A decoder of the same modules and parameters that is run in another way."""
        other = copy.copy(self)
        other.view = view
        return other

    def head_biases(self) -> list[Bias] | None:
        """The bias p(n) of every head with the values it has learned; None without a p(n).

        Example:
            >>> [bias.expr for bias in Decoder(DecoderConfig("alibi", 1, 2, 8)).head_biases()]
            [-n/16, -n/256]
        """
        if self.encoding.bias is None:
            return None
        names = [parameter.name for parameter in self.encoding.learnable]
        values = [{}] * self.config.n_head if self.bias is None else self.bias.values()
        return self.encoding.head_biases(
            self.config.n_head, [{name: head[name] for name in names} for head in values]
        )

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
