"""Syntax tree -> sympy: names become the distance, parameters, constants or bound indices."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import sympy
from sympy.core.facts import InconsistentAssumptions

from trf import syntax, vocabulary
from trf.errors import ExpressionError, ParameterError, TRFError

Domain = str | Mapping[str, bool]

ASSUMPTIONS = (
    "integer", "even", "odd", "positive", "negative", "nonnegative", "nonpositive", "real",
    "rational", "nonzero", "zero", "prime",
)  # fmt: skip
_DISTANCES = ({"m", "n"}, {"i", "j"})
MAX_BARS = 6


def distance() -> sympy.Symbol:
    """The symbol of the distance: a nonnegative integer called ``n``."""
    return sympy.Symbol("n", integer=True, nonnegative=True)


def parameter(name: str, domain: Domain | None) -> sympy.Symbol:
    """The symbol of a parameter: positive real, or of a declared domain.

    Raises:
        ParameterError: the domain can't be read, or contradicts itself.
    """
    if domain is None:
        return sympy.Symbol(name, positive=True)
    if isinstance(domain, str):
        words = [word for word in re.split(r"[\s_-]+", domain.strip().lower()) if word]
        unknown = [word for word in words if word not in ASSUMPTIONS]
        if unknown or not words:
            raise ParameterError(
                f"the domain {domain!r} of {name} can't be read; use words of: "
                f"{', '.join(ASSUMPTIONS)}"
            )
        assumptions = dict.fromkeys(words, True)
    else:
        assumptions = dict(domain)
    try:
        return sympy.Symbol(name, **{"real": True, **assumptions})
    except (InconsistentAssumptions, TypeError, ValueError):
        raise ParameterError(f"the domain {domain!r} of {name} contradicts itself") from None


def check_assumed(assume: Mapping[str, Domain], free: set[str]) -> None:
    """Refuse domains of names that are no parameters."""
    for name in assume:
        if name == "n":
            raise ParameterError("n is the distance, a nonnegative integer; nothing else")
        if name not in free:
            raise ParameterError(
                f"assume names {name!r}, which is not a parameter of the expression"
            )


class Builder:
    """One pass over a tree; `result` is the expression."""

    def __init__(self, text: str, tree: syntax.Node, assume: Mapping[str, Domain]):
        self.text = text
        self.tree = tree
        self.assume = assume
        self.form = _distance_form(tree)
        self.free: set[str] = set()
        self.bars = 0
        self.scope: dict[str, sympy.Symbol] = {}

    def result(self) -> Any:
        built = self.build(self.tree)
        check_assumed(self.assume, self.free)
        return built

    def build(self, node: syntax.Node) -> Any:
        try:
            built = getattr(self, f"_{type(node).__name__.lower()}")(node)
        except (TypeError, ValueError, ArithmeticError, AttributeError) as error:
            if isinstance(error, TRFError):
                raise
            raise syntax.fail(
                self.text, node.at, f"this can't be evaluated ({type(error).__name__})"
            ) from error
        if isinstance(built, sympy.Rational):
            size = max(abs(built.p).bit_length(), built.q.bit_length())
            if size > vocabulary.MAX_BITS:
                raise syntax.fail(self.text, node.at, "this number is too large")
        return built

    def _number(self, node: syntax.Number) -> Any:
        return sympy.Rational(node.value.numerator, node.value.denominator)

    def _name(self, node: syntax.Name) -> Any:
        name = node.name
        if name in self.scope:
            return self.scope[name]
        if name in vocabulary.CONSTANTS:
            return vocabulary.CONSTANTS[name]
        if self.form and name in "mnij":
            raise syntax.fail(
                self.text,
                node.at,
                f"|{self.form}| stands for the distance here, so {name!r} can't be used beside "
                "it; rename it, or write the distance as n throughout",
            )
        if name == "n":
            return distance()
        self.free.add(name)
        return parameter(name, self.assume.get(name))

    def _nary(self, node: syntax.Nary) -> Any:
        operands = [self.build(operand) for operand in node.operands]
        if node.operator in ("and", "or"):
            return (sympy.And if node.operator == "and" else sympy.Or)(*operands)
        for operand, where in zip(operands, node.operands, strict=True):
            if not isinstance(operand, sympy.Expr):
                raise syntax.fail(self.text, where.at, "a condition can't be calculated with")
        signed = zip(operands, node.inverted, strict=True)
        if node.operator == "sum":
            return sympy.Add(*(-x if inverse else x for x, inverse in signed))
        return sympy.Mul(*(1 / x if inverse else x for x, inverse in signed))

    def _power(self, node: syntax.Power) -> Any:
        return vocabulary.power(self.build(node.base), self.build(node.exponent))

    def _compare(self, node: syntax.Compare) -> Any:
        relation = {
            "<": sympy.Lt, "<=": sympy.Le, ">": sympy.Gt, ">=": sympy.Ge,
            "==": sympy.Eq, "!=": sympy.Ne,
        }[node.operator]  # fmt: skip
        return relation(self.build(node.left), self.build(node.right))

    def _group(self, node: syntax.Group) -> Any:
        raise syntax.fail(self.text, node.at, "a list in brackets is only read inside Sum, ...")

    def _call(self, node: syntax.Call) -> Any:
        if _is_distance(node, set(self.scope)):
            return distance()
        if node.name in ("Abs", "abs"):
            return self.absolute(node)
        if node.name in vocabulary.PAIRS:
            return self.piecewise(node)
        if node.name in vocabulary.RANGES:
            return self.ranged(node)
        if node.name not in vocabulary.FUNCTIONS:
            raise self.unknown_function(node)
        return vocabulary.call(node.name, [self.build(argument) for argument in node.arguments])

    def absolute(self, node: syntax.Call) -> Any:
        """``|x|``, few inside each other: sympy's time grows exponentially with the nesting."""
        self.bars += 1
        if self.bars > MAX_BARS:
            raise syntax.fail(
                self.text, node.at, f"more than {MAX_BARS} absolute values inside each other"
            )
        built = vocabulary.call(node.name, [self.build(argument) for argument in node.arguments])
        self.bars -= 1
        return built

    def unknown_function(self, node: syntax.Call) -> ExpressionError:
        near = difflib.get_close_matches(node.name, vocabulary.names(), n=1, cutoff=0.6)
        hint = f" (did you mean {near[0]!r}?)" if near else ""
        return syntax.fail(
            self.text,
            node.at,
            f"unknown function {node.name!r}{hint}; if it is a parameter, write the product "
            f"with *: {node.name}*(...)",
        )

    def piecewise(self, node: syntax.Call) -> Any:
        pairs = []
        for argument in node.arguments:
            if not isinstance(argument, syntax.Group) or len(argument.items) != 2:
                raise syntax.fail(
                    self.text, argument.at, "Piecewise takes pairs (value, condition)"
                )
            value, condition = argument.items
            pairs.append((self.build(value), self.build(condition)))
        if not pairs:
            raise syntax.fail(self.text, node.at, "Piecewise takes pairs (value, condition)")
        return sympy.Piecewise(*pairs)

    def ranged(self, node: syntax.Call) -> Any:
        """``Sum(term, (index, from, to))``, and Product and Integral alike."""
        message = f"{node.name} takes a term and one range (index, from, to)"
        if len(node.arguments) != 2:
            raise syntax.fail(self.text, node.at, message)
        term, span = node.arguments
        if not isinstance(span, syntax.Group) or len(span.items) != 3:
            raise syntax.fail(self.text, node.at, message)
        index, low, high = span.items
        if not isinstance(index, syntax.Name) or index.name == "n" or index.name in self.scope:
            raise syntax.fail(self.text, index.at, "the index of a range is a new name, not n")
        bounds = self.build(low), self.build(high)
        outer = dict(self.scope)
        self.scope[index.name] = _index(index.name, node.name == "Integral", bounds[0])
        built = vocabulary.RANGES[node.name](
            self.build(term), (self.scope[index.name], bounds[0], bounds[1])
        )
        self.scope = outer
        return built


