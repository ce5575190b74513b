"""What the theory says of an encoding, those without an additive bias included."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from trf.encodings.base import Encoding
from trf.errors import UndecidedError
from trf.expression import as_bias
from trf.series.convergence import converges
from trf.series.verdict import Verdict

NOT_APPLICABLE = "not applicable"


@dataclass(frozen=True)
class Answer:
    """A verdict on an encoding, or why the theorem does not apply to it.

    Attributes:
        encoding: its title.
        status: ``converges``, ``diverges``, ``conditional``, ``undecided`` or ``not applicable``.
        verdict: of its own series, or of the series that stands in for it; None without either.
        reason: why that series speaks for it, or why there is none.
    """

    encoding: str
    status: str
    verdict: Verdict | None
    reason: str = ""

    def __bool__(self) -> bool:
        if self.status == NOT_APPLICABLE or self.verdict is None:
            raise UndecidedError(
                f"the theorem does not apply to {self.encoding}: {self.reason}; read "
                "answer.status before bool(answer)"
            )
        return bool(self.verdict)

    def __str__(self) -> str:
        if self.verdict is not None and not self.reason:
            return f"{self.encoding}: {self.verdict}"
        series = "" if self.verdict is None else f" ({self.verdict})"
        return f"{self.encoding}: {self.status}: {self.reason}{series}"

    @property
    def explanation(self) -> str:
        """The answer and the proof behind it, as text."""
        head = f"{self.encoding}: {self.status}" + (f": {self.reason}" if self.reason else "")
        return head if self.verdict is None else f"{head}\n{self.verdict.explanation}"

    def to_dict(self) -> dict[str, Any]:
        """As JSON-able data."""
        return {
            "encoding": self.encoding,
            "status": self.status,
            "reason": self.reason,
            "verdict": None if self.verdict is None else self.verdict.to_dict(),
        }


def answer(encoding: Encoding, *, bidirectional: bool = False) -> Answer:
    """The theory's answer for `encoding`; `Encoding.answer` is the usual way here.

    Its own p(n) is decided where it has one. A stand-in takes the place of a p(n) that is missing
    or too long; where it holds in a special case only, the status is ``not applicable`` and the
    verdict is that of the special case.

    Example:
        >>> from trf import encodings
        >>> answer(encodings.get("rope")).status
        'diverges'
        >>> answer(encodings.get("sinusoidal")).status
        'not applicable'
    """
    spoken = encoding.stand_in
    if spoken is not None:
        verdict = converges(as_bias(spoken.formula), bidirectional=bidirectional)
        status = verdict.status.value if spoken.decides else NOT_APPLICABLE
        return Answer(encoding.title, status, verdict, spoken.because)
    if encoding.bias is None:
        return Answer(encoding.title, NOT_APPLICABLE, None, encoding.note)
    verdict = converges(encoding.bias, bidirectional=bidirectional)
    return Answer(encoding.title, verdict.status.value, verdict)
