"""`theoretical_receptive_field`: how far a position encoding sees."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import sympy

from trf.errors import ParameterError, UndecidedError
from trf.expression import Bias, Domain, exact
from trf.series.convergence import converges
from trf.series.inversion import Share
from trf.series.tails import Series
from trf.theory.field import CertifiedKernel, ReceptiveField
from trf.theory.heads import Heads, read_heads
from trf.theory.kernels import (
    NotSummedError,
    both_sides,
    combine,
    finite_series,
    limit_series,
    solve,
)
from trf.theory.stack import MAX_FLOATS, limit_stack_field, sampled_field, stack_field


def theoretical_receptive_field(
    bias: Any,
    eps: Any = 0.01,
    *,
    parameters: Mapping[str, Any] | None = None,
    length: int | None = None,
    n_head: int | None = None,
    n_layer: int = 1,
    residual: Any = 0,
    logit_bound: Any = 0,
    bidirectional: bool = False,
    assume: Mapping[str, Domain] | None = None,
    **values: Any,
) -> ReceptiveField:
    """The number of nearest tokens that hold more than ``1 - eps`` of the theoretical mass.

    ``TRF(eps) = min{ j : B(j) > (1-eps)*B }`` with ``B(j) = sum_{n<j} exp(p(n))`` and B its limit,
    or ``B(N)`` at a finite length. The integer is exact at any size: tails are enclosed in balls
    and the precision is raised until the last comparison is decided.

    Args:
        bias: p(n) as text, sympy expression, `Bias` or `Encoding`, or a list of these, one a head.
        eps: the share that may lie further away, strictly between 0 and 1; a float means its
            shortest decimal, text like ``"1/100"`` a fraction.
        parameters: parameter name -> value. Names that this function uses itself (``eps``,
            ``length``, ...) can only be given here.
        length: N, tokens: normalise over the N nearest tokens. Defined for divergent biases too.
        n_head: heads of an encoding with a rule over heads (8 unless given).
        n_layer: L: the kernel of L stacked layers (content-free attention).
        residual: rho, the share that passes each layer unmixed, 0 <= rho < 1; 1/2 is the
            attention-rollout convention (Abnar, Zuidema, arXiv 2005.00928).
        logit_bound: U >= 0: the radius that holds for every head whose content logits satisfy
            ``|q.k|/sqrt(d) <= U``: the worst case mass beyond it is below eps.
        bidirectional: keys on both sides; ``radius`` then means the distances ``|n| < radius``.
            As for `trf.converges`, n in a text is then the signed distance: write ``|n|`` for a
            bias that is the same on both sides (an encoding or a `Bias` is).
        assume: domains of parameters that are not positive reals.
        **values: parameter values by keyword, where the name collides with nothing.

    Returns:
        A `ReceptiveField`. Of several heads it is that of the mean of the normalised kernels, with
        each head in ``.heads``.

    Raises:
        ParameterError: a parameter is missing, unknown or out of its domain.
        DivergenceError: the series diverges and no ``length`` is given.
        UndecidedError: convergence, or a comparison, is not decided.

    Reference: Qin, Zhong, Deng, *Exploring Transformer Extrapolation*, arXiv 2307.10156, for the
    mass; the radius counts the token itself (n = 0). In the limit of many layers and tokens the
    stack is the L-fold convolution; at a finite length it is the last row of ``M^L``,
    ``M = rho*I + (1-rho)*A``, which differs (rows near the start spread over few keys).

    Examples:
        >>> theoretical_receptive_field("-m*n", eps=0.01, m="1/16").radius
        74
        >>> theoretical_receptive_field("-log(1+n)", eps=0.1, length=2048).radius
        902
    """
    share_left = checked_eps(eps)
    rho = _checked_residual(residual)
    bound = _checked_bound(logit_bound)
    _check_counts(length, n_layer)
    heads = read_heads(bias, parameters, values, n_head=n_head, assume=assume)
    if n_layer > 1:
        if bound != 0 or bidirectional:
            raise ParameterError(
                "n_layer > 1 goes with neither logit_bound nor bidirectional: the stack is that "
                "of causal, content-free attention"
            )
        if length is not None:
            return stack_field(heads, share_left, length, n_layer, rho)
        return limit_stack_field(heads, share_left, n_layer, rho)
    if bound != 0 and rho:
        raise ParameterError("logit_bound goes without a residual share: it bounds one head")
    try:
        parts = tuple(_series(head, length) for head in heads.biases)
        if bidirectional:
            left = _left_tails(bias, heads, parameters, values, assume)
            parts = tuple(
                both_sides(part, _series(other, length))
                for part, other in zip(parts, left, strict=True)
            )
    except NotSummedError:
        if length is None or length > MAX_FLOATS or bound != 0 or bidirectional:
            raise
        return sampled_field(heads, share_left, length, rho)
    share = Share(share_left, bound)

    def one(series: Series, label: str, inner: tuple[ReceptiveField, ...]) -> ReceptiveField:
        return ReceptiveField(
            radius=solve(series, share, label),
            eps=share_left,
            length=length,
            start=series.start,
            method=series.method,
            certified=True,
            assumptions=(),
            bias=label,
            kernel=CertifiedKernel(series),
            heads=inner,
            residual=rho,
            logit_bound=str(bound),
            bidirectional=bidirectional,
        )

    if heads.single:
        return one(combine(parts, rho), heads.label, ())
    singles = tuple(
        one(combine((part,), rho), str(head), ())
        for part, head in zip(parts, heads.biases, strict=True)
    )
    return one(_mean(parts, rho, heads), heads.label, singles)


def _left_tails(
    bias: Any,
    heads: Heads,
    parameters: Mapping[str, Any] | None,
    values: Mapping[str, Any],
    assume: Mapping[str, Domain] | None,
) -> tuple[Bias, ...]:
    """``p(-n)`` of each head: as `trf.converges` reads it."""
    if not heads.single:
        return heads.biases
    left = converges(bias, assume=assume, bidirectional=True).tails[-1]
    return read_heads(left, parameters, values).biases


def _mean(parts: tuple[Series, ...], rho: Fraction, heads: Heads) -> Series:
    starts = {part.start for part in parts}
    if len(starts) > 1:
        raise UndecidedError(
            f"{heads.label}: the heads start at different distances {sorted(starts)}, so their "
            "kernels have no mean; take them one at a time"
        )
    return combine(parts, rho)


def _series(bias: Bias, length: int | None) -> Series:
    return limit_series(bias) if length is None else finite_series(bias, length)


def checked_eps(eps: Any) -> Fraction:
    """``eps`` as a fraction strictly between 0 and 1."""
    value = exact(eps, "eps")
    if not 0 < value < 1:
        raise ParameterError(f"eps must lie strictly between 0 and 1, got {eps!r}")
    return Fraction(int(value.p), int(value.q))


def _checked_residual(residual: Any) -> Fraction:
    value = exact(residual, "residual")
    if not 0 <= value < 1:
        raise ParameterError(f"residual must satisfy 0 <= residual < 1, got {residual!r}")
    return Fraction(int(value.p), int(value.q))


def _checked_bound(logit_bound: Any) -> sympy.Expr:
    value = exact(logit_bound, "logit_bound")
    if value < 0:
        raise ParameterError(f"logit_bound must be >= 0, got {logit_bound!r}")
    return value


def _check_counts(length: int | None, n_layer: int) -> None:
    for name, count in (("length", length), ("n_layer", n_layer)):
        if count is None:
            continue
        if isinstance(count, bool) or not isinstance(count, int) or count < 1:
            raise ParameterError(f"{name} must be a positive integer, got {count!r}")
