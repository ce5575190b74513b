"""Does ``sum exp(p(n))`` converge? Reads the bias and gives the verdict.

The weight of distance n is exp(p(n)). With bounded queries and keys, ``sum exp(p(n)) < oo`` is
sufficient for a model to extrapolate in length (Qin, Zhong, Deng, arXiv 2307.10156).
"""

# sympy's stubs type the parts and the results of an expression too widely.
# pyright: reportArgumentType=false, reportCallIssue=false, reportGeneralTypeIssues=false

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import sympy

from trf.expression import Bias, Domain, as_bias, distance
from trf.series import steps as write
from trf.series.decision import decide, together
from trf.series.verdict import SUFFICIENT_ONLY, Status, Verdict

_ABSOLUTE_DISTANCE = re.compile(
    r"(\\[lr]vert|\||abs\s*\(|Abs\s*\()\s*([mnij])\s*-\s*([mnij])\s*(\\[lr]vert|\\right|\||\))"
)
_LONE_N = re.compile(r"(?<![A-Za-z0-9_\\])n(?![A-Za-z0-9_])")


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
        bidirectional: sum over all integers n, both tails. In a text, and in a sympy expression
            whose ``n`` carries no assumption, n is then the *signed* distance; ``|n|`` and
            ``|m-n|`` are the distance, and so is the n of an encoding or a `Bias`.

    Returns:
        A verdict: converges, diverges, conditional on the parameters, or undecided with the
        reason. A verdict other than undecided is proved; `Verdict.proof` holds the steps.

    Raises:
        ExpressionError: if `bias` can't be read.
        ParameterError: for an unreadable domain.

    Reference: Qin, Zhong, Deng, Exploring Transformer Extrapolation (arXiv 2307.10156).

    Example:
        >>> str(converges("-r1*log(1+r2*n)").condition)
        'r1 > 1'
        >>> str(converges("n*log(xi)", bidirectional=True).status)
        'diverges'
    """
    right = as_bias(bias, assume)
    if not bidirectional:
        return decided((right,))
    return decided((right, _mirrored(bias, right, assume)))


def decided(tails: tuple[Bias, ...]) -> Verdict:
    """The verdict on a bias, or on the two tails of one: p(n) and p(-n), n >= 0."""
    n = distance()
    if len({tail.expr for tail in tails}) == 1:
        outcome = decide(tails[0].expr, n)
    else:
        names = ("n >= 0", "n < 0")
        outcome = together(
            [(name, decide(tail.expr, n)) for name, tail in zip(names, tails, strict=True)]
        )
    drafts = outcome.drafts
    if len(tails) > 1 and tails[0].expr == tails[1].expr:
        drafts = (write.fixed("p(-n) = p(n): both tails are the same", "symmetry"), *drafts)
    if outcome.status in (Status.DIVERGES, Status.CONDITIONAL):
        drafts += (write.fixed(SUFFICIENT_ONLY, "scope of the theorem", "arXiv 2307.10156"),)
    return Verdict(
        status=outcome.status,
        condition=outcome.condition,
        bias=tails[0],
        parameters={name: domain for tail in tails for name, domain in tail.domains.items()},
        criterion=outcome.criterion,
        reason=outcome.reason,
        tails=tails,
        drafts=drafts,
        claims=outcome.claims,
    )


def _mirrored(bias: Any, right: Bias, assume: Mapping[str, Domain] | None) -> Bias:
    """The left tail: p(-n)."""
    if isinstance(bias, str) and not _ABSOLUTE_DISTANCE.search(bias.replace(r"\left", "")):
        return as_bias(_LONE_N.sub("{(-n)}" if "\\" in bias else "(-n)", bias), assume)
    if isinstance(bias, sympy.Basic):
        signed = {s: -s for s in bias.free_symbols if s.name == "n" and not s.is_nonnegative}  # type: ignore[attr-defined]
        return as_bias(bias.subs(signed), assume) if signed else right
    return right
