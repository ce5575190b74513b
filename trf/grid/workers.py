"""Who runs the cells: processes on this machine, or the workers of a Dask cluster."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tqdm.auto import tqdm

from trf.errors import ParameterError, TRFError, missing_extra
from trf.files import write_json
from trf.grid.cell import CellBusy, cell_file, run_cell
from trf.grid.plan import Cell


@dataclass
class Outcomes:
    """Names of the cells done and in other hands, and why others failed."""

    done: list[str] = field(default_factory=list)
    busy: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)

    def add(self, name: str, error: TRFError | None) -> None:
        """One cell more."""
        if error is None:
            self.done.append(name)
        elif isinstance(error, CellBusy):
            self.busy.append(name)
        else:
            self.failed[name] = str(error)


def by_processes(
    cells: list[Cell], out: Path, jobs: int, threads: int, progress: bool, keep: bool = False
) -> Outcomes:
    """Run cells in `jobs` processes of `threads` threads each; in this one if it is but one.

    Raises:
        TRFError: a process died.
    """
    outcomes = Outcomes()
    with tqdm(total=len(cells), desc="grid", unit="cell", disable=not progress) as bar:
        if jobs == 1:
            for cell in cells:
                bar.set_postfix_str(cell.name)
                outcomes.add(cell.name, _attempt(cell, out, threads, keep)[1])
                bar.update()
            return outcomes
        context = multiprocessing.get_context("spawn")
        try:
            with ProcessPoolExecutor(jobs, mp_context=context) as pool:
                futures = {pool.submit(_attempt, cell, out, threads, keep): cell for cell in cells}
                for future in as_completed(futures):
                    name = futures[future].name
                    outcomes.add(name, future.result()[1])
                    bar.set_postfix_str(name)
                    bar.update()
        except BrokenProcessPool as error:
            raise TRFError(
                "a process of the grid died (killed, or for want of memory: fewer jobs need "
                f"less); the same call goes on from what is in {out}"
            ) from error
    return outcomes


def by_dask(
    address: str, cells: list[Cell], out: Path, threads: int, progress: bool, keep: bool = False
) -> Outcomes:
    """Run cells on the workers of the Dask scheduler at `address`; a lost worker's go to others.

    Raises:
        MissingExtraError: `distributed` is not installed.
        ParameterError: there is no scheduler.
        TRFError: a cell was lost with several workers in turn.
    """
    try:
        from distributed import Client, KilledWorker
        from distributed import as_completed as as_they_come
    except ImportError as error:
        raise missing_extra("distributed", "grid") from error
    try:
        client = Client(address, timeout=20)
    except (OSError, ValueError, TypeError) as error:
        raise ParameterError(f"there is no Dask scheduler at {address!r}: {error}") from error
    outcomes = Outcomes()
    with client, tqdm(total=len(cells), desc="grid", unit="cell", disable=not progress) as bar:
        futures: dict[Any, Cell] = {
            client.submit(_attempt, cell, out, threads, keep, pure=False): cell for cell in cells
        }
        for future in as_they_come(list(futures)):
            cell = futures[future]
            try:
                record, error = future.result()
            except KilledWorker as lost:
                error = TRFError(f"lost with its workers: {lost}")
                record = None
            if record is not None and not cell_file(out, cell).exists():
                write_json(cell_file(out, cell), record)
            outcomes.add(cell.name, error)
            bar.update()
    return outcomes


def _attempt(
    cell: Cell, out: Path, threads: int, keep: bool
) -> tuple[dict[str, Any] | None, TRFError | None]:
    """The record of a cell, or why there is none: errors of ours travel as values."""
    try:
        return run_cell(cell, out, threads, keep), None
    except TRFError as error:
        return None, error
