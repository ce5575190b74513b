"""Corpora: fixed order, split by file, and clear refusals."""

from __future__ import annotations

import json
import random

import numpy as np
import pytest
import torch

from trf import corpora
from trf.corpora import hub, sources
from trf.corpora.wikitext import plain
from trf.errors import MissingExtraError, TextError, UnknownNameError


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


@pytest.fixture(scope="module")
def slots():
    """The slots whose packages are installed."""
    try:
        return {name: corpora.load(name) for name in ("encyclopedia", "books", "mixed")}
    except MissingExtraError as error:
        pytest.skip(str(error))


def test_each_slot_is_large_enough_and_clean(slots):
    for corpus in slots.values():
        size = sum(len(corpus.split(name)) for name in corpora.SPLITS)
        assert 3e6 < size < 15e6
        assert min(len(corpus.valid), len(corpus.test)) > 9217 * 16
        text = corpus.train.decode("utf-8")
        for markup in ("{{", "}}", "[[", "]]", "<ref", "&nbsp;", "<br"):
            assert markup not in text
        assert len(corpus.sha256) == 64
        assert "public domain" in corpus.licence


def test_no_paragraph_of_a_held_out_document_was_trained_on(slots):
    for name in ("encyclopedia", "books"):
        corpus = slots[name]
        paragraphs = {p for p in corpus.train.split(b"\n") if len(p) > 400}
        for split in ("valid", "test"):
            held_out = [p for p in corpus.split(split).split(b"\n") if len(p) > 400]
            shared = sum(len(p) for p in held_out if p in paragraphs)
            assert shared < 0.002 * sum(map(len, held_out))


def test_mixed_is_half_and_half(slots):
    for split in corpora.SPLITS:
        halves = [slots[name].split(split) for name in ("encyclopedia", "books")]
        mixed = slots["mixed"].split(split)
        assert mixed[:1000] == halves[0][:1000]
        assert abs(mixed.index(halves[1][:1000]) - len(mixed) / 2) < 0.01 * len(mixed)


def test_articles_become_plain_text():
    markup = (
        "{{Infobox|a={{b|c}}}}\n'''Cats''' [[File:cat.jpg|thumb|a [[cat]] [sic]]]are "
        "[[mammal|mammals]] ({{IPA|x}}),<ref name=a/> ''see'' [http://x.org here].\n\n\n\n"
        "== Life ==\n* nine\n{| class=a\n|-\n| x\n|}\n<!-- hidden -->5&nbsp;kg &lt; 6\n"
        "== See also ==\n* [[Dog]]\n"
    )
    assert plain(markup) == "Cats are mammals, see here.\n\nLife\nnine\n\n5 kg < 6"


@pytest.mark.parametrize("name", ["encyclopedia", "books", "mixed"])
def test_a_package_that_is_missing_names_the_remedy(name, monkeypatch):
    monkeypatch.setattr(sources.importlib.util, "find_spec", lambda module: None)
    with pytest.raises(MissingExtraError, match=r"pip install 'trf\[corpora\]'"):
        corpora.load(name)


def test_a_package_is_read_and_never_imported(tmp_path, monkeypatch):
    (tmp_path / "bible" / "data").mkdir(parents=True)
    (tmp_path / "bible" / "__init__.py").write_text("raise SystemExit('imported')")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(TextError, match=r"has no data/kjv\.jsonl"):
        dict(sources.king_james())
    path = tmp_path / "bible" / "data" / "kjv.jsonl"
    path.write_text('{"book": "Genesis"}')
    with pytest.raises(TextError, match="can't read"):
        dict(sources.king_james())
    verses = [
        {"book": "Genesis", "chapter": c, "verse": v, "text": f"{c}:{v}."}
        for c, v in ((1, 1), (1, 2), (2, 1))
    ]
    path.write_text("\n".join(map(json.dumps, verses)))
    assert dict(sources.king_james()) == {
        "Genesis": "Genesis\n\nChapter 1\n1:1. 1:2.\n\nChapter 2\n2:1.\n"
    }


def test_one_title_in_two_sources_is_one_document(monkeypatch):
    monkeypatch.setattr(sources, "summaries", lambda: ((f"T{i}", f"lead {i}\n") for i in range(40)))
    monkeypatch.setattr(sources, "articles", lambda: ((f"t{i}", f"body {i}\n") for i in range(40)))
    monkeypatch.setattr(sources, "factbook", lambda: iter(()))
    corpus = corpora.load("encyclopedia")
    assert corpus.n_documents == 40
    for split in corpora.SPLITS:
        text = corpus.split(split).decode()
        assert all(f"body {i}\n" in text for i in range(40) if f"lead {i}\n" in text)


def rows_of(path, count, column="text"):
    lines = [json.dumps({"id": i, column: f"row {i} é"}, ensure_ascii=False) for i in range(count)]
    path.write_text("\n".join(lines), "utf-8")


def test_a_local_data_set_with_splits(tmp_path):
    pytest.importorskip("datasets")
    for split, count in (("train", 30), ("validation", 4), ("test", 5)):
        rows_of(tmp_path / f"{split}.jsonl", count)
    corpus = corpora.load(f"hub:{tmp_path}")
    assert [corpus.split(s).count(b"row") for s in corpora.SPLITS] == [30, 4, 5]
    assert corpus.valid.decode().splitlines() == [f"row {i} é" for i in range(4)]
    assert corpus.n_documents == 39
    assert corpus.sha256 == corpora.load(f"hub:{tmp_path}").sha256


def test_a_local_data_set_without_splits_is_dealt_by_row(tmp_path):
    pytest.importorskip("datasets")
    rows_of(tmp_path / "train.jsonl", 40, column="content")
    corpus = corpora.load(f"hub:{tmp_path}")
    assert [corpus.split(s).count(b"row") for s in corpora.SPLITS] == [36, 2, 2]


def test_a_data_set_is_read_only_as_far_as_it_fits(tmp_path):
    pytest.importorskip("datasets")
    rows_of(tmp_path / "train.jsonl", 40)
    (rows,) = hub.read(f"hub:{tmp_path}", [20, 5, 5])
    assert [row.decode() for row in rows] == ["row 0 é", "row 1 é", "row 2 é"]


def test_data_sets_that_cannot_be_read(tmp_path, monkeypatch):
    datasets = pytest.importorskip("datasets")
    with pytest.raises(TextError, match="Known: hub:wikitext-103"):
        corpora.load(f"hub:{tmp_path}")
    rows_of(tmp_path / "train.jsonl", 3, column="words")
    with pytest.raises(TextError, match="no column of text"):
        corpora.load(f"hub:{tmp_path}")
    asked = []

    def unreachable(path, config, streaming):
        asked.append((path, config, streaming))
        raise ConnectionError("no route")

    monkeypatch.setattr(datasets, "load_dataset", unreachable)
    for name in ("hub:wikitext-103", "hub:owner/name:config"):
        with pytest.raises(TextError, match="no route"):
            corpora.load(name)
    assert asked == [
        ("Salesforce/wikitext", "wikitext-103-raw-v1", True),
        ("owner/name", "config", True),
    ]
