r"""LaTeX, as copied from a paper, to the syntax tree of `trf.syntax`.

A tokenizer and a recursive descent, with the limits of `trf.syntax` on length, size and nesting;
the tree then goes through the same closed vocabulary and the same rules for the distance as a
text does. (SymPy's own LaTeX reader does arithmetic while it reads, without limits:
``9^{9^{9^{9}}}`` would not return. Hence a reader of our own, which calculates nothing.)

What is typeset is what counts: ``rn`` is r*n and ``\log 2n`` is log(2*n). Where a printed formula
can be read in two ways (``\log(n)^2``, ``\log n/2``, ``1/2n``, ``f(n)``) it is refused, with the
remedy. Subscripts become part of the name: ``r_1`` is r1, ``r_{\text{max}}`` is r_max.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction

from trf import syntax
from trf.errors import ExpressionError
from trf.latex_tokens import BRACKETS, CASES, CLOSERS, ELEMENTARY, GREEK, Cursor, Token, tokenize
from trf.syntax import Call, Compare, Group, Name, Nary, Node, Number, Power, fail
from trf.vocabulary import CONSTANTS, FUNCTIONS

MAX_NESTING = syntax.MAX_DEPTH // 2  # of brackets, braces and functions in each other

_RELATIONS = ("<", "<=", ">", ">=", "==", "!=")
_IF = {"if", "for", "when", "where"}
_OTHERWISE = {"otherwise", "else", "if otherwise"}
_BIG = {r"\sum": "Sum", r"\prod": "Product"}
# Letters that are functions before a bracket, and letters that would be guesswork there.
_LETTER_FUNCTIONS = {"Gamma": "gamma", "zeta": "zeta", "psi": "digamma", "W": "LambertW"}
_UNCLEAR = {*"fgFGH", "phi", "varphi", "Phi", "sigma", "theta", *_LETTER_FUNCTIONS}
_WORDS_AS_LETTERS = {"ln", "pi", "mu", "nu", "xi", "oo", "li", "Ai", "Ei"}
_POSITIONS = ({"m", "n"}, {"i", "j"})


def parse(text: str) -> Node:
    """Parse LaTeX into a syntax tree; a left-hand side such as ``p(n) =`` is dropped.

    Raises `ExpressionError` for anything outside the grammar, for notation that can be read in
    two ways, and for texts over the limits on length, nesting and size.
    """
    if len(text) > syntax.MAX_CHARACTERS:
        raise ExpressionError(
            f"the expression has {len(text)} characters; at most {syntax.MAX_CHARACTERS} are read"
        )
    tree = _Parser(text, tokenize(text)).whole()
    _check(text, tree)
    return tree


def _check(text: str, tree: Node) -> None:
    """Refuse a tree that is too deep, and signed differences of positions."""
    stack: list[tuple[Node, int, bool]] = [(tree, 1, False)]
    while stack:
        node, depth, inside_bars = stack.pop()
        if depth > syntax.MAX_DEPTH:
            message = f"the expression is nested deeper than {syntax.MAX_DEPTH} levels"
            raise fail(text, node.at, message)
        if isinstance(node, Nary) and node.operator == "sum":
            signs = {
                operand.name: inverse
                for operand, inverse in zip(node.operands, node.inverted, strict=True)
                if isinstance(operand, Name)
            }
            for pair in _POSITIONS:
                opposite = {signs.get(name) for name in pair} == {True, False}
                if opposite and not (inside_bars and len(node.operands) == 2):
                    distance = "-".join(sorted(pair))
                    raise fail(
                        text, node.at, f"a signed difference is no distance: write |{distance}|"
                    )
        bars = isinstance(node, Call) and node.name == "Abs"
        stack.extend((child, depth + 1, bars) for child in _children(node))


def _children(node: Node) -> list[Node]:
    values = [v if isinstance(v, tuple) else (v,) for v in vars(node).values()]
    return [item for value in values for item in value if isinstance(item, Node)]


class _Parser(Cursor):
    def __init__(self, text: str, tokens: list[Token]):
        super().__init__(text, tokens)
        self.nesting = 0
        self.open_bars = 0  # bare ones, which look alike at both ends
        self.indices: list[str] = []  # of the sums and products around

    def whole(self) -> Node:
        tree = self.condition()
        if self.token.kind != "end":
            raise self.unexpected()
        return tree

    # Conditions, sums, products.

    def condition(self) -> Node:
        """A comparison or a plain sum; ``and`` binds tighter than ``or``."""
        at = self.token.at
        alternatives: list[Node] = []
        while not alternatives or self.skip("or"):
            joint = [self.comparison()]
            while self.skip("and"):
                joint.append(self.comparison())
            alternatives.append(_chain("and", joint, at))
        return _chain("or", alternatives, at)

    def comparison(self) -> Node:
        r"""A sum, or ``a < n \le b``: each neighbouring pair compared."""
        at = self.token.at
        left = self.sum()
        compared: list[Node] = []
        while self.is_symbol(*_RELATIONS):
            relation = self.advance()
            right = self.sum()
            compared.append(Compare(relation.text, left, right, relation.at))
            left = right
        return _chain("and", compared, at) if compared else left

    def sum(self) -> Node:
        at = self.token.at
        inverted = [self.is_symbol("-")]
        self.skip("+", "-")
        operands = [self.product()]
        while self.is_symbol("+", "-"):
            inverted.append(self.advance().text == "-")
            operands.append(self.product())
        return _chain("sum", operands, at, inverted)

    def product(self) -> Node:
        r"""Factors joined by ``\cdot``, ``/`` and ``\bmod``."""
        at = self.token.at
        operands, inverted = [self.factors()], [False]
        while self.is_symbol("*", "/"):
            inverted.append(self.advance().text == "/")
            operands.append(self.factor() if inverted[-1] else self.factors())
            if inverted[-1] and self.starts_factor():
                raise self.unclear(r"write \frac, or brackets around what is divided by")
        if not self.is_symbol(r"\bmod"):
            return _chain("product", operands, at, inverted)
        if len(operands) > 1:
            raise self.unclear(r"put brackets around the product before \bmod")
        modulus_at = self.advance().at
        return Call("Mod", (operands[0], self.factor()), modulus_at)

    def factors(self) -> Node:
        """An implicit product, such as ``2 r n``."""
        at = self.token.at
        factors = [self.factor()]
        while self.starts_factor():
            before, position = factors[-1], self.position
            factors.append(self.factor())
            self.check_neighbours(before, position, factors[-1])
        if self.token.kind == "number":
            raise self.unexpected()
        return _chain("product", factors, at)

    def check_neighbours(self, before: Node, position: int, factor: Node) -> None:
        r"""Refuse ``f(n)`` and ``2\frac12``; `factor` began at `position`, behind `before`."""
        opened = self.tokens[position]
        power = isinstance(before, Power)
        name = before.base if isinstance(before, Power) else before
        bracketed = self.tokens[position - 1].text in [CLOSERS[bracket] for bracket in BRACKETS]
        if isinstance(name, Name) and opened.text in BRACKETS and not bracketed:
            lone = isinstance(factor, (Name, Number)) or _is_bars(factor)
            bessel = len(name.name) > 1 and name.name[0].isupper()  # K_0(x), E_1(x)
            if name.name in _UNCLEAR or bessel or (lone and not power):
                raise self.unclear(
                    r"a function that is not defined, or a product; write one with \cdot",
                    opened.at,
                )
        if isinstance(before, Number) and opened.text == r"\frac" and _is_fraction(factor):
            raise self.unclear(r"write the product with \cdot, or the sum with +", opened.at)

    def starts_factor(self) -> bool:
        token = self.token
        if token.kind == "symbol":
            opens = token.text in CLOSERS
            return opens and not (token.text == "|" and self.open_bars)
        if token.kind == "word":
            return token.text not in _IF | _OTHERWISE
        return token.kind in ("letter", "command") and token.text not in CASES.values()

    # One factor: an atom, with what is written behind it.

    def factor(self) -> Node:
        node = self.atom()
        written = ""  # the marks behind the atom
        while self.is_symbol("^", "!"):
            mark = self.advance()
            if mark.text == "!":
                if written:
                    raise self.unclear("put brackets around what the factorial is of", mark.at)
                node = Call("factorial", (node,), mark.at)
            elif "^" in written:
                raise self.fail("a second exponent; put it into the first, or use brackets")
            elif node == Name("E", node.at):
                node = Call("exp", (self.exponent(),), node.at)
            else:
                node = Power(node, self.exponent(), mark.at)
            written += mark.text
        if self.is_symbol("_"):
            raise self.fail("a subscript can't stand here; it follows a name, before an exponent")
        return node

    def exponent(self) -> Node:
        inside = self.tokens[self.position : self.position + 5]
        texts = [token.text for token in inside]
        if texts[:2] == ["{", "("] and texts[3:] == [")", "}"]:
            raise self.unclear("an index in brackets, or a power; write it without the brackets")
        return self.nested(self.argument)

    def argument(self, split: bool = False) -> Node:
        r"""What follows a macro or ``^``: braces, or one sign (``\frac12`` is split)."""
        token = self.token
        if self.is_symbol("{"):
            return self.brackets()
        if token.kind == "number" and len(token.text) > 1:
            if not split or not token.text.isdigit():
                raise self.fail("put this into braces: without them only one digit counts")
            digit = Token("number", token.text[0], token.at, token.at + 1)
            rest = Token("number", token.text[1:], token.at + 1, token.end)
            self.tokens[self.position : self.position + 1] = [digit, rest]
        if token.kind in ("number", "letter", "word", "command"):
            return self.atom()
        raise self.unexpected()

    def nested(self, read: Callable[[], Node]) -> Node:
        self.nesting += 1
        if self.nesting > MAX_NESTING:
            raise self.fail(f"the expression is nested deeper than {MAX_NESTING} levels")
        node = read()
        self.nesting -= 1
        return node

    def atom(self) -> Node:
        return self.nested(self.read_atom)

    def read_atom(self) -> Node:
        token = self.token
        if token.kind == "number":
            return self.number()
        if token.kind == "symbol" and token.text in CLOSERS:
            return self.brackets()
        if token.kind in ("letter", "word") or (token.kind == "command" and token.bare in GREEK):
            return self.named()
        if token.kind != "command":
            raise self.unexpected()
        if token.bare in ELEMENTARY:
            return self.function(token.bare)
        if token.text in _BIG:
            return self.big_operator()
        if token.text in CASES:
            return self.cases()
        if token.bare in ("infty", "pi"):
            return Name({"infty": "oo", "pi": "pi"}[token.bare], self.advance().at)
        if re.fullmatch(r"[dt]?(?:frac|binom)", token.bare):
            self.advance()
            pair = self.argument(split=True), self.argument(split=True)
            if token.bare.endswith("binom"):
                return Call("binomial", pair, token.at)
            return Nary("product", pair, (False, True), token.at)
        if token.bare == "sqrt":
            return self.root()
        if token.bare in FUNCTIONS:
            return self.function(token.bare)
        raise self.unexpected()

    def number(self) -> Node:
        token = self.advance()
        if len(token.text) > syntax.MAX_DIGITS:
            raise self.fail(f"a number with more than {syntax.MAX_DIGITS} digits", token.at)
        return Number(Fraction(token.text.replace("{,}", "")), token.at)

    def root(self) -> Node:
        at = self.advance().at
        index = self.brackets() if self.is_symbol("[") else None
        radicand = self.argument(split=True)
        if index is None:
            return Call("sqrt", (radicand,), at)
        inverse = Nary("product", (Number(Fraction(1), at), index), (False, True), at)
        return Power(radicand, inverse, at)

    # Brackets.

    def brackets(self) -> Node:
        opened = self.token
        items = self.items()
        if len(items) != 1:
            raise self.fail("a list in brackets is only read behind a function", opened.at)
        if opened.text in ("|", r"\lvert"):
            if opened.text == "|" and isinstance(items[0], Number):
                raise self.unclear(r"nested bars need \left| and \right|", opened.at)
            return Call("Abs", items, opened.at)
        wrapped = {r"\lfloor": "floor", r"\lceil": "ceiling"}.get(opened.text)
        return Call(wrapped, items, opened.at) if wrapped else items[0]

    def items(self) -> tuple[Node, ...]:
        """What stands between the bracket here and the one that closes it."""
        opened = self.advance()
        bars, self.open_bars = self.open_bars, self.open_bars + 1 if opened.text == "|" else 0
        closer = CLOSERS[opened.text]
        if opened.text != "|" and self.is_symbol(closer):
            raise self.fail("empty brackets", opened.at)
        items = [self.condition()]
        while self.skip(","):
            items.append(self.condition())
        self.open_bars = bars
        if not self.skip(closer):
            found = repr(self.token.text[:40]) if self.token.kind != "end" else "the end"
            raise self.fail(
                f"expected {closer!r} to close the {opened.text!r} at character {opened.at + 1}, "
                f"found {found}"
            )
        return tuple(items)

    # Names and functions.

    def opens_arguments(self, position: int) -> bool:
        r"""Whether a bracket, perhaps in braces as in ``{\left( n \right)}``, stands there."""
        texts = [token.text for token in self.tokens[position : position + 2]]
        return texts[0] in BRACKETS or (texts[0] == "{" and texts[1] in BRACKETS)

    def named(self) -> Node:
        """A variable with its subscript, a constant, or a function written as a word."""
        token = self.token
        applied = self.opens_arguments(self.position + 1)
        if token.kind == "word":
            if token.text in ELEMENTARY or (applied and token.text not in GREEK):
                return self.function({"B": "beta"}.get(token.text, token.text))
            if token.text in FUNCTIONS and token.text not in GREEK and len(token.text) > 1:
                raise self.fail(f"{token.text} needs its argument in brackets")
            if not token.text.isidentifier():
                raise self.fail(f"{token.text[:40]!r} can't be read as a name")
        elif applied and token.bare in _LETTER_FUNCTIONS:
            return self.function(_LETTER_FUNCTIONS[token.bare])
        if token.kind == "letter":
            self.check_run()
        self.advance()
        if self.skip("_"):
            return Name(token.bare + self.subscript(), token.at)
        if token.bare == "e":
            return Name("E", token.at)
        if token.bare in CONSTANTS:
            raise self.fail(f"{token.bare} is a constant in expressions; rename it", token.at)
        return Name(token.bare, token.at)

    def check_run(self) -> None:
        """Refuse letters that look like a word: ``head`` would be the product h*e*a*d."""
        run, position = "", self.position
        while self.tokens[position].kind == "letter" and (
            not run or self.tokens[position].at == self.tokens[position - 1].end
        ):
            run += self.tokens[position].text
            position += 1
        if len(run) > 2 or run in _WORDS_AS_LETTERS:
            raise self.unclear(
                rf"write \mathrm{{{run[:20]}}} or \{run[:20]} for the word, spaces between factors"
            )

    def subscript(self) -> str:
        """What a subscript adds to a name: ``1``, ``_max``, ``_1_h``."""
        start = self.position
        braced = self.is_symbol("{")
        end = self.group_end(start) if braced else start + 1
        parts = [""]
        for token in self.tokens[start + braced : end - braced]:
            if token.text == ",":
                parts.append("")
            elif token.kind in ("letter", "word", "number") or token.bare in GREEK:
                parts[-1] += token.bare
            else:
                parts[-1] += "?"
            if not f"_{parts[-1]}".isidentifier():
                raise self.fail("a subscript is a number or a word", token.at)
        for part in parts:
            if part in self.indices or part in ("n", "mn", "nm", "ij", "ji"):
                raise self.fail(
                    f"a parameter with the running index {part} can't be expressed; write out the "
                    "terms, or a formula for it"
                )
        if not all(parts):
            raise self.fail("an empty subscript")
        last, after = self.tokens[end - 1], self.tokens[min(end, len(self.tokens) - 1)]
        adjoining = after.kind == last.kind == "letter" and after.at == last.end
        if not braced and (adjoining or (last.kind == "number" and len(last.text) > 1)):
            raise self.fail("put the subscript into braces: without them only one sign counts")
        while self.position < end:
            self.advance()
        return parts[0] if parts[0].isdigit() and len(parts) == 1 else "_" + "_".join(parts)

    def function(self, name: str) -> Node:
        r"""``\log n``, ``\log_2^2(n)``, ``\max\{n, w\}``."""
        at = self.advance().at
        base = exponent = None
        while self.is_symbol("_", "^"):
            if self.is_symbol("_") and name == "log" and base is None:
                self.advance()
                base = self.argument()
            elif self.skip("^") and exponent is None:
                exponent = self.exponent()
            else:
                raise self.fail(f"{name} can't have this subscript or exponent")
        if isinstance(exponent, Nary) and exponent.operator == "sum" and exponent.inverted[0]:
            raise self.unclear("the inverse function, or one divided by it", at)
        arguments = self.arguments(name) + ((base,) if base is not None else ())
        call = Call(name, arguments, at)
        return call if exponent is None else Power(call, exponent, at)

    def arguments(self, name: str) -> tuple[Node, ...]:
        braced = self.is_symbol("{")
        if self.opens_arguments(self.position):
            end = self.group_end(self.position + braced)
            if braced and self.tokens[end].text == "}":  # an exponent behind is the function's
                self.advance()
                arguments = self.items()
                self.advance()
                return arguments
        if braced or self.is_symbol(*BRACKETS):
            arguments = self.items()
            if self.is_symbol("^", "!"):
                raise self.unclear(rf"write \{name}^2(...), or \{name}((...)^2)", self.token.at)
            return arguments
        if name not in ELEMENTARY:
            raise self.fail(f"{name} needs its argument in brackets")
        return (self.bare_argument(name),)

    def bare_argument(self, name: str) -> Node:
        r"""``2n`` in ``\log 2n``: up to the next operator or function."""
        at = self.token.at
        if self.at_function():
            return self.atom()
        if not (self.starts_factor() or self.token.kind == "number"):
            raise self.fail(f"{name} needs an argument; put one with a sign into brackets")
        factors = [self.factor()]
        while self.starts_factor() and not self.at_function():
            wrapped = _is_bars(factors[-1]) or self.is_symbol(*BRACKETS)
            if wrapped or self.token.bare == "e":
                raise self.unclear(f"put the whole argument of {name} into brackets")
            factors.append(self.factor())
        if self.is_symbol("/"):
            self.position += 1
            quotient = self.at_function()
            self.position -= 1
            if not quotient or len(factors) > 1:
                raise self.unclear(rf"write \frac, or the argument of {name} in brackets")
        return _chain("product", factors, at)

    def at_function(self) -> bool:
        token = self.token
        if token.kind not in ("word", "command"):
            return False
        return token.bare in ELEMENTARY or token.text in _BIG or (
            token.bare in FUNCTIONS and token.bare not in GREEK
            and self.opens_arguments(self.position + 1)
        )  # fmt: skip

    def big_operator(self) -> Node:
        r"""``\sum_{i=1}^{64}`` and ``\prod``, over the product that follows."""
        operator = self.advance()
        message = rf"{operator.text} needs its range, as in {operator.text}_{{i=1}}^{{64}}"
        index = low = high = None
        while self.is_symbol("_", "^"):
            if self.skip("^"):
                high = self.argument()
                continue
            self.advance()
            if not self.skip("{") or self.token.kind != "letter" or self.token.text == "e":
                raise self.fail(message)
            letter = self.advance()
            index = Name(letter.text, letter.at)
            if not self.skip("=="):
                raise self.fail(message)
            low = self.sum()
            if not self.skip("}"):
                raise self.fail(message)
        if index is None or low is None or high is None:
            raise self.fail(message, operator.at)
        self.indices.append(index.name)
        term = self.product()
        self.indices.pop()
        span = Group((index, low, high), operator.at)
        return Call(_BIG[operator.text], (term, span), operator.at)

    def cases(self) -> Node:
        opened = self.advance()
        bars, self.open_bars = self.open_bars, 0
        closer, rows = CASES[opened.text], []
        while self.token.text != closer:
            at = self.token.at
            value = self.sum()
            self.skip(",", ";")
            self.skip("&")
            rows.append(Group((value, self.case_condition()), at))
            self.skip(",", ";", ".")
            if not self.skip("\\\\") and self.token.text != closer:
                raise self.unexpected()
        if not rows:
            raise self.fail("cases without a case")
        self.advance()
        self.open_bars = bars
        return Call("Piecewise", tuple(rows), opened.at)

    def case_condition(self) -> Node:
        if self.token.kind == "word" and self.token.text in _IF:
            self.advance()
        if self.token.kind == "word" and self.token.text in _OTHERWISE:
            return Name("True", self.advance().at)
        return self.condition()


def _chain(
    operator: str, operands: list[Node], at: int, inverted: list[bool] | None = None
) -> Node:
    inverted = inverted or [False] * len(operands)
    if len(operands) == 1 and not inverted[0]:
        return operands[0]
    return Nary(operator, tuple(operands), tuple(inverted), at)


def _is_bars(node: Node) -> bool:
    return isinstance(node, Call) and node.name in ("Abs", "floor", "ceiling")


def _is_fraction(node: Node) -> bool:
    return isinstance(node, Nary) and all(isinstance(x, Number) for x in node.operands)
