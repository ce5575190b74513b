"""Minima of a function of a phase: where, how small, and how flat.

The function is an expression in bounded symbols: sin and cos of one phase, or its fractional
part. It is cut where an absolute value, a sign, a Max or a Min turns, and where its derivative
vanishes; on each piece it is monotone, so that its minimum is at an end.
"""

# sympy's stubs type the parts and the results of an expression too widely.
# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportCallIssue=false
# pyright: reportOperatorIssue=false, reportOptionalMemberAccess=false, reportOptionalOperand=false
# pyright: reportReturnType=false

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

import sympy
from sympy import S

from trf.series.asymptotics import Scale
from trf.series.rewriting import Rewriter
from trf.series.signs import Interval, Oracle, Undecidable

_TURNING = (
    sympy.Abs, sympy.sign, sympy.Max, sympy.Min, sympy.Heaviside, sympy.floor, sympy.ceiling
)  # fmt: skip


@dataclass(frozen=True)
class Minimum:
    """A minimiser: the values of the bounded symbols there, the value, the order of flatness.

    Near it the function exceeds `value` by about (distance in phase)^order; the order is oo
    where the minimum is attained on an interval.
    """

    at: Mapping[sympy.Symbol, sympy.Expr]
    value: sympy.Expr
    order: sympy.Expr


@dataclass(frozen=True)
class Phase:
    """The bounded symbols that belong to one phase angle (for frac: to one argument)."""

    angle: sympy.Expr
    sine: sympy.Symbol | None = None
    cosine: sympy.Symbol | None = None
    fraction: sympy.Symbol | None = None


def phases(c: sympy.Expr, scale: Scale) -> list[Phase]:
    """The phases on which an expression in bounded symbols depends."""
    found: dict[sympy.Expr, dict[str, sympy.Symbol]] = {}
    for symbol in sorted(c.free_symbols & set(scale.oracle.ranges), key=str):
        meaning = scale.meaning[symbol]
        kind = {sympy.sin: "sine", sympy.cos: "cosine", sympy.frac: "fraction"}.get(meaning.func)
        if kind is None:
            raise Undecidable(f"{meaning} is known to be bounded, but not how it is distributed")
        found.setdefault(meaning.args[0], {})[kind] = symbol
    return [Phase(angle, **symbols) for angle, symbols in found.items()]


def minima(c: sympy.Expr, phase: Phase, oracle: Oracle) -> list[Minimum]:
    """All global minimisers of `c`, a function of one phase."""
    if phase.fraction is not None:
        if phase.sine is not None or phase.cosine is not None:
            raise Undecidable(f"{phase.angle} appears inside frac and inside sin or cos")
        return _best(_on_interval(c, phase.fraction, S.Zero, S.One, oracle), oracle)
    sine, cosine = phase.sine, phase.cosine
    if sine is not None and cosine is not None:
        both = sympy.expand(c)
        for kept, dropped in ((sine, cosine), (cosine, sine)):
            if (reduced := _without(both, dropped, kept)) is not None:
                return minima(reduced, _only(phase, kept), oracle)
        return _rotated(both, phase, oracle)
    symbol = sine if sine is not None else cosine
    assert symbol is not None
    found = _best(_on_interval(c, symbol, S.NegativeOne, S.One, oracle), oracle)
    return [m for minimum in found for m in _circular(minimum, symbol)]


def _only(phase: Phase, kept: sympy.Symbol) -> Phase:
    if kept == phase.sine:
        return Phase(phase.angle, sine=kept)
    return Phase(phase.angle, cosine=kept)


