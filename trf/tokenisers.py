"""Tokenisers: bytes, and byte-level BPE of any vocabulary size, both without an unknown token.

A tokeniser is written into the checkpoint it was used for (`to_dict`, `of`), so that a checkpoint
can read a text by itself. Every token stands for a fixed number of bytes, which is what turns
nats per token into bits per byte:

    bits per byte = sum of nats over tokens / (ln 2 * sum of their bytes)
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from trf.errors import CheckpointError, ParameterError, TextError, missing_extra, unknown_name

Text = str | bytes | Sequence[int] | Any  # or an integer array or tensor of one dimension

_CHUNK = 1 << 20  # characters given to the BPE at a time


@dataclass(frozen=True)
class ByteTokeniser:
    """A token is a byte of UTF-8.

    Example:
        >>> ByteTokeniser().encode("né").tolist()
        [110, 195, 169]
    """

    name: str = "bytes"
    vocab_size: int = 256

    def encode(self, text: str | bytes) -> np.ndarray:
        """Token ids, (N,), int64."""
        data = text.encode("utf-8") if isinstance(text, str) else bytes(text)
        return np.frombuffer(data, dtype=np.uint8).astype(np.int64)

    def decode(self, tokens: Sequence[int] | np.ndarray) -> bytes:
        """The bytes that the tokens stand for."""
        return np.asarray(tokens, dtype=np.uint8).tobytes()

    @property
    def byte_counts(self) -> np.ndarray:
        """Bytes of every token of the vocabulary, (V,), int64."""
        return np.ones(self.vocab_size, dtype=np.int64)

    def to_dict(self) -> dict[str, Any]:
        """As JSON-able data; `of` reads it back."""
        return {"name": self.name}


@dataclass(frozen=True)
class BPETokeniser:
    """Byte-level BPE, as GPT-2's, of the package `tokenizers`.

    Every byte is a token of its own, so any text can be encoded and nothing is unknown.

    Attributes:
        name: what it was asked for as, such as `bpe:8192`.
        definition: the JSON of `tokenizers.Tokenizer`.

    Reference: Radford et al., Language Models are Unsupervised Multitask Learners, section 2.2.
    """

    name: str
    definition: str = field(repr=False)

    @cached_property
    def _tokenizer(self) -> Any:
        try:
            from tokenizers import Tokenizer
        except ImportError as error:
            raise missing_extra("tokenizers", "tokenisers") from error
        return Tokenizer.from_str(self.definition)

    @cached_property
    def _strings(self) -> list[str]:
        """The vocabulary by id; a character of these strings stands for one byte."""
        vocabulary: dict[str, int] = self._tokenizer.get_vocab()
        return sorted(vocabulary, key=vocabulary.__getitem__)

    @property
    def vocab_size(self) -> int:
        """Number of tokens V; less than asked for where the text has no more pairs to merge."""
        return len(self._strings)

    def encode(self, text: str | bytes) -> np.ndarray:
        """Token ids, (N,), int64. The text goes in pieces that end with a line.

        Raises:
            TextError: bytes that are not UTF-8.
        """
        pieces = [
            np.array(self._tokenizer.encode(piece).ids, dtype=np.int64)
            for piece in _pieces(_as_str(text))
        ]
        return np.concatenate(pieces) if pieces else np.zeros(0, dtype=np.int64)

    def decode(self, tokens: Sequence[int] | np.ndarray) -> bytes:
        """The bytes that the tokens stand for."""
        return bytes(_BYTE_OF[char] for token in tokens for char in self._strings[int(token)])

    @cached_property
    def byte_counts(self) -> np.ndarray:
        """Bytes of every token of the vocabulary, (V,), int64."""
        return np.array([len(string) for string in self._strings], dtype=np.int64)

    def to_dict(self) -> dict[str, Any]:
        """As JSON-able data; `of` reads it back."""
        return {"name": self.name, "definition": json.loads(self.definition)}


Tokeniser = ByteTokeniser | BPETokeniser
BYTES = ByteTokeniser()


def check_name(name: str) -> int | None:
    """The vocabulary size that `bpe:SIZE` asks for; None for `bytes`.

    Raises:
        UnknownNameError: neither `bytes` nor `bpe:SIZE`.
        ParameterError: a size below 257, which leaves no room for a merge.
    """
    kind, _, size = name.partition(":")
    if name == "bytes":
        return None
    if kind != "bpe" or not size.isdigit():
        raise unknown_name("tokeniser", name, ["bytes", "bpe:SIZE"])
    if int(size) <= 256:
        raise ParameterError(f"a BPE of bytes needs a vocabulary of at least 257, got {size}")
    return int(size)


def build(name: str, text: str | bytes) -> Tokeniser:
    """The tokeniser of that name, trained on `text` where it needs training.

    Args:
        name: `"bytes"`, or `"bpe:SIZE"` with the size of the vocabulary, the 256 bytes included.
        text: what merges are learned from: the training split, never the others.

    Raises:
        UnknownNameError, ParameterError: as `check_name`.
        MissingExtraError: `tokenizers` is not installed.

    Example:
        >>> build("bytes", "").vocab_size
        256
    """
    size = check_name(name)
    if size is None:
        return BYTES
    try:
        from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    except ImportError as error:
        raise missing_extra("tokenizers", "tokenisers") from error
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)  # pyright: ignore
    tokenizer.decoder = decoders.ByteLevel()  # pyright: ignore
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        show_progress=False,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
    )
    tokenizer.train_from_iterator(_pieces(_as_str(text)), trainer)
    return BPETokeniser(name, tokenizer.to_str())


def of(provenance: Mapping[str, Any]) -> Tokeniser:
    """The tokeniser that a checkpoint was trained with, from its provenance; bytes if it says none.

    Raises:
        CheckpointError: an entry `tokeniser` that is none of ours.

    Example:
        >>> of({}).name
        'bytes'
    """
    entry = provenance.get("tokeniser", {"name": "bytes"})
    try:
        if entry["name"] == "bytes":
            return BYTES
        return BPETokeniser(entry["name"], json.dumps(entry["definition"]))
    except (KeyError, TypeError) as error:
        raise CheckpointError("the checkpoint names a tokeniser that trf can't read") from error


def tokenise(
    text: Text, at_least: int = 1, vocab_size: int = 256, tokeniser: Tokeniser = BYTES
) -> np.ndarray:
    """Token ids of a text, (N,), int64: what the tokeniser makes of it, or the ids given.

    Args:
        text: str (encoded as UTF-8), bytes, or token ids (sequence, array or tensor).
        at_least: how many tokens are needed.
        vocab_size: ids must lie in [0, vocab_size).
        tokeniser: for str and bytes; a token is a byte by default.

    Raises:
        TextError: empty, too short (says how long it must be), not text, or ids out of range.

    Example:
        >>> tokenise("né").tolist()
        [110, 195, 169]
    """
    if isinstance(text, (str, bytes, bytearray, memoryview)):
        tokens = tokeniser.encode(text if isinstance(text, str) else bytes(text))
    else:
        tokens = np.asarray(text)
        if tokens.size and (tokens.dtype.kind not in "iu" or tokens.ndim != 1):
            raise TextError(
                "a text is a str, bytes, or one row of integer token ids; got "
                f"{type(text).__name__} of shape {tokens.shape}, {tokens.dtype}"
            )
        tokens = tokens.astype(np.int64).reshape(-1)
    if not tokens.size:
        raise TextError("the text is empty")
    if tokens.size < at_least:
        what = "a byte is a token" if tokeniser.name == "bytes" else f"of {tokeniser.name}"
        raise TextError(
            f"the text has {tokens.size:,} tokens; it must have at least {at_least:,} "
            f"({what}, and every window needs one more token as its last target)"
        )
    if tokens.min() < 0 or tokens.max() >= vocab_size:
        raise TextError(
            f"token ids must lie in 0 ... {vocab_size - 1}, got {tokens.min()} ... {tokens.max()}"
        )
    return tokens


def _as_str(text: str | bytes) -> str:
    if isinstance(text, str):
        return text
    try:
        return text.decode("utf-8")
    except UnicodeDecodeError as error:
        raise TextError(
            f"the text is not UTF-8 (byte {error.start}), which a BPE needs; a model of bytes "
            "reads anything"
        ) from error


def _pieces(text: str) -> Iterator[str]:
    """The text in pieces of about a megabyte, cut after a line where there is one."""
    start = 0
    while start < len(text):
        end = start + _CHUNK
        if end < len(text):
            end = text.rfind("\n", start, end) + 1 or end
        yield text[start:end]
        start = end


def _byte_alphabet() -> dict[str, int]:
    """GPT-2's printable character for each byte, and back."""
    kept = [*range(33, 127), *range(161, 173), *range(174, 256)]
    moved = [byte for byte in range(256) if byte not in kept]
    return {chr(b): b for b in kept} | {chr(256 + i): b for i, b in enumerate(moved)}


_BYTE_OF = _byte_alphabet()
