"""Several layers, and curves of cumulative mass in floats.

At a finite length N the kernel of L content-free layers at the last position is the last row of
``M^L``, ``M = rho*I + (1-rho)*A``, A the mean over heads of the causal matrices of row-normalised
weights ``A[i, k] = b(i-k)/B(i+1)``. A row vector times A is a division by ``B(i+1)`` followed by a
correlation with b: one FFT a head and layer, no N x N matrix.

In the limit the kernel is the L-fold convolution of ``rho*delta_0 + (1-rho)*b/B``. For distances
below a cut it depends on the weights below that cut only, so cutting hides nothing: the cut is
raised until the radius lies below it. Tails too heavy for that are bracketed (`trf.theory.jump`).
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
import sympy

from trf.errors import ParameterError, UndecidedError
from trf.expression import Bias, distance
from trf.series.inversion import UndecidedTailError
from trf.series.spans import NotRegularError
from trf.series.tails import Series
from trf.theory.field import CertifiedKernel, ReceptiveField, SampledKernel, tokens
from trf.theory.heads import Heads, read_heads
from trf.theory.jump import greatest_radius, least_radius
from trf.theory.kernels import combine, limit_series

MAX_CUT = 1 << 22
MAX_FLOATS = 1 << 24
ROUNDING = 64 * np.finfo(float).eps


@lru_cache(maxsize=64)
def weights(bias: Bias, length: int) -> np.ndarray:
    """``exp(p(n) - max p)`` for n < length, float64; 0 where the weight is not finite.

    The array is shared between calls, and read-only.
    """
    with np.errstate(all="ignore"):
        exponents = _values(bias.expr, length)
        exponents = np.where(np.isnan(exponents) | (exponents == np.inf), -np.inf, exponents)
        top = exponents.max()
        if not np.isfinite(top):
            raise ParameterError(f"{bias.source}: no weight below n = {length} is finite")
        found = np.exp(exponents - top)
    found.flags.writeable = False
    return found


def _values(expr: sympy.Expr, length: int) -> np.ndarray:
    n = distance()
    if expr.has(sympy.Sum, sympy.Product):
        expr = expr.doit()
    function = sympy.lambdify(n, expr, modules=["numpy", "scipy"])
    values = np.asarray(function(np.arange(length, dtype=np.float64)), dtype=np.float64)
    return np.broadcast_to(values, (length,))


def head_curves(heads: Any, length: int, **options: Any) -> np.ndarray:
    """``B_h(j)/B_h(N)`` for j = 1..N and every head, float64, shape (H, N).

    Args:
        heads: as `trf.theoretical_receptive_field` takes them.
        length: N, tokens.
        **options: ``parameters``, ``n_head``, ``assume`` and parameter values by keyword.

    Examples:
        >>> head_curves(["-n/2", "-n/4"], 4).shape
        (2, 4)
    """
    read = read_options(heads, options)
    return np.stack([_cumulative(weights(bias, length)) for bias in read.biases])


def mass_curve(heads: Any, length: int, **options: Any) -> np.ndarray:
    """The share of the mass within j tokens, j = 1..N: the mean of the heads' normalised kernels.

    Args and example: as `head_curves`, but of shape (N,).

    Examples:
        >>> [float(share) for share in mass_curve("0", 4)]
        [0.25, 0.5, 0.75, 1.0]
    """
    return head_curves(heads, length, **options).mean(axis=0)


def stack_curve(
    heads: Any, length: int, n_layer: int, residual: Any = 0, **options: Any
) -> np.ndarray:
    """The share of the mass within j tokens, j = 1..N, of L layers at the last of N positions.

    Args:
        heads: as `trf.theoretical_receptive_field` takes them; the layers are alike.
        length: N, tokens.
        n_layer: L.
        residual: rho, the share that passes each layer unmixed.
        **options: ``parameters``, ``n_head``, ``assume`` and parameter values by keyword.

    Examples:
        >>> [float(share.round(3)) for share in stack_curve("0", 2, n_layer=2)]
        [0.25, 1.0]
    """
    return np.cumsum(_last_row(read_options(heads, options), length, n_layer, float(residual)))


def read_options(heads: Any, options: dict[str, Any]) -> Heads:
    named = {key: options.pop(key) for key in ("parameters", "n_head", "assume") if key in options}
    return read_heads(heads, named.get("parameters"), options,
                      n_head=named.get("n_head"), assume=named.get("assume"))  # fmt: skip


def _cumulative(kernel: np.ndarray) -> np.ndarray:
    total = np.cumsum(kernel)
    return total / total[-1]


def _last_row(heads: Heads, length: int, n_layer: int, rho: float) -> np.ndarray:
    """The last row of ``M^L``, by distance."""
    size = 1 << (2 * length - 1).bit_length()
    kernels = [weights(bias, length) for bias in heads.biases]
    sums = [np.cumsum(kernel) for kernel in kernels]
    if any(total[0] == 0 for total in sums):
        raise ParameterError(
            f"{heads.label}: a stack needs a finite, nonzero weight at distance 0, for the first "
            "token attends to itself only"
        )
    spectra = [np.conj(np.fft.rfft(kernel, size)) for kernel in kernels]
    row = np.zeros(length)
    row[-1] = 1.0
    for _ in range(n_layer):
        spread = np.zeros(size // 2 + 1, dtype=complex)
        for total, spectrum in zip(sums, spectra, strict=True):
            spread += np.fft.rfft(row / total, size) * spectrum
        mixed = np.fft.irfft(spread, size)[:length] / len(kernels)
        row = rho * row + (1 - rho) * mixed
    return row[::-1]


def stack_field(
    heads: Heads, eps: Fraction, length: int, n_layer: int, rho: Fraction
) -> ReceptiveField:
    """The receptive field of L layers at a finite length."""
    cumulative = np.cumsum(_last_row(heads, length, n_layer, float(rho)))
    error = ROUNDING * n_layer * np.log2(2 * length) + abs(float(cumulative[-1]) - 1)
    return _sampled(heads, eps, length, n_layer, rho, cumulative, error,
                    f"last row of the attention matrix to the power {n_layer}, by FFT")  # fmt: skip


def sampled_field(heads: Heads, eps: Fraction, length: int, rho: Fraction) -> ReceptiveField:
    """One layer at a finite length in floats, where the sum was not enclosed; not certified."""
    method = "sum in float64"
    curves, singles = [], []
    for bias in heads.biases:
        curve = _cumulative(weights(bias, length))
        curve = float(rho) + (1 - float(rho)) * curve
        curves.append(curve)
        one = Heads((bias,), str(bias), True)
        error = ROUNDING * length
        singles.append(_sampled(one, eps, length, 1, rho, curve, error, method, "of the sum"))
    if heads.single:
        return replace(singles[0], bias=heads.label)
    mean = np.mean(curves, axis=0)
    whole = _sampled(heads, eps, length, 1, rho, mean, ROUNDING * length, method, "of the sum")
    return replace(whole, heads=tuple(singles))


def limit_stack_field(heads: Heads, eps: Fraction, n_layer: int, rho: Fraction) -> ReceptiveField:
    """The receptive field of L layers in the limit of many tokens."""
    parts = tuple(limit_series(bias) for bias in heads.biases)
    if any(part.start for part in parts):
        raise ParameterError(f"{heads.label}: a stack needs a finite weight at distance 0")
    single = combine(parts, rho)
    try:
        least = least_radius(single, eps, n_layer)
        cut = max(1 << 12, 1 << (2 * least).bit_length())
        while cut <= MAX_CUT:
            cumulative = np.cumsum(_power(_kernel(heads, parts, float(rho), cut), n_layer))
            if cumulative[-1] > 1 - float(eps):
                error = ROUNDING * n_layer * np.log2(2 * cut)
                method = f"{n_layer}-fold convolution by FFT, exact cut at {cut}"
                return _sampled(heads, eps, None, n_layer, rho, cumulative, error, method)
            cut *= 4
        greatest = greatest_radius(single, eps, n_layer)
    except (UndecidedTailError, NotRegularError) as error:
        raise UndecidedError(
            f"{heads.label}: the radius of {n_layer} layers was not found: {error}"
        ) from error
    return ReceptiveField(
        radius=greatest,
        eps=eps,
        length=None,
        start=0,
        method="one big jump, bracketed",
        certified=False,
        assumptions=(
            f"proved: between {tokens(least)} and {tokens(greatest)}; the upper end is given",
        ),
        bias=heads.label,
        kernel=CertifiedKernel(single),
        n_layer=n_layer,
        residual=rho,
    )


def _kernel(heads: Heads, parts: tuple[Series, ...], rho: float, cut: int) -> np.ndarray:
    """``rho*delta_0 + (1-rho)*b/B``, the mean over heads, below the cut."""
    kernel = np.zeros(cut)
    for bias, part in zip(heads.biases, parts, strict=True):
        scale = float(part.total(64).mid()) / float(part.term(0, 64).mid())
        raw = weights(bias, cut)
        kernel += raw / (raw[0] * scale * len(parts))
    kernel *= 1 - rho
    kernel[0] += rho
    return kernel


def _power(kernel: np.ndarray, exponent: int) -> np.ndarray:
    """The first terms of the exponent-fold convolution, by repeated squaring."""
    size = 1 << (2 * len(kernel) - 1).bit_length()

    def times(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return np.fft.irfft(np.fft.rfft(a, size) * np.fft.rfft(b, size), size)[: len(kernel)]

    result, square = None, kernel
    while exponent:
        if exponent & 1:
            result = square if result is None else times(result, square)
        exponent >>= 1
        if exponent:
            square = times(square, square)
    assert result is not None
    return result


def _sampled(
    heads: Heads,
    eps: Fraction,
    length: int | None,
    n_layer: int,
    rho: Fraction,
    cumulative: np.ndarray,
    error: float,
    method: str,
    what: str = "of the FFT",
) -> ReceptiveField:
    wanted = float(1 - eps)
    j = int(np.argmax(cumulative > wanted)) + 1
    assumptions = [f"the rounding error {what} is below {error:.1g} of the mass"]
    before = float(cumulative[j - 2]) if j > 1 else 0.0
    if min(abs(float(cumulative[j - 1]) - wanted), abs(before - wanted)) <= error:
        assumptions.append("the comparison that decides the radius is as close as that error")
    return ReceptiveField(
        radius=j,
        eps=eps,
        length=length,
        start=0,
        method=method,
        certified=False,
        assumptions=tuple(assumptions),
        bias=heads.label,
        kernel=SampledKernel(cumulative, error),
        n_layer=n_layer,
        residual=rho,
    )
