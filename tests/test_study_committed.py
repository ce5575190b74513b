"""The committed report and numbers of the experiment are what its cells give."""

import json
import re
import shutil
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("matplotlib")

from trf.study.report import PARTS, fill, make_study

EXPERIMENT = Path(__file__).parent.parent / "figures" / "experiment"


def same(a, b):
    """Alike up to the last digits of numbers."""
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, float):
        return a == pytest.approx(b, rel=2e-3, abs=1e-6)
    return a == b


def test_same_tells_numbers_apart():
    assert same({"a": [1.0, "b"]}, {"a": [1.0005, "b"]})
    assert not same({"a": [1.0]}, {"a": [1.01]})
    assert not same({"a": 1}, {"a": 2})


@pytest.mark.slow
def test_the_report_and_the_numbers_come_from_the_cells(tmp_path):
    for name in ("report.in.md", "cost.json"):
        shutil.copy(EXPERIMENT / name, tmp_path)
    shutil.copytree(EXPERIMENT / "cells", tmp_path / "cells")
    made = {path.name for path in make_study(tmp_path, progress=False)}
    for part in PARTS:
        for kind in ("json", "pdf", "png"):
            assert f"{part.NAME}.{kind}" in made
            assert (EXPERIMENT / f"{part.NAME}.{kind}").exists()
        new, committed = (
            json.loads((folder / f"{part.NAME}.json").read_text("utf-8"))
            for folder in (tmp_path, EXPERIMENT)
        )
        assert same(new, committed), part.NAME
    new, committed = (
        (folder / "README.md").read_text("utf-8").split() for folder in (tmp_path, EXPERIMENT)
    )
    assert len(new) == len(committed)
    differ = [(a, b) for a, b in zip(new, committed, strict=True) if a != b]
    assert len(differ) <= 0.01 * len(new), differ[:10]  # a last digit that is rounded otherwise


def test_no_number_is_typed_in_the_text_of_the_results():
    text = (EXPERIMENT / "report.in.md").read_text("utf-8")
    results = re.sub(r"\{\{[a-z0-9_]+\}\}", "", text[text.index("## 1.") : text.index("## Limits")])
    assert not re.findall(r"(?<![\w.])\d+\.\d+", results)
    with pytest.raises(Exception, match="no part gives"):
        fill(text, {})
