"""Certified quadrature of tail integrals that have no closed form here.

Where x stands only in logarithms and negative powers the substitution ``x = e^y - d`` is made
first, so that slow tails like ``x^-1.01`` become exponential ones.

In the variable ``u = log(x)`` the tail integral is ``integral_{log a}^oo g(u) du`` with
``g(u) = exp(p(e^u)+u)``. The discs ``|z-x| <= tau*x`` of `trf.series.discs` map onto a strip around
the real axis where ``g`` is analytic and bounded; on a piece of length ``2h`` the m-point
Gauss-Legendre rule then errs by at most

    64/15 * h * M * rho^(-2m) / (1 - rho^-2),    M = max |g| on the Bernstein ellipse of rho,

(Trefethen, *Is Gauss quadrature better than Clenshaw-Curtis?*, SIAM Review 50, 2008, theorem 4.5).
Beyond the last piece, at X, ``x*p'(x) <= -decay < -1`` bounds the rest by ``X*f(X)/(decay-1)``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import flint
import sympy
from flint import arb

from trf.series.balls import Term, compile_term, number
from trf.series.discs import TAUS, rises, try_disc_bound
from trf.series.integrals import DivergentIntegral, tail_integral
from trf.series.spans import NotRegularError

MAX_PIECES = 250
MAX_OPEN = 40
MAX_HALVINGS = 8
MAX_PRECISION = 1024
GUARD = 32


@lru_cache(maxsize=32)
def _nodes(count: int, precision: int) -> list[tuple[arb, arb]]:
    with flint.ctx.workprec(precision):
        return [arb.legendre_p_root(count, k, weight=True) for k in range(count)]


def quadrature(p: sympy.Expr, x: sympy.Symbol) -> Callable[[arb], arb]:
    """``a -> integral_a^oo exp(p(x)) dx`` with a proved error, at the precision in force.

    The evaluation raises NotRegularError where the calculus of discs has no bound or the tail is
    too slow for a moderate number of pieces.
    """
    term = compile_term(p, x)
    tables: dict[int, list[_Table]] = {}
    reduced = _in_logarithm(p, x)
    if reduced is None:
        return lambda a: _tabulated(tables, term, a, None)
    exponent, y, shift = reduced
    in_logarithm = compile_term(exponent, y)
    logarithmic: dict[int, list[_Table]] = {}
    bracket = _one_shift(p, x)

    rest = None if bracket is None else lambda v: bracket(v.exp() - number(shift))

    def evaluate(a: arb) -> arb:
        try:
            return _tabulated(logarithmic, in_logarithm, (a + number(shift)).log(), rest)
        except NotRegularError:
            return _tabulated(tables, term, a, None)

    return evaluate


def _one_shift(p: sympy.Expr, x: sympy.Symbol) -> Callable[[arb], arb | None] | None:
    """A bracket of the tail integral by the closed forms with all shifts set alike.

    If ``-p`` is a sum of positive nondecreasing functions, each of one of the several ``x+d_i``,
    replacing every ``d_i`` by the least gives an upper bound, by the largest a lower one.
    """
    places: dict[Any, sympy.Dummy] = {}
    spread: dict[Any, Any] = {}
    for atom in p.atoms(sympy.Add):
        pair = _affine(atom, x) if atom.has(x) else None
        if pair is not None:
            spread[atom] = pair[0] * places.setdefault(pair[1], sympy.Dummy())
    apart: Any = p.xreplace(spread)
    if apart.has(x):
        apart = apart.xreplace({x: places.setdefault(sympy.S.Zero, sympy.Dummy())})
    parts = sympy.Add.make_args(apart)
    if len(places) < 2 or any(len(part.free_symbols) > 1 for part in parts):
        return None
    shifts = sorted(places, key=lambda d: d.evalf())
    ends = []
    for shift in (shifts[-1], shifts[0]):
        same = apart.xreplace(dict.fromkeys(places.values(), x + shift))
        try:
            ends.append(tail_integral(sympy.expand_log(same), x))
        except DivergentIntegral:
            return None
    low, high = ends
    if low is None or high is None:
        return None
    falling = [-part for part in sympy.Add.make_args(p) if part.has(x)]

    def bracket(a: arb) -> arb | None:
        if not all(rises(part, x, a.lower()) for part in falling):
            return None
        return low.evaluate(a).union(high.evaluate(a))

    return bracket


def area(p: sympy.Expr, x: sympy.Symbol) -> Callable[[arb, arb], arb]:
    """``(a, b) -> integral_a^b exp(p(x)) dx`` with a proved error, at the precision in force."""
    term = compile_term(p, x)

    def evaluate(a: arb, b: arb) -> arb:
        precision = flint.ctx.prec - GUARD
        nodes = _nodes(int(0.38 * precision) + 12, flint.ctx.prec)
        left, end, total = a.log(), b.log(), arb(0)
        for _ in range(MAX_PIECES):
            x = left.exp()
            height = term(x) * x
            tolerance = total.max(height).lower() * arb(2) ** -precision
            piece, left = _piece(term, left, _decay(term, x.lower()), nodes, tolerance, end)
            total += piece
            if left is end:
                return total
        raise NotRegularError("the integral needs too many pieces")

    return evaluate


def _in_logarithm(
    p: sympy.Expr, x: sympy.Symbol
) -> tuple[sympy.Expr, sympy.Symbol, sympy.Expr] | None:
    """``(P(y)+y, y, d)``: x stands only in logarithms and negative powers of ``k*(x+d_i)``."""
    logs = {atom: _affine(atom.args[0], x) for atom in p.atoms(sympy.log)}
    powers = {atom: _affine(atom.args[0], x) for atom in p.atoms(sympy.Pow)}
    shifts = [pair[1] for pair in (*logs.values(), *powers.values()) if pair is not None]
    if not any(pair is not None for pair in logs.values()):
        return None
    y = sympy.Dummy("y", positive=True)
    shift = min(shifts, key=lambda d: d.evalf())
    inner: dict[Any, Any] = {}
    for atom, pair in logs.items():
        if pair is not None:
            inner[atom] = y + sympy.log(pair[0]) + sympy.log(_correction(pair[1] - shift, y))
    for atom, pair in powers.items():
        s = atom.args[1]
        if pair is not None and s.is_negative:
            factor = pair[0] * _correction(pair[1] - shift, y)
            inner[atom] = sympy.exp(s * y) * factor**s
    exponent: Any = p.xreplace(inner)
    if exponent.has(x):
        return None
    return sympy.expand_mul(exponent) + y, y, shift


def _affine(expr: Any, x: sympy.Symbol) -> tuple[Any, Any] | None:
    """``(k, d)`` with ``expr = k*(x+d)``, k > 0."""
    slope = sympy.diff(expr, x)
    if not (slope.is_number and slope.is_positive):
        return None
    return slope, sympy.expand(expr / slope - x)


def _correction(offset: Any, y: sympy.Symbol) -> Any:
    return 1 + offset * sympy.exp(-y)


class _Table:
    """Pieces of one tail integral at one precision, added as far out as was ever needed."""

    def __init__(self, term: Term, start: arb, precision: int) -> None:
        self.term = term
        self.precision = precision
        self.nodes = _nodes(int(0.38 * precision) + 12, precision + GUARD)
        self.edges = [start]
        self.pieces: list[arb] = []

    def covers(self, left: arb) -> bool:
        """Whether ``left`` lies within the pieces, or at the start of a table without any."""
        return bool(left >= self.edges[0] and (left < self.edges[-1] or not self.pieces))

    def integral(self, left: arb, rest: Callable[[arb], arb | None] | None) -> arb:
        """``integral`` of the term over ``x >= e^left``, in ``log x``."""
        index = 0
        while index + 1 < len(self.edges) and not left < self.edges[index + 1]:
            index += 1
        if index == len(self.pieces):
            self._extend()
        pieces = [self._part(left, self.edges[index + 1])]
        total = pieces[0]
        for _ in range(MAX_PIECES):
            index += 1
            beyond = self._beyond(self.edges[index], total, rest)
            if beyond is not None:
                for piece in reversed(pieces):
                    beyond += piece
                return beyond
            if len(pieces) > MAX_OPEN and rest is None and not self._closes(self.edges[index]):
                raise NotRegularError("no bound on the far tail integral was proved")
            if index == len(self.pieces):
                self._extend()
            pieces.append(self.pieces[index])
            total += pieces[-1]
        raise NotRegularError(
            f"the tail integral decays too slowly for quadrature at {self.precision} bits"
        )

    def _beyond(
        self, edge: arb, total: arb, rest: Callable[[arb], arb | None] | None
    ) -> arb | None:
        """What lies beyond an edge, if that is known to the precision of the whole."""
        small = total * arb(2) ** -self.precision
        x = edge.exp()
        decay = _decay(self.term, x.lower())
        if decay > 1:
            top = (self.term(x) * x / (decay - 1)).upper()
            if top < small:
                return arb(top / 2, top / 2)
        bracket = None if rest is None else rest(x)
        return bracket if bracket is not None and 2 * bracket.rad() < small else None

    def _closes(self, edge: arb) -> bool:
        """Whether the decay beyond an edge is proved to be enough for convergence."""
        return bool(_decay(self.term, edge.exp().lower()) > 1)

    def _extend(self) -> None:
        left = self.edges[-1]
        x = left.exp()
        decay = _decay(self.term, x.lower())
        tolerance = self._tolerance(x, decay)
        piece, right = _piece(self.term, left, decay, self.nodes, tolerance)
        self.pieces.append(piece)
        self.edges.append(right)

    def _part(self, left: arb, right: arb) -> arb:
        total = arb(0)
        while True:
            x = left.exp()
            decay = _decay(self.term, x.lower())
            tolerance = self._tolerance(x, decay)
            piece, left = _piece(self.term, left, decay, self.nodes, tolerance, right)
            total += piece
            if left is right:
                return total

    def _tolerance(self, x: arb, decay: arb) -> arb:
        height = self.term(x) * x / decay.max(arb(1))
        return height.lower() * arb(2) ** -self.precision


def _tabulated(
    tables: dict[int, list[_Table]], term: Term, a: arb, rest: Callable[[arb], arb | None] | None
) -> arb:
    precision, left = flint.ctx.prec - GUARD, a.log()
    if precision > MAX_PRECISION:
        raise NotRegularError(f"quadrature goes to {MAX_PRECISION} bits, not to {precision}")
    known = tables.setdefault(precision, [])
    table = next((one for one in known if one.covers(left)), None)
    if table is None:
        table = _Table(term, left.lower(), precision)
        known.append(table)
    return table.integral(left, rest)


def _decay(term: Term, at: arb) -> arb:
    """A lower bound of ``-x*p'(x)`` from ``at`` on; 0 where none is found."""
    for tau in TAUS:
        bound = try_disc_bound(term.p, term.n, at, arb(tau))
        if bound is not None:
            return bound.decay
    return arb(0)


