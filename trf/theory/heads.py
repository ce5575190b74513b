"""What a bias, an encoding or a list of biases means as attention heads with numbers in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sympy

from trf.encodings import Encoding
from trf.errors import ParameterError
from trf.expression import Bias, Domain, as_bias

DEFAULT_HEADS = 8


@dataclass(frozen=True)
class Heads:
    """One bias a head, every parameter a number.

    ``single`` is True where the user gave one bias rather than heads.
    """

    biases: tuple[Bias, ...]
    label: str
    single: bool

    @property
    def exponents(self) -> tuple[sympy.Expr, ...]:
        """``p(n)`` of each head."""
        return tuple(bias.expr for bias in self.biases)


def read_heads(
    bias: Any,
    parameters: Mapping[str, Any] | None = None,
    values: Mapping[str, Any] | None = None,
    *,
    n_head: int | None = None,
    assume: Mapping[str, Domain] | None = None,
) -> Heads:
    """The heads that ``bias`` stands for, with the parameter values put in.

    Args:
        bias: a text, a sympy expression, a `Bias`, an `Encoding`, or a sequence of these, one a
            head. An encoding with a rule over heads has ``n_head`` of them (8 unless given).
        parameters: parameter name -> value.
        values: the same, given as keywords; a name in both must agree.
        n_head: the number of heads; only for an encoding with a rule over heads.
        assume: domains of parameters that are not positive reals.

    Raises:
        ParameterError: a parameter without a value, an unknown one, or one given twice.
        ExpressionError: ``bias`` can't be read, or is an encoding without an additive bias.
    """
    given = _merged(parameters or {}, values or {})
    if isinstance(bias, Encoding) and bias.bias is not None and bias.fixed:
        count = DEFAULT_HEADS if n_head is None else n_head
        heads = bias.head_biases(count, given or None)
        return Heads(tuple(_complete(b) for b in heads), f"{bias.title}, {count} heads", False)
    if n_head is not None:
        raise ParameterError(
            f"n_head={n_head} is for encodings with a rule over heads; give a list of biases, "
            "one a head, for heads of your own"
        )
    if isinstance(bias, Sequence) and not isinstance(bias, str):
        if not bias:
            raise ParameterError("an empty list of heads: give at least one bias")
        read = [as_bias(head, assume) for head in bias]
        known = {symbol.name for one in read for symbol in one.parameters}
        _refuse_unknown(given, known, "these heads")
        heads = [
            one.substitute({k: v for k, v in given.items() if k in one.domains}) for one in read
        ]
        return Heads(tuple(_complete(b) for b in heads), f"{len(heads)} heads", False)
    one = as_bias(bias, assume).substitute(given)
    return Heads((_complete(one),), _label(one, given), True)


def _merged(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    for name in first:
        if name in second:
            raise ParameterError(f"{name} is given twice: in parameters={{...}} and as a keyword")
    return {**first, **second}


def _refuse_unknown(given: Mapping[str, Any], known: set[str], what: str) -> None:
    for name in given:
        if name not in known:
            listed = ", ".join(sorted(known)) or "none"
            raise ParameterError(f"{name!r} is not a parameter of {what} (parameters: {listed})")


def _complete(bias: Bias) -> Bias:
    """The bias, if every parameter has a value."""
    missing = [symbol.name for symbol in bias.parameters]
    if missing:
        wanted = ", ".join(f"{name} ({bias.domains[name]})" for name in missing)
        example = "{" + ", ".join(f'"{name}": ...' for name in missing) + "}"
        raise ParameterError(
            f"{bias.source} needs a value for {wanted}: pass parameters={example}, or keywords"
        )
    return bias


def _label(bias: Bias, given: Mapping[str, Any]) -> str:
    values = ", ".join(f"{name}={value}" for name, value in given.items())
    return bias.source + (f" at {values}" if values else "")
