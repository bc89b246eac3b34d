from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from waywiser.machine.system_files import SystemFiles, format_list, parse_list


@given(st.sets(st.integers(0, 200)))
def test_a_list_reads_back(numbers: set[int]) -> None:
    ordered = tuple(sorted(numbers))
    assert parse_list(format_list(ordered)) == ordered


def test_runs_are_joined() -> None:
    assert format_list((0, 1, 2, 3, 8)) == "0-3,8"
    assert parse_list("0-3,8\n") == (0, 1, 2, 3, 8)
    assert parse_list("") == ()


def test_what_is_missing_reads_as_nothing(tmp_path: Path) -> None:
    files = SystemFiles(tmp_path)
    (tmp_path / "folder").mkdir()
    assert files.text("/nowhere") is None
    assert files.text("/folder") is None
    assert files.integer("/nowhere") is None
    assert files.chosen("/nowhere") is None
    assert files.fields("/nowhere") == {}
    assert files.find("/nowhere/*") == []
    assert files.names("/nowhere") == []


def test_small_files_are_read_below_the_root(tmp_path: Path) -> None:
    files = SystemFiles(tmp_path)
    (tmp_path / "sys").mkdir()
    (tmp_path / "sys/a").write_text("always [madvise] never\n")
    (tmp_path / "sys/b").write_text("42\n")
    (tmp_path / "sys/c").write_text('one: 1\ntwo : 2 = x\nNAME="a: b"\none: 3\n')
    assert files.chosen("/sys/a") == "madvise"
    assert (files.integer("/sys/b"), files.integer("/sys/a")) == (42, None)
    assert files.fields("/sys/c") == {"one": "1", "two": "2 = x", "NAME": "a: b"}
    assert files.find("/sys/*") == ["/sys/a", "/sys/b", "/sys/c"]
    assert files.names("/sys") == ["a", "b", "c"]
