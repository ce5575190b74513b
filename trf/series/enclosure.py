"""From a bias without free parameters to a `Series` whose tails are certified balls."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import sympy
from flint import arb, fmpz

from trf.series.balls import NotEvaluable, Term, compile_term
from trf.series.discs import TAUS, try_disc_bound
from trf.series.integrals import DivergentIntegral, tail_integral
from trf.series.quadrature import area, quadrature
from trf.series.rationals import decide
from trf.series.smoothing import majorant, smoothed, with_pieces
from trf.series.spans import NotRegularError
from trf.series.summation import Dominated, EulerMaclaurin, Truncated
from trf.series.tails import (
    Difference,
    FiniteSupport,
    Geometric,
    Hurwitz,
    PartialFractions,
    Series,
    Uniform,
    working,
)

MAX_REGULAR = 1 << 20
MAX_DIRECT = 1 << 12
MAX_POLE_ORDER = 24


class NoEnclosureError(ValueError):
    """No certified enclosure of the series was found; the message says what stopped it."""


def enclose(p: sympy.Expr, n: sympy.Symbol) -> Series:
    """The series ``sum exp(p(n))`` with certified tails.

    Args:
        p: the exponent, with numbers for all parameters.
        n: the symbol of the distance.

    Raises:
        DivergentIntegral: a rule shows that the series diverges.
        NoEnclosureError: nothing here applies.

    Examples:
        >>> n = sympy.Symbol("n", integer=True, nonnegative=True)
        >>> enclose(-2 * sympy.log(1 + n), n).total(53).overlaps(arb.pi() ** 2 / 6)
        True
    """
    others = p.free_symbols - {n}
    if others:
        raise NoEnclosureError(f"the parameters {sorted(map(str, others))} have no value")
    x = sympy.Symbol("n", positive=True)
    try:
        weight, smooth, switch = _prepared(p, n, x)
        if smooth is None:
            uniform = _window(p, n)
            return uniform or _finite(weight, _start(weight, switch), switch)
        rough = majorant(smooth, x)
        if rough is not None:
            return _dominated(weight, _far_out(rough, x), x, switch)
        smooth, regular = _regular(smooth, x, switch)
        start = _start(weight, max(regular, switch))
        if not switch:
            known = _known(smooth, x, start)
            if known is not None:
                return known
        return _euler_maclaurin(weight, smooth, x, max(switch, start), start)
    except (NotEvaluable, NotRegularError) as error:
        raise NoEnclosureError(str(error)) from error


def _dominated(weight: Term, above: sympy.Expr, x: sympy.Symbol, switch: int) -> Dominated:
    """Direct summation, the rest bounded by the tail of a smooth majorant."""
    bound = enclose(above, x)
    first = max(switch, bound.start, 16)
    return Dominated(weight, bound, first, _start(weight, first))


def truncate(p: sympy.Expr, n: sympy.Symbol, length: int) -> Series:
    """The terms of ``sum exp(p(n))`` with ``n < length``, convergent or not.

    Raises:
        NoEnclosureError: ``p`` is not smooth enough for a long sum, has no evaluation in balls, or
            no term below ``length`` is finite.
    """
    if not p.has(n):
        return Uniform(p, length)
    if length <= MAX_DIRECT:
        return direct(p, n, length)
    try:
        whole = enclose(p, n)
    except (DivergentIntegral, NoEnclosureError):
        whole = None
    if isinstance(whole, Uniform):
        return whole if whole.count <= length else Uniform(whole.offset, length)
    if isinstance(whole, FiniteSupport):
        return whole if whole.end <= length else _finite(whole.weight, whole.start, length)
    if whole is not None and not (isinstance(whole, EulerMaclaurin) and whole.by_quadrature):
        return Difference(whole, length)
    x = sympy.Symbol("n", positive=True)
    try:
        weight, smooth, switch = _prepared(p, n, x)
        if smooth is None:
            return _finite(weight, _start(weight, switch), min(length, switch))
        smooth, regular = _regular(smooth, x, switch)
        start = _start(weight, min(max(regular, switch), length))
        return Truncated(
            weight,
            compile_term(smooth, x),
            max(switch, start),
            area(smooth, x),
            start,
            length,
            "Euler-Maclaurin over the length, integral by certified quadrature",
        )
    except (NotEvaluable, NotRegularError) as error:
        raise NoEnclosureError(str(error)) from error


def direct(p: sympy.Expr, n: sympy.Symbol, length: int) -> FiniteSupport:
    """The terms with ``n < length``, each evaluated in balls: any expression, moderate lengths.

    Raises:
        NoEnclosureError: ``p`` has no evaluation in balls, or no term below ``length`` is finite.
    """
    x = sympy.Symbol("n", positive=True)
    try:
        weight = _prepared(p, n, x)[0]
    except NotEvaluable as error:
        raise NoEnclosureError(str(error)) from error
    return _finite(weight, _start(weight, length), length)


def _window(p: Any, n: sympy.Symbol) -> Uniform | None:
    """``c`` below some n and ``-oo`` from there on."""
    if not (isinstance(p, sympy.Piecewise) and len(p.args) == 2):
        return None
    cases: Any = p.args
    (value, condition), (rest, _) = cases
    if rest != -sympy.oo or value.has(n, sympy.oo, -sympy.oo):
        return None
    if not isinstance(condition, sympy.Lt | sympy.Le) or condition.lhs != n:
        return None
    if not isinstance(condition.rhs, sympy.Rational):
        return None
    edge = condition.rhs
    count = (
        int(sympy.ceiling(edge)) if isinstance(condition, sympy.Lt) else int(sympy.floor(edge)) + 1
    )
    return Uniform(value, count) if count > 0 else None


def _finite(weight: Term, start: int, end: int) -> FiniteSupport:
    if start >= end:
        raise NoEnclosureError(f"no term below n = {end} is finite")
    return FiniteSupport(weight, end, start)


def first_index(p: sympy.Expr, n: sympy.Symbol) -> int:
    """The first ``n`` from which every weight is finite (normally 0)."""
    x = sympy.Symbol("n", positive=True)
    weight, smooth, switch = _prepared(p, n, x)
    regular = switch if smooth is None else max(_regular(smooth, x, switch)[1], switch)
    return _start(weight, regular)


def _prepared(
    p: sympy.Expr, n: sympy.Symbol, x: sympy.Symbol
) -> tuple[Term, sympy.Expr | None, int]:
    """The compiled weight; the exponent far out, in x (None where the weight is 0); from where on.

    Far out n is a positive symbol x, for which logarithms expand. The conditions of a piecewise
    expression must see n = 0, so they keep the symbol n.
    """
    p = with_pieces(p, n)
    if not p.has(sympy.Piecewise):
        plain = _normal(p.xreplace({n: x}))
        return compile_term(plain, x), _far_out(plain, x), 0
    smooth, switch = _smooth_part(p, n)
    if smooth is not None:
        smooth = _far_out(_normal(smooth.xreplace({n: x})), x)
    return compile_term(p, n), smooth, switch


def _far_out(p: Any, x: sympy.Symbol) -> Any:
    """``p`` for large x: logarithms of products split, which the discs then prove to be allowed."""
    return _normal(sympy.expand_log(smoothed(p, x), force=True))


def _normal(p: Any) -> sympy.Expr:
    return _one_slope(sympy.expand_log(_distributed(_distributed(sympy.expand_log(p)))))


def _one_slope(p: sympy.Expr) -> sympy.Expr:
    """All terms c*n in one, so that slopes of both signs (n*log(3) - n*log(4)) don't compete."""
    slopes: dict[sympy.Basic, sympy.Expr] = {}
    rest: list[sympy.Expr] = []
    for part in sympy.Add.make_args(p):
        scale, core = part.as_independent(*part.free_symbols, as_Add=False)
        if core.is_Symbol:
            slopes[core] = slopes.get(core, sympy.S.Zero) + scale
        else:
            rest.append(part)
    return sympy.Add(*rest, *(slope * x for x, slope in slopes.items()))


