"""The field of a stack as a gradient sees it: a sum over the paths through heads.

The Jacobian of the last position with respect to token m is a sum over paths. On every layer a
path passes unmixed or goes through one head, so that it is a *word* w of heads, and its part is a
product of the heads' matrices times a scalar, the composed attention

    K_w(n) = (A_h1 A_h2 ...)[N-1, N-1-n],      A_h[i, k] = b_h(i-k) / B_h(i+1).

Within one word the intermediate positions add up with their signs, for they share the matrices:
that is the product of A's. Different words have different matrices, whose products are nearly
orthogonal, so that their *squares* add up in the Frobenius norm of the Jacobian:

    s(n)^2 = sum_w  (product of g_h^2 over the heads of w)  K_w(n)^2,

g_h the gain of a head relative to the stream that passes it (`trf.empirical.branch_gains`). An
empirical field is the normalised s. The stack of `trf.theory.stack` adds amplitudes in place of
squares and knows one share for all heads; both are content-free. What acts on each position alone
(the perceptrons, the last norm) acts on every path, and drops out of the shares.

The content of the logits can be taken in as a spread: logits ``p(n) + sigma z`` with independent
standard normal z. The mean attention is then not exp(p(n)) / B, see `spread_weights`. Its kernel
over N keys stands for the shorter rows too, which is exact without a spread only.

These are estimates of a measurement, not bounds, and certify nothing.

References: the decomposition into paths is that of Elhage et al., *A Mathematical Framework for
Transformer Circuits* (2021), and Veit, Wilber, Belongie, arXiv 1605.06431; `rho = 1/2` in its place
is the attention rollout of Abnar and Zuidema, arXiv 2005.00928.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from trf.errors import ParameterError
from trf.theory.stack import read_options, weights

MAX_PATHS = 1 << 20
MAX_SPREAD = 20.0
_CHUNK = 256  # rows expanded at once
_STEP = 0.1  # of ln t; the integrand is smooth on the scale of 1


def path_curve(
    heads: Any,
    length: int,
    gains: Any,
    *,
    spread: Any = None,
    sink: Any = None,
    **options: Any,
) -> np.ndarray:
    """The share of s(n) within j tokens, j = 1..N, at the last of N positions.

    Args:
        heads: as `trf.theoretical_receptive_field` takes them, H of them; the layers share them.
        length: N, tokens.
        gains: g of each layer and head, (L, H), at least 0; the first layer first.
        spread: sigma of the content of the logits, (L, H); none unless given.
        sink: the share of the attention that goes to the first token whatever its distance,
            (L, H), from 0 to below 1; none unless given.
        **options: ``parameters``, ``n_head``, ``assume`` and parameter values by keyword.

    Returns:
        float64, (N,), ascending to 1.

    Raises:
        ParameterError: a shape or a number that does not fit, or more than a million paths,
            (H + 1)^L.

    Examples:
        >>> [float(share.round(3)) for share in path_curve("0", 2, [[1.0]])]
        [0.691, 1.0]
    """
    kernels = np.stack([weights(bias, length) for bias in read_options(heads, options).biases])
    g = _table(gains, "gains", len(kernels), 0.0, np.inf)
    if spread is None:
        return kernel_paths(np.broadcast_to(kernels, (len(g), *kernels.shape)), g, sink=sink)
    sigma = _table(spread, "spread", len(kernels), 0.0, MAX_SPREAD, len(g))
    by_layer = [[spread_weights(kernels[h], s) for h, s in enumerate(row)] for row in sigma]
    return kernel_paths(np.array(by_layer), g, sink=sink)


def kernel_paths(kernels: Any, gains: Any, *, sink: Any = None) -> np.ndarray:
    """The same of any kernels, such as measured mean attention by distance.

    Args:
        kernels: weights b by layer, head and distance, at least 0, positive at distance 0; rows of
            the attention matrix are normalised over the keys they see. (L, H, N)
        gains, sink: as for `path_curve`.

    Raises:
        ParameterError: as `path_curve`.

    Examples:
        >>> [float(share.round(3)) for share in kernel_paths([[[1.0, 1.0]]], [[1.0]])]
        [0.691, 1.0]
    """
    b = np.asarray(kernels, dtype=float)
    if b.ndim != 3 or not np.isfinite(b).all() or (b < 0).any():
        raise ParameterError(
            f"kernels are finite weights, at least 0, by layer, head and distance, got {b.shape}"
        )
    n_layer, n_head, length = b.shape
    if not (b[..., 0] > 0).all():
        raise ParameterError(
            "paths need a nonzero weight at distance 0: the first token sees itself only"
        )
    g = _table(gains, "gains", n_head, 0.0, np.inf, n_layer)
    if (n_head + 1) ** n_layer > MAX_PATHS:
        raise ParameterError(
            f"{n_layer} layers of {n_head} heads have {(n_head + 1) ** n_layer} paths; at most "
            f"{MAX_PATHS} are summed"
        )
    sinks = np.zeros_like(g) if sink is None else _table(sink, "sink", n_head, 0.0, 1.0, n_layer)
    start = np.zeros((1, length))
    start[0, -1] = 1.0
    layers = [_Layer(*each) for each in zip(b, g**2, sinks, strict=True)]
    s = np.sqrt(_expand(start, np.ones(1), layers))[::-1]
    return np.cumsum(s) / s.sum()


def spread_weights(kernel: np.ndarray, spread: float) -> np.ndarray:
    """The mean of ``w_n exp(sigma z_n) / sum_k w_k exp(sigma z_k)`` over independent normal z.

    With phi(u) = E exp(-u exp(sigma z)) it is

        integral over ln t of  (-u phi'(u) / phi(u) at u = t w_n)  product over k of phi(t w_k),

    from ``1/x = integral of exp(-t x) dt``. It tends to w_n / sum w for sigma -> 0 and, as the
    largest logit takes all, to less and less of the bias for large sigma.

    Args:
        kernel: weights w, at least 0, not all 0. (N,)
        spread: sigma, from 0 to 20.

    Returns:
        Shares that sum to 1. (N,)

    Examples:
        >>> [float(share.round(3)) for share in spread_weights(np.array([4.0, 1.0]), 2.0)]
        [0.662, 0.338]
    """
    w = np.asarray(kernel, dtype=float)
    if w.ndim != 1 or not w.size or not np.isfinite(w).all() or (w < 0).any() or not w.any():
        raise ParameterError("a kernel is a list of finite weights, at least 0 and not all 0")
    if not 0 <= spread <= MAX_SPREAD:
        raise ParameterError(f"spread must lie in 0 ... {MAX_SPREAD:g}, got {spread!r}")
    if spread < 1e-3:
        return w / w.sum()
    seen = w > 0
    log_w = np.log(w[seen] / w.max())
    log_u, log_phi, rate = _laplace(spread)
    # For small t the integrand falls as t: the first one is where e^-25 of it is left. For large t
    # the product falls for ever.
    first = -25 - np.log(w.size) - min(spread**2 / 2, 9 * spread + 15)
    total = np.zeros(len(log_w))
    for t in np.arange(first, 9 * spread + 40, _STEP):
        at = t + log_w
        log_product = np.interp(at, log_u, log_phi).sum()
        if log_product < -60:
            break
        total += np.interp(at, log_u, rate, left=0.0) * np.exp(log_product)
    out = np.zeros_like(w)
    out[seen] = total / total.sum()
    return out


class _Layer:
    """The heads of one layer: rows times their attention matrices, by FFT."""

    def __init__(self, kernels: np.ndarray, squared_gains: np.ndarray, sinks: np.ndarray):
        self.length = kernels.shape[1]
        self.size = 1 << (2 * self.length - 1).bit_length()
        self.sums = np.cumsum(kernels, axis=1)
        self.spectra = np.conj(np.fft.rfft(kernels, self.size))
        self.squared_gains, self.sinks = squared_gains, sinks

    def __call__(self, rows: np.ndarray, shares: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Every row unmixed and through every head, and the squared gains of these paths."""
        out, factors = [rows], [shares]
        for total, spectrum, gain, sink in zip(
            self.sums, self.spectra, self.squared_gains, self.sinks, strict=True
        ):
            mixed = np.fft.irfft(np.fft.rfft(rows / total, self.size) * spectrum, self.size)
            mixed = (1 - sink) * mixed[:, : self.length]
            mixed[:, 0] += sink * rows.sum(axis=1)
            out.append(mixed)
            factors.append(shares * gain)
        return np.concatenate(out), np.concatenate(factors)


def _expand(rows: np.ndarray, shares: np.ndarray, layers: list[_Layer]) -> np.ndarray:
    """The sum over paths of their squared gain times K^2; from the last layer down, in chunks."""
    if not layers:
        return shares @ rows**2
    total = np.zeros(rows.shape[1])
    for first in range(0, len(rows), _CHUNK):
        part = slice(first, first + _CHUNK)
        total += _expand(*layers[-1](rows[part], shares[part]), layers[:-1])
    return total


def _laplace(spread: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """ln u, ln phi(u) and -u phi'(u)/phi(u), on a grid that reaches both ends of phi."""
    z = np.arange(-9, 9.001, min(0.05, 0.1 / spread))
    density = np.exp(-(z**2) / 2)
    density /= density.sum()
    log_u = np.arange(-9 * spread - 40, 9 * spread + 12, 0.05)
    u = np.exp(np.minimum(log_u[:, None] + spread * z, 600.0))  # (U, Z): u exp(sigma z)
    decay = density * np.exp(-u)
    phi = decay.sum(axis=1)
    held = phi > 1e-290
    rate = np.where(u > 1e290, 0.0, u * decay).sum(axis=1)
    return log_u[held], np.log(phi[held]), rate[held] / phi[held]


def _table(
    values: Any, what: str, n_head: int, low: float, high: float, n_layer: int | None = None
) -> np.ndarray:
    table = np.asarray(values, dtype=float)
    if table.ndim != 2 or table.shape[1] != n_head or not len(table):
        raise ParameterError(f"{what} is a table of layers by {n_head} heads, got {table.shape}")
    if n_layer is not None and len(table) != n_layer:
        raise ParameterError(f"{what} has {len(table)} layers, {n_layer} are needed")
    if not np.isfinite(table).all() or (table < low).any() or (table > high).any():
        raise ParameterError(f"{what} must be finite and lie in {low:g} ... {high:g}")
    return table
