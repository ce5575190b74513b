"""From heads to series with certified tails, with the errors a user should see."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

from trf.errors import DivergenceError, UndecidedError
from trf.expression import Bias, distance
from trf.series.combined import Mean, TwoSided, WithResidual
from trf.series.convergence import converges
from trf.series.enclosure import NoEnclosureError, enclose, truncate
from trf.series.integrals import DivergentIntegral
from trf.series.inversion import BASE_BITS, Share, UndecidedTailError, radius
from trf.series.spans import NotRegularError
from trf.series.tails import Series
from trf.series.verdict import Status


@lru_cache(maxsize=256)
def limit_series(bias: Bias) -> Series:
    """The series of a bias without free parameters, in the limit.

    Raises:
        DivergenceError: it diverges.
        UndecidedError: whether it converges is not decided, or its sum could not be enclosed.
    """
    try:
        series = enclose(bias.expr, distance())
        series.total(BASE_BITS)
    except DivergentIntegral as error:
        raise _divergence(bias, str(error)) from error
    except (NoEnclosureError, NotRegularError) as error:
        raise _unsummed(bias, str(error)) from error
    return series


class NotSummedError(UndecidedError):
    """A long sum that was not enclosed; floats are the remedy."""


@lru_cache(maxsize=256)
def finite_series(bias: Bias, length: int) -> Series:
    """The first ``length`` terms of a bias without free parameters.

    Raises:
        NotSummedError: the sum could not be enclosed.
    """
    try:
        series = truncate(bias.expr, distance(), length)
        series.total(BASE_BITS)
    except (NoEnclosureError, NotRegularError) as error:
        raise NotSummedError(
            f"the sum of exp({bias.expr}) over {length} tokens was not enclosed: {error}"
        ) from error
    return series


def _divergence(bias: Bias, why: str) -> DivergenceError:
    verdict = converges(bias)
    if verdict.status is Status.DIVERGES and verdict.criterion:
        why = verdict.criterion
    return DivergenceError(
        f"the sum of exp({bias.expr}) diverges ({why}), so its receptive field grows without "
        "bound: give a finite length, length=N, or parameters for which it converges"
    )


def _unsummed(bias: Bias, why: str) -> DivergenceError | UndecidedError:
    verdict = converges(bias)
    if verdict.status is Status.DIVERGES:
        return _divergence(bias, why)
    if verdict.status is Status.CONVERGES:
        return UndecidedError(
            f"the sum of exp({bias.expr}) converges ({verdict.criterion}), but its tail could not "
            f"be enclosed: {why}. A finite length, length=N, can be summed term by term"
        )
    return UndecidedError(
        f"whether the sum of exp({bias.expr}) converges is not decided "
        f"({verdict.reason or why}): give a finite length, length=N"
    )


def combine(parts: tuple[Series, ...], residual: Fraction = Fraction(0)) -> Series:
    """The mean kernel of the heads, with a residual share at distance 0."""
    kernel = parts[0] if len(parts) == 1 else Mean(parts)
    return WithResidual(kernel, residual) if residual else kernel


def both_sides(right: Series, left: Series) -> Series:
    """The kernel of keys on both sides; the sides have to start at the same distance.

    Raises:
        UndecidedError: they do not.
    """
    if right.start != left.start:
        raise UndecidedError(
            f"the two sides start at the distances {right.start} and {left.start}, so that no "
            "radius counts on both"
        )
    return TwoSided(right, left)


def solve(series: Series, share: Share, what: str) -> int:
    """`trf.series.inversion.radius` with the errors a user should see."""
    try:
        return radius(series, share)
    except (UndecidedTailError, NotRegularError) as error:
        raise UndecidedError(f"the radius of {what} was not found: {error}") from error
