"""Budgets and seeds: only runs that differ in nothing else are compared."""

import json
import math

import matplotlib as mpl
import pytest

mpl.use("Agg")

import study_records as made

from trf import encodings
from trf.errors import ParameterError
from trf.study import training


@pytest.fixture(scope="module")
def result():
    grid = [made.cell("type1", tokens=n, scale=s) for n, s in ((1024, 4), (4096, 8), (16384, 12))]
    grid += [made.cell("alibi", seed=seed) for seed in (0, 1, 2)]
    grid += [made.cell("alibi", "books"), made.cell("rope")]
    return training.summarise(made.cells(*grid))


def test_groups_differ_in_one_thing(result):
    assert [[run["tokens"] for run in group] for group in result["budgets"]] == [
        [1024, 4096, 16384]
    ]
    assert [[run["seed"] for run in group] for group in result["seeds"]] == [[0, 1, 2]]
    run = result["budgets"][0][0]
    assert [row["at_tokens"] for row in run["on_the_way"]] == [256, 512, 1056]
    assert json.loads(json.dumps(result, allow_nan=False)) == result


def test_the_grid_proper_has_the_first_seed_of_its_budget():
    grid = [made.cell(name, seed=7) for name in ("alibi", "type1")]
    main = made.cells(made.cell("alibi", tokens=100), *grid).main
    assert [(cell.seed, cell.tokens) for cell in main] == [(7, 4096)] * 2


def test_spread_is_that_of_the_logarithm(result):
    (spread,) = result["spread"]
    assert spread["perplexity"]["sd"] == pytest.approx(0.01)  # the loss is 1.5 + 0.01 seed
    assert spread["ratio"]["sd"] == 0
    pooled = result["pooled"]
    assert {row["degrees_of_freedom"] for row in pooled.values()} == {2}
    assert pooled["perplexity"]["ratio"] == pytest.approx(math.exp(4.3027 * math.sqrt(2) * 0.01))


def test_learned_positions_have_no_ratio_past_the_train_length():
    def learned(**where):
        return made.cell("learned", lengths=(32,), **where)

    grid = [made.cell(name, seed=seed) for name in ("alibi", "type1") for seed in (0, 1, 2)]
    grid += [learned(seed=0), learned(seed=1), learned(tokens=1024)]
    result = training.summarise(made.cells(*grid))
    (budgets,) = result["budgets"]
    assert [(run["tokens"], run["ratio"]) for run in budgets] == [(1024, None), (4096, None)]
    spread = {row["encoding"]: row for row in result["spread"]}
    assert spread["learned"]["ratio"] == {"values": [None] * 2, "sd": None, "degrees_of_freedom": 0}
    assert spread["learned"]["perplexity"]["sd"] == pytest.approx(0.01 / math.sqrt(2))
    freedom = {name: row["degrees_of_freedom"] for name, row in result["pooled"].items()}
    assert freedom == {**dict.fromkeys(training.METRICS, 5), "ratio": 4}
    pairs = {name: result["pairs"][0][name]["pairs"] for name in training.METRICS}
    assert pairs == {**dict.fromkeys(training.METRICS, 3), "ratio": 1}
    words = training.words(result)
    assert words["training_learned_code_ratio"] == "– → –"
    assert words["training_seeds_freedom"] == "4 to 5"
    assert (
        "longest over train length: learned absolute, code | – / – | – |"
        in (words["training_seeds"])
    )
    assert words["training_budgets"].splitlines()[2].endswith("| – |")
    assert json.loads(json.dumps(result, allow_nan=False)) == result
    figure = training.draw(result)
    assert all(map(math.isnan, figure.axes[2].lines[0].get_ydata()))
    assert figure.axes[2].get_ylabel() == "perplexity at 128 over 32 tokens"
    mpl.pyplot.close(figure)


def test_a_number_that_is_missing_leaves_the_others():
    bare = [made.cell("alibi", seed=seed) for seed in (0, 1)]
    for cell in bare:
        cell.data["rows"] = [row for row in cell.data["rows"] if row["quantity"] != "erf"]
    result = training.summarise(made.cells(*bare, made.cell("type1"), made.cell("rope")))
    assert [run["erf_0_1"] for run in result["seeds"][0]] == [None, None]
    assert result["pooled"]["erf_0_1"] is None
    assert result["pairs"][0]["erf_0_1"] == {"pairs": 1, "beyond": None}
    assert result["pairs"][0]["perplexity"]["pairs"] == 3
    words = training.words(result)
    assert "ERF" not in words["training_pairs"]
    assert words["training_seeds_erf_0_1"] == "–"
    nothing = made.cell("alibi")
    nothing.data["rows"] = []
    assert training.summarise(made.cells(nothing, made.cell("alibi", seed=1)))["seeds"] == []


def test_words(result):
    words = training.words(result)
    assert words["training_type1_code_erf_0_1"] == "10 → 18 → 22"
    assert words["training_seeds_perplexity"] == "1.06"
    assert words["training_budgets"].count("\n") == 4
    assert "| perplexity at the train length | 1.06 | 0 of 3 |" in words["training_pairs"]
    assert words["training_seeds"].count("\n") == 1 + len(training.METRICS)
    assert "10 (256)" in words["training_on_the_way"]


def test_figure(result):
    figure = training.draw(result)
    assert len(figure.axes) == 3
    assert sum(line.get_linestyle() == "--" for line in figure.axes[0].lines) == 2
    texts = [text.get_text() for text in figure.legends[0].get_texts()]
    assert texts[1:] == ["ALiBi, code", "end of a run", "on the way", "seeds", "TRF, one layer"]
    mpl.pyplot.close(figure)


def test_runs_on_several_corpora_are_told_apart():
    grid = [made.cell("type1", c, tokens=n) for c in ("code", "books") for n in (1024, 4096)]
    grid += [made.cell("alibi", "books", seed=seed) for seed in (0, 1)]
    figure = training.draw(training.summarise(made.cells(*grid)))
    for ax in figure.axes:
        ends = [line for line in ax.lines if line.get_markersize() == 4.5]
        assert len({line.get_color() for line in ends}) == 1
        assert len({line.get_marker() for line in ends}) == len(ends) == 2
    (books,) = {line.get_marker() for line in figure.axes[1].lines if line.get_markersize() == 6.5}
    (legend,) = figure.legends
    titles = [text.get_text() for text in legend.get_texts()]
    marks = dict(zip(titles, (line.get_marker() for line in legend.get_lines()), strict=True))
    assert marks["end of a run, books"] == books != marks["end of a run, code"]
    assert titles[:2] == [encodings.get(name).title for name in ("type1", "alibi")]
    mpl.pyplot.close(figure)


@pytest.mark.parametrize("grid", [[], ["alibi", "rope"]])
def test_one_run_of_each(grid):
    result = training.summarise(made.cells(*(made.cell(name) for name in grid)))
    assert training.words(result)["training_seeds_ratio"] == "–"
    with pytest.raises(ParameterError, match="nothing to draw"):
        training.draw(result)
