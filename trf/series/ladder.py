"""The ladder: ``sum exp(-D)`` against the logarithmic scale.

For D in a Hardy field, compare D with log n; if D/log n -> 1, compare D - log n with log log n,
and so on. The first ratio whose limit is not 1 decides: above 1 (or infinite) the series
converges, below 1 it diverges; it also diverges when what is left is bounded.

Reference: G. H. Hardy, Orders of Infinity (1910), on the logarithmic criteria of De Morgan and
Bertrand; T. J. I'A. Bromwich, An Introduction to the Theory of Infinite Series (1908), section 12.
"""

from __future__ import annotations

from dataclasses import dataclass

import sympy
from sympy import S

from trf.series.asymptotics import Lead, Scale, exponent
from trf.series.phase import Best, Envelope, Subsequence, resolve
from trf.series.rewriting import Rewriter
from trf.series.signs import Undecidable
from trf.series.singular import Pole, check_bounded, find_poles
from trf.series.verdict import Step

LOGARITHMIC_SCALE = "logarithmic scale of De Morgan and Bertrand"
_LAPLACE = "Kuipers and Niederreiter, Uniform Distribution of Sequences (1974)"
_MINKOWSKI = "Cassels, An Introduction to Diophantine Approximation (1957), III"
_ROTH = sympy.Rational(1, 10**6)  # the measure allows any positive excess
_HARDY = "Hardy, Orders of Infinity (1910)"
_MAX_RUNGS = 12


@dataclass(frozen=True)
class Decision:
    """One case decided, with the steps that a reader can check."""

    converges: bool
    criterion: str
    steps: tuple[Step, ...]


def climb(rewrite: Rewriter, x: sympy.Expr) -> Decision:
    """Decide ``sum exp(p)`` for a rewritten p."""
    if x in (S.Infinity, S.NegativeInfinity):
        return _infinite(x)
    rest = sympy.expand_mul(-x, deep=False)
    steps = [_expansion_step(rewrite.scale, x)]
    poles = find_poles(rewrite, rest)
    decision = _climb(rewrite, rest, 1, steps)
    if not decision.converges:
        return decision
    check_bounded(rewrite, rest)
    if all(pole.is_integrable for pole in poles):
        return decision
    return _near_poles(rewrite, rest, poles, steps)


def _near_poles(
    rewrite: Rewriter, rest: sympy.Expr, poles: list[Pole], steps: list[Step]
) -> Decision:
    """Terms that a phase drives up: decided by how close n comes to the poles of the phase."""
    scale = rewrite.scale
    log_n = scale.iterated_log(1)
    closest = rest.subs({pole.atom: pole.order * -log_n for pole in poles})
    lead = scale.lead(closest, strict=False)
    if lead.coefficient == 0 or scale.growth(lead.monomial) <= 0 or rewrite.sign(closest) < 0:
        shown = ", ".join(str(scale.show(pole.atom)) for pole in poles)
        text = f"for infinitely many n the terms do not tend to 0: {shown} is below -log(n) there"
        rule = "Diophantine approximation"
        return Decision(False, rule, (*steps, Step(text, rule, _MINKOWSKI)))
    farthest = rest.subs(
        {pole.atom: -pole.order * log_n * (pole.measure - 1 + _ROTH) for pole in poles}
    )
    decision = _climb(rewrite, farthest, 1, steps)
    if decision.converges:
        text = "even with the phase as close to its poles as its irrationality measure allows"
        step = Step(text, "irrationality measure", _MINKOWSKI)
        return Decision(True, "irrationality measure", (*decision.steps, step))
    raise Undecidable(
        "the answer depends on how closely the phase comes to a pole along the integers, beyond "
        "what is known of its irrationality"
    )


def _climb(rewrite: Rewriter, rest: sympy.Expr, first: int, steps: list[Step]) -> Decision:
    scale = rewrite.scale
    for depth in range(first, _MAX_RUNGS):
        rung = scale.iterated_log(depth)
        lead = scale.lead(rest, strict=False)
        ratio = dict(lead.monomial)
        ratio[rung] = exponent(ratio.get(rung, S.Zero) - 1)
        growth = -1 if lead.coefficient == 0 else scale.growth(ratio)
        shown = _shown(scale, lead)
        against = scale.show(rung)
        if growth < 0:
            return _below(scale, steps, shown, against, lead)
        if lead.coefficient.free_symbols & set(scale.oracle.ranges):
            return _oscillating(rewrite, rest, lead, depth, growth, steps)
        if growth > 0:
            sign = scale.oracle.sign(lead.coefficient)
            if sign == 0:
                lead = scale.lead(rest, strict=True)
                raise Undecidable(f"the leading term {shown} may vanish")
            return _beyond(steps, sign, shown, against)
        sign = scale.oracle.sign(lead.coefficient - 1)
        if sign != 0:
            return _ratio(steps, sign, lead.coefficient, depth, against)
        steps.append(
            Step(
                f"the ratio of {'-p' if depth == 1 else 'what is left'} to {against} tends to 1: "
                f"subtract {against} and go one logarithm deeper",
                LOGARITHMIC_SCALE,
                _HARDY,
            )
        )
        rest = rest - rung
    raise Undecidable("the ladder of logarithms did not end")


