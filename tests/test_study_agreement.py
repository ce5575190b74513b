"""How far predictors are off, and that the choice looks at the selection only."""

import json
import re

import numpy as np
import pytest

pytest.importorskip("torch")
mpl = pytest.importorskip("matplotlib")
mpl.use("Agg")

import study_records as made

from trf.errors import CheckpointError, ParameterError
from trf.grid import run_grid
from trf.study import agreement, predictors, report
from trf.study.cells import CellResult, read_cells
from trf.study.predictors import DIAGNOSTIC, PREDICTORS, Inputs
from trf.theory import mass_curve, path_curve, stack_curve


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    out = tmp_path_factory.mktemp("grid")
    names = ["alibi", "type1", "kerple-log", "sandwich", "rope"]
    result = run_grid(names, ["code"], out, preset="smoke", jobs=1, threads=1, progress=False)
    assert not result.failed
    return out


@pytest.fixture(scope="module")
def cells(folder):
    return read_cells(folder)


def row(encoding, corpus, measured, **predicted):
    return {"encoding": encoding, "corpus": corpus, "eps": 0.1, "measured": measured,
            **dict.fromkeys(PREDICTORS, 1), **predicted}  # fmt: skip


def test_errors_are_factors():
    rows = [row("alibi", "code", 10, paths=20), row("type1", "code", 40, paths=20),
            row("type2", "code", 100, paths=100)]  # fmt: skip
    found = agreement.errors(rows, "paths")
    assert found["n"] == 3
    assert found["factor"] == 2
    assert found["mean"] == pytest.approx(2 ** (2 / 3), rel=1e-3)
    assert found["worst"] == 2
    assert found["ratio"] == 1
    assert found["within"] == pytest.approx(1 / 3, rel=1e-3)
    assert found["rank"] == pytest.approx(np.sqrt(3) / 2, rel=1e-3)
    assert agreement.errors([], "paths") == {"n": 0}
    # At another eps all radii are larger, and here in the wrong order.
    late = [r | {"eps": 0.01, "measured": 999 - r["measured"], "paths": 900 + r["paths"]}
            for r in rows]  # fmt: skip
    assert agreement.errors(rows + late, "paths")["rank"] == pytest.approx(0, abs=1e-3)


def test_the_choice_is_made_on_the_selection_alone():
    seen = [row(name, "code", 10, paths=10, **{"stack-half": 11}) for name in ("alibi", "type1")]
    others = [row("type2", "code", 10, paths=99, **{"stack-half": 10}),
              row("alibi", "books", 10, paths=99, **{"stack-half": 10})]  # fmt: skip
    assert agreement._choose([*seen, *others]) == "paths"
    assert [agreement.is_selected(r) for r in [*seen, *others]] == [True, True, False, False]
    assert agreement._choose(others) is None


def test_a_theory_has_to_beat_one_radius_for_all():
    rows = [row("alibi", "code", 10), row("type1", "code", 40),  # 20 in the mean
            row("alibi", "books", 20, paths=20), row("type1", "books", 80, paths=20)]  # fmt: skip
    found = {(r["predictor"], r["eps"]): r for r in agreement._by_eps(rows, ["paths"])}
    assert found["null", 0.1]["mean"] == found["null", None]["mean"] == 2
    assert found["paths", None]["n"] == 2
    assert found["paths", None]["worst"] == 4
    assert agreement._by_eps(rows[2:], ["paths"]) == []


def test_a_predictor_that_lacks_a_radius_of_the_selection_is_not_chosen():
    rows = [row("alibi", "code", 10, paths=10), row("type1", "code", 10, paths=None)]
    assert agreement._choose(rows) not in ("paths", None)


def test_a_predictor_that_reads_the_attention_is_not_chosen():
    rows = [row("alibi", "code", 10, **dict.fromkeys(DIAGNOSTIC, 10))]
    assert agreement._choose(rows) not in DIAGNOSTIC


def test_predictors_are_what_they_say(cells):
    cell = cells.one(encoding="kerple-log")
    given = Inputs(cell, 32)
    values = [{"r1": v["r1"], "r2": v["r2"]} for v in cell.parameters()]
    heads = [f"-{v['r1']}*log(1+{v['r2']}*n)" for v in values]
    for name, curve in (
        ("one-layer", mass_curve(heads, 32)),
        ("stack-half", stack_curve(heads, 32, 1, 0.5)),
        ("paths", path_curve(heads, 32, given.both_gains)),
    ):
        found = PREDICTORS[name].curve(given)
        np.testing.assert_allclose(found, curve, rtol=1e-9)
    bounded = PREDICTORS["logit-bound"].curve(given)
    assert bounded is not None
    assert (bounded <= mass_curve(heads, 32) + 1e-12).all()
    np.testing.assert_allclose(given.attention.sum(axis=-1), 1, atol=1e-3)


