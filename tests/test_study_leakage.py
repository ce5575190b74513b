"""Leakage against the loss past training: what is paired, and what the correlations are of."""

import json

import matplotlib as mpl
import numpy as np
import pytest

mpl.use("Agg")

import study_records as made

import trf
from trf import encodings
from trf.errors import ParameterError
from trf.study import leakage

RISES = {"alibi": 0.0, "type1": 0.05, "inverse-n": 0.2, "none": 1.0, "t5": 0.8, "kerple-log": 0.1}


@pytest.fixture(scope="module")
def result():
    grid = [made.cell(name, c, rise=r) for name, r in RISES.items() for c in ("code", "books")]
    return leakage.summarise(made.cells(*grid, made.cell("rope", rise=2.0)))


def test_leakage_is_the_certified_one(result):
    share = {(p["encoding"], p["length"]): p["leakage"] for p in result["points"]}
    for name in ("alibi", "type1", "inverse-n"):
        for length in (64, 128):
            exact = trf.leakage(encodings.get(name), 32, length, n_head=2).to_dict()["share"]
            assert share[name, length] == pytest.approx(exact, rel=1e-6)
    assert share["none", 128] == pytest.approx(0.75)


def test_the_loss_beyond_training(result):
    (last,) = [p for p in result["points"] if (p["encoding"], p["corpus"], p["length"])
               == ("inverse-n", "code", 128)]  # fmt: skip
    assert last["rise"] == pytest.approx(0.4)
    late, before = np.arange(98, 129, 2), np.arange(18, 33, 2)  # last positions of the bins
    rise = 0.2 * np.log2(late / 32).mean()
    assert last["beyond_window"] == pytest.approx(rise)
    text = made.text_at(late).mean() - made.text_at(before).mean()
    assert last["late"] == pytest.approx(rise + text)
    assert json.loads(json.dumps(result, allow_nan=False)) == result


def test_correlations(result):
    rows = {(row["measure"], row["value"]): row for row in result["correlations"]}
    assert rows["rise", "all"]["n"] == 2 * 2 * len(RISES)
    assert rows["rise", "decaying"]["n"] == 2 * 2 * (len(RISES) - 2)
    assert rows["rise", 128]["n"] == rows["late", "all"]["n"] == 2 * len(RISES)
    assert rows["beyond_window", "code"]["n"] == len(RISES)
    assert 0.8 < rows["rise", 128]["spearman"] <= 1


def test_encodings_without_a_bias_stand_apart(result):
    assert {point["encoding"] for point in result["without"]} == {"rope"}
    words = leakage.words(result)
    assert "| RoPE | no p(n) | – | +4.000 / +3.631 | – |" in words["leakage_without"]
    assert words["leakage_without_rise"] == "4.0"
    assert words["leakage_cells"] == "12"
    assert words["leakage_converges_rise"] == "0.0 to 0.10"
    assert words["leakage_beyond_window_pairs"] == "12"
    assert words["leakage_late_decaying_pairs"] == "8"
    assert "| non-overlapping windows | decaying biases | 16 |" in words["leakage_correlations"]


def test_figure(result):
    figure = leakage.draw(result)
    left, right = figure.axes
    assert len(left.lines) == 2 * len(RISES) + 2 * 2 * len(RISES) + 1
    assert len(right.lines) == 2 * len(RISES) + 1
    mpl.pyplot.close(figure)


def test_too_few_for_a_correlation():
    few = leakage.summarise(made.cells(made.cell("alibi"), made.cell("none")))
    assert [row["pearson"] for row in few["correlations"] if row["value"] == 128] == [None]
    empty = leakage.summarise(made.cells(made.cell("rope")))
    assert "Nothing was measured" in leakage.words(empty)["leakage_by_encoding"]
    with pytest.raises(ParameterError, match="nothing to draw"):
        leakage.draw(empty)
    assert leakage.words(leakage.summarise(made.cells()))["leakage_longest"] == "–"
