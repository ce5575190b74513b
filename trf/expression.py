"""Text, sympy expression, encoding or bias -> `Bias`: a checked p(n) with its parameters.

A text is read by `trf.syntax` and built with the closed vocabulary of `trf.vocabulary`; Python
evaluation is never involved. ``n`` is the distance n = i - j >= 0 from the query to the key;
every other free name is a parameter, positive unless declared otherwise.
"""

from __future__ import annotations

import difflib
import numbers
import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any

import sympy
from sympy.core.facts import InconsistentAssumptions

from trf import latex, syntax, vocabulary
from trf.errors import ExpressionError, ParameterError, TRFError

Domain = str | Mapping[str, bool]

_ASSUMPTIONS = (
    "integer", "even", "odd", "positive", "negative", "nonnegative", "nonpositive", "real",
    "rational", "nonzero", "zero", "prime",
)  # fmt: skip
_DISTANCES = ({"m", "n"}, {"i", "j"})
_MAX_NUMBER_TEXT = 4_000
MAX_BARS = 6
_LEFT_HAND_SIDE = re.compile(r"\A\s*[^\W\d]\w*\s*\([^()=]*\)\s*=(?!=)")


def distance() -> sympy.Symbol:
    """The symbol of the distance: a nonnegative integer called ``n``."""
    return sympy.Symbol("n", integer=True, nonnegative=True)


@dataclass(frozen=True)
class Bias:
    """An additive bias p(n), n = i - j >= 0, checked and ready for analysis.

    Attributes:
        expr: p as a sympy expression in `distance()` and the parameters.
        source: the text it was read from.
    """

    expr: sympy.Expr
    source: str

    @property
    def parameters(self) -> tuple[sympy.Symbol, ...]:
        """The free symbols other than n, by name; their assumptions are their domains."""
        free = self.expr.free_symbols - {distance()}
        return tuple(sorted(free, key=lambda symbol: symbol.name))  # type: ignore[attr-defined]

    @property
    def domains(self) -> dict[str, str]:
        """What is assumed of each parameter, in words."""
        return {symbol.name: describe_domain(symbol) for symbol in self.parameters}

    def substitute(self, values: Mapping[str, Any]) -> Bias:
        """Put numbers in for some or all parameters.

        Args:
            values: name -> int, float (its shortest decimal), Fraction, Decimal, exact sympy
                number, or text like ``"1/100"`` or ``"sqrt(2)"``.

        Raises:
            ParameterError: for a name that is no parameter of this bias, or a value outside
                the parameter's domain.
        """
        symbols = {symbol.name: symbol for symbol in self.parameters}
        replacements = {}
        for name, value in values.items():
            if name not in symbols:
                known = ", ".join(symbols) or "none"
                raise ParameterError(
                    f"{name!r} is not a parameter of {self.source} (its parameters: {known})"
                )
            replacements[symbols[name]] = _value_in_domain(value, symbols[name])
        if not replacements:
            return self
        return Bias(_checked(self.expr.subs(replacements), self.source), self.source)

    def __str__(self) -> str:
        return f"p(n) = {self.expr}"

    def _repr_latex_(self) -> str:
        return f"$\\displaystyle p(n) = {sympy.latex(self.expr)}$"


def as_bias(source: Any, assume: Mapping[str, Domain] | None = None) -> Bias:
    """Read a bias from text, a sympy expression, a number, a `Bias`, or an object with `.bias`.

    Args:
        source: for example ``"-r1*log(1+r2*n)"``. ``|m-n|``, ``abs(m-n)`` and ``abs(i-j)``, as a
            whole, mean the distance n; ``^`` and ``**`` both raise to a power.
        assume: parameter name -> domain, such as ``{"r1": "real", "k": "positive integer"}`` or a
            mapping of sympy assumptions. Parameters are positive reals otherwise.

    Raises:
        ExpressionError: for anything that is not such an expression.
        ParameterError: for a domain that can't be read, or of an unknown parameter.

    Example:
        >>> as_bias("-r1*log(1+r2*|m-n|)").expr
        -r1*log(n*r2 + 1)
    """
    bias = getattr(source, "bias", None)
    if isinstance(bias, Bias):
        source = bias
    elif hasattr(source, "bias") and bias is None:
        name = getattr(source, "title", source)
        note = getattr(source, "note", "the theorem does not apply")
        raise ExpressionError(f"{name} has no additive bias p(n): {note}")
    if isinstance(source, Bias):
        return source if not assume else _from_sympy(source.expr, source.source, assume)
    if isinstance(source, str):
        return _from_text(source, assume or {})
    if isinstance(source, sympy.Basic):
        return _from_sympy(source, str(source), assume or {})
    if isinstance(source, numbers.Real) and not isinstance(source, bool):
        return _from_sympy(exact(source, "bias"), str(source), assume or {})
    raise ExpressionError(
        f"a bias is a text, a sympy expression or an encoding, got {type(source).__name__}"
    )


