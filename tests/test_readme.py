"""The README's claims: its example runs and prints what it says."""

import re
from pathlib import Path

README = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")


def test_the_example_without_torch_prints_what_its_comments_say(capsys):
    example = re.findall(r"```python\n(.*?)```", README, re.DOTALL)[0]
    exec(compile(example, "README.md", "exec"), {})
    printed = capsys.readouterr().out
    assert "diverges" in printed
    assert "r1 > 1" in printed
    assert "\n74\n" in printed
    assert "\n608\n" in printed
    assert len(example.strip().splitlines()) <= 9


def test_the_other_examples_run(capsys, monkeypatch):
    monkeypatch.chdir(Path(__file__).parent.parent)
    for example in re.findall(r"```python\n(.*?)```", README, re.DOTALL)[1:]:
        exec(compile(example, "README.md", "exec"), {})
    printed = capsys.readouterr().out
    assert "r1 = 1.5648: TRF(eps=1/100) = 2048 tokens" in printed
    assert "N**(1 - eps)" in printed


def test_every_file_it_names_is_there():
    root = Path(__file__).parent.parent
    for path in re.findall(r"\]\((?!http)([^)]+)\)", README):
        assert (root / path).exists(), path


def test_every_command_it_shows_exists():
    from trf.cli import build_parser

    parser = build_parser()
    block = re.findall(r"```\n(trf .*?)```", README, re.DOTALL)[0]
    for line in block.strip().splitlines():
        words = re.findall(r'"[^"]*"|\S+', line.split("#")[0])[1:]
        bare = [word.strip('"') for word in words]
        parser.parse_args([f" {word}" if re.match(r"-[^-]", word) else word for word in bare])
