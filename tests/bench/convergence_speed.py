"""Speed of `trf.converges` on the series with known answers, beside SymPy's `is_convergent`.

    python tests/bench/convergence_speed.py            # ours alone
    python tests/bench/convergence_speed.py --sympy    # and SymPy, in this run (many minutes)
    python tests/bench/convergence_speed.py --sympy --limit 2 --every 5

SymPy is asked about the cases without parameters only, each under a limit of seconds; the two
totals are over the cases that SymPy decides within it.
"""

from __future__ import annotations

import argparse
import json
import signal
import statistics
import time
from pathlib import Path

import sympy

from trf.expression import as_bias, distance
from trf.series.convergence import converges

DATA = Path(__file__).parents[1] / "data"
DOMAINS = {"positive-integer": "positive integer", "positive-even-integer": "positive even integer"}


class OutOfTime(BaseException):
    """The limit of one case has passed; nothing catches it by accident."""


def _stop(*_):
    raise OutOfTime


def ours(case, clock):
    """Seconds for the verdict, from the text."""
    assume = {name: DOMAINS.get(domain, domain) for name, domain in case["params"].items()}
    begin = clock()
    verdict = converges(case["p"], assume=assume)
    return clock() - begin, str(verdict.status)


def theirs(case, limit, clock):
    """Seconds and answer of SymPy, or None where it gives none within the limit."""
    n = distance()
    term = sympy.exp(as_bias(case["p"]).expr)
    series = sympy.Sum(term, (n, case["start"], sympy.oo))
    signal.signal(signal.SIGALRM, _stop)
    signal.alarm(limit)
    begin = clock()
    try:
        answer = bool(series.is_convergent())
    except OutOfTime:
        return None
    except Exception:  # noqa: BLE001 - SymPy fails in more ways than can be listed
        return None
    finally:
        signal.alarm(0)
    return clock() - begin, "converges" if answer else "diverges"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sympy", action="store_true", help="time SymPy as well")
    parser.add_argument("--limit", type=int, default=15, help="seconds for SymPy on one case")
    parser.add_argument("--every", type=int, default=1, help="take every k-th case only")
    parser.add_argument("--file", default="series.jsonl")
    parser.add_argument("--cpu", action="store_true", help="processor time instead of wall time")
    options = parser.parse_args()
    clock = time.process_time if options.cpu else time.perf_counter
    cases = [json.loads(line) for line in (DATA / options.file).read_text().splitlines()]
    cases = cases[:: options.every]
    converges("-log(1+n)")
    times = {}
    for case in cases:
        times[case["id"]] = ours(case, clock)
    seconds = sorted(t for t, _ in times.values())
    print(f"{len(seconds)} cases, {sum(seconds):.2f} s in all")
    print(f"median {1000 * statistics.median(seconds):.1f} ms")
    print(f"95 %   {1000 * seconds[int(0.95 * len(seconds))]:.1f} ms")
    slowest = max(times, key=lambda name: times[name][0])
    print(f"worst  {1000 * seconds[-1]:.1f} ms ({slowest})")
    undecided = [name for name, (_, status) in times.items() if status == "undecided"]
    print(f"undecided {len(undecided)}: {' '.join(undecided)}")
    if not options.sympy:
        return
    decided = {}
    for case in cases:
        if not case["params"] and (result := theirs(case, options.limit, clock)) is not None:
            decided[case["id"]] = (*result, case["answer"])
    total = sum(t for t, _, _ in decided.values())
    mine = sum(times[name][0] for name in decided)
    wrong = [name for name, (_, answer, known) in decided.items() if answer != known]
    print(f"SymPy {sympy.__version__} decides {len(decided)} cases in {total:.2f} s")
    print(f"trf decides the same in {mine:.2f} s: {total / mine:.1f} times faster")
    print(f"wrong answers of SymPy: {len(wrong)} ({' '.join(wrong)})")


if __name__ == "__main__":
    main()
