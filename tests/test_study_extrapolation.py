"""Perplexity against length, as the study reads it off a grid's cells."""

from __future__ import annotations

import json
import math
from functools import partial

import matplotlib as mpl
import pytest

mpl.use("Agg")

import study_records as made
from study_records import rise_to

from trf.errors import ParameterError
from trf.plotting import plt
from trf.study import extrapolation
from trf.study.scores import bits_by_position

cell = partial(made.cell, **made.LAPTOP, rise=0.0)
HEADS = [{"r1": r1, "r2": 1.0} for r1 in (0.5, 0.9, 1.1, 2.0)]


@pytest.fixture(scope="module")
def cells():
    grid = [
        cell("alibi", rise=rise_to(0.98)),
        cell("alibi", "books", rise=rise_to(0.99)),
        cell("kerple-log", rise=rise_to(1.01), parameters=HEADS),
        cell("inverse-n", rise=rise_to(1.1)),
        cell("inverse-n", "books", rise=rise_to(1.01)),
        cell("sinusoidal", rise=rise_to(9)),
        cell("alibi", rise=rise_to(0.97), seed=1),
        cell("inverse-n", rise=rise_to(1.2), tokens=4000),
    ]
    return made.cells(*grid)


def one(result, encoding, corpus="code"):
    (record,) = [r for r in result["records"] if (r["encoding"], r["corpus"]) == (encoding, corpus)]
    return record


def test_ratios_are_to_the_train_length(cells):
    result = extrapolation.summarise(cells)
    alibi = one(result, "alibi")
    assert alibi["lengths"] == [512, 1024, 2048, 4096, 9216]
    assert alibi["ratio"][0] == 1
    assert alibi["ratio"][-1] == pytest.approx(0.98)
    assert alibi["bits"][0] == pytest.approx(2)
    assert alibi["sliding"]["perplexity"] == pytest.approx(3.92)
    assert result["corpora"] == ["code", "books"]
    assert result["encodings"] == ["sinusoidal", "alibi", "kerple-log", "inverse-n"]
    assert json.loads(json.dumps(result, allow_nan=False)) == result


def test_verdicts_have_the_learned_parameters_put_in(cells):
    result = extrapolation.summarise(cells)
    assert one(result, "kerple-log")["verdict"]["text"] == "2 of 4 heads converge"
    assert one(result, "alibi")["verdict"]["kind"] == "converges"
    assert one(result, "inverse-n")["verdict"]["kind"] == "diverges"
    assert one(result, "sinusoidal")["verdict"]["kind"] == "none"


def test_what_lies_past_the_train_length_is_told_from_the_text(cells):
    result = extrapolation.summarise(cells)
    alibi, inverse, sinusoidal = (one(result, e)["position"] for e in ("alibi", "inverse-n",
                                                                       "sinusoidal"))  # fmt: skip
    assert alibi["past"] < 0 < inverse["past"] < sinusoidal["past"]
    bits = [rise_to(1.1) * max(0, math.log2(p / 512)) / math.log(2) for p in inverse["positions"]]
    assert inverse["excess"] == pytest.approx(bits, rel=1e-4, abs=1e-6)
    assert "same model" in inverse["against"]
    assert "other encodings" in sinusoidal["against"]
    assert sinusoidal["excess"][0] == pytest.approx(0, abs=1e-6)


def test_without_a_curve_or_a_mask_nothing_is_guessed():
    bare = cell("alibi")
    bare.data["curves"] = []
    result = extrapolation.summarise(made.cells(bare, cell("sinusoidal")))
    assert one(result, "alibi")["position"] is None
    words = cell("alibi")  # of tokens whose bytes are not known
    words.data["training"]["recipe"]["tokeniser"] = "bpe:50257"
    words.data["rows"] = [r for r in words.data["rows"] if r["quantity"] != "bits_per_byte"]
    assert bits_by_position(words) is None
    assert bits_by_position(cell("alibi")) is not None
    assert one(result, "sinusoidal")["position"]["excess"] is None
    assert one(result, "sinusoidal")["position"]["past"] is None
    assert extrapolation.words(result)["length_past_none"] == "not measured"
    plt.close(extrapolation.draw(result))


def test_a_cell_without_the_train_length_is_left_out():
    short = cell("alibi", lengths=(1024, 2048, 9216))
    result = extrapolation.summarise(made.cells(short))
    assert result["records"] == []


def test_learned_positions_end_with_the_train_length():
    learned = cell("learned", lengths=(512,))
    grid = [learned, cell("rope", rise=rise_to(3)), cell("alibi")]
    result = extrapolation.summarise(made.cells(*grid))
    position = one(result, "learned")["position"]  # as many bins as the others, but narrower
    assert position["positions"] == [8 * (k + 1) for k in range(64)]
    assert position["excess"] is None
    words = extrapolation.words(result)
    assert words["length_none"] == "1 of 1 (×3.000 at 9216 tokens)"
    figure = extrapolation.draw(result)
    texts = [text.get_text() for text in figure.legends[0].get_texts()]
    assert "learned absolute: no p(n)" in texts
    assert "at 9216" in figure.legends[0].get_title().get_text()
    assert len(figure.axes[0].get_xticks()) == 5
    plt.close(figure)


def test_words_count_what_goes_with_the_theory_and_what_against(cells):
    words = extrapolation.words(extrapolation.summarise(cells))
    assert words["length_convergent"] == "2 of 2 (×0.9800 to 0.9900 at 9216 tokens)"
    assert words["length_divergent"].startswith("1 of 2 ")
    assert words["length_mixed"].startswith("1 of 1 ")
    assert words["length_ratio_inverse_n"] == "×1.010 to 1.100"
    assert words["length_ratio_type1"] == "not measured"
    assert words["length_exceptions"] == "1/n on books (diverges, ×1.010)"
    assert words["length_past_divergent"].endswith("in 2 of 2 cells")
    assert words["length_past_convergent"].endswith("in 0 of 2 cells")
    assert "| ALiBi | converges | 4.00 → 3.92 (×0.980) |" in words["length_table"]
    assert "| KERPLE-log | 2 of 4 heads converge |" in words["length_table"]
    assert words["length_table"].splitlines()[2].endswith("(×9.00) | – |")
    assert "| ALiBi | converges | -" in words["length_past_table"]
    assert "58.46" in words["length_paper_table"]
    assert words["length_seeds"] == "ALiBi on code: ×0.980 (seed 0), ×0.970 (seed 1)"
    assert "×1.200 (tokens 4,000)" in words["length_budgets"]
    assert all(isinstance(text, str) for text in words.values())


def test_the_figure_has_a_column_a_corpus_and_frames_what_holds(cells):
    figure = extrapolation.draw(extrapolation.summarise(cells))
    assert [ax.get_title() for ax in figure.axes[:2]] == ["code", "books"]
    assert figure.axes[0].get_ylim()[1] < 1.4
    assert len(figure.axes) == 6
    texts = [text.get_text() for text in figure.legends[0].get_texts()]
    assert "sinusoidal: no p(n) (×9)" in texts
    assert "ALiBi: converges (×0.980 to 0.990)" in texts
    plt.close(figure)


def test_nothing_to_draw():
    result = extrapolation.summarise(made.cells())
    assert result["records"] == []
    assert extrapolation.words(result)["length_convergent"] == "0 of 0"
    with pytest.raises(ParameterError, match="nothing to draw"):
        extrapolation.draw(result)
