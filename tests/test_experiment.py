"""From checkpoints to figures: every number drawn is in the JSON, and interrupted work is kept."""

import json

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("matplotlib")

from trf import experiment
from trf.errors import CheckpointError, TextError
from trf.nn import Decoder, DecoderConfig, save
from trf.theory import mass_curve

PLAN = experiment.Plan(length=32, n_windows=3, lengths=(32, 64), n_segments=2)


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    paths = []
    for encoding in ("alibi", "kerple-log", "sinusoidal", "none"):
        torch.manual_seed(0)
        config = DecoderConfig(encoding, n_layer=2, n_head=2, n_embd=16, train_length=32)
        paths.append(save(Decoder(config), folder / f"{encoding}.safetensors"))
    return paths


@pytest.fixture(scope="module")
def made(models, tmp_path_factory):
    out = tmp_path_factory.mktemp("figures")
    paths = experiment.make_figures(out, models=models, plan=PLAN, progress=False)
    return out, paths


def records(folder, name="trf-vs-erf"):
    return json.loads((folder / f"{name}.json").read_text())["records"]


def test_each_figure_is_written_in_three_forms(made):
    out, paths = made
    expected = {f"{name}.{suffix}" for name in ("trf-vs-erf", "perplexity")
                for suffix in ("json", "pdf", "png")}  # fmt: skip
    assert {path.name for path in paths} == expected
    assert all(path.stat().st_size > 500 for path in paths)
    assert not list(out.glob("*.tmp"))


def test_the_theory_is_the_mean_of_the_heads_kernels_within_the_same_length(made):
    record = next(r for r in records(made[0]) if r["encoding"] == "alibi")
    expected = mass_curve(["-n/16", "-n/256"], 32)
    np.testing.assert_allclose(record["theory"]["curve"], expected, rtol=1e-6)
    assert record["theory"]["radius"]["0.1"] == int(np.argmax(expected > 0.9)) + 1
    assert len(record["measured"]["curve"]) == 32


def test_learned_parameters_enter_the_theory(made):
    record = next(r for r in records(made[0]) if r["encoding"] == "kerple-log")
    heads = [f"-({h['r1']!r})*log(1+({h['r2']!r})*n)" for h in record["heads"]]
    np.testing.assert_allclose(record["theory"]["curve"], mass_curve(heads, 32), rtol=1e-6)


def test_an_encoding_without_a_bias_is_in_the_perplexity_only(made):
    assert "sinusoidal" not in {r["encoding"] for r in records(made[0])}
    assert "sinusoidal" in {r["encoding"] for r in records(made[0], "perplexity")}


def test_a_record_says_where_it_comes_from(made):
    data = json.loads((made[0] / "trf-vs-erf.json").read_text())
    assert data["plan"]["seed"] == 0
    for record in data["records"]:
        assert {"trf", "torch", "numpy", "python"} <= set(record["versions"])
        assert len(record["key"]["checkpoint_sha256"]) == 64
        assert len(record["key"]["text_sha256"]) == 64


def test_what_was_measured_is_not_measured_again_unless_asked(made, models, monkeypatch):
    out, _ = made
    before = records(out)

    def refuse(*args, **kwargs):
        raise AssertionError("measured again")

    monkeypatch.setattr(experiment, "empirical_receptive_field", refuse)
    experiment.make_figures(out, models=models, plan=PLAN, progress=False)
    assert records(out) == before
    with pytest.raises(AssertionError, match="measured again"):
        experiment.make_figures(out, models=models, plan=PLAN, fresh=True, progress=False)


def test_interrupted_work_is_kept(models, tmp_path, monkeypatch):
    measure, done = experiment.perplexity, []

    def interrupted(decoder, *args, **kwargs):
        if done:
            raise KeyboardInterrupt
        done.append(decoder)
        return measure(decoder, *args, **kwargs)

    monkeypatch.setattr(experiment, "perplexity", interrupted)
    with pytest.raises(KeyboardInterrupt):
        experiment.make_figures(tmp_path, models=models, plan=PLAN, progress=False)
    monkeypatch.setattr(experiment, "perplexity", measure)
    monkeypatch.setattr(
        experiment, "load", lambda path, load=experiment.load: done.append(path) or load(path)
    )
    experiment.make_figures(tmp_path, models=models, plan=PLAN, progress=False)
    assert len(done) == 1 + len(models) - 1


def test_measuring_twice_gives_the_same_numbers(made, models, tmp_path):
    experiment.make_figures(tmp_path, models=models[:1], plan=PLAN, progress=False)
    assert records(tmp_path)[0]["measured"] == records(made[0])[0]["measured"]


def test_a_file_that_is_no_checkpoint(tmp_path):
    path = tmp_path / "wrong.safetensors"
    path.write_text("not a checkpoint")
    with pytest.raises(CheckpointError, match="wrong"):
        experiment.make_figures(tmp_path, models=[path], plan=PLAN, progress=False)


def test_a_corpus_shorter_than_the_length(tmp_path):
    plan = experiment.Plan(lengths=(10**9,))
    with pytest.raises(TextError, match="1000000001 are needed"):
        experiment.make_figures(tmp_path, plan=plan, progress=False)
