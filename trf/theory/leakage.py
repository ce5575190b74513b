"""Leakage: the share of the theoretical mass on distances that were never trained."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from flint import arb

from trf.errors import DivergenceError, ParameterError, UndecidedError
from trf.expression import Bias, Domain
from trf.series.balls import Ball
from trf.series.spans import NotRegularError
from trf.series.tails import Series, working
from trf.theory.field import PRECISION
from trf.theory.heads import read_heads
from trf.theory.kernels import finite_series, limit_series


@dataclass(frozen=True)
class Leakage:
    """The share of the mass of N tokens that lies beyond the M tokens of training.

    Attributes:
        share: ``1 - B(M)/B(N)``, the mean over the heads; None where N is infinite.
        limit: the same for N -> oo: ``1 - B(M)/B``, or exactly 1 for a divergent head.
        train_length: M, tokens.
        eval_length: N, tokens; None for infinitely many.
        heads: the leakage of the single heads, if there are several.
        bias: what it is the leakage of.
    """

    share: Ball | None
    limit: Ball
    train_length: int
    eval_length: int | None
    bias: str
    heads: tuple[Leakage, ...] = ()

    def __str__(self) -> str:
        if self.share is None:
            return (
                f"leakage of {self.bias} beyond {self.train_length} tokens: "
                f"{self.limit.digits(6)} in the limit"
            )
        return (
            f"leakage of {self.bias} from {self.train_length} to {self.eval_length} tokens: "
            f"{self.share.digits(6)} (limit {self.limit.digits(6)})"
        )

    def _repr_markdown_(self) -> str:
        return str(self)

    def to_dict(self) -> dict[str, Any]:
        """JSON-able."""
        return {
            "share": None if self.share is None else float(self.share),
            "limit": float(self.limit),
            "train_length": self.train_length,
            "eval_length": self.eval_length,
            "bias": self.bias,
            "heads": [head.to_dict() for head in self.heads],
        }


def leakage(
    bias: Any,
    train_length: int,
    eval_length: int | None = None,
    *,
    parameters: Mapping[str, Any] | None = None,
    n_head: int | None = None,
    assume: Mapping[str, Domain] | None = None,
    **values: Any,
) -> Leakage:
    """The share of the mass of N tokens that falls on distances beyond M: ``1 - B(M)/B(N)``.

    It stays below ``1 - B(M)/B`` when the series converges and tends to 1 when it diverges.

    Args:
        bias: p(n), an encoding, or a list of biases, as `theoretical_receptive_field` takes them.
        train_length: M, tokens.
        eval_length: N >= M, tokens; None asks for the limit only.
        parameters: parameter name -> value.
        n_head: heads of an encoding with a rule over heads.
        assume: domains of parameters that are not positive reals.
        **values: parameter values by keyword.

    Raises:
        ParameterError: a length is no positive integer, or N < M.
        UndecidedError: a sum could not be enclosed.

    Reference: the Cauchy tail in the proof of Qin, Zhong, Deng, arXiv 2307.10156.

    Examples:
        >>> print(leakage("-log(1+n)", 512, 2048))
        leakage of -log(1+n) from 512 to 2048 tokens: [0.168928 +/- 1.80e-7] (limit 1.00000)
    """
    for name, length in (("train_length", train_length), ("eval_length", eval_length)):
        if length is None and name == "eval_length":
            continue
        if isinstance(length, bool) or not isinstance(length, int) or length < 1:
            raise ParameterError(f"{name} must be a positive integer, got {length!r}")
    if eval_length is not None and eval_length < train_length:
        raise ParameterError(
            f"eval_length must be at least train_length={train_length}, got {eval_length}"
        )
    heads = read_heads(bias, parameters, values, n_head=n_head, assume=assume)
    singles = tuple(_single(one, train_length, eval_length) for one in heads.biases)
    if heads.single:
        return singles[0]
    share = None if eval_length is None else _mean([s.share for s in singles if s.share])
    limit = _mean([single.limit for single in singles])
    return Leakage(share, limit, train_length, eval_length, heads.label, singles)


def _single(bias: Bias, train_length: int, eval_length: int | None) -> Leakage:
    share = None
    if eval_length is not None:
        share = _beyond(finite_series(bias, eval_length), bias, train_length)
    try:
        limit = _beyond(limit_series(bias), bias, train_length)
    except DivergenceError:
        limit = Ball(arb(1))
    return Leakage(share, limit, train_length, eval_length, bias.source)


def _beyond(series: Series, bias: Bias, train_length: int) -> Ball:
    try:
        tail = series.tail(max(0, train_length - series.start), PRECISION)
        total = series.total(PRECISION)
    except NotRegularError as error:
        raise UndecidedError(f"the tail of {bias.source} was not enclosed: {error}") from error
    with working(PRECISION):
        return Ball(tail / total)


def _mean(balls: list[Ball]) -> Ball:
    with working(PRECISION):
        return Ball(sum((ball.value for ball in balls), arb(0)) / len(balls))
