"""The sign of a number: read off a ball that excludes 0, or proved to be 0.

That a number *is* 0 is accepted only with an algebraic proof: by expansion, by the minimal
polynomial, by a product of logarithms' arguments that is 1, by a product of Gaussian rationals.
"""

# sympy's stubs type the parts and the results of an expression too widely.
# pyright: reportAssignmentType=false, reportAttributeAccessIssue=false

from __future__ import annotations

from functools import lru_cache

import sympy
from sympy import S

from trf.series.constants import NoBall, enclose, precision

_LARGEST_ANGLE = 30  # the denominator of a multiple of pi whose cosine is taken apart
_MOST_OPERATIONS, _MOST_WAVES = 60, 20  # of a constant that sympy is asked to simplify
_PRECISIONS = (64, 256, 1024, 4096)


class Undecidable(ArithmeticError):
    """A question that the engine can't answer; the message is the reason a verdict gives."""


@lru_cache(maxsize=20_000)
def number_sign(number: sympy.Expr) -> int:
    """The sign of a real number, proved.

    Raises:
        Undecidable: if neither a ball nor an algebraic proof settles it.
    """
    if isinstance(number, sympy.Rational):
        return (number.p > 0) - (number.p < 0)
    if number is S.Infinity:
        return 1
    if number is S.NegativeInfinity:
        return -1
    for bits in _PRECISIONS:
        with precision(bits):
            try:
                ball = enclose(number)
            except NoBall:
                continue
            if ball > 0:
                return 1
            if ball < 0:
                return -1
        if bits == _PRECISIONS[1] and _is_proved_zero(number):
            return 0
    if _is_proved_zero(number):
        return 0
    raise Undecidable(f"no proof settles whether the constant {number} is 0")


@lru_cache(maxsize=2_000)
def _is_proved_zero(number: sympy.Expr) -> bool:
    number = number.replace(lambda e: e is sympy.GoldenRatio, lambda _: (1 + sympy.sqrt(5)) / 2)
    number = number.replace(
        lambda e: isinstance(e, (sympy.asinh, sympy.acosh, sympy.atanh)),
        lambda e: e.rewrite(sympy.log),
    )
    if sympy.expand(number) == 0 or _is_log_of_one(number) or _is_angle_zero(number):
        return True
    logs = sympy.expand_log(number, force=True)
    if sympy.expand(logs.replace(lambda e: isinstance(e, sympy.log), _factored_log)) == 0:
        return True
    if number.is_algebraic and _has_small_degree(number):
        x = sympy.Dummy("x")
        return sympy.minimal_polynomial(number, x) == x
    if number.has(sympy.sin, sympy.cos):
        if sympy.expand(number.rewrite(sympy.exp)) == 0:
            return True
        return number.count_ops() < _MOST_WAVES and sympy.trigsimp(number) == 0
    return number.count_ops() < _MOST_OPERATIONS and sympy.simplify(number) == 0


def _has_small_degree(number: sympy.Expr) -> bool:
    """Whether a minimal polynomial is within reach."""
    angles = [sympy.denom(wave.args[0] / sympy.pi) for wave in number.atoms(sympy.sin, sympy.cos)]
    return all(angle.is_Integer and angle <= _LARGEST_ANGLE for angle in angles)


def _is_log_of_one(number: sympy.Expr) -> bool:
    """``sum q_i log(x_i)`` with algebraic x_i and rational q_i is 0 if ``prod x_i^q_i`` is 1."""
    product: sympy.Expr = S.One
    for term in sympy.Add.make_args(number):
        factor, logarithm = term.as_coeff_Mul()
        if not isinstance(logarithm, sympy.log) or not logarithm.args[0].is_algebraic:
            return False
        if abs(factor.p) > 60 or factor.q > 60:
            return False
        product *= logarithm.args[0] ** factor
    x = sympy.Dummy("x")
    return sympy.minimal_polynomial(product, x) == x - 1


def _is_angle_zero(number: sympy.Expr) -> bool:
    """``sum q_i atan(r_i) + q pi``, already known to be nearly 0, by exact Gaussian rationals."""
    if number.has(1 / sympy.pi):
        number = sympy.expand(number * sympy.pi)
    scale = sympy.ilcm(1, *(t.as_coeff_Mul()[0].q for t in sympy.Add.make_args(number)))
    product: sympy.Expr = S.One
    for term in sympy.Add.make_args(sympy.expand(number * scale)):
        factor, angle = term.as_coeff_Mul()
        if angle == sympy.pi and factor.is_Integer:
            product *= S.NegativeOne**factor
        elif isinstance(angle, sympy.atan) and angle.args[0].is_Rational and abs(factor) < 60:
            product = sympy.expand(product * (1 + sympy.I * angle.args[0]) ** factor)
        else:
            return False
    product = sympy.simplify(sympy.expand_complex(product))
    return sympy.im(product) == 0 and sympy.re(product).is_positive is True


def _factored_log(logarithm: sympy.Expr) -> sympy.Expr:
    argument = logarithm.args[0]
    if isinstance(argument, sympy.Rational) and argument > 0:
        return sympy.Add(
            *(power * sympy.log(prime) for prime, power in sympy.factorrat(argument).items())
        )
    return logarithm
