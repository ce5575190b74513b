"""Corpora: real text, split into training, validation and test, with a hash of what it is.

A corpus is bytes; a token is a byte. `code` is the Python standard library's own sources, which
every machine that runs trf has; `path:FILE_OR_FOLDER` is any text of yours.
"""

from __future__ import annotations

import hashlib
import sysconfig
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from trf.errors import TextError, unknown_name

SPLITS = ("train", "valid", "test")
MAX_BYTES = 12_000_000
TEXT_SUFFIXES = (".txt", ".md", ".rst", ".tex", ".py", ".tokens", ".csv", ".json", ".html")

# Not sources that someone reads: tests, tables of characters, installed packages.
_SKIPPED_FOLDERS = frozenset(
    {
        "site-packages", "dist-packages", "__pycache__", "test", "tests", "idlelib", "encodings",
        "pydoc_data", "turtledemo", "lib-dynload", "ensurepip",
    }
)  # fmt: skip
_SHARE_HELD_OUT = 0.05  # of the documents, for validation and again for test


@dataclass(frozen=True)
class Corpus:
    """A text in three parts.

    Attributes:
        name: what it was asked for as.
        train, valid, test: bytes of UTF-8.
        sha256: hash of the three parts, in hexadecimal.
        n_documents: number of files it was read from.
        licence: of the text, where known.
    """

    name: str
    train: bytes
    valid: bytes
    test: bytes
    sha256: str
    n_documents: int
    licence: str

    def split(self, name: str) -> bytes:
        """One part by name: `train`, `valid` or `test`."""
        if name not in SPLITS:
            raise unknown_name("split", name, SPLITS)
        return getattr(self, name)


def corpus_names() -> list[str]:
    """The corpora that have a name."""
    return ["code"]


def load(name: str) -> Corpus:
    """Read a corpus.

    Args:
        name: `"code"`, or `"path:FILE_OR_FOLDER"`. A folder is read recursively, files with the
            suffix of a text only (`TEXT_SUFFIXES`), split by file; fewer than three files are
            joined and split by position, 90 : 5 : 5. At most 12 million bytes are read.

    Guarantees: the same files give the same corpus, in an order that depends on their relative
        names alone. No document is in two splits, unless there are fewer than three.

    Raises:
        UnknownNameError: no such corpus.
        TextError: nothing there, empty, unreadable, or not UTF-8.

    Example:
        >>> load("code").name
        'code'
    """
    if name.startswith("path:"):
        return _from_path(name)
    if name == "code":
        return _code()
    raise unknown_name("corpus", name, [*corpus_names(), "path:FILE_OR_FOLDER"])


def read_text(path: str | Path) -> str:
    """Read one UTF-8 text file.

    Raises:
        TextError: missing, a folder, unreadable, empty, or not UTF-8 (with the byte's position).
    """
    return _read(Path(path)).decode("utf-8")


Text = str | bytes | Sequence[int] | Any  # or an integer array or tensor of one dimension


def tokenise(text: Text, at_least: int = 1, vocab_size: int = 256) -> np.ndarray:
    """Token ids of a text, (N,), int64: the bytes of a str or bytes, or the ids given.

    Args:
        text: str (encoded as UTF-8), bytes, or token ids (sequence, array or tensor).
        at_least: how many tokens are needed.
        vocab_size: ids must lie in [0, vocab_size).

    Raises:
        TextError: empty, too short (says how long it must be), not text, or ids out of range.

    Example:
        >>> tokenise("né").tolist()
        [110, 195, 169]
    """
    if isinstance(text, str):
        text = text.encode("utf-8")
    if isinstance(text, (bytes, bytearray, memoryview)):
        tokens = np.frombuffer(bytes(text), dtype=np.uint8).astype(np.int64)
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
        raise TextError(
            f"the text has {tokens.size:,} tokens; it must have at least {at_least:,} "
            "(a byte is a token, and every window needs one more token as its last target)"
        )
    if tokens.min() < 0 or tokens.max() >= vocab_size:
        raise TextError(
            f"token ids must lie in 0 ... {vocab_size - 1}, got {tokens.min()} ... {tokens.max()}"
        )
    return tokens


def _code() -> Corpus:
    root = Path(sysconfig.get_path("stdlib"))
    files = {}
    for path in root.rglob("*.py"):
        relative = path.relative_to(root)
        if _SKIPPED_FOLDERS.isdisjoint(relative.parts) and "_sysconfigdata" not in path.name:
            files[relative.as_posix()] = path
    if not files:
        raise TextError(
            f"the Python standard library at {root} holds no sources; name a folder of your own: "
            "corpus='path:FOLDER'"
        )
    return _split("code", files, "PSF-2.0")


def _from_path(name: str) -> Corpus:
    root = Path(name.removeprefix("path:")).expanduser()
    if not root.exists():
        raise TextError(f"corpus {name!r}: there is nothing at {root}")
    if root.is_file():
        return _split(name, {root.name: root}, "unknown")
    files = {
        path.relative_to(root).as_posix(): path
        for path in root.rglob("*")
        if path.is_file() and path.suffix.lower() in TEXT_SUFFIXES
    }
    if not files:
        raise TextError(
            f"corpus {name!r}: the folder {root} holds no text files ({', '.join(TEXT_SUFFIXES)})"
        )
    return _split(name, files, "unknown")


def _split(name: str, files: dict[str, Path], licence: str) -> Corpus:
    """Order documents by the hash of their names, read them, and deal them out."""
    order = sorted(files, key=lambda f: hashlib.sha256(f.encode()).digest())
    documents: list[bytes] = []
    total = 0
    for relative in order:
        text = _read(files[relative], allow_empty=len(files) > 1)
        if text and total + len(text) <= MAX_BYTES:
            documents.append(text)
            total += len(text)
    if not documents:
        raise TextError(f"corpus {name!r}: no text of 1 to {MAX_BYTES:,} bytes in it")
    if len(documents) < len(SPLITS):
        whole = b"\n".join(documents)
        train, valid, test = _split_by_position(whole)
    else:
        held = max(1, round(_SHARE_HELD_OUT * len(documents)))
        train = b"\n".join(documents[: -2 * held])
        valid = b"\n".join(documents[-2 * held : -held])
        test = b"\n".join(documents[-held:])
    digest = hashlib.sha256(b"\0".join((train, valid, test))).hexdigest()
    return Corpus(name, train, valid, test, digest, len(documents), licence)


def _split_by_position(text: bytes) -> tuple[bytes, bytes, bytes]:
    """90 : 5 : 5, cut between characters."""
    cuts = []
    for share in (1 - 2 * _SHARE_HELD_OUT, 1 - _SHARE_HELD_OUT):
        cut = int(share * len(text))
        while cut < len(text) and text[cut] & 0xC0 == 0x80:  # inside a UTF-8 character
            cut += 1
        cuts.append(cut)
    return text[: cuts[0]], text[cuts[0] : cuts[1]], text[cuts[1] :]


def _read(path: Path, allow_empty: bool = False) -> bytes:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise TextError(f"can't read {path}: {error.strerror or error}") from error
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise TextError(
            f"{path} is not UTF-8 text (byte {error.start}); convert it first: "
            "iconv -f latin1 -t utf-8"
        ) from error
    if not data and not allow_empty:
        raise TextError(f"{path} is empty")
    return data
