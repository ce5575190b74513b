"""Plain text from the markup of Wikipedia: templates, tables, references and files go."""

from __future__ import annotations

import html
import re

_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_DROPPED = re.compile(
    r"<(ref|math|gallery|timeline|imagemap|score|syntaxhighlight|source|pre|nowiki|code|chem)\b"
    r"[^<>]*?(?:/>|>.*?</\1\s*>)",
    re.DOTALL | re.IGNORECASE,
)
_TAG = re.compile(r"</?[a-zA-Z][^<>]*>")
_TEMPLATE = re.compile(r"\{\{[^{}]*\}\}")
_TABLE = re.compile(r"^[ :]*\{\|(?:(?!\{\|).)*?^[ :]*\|\}", re.DOTALL | re.MULTILINE)
_MEDIA = re.compile(
    r"\[\[\s*:?(?:File|Image|Category|[a-z]{2,3}|simple):(?:[^\[\]]|\[\[[^\[\]]*\]\]|\[[^\[\]]*\])*\]\]",
    re.IGNORECASE,
)
_LINK = re.compile(r"\[\[(?!\s*(?:File|Image):)(?:[^\[\]|]*\|)*([^\[\]|]*)\]\]", re.IGNORECASE)
_URL = re.compile(r"\[(?:https?:|ftp:)?//[^\s\]]+\s*([^\]]*)\]")
_HEADING = re.compile(r"^(={2,6})[ \t]*(.*?)[ \t]*\1[ \t]*$", re.MULTILINE)
_BACK_MATTER = re.compile(
    r"^==[ \t]*(?:see also|references|notes|footnotes|external links|further reading|bibliography"
    r"|sources|citations|notes and references)[ \t]*==[ \t]*$.*?(?=^==[^=]|\Z)",
    re.DOTALL | re.MULTILINE | re.IGNORECASE,
)
_LIST_MARK = re.compile(r"^[*#:;]+[ \t]*", re.MULTILINE)
_LEFT_OVER = re.compile(r"^[ \t]*(?:[|!{}].*|__[A-Z]+__)$", re.MULTILINE)
_EMPTY_BRACKETS = re.compile(r"[ \t]*\([\s,;:]*\)")
_AFTER_A_GAP = re.compile(r"(?<=\()[\s,;]+|[ \t]+(?=[,;.](?:\s|$))")


def plain(markup: str) -> str:
    """What a reader of the article would read, paragraphs and headings, without back matter.

    Example:
        >>> plain("'''Cats''' are [[mammal|mammals]].<ref>a book</ref>{{cn|date=2016}}")
        'Cats are mammals.'
    """
    text = _COMMENT.sub("", markup)
    text = _DROPPED.sub("", text)
    text = _until_stable(_TEMPLATE, text)
    text = _until_stable(_TABLE, text)
    text = _BACK_MATTER.sub("", text)
    while "[[" in text and (changed := _MEDIA.sub("", _LINK.sub(r"\1", text))) != text:
        text = changed
    text = _URL.sub(r"\1", text)
    text = _TAG.sub("", text)
    text = _HEADING.sub(r"\2", text)
    text = text.replace("'''", "").replace("''", "")
    text = _LIST_MARK.sub("", text)
    text = _LEFT_OVER.sub("", text)
    text = html.unescape(text).replace("\xa0", " ")
    text = _AFTER_A_GAP.sub("", _EMPTY_BRACKETS.sub("", text))
    text = re.sub(r"[ \t]+", " ", text)
    text = re.sub(r" ?\n ?", "\n", text)
    return re.sub(r"\n{3,}", "\n\n", text).strip()


def _until_stable(pattern: re.Pattern[str], text: str, by: str = "") -> str:
    """Replace the innermost first, until there is none left."""
    count = 1
    while count:
        text, count = pattern.subn(by, text)
    return text
