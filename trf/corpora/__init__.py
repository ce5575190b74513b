"""Corpora: real text, split into training, validation and test, with a hash of what it is.

A corpus is bytes of UTF-8. Four slots have a name for what they hold:

| name | text | documents |
|---|---|---|
| `encyclopedia` | Wikipedia's leads and articles, the World Factbook | an article, a country |
| `books` | the King James Version, Shakespeare's plays and poems | a book, a play |
| `code` | the Python standard library's own sources | a module |
| `mixed` | half `encyclopedia`, half `books`, in each of the three parts | as above |

`code` is on every machine that runs trf; the others read packages that carry text (`INSTALL` says
how to get them, `trf.corpora.sources` names the packages and the licences). `hub:NAME` is a data
set of the Hugging Face Hub, or a folder of one, and `path:FILE_OR_FOLDER` any text of yours.
"""

from __future__ import annotations

import hashlib
import sysconfig
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from trf.corpora import hub, sources
from trf.corpora.sources import INSTALL
from trf.errors import TextError, unknown_name
from trf.tokenisers import Text, tokenise

__all__ = [
    "INSTALL", "MAX_BYTES", "SPLITS", "TEXT_SUFFIXES", "Corpus", "Text", "corpus_names", "load",
    "read_text", "tokenise",
]  # fmt: skip

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
    return list(_SLOTS)


def load(name: str) -> Corpus:
    """Read a corpus.

    Args:
        name: one of `corpus_names()`, `"path:FILE_OR_FOLDER"` or `"hub:NAME"`.

            - A folder is read recursively, files with the suffix of a text only (`TEXT_SUFFIXES`),
              split by file; fewer than three files are joined and split by position, 90 : 5 : 5.
            - `hub:wikitext-103`, `hub:pg19` and `hub:code` are known; any other data set is
              `hub:OWNER/NAME`, with `:CONFIG` where it has several, and a folder with one is
              `hub:FOLDER`. Its own splits are kept; without them, rows are documents.

            At most 12 million bytes are read.

    Guarantees: the same files give the same corpus, in an order that depends on their relative
        names alone. No document is in two splits, unless there are fewer than three; what several
        sources have under the same title counts as one document.

    Raises:
        UnknownNameError: no such corpus.
        MissingExtraError: it is in a package that is not installed; the message says which.
        TextError: nothing there, empty, unreadable, or not UTF-8.

    Example:
        >>> load("code").name
        'code'
    """
    if name.startswith("path:"):
        return _from_path(name)
    if name.startswith("hub:"):
        return _from_hub(name)
    if name in _SLOTS:
        return _SLOTS[name]()
    known = [*corpus_names(), "path:FILE_OR_FOLDER", "hub:NAME"]
    raise unknown_name("corpus", name, known)


def read_text(path: str | Path) -> str:
    """Read one UTF-8 text file.

    Raises:
        TextError: missing, a folder, unreadable, empty, or not UTF-8 (with the byte's position).
    """
    return _read(Path(path)).decode("utf-8")


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
    return _corpus("code", _deal("code", _files(files)), "PSF-2.0")


def _encyclopedia() -> Corpus:
    documents = _by_title(sources.summaries(), sources.articles(), sources.factbook())
    licence = "CC BY-SA (Wikipedia), public domain (World Factbook)"
    return _corpus("encyclopedia", _deal("encyclopedia", documents), licence)


def _books() -> Corpus:
    documents = _by_title(sources.king_james(), sources.shakespeare())
    return _corpus("books", _deal("books", documents), "public domain")


