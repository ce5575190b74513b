"""LaTeX to tokens: macros that look alike become one, wrappers and left-hand sides go.

The tokens are what `trf.latex` parses; nothing here knows what a formula means.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from trf.errors import ExpressionError
from trf.syntax import MAX_NODES, fail

_FONTS = r"(?:text|math)(?:rm|it|sf|tt|bf|cal|normal)|boldsymbol|bm"
_TOKEN = re.compile(
    rf"""
      (?P<scientific>[0-9]+(?:\.[0-9]*)?[eE][+-]?[0-9])
    | (?P<number>[0-9]+(?:\{{,\}}[0-9]{{3}})*(?:\.[0-9]+)?|\.[0-9]+)
    | \\(?:{_FONTS}|text|mbox|operatorname\*?)\s*\{{(?P<word>[^{{}}\\$_^]*)\}}
    | \\(?P<font>{_FONTS})(?![A-Za-z])
    | (?P<command>\\(?:begin|end)\s*\{{[^{{}}\\]*\}}|\\[A-Za-z]+|\\\\(?:\[[^][]*\])?|\\.)
    | (?P<symbol>\S)
    """,
    re.VERBOSE | re.DOTALL,
)
GREEK = {
    "alpha", "beta", "gamma", "delta", "epsilon", "varepsilon", "zeta", "eta", "theta",
    "vartheta", "iota", "kappa", "lambda", "mu", "nu", "xi", "rho", "varrho", "sigma", "varsigma",
    "tau", "upsilon", "phi", "varphi", "chi", "psi", "omega", "Gamma", "Delta", "Theta", "Lambda",
    "Xi", "Pi", "Sigma", "Upsilon", "Phi", "Psi", "Omega", "ell",
}  # fmt: skip
_SPACING = re.compile(r"~|\\(?:[,;!:>\s]|q?quad|displaystyle|textstyle|limits|nolimits|[bB]igg?)")
_SIZED = re.compile(r"\\(?:left|right|[bB]igg?[lr])")
_SAME = {
    "-": "− –", "*": r"\cdot \times \ast · × ∗", "|": r"\vert \mid ∣", "[": r"\lbrack",
    "]": r"\rbrack", r"\{": r"\lbrace", r"\}": r"\rbrace", r"\infty": "∞", r"\pi": "π",
    "<": r"\lt", ">": r"\gt", "<=": r"\le \leq \leqslant ≤", ">=": r"\ge \geq \geqslant ≥",
    "!=": r"\ne \neq ≠", "==": "=", "and": r"\land \wedge", "or": r"\lor \vee",
    ":=": r"\coloneqq",
}  # fmt: skip
_ALIASES = {alias: text for text, aliases in _SAME.items() for alias in aliases.split()}
CLOSERS = {
    "(": ")", "[": "]", "{": "}", r"\{": r"\}", "|": "|", r"\lvert": r"\rvert",
    r"\lfloor": r"\rfloor", r"\lceil": r"\rceil",
}  # fmt: skip
BRACKETS = ("(", "[", r"\{")
_SYMBOLS = {*_SAME, *CLOSERS, *CLOSERS.values(), "\\\\", r"\bmod"} - {r"\infty", r"\pi"}
_WRAPPERS = {"$": "$", r"\(": r"\)", r"\[": r"\]"}
_WRAPPERS |= {rf"\begin{{{e}}}": rf"\end{{{e}}}" for e in ("equation", "equation*", "math")}
CASES = {r"\begin{cases}": r"\end{cases}", r"\begin{dcases}": r"\end{dcases}"}
# Functions that stand before an argument without brackets.
ELEMENTARY = {
    "log", "ln", "exp", "sin", "cos", "tan", "cot", "sinh", "cosh", "tanh", "coth", "arcsin",
    "arccos", "arctan", "erf",
}  # fmt: skip


@dataclass(frozen=True)
class Token:
    kind: str  # number, letter, word, command, symbol, end
    text: str
    at: int
    end: int

    @property
    def bare(self) -> str:
        """The name without the backslash."""
        return self.text[1:] if self.kind == "command" else self.text


def tokenize(text: str) -> list[Token]:
    """The tokens of the formula itself, ending with one of kind ``end``."""
    return _right_side(text, _unwrapped(_tokens(text)))


def _tokens(text: str) -> list[Token]:
    tokens: list[Token] = []
    sized: Token | None = None  # a \left, \right, ... before its bracket
    for match in _TOKEN.finditer(text):
        kind, at = str(match.lastgroup), match.start()
        found = match[kind]
        if kind == "scientific":
            raise fail(text, at, "write 10^{-3} for 1e-3, and a space before e, Euler's number")
        if kind == "font" or _SPACING.fullmatch(found):
            continue
        found = _ALIASES.get(found, "\\\\" if found.startswith("\\\\") else found)
        if kind == "command" and _SIZED.fullmatch(found):
            sized = Token(kind, found, at, match.end())
            continue
        if kind == "word":
            found = found.strip(" .,;:")
        if found in _SYMBOLS or (kind == "word" and found in ("and", "or")):
            kind = "symbol"
        elif kind == "symbol":
            kind = "letter" if found.isalpha() else "command" if found[0] == "\\" else kind
        if sized is not None:
            opens = sized.text == r"\left" or sized.text.endswith("l")
            if found in "{}" or found not in (CLOSERS if opens else CLOSERS.values()):
                raise fail(text, sized.at, f"{sized.text} needs a bracket that fits behind it")
            if found == "|":
                found = r"\lvert" if opens else r"\rvert"
            sized = None
        tokens.append(Token(kind, found, at, match.end()))
    if sized is not None:
        raise fail(text, sized.at, f"{sized.text} needs a bracket behind it")
    return [*tokens, Token("end", "", len(text.rstrip()), len(text))]


def _unwrapped(tokens: list[Token]) -> list[Token]:
    """Without ``$...$`` and the like, and without the sentence's punctuation at the end."""
    start, end = 0, len(tokens) - 1
    while start < end:
        first, last = tokens[start].text, tokens[end - 1].text
        if last not in (".", ",", ";"):
            if start + 1 == end or _WRAPPERS.get(first) != last:
                break
            start += 1
        end -= 1
    return [*tokens[start:end], Token("end", "", tokens[end].at, tokens[end].end)]


