"""The shipped checkpoints: they load, they say where they come from, and they model code."""

from __future__ import annotations

import pytest

from trf import corpora
from trf.evaluation import perplexity
from trf.nn import load, read_header, zoo_names
from trf.nn.checkpoint import ZOO

WANTED = {"alibi", "kerple-log", "type1", "type2", "inverse-n"}


def test_at_least_the_promised_ones_are_there_and_small():
    assert set(zoo_names()) >= WANTED
    assert sum(path.stat().st_size for path in ZOO.glob("*.safetensors")) < 12e6


@pytest.mark.parametrize("name", zoo_names())
def test_a_shipped_checkpoint(name):
    model = load(name)
    assert model.config.encoding == name
    assert model.config.train_length == 512
    assert model.n_parameters() < 1_000_000
    made = read_header(name)["provenance"]
    assert made["command"] == f"trf train --encoding {name} --corpus code --out RUN"
    assert made["tokens"] >= 3_000_000
    assert set(made["versions"]) == {"python", "trf", "torch", "numpy", "sympy"}
    assert len(made["corpus"]["sha256"]) == 64
    assert 1 < made["valid_bits_per_byte"] < 3


@pytest.mark.parametrize("name", zoo_names())
def test_it_predicts_held_out_code_as_well_as_it_says(name):
    text = corpora.load("code").test
    row = perplexity(name, text, [512], max_windows=16, progress=False)[512]
    claimed = read_header(name)["provenance"]["valid_bits_per_byte"]
    assert row.bits_per_byte < claimed + 0.6  # other files than the validation's, and few of them


def test_the_best_known_decay_holds_past_the_training_length_and_sinusoids_do_not():
    text = corpora.load("code").test
    growth = {}
    for name in {"alibi", "sinusoidal"} & set(zoo_names()):
        result = perplexity(name, text, [512, 2048], max_windows=4, progress=False)
        growth[name] = result[2048].perplexity / result[512].perplexity
    assert growth["alibi"] < 1.05
    assert growth.get("sinusoidal", 9.0) > 1.5
