"""Files are written whole, or not at all."""

import pytest

from trf import files


def test_a_failed_write_leaves_the_old_file(tmp_path):
    path = files.write_json(tmp_path / "new" / "a.json", {"a": 1})
    assert path.read_text() == '{"a": 1}\n'

    def half(temporary):
        temporary.write_text("half")
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        files.write(path, half)
    with pytest.raises(ValueError, match="JSON"):
        files.write_json(path, {"a": float("nan")})
    assert path.read_text() == '{"a": 1}\n'
    assert [file.name for file in path.parent.iterdir()] == ["a.json"]


def test_two_processes_do_not_share_a_temporary_file(tmp_path, monkeypatch):
    def other_process(temporary):
        temporary.write_text("mine")
        monkeypatch.setattr(files.os, "getpid", lambda: -1)
        files.write_text(tmp_path / "a.txt", "theirs")

    assert files.write(tmp_path / "a.txt", other_process).read_text() == "mine"
