"""The families that are fitted, and how each finds its best parameters."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np
import sympy
from scipy import optimize

from trf.encodings.t5 import BUCKETS, STARTS
from trf.expression import as_bias, distance


@dataclass(frozen=True)
class Family:
    """A bias with parameters to fit.

    Attributes:
        name: in the catalogue.
        formula: p(n) as text.
        starts: parameter -> where its search begins (several values, all combinations are tried).
    """

    name: str
    formula: str
    starts: Mapping[str, Sequence[float]]


_SCALES = (0.003, 0.05, 0.7)
FAMILIES: Mapping[str, Family] = {
    family.name: family
    for family in (
        Family("none", "0", {}),
        Family("alibi", "-m*n", {"m": (0.002, 0.03, 0.4)}),
        Family("inverse-n", "-log(1+k*n)", {"k": _SCALES}),
        Family("kerple-log", "-r1*log(1+r2*n)", {"r1": (1.5,), "r2": _SCALES}),
        Family("kerple-power", "-r1*n**r2", {"r1": (0.01, 0.5), "r2": (0.4, 1.0)}),
        Family("type1", "-log(1+(k*n)**2)", {"k": _SCALES}),
        Family("type2", "-log(3+k*n)**2", {"k": _SCALES}),
    )
}
TABLES = ("window", "t5")  # fitted in closed form, or by a convex search
DEFAULT = (*FAMILIES, *TABLES)
_RANGE = (1e-6, 1e3)  # of a positive parameter
_RANGES = {"r1": (1e-6, 100.0), "r2": (1e-6, 100.0)}
_OPTIONS = {"ftol": 1e-11, "gtol": 1e-7, "maxiter": 150}
_LEAST_VARIANCE = 1e-16  # of log-weights that a bias describes up to rounding
_LARGEST = 1e9  # of a bias, in the search
CUT = 1e-12  # a share of the mass below which a key counts as hidden


@dataclass(frozen=True)
class Data:
    """T(n) of W windows, and the likelihood of a bias."""

    totals: np.ndarray
    n_windows: int

    @property
    def n_queries(self) -> int:
        """W N."""
        return self.n_windows * len(self.totals)

    @property
    def length(self) -> int:
        """N: how many distances."""
        return len(self.totals)

    def objective(self, p: np.ndarray, slopes: Sequence[np.ndarray]) -> tuple[float, np.ndarray]:
        """Minus the log-likelihood a query, and its slopes, from those of p."""
        weights = np.exp(p - p.max())
        sums = np.cumsum(weights)
        value = self.totals @ p - self.n_windows * (np.log(sums).sum() + len(p) * p.max())
        slope = [
            self.totals @ d - self.n_windows * (np.cumsum(weights * d) / sums).sum() for d in slopes
        ]
        return -value / self.n_queries, -np.array(slope) / self.n_queries

    def log_likelihood(self, p: np.ndarray) -> float:
        """In nats; p may be -inf where nothing was measured."""
        top = p.max()
        log_sums = np.log(np.cumsum(np.exp(p - top))) + top
        seen = self.totals > 0
        return float(self.totals[seen] @ p[seen] - self.n_windows * log_sums.sum())


@dataclass(frozen=True)
class LogData:
    """Mean log-weights by distance, up to a constant, and how well a bias describes them."""

    values: np.ndarray

    @property
    def length(self) -> int:
        """M: how many distances, the token itself included."""
        return len(self.values)

    @cached_property
    def used(self) -> np.ndarray:
        """Finite values from n = 1 on: a token's product with itself is like no other."""
        return np.isfinite(self.values) & (np.arange(self.length) > 0)

    def residuals(self, p: np.ndarray) -> np.ndarray:
        """What p leaves, its mean taken out."""
        left = (self.values - p)[self.used]
        return left - left.mean()

    def objective(self, p: np.ndarray, slopes: Sequence[np.ndarray]) -> tuple[float, np.ndarray]:
        """The mean square left, and its slopes, from those of p."""
        left = self.residuals(p)
        slope = [-2 * (left * d[self.used]).mean() for d in slopes]
        return float(np.square(left).mean()), np.array(slope)

    def log_likelihood(self, p: np.ndarray, variance: float | None = None) -> float:
        """Of Gaussian residuals, with the best variance unless one is given."""
        squares = float(np.square(self.residuals(p)).mean())
        v = max(squares if variance is None else variance, _LEAST_VARIANCE)
        return -0.5 * int(self.used.sum()) * (math.log(2 * math.pi * v) + squares / v)


def solve(
    family: str, data: Data | LogData, near: Mapping[str, float] | None = None
) -> tuple[dict[str, float], np.ndarray, str]:
    """The best parameters, p(0) ... p(N-1) and the formula with the values put in.

    `near` are parameters to start from, instead of the family's own starts.
    """
    if family == "window":
        assert isinstance(data, Data)
        return _window(data)
    if family == "t5":
        return _table(data) if isinstance(data, Data) else _mean_table(data)
    return _search(FAMILIES[family], data, near)


