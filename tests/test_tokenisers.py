"""Tokenisers: nothing is lost, sizes are what was asked for, bytes are counted right."""

from __future__ import annotations

import json

import numpy as np
import pytest

from trf import tokenisers
from trf.errors import CheckpointError, ParameterError, TextError, UnknownNameError
from trf.tokenisers import BYTES, build, of, tokenise

TEXT = "The naïve cat sat — on the mat.\n\tIt cost 3 €, said the cat 😀.\n" * 40


@pytest.fixture(scope="module")
def bpe():
    pytest.importorskip("tokenizers")
    return build("bpe:280", TEXT)


def test_bytes():
    assert BYTES.decode(BYTES.encode(TEXT)).decode() == TEXT
    assert BYTES.byte_counts.tolist() == [1] * 256
    assert of({}) == of({"tokeniser": BYTES.to_dict()}) == BYTES


def test_bpe_gives_back_every_byte_and_counts_them(bpe):
    assert bpe.vocab_size == 280
    other = "Anything: \x00\x7f ÿ 漢字 🜂\r\n  spaces   \n\n"
    for text in (TEXT, other):
        ids = bpe.encode(text)
        assert bpe.decode(ids).decode() == text
        assert bpe.byte_counts[ids].sum() == len(text.encode())
    assert len(bpe.encode(TEXT)) < 0.6 * len(TEXT.encode())
    assert np.array_equal(bpe.encode(TEXT), bpe.encode(TEXT.encode()))


def test_it_is_read_back_from_json_and_training_is_reproducible(bpe):
    again = of(json.loads(json.dumps({"tokeniser": bpe.to_dict()})))
    assert np.array_equal(again.encode(TEXT), bpe.encode(TEXT))
    assert again.name == "bpe:280"
    assert build("bpe:280", TEXT.encode()).definition == bpe.definition


def test_long_texts_go_in_pieces(bpe, monkeypatch):
    monkeypatch.setattr(tokenisers, "_CHUNK", 50)
    assert bpe.decode(bpe.encode(TEXT + "x" * 120)).decode() == TEXT + "x" * 120


def test_a_short_text_gives_a_smaller_vocabulary():
    pytest.importorskip("tokenizers")
    assert build("bpe:4096", "ab ab ab").vocab_size < 300


@pytest.mark.parametrize(
    ("name", "error", "message"),
    [
        ("byte", UnknownNameError, "Did you mean 'bytes'"),
        ("bpe:many", UnknownNameError, "bpe:SIZE"),
        ("bpe:256", ParameterError, "at least 257"),
    ],
)
def test_names_that_are_refused(name, error, message):
    with pytest.raises(error, match=message):
        build(name, TEXT)


def test_texts_that_are_refused(bpe):
    with pytest.raises(TextError, match="not UTF-8"):
        bpe.encode(b"caf\xe9")
    with pytest.raises(TextError, match="of bpe:280"):
        tokenise("ab", 5, bpe.vocab_size, bpe)
    with pytest.raises(CheckpointError, match="tokeniser"):
        of({"tokeniser": {"name": "wordpiece"}})
