"""Learned parameters: the verdict is that of the learned values, at each record."""

import json

import matplotlib as mpl
import pytest

mpl.use("Agg")

import study_records as made

import trf
from trf.errors import ParameterError
from trf.study import learned


@pytest.fixture(scope="module")
def result():
    grid = [made.cell("kerple-log", drift=0.2), made.cell("kerple-log", "books")]
    grid += [made.cell("kerple-power", rise=0.0), made.cell("alibi", rise=0.0)]
    grid += [made.cell("inverse-n", rise=0.5), made.cell("rope", rise=2.0)]
    return learned.summarise(made.cells(*grid))


def test_heads_cross_the_border_on_the_way(result):
    (drifting,) = [m for m in result["models"] if m["corpus"] == "code" and "log" in m["encoding"]]
    assert drifting["heads"][1]["r1"] == pytest.approx([0.9, 1.1, 1.3])
    assert drifting["heads"][1]["verdicts"] == ["diverges", "converges", "converges"]
    assert drifting["heads"][0]["verdicts"] == ["diverges"] * 3
    assert drifting["radius"][0] > drifting["radius"][-1]
    assert json.loads(json.dumps(result, allow_nan=False)) == result


def test_leakage_is_that_of_the_package(result):
    rows = {(row["encoding"], row["corpus"]): row for row in result["extrapolation"]}
    assert set(rows) == {
        ("kerple-log", "code"), ("kerple-log", "books"), ("kerple-power", "code"),
        ("alibi", "code"), ("inverse-n", "code"),
    }  # fmt: skip
    row = rows["kerple-log", "code"]
    exact = [
        trf.leakage("-r1*log(1+r2*n)", 32, 128, r1=r, r2=r).to_dict()["share"] for r in (0.9, 1.3)
    ]
    assert row["leakage_by_head"] == pytest.approx(exact, rel=1e-5)
    assert row["rise"] == pytest.approx(0.2)


def test_words(result):
    words = learned.words(result)
    assert words["learned_log_converge_first"] == "0 of 4"
    assert words["learned_log_converge_end"] == "1 of 4"
    assert words["learned_log_r1_grown"] == "2 of 4"
    assert words["learned_power_converge_end"] == "2 of 2"
    assert words["learned_fixed_converges_ratio"] == "1.000"
    assert words["learned_fixed_diverges_ratio"] == "2.718"
    assert "| code, head 2 | 0.900 → 1.10 → 1.30 |" in words["learned_log_heads"]
    assert words["learned_extrapolation"].count("\n") == 5


def test_figure(result):
    figure = learned.draw(result)
    assert len(figure.axes) == 4 * 2
    border = figure.axes[0].lines[-1]
    assert border.get_linestyle() == "--"
    assert list(border.get_ydata()) == [1.0, 1.0]
    mpl.pyplot.close(figure)


def test_nothing_learned():
    result = learned.summarise(made.cells(made.cell("alibi")))
    assert result["models"] == []
    assert learned.words(result)["learned_log_converge_end"] == "0 of 0"
    with pytest.raises(ParameterError, match="nothing to draw"):
        learned.draw(result)
    assert learned.summarise(made.cells())["extrapolation"] == []
