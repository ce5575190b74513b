"""The steps of a proof, written out only when somebody reads them.

A decision keeps drafts, that is functions without arguments, so that deciding many series costs
no printing.
"""

# sympy's stubs type the parts and the results of an expression too widely.
# pyright: reportArgumentType=false

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import sympy
from sympy import S

from trf.series.asymptotics import Lead, Scale
from trf.series.germs import Germ
from trf.series.proof import Step

Draft = Callable[[], Step]

LADDER = "logarithmic scale of De Morgan and Bertrand"
LADDER_SOURCE = "Hardy, Orders of Infinity (1910)"
ENVELOPE = "comparison with the lower envelope of -p"
RECURRENCE = "recurrence of the phase"
LAPLACE = "Laplace's method over an equidistributed phase"
LAPLACE_SOURCE = "Kuipers and Niederreiter, Uniform Distribution of Sequences (1974)"
APPROXIMATION = "Diophantine approximation"
APPROXIMATION_SOURCE = "Cassels, An Introduction to Diophantine Approximation (1957), III"
MEASURE = "irrationality measure"
NOT_TO_ZERO = "terms do not tend to 0"
FINITE = "finitely many terms are not 0"
SPLIT = "split on the sign of a parameter expression"
POSITIVE = "positive terms"


def shown(scale: Scale, x: sympy.Expr) -> sympy.Expr:
    """`x` as a function of n, with germs as what they are or as the O of their first term."""
    return scale.show(x.replace(lambda e: isinstance(e, Germ), _plain))


def _plain(germ: sympy.Expr) -> sympy.Expr:
    return germ.plain()  # type: ignore[attr-defined]


def term(scale: Scale, lead: Lead) -> sympy.Expr:
    """A leading term as a function of n."""
    return scale.show(lead.coefficient * scale.value(lead.monomial))


@dataclass(frozen=True)
class Rung:
    """A place on the ladder: how many logarithms deep, for p or for its mean over a phase."""

    depth: int
    mean: bool = False

    @property
    def name(self) -> str:
        """What is compared with the logarithm there."""
        if self.depth == 1:
            return "-p averaged" if self.mean else "-p"
        return "what is left"


def expansion(scale: Scale, x: sympy.Expr) -> Draft:
    """p rewritten for large n."""

    def write() -> Step:
        expr = shown(scale, x)
        return Step(
            f"for large n, p(n) = {expr}", "exact rewriting", "", f"p(n) = {sympy.latex(expr)}"
        )

    return write


def tie(scale: Scale, rung: Rung) -> Draft:
    """A ratio that tends to 1."""

    def write() -> Step:
        against = scale.show(scale.iterated_log(rung.depth))
        return Step(
            f"the ratio of {rung.name} to {against} tends to 1: subtract {against} and go one "
            "logarithm deeper",
            LADDER,
            LADDER_SOURCE,
            rf"\lim \frac{{{_latex_rest(scale, rung)}}}{{{sympy.latex(against)}}} = 1",
        )

    return write


def _latex_rest(scale: Scale, rung: Rung) -> str:
    logs = [sympy.latex(scale.show(scale.iterated_log(k))) for k in range(1, rung.depth)]
    return " - ".join([r"-\bar p(n)" if rung.mean else "-p(n)", *logs])


def ratio(scale: Scale, rung: Rung, limit: sympy.Expr, sign: int) -> Draft:
    """A ratio with a limit other than 1 decides."""

    def write() -> Step:
        against = scale.show(scale.iterated_log(rung.depth))
        relation, answer = (">", "converges") if sign > 0 else ("<", "diverges")
        return Step(
            f"the ratio of {rung.name} to {against} tends to {limit} {relation} 1: {answer}",
            LADDER,
            LADDER_SOURCE,
            rf"\lim \frac{{{_latex_rest(scale, rung)}}}{{{sympy.latex(against)}}} "
            rf"= {sympy.latex(limit)} {relation} 1",
        )

    return write