def _without(c: sympy.Expr, dropped: sympy.Symbol, kept: sympy.Symbol) -> sympy.Expr | None:
    """`c` with even powers of one symbol written by the other: sin^2 + cos^2 = 1."""
    if not c.is_polynomial(dropped):
        return None
    total: sympy.Expr = S.Zero
    for (power,), coefficient in sympy.Poly(c, dropped).as_dict().items():
        if power % 2:
            return None
        total += coefficient * (1 - kept**2) ** (power // 2)
    return sympy.expand(total)


def _rotated(c: sympy.Expr, phase: Phase, oracle: Oracle) -> list[Minimum]:
    """``a + b sin + d cos`` has the minimum a - sqrt(b^2 + d^2), of order 2."""
    b, d = c.coeff(phase.sine), c.coeff(phase.cosine)
    a = sympy.expand(c - b * phase.sine - d * phase.cosine)
    if {phase.sine, phase.cosine} & (a.free_symbols | b.free_symbols | d.free_symbols):
        return _quadratic(c, phase, oracle) or _on_circle(c, phase, oracle)
    size = sympy.sqrt(b**2 + d**2)
    if oracle.sign(b**2 + d**2) == 0:
        return [Minimum({}, a, S.Infinity)]
    at = {phase.sine: -b / size, phase.cosine: -d / size}
    return [Minimum(at, a - size, S(2))]  # type: ignore[arg-type]


def _quadratic(c: sympy.Expr, phase: Phase, oracle: Oracle) -> list[Minimum]:
    """``a + b sin^2 + d sin cos + f cos^2``, a wave of the doubled phase; [] if c is not one."""
    sine, cosine = phase.sine, phase.cosine
    terms = sympy.Poly(c, sine, cosine).as_dict() if c.is_polynomial(sine, cosine) else {}
    if not terms or not set(terms) <= {(0, 0), (2, 0), (1, 1), (0, 2)}:
        return []
    a, b, d, f = (terms.get(key, S.Zero) for key in ((0, 0), (2, 0), (1, 1), (0, 2)))
    size = sympy.sqrt(sympy.trigsimp((f - b) ** 2 + d**2)) / 2
    if oracle.sign(size) == 0:
        return [Minimum({}, a + (b + f) / 2, S.Infinity)]
    doubled_cosine, doubled_sine = (b - f) / (2 * size), -d / (2 * size)
    value = sympy.trigsimp(a + (b + f) / 2 - size)
    at_sine = sympy.sqrt((1 - doubled_cosine) / 2)
    if oracle.sign(1 - doubled_cosine) == 0:
        points = [(S.Zero, S.One), (S.Zero, S.NegativeOne)]
    else:
        points = [(s * at_sine, doubled_sine / (2 * s * at_sine)) for s in (1, -1)]
    return [Minimum({sine: s, cosine: k}, value, S(2)) for s, k in points]  # type: ignore[misc]


def _on_circle(c: sympy.Expr, phase: Phase, oracle: Oracle) -> list[Minimum]:
    """A trigonometric polynomial with numbers as coefficients, by t = tan(phase/2)."""
    sine, cosine = phase.sine, phase.cosine
    t = sympy.Dummy("t", real=True)
    rational = {sine: 2 * t / (1 + t**2), cosine: (1 - t**2) / (1 + t**2)}
    q = sympy.cancel(c.subs(rational)) if c.free_symbols == {sine, cosine} else None
    if q is None or not c.is_polynomial(sine, cosine):
        raise Undecidable(f"the minimum of {c} over a phase is not found")
    slope = sympy.Poly(sympy.numer(sympy.cancel(q.diff(t))), t)
    if not _has_roots(slope):
        raise Undecidable(f"the minimum of {c} over a phase is not found")
    # The far point t = oo is the phase pi: seen by turning the circle by half.
    turned = sympy.cancel(c.subs({sine: -sine, cosine: -cosine}).subs(rational))
    places = [(q, root, S.One) for root in sympy.real_roots(slope, multiple=False)]
    places = [(q, root[0], S.One) for _, root, _ in places] + [(turned, S.Zero, S.NegativeOne)]
    found = []
    for function, root, sign in places:
        at = {symbol: sign * value.subs(t, root) for symbol, value in rational.items()}
        value = function.subs(t, root)
        order = S(2)
        if not sympy.Poly(slope.as_expr(), t).diff().eval(root) or sign < 0:
            order = _order(function, t, root, S.One, oracle)
        found.append(Minimum(at, value, order))  # type: ignore[arg-type]
    return _best(found, oracle)


def _circular(minimum: Minimum, symbol: sympy.Symbol) -> Iterator[Minimum]:
    """From the variable sin or cos to the phase: at +-1 the order doubles."""
    value = minimum.at.get(symbol)
    if value in (S.One, S.NegativeOne):
        yield Minimum(minimum.at, minimum.value, 2 * minimum.order)
    else:
        yield minimum


def _best(candidates: list[Minimum], oracle: Oracle) -> list[Minimum]:
    best: list[Minimum] = []
    for candidate in candidates:
        if not best:
            best = [candidate]
            continue
        sign = oracle.sign(candidate.value - best[0].value)
        if sign < 0:
            best = [candidate]
        elif sign == 0:
            best.append(candidate)
    return list({tuple(sorted(m.at.items(), key=str)): m for m in best}.values())


def _on_interval(
    c: sympy.Expr, v: sympy.Symbol, low: sympy.Expr, high: sympy.Expr, oracle: Oracle
) -> list[Minimum]:
    """The minimum of each monotone piece of c on [low, high]."""
    cuts = [low, *_turning_points(c, v, low, high), high]
    found: list[Minimum] = []
    for start, end in pairwise(cuts):
        found += _on_piece(_smooth(c, v, (start + end) / 2), v, start, end, oracle, 0)
    return found


def _turning_points(
    c: sympy.Expr, v: sympy.Symbol, low: sympy.Expr, high: sympy.Expr
) -> list[sympy.Expr]:
    points = set()
    for part in c.atoms(*_TURNING):
        if v not in part.free_symbols:
            continue
        if isinstance(part, (sympy.Max, sympy.Min)):
            differences = [a - b for i, a in enumerate(part.args) for b in part.args[:i]]
        else:
            differences = [part.args[0]]
        if isinstance(part, (sympy.floor, sympy.ceiling)):
            ends = [part.args[0].subs(v, end) for end in (low, high)]
            if any(end.free_symbols for end in ends):
                raise Undecidable(f"where {part} jumps depends on the parameters")
            whole = range(int(sympy.floor(min(ends))), int(sympy.ceiling(max(ends))) + 1)
            differences = [part.args[0] - k for k in whole]
        for difference in differences:
            slope = difference.diff(v)
            if slope.free_symbols or not slope.is_number or slope == 0:
                raise Undecidable(f"where {part} turns depends on more than the phase")
            root = -difference.subs(v, 0) / slope
            if root.free_symbols:
                raise Undecidable(f"where {part} turns depends on the parameters")
            if (root > low) == S.true and (root < high) == S.true:
                points.add(root)
    return sorted(points, key=lambda point: point.evalf())


def _smooth(c: sympy.Expr, v: sympy.Symbol, inside: sympy.Expr) -> sympy.Expr:
    """`c` with every turning function replaced by its branch at `inside`."""

    def branch(part: sympy.Expr) -> sympy.Expr:
        if isinstance(part, (sympy.Max, sympy.Min)):
            chosen = part.func(*(argument.subs(v, inside) for argument in part.args))
            return next(a for a in part.args if a.subs(v, inside) == chosen)
        if isinstance(part, (sympy.floor, sympy.ceiling)):
            return part.func(part.args[0].subs(v, inside))
        positive = part.args[0].subs(v, inside) > 0
        if isinstance(part, sympy.Abs):
            return part.args[0] if positive else -part.args[0]
        if isinstance(part, sympy.Heaviside):
            return S.One if positive else S.Zero
        return S.One if positive else S.NegativeOne

    return c.replace(lambda e: isinstance(e, _TURNING) and v in e.free_symbols, branch)


def _on_piece(
    q: sympy.Expr,
    v: sympy.Symbol,
    low: sympy.Expr,
    high: sympy.Expr,
    oracle: Oracle,
    depth: int,
) -> list[Minimum]:
    slope = sympy.expand(q.diff(v))
    if slope == 0:
        return [Minimum({v: (low + high) / 2}, q, S.Infinity)]
    if v not in slope.free_symbols:
        rising = oracle.sign(slope)
        if rising == 0:
            return [Minimum({v: (low + high) / 2}, q.subs(v, low), S.Infinity)]
    else:
        local = Oracle(
            oracle.constraints,
            {**oracle.ranges, v: Interval(low, high, True, True)},
            oracle.budget,
        )
        signs = local.signs(slope)
        if signs <= {0, 1} or signs <= {0, -1}:
            rising = 1 if 1 in signs else -1
        else:
            return _split_piece(q, slope, v, low, high, oracle, depth)
    end = low if rising > 0 else high
    value = q.subs(v, end)
    if value.has(S.Infinity, S.NegativeInfinity, S.ComplexInfinity, S.NaN):
        raise Undecidable(f"{q} is unbounded over the phase")
    return [Minimum({v: end}, value, _order(q, v, end, S(rising), oracle))]


def _split_piece(
    q: sympy.Expr,
    slope: sympy.Expr,
    v: sympy.Symbol,
    low: sympy.Expr,
    high: sympy.Expr,
    oracle: Oracle,
    depth: int,
) -> list[Minimum]:
    numerator, denominator = sympy.together(slope).as_numer_denom()
    if depth > 3 or not numerator.is_polynomial(v) or not denominator.is_polynomial(v):
        raise Undecidable(f"the minimum of {q} over a phase is not found")
    if v in denominator.free_symbols and not _keeps_sign(denominator, v, low, high):
        raise Undecidable(f"the minimum of {q} over a phase is not found")
    polynomial = sympy.Poly(numerator, v)
    if polynomial.degree() == 1:
        a, b = polynomial.all_coeffs()
        roots = [] if oracle.sign(a) == 0 else [sympy.cancel(-b / a)]
    elif slope.free_symbols == {v} and _has_roots(polynomial):
        roots = [root for root, _ in sympy.real_roots(polynomial, multiple=False)]
    else:
        raise Undecidable(f"the minimum of {q} over a phase is not found")
    inside = [r for r in roots if oracle.sign(r - low) > 0 and oracle.sign(high - r) > 0]
    if not inside and roots and depth:
        raise Undecidable(f"the minimum of {q} over a phase is not found")
    cuts = [low, *inside, high]
    found: list[Minimum] = []
    for start, end in pairwise(cuts):
        middle = slope.subs(v, (start + end) / 2)
        rising = oracle.sign(middle)
        at = start if rising > 0 else end
        found.append(Minimum({v: at}, q.subs(v, at), _order(q, v, at, S(rising), oracle)))
    return found


def _has_roots(polynomial: sympy.Poly) -> bool:
    """Whether sympy isolates the real roots exactly: the coefficients are algebraic numbers."""
    domain = polynomial.domain
    return domain.is_ZZ or domain.is_QQ or domain.is_Algebraic


def _keeps_sign(e: sympy.Expr, v: sympy.Symbol, low: sympy.Expr, high: sympy.Expr) -> bool:
    if e.free_symbols != {v} or not _has_roots(sympy.Poly(e, v)):
        return False
    roots = [root for root, _ in sympy.real_roots(sympy.Poly(e, v), multiple=False)]
    return not any((root > low) == S.true and (root < high) == S.true for root in roots)


def _order(
    q: sympy.Expr, v: sympy.Symbol, end: sympy.Expr, direction: sympy.Expr, oracle: Oracle
) -> sympy.Expr:
    """The order in t of q(end + direction t) - q(end) as t falls to 0."""
    scale = Scale(Oracle(oracle.constraints, budget=oracle.budget))
    t = 1 / scale.meaning[scale.n]
    excess = sympy.expand(q.subs(v, end + direction * t)) - q.subs(v, end)
    lead = scale.lead(Rewriter(scale, {}, {})(excess))
    order = -lead.monomial.get(scale.n, S.Zero)
    if set(lead.monomial) - {scale.n} or lead.coefficient == 0:
        raise Undecidable(f"the minimum of {q} over a phase is not of power order")
    return order
