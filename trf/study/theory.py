"""What the theory says of a trained cell: its heads with the learned values put in."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from trf.series.convergence import converges
from trf.study.cells import CellResult

if TYPE_CHECKING:
    from trf.expression import Bias


def biases(cell: CellResult, at_tokens: int | None = None) -> list[Bias] | None:
    """The bias of each head with the values it had after `at_tokens`, by default in the end.

    None where there is no p(n), or a learned value was not recorded.
    """
    if cell.entry.bias is None:
        return None
    values = cell.parameters(at_tokens)
    names = {parameter.name for parameter in cell.entry.learnable}
    if any(names - set(head) for head in values):
        return None
    return cell.entry.head_biases(cell.n_head, [{k: head[k] for k in names} for head in values])


def verdicts(heads: list[Bias]) -> list[str]:
    """Whether the series of each head converges (Qin, Zhong, Deng, arXiv 2307.10156)."""
    return [str(converges(head).status) for head in heads]


def status(found: list[str]) -> str:
    """The verdicts of the heads in a few words."""
    if len(set(found)) == 1:
        return found[0]
    return f"{found.count('converges')} of {len(found)} heads converge"


def radius(curve: np.ndarray, eps: float) -> int:
    """The least number of newest tokens with a share of the mass above 1 - eps."""
    return int(np.argmax(curve > 1 - eps)) + 1


def beyond(curves: np.ndarray, trained: int, length: int) -> list[float]:
    """Leakage ``1 - B(M)/B(N)`` of each head, from cumulative curves that reach N at least.

    In floats: the error is some 1e-13 of the mass.
    """
    share = 1 - curves[:, trained - 1] / curves[:, length - 1]
    return [rounded(value) for value in share]


def rounded(value: Any) -> float:
    """Seven digits, as the records of a grid have them."""
    return float(f"{float(value):.7g}")


def unit(cells: Iterable[CellResult]) -> str:
    """What a token is: a byte, unless a cell was trained with another tokeniser."""
    kinds = {cell.data["training"]["recipe"].get("tokeniser", "bytes") for cell in cells}
    return "byte" if kinds <= {"bytes"} else "token"
