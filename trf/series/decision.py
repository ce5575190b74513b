"""The decision: a series split in parts, each part in the cases of its parameters."""

# sympy's stubs type the parts and the results of an expression too widely.
# pyright: reportAssignmentType=false

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import partial
from typing import cast

import sympy
from sympy import S
from sympy.logic.boolalg import Boolean

from trf.expression import exact
from trf.series import cases
from trf.series import steps as write
from trf.series.asymptotics import Scale
from trf.series.conditions import tidy
from trf.series.integers import Held, parts, subsequences
from trf.series.ladder import Decision, climb
from trf.series.proof import Claim, Step
from trf.series.rewriting import Rewriter
from trf.series.signs import Budget, Oracle, Undecidable
from trf.series.special import HANDLERS, LOGARITHMS
from trf.series.steps import Draft
from trf.series.verdict import Status

WORK_LIMIT = 30_000
_SYMBOL = re.compile(r"<(?=\S)([^<>]*\S)>")  # how generators and bounded symbols are named


@dataclass(frozen=True)
class Outcome:
    """What `decide` found, before it is dressed as a verdict."""

    status: Status
    condition: Boolean | None
    criterion: str
    drafts: tuple[Draft, ...] = ()
    claims: tuple[Claim, ...] = ()
    reason: str = ""

    @property
    def steps(self) -> tuple[Step, ...]:
        """The proof, written out."""
        return tuple(draft() for draft in self.drafts)


def decide(expr: sympy.Expr, n: sympy.Symbol) -> Outcome:
    """Decide ``sum exp(expr)`` over the integers n, in every case of the other symbols."""
    expr = expr.xreplace({f: exact(f) for f in expr.atoms(sympy.Float)})
    found = parts(expr, n)
    outcomes = [(part.which, _decide_part(part.expr)) for part in found]
    if any(which == "" and _uses_few_terms(o) for which, o in outcomes) and len(found) > 1:
        reason = "the terms outside a sparse set are decided by few of them, which it may hold"
        return Outcome(Status.UNDECIDED, None, "", reason=reason)
    outcome = together(outcomes)
    if outcome.status is Status.UNDECIDED and len(found) == 1:
        for thinner in subsequences(expr, n):
            sub = _decide_part(thinner.expr)
            if sub.status is Status.DIVERGES:
                return _thinned(thinner.which, sub)
    return outcome


def _uses_few_terms(outcome: Outcome) -> bool:
    return write.APPROXIMATION in outcome.criterion


def together(outcomes: list[tuple[str, Outcome]]) -> Outcome:
    """The outcome of a series from those of its parts, each with the n it runs over.

    A series split in parts converges if and only if every part does.
    """
    if len(outcomes) == 1:
        return outcomes[0][1]
    for which, outcome in outcomes:
        if outcome.status is Status.DIVERGES:
            return _thinned(which or "all other n", outcome)
    for _, outcome in outcomes:
        if outcome.status is Status.UNDECIDED:
            return outcome
    drafts: list[Draft] = []
    for which, outcome in outcomes:
        which = which or "all other n"
        drafts += [write.fixed(f"the terms with {which}:", "split of the series")]
        drafts += outcome.drafts
    condition = tidy(sympy.And(*(o.condition for _, o in outcomes if o.condition is not None)))
    criteria = "; ".join(dict.fromkeys(outcome.criterion for _, outcome in outcomes))
    return _outcome(condition, criteria, tuple(drafts), ())


def _thinned(which: str, outcome: Outcome) -> Outcome:
    """A part of a series of positive terms diverges, hence the whole."""
    step = write.fixed(f"the terms with {which} alone diverge", write.POSITIVE)
    drafts = (step, *outcome.drafts)
    return Outcome(Status.DIVERGES, S.false, outcome.criterion, drafts)


def _outcome(
    condition: Boolean, criterion: str, drafts: tuple[Draft, ...], claims: tuple[Claim, ...]
) -> Outcome:
    status = Status.CONDITIONAL
    if condition in (S.true, S.false):
        status = Status.CONVERGES if condition == S.true else Status.DIVERGES
    return Outcome(status, condition, criterion, drafts, claims)


def _decide_part(expr: sympy.Expr) -> Outcome:
    tree = cases.explore(_run, expr, Budget(WORK_LIMIT))
    found = list(cases.leaves(tree))
    undecided = [leaf for leaf in found if leaf.holds is None]
    if undecided:
        reason = _SYMBOL.sub(r"\1", str(undecided[0].detail))
        if undecided[0].case:
            case = ", ".join(str(relation) for relation in undecided[0].case)
            reason = f"in the case {case}: {reason}"
        return Outcome(Status.UNDECIDED, None, "", (), (), reason)
    decisions = [(leaf.case, cast(Decision, leaf.detail)) for leaf in found]
    drafts: list[Draft] = []
    for case, decision in decisions:
        if case:
            drafts.append(partial(_case_step, case))
        drafts += decision.steps
    claims = tuple(
        replace(decision.claim, case=case) for case, decision in decisions if decision.claim
    )
    criterion = "; ".join(dict.fromkeys(decision.criterion for _, decision in decisions))
    return _outcome(cases.condition(tree), criterion, tuple(drafts), claims)


def _case_step(case: tuple[Boolean, ...]) -> Step:
    return Step(f"case {', '.join(str(relation) for relation in case)}", write.SPLIT)


_RULES = {**HANDLERS, Held: lambda rewrite, x: rewrite(x.args[0])}


def _run(expr: sympy.Expr, oracle: Oracle) -> tuple[bool, Decision]:
    if expr.has(S.ComplexInfinity, S.NaN):
        raise Undecidable("p is undefined there")
    rewrite = Rewriter(Scale(oracle), _RULES, LOGARITHMS)
    decision = climb(rewrite, rewrite(expr))
    return decision.converges, decision
