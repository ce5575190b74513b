"""Which encoding did a head learn? Fitting the catalogue's families to measured attention.

Two ways. `fit_logs` reads the mean of the log-weights at each distance: for a head with bias p,

    mean over queries of ln a_{i, i-n} = p(n) + mean content logit at distance n + constant,

so content that does not depend on the distance falls out, and p is fitted by least squares.
`fit_head` reads the weights themselves. With T(n) the weight at distance n, summed over queries,
and W queries at each position, every query counting as one draw from its weights,

    log L = sum_n T(n) p(n) - W sum_i log B(i + 1),   B(j) = sum_{n<j} exp(p(n)),

which describes where the mass goes, content included. Families compare by the Bayesian information
criterion, BIC = k log(count) - 2 log L (Schwarz 1978), the count that of queries or of distances,
or by windows that they were not fitted to.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from trf.errors import ParameterError, unknown_name
from trf.expression import Bias, as_bias
from trf.fit.families import CUT, DEFAULT, FAMILIES, Data, Family, LogData, solve
from trf.series.convergence import converges
from trf.series.verdict import Verdict
from trf.theory import ReceptiveField, theoretical_receptive_field

__all__ = ["DEFAULT", "FAMILIES", "Family", "Fit", "HeadFit", "fit_field", "fit_head", "fit_logs"]


FROM_LOGS = tuple(name for name in DEFAULT if name != "window")
_FEWEST = 8  # distances that a fit to log-weights needs


class Profile(Protocol):
    """What `fit_field` reads: an `AttentionField`."""

    totals: np.ndarray
    half_windows: tuple[int, int]
    log_weights: np.ndarray


@dataclass(frozen=True)
class Fit:
    """One family fitted to one head.

    Attributes:
        family: its name in the catalogue.
        parameters: the fitted values; for T5 those of the buckets b0, b1, ..., relative to b0.
        n_parameters: k, how many.
        log_likelihood: of all queries, or of all distances for `fit_logs`; in nats.
        bic: k log(count) - 2 log L; the least is best.
        held_out: log-likelihood a query (a distance), in nats, of the windows left out of the fit;
            None unless that is the criterion.
        formula: p(n) with the values put in.
    """

    family: str
    parameters: dict[str, float]
    n_parameters: int
    log_likelihood: float
    bic: float
    held_out: float | None
    formula: str

    @cached_property
    def bias(self) -> Bias:
        """The fitted p(n)."""
        return as_bias(self.formula)

    @cached_property
    def verdict(self) -> Verdict:
        """Whether its series converges."""
        return converges(self.bias)

    def receptive_field(self, eps: Any = 0.01, length: int | None = None) -> ReceptiveField:
        """The TRF of the fitted bias, at a finite length or in the limit.

        Raises:
            DivergenceError: in the limit, if its series diverges.
        """
        return theoretical_receptive_field(self.bias, eps, length=length)

    def to_dict(self) -> dict[str, Any]:
        """As JSON-able data."""
        return {
            "family": self.family,
            "parameters": dict(self.parameters),
            "n_parameters": self.n_parameters,
            "log_likelihood": self.log_likelihood,
            "bic": self.bic,
            "held_out": self.held_out,
            "formula": self.formula,
        }


@dataclass(frozen=True)
class HeadFit:
    """All families fitted to one head, the best first.

    Attributes:
        fits: by ascending BIC, or by descending held-out likelihood.
        criterion: ``"bic"`` or ``"held-out"``.
        count: queries measured, W N, or distances for `fit_logs`.
        length: how many distances there were, the token itself included.
    """

    fits: tuple[Fit, ...]
    criterion: str
    count: int
    length: int

    @property
    def best(self) -> Fit:
        """The family that the criterion prefers."""
        return self.fits[0]

    def __getitem__(self, family: str) -> Fit:
        for fit in self.fits:
            if fit.family == family:
                return fit
        raise unknown_name("fitted family", family, [fit.family for fit in self.fits])

    def weights(self) -> dict[str, float]:
        """exp(-(BIC - least)/2), normalised: the odds of the families, if one of them is true."""
        bic = np.array([fit.bic for fit in self.fits])
        odds = np.exp(-(bic - bic.min()) / 2)
        return {f.family: float(w) for f, w in zip(self.fits, odds / odds.sum(), strict=True)}

    def to_dict(self) -> dict[str, Any]:
        """As JSON-able data."""
        return {
            "criterion": self.criterion,
            "count": self.count,
            "length": self.length,
            "fits": [fit.to_dict() for fit in self.fits],
        }

    def __str__(self) -> str:
        rows = []
        for fit in self.fits:
            values = "" if fit.family == "t5" else ", ".join(
                f"{name} = {value:.4g}" for name, value in fit.parameters.items()
            )  # fmt: skip
            held = "" if fit.held_out is None else f"  {fit.held_out:10.5f}"
            rows.append(f"  {fit.family:14}{fit.bic:14.1f}{held}  {values}")
        head = f"  {'family':14}{'BIC':>14}" + (
            "" if self.best.held_out is None else "    held out"
        )
        return "\n".join([head, *rows])


def fit_head(
    totals: Any,
    n_windows: int | tuple[int, ...],
    *,
    families: Sequence[str] = DEFAULT,
    criterion: str = "bic",
) -> HeadFit:
    """Fit the catalogue's families to the attention of one head.

        maximise  sum_n T(n) p(n) - W sum_i log B(i + 1)   over the parameters of p

    Args:
        totals: T, the weight at distance n = 0 ... N-1 summed over the N queries of each window,
            (N,); or of two halves of the windows, (2, N), of which each is then also scored by the
            fit to the other.
        n_windows: W, or the windows in each half.
        families: names in the catalogue, of `DEFAULT`.
        criterion: ``"bic"``, or ``"held-out"``, which needs two halves.

    Returns:
        A `HeadFit`. Parameters are searched between 1e-6 and 1000. The criterion compares biases,
        content being independent of the distance: where it is not, what is found is the family
        that describes bias and content together. Queries are not independent draws, so
        differences in BIC are larger than the evidence for them.

    Raises:
        UnknownNameError: no such family, or criterion.
        ParameterError: totals that are no finite weights, or do not sum to W N.

    Reference: Schwarz, *Estimating the dimension of a model*, Annals of Statistics 6 (1978).

    Example:
        >>> b = np.exp(-0.1 * np.arange(64))  # a head of ALiBi with slope 1/10
        >>> queries = b / np.cumsum(b)[:, None] * np.tri(64)
        >>> fit = fit_head(queries.sum(0), 1)
        >>> fit.best.family, round(fit.best.parameters["m"], 3)
        ('alibi', 0.1)
    """
    rows, counts = _checked(totals, n_windows)
    data = [Data(row, count) for row, count in zip(rows, counts, strict=True)]
    whole = Data(rows.sum(axis=0), sum(counts))
    return _ranked(families, criterion, whole, data, whole.n_queries)


def fit_logs(
    log_weights: Any, *, families: Sequence[str] = FROM_LOGS, criterion: str = "bic"
) -> HeadFit:
    """Fit the catalogue's families to the mean log-weights of one head.

        minimise  sum_n (y(n) - p(n) - constant)^2   over n = 1 ... M-1 and the parameters of p

    Args:
        log_weights: y, the mean log-weight at distance n = 0 ... M-1, all from the same queries,
            (M,); or of two halves of the windows, (2, M). Values that are not finite (a weight
            that was 0) are left out, and so is n = 0: a token's product with itself is like no
            other.
        families: names in the catalogue, of `FROM_LOGS`; a window has no finite log-weights, it is
            for `fit_head`.
        criterion: ``"bic"``, or ``"held-out"``, which needs two halves.

    Returns:
        A `HeadFit`. Residuals count as independent from distance to distance, which they are not:
        differences in BIC are larger than the evidence for them.

    Raises:
        UnknownNameError, ParameterError: as `fit_head`; fewer than 8 finite values.

    Example:
        >>> fit = fit_logs(-0.1 * np.arange(64) - 2)
        >>> fit.best.family, round(fit.best.parameters["m"], 4)
        ('alibi', 0.1)
    """
    rows = np.atleast_2d(np.asarray(log_weights, dtype=float))
    if rows.ndim != 2 or len(rows) not in (1, 2):
        raise ParameterError(f"log-weights are of shape (M,) or (2, M), got {rows.shape}")
    data = [LogData(row) for row in rows]
    whole = LogData(rows.mean(axis=0))
    count = int(whole.used.sum())
    if count < _FEWEST:
        raise ParameterError(f"a fit needs {_FEWEST} finite log-weights beyond n = 0, got {count}")
    if "window" in families:
        raise ParameterError("a window has no finite log-weights beyond it: use fit_head")
    return _ranked(families, criterion, whole, data, count)


def fit_field(
    field: Profile,
    *,
    of: str = "logs",
    families: Sequence[str] | None = None,
    criterion: str = "bic",
) -> tuple[tuple[HeadFit, ...], ...]:
    """Fit the catalogue's families to every layer and head of an `AttentionField`.

    Args:
        field: what `trf.empirical.attention_field` measured.
        of: ``"logs"``, which shows the bias (`fit_logs`), or ``"mass"``, which shows where the
            attention goes, content and windows included (`fit_head`).
        families, criterion: as for those; all that they take unless given.

    Returns:
        A tuple of L tuples of H `HeadFit`.

    Raises:
        UnknownNameError, ParameterError: as `fit_head`.
    """
    if of not in ("logs", "mass"):
        raise unknown_name("way to fit", of, ("logs", "mass"))
    halves = slice(None) if field.half_windows[1] else slice(1)
    counts = field.half_windows[halves]

    def one(layer: int, head: int) -> HeadFit:
        if of == "logs":
            logs = field.log_weights[halves, layer, head]
            return fit_logs(logs, families=families or FROM_LOGS, criterion=criterion)
        totals = field.totals[halves, layer, head]
        return fit_head(totals, counts, families=families or DEFAULT, criterion=criterion)

    _, n_layer, n_head, _ = field.totals.shape
    return tuple(tuple(one(layer, head) for head in range(n_head)) for layer in range(n_layer))


def _ranked(
    families: Sequence[str], criterion: str, whole: Any, halves: Sequence[Any], count: int
) -> HeadFit:
    """All families fitted, the best first."""
    for family in families:
        if family not in DEFAULT:
            raise unknown_name("family", family, DEFAULT)
    if criterion not in ("bic", "held-out"):
        raise unknown_name("criterion", criterion, ("bic", "held-out"))
    if criterion == "held-out" and len(halves) < 2:
        raise ParameterError("held-out likelihood needs two halves of the windows")
    parts = halves if criterion == "held-out" else []
    fits = [_fit(family, whole, parts, count) for family in families]
    by_bic = sorted(fits, key=lambda fit: fit.bic)
    ranked = by_bic if criterion == "bic" else sorted(fits, key=lambda fit: -(fit.held_out or 0.0))
    return HeadFit(tuple(ranked), criterion, count, whole.length)


def _checked(totals: Any, n_windows: Any) -> tuple[np.ndarray, tuple[int, ...]]:
    rows = np.atleast_2d(np.asarray(totals, dtype=float))
    counts = (n_windows,) if isinstance(n_windows, int) else tuple(n_windows)
    if rows.ndim != 2 or rows.shape[1] < 2 or len(rows) not in (1, 2) or len(rows) != len(counts):
        raise ParameterError(
            f"totals are of shape (N,) or (2, N) with as many numbers of windows, got {rows.shape} "
            f"and {n_windows!r}"
        )
    if not np.isfinite(rows).all() or (rows < -CUT).any():
        raise ParameterError("totals must be finite weights, none negative")
    expected = np.array(counts, dtype=float) * rows.shape[1]
    if not np.allclose(rows.sum(axis=1), expected, rtol=1e-3):
        raise ParameterError(
            f"the weights of {counts} windows of {rows.shape[1]} queries must sum to "
            f"{expected.tolist()}, got {rows.sum(axis=1).tolist()}"
        )
    return rows, counts


def _fit(family: str, whole: Any, halves: Sequence[Any], count: int) -> Fit:
    parameters, p, formula = solve(family, whole)
    log_likelihood = whole.log_likelihood(p)
    held_out = None
    if len(halves) == 2:
        scores = [_score(family, one, other, parameters) for one, other in (halves, halves[::-1])]
        held_out = float(np.mean(scores))
    k = len(parameters)
    bic = k * float(np.log(count)) - 2 * log_likelihood
    return Fit(family, parameters, k, log_likelihood, bic, held_out, formula)


def _score(family: str, one: Any, other: Any, parameters: dict[str, float]) -> float:
    """The likelihood of `other`, a query or a distance, by the fit to `one`."""
    p = solve(family, one, parameters)[1]
    if isinstance(one, LogData):
        variance = float(np.square(one.residuals(p)).mean())
        return other.log_likelihood(p, variance) / int(other.used.sum())
    return other.log_likelihood(p) / other.n_queries
