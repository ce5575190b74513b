"""Checkpoints: what is written is read back, and nothing else is accepted."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace

import pytest
import safetensors.torch
import sympy
import torch

from trf import encodings
from trf.encodings import Encoding
from trf.encodings.sandwich import sandwich
from trf.errors import CheckpointError
from trf.nn import Decoder, DecoderConfig, checkpoint, load, read_header, save, zoo_names


@pytest.fixture
def model():
    torch.manual_seed(0)
    made = Decoder(DecoderConfig("kerple-log", n_layer=2, n_head=2, n_embd=16, vocab_size=50))
    made.provenance = {"corpus": {"name": "code"}, "valid_bits_per_byte": 2.5}
    return made


def test_round_trip(model, tmp_path):
    path = save(model, tmp_path / "new" / "m.safetensors")
    read = load(path)
    assert read.config == model.config
    assert read.provenance == model.provenance
    assert not read.training
    tokens = torch.arange(20)[None]
    assert torch.equal(read(tokens), model(tokens))
    assert [p.name for p in path.parent.iterdir()] == ["m.safetensors"]


def test_half_precision_halves_the_file_and_keeps_the_bias_exact(model, tmp_path):
    full = save(model, tmp_path / "full.safetensors")
    half = save(model, tmp_path / "half.safetensors", half=True)
    assert half.stat().st_size < 0.65 * full.stat().st_size
    read = load(half)
    assert all(p.dtype == torch.float32 for p in read.parameters())
    assert torch.equal(read.bias.learnable["r1"], model.bias.learnable["r1"])
    tokens = torch.arange(20)[None]
    assert torch.allclose(read(tokens), model(tokens), atol=5e-3)


def test_header_is_read_without_the_weights(model, tmp_path):
    header = read_header(save(model, tmp_path / "m.safetensors"))
    assert header["config"]["encoding"] == "kerple-log"
    assert header["provenance"]["valid_bits_per_byte"] == 2.5


def test_a_folder_with_a_model_is_the_model(model, tmp_path):
    save(model, tmp_path / checkpoint.FILE_NAME)
    assert load(tmp_path).config == model.config
    assert load(model) is model


def halves(n_head):
    return tuple(sympy.Rational(h, 2) for h in range(1, n_head + 1))


MINE = {
    "root": Encoding.from_expression("-r*sqrt(n)"),
    "latex": Encoding.from_expression(r"-r_1\log(1+r_2|m-n|)"),
    "real": Encoding.from_expression("-abs(s)*n", assume={"s": "real"}),
    "fixed": Encoding.from_expression("-m*n**r", fixed={"m": halves}),
    "keyword": Encoding.from_expression("-lambda*n"),
    "sandwich": sandwich(8),
    "rope": replace(encodings.get("rope"), settings={"base": 500.0}),
}


@pytest.mark.parametrize("name", MINE)
def test_an_encoding_of_ones_own_travels_with_the_checkpoint(name, tmp_path):
    mine = MINE[name]
    made = Decoder(DecoderConfig("mine", n_layer=1, n_head=2, n_embd=8), encoding=mine)
    path = save(made, tmp_path / "m.safetensors")
    tokens = torch.arange(30)[None]
    for read in (load(path), load(path, encoding=mine)):
        assert torch.equal(read(tokens), made(tokens))
        assert read.encoding.title == mine.title
        assert read.encoding.answer().status == mine.answer().status
        if mine.bias is not None:
            assert read.bias.values() == made.bias.values()
    again = save(load(path), tmp_path / "again.safetensors")
    assert read_header(again)["config"] == read_header(path)["config"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"expression": "__import__('os')"}, "can't be run"),
        ({"expression": "-r*k"}, "no value for k"),
        ({"expression": "-r*Sum(1/(k+n+1), (k, 1, 10**9))"}, "can't be evaluated"),
        ({"fixed": {"r": ["n"]}}, "must be numbers"),
        ({"fixed": {"r": ["1"]}}, "1 values for 2 heads"),
        ({"fixed": 3}, "can't be read"),
        ({"kind": "magic"}, "can't be read"),
        ({"learnable": [{"name": "r"}]}, "can't be read"),
        ({"mechanism": "magic"}, "unknown mechanism"),
        ({"settings": {"base": "x"}}, "can't be read"),
    ],
)
def test_a_definition_that_cannot_be_used(change, message, tmp_path):
    made = Decoder(DecoderConfig("mine", n_layer=1, n_head=2, n_embd=8), encoding=MINE["root"])
    config = made.config.to_dict()
    config["custom"] = {**config["custom"], **change}
    path = tmp_path / "m.safetensors"
    write(path, {"format": 1, "config": config}, made.state_dict())
    assert message in one_line(path)


def test_the_catalogue_needs_no_definition(model):
    assert "custom" not in model.config.to_dict()


@pytest.mark.parametrize("name", ["t5", "tisa", "fire", "learned", "xpos", "rerope"])
def test_every_kind_of_encoding_travels(name, tmp_path):
    made = Decoder(DecoderConfig(name, n_layer=1, n_head=2, n_embd=8, train_length=40))
    read = load(save(made, tmp_path / "m.safetensors"))
    tokens = torch.arange(30)[None]
    assert torch.equal(read(tokens), made(tokens))


def test_nothing_there_names_the_shipped_ones(monkeypatch, tmp_path, model):
    monkeypatch.setattr(checkpoint, "ZOO", tmp_path)
    save(model, tmp_path / "alibi.safetensors")
    assert zoo_names() == ["alibi"]
    assert load("alibi").config == model.config
    (tmp_path / "alibi").mkdir()
    monkeypatch.chdir(tmp_path)
    assert load("alibi").config == model.config
    with pytest.raises(CheckpointError, match="can't read xxx"):
        load("x" * 5000)
    with pytest.raises(CheckpointError, match=r"neither a file nor.*Did you mean 'alibi'"):
        load("alibbi")


def one_line(path):
    with pytest.raises(CheckpointError) as caught:
        load(path)
    message = str(caught.value)
    assert "\n" not in message
    assert str(path) in message
    return message


def test_a_folder_without_a_model(tmp_path):
    assert "folder" in one_line(tmp_path)


@pytest.mark.parametrize(
    "content", [b"", b"hello, I am a text", b"\xff" * 4000, b"\x08" + b"\0" * 7]
)
def test_not_safetensors(tmp_path, content):
    path = tmp_path / "wrong.safetensors"
    path.write_bytes(content)
    assert "not a safetensors file" in one_line(path)


def test_a_pickle_is_never_opened(tmp_path):
    path = tmp_path / "evil.pt"
    path.write_bytes(pickle.dumps(Bomb(tmp_path / "exploded")))
    assert "not a safetensors file" in one_line(path)
    assert not (tmp_path / "exploded").exists()


class Bomb:
    def __init__(self, at):
        self.at = at

    def __reduce__(self):
        return (open, (str(self.at), "w"))


def test_safetensors_of_someone_else(tmp_path):
    path = tmp_path / "other.safetensors"
    safetensors.torch.save_file({"x": torch.zeros(3)}, path)
    assert "without trf's configuration" in one_line(path)


def write(path, header, tensors):
    safetensors.torch.save_file(tensors, path, metadata={"trf": json.dumps(header)})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_embd": 32}, "embedding"),
        ({"n_layer": 3}, "layers"),
        ({"n_layer": 10**9}, "layers"),
        ({"vocab_size": 10**12}, "embedding"),
        ({"n_head": 5}, "can't be run"),
        ({"encoding": "alibi"}, "does not fit"),
        ({"encoding": "nonsense"}, "unknown encoding"),
        ({"extra": 1}, "no usable configuration"),
    ],
)
def test_a_configuration_that_does_not_fit(model, tmp_path, change, message):
    path = tmp_path / "m.safetensors"
    config = {**model.config.to_dict(), **change}
    write(path, {"format": 1, "config": config}, model.state_dict())
    assert message in one_line(path)


def test_missing_configuration_and_other_format(model, tmp_path):
    path = tmp_path / "m.safetensors"
    write(path, {"format": 1}, model.state_dict())
    assert "no usable configuration" in one_line(path)
    write(path, {"format": 99, "config": {}}, model.state_dict())
    assert "format" in one_line(path)


def test_a_missing_tensor(model, tmp_path):
    path = tmp_path / "m.safetensors"
    tensors = model.state_dict()
    del tensors["blocks.1.mlp.0.weight"]
    write(path, {"format": 1, "config": model.config.to_dict()}, tensors)
    assert "blocks.1.mlp.0.weight" in one_line(path)


def test_a_truncated_file(model, tmp_path):
    path = save(model, tmp_path / "m.safetensors")
    path.write_bytes(path.read_bytes()[:-100])
    one_line(path)


def test_unwritable_place_leaves_nothing(model, tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(CheckpointError, match="can't write"):
        save(model, tmp_path / "file" / "m.safetensors")
    (tmp_path / "folder.safetensors").mkdir()
    with pytest.raises(CheckpointError, match="can't write"):
        save(model, tmp_path / "folder.safetensors")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["file", "folder.safetensors"]