def exact(value: Any, name: str = "value") -> sympy.Rational:
    """The rational that `value` was written as: a float means its shortest decimal.

    Raises:
        ParameterError: for anything but a finite rational number.

    Example:
        >>> exact(0.1), exact("1/100")
        (1/10, 1/100)
    """
    if isinstance(value, bool):
        raise ParameterError(f"{name} must be a number, got {value}")
    if isinstance(value, sympy.Rational):
        return value
    if isinstance(value, numbers.Rational):
        return sympy.Rational(int(value.numerator), int(value.denominator))  # type: ignore[return-value]
    if isinstance(value, float):
        text = float.__repr__(value)
    elif isinstance(value, (Decimal, str, numbers.Real, sympy.Float)):
        text = str(value)
    else:
        raise ParameterError(f"{name} must be a number, got {type(value).__name__}")
    text = text.strip()
    exponent = re.search(r"[eE]([+-]?\d+)$", text)
    too_long = len(text) > _MAX_NUMBER_TEXT or (
        exponent is not None and len(exponent[1]) + abs(int(exponent[1][:6])) > _MAX_NUMBER_TEXT
    )
    if too_long:
        raise ParameterError(f"{name} has more than {_MAX_NUMBER_TEXT} digits")
    try:
        fraction = Fraction(text)
    except (ValueError, ZeroDivisionError):
        raise ParameterError(
            f"{name} must be a finite number such as 0.01 or 1/100, got {text[:60]!r}"
        ) from None
    return sympy.Rational(fraction.numerator, fraction.denominator)  # type: ignore[return-value]


def describe_domain(symbol: sympy.Symbol) -> str:
    """A parameter's domain in words, such as ``positive real``."""
    given = {key for key, true in symbol.assumptions0.items() if true}
    sign = next(
        (s for s in ("zero", "positive", "negative", "nonnegative", "nonpositive") if s in given),
        "nonzero" if "nonzero" in given else "",
    )
    kind = next((k for k in ("prime", "even", "odd", "integer", "rational") if k in given), "real")
    kind = {"even": "even integer", "odd": "odd integer"}.get(kind, kind)
    return f"{sign} {kind}".strip()


def _value_in_domain(value: Any, symbol: sympy.Symbol) -> sympy.Expr:
    try:
        number: sympy.Expr = exact(value, symbol.name)
    except ParameterError:
        if not isinstance(value, (str, sympy.Expr)):
            raise
        constant = as_bias(value).expr
        if not constant.is_number or constant.is_finite is False or constant.is_real is False:
            raise
        number = constant
    for assumption, wanted in symbol.assumptions0.items():
        if assumption in _ASSUMPTIONS and wanted and getattr(number, f"is_{assumption}") is False:
            raise ParameterError(
                f"{symbol.name} must be {describe_domain(symbol)}, got {value}; another domain "
                f'can be declared by assume={{"{symbol.name}": "real"}}'
                if assumption != "real"
                else f"{symbol.name} must be a real number, got {value}"
            )
    return number


def _symbol(name: str, domain: Domain | None) -> sympy.Symbol:
    if domain is None:
        return sympy.Symbol(name, positive=True)
    if isinstance(domain, str):
        words = [word for word in re.split(r"[\s_-]+", domain.strip().lower()) if word]
        unknown = [word for word in words if word not in _ASSUMPTIONS]
        if unknown or not words:
            raise ParameterError(
                f"the domain {domain!r} of {name} can't be read; use words of: "
                f"{', '.join(_ASSUMPTIONS)}"
            )
        assumptions = dict.fromkeys(words, True)
    else:
        assumptions = dict(domain)
    try:
        return sympy.Symbol(name, **{"real": True, **assumptions})
    except (InconsistentAssumptions, TypeError, ValueError):
        raise ParameterError(f"the domain {domain!r} of {name} contradicts itself") from None


def _from_text(text: str, assume: Mapping[str, Domain]) -> Bias:
    if latex.is_latex(text):
        tree = latex.parse(text)
    else:
        tree = syntax.parse(_LEFT_HAND_SIDE.sub("", text, count=1))
    builder = _Builder(text, tree, assume)
    return Bias(_checked(builder.result(), text), text.strip())


def _from_sympy(expr: sympy.Basic, source: str, assume: Mapping[str, Domain]) -> Bias:
    """Rename symbols: ``n`` becomes the distance, one without assumptions becomes positive."""
    replacements: dict[sympy.Basic, sympy.Basic] = {}
    for symbol in expr.free_symbols:
        name = symbol.name  # type: ignore[attr-defined]
        undeclared = set(symbol.assumptions0) <= {"commutative"}
        if name == "n":
            replacements[symbol] = distance()
        elif name in assume or undeclared:
            replacements[symbol] = _symbol(name, assume.get(name))
    _check_assumed(assume, {symbol.name for symbol in expr.free_symbols})  # type: ignore[attr-defined]
    return Bias(_checked(expr.xreplace(replacements), source), source)


def _check_assumed(assume: Mapping[str, Domain], free: set[str]) -> None:
    for name in assume:
        if name == "n":
            raise ParameterError("n is the distance, a nonnegative integer; nothing else")
        if name not in free:
            raise ParameterError(
                f"assume names {name!r}, which is not a parameter of the expression"
            )


def _checked(expr: Any, source: str) -> sympy.Expr:
    if not isinstance(expr, sympy.Expr):
        raise ExpressionError(f"{source} is a condition, not an expression in n")
    if expr.has(sympy.nan) or expr.has(sympy.zoo):
        raise ExpressionError(f"{source} is undefined (a division by 0, or infinity - infinity)")
    try:
        real = not expr.has(sympy.I) and (not expr.is_number or expr.is_extended_real is not False)
    except ArithmeticError as error:
        raise ExpressionError(f"{source} can't be evaluated: {type(error).__name__}") from error
    if not real:
        raise ExpressionError(f"{source} has values that are not real")
    return expr


class _Builder:
    """Syntax tree -> sympy, with names resolved."""

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
        _check_assumed(self.assume, self.free)
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
        return _symbol(name, self.assume.get(name))

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
