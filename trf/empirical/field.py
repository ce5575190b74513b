"""What a measurement of a receptive field is, and the statistics read off it."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from trf.errors import ParameterError
from trf.expression import exact

if TYPE_CHECKING:
    from trf.empirical.heads import AttentionField

Number = float | Fraction | Decimal | str
RESAMPLES = 1000  # of the bootstrap
_CELLS = 1 << 24  # numbers held at once while resampling


def checked_eps(eps: Any) -> float:
    """`eps` as a float strictly between 0 and 1."""
    value = exact(eps, "eps")
    if not 0 < value < 1:
        raise ParameterError(f"eps must lie in 0 < eps < 1, got {eps}")
    return float(value)


def checked_list(eps: Any) -> list[float]:
    """One eps or several, as a list of at least one."""
    several = [eps] if isinstance(eps, str) or not isinstance(eps, Sequence) else list(eps)
    if not several:
        raise ParameterError("give at least one eps")
    return [checked_eps(e) for e in several]


def checked_level(level: float) -> float:
    """A level of confidence, strictly between 0 and 1."""
    if not 0 < level < 1:
        raise ParameterError(f"level must lie in 0 < level < 1, got {level!r}")
    return level


def radius_of(curve: np.ndarray, eps: float) -> int:
    """The least j with C(j) > 1 - eps; at most N, where C is 1 up to rounding."""
    above = curve > 1 - eps
    return int(above.argmax()) + 1 if above.any() else len(curve)


def participation_ratio(density: np.ndarray) -> float:
    """1 / sum S^2: the number of tokens over which an even spread has the same sum of squares.

    Example:
        >>> participation_ratio(np.array([0.25, 0.25, 0.25, 0.25]))
        4.0
    """
    return float(1 / np.square(density).sum())


def mean_distance(density: np.ndarray) -> float:
    """sum n S(n), in tokens; 0 is the token itself.

    Example:
        >>> mean_distance(np.array([0.5, 0.0, 0.5]))
        1.0
    """
    return float(np.arange(len(density)) @ density)


def resampled_means(rows: np.ndarray, seed: int, resamples: int) -> Iterable[np.ndarray]:
    """Means over rows drawn with replacement, in chunks of at most (resamples, N)."""
    count = len(rows)
    drawn = np.random.default_rng(seed).multinomial(count, np.full(count, 1 / count), resamples)
    step = max(1, _CELLS // rows.shape[1])
    for first in range(0, resamples, step):
        yield drawn[first : first + step] / count @ rows


@dataclass(frozen=True, eq=False)
class LayerField:
    """How far back one layer's output depends on its own input and on the embeddings.

    Attributes:
        layer: from 0.
        density: of the layer's input, at distance n = 0 ... N-1; sums to 1. (N,)
        density_to_embeddings: of the embeddings; sums to 1. (N,)
    """

    layer: int
    density: np.ndarray
    density_to_embeddings: np.ndarray

    @property
    def curve(self) -> np.ndarray:
        """The share on the j newest tokens, j = 1 ... N, of the layer's input. (N,)"""
        return np.cumsum(self.density)

    @property
    def curve_to_embeddings(self) -> np.ndarray:
        """The same of the embeddings. (N,)"""
        return np.cumsum(self.density_to_embeddings)

    def radius_at(self, eps: Number) -> int:
        """ERF(eps) of the layer with respect to its input, in tokens."""
        return radius_of(self.curve, checked_eps(eps))

    def radius_to_embeddings(self, eps: Number) -> int:
        """ERF(eps) of the layer with respect to the embeddings, in tokens."""
        return radius_of(self.curve_to_embeddings, checked_eps(eps))

    def to_dict(self) -> dict[str, Any]:
        """As JSON-able data."""
        return {
            "layer": self.layer,
            "density": self.density.tolist(),
            "density_to_embeddings": self.density_to_embeddings.tolist(),
        }


