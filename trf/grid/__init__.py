"""The grid: encodings by corpora by seeds, trained and measured cell by cell.

A cell is self-contained. It trains one model and, before it ends, records all that the experiment
needs, so no checkpoint has to be kept: perplexity and bits per byte at every length and in every
mode, loss by position, empirical fields at several N and at several budgets, logit bounds, entropy
and sinks of the attention, learned parameters, the training curve, seed, versions, hash of the
data, and the time it took. Cells that are done are skipped, a cell that was stopped goes on.

    OUT/plan.json          the preset, and the speed that turned minutes into tokens
    OUT/cells/NAME.json    one file a cell: `rows` of a tidy table, `curves`, provenance
    OUT/runs/NAME/         training state of a cell that is not done; its checkpoints, if kept
    OUT/results.csv, .json what `merge` makes of the cells
"""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import os
import statistics
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trf.errors import CheckpointError, ParameterError, unknown_name
from trf.files import write_json, write_text
from trf.grid.cell import COLUMNS, cell_file, run_cell
from trf.grid.plan import PRESETS, Budget, Cell, Preset, cells_of, parse_budget
from trf.grid.workers import by_dask, by_processes
from trf.training import LOG, train

__all__ = [
    "COLUMNS", "PRESETS", "Cell", "GridResult", "Preset", "merge", "run_cell", "run_grid",
]  # fmt: skip

PLAN, RESULTS = "plan.json", "results"


@dataclass(frozen=True)
class GridResult:
    """What a call of `run_grid` came to.

    Attributes:
        done, skipped: names of cells, measured by this call and by earlier ones.
        busy: names of cells that another process is at work on.
        failed: why a cell failed, by name; the others go on.
        tokens: that each cell was trained on.
        table: the merged table; `.json` beside it has the curves.
    """

    done: tuple[str, ...]
    skipped: tuple[str, ...]
    busy: tuple[str, ...]
    failed: dict[str, str]
    tokens: int
    table: Path

    def to_dict(self) -> dict[str, Any]:
        """As JSON-able data."""
        return {**dataclasses.asdict(self), "table": str(self.table)}

    def __str__(self) -> str:
        counts = (
            f"{len(self.done)} cells measured, {len(self.skipped)} done before, "
            f"{len(self.busy)} in other hands, {len(self.failed)} failed; {self.table}"
        )
        return "\n".join([counts, *(f"  {name}: {why}" for name, why in self.failed.items())])


