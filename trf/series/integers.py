"""n is an integer: residue classes and sparse supports.

A periodic part, such as ``(-1)**n``, ``Mod(n, 3)``, ``cos(pi*n/2)`` or ``floor(n/2)``, is constant
up to a polynomial on each residue class of n; the series converges if and only if it converges
on every class. A bias that lives on the squares or on the powers of 2 is summed over the index.
"""

# sympy's stubs type the parts and the results of an expression too widely.
# pyright: reportArgumentType=false, reportAssignmentType=false, reportAttributeAccessIssue=false
# pyright: reportGeneralTypeIssues=false, reportOperatorIssue=false, reportReturnType=false

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import gcd, lcm

import sympy
from sympy import S

from trf.series.asymptotics import Scale
from trf.series.rewriting import Rewriter
from trf.series.signs import Oracle, Split, Undecidable

_MAX_PERIOD = 60
_MAX_MULTIPLE = 6


class Held(sympy.Function):
    """The identity, which keeps sympy from moving multiples of pi back into an angle."""


@dataclass(frozen=True)
class Part:
    """One part of a series: p over an index of its own, and in words which n those are."""

    expr: sympy.Expr
    which: str


def parts(expr: sympy.Expr, n: sympy.Symbol) -> list[Part]:
    """The series split so that every part is free of periodic functions and sparse supports."""
    found: list[Part] = []
    for sparse in _sparse_parts(common_phase(_near_polynomial_phases(expr, n), n), n):
        found += [
            Part(part.expr, " and ".join(filter(None, (sparse.which, part.which))))
            for part in _residue_parts(sparse.expr, n)
        ]
    return found


def _near_polynomial_phases(expr: sympy.Expr, n: sympy.Symbol) -> sympy.Expr:
    """sin(P(n) + r(n)), P a polynomial and r tending to a constant, by the sum of angles."""
    replaced = {}
    for wave in expr.atoms(sympy.sin, sympy.cos):
        angle = wave.args[0]
        if n not in angle.free_symbols or angle.is_polynomial(n):
            continue
        polynomial = _polynomial_part(angle, n)
        if polynomial is None or polynomial == 0:
            continue
        rest = Held(angle - polynomial)
        s, c = sympy.sin(polynomial), sympy.cos(polynomial)
        if isinstance(wave, sympy.sin):
            replaced[wave] = s * sympy.cos(rest) + c * sympy.sin(rest)
        else:
            replaced[wave] = c * sympy.cos(rest) - s * sympy.sin(rest)
    return expr.xreplace(replaced)


def _polynomial_part(angle: sympy.Expr, n: sympy.Symbol) -> sympy.Expr | None:
    """P with angle - P bounded, for an algebraic function of n; None if there is none."""
    if angle.free_symbols != {n} or angle.atoms(sympy.Function):
        return None
    scale = Scale(Oracle())
    try:
        rest = Rewriter(scale, {}, {})(angle)
        total: sympy.Expr = S.Zero
        for _ in range(4):
            lead = scale.lead(rest)
            power = lead.monomial.get(scale.n, S.Zero)
            if lead.coefficient == 0 or power <= 0:
                return total
            if not power.is_Integer or len(lead.monomial) > 1:
                return None
            total += lead.coefficient * n**power
            rest = rest - lead.coefficient * scale.n**power
    except (Undecidable, Split):
        return None
    return None


