"""The log of a training run: CSV, a row a step, and TensorBoard where it is installed."""

from __future__ import annotations

import contextlib
import csv
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from trf.errors import CheckpointError

LOG = "log.csv"
COLUMNS = ("step", "tokens", "loss", "valid_bits_per_byte", "learning_rate", "tokens_per_second")


class Log:
    """Rows of `COLUMNS`, to a CSV file and to TensorBoard; to nothing without a file."""

    def __init__(self, rows: Any, board: Any):
        self._rows, self._board = rows, board

    def write(self, step: int, tokens: int, **values: float | None) -> None:
        """One row; None is an empty cell."""
        if self._rows is not None:
            self._rows.writerow({"step": step, "tokens": tokens, **values})
        if self._board is not None:
            for name, value in values.items():
                if value is not None:
                    self._board.add_scalar(name, value, step)


@contextlib.contextmanager
def open_log(folder: Path, start: int, *, tensorboard: bool, write: bool) -> Iterator[Log]:
    """A log that goes on after the row of step `start`, line by line.

    Raises:
        CheckpointError: it can't be written.
    """
    if not write:
        yield Log(None, None)
        return
    path = folder / LOG
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lines = path.read_text("utf-8").splitlines(True) if path.exists() and start else []
        kept = [",".join(COLUMNS) + "\n", *lines[1 : start + 1]]
        temporary = path.with_name(f".{LOG}.tmp")
        temporary.write_text("".join(kept), "utf-8")
        temporary.replace(path)
        with (
            open(path, "a", encoding="utf-8", buffering=1, newline="") as file,
            _board(folder, start, tensorboard) as board,
        ):
            yield Log(csv.DictWriter(file, COLUMNS, lineterminator="\n"), board)
    except OSError as error:
        raise CheckpointError(f"can't write {path}: {error.strerror or error}") from error


def losses(folder: Path) -> list[float]:
    """The loss of every step so far, in nats per token; the text of a float gives it back."""
    with open(folder / LOG, encoding="utf-8", newline="") as file:
        return [float(row["loss"]) for row in csv.DictReader(file)]


def mean_of_last_tenth(values: list[float]) -> float:
    """The mean of the last tenth of the values, at least of one; not a number without any."""
    last = values[-max(1, len(values) // 10) :]
    return sum(last) / len(last) if last else math.nan


@contextlib.contextmanager
def _board(folder: Path, start: int, wanted: bool) -> Iterator[Any]:
    """A writer of TensorBoard that forgets what an earlier call wrote past `start`."""
    if not wanted:
        yield None
        return
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        yield None
        return
    with SummaryWriter(str(folder), purge_step=start + 1 if start else None) as board:
        yield board
