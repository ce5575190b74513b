"""Exponents that a phase can drive to infinity, such as -log(sin(n)**2).

Where a function of the phase is unbounded, the leading terms in n alone decide nothing: the
terms exp(p) may be large at the few n where the phase is close to a pole.
"""

# sympy's stubs type the parts and the results of an expression too widely.
# pyright: reportArgumentType=false

from __future__ import annotations

from dataclasses import dataclass

import sympy
from sympy import S

from trf.series.minima import minima, phases
from trf.series.phase import classify
from trf.series.rewriting import Rewriter
from trf.series.signs import Oracle, Undecidable


@dataclass(frozen=True)
class Pole:
    """``atom = log q(phase)`` tends to -oo where q vanishes, to the given order.

    -p contains ``slope * atom``.
    """

    atom: sympy.Expr
    slope: sympy.Expr
    order: sympy.Expr
    measure: sympy.Expr

    @property
    def is_integrable(self) -> bool:
        """Whether the mean of exp(-slope*atom) over the integers is finite.

        Between the denominators q < q' of two convergents the worst terms are those at multiples
        of q; their mean is O(q'^c/q), c = slope*order, and q' = O(q^(mu-1+e)).
        """
        return (self.slope * self.order * (self.measure - 1) < 1) == S.true


def find_poles(rewrite: Rewriter, rest: sympy.Expr) -> list[Pole]:
    """The logarithms by which a phase can drive -rest to plus infinity.

    Raises:
        Undecidable: if -rest is unbounded above in the phase in another way.
    """
    poles = []
    atoms = sorted(rest.atoms(sympy.log), key=sympy.default_sort_key)
    for atom in atoms:
        if not rewrite.turning(atom) or 0 not in rewrite.oracle.signs(atom.args[0]):
            continue
        mark = sympy.Dummy("log", real=True)
        slope = sympy.expand_mul(rest.xreplace({atom: mark})).diff(mark)
        if mark in slope.free_symbols:
            raise Undecidable(f"{rewrite.scale.show(atom)} is unbounded over the phase")
        if rewrite.sign(slope) > 0:
            poles.append(_pole(rewrite, atom, slope))
    return poles


def _pole(rewrite: Rewriter, atom: sympy.Expr, slope: sympy.Expr) -> Pole:
    inner = atom.args[0]
    turning = phases(inner, rewrite.scale)
    if len(turning) != 1:
        raise Undecidable(f"{rewrite.scale.show(atom)} is unbounded over several phases")
    kind = classify(rewrite, turning[0])
    if kind.ratio is None or kind.measure is None:
        raise Undecidable(f"{rewrite.scale.show(atom)} is unbounded over the phase")
    found = minima(inner, turning[0], Oracle(rewrite.oracle.constraints, rewrite.oracle.ranges))
    order = min(minimum.order for minimum in found)
    if order is S.Infinity:
        raise Undecidable(f"{rewrite.scale.show(atom)} is infinite on an interval of the phase")
    return Pole(atom, slope, order, kind.measure)


def check_bounded(rewrite: Rewriter, rest: sympy.Expr) -> None:
    """Refuse powers by which a phase can drive an exponent to infinity.

    Raises:
        Undecidable: if a negative power of the phase is unbounded.
    """
    oracle = rewrite.oracle
    for part in rest.atoms(sympy.Pow):
        if rewrite.turning(part.base) and part.exp.is_negative and 0 in oracle.signs(part.base):
            raise Undecidable(f"{rewrite.scale.show(part)} is unbounded over the phase")
