"""The cells of a grid as data: rows of numbers, curves, and where they come from."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from trf import encodings
from trf.encodings import Encoding
from trf.errors import CheckpointError, UnknownNameError


@dataclass(frozen=True, eq=False)
class CellResult:
    """One trained and measured model.

    Attributes:
        data: the record, as `trf.grid.run_cell` writes it.
    """

    data: dict[str, Any]

    @property
    def encoding(self) -> str:
        """Name of the encoding."""
        return self.data["cell"]["encoding"]

    @property
    def corpus(self) -> str:
        """Name of the corpus."""
        return self.data["cell"]["corpus"]

    @property
    def seed(self) -> int:
        """Seed of the training."""
        return self.data["cell"]["seed"]

    @property
    def tokens(self) -> int:
        """Tokens it was trained on."""
        return self.data["cell"]["tokens"]

    @property
    def entry(self) -> Encoding:
        """The encoding of the catalogue."""
        return encodings.get(self.encoding)

    @property
    def title(self) -> str:
        """The encoding in words."""
        return self.entry.title

    @property
    def n_layer(self) -> int:
        """Layers of the decoder."""
        return int(self.data["training"]["recipe"]["n_layer"])

    @property
    def n_head(self) -> int:
        """Heads of a layer."""
        return int(self.data["training"]["recipe"]["n_head"])

    @property
    def train_length(self) -> int:
        """Tokens of a training window."""
        return int(self.data["training"]["recipe"]["length"])

    @property
    def trained(self) -> int:
        """Tokens trained on in whole steps: the `at_tokens` of what was measured in the end."""
        return int(self.data["training"]["tokens"])

    def rows(self, quantity: str, **where: Any) -> list[dict[str, Any]]:
        """Rows of a quantity, with the given columns; of the end of training unless `at_tokens`."""
        where = {"at_tokens": self.trained, "text": "test", **where}
        return [
            row
            for row in self._by_quantity.get(quantity, [])
            if all(row.get(name) == value for name, value in where.items())
        ]

    def values(self, quantity: str, **where: Any) -> list[float]:
        """Their values, in the order they were written; without missing ones."""
        return [row["value"] for row in self.rows(quantity, **where) if "value" in row]

    def value(self, quantity: str, **where: Any) -> float | None:
        """The value of the only such row; None if there is none."""
        found = self.values(quantity, **where)
        if len(found) > 1:
            raise LookupError(f"{len(found)} rows of {quantity} with {where}")
        return found[0] if found else None

    def by_head(self, quantity: str, **where: Any) -> list[list[float]]:
        """Values by layer and head; NaN where there is none. At most one row of each must match."""
        rows = self.rows(quantity, **where)
        if len({(row["layer"], row["head"]) for row in rows}) < len(rows):
            raise LookupError(f"several rows of a head of {quantity} with {where}")
        table = [[float("nan")] * self.n_head for _ in range(self.n_layer)]
        for row in rows:
            table[row["layer"]][row["head"]] = row.get("value", float("nan"))
        return table

    def curve(self, quantity: str, **where: Any) -> dict[str, Any] | None:
        """The curve of a quantity with these entries; None if it was not measured."""
        if quantity == "erf":
            where = {"at_tokens": self.trained, **where}
        for curve in self.data["curves"]:
            entries = {"quantity": quantity, **where}
            if all(curve.get(name) == value for name, value in entries.items()):
                return None if "missing" in curve else curve
        return None

    def parameters(self, at_tokens: int | None = None) -> list[dict[str, float]]:
        """Learned parameters of the bias, one mapping a head; empty ones where there are none."""
        at = self.trained if at_tokens is None else at_tokens
        heads: list[dict[str, float]] = [{} for _ in range(self.n_head)]
        for quantity, rows in self._by_quantity.items():
            if quantity.startswith("parameter "):
                for row in rows:
                    if row["at_tokens"] == at and "value" in row:
                        heads[row["head"]][quantity.removeprefix("parameter ")] = row["value"]
        return heads

    @cached_property
    def _by_quantity(self) -> dict[str, list[dict[str, Any]]]:
        table: dict[str, list[dict[str, Any]]] = {}
        for row in self.data["rows"]:
            table.setdefault(row["quantity"], []).append(row)
        return table


class Cells(Sequence[CellResult]):
    """All cells of a folder, in the order of the catalogue, then corpus, tokens and seed."""

    def __init__(self, cells: Iterable[CellResult]):
        order = encodings.names()
        self._cells = sorted(
            cells, key=lambda c: (order.index(c.encoding), c.corpus, c.tokens, c.seed)
        )

    def __len__(self) -> int:
        return len(self._cells)

    def __getitem__(self, index: Any) -> Any:
        return self._cells[index]

    def __iter__(self) -> Iterator[CellResult]:
        return iter(self._cells)

    @property
    def budget(self) -> int:
        """The number of training tokens that most cells have; 0 without cells."""
        counts = [cell.tokens for cell in self._cells]
        return max(sorted(set(counts)), key=counts.count, default=0)

    @property
    def main(self) -> Cells:
        """The cells of the grid proper: that budget, and the first seed that has it."""
        budget = self.budget
        seed = min((cell.seed for cell in self._cells if cell.tokens == budget), default=0)
        return self.where(tokens=budget, seed=seed)

    @property
    def corpora(self) -> list[str]:
        """Names of the corpora: those of trf in its own order, then others."""
        own = ["code", "encyclopedia", "books", "mixed"]
        present = {cell.corpus for cell in self._cells}
        return [*(name for name in own if name in present), *sorted(present - set(own))]

    @property
    def encodings(self) -> list[str]:
        """Names of the encodings, in the order of the catalogue."""
        return list(dict.fromkeys(cell.encoding for cell in self._cells))

    def where(self, **equal: Any) -> Cells:
        """The cells with these attributes."""
        return Cells(c for c in self if all(getattr(c, k) == v for k, v in equal.items()))

    def one(self, **equal: Any) -> CellResult | None:
        """The only such cell; None if there is none."""
        found = self.where(**equal)
        if len(found) > 1:
            raise LookupError(f"{len(found)} cells with {equal}")
        return found[0] if found else None


def read_cells(folder: str | Path) -> Cells:
    """The cells of a grid's folder.

    Raises:
        CheckpointError: a file there is no cell, or one of an encoding that is not known.
    """
    cells = []
    for path in sorted((Path(folder) / "cells").glob("*.json")):
        if path.name.startswith("."):
            continue
        try:
            data = json.loads(path.read_text("utf-8"))
            cells.append(CellResult(data))
            _ = cells[-1].entry, cells[-1].trained, data["rows"], data["curves"]
        except (OSError, ValueError, KeyError, TypeError, UnknownNameError) as error:
            raise CheckpointError(f"{path} is no cell of a grid") from error
    return Cells(cells)