@cache
def _compiled(formula: str) -> tuple[tuple[str, ...], Callable[..., Any], sympy.Expr]:
    """The parameters' names, (n, values) -> p and its slopes in their logarithms, and p."""
    bias = as_bias(formula)
    symbols = bias.parameters
    slopes = [symbol * sympy.diff(bias.expr, symbol) for symbol in symbols]
    function = sympy.lambdify([distance(), *symbols], [bias.expr, *slopes], modules="numpy")
    return tuple(symbol.name for symbol in symbols), function, bias.expr


def _search(
    family: Family, data: Data | LogData, near: Mapping[str, float] | None
) -> tuple[dict[str, float], np.ndarray, str]:
    """Quasi-Newton in the logarithms of the parameters, from every start."""
    names, function, expr = _compiled(family.formula)
    n = np.arange(data.length, dtype=float)

    def rows(logs: np.ndarray) -> np.ndarray:
        """p(n) and its slopes, (1 + k, N); slopes are 0 at n = 0 where log(n) makes them none."""
        with np.errstate(all="ignore"):
            values = function(n, *np.exp(logs))
        stacked = np.stack([np.broadcast_to(v, n.shape) for v in values])
        return np.nan_to_num(stacked, nan=0.0).clip(-_LARGEST, _LARGEST)

    def loss(logs: np.ndarray) -> tuple[float, np.ndarray]:
        p, *slopes = rows(logs)
        return data.objective(p, slopes)

    if not names:
        return {}, rows(np.empty(0))[0], family.formula
    starts = family.starts if near is None else {name: (near[name],) for name in names}
    bounds = [tuple(np.log(_RANGES.get(name, _RANGE))) for name in names]
    found = min(
        (
            optimize.minimize(loss, np.log(start), jac=True, method="L-BFGS-B", bounds=bounds,
                              options=_OPTIONS)
            for start in itertools.product(*(starts[name] for name in names))
        ),
        key=lambda result: result.fun,
    )  # fmt: skip
    values = {name: float(f"{v:.6g}") for name, v in zip(names, np.exp(found.x), strict=True)}
    formula = expr
    for symbol in as_bias(family.formula).parameters:
        formula = formula.subs(symbol, sympy.Rational(repr(values[symbol.name])))
    return values, rows(found.x)[0], str(formula)


def _window(data: Data) -> tuple[dict[str, float], np.ndarray, str]:
    """Every width is scored; a hidden key's weight counts as 1e-12, not as 0."""
    N = len(data.totals)
    w = np.arange(1, N + 1)
    logs = np.log(w)
    sums = np.cumsum(logs) + (N - w) * logs  # of log(visible keys)
    beyond = data.totals.sum() - np.cumsum(data.totals)
    best = int(np.argmax(np.log(CUT) * beyond - data.n_windows * sums)) + 1
    p = np.where(np.arange(N) < best, 0.0, np.log(CUT))
    return {"w": float(best)}, p, f"Piecewise((0, n < {best}), (-oo, True))"


def _table(data: Data) -> tuple[dict[str, float], np.ndarray, str]:
    """T5's buckets by a convex search; b0 = 0, for only differences matter."""
    N = len(data.totals)
    starts = [s for s in STARTS[:BUCKETS] if s < N]
    bucket = np.searchsorted(starts, np.arange(N), side="right") - 1
    mass = np.bincount(bucket, data.totals, minlength=len(starts))
    member = np.cumsum(bucket == np.arange(len(starts))[:, None], axis=1)  # (buckets, N)

    def loss(free: np.ndarray) -> tuple[float, np.ndarray]:
        b = np.concatenate([[0.0], free])
        top = b.max()
        parts = np.exp(b - top)[:, None] * member
        sums = parts.sum(axis=0)
        value = mass @ b - data.n_windows * (np.log(sums) + top).sum()
        slope = mass - data.n_windows * (parts / sums).sum(axis=1)
        return -value / data.n_queries, -slope[1:] / data.n_queries

    bounds = [(-40.0, 40.0)] * (len(starts) - 1)
    found = optimize.minimize(loss, np.zeros(len(starts) - 1), jac=True, method="L-BFGS-B",
                              bounds=bounds, options=_OPTIONS)  # fmt: skip
    return _table_of(found.x, starts, bucket)


def _mean_table(data: LogData) -> tuple[dict[str, float], np.ndarray, str]:
    """T5's buckets: the mean of the log-weights in each, less that of the first."""
    starts = [s for s in STARTS[:BUCKETS] if s < data.length]
    bucket = np.searchsorted(starts, np.arange(data.length), side="right") - 1
    finite = np.isfinite(data.values)
    counts = np.bincount(bucket[finite], minlength=len(starts))
    sums = np.bincount(bucket[finite], data.values[finite], minlength=len(starts))
    means = np.where(counts > 0, sums / np.maximum(counts, 1), np.log(CUT))
    return _table_of(means[1:] - means[0], starts, bucket)


def _table_of(
    free: np.ndarray, starts: list[int], bucket: np.ndarray
) -> tuple[dict[str, float], np.ndarray, str]:
    b = [0.0, *(float(f"{v:.6g}") for v in free)]
    pieces = [f"({b[k]!r}, n < {starts[k + 1]})" for k in range(len(starts) - 1)]
    formula = f"Piecewise({', '.join([*pieces, f'({b[-1]!r}, True)'])})"
    return {f"b{k}": value for k, value in enumerate(b) if k}, np.array(b)[bucket], formula
