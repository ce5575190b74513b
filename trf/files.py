"""Files written whole: under a temporary name first, then renamed over the old one.

The temporary name is a process's own, for several grids may work in one folder.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any


def write(path: Path, save: Callable[[Path], Any]) -> Path:
    """Let `save` write a file, and put it in place when it is whole; makes the folder.

    If `save` fails, the old file stays as it was.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     write_text(Path(folder) / "a.txt", "hello").read_text()
        'hello'
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        save(temporary)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
    return path


def write_text(path: Path, text: str) -> Path:
    """Text in UTF-8."""
    return write(path, lambda temporary: temporary.write_text(text, "utf-8"))


def write_json(path: Path, data: Mapping[str, Any], indent: int | None = None) -> Path:
    """JSON with finite numbers only."""
    return write_text(path, json.dumps(data, indent=indent, allow_nan=False) + "\n")
