"""Corpora: fixed order, split by file, and clear refusals."""

from __future__ import annotations

import random

import numpy as np
import pytest
import torch

from trf import corpora
from trf.errors import TextError, UnknownNameError


def folder_of(tmp_path, documents, suffix=".txt"):
    names = list(documents)
    random.shuffle(names)  # the order of creation must not matter
    for name in names:
        path = tmp_path / f"{name}{suffix}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(documents[name], "utf-8")
    return f"path:{tmp_path}"


def test_code_is_real_and_split_by_file():
    corpus = corpora.load("code")
    assert corpus.n_documents > 300
    assert 4e6 < len(corpus.train) < 12e6
    assert len(corpus.valid) > 100_000
    assert len(corpus.test) > 100_000
    assert corpus.sha256 == corpora.load("code").sha256
    assert b"def dataclass(" in corpus.train + corpus.valid + corpus.test


def test_every_document_is_in_one_split_and_order_is_fixed(tmp_path):
    documents = {f"sub{i % 3}/doc{i}": f"<document {i}>" for i in range(60)}
    first = corpora.load(folder_of(tmp_path / "a", documents))
    again = corpora.load(folder_of(tmp_path / "b", documents))
    assert (first.sha256, first.train) == (again.sha256, again.train)
    parts = [first.split(name) for name in corpora.SPLITS]
    for i in range(60):
        assert sum(f"<document {i}>".encode() in part for part in parts) == 1
    assert [part.count(b"<document") for part in parts] == [54, 3, 3]


def test_other_text_has_another_hash(tmp_path):
    a = corpora.load(folder_of(tmp_path / "a", {"x": "one", "y": "two", "z": "three"}))
    b = corpora.load(folder_of(tmp_path / "b", {"x": "one", "y": "two", "z": "threE"}))
    assert a.sha256 != b.sha256


def test_one_file_is_split_by_position_between_characters(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("é" * 1001, "utf-8")
    corpus = corpora.load(f"path:{path}")
    parts = [corpus.split(name).decode("utf-8") for name in corpora.SPLITS]
    assert "".join(parts) == "é" * 1001
    assert [len(part) for part in parts] == [901, 50, 50]


def test_only_text_files_of_a_folder_are_read(tmp_path):
    name = folder_of(tmp_path, {"a": "text", "b": "text", "c": "text"})
    (tmp_path / "image.png").write_bytes(b"\x89PNG\xff")
    assert corpora.load(name).n_documents == 3


def test_what_cannot_be_read(tmp_path):
    with pytest.raises(TextError, match="nothing at"):
        corpora.load(f"path:{tmp_path}/missing")
    with pytest.raises(TextError, match="holds no text files"):
        corpora.load(f"path:{tmp_path}")
    (tmp_path / "a.txt").write_bytes(b"caf\xe9")
    with pytest.raises(TextError, match=r"a\.txt is not UTF-8 text \(byte 3\)"):
        corpora.load(f"path:{tmp_path}")
    with pytest.raises(TextError, match="not UTF-8"):
        corpora.read_text(tmp_path / "a.txt")
    (tmp_path / "a.txt").write_bytes(b"")
    with pytest.raises(TextError, match="empty"):
        corpora.load(f"path:{tmp_path}/a.txt")
    with pytest.raises(TextError, match="can't read"):
        corpora.read_text(tmp_path)


def test_unknown_names():
    with pytest.raises(UnknownNameError, match="Did you mean 'code'"):
        corpora.load("coed")
    with pytest.raises(UnknownNameError, match="valid"):
        corpora.load("code").split("validation")


@pytest.mark.parametrize(
    "text",
    [
        "né",
        "né".encode(),
        [110, 195, 169],
        np.array([110, 195, 169]),
        torch.tensor([110, 195, 169]),
    ],
)
def test_texts_become_tokens(text):
    tokens = corpora.tokenise(text)
    assert tokens.tolist() == [110, 195, 169]
    assert tokens.dtype == np.int64


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the text is empty"),
        ([], "the text is empty"),
        ("abc", "has 3 tokens; it must have at least 5"),
        ([0, 1, 2, 3, 256], r"0 \.\.\. 255"),
        ([0, 1, 2, 3, -1], r"0 \.\.\. 255"),
        ([0.5] * 9, "integer token ids"),
        (np.zeros((3, 3), dtype=int), "integer token ids"),
    ],
)
def test_texts_that_are_refused(text, message):
    with pytest.raises(TextError, match=message):
        corpora.tokenise(text, at_least=5)
