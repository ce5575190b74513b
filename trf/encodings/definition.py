"""An encoding that is not in the catalogue, as JSON-able data and back.

A checkpoint carries such an encoding in its configuration. The expression is text, read by the
parser that reads users' own; nothing is evaluated as Python.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import sympy

from trf.encodings.base import Encoding, HeadRule, Kind, Learnable, StandIn
from trf.errors import ExpressionError, ParameterError, TRFError
from trf.expression import Bias, as_bias

_LIMITS = ("minimum", "maximum")


def define(encoding: Encoding, n_head: int) -> dict[str, Any]:
    """The data from which `read` makes the encoding again, for `n_head` heads.

    Raises:
        ParameterError: its p(n) can't be written as text.

    Example:
        >>> define(Encoding.from_expression("-r*log(1+n)"), 2)["expression"]
        '-r*log(n + 1)'
    """
    heads = encoding.head_values(n_head)
    domains = {
        name: domain if isinstance(domain, str) else dict(domain)
        for name, domain in encoding.assume.items()
    }
    return {
        "expression": None if encoding.bias is None else _text(encoding.bias, domains),
        "kind": encoding.kind.value,
        "title": encoding.title,
        "assume": domains,
        "fixed": {name: [str(head[name]) for head in heads] for name in encoding.fixed},
        "learnable": [asdict(parameter) for parameter in encoding.learnable],
        "score": encoding.score,
        "note": encoding.note,
        "mechanism": encoding.mechanism,
        "settings": dict(encoding.settings),
        "stand_in": None if encoding.stand_in is None else asdict(encoding.stand_in),
    }


def read(name: str, data: Mapping[str, Any]) -> Encoding:
    """The encoding that `define` wrote.

    Raises:
        ExpressionError: the expression can't be read.
        ParameterError: a part is missing or of the wrong type.

    Example:
        >>> made = Encoding.from_expression("-r*log(1+n)")
        >>> read("mine", define(made, 2)).learnable == made.learnable
        True
    """
    try:
        text, assume = data["expression"], dict(data["assume"])
        return Encoding(
            name=name,
            title=str(data["title"]),
            kind=Kind(data["kind"]),
            formula=None if text is None else str(as_bias(str(text), assume or None).expr),
            reference="user's own",
            fixed={str(key): _rule(str(key), texts) for key, texts in data["fixed"].items()},
            learnable=tuple(_learnable(given) for given in data["learnable"]),
            assume=assume,
            note=str(data["note"]),
            score=str(data["score"]),
            mechanism=str(data["mechanism"]),
            settings={str(key): _number(value) for key, value in data["settings"].items()},
            stand_in=None if data["stand_in"] is None else _stand_in(data["stand_in"]),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        if isinstance(error, TRFError):
            raise
        raise ParameterError(f"the definition of {name!r} can't be read: {error!r}") from error


def _learnable(given: Mapping[str, Any]) -> Learnable:
    limits = {key: None if given[key] is None else float(given[key]) for key in _LIMITS}
    return Learnable(str(given["name"]), float(given["low"]), float(given["high"]), **limits)


def _stand_in(given: Mapping[str, Any]) -> StandIn:
    formula = str(as_bias(str(given["formula"])).expr)
    return StandIn(formula, str(given["because"]), bool(given["decides"]))


def _number(value: Any) -> int | float:
    return value if isinstance(value, int) else float(value)


def _rule(name: str, texts: list[str]) -> HeadRule:
    values = tuple(as_bias(text).expr for text in texts)
    if any(not value.is_number for value in values):
        raise ParameterError(f"the values of {name!r} must be numbers, got {texts}")

    def rule(n_head: int) -> tuple[sympy.Expr, ...]:
        if n_head != len(values):
            raise ParameterError(f"{name!r} has {len(values)} values for {n_head} heads")
        return values

    return rule


def _text(bias: Bias, domains: Mapping[str, Any]) -> str:
    """Text that reads as this bias again: its own, or the text it came from."""
    for text in (str(bias.expr), bias.source):
        with contextlib.suppress(ExpressionError):
            if as_bias(text, domains or None).expr == bias.expr:
                return text
    raise ParameterError(f"{bias.source} can't be written as text that reads the same again")
