"""The inverse problem: which parameter gives the wanted radius?"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import inf
from typing import Any

import sympy
from flint import arb

from trf.errors import DivergenceError, ParameterError
from trf.expression import Domain, as_bias, exact
from trf.series.tails import rational, working
from trf.theory.field import ReceptiveField, tokens
from trf.theory.radius import checked_eps, theoretical_receptive_field

OCTAVES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
MAX_STEPS = 200
MAX_DIGITS = 40


@dataclass(frozen=True)
class Design:
    """A parameter value and the field it gives.

    Attributes:
        parameter: its name.
        value: its value, exact; the shortest decimal found that gives the radius.
        field: the receptive field computed at that value.
    """

    parameter: str
    value: Fraction
    field: ReceptiveField

    @property
    def radius(self) -> int:
        """The radius that the value gives, computed."""
        return self.field.radius

    def __str__(self) -> str:
        return f"{self.parameter} = {decimal(self.value)}: {self.field}"

    def _repr_markdown_(self) -> str:
        return str(self)

    def to_dict(self) -> dict[str, Any]:
        """JSON-able."""
        return {
            "parameter": self.parameter,
            "value": str(self.value),
            "field": self.field.to_dict(),
        }


def design(
    bias: Any,
    parameter: str,
    radius: int,
    eps: Any = 0.01,
    *,
    parameters: Mapping[str, Any] | None = None,
    length: int | None = None,
    bracket: tuple[Any, Any] | None = None,
    assume: Mapping[str, Domain] | None = None,
    **values: Any,
) -> Design:
    """The value of one parameter for which the receptive field is the wanted number of tokens.

    The radius is taken to be monotone in the parameter, as it is in every family of the catalogue;
    it is bracketed, bisected, and the answer is checked by computing its radius.

    Args:
        bias: p(n) with the parameter free.
        parameter: the parameter to choose.
        radius: the wanted radius, tokens.
        eps: the share that may lie further away.
        parameters: values of the other parameters.
        length: N, tokens: design for a finite length.
        bracket: search between these values only (default: all positive numbers).
        assume: domains of parameters that are not positive reals.
        **values: values of the other parameters by keyword.

    Raises:
        ParameterError: the parameter is unknown or given a value, or no value gives the radius;
            the message then says which radii are reachable.

    Examples:
        >>> found = design("-m*n", "m", radius=512, eps=0.01)
        >>> found.radius, found.value
        (512, Fraction(9, 1000))
    """
    read = as_bias(bias, assume)
    symbols = {symbol.name: symbol for symbol in read.parameters}
    given = {**(parameters or {}), **values}
    if parameter not in symbols:
        listed = ", ".join(symbols) or "none"
        raise ParameterError(f"{parameter!r} is not a parameter of {read.source} ({listed})")
    if parameter in given:
        raise ParameterError(f"{parameter} is to be found, so it can't be given a value")
    if isinstance(radius, bool) or not isinstance(radius, int) or radius < 1:
        raise ParameterError(f"radius must be a positive integer, got {radius!r}")
    share = checked_eps(eps)
    whole = bool(symbols[parameter].is_integer)

    def field_at(value: Fraction) -> ReceptiveField:
        number = sympy.Rational(value.numerator, value.denominator)
        return theoretical_receptive_field(
            read, share, parameters={**given, parameter: number}, length=length
        )

    def radius_at(value: Fraction) -> float | int:
        try:
            return field_at(value).radius
        except DivergenceError:
            return inf

    low, high = _bracket(radius_at, radius, bracket, symbols[parameter], whole)
    value = _bisect(radius_at, radius, low, high, whole)
    if not whole:
        value = _shortest(radius_at, radius, value)
    return Design(parameter, value, field_at(value))


def _bracket(
    radius_at: Callable[[Fraction], float | int],
    wanted: int,
    bracket: tuple[Any, Any] | None,
    symbol: sympy.Symbol,
    whole: bool,
) -> tuple[Fraction, Fraction]:
    """Two values whose radii enclose the wanted one."""
    if bracket is not None:
        low, high = (_fraction(exact(end, "bracket")) for end in bracket)
        ends = sorted((radius_at(low), radius_at(high)))
        if not ends[0] <= wanted <= ends[1]:
            raise _unreachable(wanted, ends[0], ends[1], f"{symbol.name} in [{low}, {high}]")
        return low, high
    if not symbol.is_positive:
        raise ParameterError(f"{symbol.name} is not positive: give bracket=(low, high)")
    low = high = Fraction(1)
    at_low = at_high = radius_at(low)
    for octaves in OCTAVES:
        if min(at_low, at_high) <= wanted <= max(at_low, at_high):
            return low, high
        high = Fraction(2) ** octaves
        at_high = radius_at(high)
        if not whole:
            low = 1 / high
            at_low = radius_at(low)
    small, large = min(at_low, at_high), max(at_low, at_high)
    if small <= wanted <= large:
        return low, high
    raise _unreachable(
        wanted,
        small,
        large,
        f"{symbol.name} between {_power_of_two(low)} and {_power_of_two(high)}",
    )


def _power_of_two(value: Fraction) -> str:
    exponent = value.numerator.bit_length() - value.denominator.bit_length()
    return f"2^{exponent}"


def _unreachable(wanted: int, small: float | int, large: float | int, where: str) -> ParameterError:
    top = "any size" if large == inf else tokens(int(large))
    return ParameterError(
        f"no radius of {tokens(wanted)} for {where}: reachable are {tokens(int(small))} to {top}"
    )


def _bisect(
    radius_at: Callable[[Fraction], float | int],
    wanted: int,
    low: Fraction,
    high: Fraction,
    whole: bool,
) -> Fraction:
    at_low, at_high = radius_at(low), radius_at(high)
    for _ in range(MAX_STEPS):
        if at_low == wanted:
            return low
        if at_high == wanted:
            return high
        middle = Fraction((low + high) // 2) if whole else _between(low, high)
        if middle in (low, high):
            break
        at_middle = radius_at(middle)
        if (at_low > wanted) == (at_middle > wanted):
            low, at_low = middle, at_middle
        else:
            high, at_high = middle, at_middle
    small, large = sorted((at_low, at_high))
    top = "any size" if large == inf else tokens(int(large))
    raise ParameterError(
        f"no value gives exactly {tokens(wanted)}: near {decimal(low)} the radius jumps from "
        f"{tokens(int(small))} to {top}"
    )


def _between(low: Fraction, high: Fraction) -> Fraction:
    """The arithmetic mean, or a near geometric one where the ends are far apart."""
    if low > 0 and high > 4 * low:
        ratio = high / low
        octaves = max(1, (ratio.numerator // ratio.denominator).bit_length() // 2)
        return low * 2**octaves
    middle = (low + high) / 2
    digits = 6
    while not low < _rounded(middle, digits) < high:
        digits += 6
        if digits > MAX_DIGITS:
            return middle
    return _rounded(middle, digits)


def _rounded(value: Fraction, digits: int) -> Fraction:
    """``value`` to that many significant decimal digits."""
    exponent = 0
    while abs(value) * Fraction(10) ** exponent < 10 ** (digits - 1):
        exponent += 1
    while exponent > -MAX_DIGITS and abs(value) * Fraction(10) ** exponent >= 10**digits:
        exponent -= 1
    return Fraction(round(value * Fraction(10) ** exponent)) / Fraction(10) ** exponent


def _shortest(
    radius_at: Callable[[Fraction], float | int], wanted: int, value: Fraction
) -> Fraction:
    """The value to the fewest significant digits that still give the radius."""
    for digits in range(1, MAX_DIGITS):
        candidate = _rounded(value, digits)
        if candidate == value:
            return value
        if candidate > 0 and radius_at(candidate) == wanted:
            return candidate
    return value


def slopes_for_radii(
    n_head: int, smallest: int, largest: int, eps: Any = 0.01
) -> tuple[Fraction, ...]:
    """ALiBi slopes for H heads whose radii are spaced geometrically.

    The radius of ``-m*n`` is ``floor(ln(1/eps)/m) + 1`` (from the geometric series), so a radius R
    asks for ``ln(1/eps)/R < m <= ln(1/eps)/(R-1)``; the shortest decimal in that range is taken.

    Args:
        n_head: H.
        smallest, largest: radii of the first and the last head, tokens, at least 2.
        eps: the share that may lie further away.

    Raises:
        ParameterError: a count or a radius out of range.

    Examples:
        >>> [str(m) for m in slopes_for_radii(3, 10, 1000)]
        ['1/2', '461/10000', '2303/500000']
    """
    share = checked_eps(eps)
    if isinstance(n_head, bool) or not isinstance(n_head, int) or n_head < 1:
        raise ParameterError(f"n_head must be a positive integer, got {n_head!r}")
    if not 2 <= smallest <= largest:
        raise ParameterError(f"need 2 <= smallest <= largest, got {smallest} and {largest}")
    ratio = (largest / smallest) ** (1 / (n_head - 1)) if n_head > 1 else 1.0
    radii = [round(smallest * ratio**h) for h in range(n_head)]
    radii[-1] = largest if n_head > 1 else smallest
    return tuple(_slope(radius, share) for radius in radii)


def _slope(radius: int, eps: Fraction) -> Fraction:
    with working(128):
        mass = -arb(rational(eps)).log()
        low, high = mass / radius, mass / (radius - 1)
        for digits in range(1, MAX_DIGITS):
            scale = Fraction(10) ** digits
            first = int(str((low * rational(scale)).floor().unique_fmpz())) + 1
            candidate = Fraction(first) / scale
            if low < rational(candidate) and arb(rational(candidate)) <= high:
                return candidate
    raise ParameterError(f"no slope of {MAX_DIGITS} digits gives a radius of {radius}")


def _fraction(value: sympy.Rational) -> Fraction:
    return Fraction(int(value.p), int(value.q))


def decimal(value: Fraction) -> str:
    """A decimal fraction as a decimal, any other as p/q."""
    digits, rest = 0, value.denominator
    while rest % 10 == 0:
        digits, rest = digits + 1, rest // 10
    for prime in (2, 5):
        while rest % prime == 0:
            digits, rest = digits + 1, rest // prime
    if rest != 1 or digits > 3 * MAX_DIGITS:
        return str(value)
    text = f"{abs(value.numerator) * 10**digits // value.denominator:0{digits + 1}d}"
    sign = "-" if value < 0 else ""
    whole, part = text[: len(text) - digits], text[len(text) - digits :].rstrip("0")
    return sign + (f"{whole}.{part}" if part else whole)
