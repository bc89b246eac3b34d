"""The index of a folder: it saves reading, and never says what a profile does not say."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from kept import RESULTS, unpacked
from waywiser.analysis.history import index
from waywiser.analysis.history.index import index_of, read_nights
from waywiser.analysis.history.night import read_night

CHECKS = [RESULTS / "2026-11-22-check-two-gpus" / f"check-{n}.wwp.xz" for n in (1, 2, 3)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of three profiles that have not changed for a while."""
    found = tmp_path / "nodes"
    found.mkdir()
    for n, packed in enumerate(CHECKS):
        unpacked(packed, found / f"{n}.wwp")
    return found


def settle(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets files count as unchanged for long."""
    monkeypatch.setattr(index, "SETTLED_NS", -(10**18))


def test_what_was_read_is_not_read_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settle(monkeypatch)
    first = read_nights([str(folder)])
    again = read_nights([str(folder)])
    assert (first.read, again.read) == (3, 0)
    assert again.nights == first.nights
    assert again.nights[0] == read_night(str(folder / "0.wwp"))


def test_a_profile_that_changed_is_read_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settle(monkeypatch)
    read_nights([str(folder)])
    times = os.stat(folder / "0.wwp")
    (folder / "0.wwp").write_bytes((folder / "1.wwp").read_bytes())
    os.utime(folder / "0.wwp", ns=(times.st_atime_ns, times.st_mtime_ns))
    found = read_nights([str(folder)])
    assert found.read == 1
    assert found.nights[0].paths == found.nights[1].paths


def test_profiles_that_changed_just_now_are_not_remembered(folder: Path) -> None:
    for path in folder.iterdir():
        os.utime(path)
    assert time.time_ns() - (folder / "0.wwp").stat().st_mtime_ns < index.SETTLED_NS
    read_nights([str(folder)])
    assert read_nights([str(folder)]).read == 3


@pytest.mark.parametrize(
    "content",
    [b"", b"\xff\xfe", b"{}\n", b'{"kind": "waywiser history index", "version": "0"}\n[1]\n'],
    ids=["empty", "binary", "no head", "older"],
)
def test_an_index_that_is_lost_or_damaged_is_made_anew(
    folder: Path, content: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    settle(monkeypatch)
    first = read_nights([str(folder)])
    whole = index_of(folder).read_bytes()
    index_of(folder).unlink()
    assert read_nights([str(folder)]).nights == first.nights
    assert index_of(folder).read_bytes() == whole
    index_of(folder).write_bytes(whole[: len(whole) // 2])
    assert read_nights([str(folder)]).nights == first.nights
    index_of(folder).write_bytes(content)
    assert read_nights([str(folder)]).nights == first.nights


def test_a_file_that_is_no_index_stays(folder: Path) -> None:
    index_of(folder).write_text("my notes\n")
    assert len(read_nights([str(folder)]).nights) == 3
    assert index_of(folder).read_text() == "my notes\n"


def test_the_index_lies_beside_the_folder_and_names_no_folder(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settle(monkeypatch)
    read_nights([str(folder)])
    assert index_of(folder) == folder.parent / "nodes.history"
    assert str(folder) not in index_of(folder).read_text()


def test_damaged_profiles_are_one_line_and_are_remembered(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settle(monkeypatch)
    whole = (folder / "2.wwp").read_bytes()
    (folder / "2.wwp").write_bytes(whole[: len(whole) // 2])
    (folder / "3.wwp").write_text("no profile\n")
    for reads in (4, 0):
        found = read_nights([str(folder), str(folder / "missing.wwp")])
        assert found.read == reads + 1
        assert len(found.nights) == 2
        assert "truncated" in found.unreadable[str(folder / "2.wwp")]
        assert found.unreadable[str(folder / "3.wwp")] == "is not a profile"
        assert found.unreadable[str(folder / "missing.wwp")] == "there is no such file"


def test_several_processes_read_the_same(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = read_nights([str(folder)])
    index_of(folder).unlink(missing_ok=True)
    monkeypatch.setattr(index, "FEW", 1)
    assert read_nights([str(folder)]).nights == one.nights
    index_of(folder).unlink(missing_ok=True)
    monkeypatch.setattr(index, "COMMAND", ("false",))
    assert read_nights([str(folder)]).nights == one.nights, "a process that fails costs nothing"


def test_an_empty_folder_says_so(tmp_path: Path) -> None:
    assert read_nights([str(tmp_path)]).unreadable == {str(tmp_path): "no *.wwp is in this folder"}
