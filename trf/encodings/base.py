"""What an encoding is: its formula, how its parameters vary over heads, and where it comes from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from enum import Enum
from functools import cached_property
from typing import TYPE_CHECKING, Any

import sympy

from trf.errors import ParameterError
from trf.expression import Bias, Domain, as_bias

if TYPE_CHECKING:
    from trf.encodings.answer import Answer

HeadRule = Callable[[int], tuple[sympy.Expr, ...]]


class Kind(str, Enum):
    """How an encoding enters attention, which decides what the theory can say of it."""

    NONE = "none"  # no position information beyond the causal mask
    ADDITIVE = "additive"  # a bias p(n) on the logit: the theorem's case
    TABLE = "table"  # a bias p(n) looked up in learned values
    WINDOW = "window"  # a mask: p is 0 or -oo
    ABSOLUTE = "absolute"  # added to the embeddings: no p(n)
    MULTIPLICATIVE = "multiplicative"  # acts on queries and keys: no p(n)
    LENGTH_DEPENDENT = "length-dependent"  # a bias of the distance and the query's position
    DATA_DEPENDENT = "data-dependent"  # a bias that the tokens themselves decide

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True)
class Learnable:
    """A parameter that training moves: one value a head, shared by all layers.

    Attributes:
        low, high: initial values are drawn from U(low, high), per head.
        minimum, maximum: the value is kept within these; None for no limit.
    """

    name: str
    low: float
    high: float
    minimum: float | None = 0.01
    maximum: float | None = None


@dataclass(frozen=True)
class StandIn:
    """A bias p(n) that speaks for an encoding whose own is missing, or slow to decide.

    Attributes:
        formula: its p(n) as text.
        because: why its series says something of the encoding.
        decides: whether its verdict is that of the encoding; otherwise it holds in the special
            case that `because` names.
    """

    formula: str
    because: str
    decides: bool = True


@dataclass(frozen=True)
class Encoding:
    """A position encoding as data.

    Attributes:
        name: the registry key.
        title: the name in prose and on figures.
        kind: how it enters attention.
        formula: p(n) as text, n the distance; None where there is no additive bias.
        reference: paper and equation.
        fixed: parameter -> rule giving its value for each of `n_head` heads.
        learnable: the parameters that training moves.
        assume: domains of parameters that are not positive reals.
        aliases: further names under which it is found.
        note: what the theory says where there is no p(n), or another remark.
        score: what it does to the logits, as text, where there is no p(n).
        mechanism: what runs it in the decoder (`trf.nn.mechanisms`); empty for a bias p(n), which
            is compiled from `formula`, and for encodings that are here for theory only.
        settings: the numbers that the mechanism takes.
        stand_in: a bias whose series speaks for the encoding.

    Example:
        >>> Encoding.from_expression("-r*log(1+n)").bias.expr
        -r*log(n + 1)
    """

    name: str
    title: str
    kind: Kind
    formula: str | None
    reference: str
    fixed: Mapping[str, HeadRule] = field(default_factory=dict)
    learnable: tuple[Learnable, ...] = ()
    assume: Mapping[str, Domain] = field(default_factory=dict)
    aliases: tuple[str, ...] = ()
    note: str = ""
    score: str = ""
    mechanism: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    stand_in: StandIn | None = None

    @cached_property
    def bias(self) -> Bias | None:
        """The symbolic p(n), with the per-head parameters as symbols."""
        return None if self.formula is None else as_bias(self.formula, self.assume or None)

    def answer(self, *, bidirectional: bool = False) -> Answer:
        """What the theory says: a verdict, or why the theorem does not apply.

        Args:
            bidirectional: sum over all integers n, both tails.

        Example:
            >>> Encoding.from_expression("-r*sqrt(n)").answer().status
            'converges'
        """
        from trf.encodings.answer import answer

        return answer(self, bidirectional=bidirectional)

    def head_values(self, n_head: int) -> list[dict[str, sympy.Expr]]:
        """The fixed parameters of each head, as exact numbers: ``[{"m": 1/2}, ...]``.

        Raises:
            ParameterError: unless `n_head` is a positive integer.
        """
        if isinstance(n_head, bool) or not isinstance(n_head, int) or n_head < 1:
            raise ParameterError(f"n_head must be a positive integer, got {n_head!r}")
        columns = {name: rule(n_head) for name, rule in self.fixed.items()}
        return [{name: values[h] for name, values in columns.items()} for h in range(n_head)]

    def head_biases(
        self, n_head: int, learned: Mapping[str, Any] | list[Mapping[str, Any]] | None = None
    ) -> list[Bias]:
        """The bias of each head with its fixed, and any given learned, values put in.

        Args:
            n_head: the number of heads.
            learned: values of further parameters: one mapping for all heads, or one a head.

        Raises:
            ParameterError: if there is no additive bias, or the heads don't match.
        """
        if self.bias is None:
            raise ParameterError(f"{self.title} has no additive bias p(n): {self.note}")
        per_head = learned if isinstance(learned, list) else [learned or {}] * n_head
        if len(per_head) != n_head:
            raise ParameterError(f"{len(per_head)} sets of learned values for {n_head} heads")
        return [
            self.bias.substitute({**fixed, **given})
            for fixed, given in zip(self.head_values(n_head), per_head, strict=True)
        ]

    @classmethod
    def from_expression(
        cls,
        expression: Any,
        *,
        name: str = "custom",
        title: str | None = None,
        assume: Mapping[str, Domain] | None = None,
        fixed: Mapping[str, HeadRule] | None = None,
        n_head: int | None = None,
    ) -> Encoding:
        """An encoding of your own from a bias expression; it runs in the decoder as it is.

        Parameters not in `fixed` are learnable: positive ones start from U(0.01, 1) per head and
        never leave [0.01, oo); negative ones likewise on the other side, real ones from U(-1, 1).
        Integers can't be learned: give them by a rule in `fixed`.

        Args:
            expression: p(n) as text, LaTeX, sympy expression or `Bias`.
            name, title: of the encoding.
            assume: domains of parameters that are not positive reals.
            fixed: parameter -> rule giving its value for each head.
            n_head: the number of heads that the rules in `fixed` are tried on at once; the
                decoder has its own number of heads.

        Raises:
            ExpressionError: if the expression can't be read.
            ParameterError: a rule in `fixed` is of no parameter, or fails for `n_head` heads.

        Example:
            >>> mine = Encoding.from_expression("-r*sqrt(n)", n_head=8)
            >>> mine.learnable
            (Learnable(name='r', low=0.01, high=1.0, minimum=0.01, maximum=None),)
        """
        bias = as_bias(expression, assume)
        fixed = dict(fixed or {})
        for rule in fixed:
            if rule not in bias.domains:
                raise ParameterError(
                    f"{rule!r} is not a parameter of {bias.source} (its parameters: "
                    f"{', '.join(bias.domains) or 'none'})"
                )
        encoding = cls(
            name=name,
            title=title or str(bias.expr),
            kind=Kind.ADDITIVE,
            formula=str(bias.expr),
            reference="user's own",
            fixed=fixed,
            learnable=tuple(
                _learnable(symbol)
                for symbol in bias.parameters
                if symbol.name not in fixed and not symbol.is_integer
            ),
            assume=dict(assume or {}),
        )
        encoding.__dict__["bias"] = bias
        if n_head is not None:
            encoding.head_values(n_head)
        return encoding

    def to_dict(self) -> dict[str, Any]:
        """As JSON-able data."""
        return {
            "name": self.name,
            "title": self.title,
            "kind": self.kind.value,
            "formula": self.formula,
            "score": self.score,
            "domains": self.bias.domains if self.bias is not None else {},
            "fixed": sorted(self.fixed),
            "learnable": [asdict(parameter) for parameter in self.learnable],
            "mechanism": self.mechanism,
            "settings": dict(self.settings),
            "stand_in": None if self.stand_in is None else asdict(self.stand_in),
            "reference": self.reference,
            "aliases": list(self.aliases),
            "note": self.note,
        }

    def _repr_markdown_(self) -> str:
        formula = "no $p(n)$" if self.bias is None else f"$p(n) = {sympy.latex(self.bias.expr)}$"
        return f"**{self.title}** ({self.kind}): {formula}. {self.note} *{self.reference}*"

    def __str__(self) -> str:
        return f"{self.title}: " + (
            f"p(n) = {self.formula}" if self.formula is not None else f"no p(n); {self.note}"
        )


def _learnable(symbol: sympy.Symbol) -> Learnable:
    """The range of a parameter that training moves, from its domain."""
    if symbol.is_positive:
        return Learnable(symbol.name, 0.01, 1.0)
    if symbol.is_negative:
        return Learnable(symbol.name, -1.0, -0.01, minimum=None, maximum=-0.01)
    if symbol.is_nonnegative:
        return Learnable(symbol.name, 0.0, 1.0, minimum=0.0)
    if symbol.is_nonpositive:
        return Learnable(symbol.name, -1.0, 0.0, minimum=None, maximum=0.0)
    return Learnable(symbol.name, -1.0, 1.0, minimum=None)