def common_phase(expr: sympy.Expr, n: sympy.Symbol) -> sympy.Expr:
    """Write sin and cos of multiples of one angle, such as n and 2n, by those of the angle."""
    turning = [f for f in expr.atoms(sympy.sin, sympy.cos) if f.args[0].is_polynomial(n)]
    turning = [f for f in turning if f.args[0].subs(n, 0) == 0 and n in f.args[0].free_symbols]
    if len({f.args[0] for f in turning}) < 2:
        return expr
    ratios = [sympy.cancel(f.args[0] / turning[0].args[0]) for f in turning]
    if not all(ratio.is_Rational for ratio in ratios):
        return expr
    denominator = lcm(*(int(ratio.q) for ratio in ratios))
    multiples = [int(ratio * denominator) for ratio in ratios]
    shared = gcd(*multiples)
    if max(abs(m) // shared for m in multiples) > _MAX_MULTIPLE:
        return expr
    angle = turning[0].args[0] * shared / denominator
    x = sympy.Dummy("x")
    return expr.xreplace(
        {
            f: sympy.expand_trig(f.func(multiple // shared * x)).subs(x, angle)
            for f, multiple in zip(turning, multiples, strict=True)
        }
    )


# -- residue classes ------------------------------------------------------------------------


def _residue_parts(expr: sympy.Expr, n: sympy.Symbol, level: int = 0) -> list[Part]:
    periods = {
        part: period
        for part in expr.atoms(sympy.Pow, sympy.Function, sympy.Mod)
        if n in part.free_symbols and (period := _period(part, n)) is not None
    }
    if not periods or level > 2:
        return [Part(expr, "")]
    period = lcm(*periods.values())
    if period > _MAX_PERIOD:
        return [Part(expr, "")]
    found = []
    for residue in range(period):
        fixed = expr.xreplace({part: _at_residue(part, n, period, residue) for part in periods})
        which = f"n = {period}*k + {residue}" if residue else f"n = {period}*k"
        if level:
            which = which.replace("n =", "k =")
        found += [
            Part(inner.expr, " and ".join(filter(None, (which, inner.which))))
            for inner in _residue_parts(fixed.subs(n, period * n + residue), n, level + 1)
        ]
    return found


def _polynomial_period(e: sympy.Expr, n: sympy.Symbol, modulus: sympy.Expr) -> int | None:
    """A period of e(n) modulo `modulus`, for a polynomial whose coefficients are commensurable."""
    if not e.is_polynomial(n):
        return None
    period = 1
    for power, coefficient in sympy.Poly(e, n).as_dict().items():
        ratio = coefficient / modulus
        if power == (0,):
            continue
        if not ratio.is_Rational:
            return None
        period = lcm(period, int(ratio.q))
    return period


def _period(part: sympy.Basic, n: sympy.Symbol) -> int | None:
    if isinstance(part, sympy.Pow):
        base, exponent = part.args
        if not (base.is_number and base.is_negative and exponent.is_polynomial(n)):
            return None
        period = _polynomial_period(exponent, n, S(2))
        if period is None or exponent.is_integer is False:
            return None
        whole = all(exponent.subs(n, k).is_integer for k in range(2 * period))
        return period if exponent.is_integer or whole else None
    if isinstance(part, sympy.Mod):
        modulus = part.args[1]
        cycle = _power_cycle(part, n)
        if cycle is not None:
            return cycle[1]
        return _polynomial_period(part.args[0], n, modulus) if modulus.is_Rational else None
    if isinstance(part, (sympy.floor, sympy.ceiling, sympy.frac)):
        return _polynomial_period(part.args[0], n, S.One)
    if isinstance(part, (sympy.sin, sympy.cos, sympy.tan, sympy.cot)):
        return _polynomial_period(sympy.expand(part.args[0]), n, 2 * sympy.pi)
    return None


def _power_cycle(part: sympy.Basic, n: sympy.Symbol) -> tuple[int, int] | None:
    """(first n, period) of ``Mod(b**n, m)`` for whole b and m; None for anything else."""
    power, modulus = part.args
    if not (power.is_Pow and power.exp == n and power.base.is_Integer and modulus.is_Integer):
        return None
    seen: dict[int, int] = {}
    value, k = 1, 0
    while value % modulus not in seen and k <= 2 * _MAX_PERIOD:
        seen[value % int(modulus)] = k
        value = value * int(power.base) % int(modulus)
        k += 1
    first = seen.get(value % int(modulus))
    return None if first is None else (first, k - first)


def _at_residue(part: sympy.Basic, n: sympy.Symbol, period: int, residue: int) -> sympy.Basic:
    """`part` for n = period*k + residue, still as a function of n."""
    if isinstance(part, sympy.Pow):
        base, exponent = part.args
        return S.NegativeOne ** exponent.subs(n, residue) * (-base) ** exponent
    inner = part.args[0]
    cycle = _power_cycle(part, n) if isinstance(part, sympy.Mod) else None
    if cycle is not None:
        return part.subs(n, residue + period * (1 + cycle[0] // period))
    if isinstance(part, (sympy.floor, sympy.ceiling)):
        return inner + (part.func(inner.subs(n, residue)) - inner.subs(n, residue))
    return part.subs(n, residue)


# -- sparse supports ------------------------------------------------------------------------


def _sparse_parts(expr: sympy.Expr, n: sympy.Symbol) -> list[Part]:
    """Split a Piecewise whose condition holds on a sparse set: the set, and all other n.

    The complement of such a set has density 1, so for an eventually monotone p the sum over it
    converges exactly when the sum over all n does.
    """
    for piecewise in expr.atoms(sympy.Piecewise):
        for position, (value, condition) in enumerate(piecewise.args):
            index = _sparse_index(condition, n)
            if index is None:
                continue
            inverse, which = index
            negated = isinstance(condition, (sympy.Ne, sympy.Not))
            others = [pair for at, pair in enumerate(piecewise.args) if at != position]
            rest = sympy.Piecewise(*others) if others else S.NegativeInfinity
            on, off = (rest, value) if negated else (value, rest)
            inside = expr.xreplace({piecewise: on}).subs(n, inverse(n))
            outside = expr.xreplace({piecewise: off})
            return [
                Part(sympy.powdenest(inside, force=True), which),
                *_sparse_parts(outside, n),
            ]
    return [Part(expr, "")]


def _sparse_index(
    condition: sympy.Basic, n: sympy.Symbol
) -> tuple[Callable[[sympy.Symbol], sympy.Expr], str] | None:
    """How n is counted where `condition` holds, if that is a sparse set known here."""
    if isinstance(condition, sympy.Not):
        return _sparse_index(condition.args[0], n)
    if not isinstance(condition, (sympy.Eq, sympy.Ne)):
        return None
    difference = condition.lhs - condition.rhs
    inner = _integer_test(condition.lhs, condition.rhs)
    if inner is not None:
        if inner.is_Pow and inner.base == n and (1 / inner.exp).is_Integer and inner.exp < 1:
            power = 1 / inner.exp
            return (lambda m: (m + 1) ** power), f"n = k^{power}"
        base = sympy.exp(sympy.log(n) / inner)
        base = sympy.simplify(base)
        if base.is_Integer and base > 1:
            return (lambda m: base**m), f"n = {base}^k"
        return None
    for rounded in difference.atoms(sympy.floor, sympy.ceiling):
        inner = rounded.args[0]
        rebuilt = sympy.simplify(difference.xreplace({rounded: inner}))
        if rebuilt == 0:
            return _sparse_index(sympy.Eq(inner, sympy.floor(inner), evaluate=False), n)
    return None


def _integer_test(left: sympy.Basic, right: sympy.Basic) -> sympy.Expr | None:
    """f, if the condition says that f is an integer."""
    for first, second in ((left, right), (right, left)):
        if isinstance(second, (sympy.floor, sympy.ceiling)) and second.args[0] == first:
            return first  # type: ignore[return-value]
        if second == 0 and isinstance(first, sympy.frac):
            return first.args[0]
        if second == 0 and isinstance(first, sympy.Mod) and first.args[1] == 1:
            return first.args[0]
    return None


def subsequences(expr: sympy.Expr, n: sympy.Symbol) -> list[Part]:
    """Thinner series of some of the terms: if one of them diverges, so does the whole."""
    found = []
    if expr.has(sympy.totient, sympy.divisor_sigma):
        # The sum of a regular f over the primes is that of f(n)/log(n), up to a factor.
        at_primes = expr.replace(_is_divisor_function, _at_prime)
        if not at_primes.has(sympy.totient, sympy.divisor_sigma):
            found.append(Part(at_primes - sympy.log(sympy.log(n)), "n prime"))
    for modulus in sorted(_symbolic_moduli(expr, n), key=str):
        thinner = expr.subs(n, modulus * n)
        thinner = thinner.replace(
            lambda e: isinstance(e, (sympy.sin, sympy.cos)),
            lambda e: e.func(sympy.expand(e.args[0])),
        )
        found.append(Part(thinner, f"n = {modulus}*k"))
    roots = {
        int(part.exp.q)
        for part in expr.atoms(sympy.Pow)
        if part.base == n and part.exp.is_Rational and part.exp.q in (2, 3, 4)
    }
    for power in sorted(roots):
        thinner = sympy.powdenest(expr.subs(n, n**power), force=True)
        found += [
            Part(part.expr, " and ".join(filter(None, (f"n = k^{power}", part.which))))
            for part in _residue_parts(thinner, n)
        ]
    return found


def _symbolic_moduli(expr: sympy.Expr, n: sympy.Symbol) -> set[sympy.Symbol]:
    """Integer parameters by which n is divided inside a periodic function."""
    found: set[sympy.Symbol] = set()
    for part in expr.atoms(sympy.Mod, sympy.frac, sympy.floor, sympy.sin, sympy.cos):
        if n in part.free_symbols:
            denominators = {sympy.denom(argument) for argument in part.args} | set(part.args[1:])
            for denominator in denominators:
                found |= {s for s in denominator.free_symbols if s.is_integer and s != n}
    return found


def _is_divisor_function(e: sympy.Basic) -> bool:
    return isinstance(e, (sympy.totient, sympy.divisor_sigma)) and e.args[0].is_Symbol


def _at_prime(e: sympy.Expr) -> sympy.Expr:
    if isinstance(e, sympy.totient):
        return e.args[0] - 1
    power = e.args[1] if len(e.args) > 1 else S.One
    return 1 + e.args[0] ** power
