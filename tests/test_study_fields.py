"""TRF against ERF by corpus: the theory is taken at the same N, and nothing is guessed."""

import json

import matplotlib as mpl
import pytest

mpl.use("Agg")

import study_records as made

import trf
from trf import encodings
from trf.errors import ParameterError
from trf.study import fields
from trf.study.markdown import number, share, shares, span, table

ALIBI = encodings.get("alibi")


@pytest.fixture(scope="module")
def result():
    grid = [made.cell(name, corpus) for name in ("alibi", "type1") for corpus in ("code", "books")]
    grid += [made.cell("none"), made.cell("kerple-log"), made.cell("rope")]
    grid += [made.cell("alibi", seed=1), made.cell("alibi", tokens=100)]
    return fields.summarise(made.cells(*grid))


def test_the_radii_are_those_of_the_package_at_the_same_length(result):
    panel = result["panels"][0]
    for eps in fields.EPS:
        exact = trf.theoretical_receptive_field(ALIBI, eps=eps, length=32, n_head=2)
        assert panel["theory"]["radius"][f"{eps:g}"] == exact.radius
    stack = trf.theoretical_receptive_field(
        ALIBI, eps=0.1, length=32, n_head=2, n_layer=2, residual=0.5
    )
    assert panel["stack"]["radius"]["0.1"] == stack.radius
    other = {row["length"]: row for row in result["other_lengths"] if row["encoding"] == "alibi"}
    assert set(other) == {16, 64}
    exact = trf.theoretical_receptive_field(ALIBI, eps=0.1, length=64, n_head=2)
    assert other[64]["theory"]["0.1"] == exact.radius


def test_panels_are_the_cells_with_a_bias_at_the_main_budget(result):
    panels = [(panel["encoding"], panel["corpus"]) for panel in result["panels"]]
    assert panels == [
        ("alibi", "books"), ("alibi", "code"), ("kerple-log", "code"), ("type1", "books"),
        ("type1", "code"), ("none", "code"),
    ]  # fmt: skip
    assert result["corpora"] == ["code", "books"]
    assert result["panels"][0]["verdicts"] == ["converges", "converges"]
    assert result["panels"][2]["verdicts"] == ["diverges", "diverges"]  # r1 = 0.5 and 0.9
    assert json.loads(json.dumps(result, allow_nan=False)) == result


def test_a_cell_without_a_field_or_without_its_parameters_is_left_out():
    bare, unknown = made.cell("alibi"), made.cell("kerple-log")
    bare.data["curves"] = [{**curve, "missing": "infinite"} for curve in bare.data["curves"]]
    unknown.data["rows"] = [
        row for row in unknown.data["rows"] if row["quantity"] != "parameter r2"
    ]
    assert fields.summarise(made.cells(bare, unknown))["panels"] == []


def test_words(result):
    words = fields.words(result)
    assert words["fields_radii"].count("TRF / stack / ERF in tokens") == 3
    assert "| none (NoPE) | diverges | 29 / 30 / 18 | – |" in words["fields_radii"]
    assert "TRF, N = 64" in words["fields_other_lengths"]
    assert words["fields_cells"] == "6"
    assert words["fields_above"] == "0 of 6"


def test_figure(result):
    figure = fields.draw(result)
    assert len(figure.axes) == 4 * 2
    styles = [line.get_linestyle() for line in figure.axes[0].lines[:3]]
    assert styles == [":", "--", "-"]
    mpl.pyplot.close(figure)


def test_no_cells():
    result = fields.summarise(made.cells())
    assert "Nothing was measured" in fields.words(result)["fields_radii"]
    with pytest.raises(ParameterError, match="nothing to draw"):
        fields.draw(result)


def test_markdown():
    assert table(["a"], []) == "*Nothing was measured.*"
    assert table(["a", "b"], [["x", None]]).endswith("| x | – |")
    assert table(["|ln|"], [["|q·k| ≤ U"]]).split("\n")[::2] == [r"| \|ln\| |", r"| \|q·k\| ≤ U |"]
    assert [number(0.0), number(31.0), number(0.5), number(None)] == ["0.00", "31.0", "0.500", "–"]
    assert [number(999.4), number(999.6), number(-1234.0)] == ["999", "1000", "-1234"]
    assert [span([]), span([7]), span([0.5, 1.0])] == ["–", "7", "0.500 to 1.00"]
    assert [share(0.25), shares([]), shares([1e-9, 0.25])] == ["0.250", "–", "< 0.001 to 0.250"]
