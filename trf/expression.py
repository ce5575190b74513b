"""Text, sympy expression, encoding or bias -> `Bias`: a checked p(n) with its parameters.

A text is read by `trf.syntax` and built with the closed vocabulary of `trf.vocabulary`; Python
evaluation is never involved. ``n`` is the distance n = i - j >= 0 from the query to the key;
every other free name is a parameter, positive unless declared otherwise.
"""

from __future__ import annotations

import numbers
import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import sympy

from trf import syntax
from trf.builder import ASSUMPTIONS, Builder, Domain, check_assumed, distance, parameter
from trf.errors import ExpressionError, ParameterError

_MAX_NUMBER_TEXT = 4_000
__all__ = ["Bias", "Domain", "as_bias", "describe_domain", "distance", "exact", "is_latex"]

_LEFT_HAND_SIDE = re.compile(r"\A\s*[^\W\d]\w*\s*\([^()=]*\)\s*=(?!=)")


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
        raise ExpressionError(
            f"{name} has no additive bias p(n): {note} (its .answer() says what the theory can)"
        )
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


def is_latex(text: str) -> bool:
    r"""Whether `text` can only be LaTeX: it has a backslash, a dollar, ``_{`` or ``^{``.

    Example:
        >>> is_latex(r"-r_1\log n"), is_latex("-r1*log(n)")
        (True, False)
    """
    return "\\" in text or "$" in text or "_{" in text or "^{" in text


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
        if assumption in ASSUMPTIONS and wanted and getattr(number, f"is_{assumption}") is False:
            raise ParameterError(
                f"{symbol.name} must be {describe_domain(symbol)}, got {value}; another domain "
                f'can be declared by assume={{"{symbol.name}": "real"}}'
                if assumption != "real"
                else f"{symbol.name} must be a real number, got {value}"
            )
    return number


def _from_text(text: str, assume: Mapping[str, Domain]) -> Bias:
    if is_latex(text):
        from trf import latex  # only where it is needed: most texts are not

        tree = latex.parse(text)
    else:
        tree = syntax.parse(_LEFT_HAND_SIDE.sub("", text, count=1))
    builder = Builder(text, tree, assume)
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
            replacements[symbol] = parameter(name, assume.get(name))
    check_assumed(assume, {symbol.name for symbol in expr.free_symbols})  # type: ignore[attr-defined]
    return Bias(_checked(expr.xreplace(replacements), source), source)


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