def run_grid(
    encodings: Sequence[str],
    corpora: Sequence[str] = ("code",),
    out: str | Path = "grid",
    *,
    preset: str | Preset = "laptop",
    budget: int | str | None = None,
    seeds: Sequence[int] = (0,),
    texts: Mapping[str, str | Path] | None = None,
    jobs: int | None = None,
    threads: int | None = None,
    keep: bool = False,
    dask: str | None = None,
    progress: bool = True,
) -> GridResult:
    """Train and measure every encoding on every corpus with every seed.

    Args:
        encodings, corpora, seeds: of the cells.
        out: folder of the grid; further calls may add cells to it, with the same preset.
        preset: `"laptop"`, `"paper"`, `"paper-12"`, `"smoke"`, or one of your own.
        budget: tokens to train on (`3000000`, `"3M"`), or a time (`"4min"`), which is turned into
            tokens by the speed of ALiBi here, measured once a folder: every cell gets the same
            number. The preset's own unless given.
        texts: further texts to evaluate on by name, files of UTF-8; never trained on.
        jobs: processes; as many as cores (or cells) unless given.
        threads: CPU threads a process; the cores divided by the processes unless given.
        keep: leave the checkpoints in `out`; a cell whose record is deleted is then measured again
            without training.
        dask: address of a Dask scheduler, whose workers run the cells in place of processes here.
            Start them with one thread each (``dask worker ADDRESS --nthreads 1``); results are
            sent back, and `out` may be a folder that they share, where a cell goes on that a
            lost worker began.
        progress: show a progress bar.

    Returns:
        A `GridResult`. A cell that fails is in `failed`, and the next call tries it again.

    Raises:
        UnknownNameError, ParameterError: an encoding, preset or number that can't be used, or
            `out` holds a grid of another preset.
        TextError, MissingExtraError: a corpus that can't be read, or is not installed.
        CheckpointError: `out` can't be written.
        TRFError: a process died, for want of memory perhaps; the same call goes on.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     result = run_grid(["alibi"], ["code"], folder, preset="smoke", progress=False)
        >>> result.done
        ('alibi_code_s0_2048',)
    """
    if isinstance(preset, str):
        if preset not in PRESETS:
            raise unknown_name("preset", preset, PRESETS)
        preset = PRESETS[preset]
    for name, count in (("jobs", jobs), ("threads", threads)):
        if count is not None and (not isinstance(count, int) or count < 1):
            raise ParameterError(f"{name} must be a positive integer, got {count!r}")
    if not encodings or not corpora or not seeds:
        raise ParameterError("a grid needs an encoding, a corpus and a seed")
    folder = Path(out).expanduser().resolve()
    files = {name: str(Path(path).expanduser().resolve()) for name, path in (texts or {}).items()}
    wanted = parse_budget(preset.tokens if budget is None else budget)
    checked = list(cells_of(encodings, corpora, seeds, wanted.tokens or 1, preset, files))
    tokens = _tokens(folder, preset, wanted)
    cells = [dataclasses.replace(cell, tokens=tokens) for cell in checked]
    skipped = [cell for cell in cells if cell_file(folder, cell).exists()]
    todo = [cell for cell in cells if cell not in skipped]
    if dask is not None:
        outcomes = by_dask(dask, todo, folder, threads or 1, progress, keep)
    else:
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
        n_jobs = max(1, min(jobs or cores or 1, len(todo)))
        n_threads = threads or max(1, (cores or 1) // n_jobs)
        outcomes = by_processes(todo, folder, n_jobs, n_threads, progress, keep)
    return GridResult(
        done=tuple(outcomes.done),
        skipped=tuple(cell.name for cell in skipped),
        busy=tuple(outcomes.busy),
        failed=outcomes.failed,
        tokens=tokens,
        table=merge(folder),
    )


def merge(out: str | Path) -> Path:
    """Write the cells of a folder to one tidy table, ``results.csv``, and to ``results.json``.

    The table has a row a number, with the columns `COLUMNS`; the JSON has whole cells, curves and
    provenance too. Both are in the order of the cells' names, so the same cells give the same
    files.

    Returns:
        The table.

    Raises:
        CheckpointError: a cell that can't be read, or a folder that can't be written.
    """
    folder = Path(out)
    path = folder / f"{RESULTS}.csv"
    try:
        cells = [
            json.loads(file.read_text("utf-8"))
            for file in sorted((folder / "cells").glob("*.json"))
            if not file.name.startswith(".")
        ]
        table = io.StringIO()
        writer = csv.DictWriter(table, COLUMNS, lineterminator="\n")
        writer.writeheader()
        for cell in cells:
            common = {name: cell["cell"][name] for name in ("encoding", "corpus", "seed", "tokens")}
            full: list[dict[Any, Any]] = [{**common, **row} for row in cell["rows"]]
            writer.writerows(full)
        write_json(folder / f"{RESULTS}.json", {"cells": cells})
        write_text(path, table.getvalue())
    except OSError as error:
        raise CheckpointError(f"can't merge {folder}: {error.strerror or error}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise CheckpointError(f"a file in {folder / 'cells'} is no cell of a grid") from error
    return path


def _tokens(folder: Path, preset: Preset, budget: Budget) -> int:
    """The budget in tokens; refuses a folder of another preset."""
    path = folder / PLAN
    data = json.loads(json.dumps(dataclasses.asdict(preset)))
    try:
        plan = json.loads(path.read_text("utf-8")) if path.exists() else {"preset": data}
        if plan["preset"] != data:
            raise ParameterError(
                f"{folder} holds a grid of another preset ({plan['preset']['name']}, or an earlier "
                f"version of {preset.name}); choose another folder"
            )
        tokens = budget.tokens
        if tokens is None:
            if "tokens_per_second" not in plan:
                plan["tokens_per_second"] = _speed(preset)
            steps = round(budget.seconds * plan["tokens_per_second"] / preset.tokens_per_step)
            tokens = max(1, steps) * preset.tokens_per_step
        write_json(path, plan)
    except OSError as error:
        raise CheckpointError(f"can't write {path}: {error.strerror or error}") from error
    except (ValueError, KeyError, TypeError) as error:
        if isinstance(error, ParameterError):
            raise
        raise CheckpointError(f"{path} is no plan of a grid; delete it to start anew") from error
    return tokens


def _speed(preset: Preset, steps: int = 16) -> float:
    """Tokens a second in training ALiBi at this size on one thread."""
    with tempfile.TemporaryDirectory() as folder:
        train(
            "alibi",
            folder,
            tokens=steps * preset.tokens_per_step,
            threads=1,
            precision=preset.precision,
            tensorboard=False,
            progress=False,
            **preset.training,
        )
        with open(Path(folder) / LOG, encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
    return statistics.median(float(row["tokens_per_second"]) for row in rows[steps // 2 :])
