"""Receptive radii three ways: trf, summing in NumPy, and mpmath.nsum with bisection.

    python tests/bench/radius_speed.py [--limit SECONDS]

Same machine, same run. Beside each time stands what the answer is worth: `exact` (as the
certified radius of trf), `off by k`, `wrong`, or why there is none. NumPy sums 2^26 terms at most;
mpmath gets the given number of seconds for one radius.
"""

from __future__ import annotations

import argparse
import signal
import time
from collections.abc import Callable

import mpmath
import numpy as np
import sympy

import trf
from trf.expression import as_bias, distance

CASES = [
    ("-m*n", {"m": "1/16"}, "1/100"),
    ("-r1*log(1+r2*n)", {"r1": "2", "r2": "1"}, "1/1000"),
    ("-r1*log(1+r2*n)", {"r1": "2", "r2": "1"}, "1/1000000"),
    ("-r1*log(1+r2*n)", {"r1": "3/2", "r2": "1"}, "1/1000"),
    ("-r1*log(1+r2*n)", {"r1": "201/200", "r2": "1/10"}, "1/1000"),
    ("-log(1+(k*n)**2)", {"k": "1/256"}, "1/1000"),
    ("-log(3+k*n)**2", {"k": "1/256"}, "1/1000"),
    ("-r*n**a", {"r": "3", "a": "1/5"}, "1/1000000"),
    ("-log(n+3)-b*log(log(n+3))", {"b": "2"}, "1/100"),
    ("-log(1+n)-c*sqrt(log(1+n))", {"c": "2"}, "1/1000"),
]
MOST = 1 << 26


class OutOfTimeError(Exception):
    """The time allowed for one radius is over."""


def by_numpy(p: sympy.Expr, eps: float) -> int | str:
    """Sum until the last block adds less than a millionth of eps; at most 2^26 terms."""
    function = sympy.lambdify(distance(), sympy.exp(p), "numpy")
    blocks, total, size = [], 0.0, 1 << 16
    for first in range(0, MOST, size):
        block = np.broadcast_to(function(np.arange(first, first + size, dtype=float)), (size,))
        blocks.append(block)
        total += float(block.sum())
        if float(block.sum()) < 1e-6 * eps * total:
            break
    else:
        return "infeasible"
    mass = np.cumsum(np.concatenate(blocks))
    return int(np.argmax(mass > (1 - eps) * mass[-1])) + 1


def by_mpmath(p: sympy.Expr, eps: float) -> int | str:
    """`mpmath.nsum` for total and tails, bisection for the radius."""
    function = sympy.lambdify(distance(), sympy.exp(p), "mpmath")
    total = mpmath.nsum(function, [0, mpmath.inf])

    def below(j: int) -> bool:
        return mpmath.nsum(function, [j, mpmath.inf]) < eps * total

    low, high = 0, 1
    while not below(high):
        low, high = high, 2 * high
        if high.bit_length() > 4000:
            return "none found"
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if below(middle) else (middle, high)
    return high


def timed(compute: Callable[[], int | str], limit: int) -> tuple[float, int | str]:
    """Seconds and answer; an answer in words where there is none."""

    def stop(*_: object) -> None:
        raise OutOfTimeError

    signal.signal(signal.SIGALRM, stop)
    signal.alarm(limit)
    start = time.perf_counter()
    try:
        answer = compute()
    except OutOfTimeError:
        answer = f"over {limit} s"
    except (ValueError, ZeroDivisionError, OverflowError, mpmath.libmp.NoConvergence) as error:
        answer = type(error).__name__
    finally:
        signal.alarm(0)
    return time.perf_counter() - start, answer


def worth(answer: int | str, exact: int) -> str:
    """What an answer is worth against the certified one."""
    if isinstance(answer, str):
        return answer
    if answer == exact:
        return "exact"
    gap = abs(answer - exact)
    return f"off by {gap}" if gap < exact // 10 else "wrong"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--limit", type=int, default=20, help="seconds for one radius (default 20)")
    limit = parser.parse_args().limit
    trf.theoretical_receptive_field("-n", 0.1)  # the imports
    print(f"{'bias':44} {'eps':>9} {'radius':>14} {'trf':>9} {'numpy':>22} {'mpmath.nsum':>22}")
    for text, values, eps in CASES:
        p = as_bias(text).substitute(values).expr
        number = float(sympy.Rational(eps))
        seconds, exact = timed(
            lambda t=text, v=values, e=eps: (
                trf.theoretical_receptive_field(t, e, parameters=v).radius
            ),
            limit,
        )
        assert isinstance(exact, int)
        rows = [timed(lambda f=f, p=p, e=number: f(p, e), limit) for f in (by_numpy, by_mpmath)]
        shown = str(exact) if exact < 10**12 else f"{len(str(exact))} digits"
        others = " ".join(f"{f'{s:.3f} s {worth(a, exact)}':>22}" for s, a in rows)
        name = f"{text} {' '.join(f'{k}={v}' for k, v in values.items())}"
        print(f"{name:44} {eps:>9} {shown:>14} {seconds * 1e3:7.1f}ms {others}", flush=True)


if __name__ == "__main__":
    main()
