"""Does ``sum exp(p(n))`` converge? The decision, as a verdict with its condition and proof."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import sympy
from sympy import S
from sympy.logic.boolalg import Boolean

from trf.expression import Domain, as_bias, exact
from trf.series import cases
from trf.series.asymptotics import Scale
from trf.series.integers import parts, subsequences
from trf.series.ladder import Decision, climb
from trf.series.rewriting import Rewriter
from trf.series.signs import Budget, Oracle
from trf.series.special import HANDLERS, LOGARITHMS
from trf.series.start import first_finite
from trf.series.verdict import SUFFICIENT_ONLY, Status, Step, Verdict

WORK_LIMIT = 30_000


@dataclass(frozen=True)
class Outcome:
    """What `decide` found, before it is dressed as a verdict."""

    status: Status
    condition: Boolean | None
    criterion: str
    steps: tuple[Step, ...]
    reason: str = ""


def converges(
    bias: Any,
    *,
    assume: Mapping[str, Domain] | None = None,
    bidirectional: bool = False,
) -> Verdict:
    """Decide whether ``sum_{n >= start} exp(p(n))`` converges.

    Args:
        bias: text, LaTeX, sympy expression, encoding or `Bias`: p(n), n the distance.
        assume: parameter -> domain; positive reals otherwise.
        bidirectional: sum over all integers n, both tails.

    Returns:
        A verdict: converges, diverges, conditional on the parameters, or undecided with the
        reason. A verdict other than undecided is proved; `Verdict.proof` holds the steps.

    Raises:
        ExpressionError: if `bias` can't be read.
        ParameterError: for an unreadable domain.

    Reference: Qin, Zhong, Deng, Exploring Transformer Extrapolation (arXiv 2307.10156): with
    bounded queries and keys, convergence is sufficient for extrapolation in length.

    Example:
        >>> str(converges("-r1*log(1+r2*n)").condition)
        'r1 > 1'
    """
    read = as_bias(bias, assume)
    n = _distance(read.expr)
    outcome = decide(read.expr, n)
    proof = outcome.steps
    if outcome.status in (Status.DIVERGES, Status.CONDITIONAL):
        proof = (*proof, Step(SUFFICIENT_ONLY, "scope of the theorem", "arXiv 2307.10156"))
    return Verdict(
        status=outcome.status,
        condition=outcome.condition,
        bias=read,
        parameters=read.domains,
        start=first_finite(read.expr, n),
        criterion=outcome.criterion,
        proof=proof,
        reason=outcome.reason,
        bidirectional=bidirectional,
    )


def _distance(expr: sympy.Expr) -> sympy.Symbol:
    from trf.expression import distance

    return distance()


def decide(expr: sympy.Expr, n: sympy.Symbol) -> Outcome:
    """Decide ``sum exp(expr)`` over the integers n, in every case of the other symbols."""
    expr = expr.xreplace({f: exact(f) for f in expr.atoms(sympy.Float)})
    found = parts(expr, n)
    outcome = _together([(part.which, _decide_part(part.expr)) for part in found])
    if outcome.status is Status.UNDECIDED and len(found) == 1:
        for thinner in subsequences(expr, n):
            sub = _decide_part(thinner.expr)
            if sub.status is Status.DIVERGES:
                step = Step(f"the terms with {thinner.which} alone diverge", "positive terms")
                return Outcome(sub.status, sub.condition, sub.criterion, (step, *sub.steps))
    return outcome


def _together(outcomes: list[tuple[str, Outcome]]) -> Outcome:
    """A series split in parts converges if and only if every part does."""
    if len(outcomes) == 1:
        return outcomes[0][1]
    for which, outcome in outcomes:
        if outcome.status is Status.DIVERGES:
            step = Step(f"the terms with {which or 'all other n'} alone diverge", "positive terms")
            return Outcome(Status.DIVERGES, S.false, outcome.criterion, (step, *outcome.steps))
    for _, outcome in outcomes:
        if outcome.status is Status.UNDECIDED:
            return outcome
    steps: list[Step] = []
    conditions: list[Boolean] = []
    for which, outcome in outcomes:
        steps.append(Step(f"the terms with {which or 'all other n'}:", "split of the series"))
        steps.extend(outcome.steps)
        if outcome.condition is not None:
            conditions.append(outcome.condition)
    condition = cases.tidy(sympy.And(*conditions))
    criteria = "; ".join(dict.fromkeys(outcome.criterion for _, outcome in outcomes))
    return _outcome(condition, criteria, tuple(steps))


def _outcome(condition: Boolean, criterion: str, steps: tuple[Step, ...]) -> Outcome:
    if condition == S.true:
        return Outcome(Status.CONVERGES, condition, criterion, steps)
    if condition == S.false:
        return Outcome(Status.DIVERGES, condition, criterion, steps)
    return Outcome(Status.CONDITIONAL, condition, criterion, steps)


def _decide_part(expr: sympy.Expr) -> Outcome:
    tree = cases.explore(_run, expr, Budget(WORK_LIMIT))
    found = list(cases.leaves(tree))
    undecided = [leaf for leaf in found if leaf.holds is None]
    if undecided:
        reason = str(undecided[0].detail)
        if undecided[0].case:
            case = ", ".join(str(relation) for relation in undecided[0].case)
            reason = f"in the case {case}: {reason}"
        return Outcome(Status.UNDECIDED, None, "", (), reason)
    criteria = list(dict.fromkeys(leaf.detail.criterion for leaf in found))  # type: ignore[attr-defined]
    return _outcome(cases.condition(tree), "; ".join(criteria), _proof(found))


def _run(expr: sympy.Expr, oracle: Oracle) -> tuple[bool, Decision]:
    rewrite = Rewriter(Scale(oracle), HANDLERS, LOGARITHMS)
    decision = climb(rewrite, rewrite(expr))
    return decision.converges, decision


def _proof(found: list[cases.Leaf]) -> tuple[Step, ...]:
    steps: list[Step] = []
    for leaf in found:
        if leaf.case:
            case = ", ".join(str(relation) for relation in leaf.case)
            steps.append(Step(f"case {case}", "split on the sign of a parameter expression"))
        steps.extend(leaf.detail.steps)  # type: ignore[attr-defined]
    return tuple(steps)
