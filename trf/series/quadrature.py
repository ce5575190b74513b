"""Certified quadrature of tail integrals that have no closed form here.

Where x stands only inside logarithms the substitution ``x = e^y - d`` is made first, so that slow
tails like ``x^-1.01`` become exponential ones.

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

import flint
import sympy
from flint import arb

from trf.series.balls import Term, compile_term, number
from trf.series.discs import TAUS, NotRegularError, try_disc_bound

MAX_PIECES = 1500
MAX_HALVINGS = 8
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
    reduced = _in_logarithm(p, x)
    if reduced is None:
        term = compile_term(p, x)
        return lambda a: _integrate(term, a)
    exponent, y, shift = reduced
    term = compile_term(exponent, y)
    return lambda a: _integrate(term, (a + number(shift)).log())


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
    """``(P(y)+y, y, d)`` for ``p`` in which x stands only in logarithms of ``k*(x+d_i)``."""
    affine = {}
    for atom in p.atoms(sympy.log):
        slope = sympy.diff(atom.args[0], x)
        if slope.is_number and slope.is_positive:
            affine[atom] = slope, sympy.expand(atom.args[0] / slope - x)
    if not affine:
        return None
    y = sympy.Dummy("y", positive=True)
    shift = min((d for _, d in affine.values()), key=lambda d: d.evalf())
    inner = {
        atom: y + sympy.log(slope) + sympy.log(1 + (d - shift) * sympy.exp(-y))
        for atom, (slope, d) in affine.items()
    }
    exponent = p.xreplace(inner)
    if exponent.has(x):
        return None
    return sympy.expand_mul(exponent) + y, y, shift


def _integrate(term: Term, a: arb) -> arb:
    precision = flint.ctx.prec - GUARD
    left, total = a.log(), arb(0)
    nodes = _nodes(int(0.38 * precision) + 12, flint.ctx.prec)
    for _ in range(MAX_PIECES):
        x = left.exp()
        height = term(x) * x
        decay = _decay(term, x.lower())
        if decay > 1:
            rest = (height / (decay - 1)).upper()
            if rest < total * arb(2) ** -precision:
                return total + arb(rest / 2, rest / 2)
        tolerance = total.max(height / decay.max(arb(1))).lower() * arb(2) ** -precision
        piece, left = _piece(term, left, decay, nodes, tolerance)
        total += piece
    raise NotRegularError(f"the tail integral decays too slowly for quadrature at {precision} bits")


def _decay(term: Term, at: arb) -> arb:
    """A lower bound of ``-x*p'(x)`` from ``at`` on (it does not depend on the discs)."""
    for tau in TAUS:
        bound = try_disc_bound(term.p, term.n, at, arb(tau))
        if bound is not None:
            return bound.decay
    raise NotRegularError("the tail integral leaves the region where p(n) is smooth")


def _piece(
    term: Term,
    left: arb,
    decay: arb,
    nodes: list[tuple[arb, arb]],
    tolerance: arb,
    end: arb | None = None,
) -> tuple[arb, arb]:
    """The integral over ``[left, left + 2h]`` and its right end; the ellipse has rho = e.

    With ``end`` the piece stops there at the latest: a shorter piece has a smaller ellipse and so
    a smaller error.
    """
    one = arb(1)
    choice: tuple[arb, arb] | None = None
    tau = (arb(32) / decay.max(one)).min(arb(0.5)).mid()
    for _ in range(MAX_HALVINGS):
        beta = tau.asin()
        half = (beta / one.sinh()).mid()
        overshoot = half * (one.cosh() - 1)
        bound = try_disc_bound(term.p, term.n, (left - overshoot).exp().lower(), tau)
        if bound is None:
            tau = tau / 2
            continue
        edge = (left + 2 * half + overshoot).exp()
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
    if end is not None and not right < end:
        half, right = (end - left) / 2, end
    middle = left + half
    total = arb(0)
    for node, weight in nodes:
        x = (middle + half * node).exp()
        total += weight * term(x) * x
    return half * total + arb(0, error), right