def test_what_a_cell_lacks_is_not_guessed(cells, monkeypatch):
    cell = cells.one(encoding="alibi")
    kept = [r for r in cell.data["rows"] if r["quantity"] not in ("logit_spread", "logit_bound")]
    bare = CellResult({**cell.data, "rows": kept})
    found = agreement.radii_of(bare, 32, PREDICTORS)[0]
    missing = {name for name in PREDICTORS if found[name] is None}
    assert missing == {"logit-bound", "paths-spread", "paths-spread-sink"}
    monkeypatch.setattr(predictors, "MAX_PATHS", 2)
    found = agreement.radii_of(cell, 32, PREDICTORS)[0]
    assert {name for name in PREDICTORS if found[name] is None} == {
        name for name in PREDICTORS if name.startswith("paths")
    }
    with pytest.raises(LookupError, match="several rows"):
        cell.by_head("sink", length=64)  # of the fields, and of the entropy in both modes


def test_rows_have_a_radius_for_every_predictor(cells):
    result = agreement.summarise(cells)
    assert {r["encoding"] for r in result["rows"]} == {"alibi", "type1", "kerple-log", "sandwich"}
    assert len(result["rows"]) == 4 * 4
    for r in result["rows"]:
        assert all(1 <= r[name] <= 32 for name in PREDICTORS)
    assert {(r["length"], r["n"]) for r in result["lengths"]} == {(64, 4)}
    assert all(r["seen"] for r in result["ranks"])
    assert agreement.words(result)["agreement_chosen_rank"] == "–"
    chosen = next(p for p in result["predictors"] if p["name"] == result["chosen"])
    assert (chosen["selection"]["n"], chosen["rest"]["n"]) == (12, 4)


def test_the_figure_has_the_papers_predictor_beside_the_chosen_one(cells):
    result = agreement.summarise(cells)
    assert result["paper"] == "one-layer"
    result |= {"paper": "stack-none", "chosen": "paths"}
    for row in result["rows"]:  # the paper's reaches farther than any other, and one is not known
        row["stack-none"] = 1000
    result["rows"][0]["paths"] = None
    figure = agreement.draw(result)
    left, right = figure.axes[:2]
    titles = [ax.get_title(loc="left") for ax in (left, right)]
    assert titles == [PREDICTORS[name].title for name in ("stack-none", "paths")]
    for ax in (left, right):
        assert ax.get_xlim() == ax.get_ylim() == (0.8, 1250)
        assert max(ax.lines[0].get_xdata()) == 1250  # the diagonal
    n = len(result["rows"])
    assert [len(ax.lines) for ax in (left, right)] == [1 + n, n]
    mpl.pyplot.close(figure)


def test_a_study_writes_every_part_and_its_report(folder):
    paths = report.make_study(folder, progress=False)
    names = {path.name for path in paths}
    assert {"agreement.json", "agreement.pdf", "agreement.png", "README.md"} <= names
    assert all(path.exists() for path in paths)
    written = (folder / "README.md").read_text("utf-8")
    assert "{{" not in written
    assert {f"{name}.png" for name in re.findall(r"!\[([^]]+)\]", written)} == {
        name for name in names if name.endswith(".png")
    }
    assert "learned-kerple.png" in names
    assert "budget-and-seeds.png" not in names  # one run of each: there is nothing to draw
    assert "paths with logit spread" in written
    before = {path.name: path.read_bytes() for path in paths}
    again = report.make_study(folder, progress=False)
    assert {path.name: path.read_bytes() for path in again} == before
    (folder / "report.in.md").write_text("A = {{agreement_paper_factor}}; {{n_cells}} cells\n")
    report.make_study(folder, progress=False)
    assert (folder / "README.md").read_text().endswith("; 5 cells\n")
    (folder / "report.in.md").write_text("{{no_such_number}}")
    with pytest.raises(ParameterError, match="no_such_number"):
        report.make_study(folder, progress=False)
    (folder / "report.in.md").unlink()
    (folder / "README.md").write_text("mine")
    with pytest.raises(CheckpointError, match="would be lost"):
        report.make_study(folder, progress=False)
    assert (folder / "README.md").read_text() == "mine"


def test_a_folder_without_cells_is_refused(tmp_path):
    with pytest.raises(CheckpointError, match="no cells"):
        report.make_study(tmp_path, progress=False)
    (tmp_path / "cells").mkdir()
    for record in ({}, made.cell("alibi").data | {"cell": {"encoding": "of-another-version"}}):
        (tmp_path / "cells" / "a.json").write_text(json.dumps(record))
        with pytest.raises(CheckpointError, match="no cell of a grid"):
            report.make_study(tmp_path, progress=False)
