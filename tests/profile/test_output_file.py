from __future__ import annotations

import os
from pathlib import Path

import pytest

from waywiser.profile import ExistingFile, NotWritable, output_file
from waywiser.words.atomic_write import replaced_file


def test_the_file_gets_its_name_when_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    with output_file.new_output(path) as part:
        part.write_text("half")
        assert not path.exists()
        part.write_text("whole")
    assert path.read_text() == "whole"
    assert list(tmp_path.iterdir()) == [path]


def test_an_error_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(KeyError), output_file.new_output(tmp_path / "a.csv") as part:
        part.write_text("half")
        raise KeyError
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_appears_meanwhile_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    with pytest.raises(ExistingFile), output_file.new_output(path):
        path.write_text("first")
    assert path.read_text() == "first"
    assert list(tmp_path.iterdir()) == [path]


def test_a_link_to_nowhere_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.symlink_to(tmp_path / "nowhere")
    with pytest.raises(ExistingFile), output_file.new_output(path):
        pass


def test_a_file_system_without_hard_links_serves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", fail)
    with output_file.new_output(tmp_path / "a.csv") as part:
        part.write_text("whole")
    assert (tmp_path / "a.csv").read_text() == "whole"
    with pytest.raises(ExistingFile), output_file.new_output(tmp_path / "b.csv"):
        (tmp_path / "b.csv").write_text("first")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["a.csv", "b.csv"]


def test_it_is_asked_beforehand_whether_there_is_room(tmp_path: Path) -> None:
    output_file.require_output(str(tmp_path / "new.wwp"))
    (tmp_path / "old.wwp").write_text("kept")
    with pytest.raises(ExistingFile, match="not overwritten"):
        output_file.require_output(str(tmp_path / "old.wwp"))
    with pytest.raises(ExistingFile, match="is a directory"):
        output_file.require_output(str(tmp_path))
    with pytest.raises(NotWritable, match="No such file"):
        output_file.require_output(str(tmp_path / "none" / "new.wwp"))
    assert [each.name for each in tmp_path.iterdir()] == ["old.wwp"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_closed_folder_has_no_room(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(NotWritable, match="Permission denied"):
        output_file.require_output(str(tmp_path / "new.wwp"))


def test_a_folder_that_is_none_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(NotWritable, match="Not a directory"),
        output_file.new_output(tmp_path / "file" / "a"),
    ):
        pass


def test_a_file_is_replaced_whole_or_stays_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "metrics.prom"
    path.write_text("former")
    with pytest.raises(RuntimeError), replaced_file(path) as part:
        part.write_text("half")
        raise RuntimeError
    assert path.read_text() == "former"
    with replaced_file(path) as part:
        part.write_text("new")
        assert path.read_text() == "former"
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]
    assert path.stat().st_mode & 0o444 == 0o444


def test_a_name_that_is_too_long_is_not_writable(tmp_path: Path) -> None:
    with pytest.raises(NotWritable, match="File name too long"):
        output_file.require_output(str(tmp_path / ("x" * 5000)))


def test_a_profile_gets_no_name_that_is_not_utf_8() -> None:
    with pytest.raises(NotWritable, match="the name is not UTF-8"):
        output_file.require_profile_name(Path(os.fsdecode(b"n\xff.wwp")))
