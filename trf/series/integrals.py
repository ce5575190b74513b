"""Tail integrals ``integral_a^oo exp(p(x)) dx`` in closed form.

A tail integral is found by a few rules, tried in order; ``d``, ``q``, ``s``, ``r`` are numbers:

=====================================  ==========================================================
exponent                               integral over [a, oo)
=====================================  ==========================================================
``q*log(x+d)``, q < -1                 ``(a+d)^(q+1)/(-q-1)``
``-r*(x+d)^s + q*log(x+d)``            ``Gamma((q+1)/s, r*(a+d)^s) / (s*r^((q+1)/s))``
``-r*x + q*log(x+d)``                  the same with s = 1, times ``exp(r*d)``
``-r*x^2 + b*x``                       complementary error function, after completing the square
``-k*log(1+r*y^s) + q*log(y)``         ``y^(q+1-sk) r^-k/(sk-q-1) * 2F1(k, c; c+1; -1/(r*y^s))``,
                                       y = x+d, ``c = k-(q+1)/s``
``P(log(x+d))``                        substitute ``u = log(x+d)`` and begin again with ``P(u)+u``
=====================================  ==========================================================

The last rule is what reaches the logarithmic scale: ``-log(x) - b*log(log(x))`` becomes
``-b*log(u)``. NIST DLMF 8.2.2 (incomplete gamma) and 15.6.1 (Gauss's function) have the integrals.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import sympy
from flint import arb

from trf.series.balls import number

Evaluate = Callable[[arb], arb]


class DivergentIntegral(ValueError):
    """A rule fits, and shows that the integral diverges."""


@dataclass(frozen=True)
class TailIntegral:
    """``evaluate(a) = integral_a^oo exp(p(x)) dx``, and the name of the function it comes from."""

    evaluate: Evaluate
    name: str


def tail_integral(p: sympy.Expr, x: sympy.Symbol) -> TailIntegral | None:
    """The closed form of the tail integral of ``exp(p)``, or None where no rule fits.

    The value holds for every ``a`` from which ``exp(p)`` is smooth.

    Raises:
        DivergentIntegral: the integral diverges.
    """
    if not p.has(x):
        raise DivergentIntegral("the weights do not decay")
    for rule in (_powers, _gauss, _logarithmic):
        found = rule(p, x)
        if found is not None:
            return found
    return None


def _terms(p: sympy.Expr, x: sympy.Symbol) -> Iterator[tuple[sympy.Expr, sympy.Expr]]:
    for part in sympy.Add.make_args(p):
        yield part.as_independent(x, as_Add=False)


def _affine(expr: sympy.Expr, x: sympy.Symbol) -> tuple[sympy.Expr, sympy.Expr] | None:
    """``(k, d)`` with ``expr = k*(x + d)``, k > 0."""
    slope = sympy.diff(expr, x)
    if slope.has(x) or not slope.is_positive:
        return None
    return slope, sympy.expand(expr / slope - x)


def _powers(p: sympy.Expr, x: sympy.Symbol) -> TailIntegral | None:
    """``c - r*(x+d)^s + q*log(x+d)`` and ``c - r*x^2 + b*x``."""
    offset, power = sympy.S.Zero, sympy.S.Zero
    shifts: set[sympy.Expr] = set()
    monomials: dict[tuple[sympy.Expr, sympy.Expr], sympy.Expr] = {}
    for free, bound in _terms(sympy.expand(p) if p.is_polynomial(x) else p, x):
        if bound == 1:
            offset += free
        elif isinstance(bound, sympy.log):
            affine = _affine(bound.args[0], x)
            if affine is None:
                return None
            offset += free * sympy.log(affine[0])
            power += free
            shifts.add(affine[1])
        else:
            base, exponent = bound.as_base_exp()
            affine = _affine(base, x)
            if affine is None or exponent.has(x) or not exponent.is_positive:
                return None
            key = (affine[1], exponent)
            monomials[key] = monomials.get(key, sympy.S.Zero) + free * affine[0] ** exponent
    if len(shifts) > 1:
        return None
    shift = shifts.pop() if shifts else None
    if not monomials:
        return _pure_power(offset, power, shift if shift is not None else sympy.S.Zero)
    if len(monomials) == 1:
        ((where, exponent), scale) = next(iter(monomials.items()))
        if not scale.is_negative:
            raise DivergentIntegral("the exponent grows")
        if exponent == 1:
            shift = where if shift is None else shift
            return _incomplete_gamma(
                offset - scale * (shift - where), power, shift, -scale, exponent
            )
        if shift is None or shift == where:
            return _incomplete_gamma(offset, power, where, -scale, exponent)
        return None
    zero = sympy.S.Zero
    if set(monomials) == {(zero, sympy.S.One), (zero, sympy.Integer(2))} and power == 0:
        square, linear = monomials[zero, sympy.Integer(2)], monomials[zero, sympy.S.One]
        if not square.is_negative:
            raise DivergentIntegral("the exponent grows")
        shift = linear / (2 * square)
        return _gaussian(offset - square * shift**2, shift, -square)
    return None


def _pure_power(offset: sympy.Expr, power: sympy.Expr, shift: sympy.Expr) -> TailIntegral:
    if not (power + 1).is_negative:
        raise DivergentIntegral(f"the weight decays like the power {power}, which is not below -1")

    def evaluate(a: arb) -> arb:
        q = number(power) + 1
        return number(offset).exp() * (a + number(shift)) ** q / -q

    return TailIntegral(evaluate, "power")


def _incomplete_gamma(
    offset: sympy.Expr, power: sympy.Expr, shift: sympy.Expr, rate: sympy.Expr, s: sympy.Expr
) -> TailIntegral:
    def evaluate(a: arb) -> arb:
        r, e, y = number(rate), number((power + 1) / s), a + number(shift)
        top = r * (y if s == 1 else y ** number(s))
        gamma = (-top).exp() if power == 0 and s == 1 else top.gamma_upper(e)
        return number(offset).exp() * gamma / (number(s) * r**e)

    return TailIntegral(evaluate, "exponential" if power == 0 and s == 1 else "incomplete gamma")


def _gaussian(offset: sympy.Expr, shift: sympy.Expr, rate: sympy.Expr) -> TailIntegral:
    def evaluate(a: arb) -> arb:
        root = number(rate).sqrt()
        return (
            number(offset).exp()
            * (root * (a + number(shift))).erfc()
            * arb.pi().sqrt()
            / (2 * root)
        )

    return TailIntegral(evaluate, "error function")


def _gauss(p: sympy.Expr, x: sympy.Symbol) -> TailIntegral | None:
    """``c - k*log(h + r*y^s) + q*log(y)``, y = x + d."""
    offset, power = sympy.S.Zero, sympy.S.Zero
    shifts: set[sympy.Expr] = set()
    core: tuple[sympy.Expr, sympy.Expr, sympy.Expr] | None = None
    for free, bound in _terms(p, x):
        if bound == 1:
            offset += free
            continue
        if not isinstance(bound, sympy.log):
            return None
        affine = _affine(bound.args[0], x)
        if affine is not None:
            offset += free * sympy.log(affine[0])
            power += free
            shifts.add(affine[1])
            continue
        if core is not None:
            return None
        inner = bound.args[0]
        if inner.is_polynomial(x):
            inner = _completed_square(inner, x)
            if inner is None:
                return None
        height, rest = inner.as_independent(x, as_Add=True)
        scale, monomial = rest.as_independent(x, as_Add=False)
        base, s = monomial.as_base_exp()
        affine = _affine(base, x)
        if affine is None or s.has(x) or not (s.is_positive and height.is_positive):
            return None
        ratio = scale * affine[0] ** s / height
        if not ratio.is_positive:
            return None
        shifts.add(affine[1])
        offset += free * sympy.log(height)
        core = (-free, ratio, s)
    if core is None or len(shifts) != 1:
        return None
    k, ratio, s = core
    excess = s * k - power - 1
    if not excess.is_positive:
        raise DivergentIntegral(f"the weight decays like the power {-excess - 1}")
    shift = shifts.pop()

    def evaluate(a: arb) -> arb:
        y = a + number(shift)
        c, z = number(excess / s), 1 / (number(ratio) * y ** number(s))
        lead = (number(offset)).exp() * y ** -number(excess) / number(ratio) ** number(k)
        return lead / number(excess) * _gauss_series(number(k), c, z)

    return TailIntegral(evaluate, "Gauss hypergeometric")


def _completed_square(inner: sympy.Expr, x: sympy.Symbol) -> sympy.Expr | None:
    """``h + r*(x+d)^2`` for a quadratic polynomial; the polynomial itself if it has two terms."""
    coefficients = sympy.Poly(inner, x).all_coeffs()
    if len(coefficients) != 3:
        return inner if len(sympy.Add.make_args(sympy.expand(inner))) == 2 else None
    square, linear, rest = coefficients
    shift = linear / (2 * square)
    return square * (x + shift) ** 2 + (rest - square * shift**2)


def _gauss_series(k: arb, c: arb, z: arb) -> arb:
    """``2F1(k, c; c+1; -z)`` for z >= 0."""
    return (-z).hypgeom_2f1(k, c, c + 1, bc=True)


def _logarithmic(p: sympy.Expr, x: sympy.Symbol) -> TailIntegral | None:
    """``P(log(x+d))``: the substitution ``u = log(x+d)``."""
    shifts: set[sympy.Expr] = set()
    u = sympy.Dummy("u", positive=True)
    replacements: dict[sympy.Expr, sympy.Expr] = {}
    for atom in p.atoms(sympy.log):
        affine = _affine(atom.args[0], x)
        if affine is not None:
            shifts.add(affine[1])
            replacements[atom] = u + sympy.log(affine[0])
    if len(shifts) != 1:
        return None
    inner = p.xreplace(replacements)
    if inner.has(x):
        return None
    shift = shifts.pop()
    reduced = tail_integral(sympy.expand_mul(inner) + u, u)
    if reduced is None:
        return None
    evaluate = reduced.evaluate
    return TailIntegral(lambda a: evaluate((a + number(shift)).log()), reduced.name)