def beyond(scale: Scale, rung: Rung, lead: Lead, sign: int) -> Draft:
    """What is left grows beyond every multiple of the logarithm."""

    def write() -> Step:
        expr, against = term(scale, lead), scale.show(scale.iterated_log(rung.depth))
        if sign > 0:
            text = f"{rung.name} ~ {expr} grows faster than any multiple of {against}: converges"
        else:
            text = f"{rung.name} ~ {expr} falls below any multiple of -{against}: diverges"
        limit = r"+\infty" if sign > 0 else r"-\infty"
        latex = rf"\lim \frac{{{_latex_rest(scale, rung)}}}{{{sympy.latex(against)}}} = {limit}"
        return Step(text, LADDER, LADDER_SOURCE, latex)

    return write


def below(scale: Scale, rung: Rung, lead: Lead, bounded: bool) -> Draft:
    """What is left is too small: the series diverges."""

    def write() -> Step:
        against = scale.show(scale.iterated_log(rung.depth))
        if bounded and rung.depth == 1:
            return Step("p(n) is bounded: the terms stay above a positive constant", NOT_TO_ZERO)
        what = "is bounded" if bounded else f"~ {term(scale, lead)} = o({against})"
        return Step(
            f"{rung.name} {what}: the ratio to {against} tends to 0 < 1, so the series diverges",
            LADDER,
            LADDER_SOURCE,
            rf"\lim \frac{{{_latex_rest(scale, rung)}}}{{{sympy.latex(against)}}} = 0 < 1",
        )

    return write


def envelope(
    scale: Scale, lead: Lead, critical: sympy.Expr, minimum: sympy.Expr, sign: int
) -> Draft:
    """The oscillating coefficient stays above, or falls below, the critical value."""

    def write() -> Step:
        expr = term(scale, lead)
        coefficient = scale.show(lead.coefficient)
        if sign > 0:
            text = f"in {expr}, {coefficient} stays above the critical value {critical}: converges"
            return Step(text, ENVELOPE)
        text = (
            f"in {expr}, {coefficient} comes near {scale.show(minimum)} < {critical} for a "
            "recurrent set of n: diverges"
        )
        return Step(text, RECURRENCE, LAPLACE_SOURCE)

    return write


def approached(scale: Scale, lead: Lead) -> Draft:
    """Infinitely many n so close to the minimum that the terms do not tend to 0."""

    def write() -> Step:
        return Step(
            f"infinitely many n come within C/n of the minimum of {term(scale, lead)}: the terms "
            "do not tend to 0",
            APPROXIMATION,
            APPROXIMATION_SOURCE,
        )

    return write


def averaged(scale: Scale, lead: Lead, order: sympy.Expr, rest: sympy.Expr) -> Draft:
    """Laplace's method at the minimum of the phase."""

    def write() -> Step:
        return Step(
            f"near the minimum of {term(scale, lead)} over its phase (of order {order}) the mean "
            f"of exp(p) is that of p = -({shown(scale, rest)})",
            LAPLACE,
            LAPLACE_SOURCE,
        )

    return write


def best_case(scale: Scale, rest: sympy.Expr) -> Draft:
    """-p with the phase at its minimum for every n."""

    def write() -> Step:
        return Step(f"-p is at least {shown(scale, rest)}, its value at the minimum", ENVELOPE)

    return write


def near_pole(scale: Scale, atoms: list[sympy.Expr]) -> Draft:
    """Terms that do not tend to 0 near the poles of the phase."""

    def write() -> Step:
        names = ", ".join(str(scale.show(atom)) for atom in atoms)
        return Step(
            f"for infinitely many n, {names} is below a multiple of -log(n), and the terms do not "
            "tend to 0",
            APPROXIMATION,
            APPROXIMATION_SOURCE,
        )

    return write


def fixed(statement: str, rule: str, source: str = "") -> Draft:
    """A step whose text needs no scale."""
    return partial(Step, statement, rule, source)


def infinite(x: sympy.Expr) -> Draft:
    """p is infinite for all large n."""
    if x is S.NegativeInfinity:
        return fixed("p(n) = -oo for all large n: every term is 0", FINITE)
    return fixed("p(n) = oo for large n: the terms are infinite", NOT_TO_ZERO)
