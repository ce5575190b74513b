"""The window mask and its kin, and what sliding costs, as the study reads them."""

from __future__ import annotations

import json
from functools import partial

import matplotlib as mpl
import pytest

mpl.use("Agg")

import study_records as made
from study_records import rise_to

from trf.errors import ParameterError
from trf.plotting import plt
from trf.study import masks
from trf.study.cost import cost_words

cell = partial(made.cell, **made.LAPTOP, rise=0.0)


@pytest.fixture(scope="module")
def result():
    grid = [
        cell("rope", rise=rise_to(10), level=4.4),
        cell("xpos", rise=rise_to(4), level=4.2),
        cell("alibi", rise=rise_to(0.98)),
        cell("alibi", "books", rise=rise_to(0.98)),
        cell("sinusoidal", rise=rise_to(9), level=3.0),
    ]
    return masks.summarise(made.cells(*grid))


def test_each_way_is_set_against_the_best_plain_one(result):
    rope = next(r for r in result["records"] if r["encoding"] == "rope")
    assert masks.at_longest(rope, "plain")["held"] == pytest.approx(10)
    window = masks.at_longest(rope, "window")
    assert window["held"] == pytest.approx(1.005)
    assert window["best"] == pytest.approx(1.005 * 4.4 / 3.92)
    assert [row["length"] for row in rope["views"]["log-n scale"]] == [2048, 9216]
    best = {row["length"]: row["encoding"] for row in result["best"]["code"]}
    assert best[9216] == "alibi"
    assert best[512] == "sinusoidal"  # whatever is best, with a mask or without
    assert json.loads(json.dumps(result, allow_nan=False)) == result


def test_absolute_positions_take_no_mask_and_are_left_out(result):
    assert result["encodings"] == ["rope", "xpos", "alibi"]
    assert result["corpora"] == ["code", "books"]


def test_entropy_is_the_mean_over_layers_and_heads(result):
    entropy = result["records"][0]["entropy"]
    assert entropy["full"]["nats"][-1] > entropy["window"]["nats"][-1]
    assert len(entropy["full"]["nats"]) == len(entropy["full"]["tokens"])


def test_words(result):
    words = masks.words(result)
    assert words["mask_window_others"] == "2 of 2 cells (×1.00)"
    assert words["mask_plain_others"] == "0 of 2 cells (×4.00 to 10.0)"
    assert words["mask_plain_convergent"] == "2 of 2 cells (×0.980)"
    assert words["mask_cost_convergent"] == "×1.026"
    assert words["mask_log_n_lowers"] == "0 of 4 cells (×1.010)"
    assert words["mask_bca_log_n_lowers"] == "0 of 4 cells (×1.001)"
    assert words["mask_xpos"] == "code 4.20 at the train length, 16.8 plain, 4.21 BCA"
    assert words["mask_best"].startswith("code: ALiBi, 3.92 at 9216; books: ALiBi")
    assert words["mask_failures"] == "none"
    assert "| RoPE | no p(n) | 4.40 | ×11.2 |" in words["mask_table"]
    assert "| RoPE | window | 1.00 |" in words["mask_lengths_table"]
    assert len(words["mask_full_table"].splitlines()) == 2 + 4
    assert "4096 tokens, window" in words["mask_entropy_table"]
    assert all(isinstance(text, str) for text in words.values())


def test_what_was_not_measured_is_left_out():
    bare = cell("rope")
    bare.data["curves"] = []
    bare.data["rows"] = [row for row in bare.data["rows"] if "blocks" not in row.get("mode", "")]
    result = masks.summarise(made.cells(bare))
    words = masks.words(result)
    assert words["mask_bca_others"] == words["mask_xpos"] == "not measured"
    assert "–" in words["mask_table"]
    plt.close(masks.draw(result))


def test_the_figure_has_a_column_a_corpus(result):
    figure = masks.draw(result)
    assert [ax.get_title() for ax in figure.axes[:2]] == ["code", "books"]
    assert len(figure.axes) == 4
    names = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert names == ["RoPE", "xPos", "ALiBi"]
    plt.close(figure)


def test_nothing_to_draw():
    result = masks.summarise(made.cells())
    assert result["records"] == []
    assert masks.words(result)["mask_best"] == "not measured"
    with pytest.raises(ParameterError, match="nothing to draw"):
        masks.draw(result)


def test_words_of_the_cost(tmp_path):
    assert cost_words(tmp_path / "none.json")["cost_sliding"] == "not measured"
    ways = {"sliding": 100.0, "non-overlapping": 0.5, "one pass": 2.0, "one pass, window": 0.6}
    record = {
        "config": {"length": 512, "segment": 9216, "stride": 1, "repeats": 3, "threads": 1,
                   "model": "type1", "corpus": "code"},
        "seconds": ways,
        "windows": {"sliding": 8705, "sampled": 160, "non-overlapping": 18},
        "perplexity": {**dict.fromkeys(ways, 3.0), "sliding": None},
    }  # fmt: skip
    path = tmp_path / "cost.json"
    path.write_text(json.dumps(record))
    words = cost_words(path)
    assert (words["cost_sliding"], words["cost_window"]) == ("200", "1.20")
    assert "| 8705 windows of 512, stride 1 | 100 | 200 | – |" in words["cost_table"]
    assert "160 of 8705" in words["cost_how"]