def _piece(
    term: Term,
    left: arb,
    decay: arb,
    nodes: list[tuple[arb, arb]],
    tolerance: arb,
    stop: arb | None = None,
) -> tuple[arb, arb]:
    """The integral over ``[left, left + 2h]`` and its right end; the ellipse has rho = e.

    With ``stop`` the piece stops there at the latest: a shorter piece has a smaller ellipse and so
    a smaller error.
    """
    one = arb(1)
    choice: tuple[arb, arb] | None = None
    tau = (arb(32) / decay.max(one)).min(arb(0.5)).mid()
    for _ in range(MAX_HALVINGS):
        beta = tau.asin()
        half = (beta / one.sinh()).mid()
        overshoot = half * (one.cosh() - 1)
        edge = (left + 2 * half + overshoot).exp()
        start, end = (left - overshoot).exp().lower(), (edge / beta.cos()).upper()
        bound = try_disc_bound(term.p, term.n, start, tau, end)
        if bound is None:
            tau = tau / 2
            continue
        height = bound.height * (edge / (beta.cos() * bound.start)) ** bound.growth * edge
        error = (
            64 * half * height * (-2 * len(nodes) * one).exp() / (15 * (1 - (-2 * one).exp()))
        ).upper()
        if choice is None or error < choice[1]:
            choice = half, error
        if error < tolerance:
            break
        tau = tau / 2
    if choice is None:
        raise NotRegularError("the tail integral starts too near a singularity of p(n)")
    half, error = choice
    right = left + 2 * half
    if stop is not None and not right < stop:
        half, right = (stop - left) / 2, stop
    middle = left + half
    total = arb(0)
    for node, weight in nodes:
        x = (middle + half * node).exp()
        total += weight * term(x) * x
    return half * total + arb(0, error), right