def _oscillating(
    rewrite: Rewriter, rest: sympy.Expr, lead: Lead, depth: int, growth: int, steps: list[Step]
) -> Decision:
    scale = rewrite.scale
    shown = _shown(scale, lead)
    against = scale.show(scale.iterated_log(depth))
    critical = S.One if growth == 0 else S.Zero
    found = resolve(rewrite, rest, lead, critical)
    if isinstance(found, Envelope):
        if found.sign > 0:
            text = f"the oscillating leading term {shown} stays above {critical + 0}*{against}"
            rule = "comparison with the lower envelope of -p"
        else:
            text = (
                f"the oscillating leading term {shown} comes near {scale.show(found.minimum)} times "
                "its size for a recurrent set of n, below the critical value"
            )
            rule = "recurrence of the phase"
        return Decision(found.sign > 0, rule, (*steps, Step(text, rule)))
    if isinstance(found, Subsequence):
        text = (
            f"infinitely many n come so close to the minimum of {shown} that the terms do not "
            "tend to 0"
        )
        rule = "Diophantine approximation"
        return Decision(False, rule, (*steps, Step(text, rule, _MINKOWSKI)))
    if isinstance(found, Best):
        return _best_case(rewrite, found, depth, steps)
    decisions = []
    for at in dict.fromkeys(found.rests):
        text = (
            f"near the minimum of {shown} (order {found.minimum.order}) the mean of exp(p) over "
            f"the phase is that of -p = {scale.show(at)}"
        )
        step = Step(text, "Laplace's method over an equidistributed phase", _LAPLACE)
        decisions.append(_climb(rewrite, at, depth, [*steps, step]))
        if not decisions[-1].converges:
            break
    return decisions[-1]


def _best_case(rewrite: Rewriter, found: Best, depth: int, steps: list[Step]) -> Decision:
    """Even with the phase at its minimum for every n the series converges, or nothing is known."""
    rule = "comparison with the lower envelope of -p"
    for at in dict.fromkeys(found.rests):
        step = Step(f"-p is at least {rewrite.scale.show(at)}, its value at the minimum", rule)
        decision = _climb(rewrite, at, depth, [*steps, step])
        if not decision.converges:
            raise Undecidable(found.reason)
        steps = list(decision.steps)
    return Decision(True, rule, tuple(steps))


def _infinite(x: sympy.Expr) -> Decision:
    if x is S.NegativeInfinity:
        step = Step("p(n) = -oo for all large n: every term is 0", "finitely many terms")
        return Decision(True, "finitely many terms are not 0", (step,))
    step = Step("p(n) = oo for large n: the terms are infinite", "terms do not tend to 0")
    return Decision(False, "terms do not tend to 0", (step,))


def _shown(scale: Scale, lead: Lead) -> sympy.Expr:
    return scale.show(lead.coefficient * scale.value(lead.monomial))


def _expansion_step(scale: Scale, x: sympy.Expr) -> Step:
    shown = scale.show(x)
    return Step(
        f"for large n, p(n) = {shown}",
        "exact rewriting",
        latex=f"p(n) = {sympy.latex(shown)}",
    )


def _below(scale: Scale, steps: list[Step], shown, against, lead: Lead) -> Decision:
    bounded = lead.coefficient == 0 or scale.growth(lead.monomial) <= 0
    if bounded and len(steps) == 1:
        step = Step(
            "p(n) is bounded: the terms stay above a positive constant", "terms do not tend to 0"
        )
        return Decision(False, "terms do not tend to 0", (*steps, step))
    what = "is bounded" if bounded else f"~ {shown} = o({against})"
    step = Step(
        f"{'-p' if len(steps) == 1 else 'what is left'} {what}: the ratio to {against} tends to 0 "
        "< 1, so the series diverges",
        LOGARITHMIC_SCALE,
        _HARDY,
    )
    return Decision(False, LOGARITHMIC_SCALE, (*steps, step))


def _beyond(steps: list[Step], sign: int, shown, against) -> Decision:
    name = "-p" if len(steps) == 1 else "what is left"
    if sign > 0:
        text = f"{name} ~ {shown} grows faster than any multiple of {against}: converges"
    else:
        text = f"{name} ~ {shown} falls below any multiple of -{against}: diverges"
    return Decision(sign > 0, LOGARITHMIC_SCALE, (*steps, Step(text, LOGARITHMIC_SCALE, _HARDY)))


def _ratio(steps: list[Step], sign: int, limit, depth: int, against) -> Decision:
    name = "-p" if depth == 1 else "what is left"
    relation, answer = (">", "converges") if sign > 0 else ("<", "diverges")
    text = f"the ratio of {name} to {against} tends to {limit} {relation} 1: {answer}"
    return Decision(sign > 0, LOGARITHMIC_SCALE, (*steps, Step(text, LOGARITHMIC_SCALE, _HARDY)))