def _distributed(p: sympy.Expr) -> sympy.Expr:
    """Numbers times sums multiplied out, at the top level only: x*(1+x) stays as it is."""
    parts = []
    for part in sympy.Add.make_args(p):
        scale, core = part.as_independent(*part.free_symbols, as_Add=False)
        if isinstance(core, sympy.Add):
            parts.extend(scale * term for term in core.args)
        else:
            parts.append(part)
    return sympy.Add(*parts)


def _smooth_part(p: sympy.Expr, x: sympy.Symbol) -> tuple[Any, int]:
    """The exponent that holds far out (None where the weight is 0 there), and from where on."""
    switch = 0
    replacements: dict[sympy.Basic, sympy.Basic] = {}
    for piecewise in p.atoms(sympy.Piecewise):
        for edge in _edges(piecewise, x):
            switch = max(switch, edge)
    for piecewise in p.atoms(sympy.Piecewise):
        cases: Any = piecewise.args
        for value, condition in cases:
            if condition.subs(x, switch + 1) == True:  # noqa: E712
                replacements[piecewise] = value
                break
    smooth = p.xreplace(replacements)
    return (None if smooth.has(-sympy.oo) else smooth), switch


def _edges(piecewise: Any, x: sympy.Symbol) -> list[int]:
    """Integers after which no condition of a piecewise expression changes any more."""
    edges = []
    for _, condition in piecewise.args:
        for relation in condition.atoms(sympy.core.relational.Relational):
            difference = relation.lhs - relation.rhs
            if not difference.is_polynomial(x):
                raise NotEvaluable(f"the condition {relation} is not one on a polynomial in n")
            polynomial = sympy.Poly(difference, x)
            bounds = [abs(c / polynomial.LC()) for c in polynomial.all_coeffs()[1:]]
            edges.append(int(sympy.ceiling(1 + max(bounds, default=sympy.S.Zero))))
    return _tightened(piecewise, x, edges)


