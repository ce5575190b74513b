"""The ladder: ``sum exp(-D)`` against the logarithmic scale.

For D in a Hardy field, compare D with log n; if D/log n -> 1, compare D - log n with log log n,
and so on. The first ratio whose limit is not 1 decides: above 1 (or infinite) the series
converges, below 1 it diverges; it also diverges when what is left is bounded.

Reference: G. H. Hardy, Orders of Infinity (1910), on the logarithmic criteria of De Morgan and
Bertrand; T. J. I'A. Bromwich, An Introduction to the Theory of Infinite Series (1908), section 12.
"""

# sympy's stubs type the parts and the results of an expression too widely.
# pyright: reportArgumentType=false, reportReturnType=false

from __future__ import annotations

from dataclasses import dataclass

import sympy
from sympy import S

from trf.series import steps as write
from trf.series.asymptotics import Lead, Scale, exponent
from trf.series.phase import Best, Envelope, Subsequence, resolve
from trf.series.proof import Claim
from trf.series.rewriting import Rewriter
from trf.series.signs import Undecidable
from trf.series.singular import Pole, check_bounded, find_poles
from trf.series.steps import Draft, Rung

_ROTH = sympy.Rational(1, 10**6)  # the measure allows any positive excess
_MAX_RUNGS = 12


@dataclass(frozen=True)
class Decision:
    """One case decided, with the steps that a reader can check and what they claim of p."""

    converges: bool
    criterion: str
    steps: tuple[Draft, ...]
    claim: Claim | None = None


def climb(rewrite: Rewriter, x: sympy.Expr) -> Decision:
    """Decide ``sum exp(p)`` for a rewritten p."""
    if x in (S.Infinity, S.NegativeInfinity):
        gone = x is S.NegativeInfinity
        return Decision(gone, write.FINITE if gone else write.NOT_TO_ZERO, (write.infinite(x),))
    rest = sympy.expand_mul(-x, deep=False)
    steps = (write.expansion(rewrite.scale, x),)
    poles = find_poles(rewrite, rest)
    decision = _climb(rewrite, rest, Rung(1), steps)
    if not decision.converges:
        return decision
    check_bounded(rewrite, rest)
    if all(pole.is_integrable for pole in poles):
        return decision
    return _near_poles(rewrite, rest, poles, steps)


def _near_poles(
    rewrite: Rewriter, rest: sympy.Expr, poles: list[Pole], steps: tuple[Draft, ...]
) -> Decision:
    """Terms that a phase drives up: decided by how close n comes to the poles of the phase."""
    scale = rewrite.scale
    log_n = scale.iterated_log(1)
    closest = rest.subs({pole.atom: pole.order * -log_n for pole in poles})
    lead = scale.lead(closest, strict=False)
    if lead.coefficient == 0 or scale.growth(lead.monomial) <= 0 or rewrite.sign(closest) < 0:
        step = write.near_pole(scale, [pole.atom for pole in poles])
        return Decision(False, write.APPROXIMATION, (*steps, step))
    farthest = rest.subs(
        {pole.atom: -pole.order * log_n * (pole.measure - 1 + _ROTH) for pole in poles}
    )
    decision = _climb(rewrite, farthest, Rung(1), steps)
    if decision.converges:
        text = "so even with the phase as close to its poles as its irrationality measure allows"
        step = write.fixed(text, write.MEASURE, write.APPROXIMATION_SOURCE)
        return Decision(True, write.MEASURE, (*decision.steps, step))
    raise Undecidable(
        "the answer depends on how closely the phase comes to a pole along the integers, beyond "
        "what is known of its irrationality"
    )