def _mixed() -> Corpus:
    """As many bytes of the one as of the other, in the three parts alike."""
    halves = (_encyclopedia(), _books())

    def both(split: str) -> list[bytes]:
        texts = [half.split(split) for half in halves]
        size = min(MAX_BYTES // 2, *map(len, texts))
        return [_cut_after_line(text, size) for text in texts]

    licence = "; ".join(half.licence for half in halves)
    n_documents = sum(half.n_documents for half in halves)
    parts = _Parts(both("train"), both("valid"), both("test"), n_documents)
    return _corpus("mixed", parts, licence)


_SLOTS: Mapping[str, Callable[[], Corpus]] = {
    "encyclopedia": _encyclopedia,
    "books": _books,
    "code": _code,
    "mixed": _mixed,
}


def _from_path(name: str) -> Corpus:
    root = Path(name.removeprefix("path:")).expanduser()
    if not root.exists():
        raise TextError(f"corpus {name!r}: there is nothing at {root}")
    if root.is_file():
        return _corpus(name, _deal(name, _files({root.name: root})), "unknown")
    files = {
        path.relative_to(root).as_posix(): path
        for path in root.rglob("*")
        if path.is_file() and path.suffix.lower() in TEXT_SUFFIXES
    }
    if not files:
        raise TextError(
            f"corpus {name!r}: the folder {root} holds no text files ({', '.join(TEXT_SUFFIXES)})"
        )
    return _corpus(name, _deal(name, _files(files)), "unknown")


def _from_hub(name: str) -> Corpus:
    held_out = int(_SHARE_HELD_OUT * MAX_BYTES)
    sizes = (MAX_BYTES - 2 * held_out, held_out, held_out)
    splits = hub.read(name, sizes)
    if len(splits) == len(SPLITS):
        train, valid, test = splits
        parts = _Parts(train, valid, test, sum(map(len, splits)))
    else:
        rows = [row for split in splits for row in split]
        parts = _deal(name, {f"{i}": lambda row=row: row for i, row in enumerate(rows)})
    return _corpus(name, parts, "see the data set's card")


Documents = Mapping[str, Callable[[], bytes]]
"""Documents by a name that fixes their order and keeps them together; read when called."""


@dataclass(frozen=True)
class _Parts:
    """Documents dealt out to the three splits."""

    train: list[bytes]
    valid: list[bytes]
    test: list[bytes]
    n_documents: int


def _files(files: Mapping[str, Path]) -> Documents:
    return {
        name: lambda path=path: _read(path, allow_empty=len(files) > 1)
        for name, path in files.items()
    }


def _by_title(*texts: Iterable[tuple[str, str]]) -> Documents:
    """Documents by title; what several sources say under one title stays together."""
    joined: dict[str, list[str]] = {}
    for title, text in (pair for source in texts for pair in source):
        joined.setdefault(title.casefold(), []).append(text)
    return {
        title: lambda pieces=pieces: "\n".join(pieces).encode("utf-8")
        for title, pieces in joined.items()
    }


def _deal(name: str, documents: Documents) -> _Parts:
    """Order documents by the hash of their names, read them, and deal them out."""
    order = sorted(documents, key=lambda title: hashlib.sha256(title.encode()).digest())
    kept: list[bytes] = []
    total = 0
    for title in order:
        text = documents[title]()
        if text and total + len(text) <= MAX_BYTES:
            kept.append(text)
            total += len(text)
    if not kept:
        raise TextError(f"corpus {name!r}: no text of 1 to {MAX_BYTES:,} bytes in it")
    if len(kept) < len(SPLITS):
        train, valid, test = _split_by_position(b"\n".join(kept))
        return _Parts([train], [valid], [test], len(kept))
    held = max(1, round(_SHARE_HELD_OUT * len(kept)))
    return _Parts(kept[: -2 * held], kept[-2 * held : -held], kept[-held:], len(kept))


def _corpus(name: str, parts: _Parts, licence: str) -> Corpus:
    train, valid, test = (b"\n".join(part) for part in (parts.train, parts.valid, parts.test))
    digest = hashlib.sha256(b"\0".join((train, valid, test))).hexdigest()
    return Corpus(name, train, valid, test, digest, parts.n_documents, licence)


def _cut_after_line(text: bytes, size: int) -> bytes:
    return text if len(text) <= size else text[: text.rfind(b"\n", 0, size) + 1]


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
