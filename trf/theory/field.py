"""The result: a theoretical receptive field and how far it can be trusted."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Protocol

import flint

from trf.series.balls import Ball, Estimate
from trf.series.tails import Series, working

PRECISION = 100


class Kernel(Protocol):
    """Where the mass lies: the first j terms, the rest, all of it."""

    @property
    def total(self) -> Ball | Estimate:
        """B."""
        ...

    def mass(self, j: int) -> Ball | Estimate:
        """B(j)."""
        ...

    def tail(self, j: int) -> Ball | Estimate:
        """B - B(j)."""
        ...

    def share(self, j: int) -> Ball | Estimate:
        """B(j)/B."""
        ...


@dataclass(frozen=True)
class CertifiedKernel:
    """The masses of a `Series`, as balls."""

    series: Series

    @property
    def total(self) -> Ball:
        """B."""
        return Ball(self.series.total(PRECISION))

    def mass(self, j: int) -> Ball:
        """B(j)."""
        return Ball(self.series.mass(j, PRECISION))

    def tail(self, j: int) -> Ball:
        """B - B(j)."""
        return Ball(self.series.tail(j, PRECISION))

    def share(self, j: int) -> Ball:
        """B(j)/B."""
        mass, total = self.series.mass(j, PRECISION), self.series.total(PRECISION)
        with working(PRECISION):
            return Ball(mass / total)


@dataclass(frozen=True)
class SampledKernel:
    """Cumulative shares as floats, with an estimate of their error; the whole is 1."""

    cumulative: Any
    error: float

    @property
    def total(self) -> Estimate:
        """B, which is 1."""
        return Estimate(1.0, self.error)

    def mass(self, j: int) -> Estimate:
        """B(j)."""
        if j <= 0:
            return Estimate(0.0, 0.0)
        return Estimate(float(self.cumulative[min(j, len(self.cumulative)) - 1]), self.error)

    def tail(self, j: int) -> Estimate:
        """B - B(j)."""
        return Estimate(1.0 - self.mass(j).value, self.error)

    def share(self, j: int) -> Estimate:
        """B(j)/B."""
        return self.mass(j)


@dataclass(frozen=True)
class ReceptiveField:
    """A theoretical receptive field: ``radius = min{j : B(j) > (1-eps)*B}``, in tokens.

    Attributes:
        radius: tokens, the token itself included (counted from ``start``).
        eps: the share of the mass that may lie further away.
        length: N if the mass is normalised over N tokens, None in the limit.
        start: the first distance whose weight is finite (normally 0).
        method: how the tails were found.
        certified: True only if every step is proved.
        assumptions: what was assumed where it is not certified.
        bias: what it is the field of.
        heads: the fields of the single heads, if there are several; ``radius`` is then that of
            the mean of their normalised kernels.
        n_layer, residual: the stack it holds for.
        logit_bound: U where ``|q.k|/sqrt(d) <= U`` is allowed for.
        bidirectional: whether both sides of the query count; ``radius`` then bounds ``|n|``.
    """

    radius: int
    eps: Fraction
    length: int | None
    start: int
    method: str
    certified: bool
    assumptions: tuple[str, ...]
    bias: str
    kernel: Kernel = field(repr=False, compare=False)
    heads: tuple[ReceptiveField, ...] = ()
    n_layer: int = 1
    residual: Fraction = Fraction(0)
    logit_bound: str = "0"
    bidirectional: bool = False

    @property
    def total(self) -> Ball | Estimate:
        """The mass B (over the length, or in the limit); it prints its error."""
        return self.kernel.total

    def mass(self, j: int) -> Ball | Estimate:
        """B(j): the mass of the j nearest tokens."""
        return self.kernel.mass(_index(j))

    def tail(self, j: int) -> Ball | Estimate:
        """``B - B(j)``: the mass beyond them."""
        return self.kernel.tail(_index(j))

    def share(self, j: int) -> Ball | Estimate:
        """``B(j)/B``."""
        return self.kernel.share(_index(j))

    @property
    def smallest(self) -> ReceptiveField:
        """The field of the head that sees least far (this field, if there is one head)."""
        return min(self.heads, key=lambda head: head.radius, default=self)

    @property
    def largest(self) -> ReceptiveField:
        """The field of the head that sees furthest (this field, if there is one head)."""
        return max(self.heads, key=lambda head: head.radius, default=self)

    def __str__(self) -> str:
        where = "in the limit" if self.length is None else f"at length {self.length}"
        parts = [f"TRF(eps={self.eps}) = {tokens(self.radius)} {where}, {self.bias}"]
        if self.heads:
            low, high = tokens(self.smallest.radius), tokens(self.largest.radius)
            parts.append(f"mean kernel; single heads {low} to {high}")
        if self.n_layer > 1 or self.residual:
            layers = f"{self.n_layer} layer" + ("s" if self.n_layer > 1 else "")
            parts.append(f"{layers}, residual share {self.residual}")
        if self.logit_bound != "0":
            parts.append(f"logits within {self.logit_bound}")
        if self.bidirectional:
            parts.append("both sides")
        if self.start:
            parts.append(f"from n = {self.start}")
        trust = "certified" if self.certified else "not certified: " + "; ".join(self.assumptions)
        return "; ".join(parts) + f" ({trust})"

    def _repr_latex_(self) -> str:
        limit = "" if self.length is None else f"_{{{self.length}}}"
        number = (
            f"{self.radius}" if self.radius < 10**15 else rf"\approx {_scientific(self.radius)}"
        )
        eps = rf"\tfrac{{{self.eps.numerator}}}{{{self.eps.denominator}}}"
        relation = "" if number.startswith("\\approx") else "= "
        return rf"$\displaystyle \mathrm{{TRF}}{limit}\left({eps}\right) {relation}{number}$"

    def _repr_markdown_(self) -> str:
        return f"**{tokens(self.radius)}** · {self}"

    def to_dict(self) -> dict[str, Any]:
        """JSON-able. ``radius`` is an int below 2^53, its decimal digits as text from there on."""
        return {
            "radius": self.radius if self.radius < 2**53 else flint.fmpz(self.radius).str(),
            "eps": str(self.eps),
            "length": self.length,
            "start": self.start,
            "total": str(self.total),
            "method": self.method,
            "certified": self.certified,
            "assumptions": list(self.assumptions),
            "bias": self.bias,
            "n_layer": self.n_layer,
            "residual": str(self.residual),
            "logit_bound": self.logit_bound,
            "bidirectional": self.bidirectional,
            "heads": [head.to_dict() for head in self.heads],
        }


def tokens(radius: int) -> str:
    """A radius in words; past 10^15 by its leading digits and their number."""
    if radius < 10**15:
        return f"{radius} token" + ("" if radius == 1 else "s")
    return f"{_mantissa(radius)} tokens"


def _mantissa(radius: int) -> str:
    digits = _digits(radius)
    lead = str(radius // 10 ** (digits - 8))
    return f"{lead[0]}.{lead[1:]}...e{digits - 1} ({digits} digits)"


def _scientific(radius: int) -> str:
    digits = _digits(radius)
    lead = str(radius // 10 ** (digits - 5))
    return rf"{lead[0]}.{lead[1:]} \cdot 10^{{{digits - 1}}}"


def _digits(number: int) -> int:
    guess = int(math.log10(number)) + 1
    while 10**guess <= number:
        guess += 1
    while 10 ** (guess - 1) > number:
        guess -= 1
    return guess


def _index(j: int) -> int:
    if isinstance(j, bool) or not isinstance(j, int) or j < 0:
        raise ValueError(f"a number of tokens is an integer >= 0, got {j!r}")
    return j
