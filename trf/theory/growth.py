"""How the receptive field at a finite length grows with that length."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import sympy

from trf.errors import UndecidedError
from trf.expression import Bias, Domain, as_bias, distance
from trf.series.convergence import converges
from trf.series.leading import growth_with_length, leading
from trf.series.verdict import Status

LENGTH = sympy.Symbol("N", integer=True, positive=True)
EPS = sympy.Symbol("eps", positive=True)
LIMIT = sympy.Symbol("TRF", integer=True, positive=True)


@dataclass(frozen=True)
class GrowthLaw:
    """``TRF_N(eps)`` for large N.

    Attributes:
        bias: what it is the law of.
        law: in ``N``, ``eps`` and the parameters; ``TRF`` in it is the radius in the limit. A
            power of N is meant up to a constant factor, any other law up to lower order.
        bounded: True where the radius stays bounded, False where it grows, None where the
            parameters decide.
    """

    bias: Bias
    law: Any
    bounded: bool | None

    def __str__(self) -> str:
        if self.bounded:
            return f"TRF_N(eps) of {self.bias.source} stays bounded: it tends to the limit radius"
        return f"TRF_N(eps) of {self.bias.source} grows like {self.law}"

    def _repr_latex_(self) -> str:
        return rf"$\displaystyle \mathrm{{TRF}}_N(\varepsilon) \sim {sympy.latex(self.law)}$"

    def to_dict(self) -> dict[str, Any]:
        """JSON-able."""
        return {"bias": str(self.bias.expr), "law": str(self.law), "bounded": self.bounded}


def growth_law(bias: Any, *, assume: Mapping[str, Domain] | None = None) -> GrowthLaw:
    """The growth of ``TRF_N(eps)`` with N: bounded exactly if the series converges.

    For weights like ``n^-s`` it is ``N*(1-eps)^(1/(1-s))`` for s < 1 and ``N^(1-eps)`` for s = 1;
    for ``1/(n log^b n)`` it is ``N^((1-eps)^(1/(1-b)))`` for b < 1 and ``exp(log(N)^(1-eps))`` for
    b = 1.

    Args:
        bias: p(n), with or without free parameters.
        assume: domains of parameters that are not positive reals.

    Raises:
        UndecidedError: the behaviour for large n is outside the class of powers and logarithms.

    Examples:
        >>> growth_law("-log(1+n)").law
        N**(1 - eps)
        >>> growth_law("0").law
        N*(1 - eps)
    """
    read = as_bias(bias, assume)
    verdict = converges(read)
    if verdict.status is Status.CONVERGES:
        return GrowthLaw(read, LIMIT, True)
    n = sympy.Symbol("n", positive=True)
    p = sympy.expand_log(_far_out(read.expr).xreplace({distance(): n}))
    behaviour = leading(p, n)
    found = None if behaviour is None else growth_with_length(behaviour, EPS, LENGTH, LIMIT)
    if found is None:
        raise UndecidedError(
            f"how the receptive field of {read.source} grows with the length is not known in "
            "closed form; theoretical_receptive_field(..., length=N) gives it at any N"
        )
    bounded = None if found.has(sympy.Piecewise) else False
    return GrowthLaw(read, found, bounded)


def _far_out(expr: Any) -> Any:
    """The branch of a piecewise expression that holds for large n."""
    n = distance()
    for piecewise in expr.atoms(sympy.Piecewise):
        for value, condition in piecewise.args:
            holds = condition == True or condition.subs(n, sympy.Integer(10) ** 12) == True  # noqa: E712
            if holds:
                expr = expr.xreplace({piecewise: value})
                break
    return expr
