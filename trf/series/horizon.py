"""The finite-range look of an oscillating bias whose series diverges.

An almost periodic bias such as Sandwich never decays for good: its partial sums grow linearly in
the end. Over the lengths in use it falls like a power of n all the same. Both are facts, of
different ranges, and a horizon states them side by side with the n where one gives way to the
other.
"""

# sympy's stubs type the parts and the results of an expression too widely.
# pyright: reportReturnType=false

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import sympy
from scipy.special import i0e
from sympy import S

FITTED = (8, 2048)
_GRID = 200
_SUMMED = 1 << 16
_SAMPLES = 1 << 17
_FAR = 1 << 40
_SEED = 20


@dataclass(frozen=True)
class Horizon:
    """A bias at finite range.

    Attributes:
        exponent: e such that exp(p(n)) falls like n^-e over `fitted` (least squares of p on
            log n, on a logarithmic grid).
        fitted: the range of the fit.
        density: the mean weight of a token far out, an estimate; None where p is unbounded.
        method: how the density was estimated.
        from_n: about the n from which the partial sums grow linearly; None without a density.
    """

    exponent: float
    fitted: tuple[int, int]
    density: float | None = None
    method: str = ""
    from_n: float | None = None

    def __str__(self) -> str:
        low, high = self.fitted
        text = f"falls like n^-{self.exponent:.2f} for {low} <= n <= {high}"
        if self.density is None:
            return text
        return (
            f"{text}; the partial sums grow by about {self.density:.3g} a token from n of about "
            f"{self.from_n:.2g} on ({self.method})"
        )


def look(expr: sympy.Expr, n: sympy.Symbol, start: int) -> Horizon | None:
    """The horizon of p, or None where p does not oscillate."""
    expr = expr.doit()
    waves = expr.atoms(sympy.sin, sympy.cos)
    if not any(n in wave.free_symbols for wave in waves):
        return None
    p = sympy.lambdify(n, expr, "numpy")

    def weights(at: np.ndarray) -> np.ndarray:
        return np.broadcast_to(np.asarray(p(at.astype(float)), dtype=float), at.shape)

    grid = np.unique(np.geomspace(*FITTED, _GRID).round())
    exponent = -float(np.polyfit(np.log(grid), weights(grid), 1)[0])
    if any(n in factor.free_symbols for factor in _amplitudes(expr, n)):
        return Horizon(exponent, FITTED)
    density, method = _density(expr, n, weights)
    sums = np.cumsum(np.exp(weights(np.arange(start, _SUMMED))))
    near = float(sums[min(FITTED[1], len(sums) - 1)])
    return Horizon(exponent, FITTED, density, method, near / density if density > 0 else None)


def _amplitudes(expr: sympy.Expr, n: sympy.Symbol) -> list[sympy.Expr]:
    """What multiplies, or stands beside, the waves of p."""
    waves = {w: sympy.Dummy() for w in expr.atoms(sympy.sin, sympy.cos) if n in w.free_symbols}
    return [expr.xreplace(waves)]


def _density(expr: sympy.Expr, n: sympy.Symbol, weights) -> tuple[float, str]:
    """The mean of exp(p) over n: in closed form for a sum of waves, by samples otherwise."""
    amplitudes: list[float] = []
    constant = 0.0
    for term in sympy.Add.make_args(sympy.expand(expr)):
        factor, wave = term.as_independent(n, as_Add=False)
        if wave == S.One:
            constant += float(factor)
        elif isinstance(wave, (sympy.sin, sympy.cos)):
            amplitudes.append(abs(float(factor)))
        else:
            rng = np.random.default_rng(_SEED)
            sample = rng.integers(1, _FAR, _SAMPLES)
            return float(np.mean(np.exp(weights(sample)))), f"mean of {_SAMPLES} samples"
    logs = sum(float(np.log(i0e(a))) + a for a in amplitudes) + constant
    return float(np.exp(logs)), "as if the phases were independent"
