"""Text to a syntax tree, without evaluating anything and without sympy.

A precedence-climbing (Pratt) parser over a closed grammar: numbers, names, calls,
``+ - * / ** ^ !``, ``|x|``, comparisons, ``& | ~`` and tuples inside calls. What the grammar has
no rule for (attributes, strings, indexing, assignment, keywords) can't be written, so a hostile
text ends as an `ExpressionError` that points at the place. Length, depth and size are limited.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from trf.errors import ExpressionError

MAX_CHARACTERS = 20_000
MAX_DEPTH = 80
MAX_NODES = 5_000
MAX_DIGITS = 3_000  # of a number, written out


@dataclass(frozen=True)
class Number:
    value: Fraction
    at: int


@dataclass(frozen=True)
class Name:
    name: str
    at: int


@dataclass(frozen=True)
class Call:
    name: str
    arguments: tuple[Node, ...]
    at: int


@dataclass(frozen=True)
class Nary:
    """A chain of one operator: ``sum``, ``product``, ``and`` or ``or``.

    ``inverted[k]`` says that operand k is subtracted, or divided by.
    """

    operator: str
    operands: tuple[Node, ...]
    inverted: tuple[bool, ...]
    at: int


@dataclass(frozen=True)
class Power:
    base: Node
    exponent: Node
    at: int


@dataclass(frozen=True)
class Compare:
    operator: str
    left: Node
    right: Node
    at: int


@dataclass(frozen=True)
class Group:
    """A tuple such as ``(i, 1, 64)`` or ``(0, n < 512)``: an argument of Sum, Piecewise, ..."""

    items: tuple[Node, ...]
    at: int


Node = Number | Name | Call | Nary | Power | Compare | Group

_TOKEN = re.compile(
    r"""\s*(?:
      (?P<number>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)
    | (?P<name>[^\W\d]\w*)
    | (?P<operator>\*\*|<=|>=|==|!=|[-+*/^!()|,<>&~])
    )""",
    re.VERBOSE,
)
_TYPOGRAPHY = str.maketrans(
    {
        "−": "-",
        "–": "-",
        "·": "*",
        "×": "*",
        "∞": " oo ",
        "π": " pi ",
        "≤": "<=",
        "≥": ">=",
        "∣": "|",
        "²": "**2",
        "³": "**3",
    }
)
_COMPARISONS = {"<", "<=", ">", ">=", "==", "!="}
# Binding powers, loosest first.
_OR, _AND, _NOT, _COMPARE, _SUM, _PRODUCT, _UNARY, _POWER = range(1, 9)


@dataclass(frozen=True)
class _Token:
    kind: str  # number, name, operator, end
    text: str
    at: int


def fail(text: str, at: int, message: str) -> ExpressionError:
    """An `ExpressionError` that shows where in the text it arose."""
    begin = max(0, at - 30)
    snippet = text[begin : at + 30].replace("\n", " ").replace("\t", " ")
    return ExpressionError(
        f"{message}\n  {'...' if begin else ''}{snippet}\n"
        f"  {' ' * (at - begin + (3 if begin else 0))}^ (character {at + 1})"
    )


def parse(text: str) -> Node:
    """Parse `text` into a syntax tree.

    Raises `ExpressionError` for anything outside the grammar, and for texts over the limits on
    length, nesting and size.
    """
    if len(text) > MAX_CHARACTERS:
        raise ExpressionError(
            f"the expression has {len(text)} characters; at most {MAX_CHARACTERS} are read"
        )
    text = text.translate(_TYPOGRAPHY)
    if not text.strip():
        raise ExpressionError("the expression is empty; write one in n, such as -log(1+r2*n)")
    return _Parser(text).whole()


def _tokens(text: str) -> Iterator[_Token]:
    position = 0
    end = len(text.rstrip())
    while position < end:
        match = _TOKEN.match(text, position)
        if match is None or match.lastgroup is None:
            at = position + len(text[position:]) - len(text[position:].lstrip())
            raise fail(text, at, _unexpected_character(text[at]))
        yield _Token(match.lastgroup, match[match.lastgroup], match.start(match.lastgroup))
        position = match.end()
    yield _Token("end", "", end)


def _unexpected_character(character: str) -> str:
    if character == ".":
        return "attributes can't be written in an expression"
    if character in "'\"":
        return "text in quotes can't be written in an expression"
    if character in "[]{}":
        return f"{character!r} can't be used here; group with ( )"
    return f"{character!r} can't be read in an expression"


class _Parser:
    def __init__(self, text: str):
        self.text = text
        self.tokens = list(_tokens(text))
        self.position = 0
        self.depth = 0
        self.nodes = 0
        self.open_bars = 0

    @property
    def token(self) -> _Token:
        return self.tokens[self.position]

    def fail(self, message: str, at: int | None = None) -> ExpressionError:
        return fail(self.text, self.token.at if at is None else at, message)

    def is_operator(self, *texts: str) -> bool:
        return self.token.kind == "operator" and self.token.text in texts

    def advance(self) -> _Token:
        token = self.token
        self.position += 1
        self.nodes += 1
        if self.nodes > MAX_NODES:
            raise self.fail(f"the expression has more than {MAX_NODES} parts", token.at)
        return token

    def expect(self, text: str, opened_at: int) -> None:
        if not self.is_operator(text):
            found = repr(self.token.text) if self.token.kind != "end" else "the end"
            opener = {")": "(", "|": "|"}[text]
            raise self.fail(
                f"expected {text!r} to close the {opener!r} at character {opened_at + 1}, "
                f"found {found}"
            )
        self.advance()

    def whole(self) -> Node:
        tree = self.expression(_OR)
        if self.token.kind != "end":
            raise self.fail(self.unexpected())
        return tree

    def unexpected(self) -> str:
        token = self.token
        if token.kind == "end":
            return "the expression ends too early"
        if token.kind in ("name", "number") or token.text == "(":
            return f"an operator is missing before {token.text!r} (write a product with *)"
        return f"{token.text!r} is not expected here"

    def expression(self, minimum: int) -> Node:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise self.fail(f"the expression is nested deeper than {MAX_DEPTH} levels")
        left = self.prefix()
        while (power := self.binding()) is not None and power >= minimum:
            left = self.infix(left, power)
        self.depth -= 1
        return left

    def binding(self) -> int | None:
        """How tightly the operator at hand binds; None where no operator stands."""
        token = self.token
        if token.kind != "operator":
            return None
        if token.text == "|":
            return None if self.open_bars else _OR
        table = {"&": _AND, "+": _SUM, "-": _SUM, "*": _PRODUCT, "/": _PRODUCT}
        table |= {"**": _POWER, "^": _POWER, "!": _POWER} | dict.fromkeys(_COMPARISONS, _COMPARE)
        return table.get(token.text)

    def infix(self, left: Node, power: int) -> Node:
        at = self.token.at
        if power == _SUM:
            return self.chain("sum", left, _SUM, "+", "-")
        if power == _PRODUCT:
            return self.chain("product", left, _PRODUCT, "*", "/")
        if power == _AND:
            return self.chain("and", left, _AND, "&", None)
        if power == _OR:
            return self.chain("or", left, _OR, "|", None)
        operator = self.advance().text
        if operator == "!":
            return Call("factorial", (left,), at)
        if power == _POWER:  # binds to the right; its exponent may carry a sign
            return Power(left, self.expression(_UNARY), at)
        right = self.expression(_SUM)
        if self.is_operator(*_COMPARISONS):
            raise self.fail("comparisons can't be chained; join them with &")
        return Compare(operator, left, right, at)

    def chain(self, name: str, left: Node, power: int, plain: str, inverse: str | None) -> Node:
        at = self.token.at
        operands, inverted = [left], [False]
        while self.is_operator(plain, *([inverse] if inverse else [])):
            inverted.append(self.advance().text == inverse)
            operands.append(self.expression(power + 1))
        return Nary(name, tuple(operands), tuple(inverted), at)

    def prefix(self) -> Node:
        token = self.token
        if token.kind == "end":
            raise self.fail("the expression ends too early")
        if token.kind == "number":
            return self.number()
        if token.kind == "name":
            return self.name()
        if token.text in ("-", "+"):
            self.advance()
            operand = self.expression(_UNARY)
            return Nary("sum", (operand,), (token.text == "-",), token.at)
        if token.text == "~":
            self.advance()
            return Call("Not", (self.expression(_NOT),), token.at)
        if token.text == "(":
            return self.parentheses()
        if token.text == "|":
            return self.bars()
        raise self.fail(self.unexpected())

    def number(self) -> Node:
        token = self.advance()
        mantissa, _, exponent = token.text.lower().partition("e")
        if len(mantissa) + abs(int((exponent or "0")[:8])) > MAX_DIGITS:
            raise self.fail(f"a number with more than {MAX_DIGITS} digits", token.at)
        number = Number(Fraction(token.text), token.at)
        if self.token.kind == "name" or self.is_operator("("):
            return self.juxtaposed(number)
        return number

    def juxtaposed(self, number: Number) -> Node:
        """``2n``, ``2 log(n)``, ``2(n+1)``: a product, unless a division makes it ambiguous."""
        before = self.tokens[self.position - 2] if self.position >= 2 else None
        if number.value == 0 or self.token.text.startswith("_"):
            raise self.fail(self.unexpected())
        if before is not None and before.kind == "operator" and before.text in ("/", "**", "^"):
            raise self.fail(
                "an operator is missing here, and the reading would be ambiguous: "
                "write the product with * and brackets"
            )
        factor = self.expression(_POWER)
        return Nary("product", (number, factor), (False, False), number.at)

    def name(self) -> Node:
        token = self.advance()
        if not self.is_operator("("):
            return Name(token.text, token.at)
        opened_at = self.advance().at
        bars, self.open_bars = self.open_bars, 0
        arguments = self.items(opened_at)
        self.open_bars = bars
        return Call(token.text, arguments, token.at)

    def items(self, opened_at: int) -> tuple[Node, ...]:
        items: list[Node] = []
        while not self.is_operator(")"):
            items.append(self.expression(_OR))
            if not self.is_operator(","):
                break
            self.advance()
        self.expect(")", opened_at)
        return tuple(items)

    def parentheses(self) -> Node:
        opened_at = self.advance().at
        bars, self.open_bars = self.open_bars, 0
        items = self.items(opened_at)
        self.open_bars = bars
        if not items:
            raise self.fail("empty brackets", opened_at)
        return items[0] if len(items) == 1 else Group(items, opened_at)

    def bars(self) -> Node:
        opened_at = self.advance().at
        self.open_bars += 1
        inner = self.expression(_SUM)
        self.open_bars -= 1
        self.expect("|", opened_at)
        return Call("Abs", (inner,), opened_at)
