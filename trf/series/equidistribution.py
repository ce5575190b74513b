"""How a phase moves along the integers: recurrent, evenly spread, or slow.

A linear phase n w is evenly spread modulo a turn if w is no rational multiple of it, and how
evenly is bounded by an irrationality measure. A phase whose derivative tends to 0 is a change of
variable. Other regular phases that grow slower than a power of n, and stay away from polynomials
with rational coefficients, are spread evenly too (M. Boshernitzan, 1994).
"""

from __future__ import annotations

from dataclasses import dataclass

import sympy
from sympy import S

from trf.series.asymptotics import Lead
from trf.series.minima import Phase
from trf.series.rewriting import Rewriter
from trf.series.signs import Undecidable

# Upper bounds of irrationality measures; the same for rational multiples and inverses.
_MEASURES = {
    sympy.pi: sympy.Rational(71033, 10000),  # Zeilberger and Zudilin 2020
    sympy.pi**2: sympy.Rational(50955, 10000),  # Zudilin 2013
    sympy.E: S(2),  # Euler's continued fraction
    sympy.log(2): sympy.Rational(35746, 10000),  # Marcovecchio 2009
    sympy.log(3): sympy.Rational(51164, 10000),  # Wu and Wang 2014
    sympy.zeta(3): sympy.Rational(55139, 10000),  # Rhin and Viola 2001
}


@dataclass(frozen=True)
class Kind:
    """How a phase moves: `ratio` of a linear one to a full turn, and its irrationality measure.

    `finite_type` is set where the ratio is known to have some finite irrationality measure;
    `slow` is set where the phase's derivative tends to 0; `recurrent` where the phase is known to
    return near every value for a set of n that is large enough for a comparison.
    """

    ratio: sympy.Expr | None = None
    measure: sympy.Expr | None = None
    slow: bool = False
    recurrent: bool = True
    finite_type: bool = False


def classify(rewrite: Rewriter, phase: Phase) -> Kind:
    """How a phase moves.

    Raises:
        Undecidable: if the distribution of the phase is not known.
    """
    scale = rewrite.scale
    n = rewrite.n
    turn = S.One if phase.fraction is not None else 2 * sympy.pi
    if phase.angle.is_polynomial(n):
        polynomial = sympy.Poly(phase.angle, n)
        leading = sympy.simplify(polynomial.LC() / turn)
        if leading.free_symbols and polynomial.degree() == 1 and phase.angle.subs(n, 0) == 0:
            return Kind(recurrent=False)
        if leading.free_symbols:
            raise Undecidable(f"whether {leading} is rational depends on the parameters")
        measure = _irrationality(leading)
        if polynomial.degree() == 1:
            by_pi = sympy.simplify(leading * sympy.pi)
            # pi is no Liouville number, even against algebraic numbers (Feldman 1960)
            return Kind(leading, measure, finite_type=measure is not None or by_pi.is_algebraic)
        return Kind()
    lead = scale.lead(rewrite(phase.angle))
    if lead.coefficient.free_symbols - set(scale.oracle.ranges) and not lead.monomial:
        raise Undecidable(f"the phase {phase.angle} does not turn")
    growth = scale.growth({g: p for g, p in divided(lead, scale.n).items() if p != 0})
    if growth < 0:
        return Kind(slow=True)
    beyond = [
        g for g in lead.monomial if scale.generators.index(g) > scale.generators.index(scale.n)
    ]
    if beyond:
        raise Undecidable(f"the distribution of the phase {phase.angle} is not known")
    power = lead.monomial.get(scale.n, S.Zero)
    if power.is_Integer and len(lead.monomial) == 1:
        raise Undecidable(f"the distribution of the phase {phase.angle} is not known")
    return Kind()


def divided(lead: Lead, n: sympy.Symbol) -> dict[sympy.Symbol, sympy.Expr]:
    """The monomial divided by n."""
    monomial = dict(lead.monomial)
    monomial[n] = monomial.get(n, S.Zero) - 1
    return monomial


def _irrationality(ratio: sympy.Expr) -> sympy.Expr | None:
    """An irrationality measure of the ratio, None if only its irrationality is known.

    Raises:
        Undecidable: if not even that is known.
    """
    if ratio.is_algebraic and ratio.is_rational is False:
        return S(2)
    for constant, measure in _MEASURES.items():
        for scaled in (ratio / constant, ratio * constant):
            if sympy.simplify(scaled).is_rational:
                return measure
    if (
        isinstance(ratio.as_coeff_Mul()[1], sympy.exp)
        and ratio.as_coeff_Mul()[1].args[0].is_Rational
    ):
        return S(2)
    by_pi = sympy.simplify(ratio * sympy.pi)
    if by_pi.is_algebraic and by_pi != 0:
        return None
    if ratio.is_rational is False or ratio.is_irrational:
        return None
    raise Undecidable(f"whether {ratio} is rational is not known")


def independent(ratios: list[sympy.Expr | None]) -> bool:
    """Whether 1 and the ratios are linearly independent over the rationals, for two square roots
    or multiples of 1/pi by them."""
    if any(ratio is None for ratio in ratios):
        return False
    scaled = [sympy.simplify(ratio * sympy.pi) for ratio in ratios]  # type: ignore[operator]
    if not all(value.is_algebraic for value in scaled) or len(scaled) != 2:
        return False
    quotient = sympy.radsimp(scaled[0] / scaled[1])
    return quotient.is_rational is False
