"""Which encoding did a head learn? Fitting the catalogue's families to measured attention.

A head with bias p and logits that do not depend on the distance otherwise gives the key at
distance n of a query with i + 1 visible keys the weight exp(p(n)) / B(i + 1), B the partial sum.
With T(n) the weight measured at distance n, summed over queries, and q(i) queries at position i,
the log-likelihood of p, every query counting as one draw from its weights, is

    log L = sum_n T(n) p(n) - sum_i q(i) log B(i + 1),

in nats. It is at most minus the entropy of the weights, so families compare by it; a family with
more parameters pays by the Bayesian information criterion, BIC = k log(queries) - 2 log L (Schwarz
1978), or is scored on windows that it was not fitted to.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from trf.errors import ParameterError, unknown_name
from trf.expression import Bias, as_bias
from trf.fit.families import CUT, DEFAULT, FAMILIES, Data, Family, solve
from trf.series.convergence import converges
from trf.series.verdict import Verdict
from trf.theory import ReceptiveField, theoretical_receptive_field

__all__ = ["DEFAULT", "FAMILIES", "Family", "Fit", "HeadFit", "fit_field", "fit_head"]


class Profile(Protocol):
    """What `fit_field` reads: an `AttentionField`."""

    totals: np.ndarray
    half_windows: tuple[int, int]


@dataclass(frozen=True)
class Fit:
    """One family fitted to one head.

    Attributes:
        family: its name in the catalogue.
        parameters: the fitted values; for T5 those of the buckets b0, b1, ..., relative to b0.
        n_parameters: k, how many.
        log_likelihood: of all queries, in nats.
        bic: k log(queries) - 2 log L; the least is best.
        held_out: log-likelihood a query, in nats, of the windows left out of the fit; None unless
            that is the criterion.
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
        n_queries: queries measured, W N.
        length: N, the longest number of visible keys.
    """

    fits: tuple[Fit, ...]
    criterion: str
    n_queries: int
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
            "n_queries": self.n_queries,
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
    n_windows: int | tuple[int, int],
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
    for family in families:
        if family not in DEFAULT:
            raise unknown_name("family", family, DEFAULT)
    if criterion not in ("bic", "held-out"):
        raise unknown_name("criterion", criterion, ("bic", "held-out"))
    if criterion == "held-out" and len(rows) < 2:
        raise ParameterError("held-out likelihood needs the totals of two halves, (2, N)")
    N = rows.shape[1]
    whole = Data(rows.sum(axis=0), sum(counts))
    halves = [Data(row, count) for row, count in zip(rows, counts, strict=True)]
    fits = [_fit(family, whole, halves if criterion == "held-out" else []) for family in families]
    by_bic = sorted(fits, key=lambda fit: fit.bic)
    ranked = by_bic if criterion == "bic" else sorted(fits, key=lambda fit: -(fit.held_out or 0.0))
    return HeadFit(tuple(ranked), criterion, whole.n_queries, N)


def fit_field(
    field: Profile, *, families: Sequence[str] = DEFAULT, criterion: str = "bic"
) -> tuple[tuple[HeadFit, ...], ...]:
    """Fit the catalogue's families to every layer and head of an `AttentionField`.

    Args:
        field: what `trf.empirical.attention_field` measured.
        families, criterion: as for `fit_head`.

    Returns:
        A tuple of L tuples of H `HeadFit`.

    Raises:
        UnknownNameError, ParameterError: as `fit_head`.
    """
    totals, counts = field.totals, field.half_windows
    if counts[1] == 0:
        totals, counts = totals[:1], counts[:1]
    return tuple(
        tuple(
            fit_head(totals[:, layer, h], counts, families=families, criterion=criterion)
            for h in range(totals.shape[2])
        )
        for layer in range(totals.shape[1])
    )


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


def _fit(family: str, whole: Data, halves: Sequence[Data]) -> Fit:
    parameters, p, formula = solve(family, whole)
    log_likelihood = whole.log_likelihood(p)
    held_out = None
    if len(halves) == 2:
        scores = [
            other.log_likelihood(solve(family, one, parameters)[1]) / other.n_queries
            for one, other in (halves, halves[::-1])
        ]
        held_out = float(np.mean(scores))
    k = len(parameters)
    bic = k * float(np.log(whole.n_queries)) - 2 * log_likelihood
    return Fit(family, parameters, k, log_likelihood, bic, held_out, formula)