def _tightened(piecewise: Any, x: sympy.Symbol, edges: list[int]) -> list[int]:
    """Cauchy's bound on the roots, walked back to the last real change."""
    edge = max(edges, default=0)
    conditions = [decide(condition, x) for _, condition in piecewise.args]
    settled = [holds(edge + 1) for holds in conditions]
    while edge > 0 and [holds(edge - 1) for holds in conditions] == settled:
        edge -= 1
    return [edge]


def _regular(smooth: Any, x: sympy.Symbol, least: int) -> tuple[Any, int]:
    """The exponent, multiplied out if only that is seen to be smooth, and from where on it is."""
    try:
        return smooth, _regular_from(smooth, x, least)
    except NotRegularError:
        other = _normal(sympy.expand_mul(smooth))
        if other == smooth:
            raise
        return other, _regular_from(other, x, least)


def _regular_from(smooth: sympy.Expr, x: sympy.Symbol, least: int) -> int:
    """A point from which the smooth exponent is analytic on discs around every real n."""
    at = max(least, 4)
    while at <= MAX_REGULAR:
        for tau in TAUS:
            with working(32):
                if try_disc_bound(smooth, x, arb(fmpz(at)), arb(tau)) is not None:
                    return at
        at *= 2
    raise NotRegularError(f"p(n) was not proved smooth from any n up to {MAX_REGULAR} on")


def _start(weight: Term, end: int) -> int:
    """One past the last ``n < end`` whose weight is undefined or infinite."""
    with working(32):
        for index in range(end - 1, -1, -1):
            if not weight.at(index).is_finite():
                return index + 1
    return 0


def _known(p: sympy.Expr, x: sympy.Symbol, start: int) -> Series | None:
    """The geometric series and the Hurwitz zeta function."""
    offset, bound = p.as_independent(x, as_Add=True)
    scale, core = bound.as_independent(x, as_Add=False)
    if core == x:
        if not scale.is_negative:
            raise DivergentIntegral("the weights do not decay")
        return Geometric(offset, -scale, start)
    if isinstance(core, sympy.log):
        slope = sympy.diff(core.args[0], x)
        if slope.is_number and slope.is_positive:
            if not (scale + 1).is_negative:
                raise DivergentIntegral(f"the weight decays like n**({scale}), not below -1")
            shift = sympy.expand(core.args[0] / slope - x)
            return Hurwitz(offset + scale * sympy.log(slope), -scale, shift, start)
    return _partial_fractions(p, x, start)


def _partial_fractions(p: sympy.Expr, x: sympy.Symbol, start: int) -> PartialFractions | None:
    """``exp(p)`` as a product of integer powers of ``n + d``, d rational, with several d."""
    weight = sympy.S.One
    for part in sympy.Add.make_args(p):
        free, bound = part.as_independent(x, as_Add=False)
        if not (isinstance(bound, sympy.log) and isinstance(free, sympy.Integer)):
            return None
        if abs(int(free)) > MAX_POLE_ORDER or not bound.args[0].is_polynomial(x):
            return None
        weight *= bound.args[0] ** free
    numerator, denominator = sympy.fraction(sympy.cancel(weight))
    top, bottom = sympy.Poly(numerator, x), sympy.Poly(denominator, x)
    if (
        bottom.degree() - top.degree() < 2
        or not (top.domain.is_ZZ or top.domain.is_QQ)
        or not (bottom.domain.is_ZZ or bottom.domain.is_QQ)
    ):
        return None
    roots = sympy.roots(bottom, filter="Q")
    if sum(roots.values()) != bottom.degree():
        return None
    fractions = []
    split: Any = sympy.apart(weight, x)
    for part in sympy.Add.make_args(split):
        up, down = sympy.fraction(part)
        pole = sympy.Poly(down, x)
        order = pole.degree()
        root = next(iter(sympy.roots(pole)))
        scale = up / pole.LC()
        fractions.append((_fraction(scale), _fraction(-root), order))
    return PartialFractions(tuple(fractions), start)


def _fraction(value: Any) -> Fraction:
    return Fraction(int(value.p), int(value.q))


def _euler_maclaurin(
    weight: Term, smooth: sympy.Expr, x: sympy.Symbol, smooth_from: int, start: int
) -> EulerMaclaurin:
    term = compile_term(smooth, x)
    closed = tail_integral(smooth, x)
    if closed is None:
        return EulerMaclaurin(
            weight,
            term,
            smooth_from,
            quadrature(smooth, x),
            start,
            "Euler-Maclaurin, tail integral by certified quadrature",
            by_quadrature=True,
        )
    return EulerMaclaurin(
        weight,
        term,
        smooth_from,
        closed.evaluate,
        start,
        f"Euler-Maclaurin, tail integral in closed form ({closed.name})",
    )