def _climb(rewrite: Rewriter, rest: sympy.Expr, start: Rung, steps: tuple[Draft, ...]) -> Decision:
    scale = rewrite.scale
    for depth in range(start.depth, _MAX_RUNGS):
        place = Rung(depth, start.mean)
        rung = scale.iterated_log(depth)
        lead = scale.lead(rest, strict=False)
        quotient = dict(lead.monomial)
        quotient[rung] = exponent(quotient.get(rung, S.Zero) - 1)
        growth = -1 if lead.coefficient == 0 else scale.growth(quotient)
        if growth < 0:
            return _below(scale, place, lead, steps)
        if lead.coefficient.free_symbols & set(scale.oracle.ranges):
            return _oscillating(rewrite, rest, lead, place, growth, steps)
        if growth > 0:
            sign = scale.oracle.sign(lead.coefficient)
            if sign == 0:
                return _climb(rewrite, _without(scale, rest, lead), place, steps)
            step = write.beyond(scale, place, lead, sign)
            claim = _claim(scale, place, lead)
            return Decision(sign > 0, write.LADDER, (*steps, step), claim)
        sign = scale.oracle.sign(lead.coefficient - 1)
        if sign != 0:
            step = write.ratio(scale, place, lead.coefficient, sign)
            claim = _claim(scale, place, lead)
            return Decision(sign > 0, write.LADDER, (*steps, step), claim)
        steps = (*steps, write.tie(scale, place))
        rest = rest - rung
    raise Undecidable("the ladder of logarithms did not end")


def _without(scale: Scale, rest: sympy.Expr, lead: Lead) -> sympy.Expr:
    """`rest` less a leading term whose coefficient vanishes in this case of the parameters."""
    return sympy.expand_mul(rest - lead.coefficient * scale.value(lead.monomial), deep=False)


def _claim(scale: Scale, rung: Rung, lead: Lead | None) -> Claim | None:
    if rung.mean:
        return None
    subtracted = tuple(scale.show(scale.iterated_log(k)) for k in range(1, rung.depth))
    return Claim(subtracted, None if lead is None else write.term(scale, lead))


def _below(scale: Scale, rung: Rung, lead: Lead, steps: tuple[Draft, ...]) -> Decision:
    bounded = lead.coefficient == 0 or scale.growth(lead.monomial) <= 0
    rule = write.NOT_TO_ZERO if bounded and rung.depth == 1 else write.LADDER
    step = write.below(scale, rung, lead, bounded)
    oscillates = lead.coefficient.free_symbols & set(scale.oracle.ranges)
    claim = _claim(scale, rung, None if bounded or oscillates else lead)
    return Decision(False, rule, (*steps, step), claim)


def _oscillating(
    rewrite: Rewriter,
    rest: sympy.Expr,
    lead: Lead,
    rung: Rung,
    growth: int,
    steps: tuple[Draft, ...],
) -> Decision:
    scale = rewrite.scale
    critical = S.One if growth == 0 else S.Zero
    found = resolve(rewrite, rest, lead, critical)
    if isinstance(found, Envelope):
        step = write.envelope(scale, lead, critical, found.minimum, found.sign)
        rule = write.ENVELOPE if found.sign > 0 else write.RECURRENCE
        return Decision(found.sign > 0, rule, (*steps, step))
    if isinstance(found, Subsequence):
        return Decision(False, write.APPROXIMATION, (*steps, write.approached(scale, lead)))
    if isinstance(found, Best):
        return _best_case(rewrite, found, rung, steps)
    decisions = []
    for at in dict.fromkeys(found.rests):
        step = write.averaged(scale, lead, found.minimum.order, at)
        decisions.append(_climb(rewrite, at, Rung(rung.depth, mean=True), (*steps, step)))
        if not decisions[-1].converges:
            break
    last = decisions[-1]
    return Decision(last.converges, f"{write.LAPLACE}; {last.criterion}", last.steps)


def _best_case(rewrite: Rewriter, found: Best, rung: Rung, steps: tuple[Draft, ...]) -> Decision:
    """Even with the phase at its minimum for every n the series converges, or nothing is known."""
    for at in dict.fromkeys(found.rests):
        step = write.best_case(rewrite.scale, at)
        decision = _climb(rewrite, at, Rung(rung.depth, mean=True), (*steps, step))
        if not decision.converges:
            raise Undecidable(found.reason)
        steps = decision.steps
    return Decision(True, write.ENVELOPE, steps)
