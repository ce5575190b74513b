"""Exponents that a bounded phase can drive to infinity, such as -log(sin(n)**2).

Where a function of the phase is unbounded, the leading terms in n alone decide nothing: the
terms exp(p) may be large at the few n where the phase is close to a pole.
"""

from __future__ import annotations

import sympy
from sympy import S

from trf.series.rewriting import Rewriter
from trf.series.signs import Undecidable


def check_singular(rewrite: Rewriter, rest: sympy.Expr) -> None:
    """Refuse an exponent that a phase can drive to plus infinity.

    Raises:
        Undecidable: if -rest is not bounded above in the phase.
    """
    oracle = rewrite.oracle
    for symbol in sorted(rest.free_symbols & set(oracle.ranges), key=str):
        interval = oracle.ranges[symbol]
        if S.Infinity not in (interval.high, -interval.low):
            continue
        slope = rest.diff(symbol)
        if symbol in slope.free_symbols or rewrite.sign(slope) < 0:
            raise Undecidable(f"{rewrite.scale.meaning[symbol]} is unbounded over the phase")
    for part in rest.atoms(sympy.Pow):
        inside = part.base.free_symbols
        if (
            inside
            and inside <= set(oracle.ranges)
            and part.exp.is_negative
            and 0 in oracle.signs(part.base)
        ):
            raise Undecidable(f"{rewrite.scale.show(part)} is unbounded over the phase")
