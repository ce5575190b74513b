"""Verdicts: what was decided about a series, under which condition, and why."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from typing import TYPE_CHECKING, Any

import sympy
from sympy.logic.boolalg import Boolean

from trf.errors import UndecidedError
from trf.expression import Bias, distance
from trf.series.proof import Claim, Step
from trf.series.start import first_finite

SUFFICIENT_ONLY = (
    "The theorem (Qin, Zhong, Deng, arXiv 2307.10156) is sufficient only: a divergent series does "
    "not prove that a model fails to extrapolate."
)

if TYPE_CHECKING:
    from trf.series.check import Check
    from trf.series.horizon import Horizon


class Status(str, Enum):
    """What a verdict says of the series."""

    CONVERGES = "converges"
    DIVERGES = "diverges"
    CONDITIONAL = "conditional"
    UNDECIDED = "undecided"

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True)
class Verdict:
    """Whether ``sum_{n >= start} exp(p(n))`` converges.

    Attributes:
        status: converges, diverges, conditional or undecided.
        condition: in the parameters only; true or false where they don't matter, None where
            undecided.
        parameters: parameter -> the domain that was assumed of it.
        criterion: the rule that decided.
        reason: for an undecided verdict, what stopped it.
        tails: p(n), and p(-n) where both directions were summed.
    """

    status: Status
    condition: Boolean | None
    bias: Bias
    parameters: Mapping[str, str] = field(default_factory=dict)
    criterion: str = ""
    reason: str = ""
    tails: tuple[Bias, ...] = ()
    drafts: tuple[Callable[[], Step], ...] = field(default=(), repr=False, compare=False)
    claims: tuple[Claim, ...] = field(default=(), repr=False, compare=False)

    def __bool__(self) -> bool:
        if self.status is Status.CONVERGES:
            return True
        if self.status is Status.DIVERGES:
            return False
        if self.status is Status.CONDITIONAL:
            values = ", ".join(f"{name}=..." for name in self.parameters)
            raise UndecidedError(
                f"the series converges if and only if {self.condition}: put in the parameters, "
                f"verdict.given({values}), or read verdict.condition"
            )
        raise UndecidedError(f"undecided: {self.reason}; read verdict.status before bool(verdict)")

    def __str__(self) -> str:
        head = f"{self.series}: {self._answer()}"
        if self.status is Status.UNDECIDED:
            return f"{head}, because {self.reason}"
        assumed = "; ".join(f"{name} {domain}" for name, domain in self.parameters.items())
        return f"{head} ({self.criterion}{'; ' + assumed if assumed else ''})"

    @property
    def bidirectional(self) -> bool:
        """Whether the sum runs over all integers n."""
        return len(self.tails) > 1

    @cached_property
    def start(self) -> int:
        """The first n from which every term is finite."""
        return first_finite(self.bias.expr, distance())

    @cached_property
    def horizon(self) -> Horizon | None:
        """What the weights look like at finite range, where the limit alone misleads.

        None unless the series diverges and p oscillates; the parameters must have values
        (`given`).
        """
        from trf.series.horizon import look

        if self.status is not Status.DIVERGES or self.bias.parameters:
            return None
        return look(self.bias.expr, distance(), self.start)

    def check(self) -> Check:
        """Corroborate the verdict by evaluating p far out, without the engine.

        Returns:
            Whether the numbers agree with the proof's claims, what they were, or why p can't be
            evaluated out there. Numbers prove nothing: the proof does.
        """
        from trf.series.check import Check, check

        if self.status is Status.UNDECIDED:
            return Check(None, (), "nothing was claimed")
        return check(self.bias.expr, distance(), self.claims)

    @cached_property
    def proof(self) -> tuple[Step, ...]:
        """The steps of the argument, in an order in which they can be checked by hand."""
        return tuple(draft() for draft in self.drafts)

    @property
    def series(self) -> str:
        """The series in one line of text."""
        if self.bidirectional:
            return f"sum over all n of exp({self.bias.source})"
        return f"sum over n>={self.start} of exp({self.bias.expr})"

    def _answer(self) -> str:
        if self.status is Status.CONDITIONAL:
            return f"converges if and only if {self.condition}"
        return self.status.value

    def given(self, values: Mapping[str, Any] | None = None, /, **named: Any) -> Verdict:
        """The verdict with numbers put in for some or all parameters, exactly.

        Args:
            values: name -> value; names that are Python words go here.
            named: the same, as keywords.

        Raises:
            ParameterError: for an unknown name or a value outside the parameter's domain.
        """
        from trf.series.convergence import decided

        given = {**(values or {}), **named}
        unknown = {name: value for name, value in given.items() if name not in self.parameters}
        self.bias.substitute(unknown)
        tails = tuple(
            tail.substitute({s.name: given[s.name] for s in tail.parameters if s.name in given})
            for tail in self.tails
        )
        return decided(tails)

    @property
    def explanation(self) -> str:
        """The proof as text, one step a line."""
        lines = [str(self)]
        for number, step in enumerate(self.proof, 1):
            source = f" [{step.source}]" if step.source else ""
            lines.append(f"  {number}. {step.statement}  ({step.rule}){source}")
        return "\n".join(lines)

    def _repr_latex_(self) -> str:
        index = r"n\in\mathbb{Z}" if self.bidirectional else rf"n\ge {self.start}"
        series = rf"\sum_{{{index}}} e^{{{sympy.latex(self.bias.expr)}}}"
        if self.status is Status.CONDITIONAL:
            answer = rf"\text{{ converges}} \iff {sympy.latex(self.condition)}"
        else:
            answer = rf"\text{{ {self.status.value}}}"
        return rf"$\displaystyle {series}{answer}$"

    def _repr_markdown_(self) -> str:
        parts = [self._repr_latex_()]
        if self.status is Status.UNDECIDED:
            parts.append(f"Undecided, because {_escape(self.reason)}.")
        for number, step in enumerate(self.proof, 1):
            source = f" [{_escape(step.source)}]" if step.source else ""
            shown = f"$\\displaystyle {step.latex}$" if step.latex else _escape(step.statement)
            parts.append(f"{number}. {shown} *({_escape(step.rule)})*{source}")
        return "\n\n".join(parts[:1]) + "\n\n" + "\n".join(parts[1:])

    def to_dict(self) -> dict[str, Any]:
        """The verdict as JSON-able data."""
        return {
            "p": str(self.bias.expr),
            "source": self.bias.source,
            "status": self.status.value,
            "condition": None if self.condition is None else str(self.condition),
            "parameters": dict(self.parameters),
            "start": self.start,
            "bidirectional": self.bidirectional,
            "criterion": self.criterion,
            "proof": [step.to_dict() for step in self.proof],
            "reason": self.reason,
        }


def _escape(text: str) -> str:
    """Markdown without accidents: bars, stars and underscores stand for themselves."""
    for mark in "\\|*_`<>":
        text = text.replace(mark, "\\" + mark)
    return text
