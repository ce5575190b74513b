"""Data sets of the Hugging Face Hub, or folders of them, through `datasets`, a few megabytes each.

Rows are streamed and reading stops at the size asked for, so nothing large is fetched.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from trf.errors import TextError, missing_extra

# name: (data set, configuration)
KNOWN: Mapping[str, tuple[str, str | None]] = {
    "wikitext-103": ("Salesforce/wikitext", "wikitext-103-raw-v1"),
    "pg19": ("emozilla/pg19", None),
    "code": ("codeparrot/codeparrot-clean-valid", None),
}
COLUMNS = ("text", "content", "code")  # which of a row's columns is the text, the first there is
_SPLITS = ("train", "validation", "test")


def read(name: str, sizes: Sequence[int]) -> list[list[bytes]]:
    """The rows of `hub:NAME`, in UTF-8, as long as they fit.

    Args:
        name: `hub:` and a name in `KNOWN`, `OWNER/NAME`, `OWNER/NAME:CONFIG`, or a folder.
        sizes: at most so many bytes of training, validation and test text.

    Returns:
        Three lists where the data set has a validation and a test split, one list otherwise.

    Raises:
        MissingExtraError: `datasets` is not installed.
        TextError: it can't be found or read, or has no column of text.
    """
    try:
        import datasets
        from datasets.exceptions import DatasetsError
    except ImportError as error:
        raise missing_extra("datasets", "hub") from error
    wanted = name.removeprefix("hub:")
    if Path(wanted).expanduser().is_dir():
        path, config = str(Path(wanted).expanduser()), None
    elif wanted in KNOWN:
        path, config = KNOWN[wanted]
    else:
        path, _, rest = wanted.partition(":")
        config = rest or None
    try:
        found: Any = datasets.load_dataset(path, config, streaming=True)
        if all(split in found for split in _SPLITS):
            return [
                _rows(name, found[split], size) for split, size in zip(_SPLITS, sizes, strict=True)
            ]
        return [_rows(name, (row for split in found.values() for row in split), sum(sizes))]
    except TextError:
        raise
    except (OSError, ValueError, DatasetsError) as error:
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        raise TextError(
            f"corpus {name!r} can't be read: {reason}. Known: "
            f"{', '.join(f'hub:{known}' for known in KNOWN)}; others are hub:OWNER/NAME, "
            "hub:OWNER/NAME:CONFIG or hub:FOLDER"
        ) from error


def _rows(name: str, rows: Iterable[Mapping[str, Any]], size: int) -> list[bytes]:
    """Texts of rows until `size` bytes are full; one that is too long for the rest ends it."""
    texts: list[bytes] = []
    total = 0
    for row in rows:
        column = next((c for c in COLUMNS if isinstance(row.get(c), str)), None)
        if column is None:
            raise TextError(
                f"corpus {name!r} has no column of text ({', '.join(COLUMNS)}), only "
                f"{', '.join(row)}"
            )
        text = row[column].encode("utf-8", errors="replace")
        if texts and total + len(text) > size:
            break
        texts.append(text[:size].decode("utf-8", errors="ignore").encode())
        total += len(text)
    if not total:
        raise TextError(f"corpus {name!r}: no text in it")
    return texts
