"""What a proof is made of: steps to read, and claims that numbers can contradict."""

from __future__ import annotations

from dataclasses import dataclass

import sympy


@dataclass(frozen=True)
class Step:
    """One step of a proof: a statement, the rule that gives it, and where the rule stands."""

    statement: str
    rule: str
    source: str = ""
    latex: str = ""

    def to_dict(self) -> dict[str, str]:
        """The step as JSON-able data."""
        return {
            "statement": self.statement,
            "rule": self.rule,
            "source": self.source,
            "latex": self.latex,
        }


@dataclass(frozen=True)
class Claim:
    """What the last step of a case says about -p, for a check by numbers.

    ``-p - sum subtracted`` is asymptotic to `lead`, or bounded where `lead` is None; the case
    holds under the relations `case`.
    """

    subtracted: tuple[sympy.Expr, ...]
    lead: sympy.Expr | None
    case: tuple[sympy.Basic, ...] = ()
    which: str = ""
