"""Budgets and seeds: only runs that differ in nothing else are compared."""

import json
import math

import matplotlib as mpl
import pytest

mpl.use("Agg")

import study_records as made

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
    assert pooled["degrees_of_freedom"] == 2
    assert pooled["perplexity"]["ratio"] == pytest.approx(math.exp(4.3027 * math.sqrt(2) * 0.01))


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
    mpl.pyplot.close(figure)


@pytest.mark.parametrize("grid", [[], ["alibi", "rope"]])
def test_one_run_of_each(grid):
    result = training.summarise(made.cells(*(made.cell(name) for name in grid)))
    assert training.words(result)["training_seeds_ratio"] == "–"
    with pytest.raises(ParameterError, match="nothing to draw"):
        training.draw(result)