@dataclass(frozen=True, eq=False)
class EmpiricalReceptiveField:
    """How far back a model's output depends on its input.

    Attributes:
        density: S at distance n = 0 ... N-1, mean over windows; sums to 1. (N,)
        curve: C(j) for j = 1 ... N: the share of the gradient on the j newest tokens. (N,)
        window_curves: C(j) of every window, mean over its positions. (n_windows, N)
        radii: eps -> ERF(eps) of the mean curve, in tokens.
        length: N, tokens a window.
        n_windows: windows averaged over.
        seed: of the windows and of the projections.
        reduction, n_projections: how the output was reduced; 0 projections where there are none.
        encoding, train_length: of the model.
        provenance: of the checkpoint.
        positions: whose outputs were differentiated, 0 ... N-1; N-1 is the last of the window.
        position_curves: the mean curve of each of them; position i has i + 1 tokens.
        projection_error: standard error of `curve` that the random projections cause, by the
            jackknife over them; zero for a reduction that is exact, NaN for one projection. (N,)
        layers: one `LayerField` a layer, if asked for.
        heads: the attention of every layer and head, if asked for.
    """

    density: np.ndarray
    curve: np.ndarray
    window_curves: np.ndarray
    radii: dict[float, int]
    length: int
    n_windows: int
    seed: int
    reduction: str
    n_projections: int
    encoding: str
    train_length: int | None
    provenance: dict[str, Any]
    positions: tuple[int, ...]
    position_curves: dict[int, np.ndarray]
    projection_error: np.ndarray
    layers: tuple[LayerField, ...] = ()
    heads: AttentionField | None = field(default=None)

    @property
    def eps(self) -> float:
        """The (first) eps that was asked for."""
        return next(iter(self.radii))

    @property
    def radius(self) -> int:
        """ERF(eps) at the (first) eps, in tokens, the token itself included."""
        return self.radii[self.eps]

    def radius_at(self, eps: Number) -> int:
        """ERF at another eps: the least j with C(j) > 1 - eps."""
        return radius_of(self.curve, checked_eps(eps))

    def radius_interval(
        self, eps: Number | None = None, level: float = 0.95, resamples: int = RESAMPLES
    ) -> tuple[int, int]:
        """The interval of ERF(eps) by the bootstrap over windows, in tokens.

        Args:
            eps: that of `.radius` unless given.
            level: of confidence; the interval is the central `level` of the resampled radii.
            resamples: of the windows, with replacement.

        The windows may overlap in the text, which makes them less independent than they count:
        the interval is then too short. One window has no spread, and the interval no width.

        Reference: Efron, Tibshirani, *An Introduction to the Bootstrap*, chapter 13 (percentile).
        """
        wanted = 1 - (self.eps if eps is None else checked_eps(eps))
        low = (1 - checked_level(level)) / 2
        radii = [
            np.where((above := means > wanted).any(axis=1), above.argmax(axis=1) + 1, self.length)
            for means in resampled_means(self.window_curves, self.seed, resamples)
        ]
        lower, upper = np.quantile(
            np.concatenate(radii), [low, 1 - low], method="inverted_cdf"
        )  # a radius that occurred, not between two
        return int(lower), int(upper)

    def confidence(
        self, level: float = 0.95, resamples: int = RESAMPLES
    ) -> tuple[np.ndarray, np.ndarray]:
        """The band of the mean curve by the bootstrap over windows: lower and upper, (N,) each.

        The uncertainty of `curve`, at each j by itself; conditions as for `radius_interval`. With
        random projections, drawn anew for every window, their noise is part of it.
        """
        low = (1 - checked_level(level)) / 2
        lower, upper = np.empty((2, self.length))
        step = max(1, _CELLS // resamples)
        for first in range(0, self.length, step):
            part = slice(first, first + step)
            means = np.concatenate(
                list(resampled_means(self.window_curves[:, part], self.seed, resamples))
            )
            lower[part], upper[part] = np.quantile(means, [low, 1 - low], axis=0)
        return lower, upper

    def band(self, level: float = 0.9) -> tuple[np.ndarray, np.ndarray]:
        """The central `level` of the windows' curves: lower and upper, (N,) each.

        The spread from window to window; the uncertainty of the mean is `confidence`.
        """
        low = (1 - checked_level(level)) / 2
        lower, upper = np.quantile(self.window_curves, [low, 1 - low], axis=0)
        return lower, upper

    @property
    def participation_ratio(self) -> float:
        """1 / sum S^2 of the mean density, in tokens; N for an even spread, 1 for one token."""
        return participation_ratio(self.density)

    @property
    def mean_distance(self) -> float:
        """sum n S(n) of the mean density, in tokens."""
        return mean_distance(self.density)

    def to_dict(self) -> dict[str, Any]:
        """As JSON-able data, without the windows' own curves."""
        data = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        del data["window_curves"]
        arrays = {
            "density": self.density,
            "curve": self.curve,
            "band": np.stack(self.band()),
            "confidence": np.stack(self.confidence()),
        }
        return {
            **data,
            **{name: array.tolist() for name, array in arrays.items()},
            "radii": {str(eps): radius for eps, radius in self.radii.items()},
            "radius_intervals": {str(eps): list(self.radius_interval(eps)) for eps in self.radii},
            "projection_error": [
                None if np.isnan(e) else e for e in self.projection_error.tolist()
            ],
            "positions": list(self.positions),
            "position_curves": {str(p): c.tolist() for p, c in self.position_curves.items()},
            "participation_ratio": self.participation_ratio,
            "mean_distance": self.mean_distance,
            "layers": [layer.to_dict() for layer in self.layers],
            "heads": None if self.heads is None else self.heads.to_dict(),
        }

    def __str__(self) -> str:
        radii = []
        for eps, radius in self.radii.items():
            low, high = self.radius_interval(eps)
            radii.append(f"ERF({eps:g}) = {radius} [{low}, {high}]")
        return (
            f"{self.encoding}, {', '.join(radii)} tokens, measured in {self.n_windows} windows of "
            f"{self.length} ({self.reduction})"
        )
