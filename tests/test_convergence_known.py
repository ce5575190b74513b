"""Every series with a known answer: the verdict, its condition, its proof and its check."""

import itertools
import json
from pathlib import Path

import pytest
import sympy

from trf.series.convergence import converges
from trf.series.verdict import Status

DATA = Path(__file__).parent / "data"
DOMAINS = {"positive-integer": "positive integer", "positive-even-integer": "positive even integer"}
SOME = [sympy.Rational(text) for text in ("1/3", "1", "3/2", "2", "5/2", "7/3", "1/10", "-1", "0")]


def load(name):
    return [json.loads(line) for line in (DATA / name).read_text().splitlines()]


CASES = load("series.jsonl")
INDEPENDENT = [case for case in load("series_independent.jsonl") if case["answer"] != "unknown"]
OPEN = load("open.jsonl") + [
    case for case in load("series_independent.jsonl") if case["answer"] == "unknown"
]


VERDICTS = {}


def decide(case):
    if case["id"] not in VERDICTS:
        VERDICTS[case["id"]] = _decide(case)
    return VERDICTS[case["id"]]


def _decide(case):
    assume = {name: DOMAINS.get(domain, domain) for name, domain in case["params"].items()}
    return converges(case["p"], assume=assume)


def allowed(symbol, value):
    return all(
        getattr(value, f"is_{word}")
        for word in ("positive", "nonnegative", "integer", "even")
        if getattr(symbol, f"is_{word}")
    )


def points(case, symbols):
    """The case's own samples, and a few points of the domain."""
    for sample in case.get("samples", []):
        yield {symbols[name]: sympy.sympify(value) for name, value in sample.items()}
    grid = itertools.product(SOME, repeat=len(symbols))
    for values in itertools.islice(grid, 0, 400, 7):
        point = dict(zip(symbols.values(), values, strict=True))
        if all(allowed(symbol, value) for symbol, value in point.items()):
            yield point


def assert_as_known(case, verdict):
    if case["condition"] is None:
        assert verdict.status == case["answer"], (case, str(verdict))
        return
    assert verdict.status is Status.CONDITIONAL, (case, str(verdict))
    symbols = {symbol.name: symbol for symbol in verdict.bias.parameters}
    assert verdict.condition.free_symbols <= set(symbols.values())
    known = sympy.sympify(case["condition"], locals={**symbols, "E": sympy.E})
    for point in points(case, symbols):
        ours, theirs = verdict.condition.subs(point), known.subs(point)
        assert ours == theirs, (case["p"], point, str(verdict.condition), case["condition"])


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_known_series(case):
    assert_as_known(case, decide(case))


@pytest.mark.parametrize("case", INDEPENDENT, ids=lambda case: case["id"])
def test_independent_series_are_never_wrong(case):
    verdict = decide(case)
    if verdict.status is Status.UNDECIDED:
        assert verdict.reason
        return
    assert_as_known(case, verdict)


def test_few_independent_series_stay_undecided():
    undecided = [case["id"] for case in INDEPENDENT if decide(case).status is Status.UNDECIDED]
    assert len(undecided) <= 14, undecided


@pytest.mark.parametrize("case", OPEN, ids=lambda case: case["id"])
def test_open_problems_stay_open(case):
    verdict = decide(case)
    assert verdict.status is Status.UNDECIDED
    assert verdict.reason


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES + INDEPENDENT, ids=lambda case: case["id"])
def test_no_check_disagrees_and_every_proof_is_data(case):
    verdict = decide(case)
    assert verdict.check().agrees is not False
    json.dumps(verdict.to_dict())
    assert verdict._repr_markdown_()
    if verdict.status is not Status.UNDECIDED:
        assert verdict.proof
        assert all(step.statement and step.rule for step in verdict.proof)