def _index(name: str, continuous: bool, low: sympy.Expr) -> sympy.Symbol:
    kind = {"real": True} if continuous else {"integer": True}
    sign = {"positive": True} if low.is_positive else {"nonnegative": low.is_nonnegative or None}
    return sympy.Symbol(name, **kind, **sign)


def _is_distance(node: syntax.Node, bound: set[str]) -> bool:
    """Whether `node` is ``|m - n|`` or ``|i - j|``, in either order, with no bound name."""
    if not (isinstance(node, syntax.Call) and node.name in ("Abs", "abs")):
        return False
    inner = node.arguments[0] if len(node.arguments) == 1 else None
    if not (isinstance(inner, syntax.Nary) and inner.operator == "sum"):
        return False
    if inner.inverted != (False, True):
        return False
    names = {operand.name for operand in inner.operands if isinstance(operand, syntax.Name)}
    return names in _DISTANCES and not names & bound


@lru_cache(maxsize=64)
def _distance_form(tree: syntax.Node) -> str | None:
    """Which form of the distance the expression uses: ``m-n``, ``i-j``, or neither."""
    stack: list[tuple[syntax.Node, frozenset[str]]] = [(tree, frozenset())]
    while stack:
        node, bound = stack.pop()
        if _is_distance(node, set(bound)):
            inner = node.arguments[0]  # type: ignore[union-attr]
            return "-".join(operand.name for operand in inner.operands)  # type: ignore[union-attr]
        if isinstance(node, syntax.Call) and node.name in vocabulary.RANGES:
            spans = [a for a in node.arguments if isinstance(a, syntax.Group) and a.items]
            indices = [s.items[0].name for s in spans if isinstance(s.items[0], syntax.Name)]
            bound = bound | set(indices)
        stack.extend((child, bound) for child in _children(node))
    return None


def _children(node: syntax.Node) -> tuple[syntax.Node, ...]:
    if isinstance(node, syntax.Call):
        return node.arguments
    if isinstance(node, syntax.Nary):
        return node.operands
    if isinstance(node, syntax.Power):
        return (node.base, node.exponent)
    if isinstance(node, syntax.Compare):
        return (node.left, node.right)
    if isinstance(node, syntax.Group):
        return node.items
    return ()
