"""All parts of the experiment from the cells of a grid: numbers, figures, and the report.

    FOLDER/cells/NAME.json      the cells, as `trf grid` writes them
    FOLDER/report.in.md         the text of the report, with placeholders (optional)
    FOLDER/PART.json .pdf .png  what each part writes
    FOLDER/README.md            the report with its numbers filled in

Placeholders are written ``{{name}}``; a part's `words` gives their values, so that no number in the
report is typed by hand. Without a text of its own, a folder gets all tables under plain headings.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from tqdm.auto import tqdm

import trf
from trf.errors import CheckpointError, ParameterError
from trf.files import write_json, write_text
from trf.study import agreement, extrapolation, fields, leakage, learned, masks, training
from trf.study.cells import Cells, read_cells
from trf.study.cost import cost_words
from trf.study.markdown import table

PARTS: tuple[ModuleType, ...] = (
    extrapolation, masks, fields, agreement, leakage, learned, training,
)  # fmt: skip
TEMPLATE, REPORT, COST = "report.in.md", "README.md", "cost.json"
_HEADING = "# Cells of a grid"
_PLACEHOLDER = re.compile(r"\{\{\s*([a-z0-9_]+)\s*\}\}")


def make_study(folder: str | Path, *, progress: bool = True) -> list[Path]:
    """Write every part's numbers and figure, and the report, beside the cells of a grid.

    Args:
        folder: of a grid.
        progress: show a progress bar.

    Returns:
        The files written. A part that has nothing to show is left out.

    Raises:
        CheckpointError: no cells there, a file that is no cell, a README.md that is not this
            report, or a file that can't be written.
        ParameterError: the report's text names a number that no part gives.
    """
    import matplotlib as mpl

    out = Path(folder)
    cells = read_cells(out)
    if not len(cells):
        raise CheckpointError(f"{out} has no cells of a grid; make some with: trf grid --out {out}")
    _check_report(out)
    words = {**facts(cells), **cost_words(out / COST)}
    paths: list[Path] = []
    shown: list[str] = []
    backend = mpl.get_backend()
    mpl.use("agg", force=True)
    try:
        from trf import plotting

        bar = tqdm(PARTS, desc="study", unit="part", disable=not progress)
        for part in bar:
            bar.set_postfix_str(part.NAME)
            result = part.summarise(cells)
            words.update(part.words(result))
            record = {"figure": part.NAME, "command": "trf figures", **provenance(cells), **result}
            paths.append(write_json(out / f"{part.NAME}.json", record, indent=1))
            try:
                figure = part.draw(result)
            except ParameterError:  # nothing to draw
                continue
            drawn = plotting.save(figure, out / part.NAME)
            paths += drawn
            shown += [path.name for path in drawn if path.suffix == ".png"]
            plotting.plt.close(figure)
        paths.append(write_text(out / REPORT, fill(_template(out, words, shown), words)))
    except OSError as error:
        raise CheckpointError(f"can't write {error.filename or out}: {error.strerror}") from error
    finally:
        mpl.use(backend, force=True)
    return paths


def fill(text: str, words: Mapping[str, str]) -> str:
    """The text with its placeholders replaced.

    Raises:
        ParameterError: a placeholder without a value.

    Example:
        >>> fill("ALiBi sees {{radius}} tokens.", {"radius": "455"})
        'ALiBi sees 455 tokens.'
    """
    missing = sorted({name for name in _PLACEHOLDER.findall(text) if name not in words})
    if missing:
        raise ParameterError(f"the report names numbers that no part gives: {', '.join(missing)}")
    return _PLACEHOLDER.sub(lambda match: words[match[1]], text)


def provenance(cells: Cells) -> dict[str, Any]:
    """Versions and seeds of the cells, and the version that read them."""
    versions = {name: set() for name in ("trf", "torch", "numpy", "python")}
    for cell in cells:
        for name, found in versions.items():
            found.add(str(cell.data["versions"].get(name, "?")))
    return {
        "read_by": trf.__version__,
        "versions": {name: sorted(found) for name, found in versions.items()},
        "seeds": sorted({cell.seed for cell in cells}),
        "n_cells": len(cells),
    }


def facts(cells: Cells) -> dict[str, str]:
    """The set-up, in words: shape, budget, text, core-hours."""
    recipe = cells[0].data["training"]["recipe"]
    preset = cells[0].data["cell"]["preset"]
    hours = sum(
        cell.data["training"]["threads"] * sum(cell.data["seconds"].values()) for cell in cells
    )
    known = provenance(cells)
    return {
        "n_cells": str(len(cells)),
        "n_layer": str(recipe["n_layer"]),
        "n_head": str(recipe["n_head"]),
        "n_embd": str(recipe["n_embd"]),
        "n_parameters": str(cells[0].data["training"]["n_parameters"]),
        "train_length": str(recipe["length"]),
        "batch": str(recipe["batch"]),
        "learning_rate": f"{recipe['learning_rate']:g}",
        "budget": f"{cells.budget:,}",
        "budgets": ", ".join(f"{n:,}" for n in sorted({cell.tokens for cell in cells})),
        "longest": str(max(max(cell.data["cell"]["preset"]["lengths"]) for cell in cells)),
        "n_segments": str(preset["n_segments"]),
        "n_windows": str(preset["n_windows"]),
        "window": str(preset["window"]),
        "stride": str(preset["stride"]),
        "hours": f"{hours / 3600:.1f}",
        "versions": ", ".join(
            f"{name} {' and '.join(found)}" for name, found in known["versions"].items()
        ),
        "cells_table": _cells_table(cells),
    }


def _cells_table(cells: Cells) -> str:
    """Bits per byte on held-out text at the train length, for every cell of the grid proper."""
    rows = []
    for name in cells.main.encodings:
        found = [cells.main.one(encoding=name, corpus=corpus) for corpus in cells.corpora]
        bits = [cell and cell.value("valid_bits_per_byte") for cell in found]
        title = next(cell.title for cell in found if cell)
        rows.append([title, *(None if b is None else f"{b:.3f}" for b in bits)])
    return table(["encoding", *cells.corpora], rows)


def _check_report(out: Path) -> None:
    """Refuse to write over a README.md that was written by hand."""
    path = out / REPORT
    if not path.exists() or (out / TEMPLATE).exists():
        return
    if not path.read_text("utf-8", "replace").startswith(_HEADING):
        raise CheckpointError(
            f"{path} is no report of cells and would be lost; move it, or write the report's text "
            f"as {TEMPLATE}"
        )


def _template(out: Path, words: Mapping[str, str], shown: Sequence[str]) -> str:
    """The folder's own text, or all figures that were drawn and tables under plain headings."""
    own = out / TEMPLATE
    if own.exists():
        return own.read_text("utf-8")
    tables = {name for name, value in words.items() if value.startswith("| ") or "\n|" in value}
    lines = [_HEADING, "{{cells_table}}"]
    for name in shown:
        lines += [f"## {name.removesuffix('.png')}", f"![{name.removesuffix('.png')}]({name})"]
    lines += ["## Tables", *(f"{{{{{name}}}}}" for name in sorted(tables - {"cells_table"}))]
    return "\n\n".join(lines) + "\n"