def group_end(tokens: list[Token], start: int) -> int:
    """The position behind the group that opens at `start`."""
    open_groups = 0
    for position in range(start, len(tokens)):
        text = tokens[position].text
        if text in CLOSERS and text != "|":
            open_groups += 1
        elif text in CLOSERS.values() and text != "|":
            open_groups -= 1
        if open_groups <= 0:
            return position + 1
    return len(tokens) + 1  # it does not close


def _right_side(text: str, tokens: list[Token]) -> list[Token]:
    """The tokens behind ``p(n) =``, ``b_{m,n} =``, ``B(i,j) :=``; all where there is no such."""
    position = 0
    while position < len(tokens) and tokens[position].text not in ("==", ":="):
        if tokens[position].text.startswith(r"\begin"):
            return tokens
        position = group_end(tokens, position)
    if position >= len(tokens):
        return tokens
    equals = tokens[position]
    head = [token for token in tokens[:position] if token.text not in ("&", ":")]
    after = 1
    if head[1:] and head[1].text == "_":
        after = group_end(head, 2)
    if [token.text for token in head[after : after + 3]] == ["^", "{", "("]:  # p^{(h)}
        after = group_end(head, after + 1)
    arguments = head[after:]
    letters = {token.text for token in arguments if token.kind in ("letter", "word", "command")}
    named = bool(head) and (head[0].kind in ("letter", "word") or head[0].bare in GREEK)
    bracketed = not arguments or (
        arguments[0].text in BRACKETS and group_end(arguments, 0) == len(arguments)
    )
    if not named or not bracketed or head[0].bare in {*"emnij", *ELEMENTARY}:
        raise fail(text, equals.at, "an equation can't be read, only p(n) = ... or the formula")
    if letters and "n" not in letters and not letters <= {"i", "j"}:
        raise fail(text, arguments[0].at, "the distance is called n here; rename the argument")
    return tokens[position + 1 :]


class Cursor:
    """A place in the tokens, and the errors that point at it."""

    def __init__(self, text: str, tokens: list[Token]):
        self.text = text
        self.tokens = tokens
        self.position = 0
        self.parts = 0

    @property
    def token(self) -> Token:
        return self.tokens[self.position]

    def fail(self, message: str, at: int | None = None) -> ExpressionError:
        return fail(self.text, self.token.at if at is None else at, message)

    def unclear(self, remedy: str, at: int | None = None) -> ExpressionError:
        return self.fail(f"this can be read in two ways: {remedy}", at)

    def unexpected(self) -> ExpressionError:
        token = self.token
        shown = token.text[:40]
        if token.kind == "end":
            return self.fail("the expression ends too early")
        if token.kind == "number":
            return self.fail(f"an operator is missing before {shown!r}")
        if token.kind == "command":
            return self.fail(f"{shown} can't be read in a bias")
        if token.text == "'":
            return self.fail("a prime can't be read; give the quantity a name of its own")
        return self.fail(f"{shown!r} is not expected here")

    def advance(self) -> Token:
        token = self.token
        self.position += 1
        self.parts += 1
        if self.parts > MAX_NODES:
            raise self.fail(f"the expression has more than {MAX_NODES} parts", token.at)
        return token

    def is_symbol(self, *texts: str) -> bool:
        return self.token.kind == "symbol" and self.token.text in texts

    def skip(self, *texts: str) -> bool:
        """Step over a symbol of `texts`, if one stands here."""
        found = self.is_symbol(*texts)
        if found:
            self.advance()
        return found

    def group_end(self, start: int) -> int:
        end = group_end(self.tokens, start)
        if end >= len(self.tokens):
            raise self.fail("this bracket is not closed", self.tokens[start].at)
        return end
