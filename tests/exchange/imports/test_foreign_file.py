from __future__ import annotations

import os
from pathlib import Path

import pytest

from waywiser.exchange.imports import foreign_file
from waywiser.exchange.imports.foreign_file import (
    EmptyFile,
    ImportFailed,
    Malformed,
    clipped,
    parse_json,
    plain,
    read_text,
)


def test_a_file_above_the_limit_is_not_even_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "huge.json"
    with path.open("wb") as file:
        file.truncate(10 * 2**30)  # sparse
    monkeypatch.setattr(os, "read", lambda *_: pytest.fail("it was read"))
    with pytest.raises(ImportFailed, match="has 10,240 MiB, and at most 128 MiB are read"):
        read_text(path)


def test_a_file_that_shows_no_size_is_read_up_to_the_limit(tmp_path: Path) -> None:
    path = Path("/proc/self/smaps")
    if not path.exists():
        pytest.skip("no /proc/self/smaps, a file that tells no size, on this system")
    with pytest.raises(ImportFailed, match="has more than 99 bytes"):
        read_text(path, limit=99)
    assert len(read_text(path)) > 99


def test_too_many_parts_are_errors_before_they_are_parsed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(foreign_file, "LIMIT_PARTS", 100)
    path = tmp_path / "a.json"
    path.write_text("[" + "[]," * 60 + "[]]")
    with pytest.raises(ImportFailed, match="has more than 100 parts"):
        read_text(path)


@pytest.mark.parametrize("content", [b"", b"\n \t\r\n", b"\xef\xbb\xbf\n", b"\0\0\0"])
def test_an_empty_file_is_reported_as_such(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(content)
    with pytest.raises(EmptyFile, match="the file is empty"):
        read_text(path)


def test_what_is_no_regular_file_is_an_error_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path, kind in (
        (tmp_path / "pipe", "a FIFO"),
        (tmp_path, "a directory"),
        (Path("/dev/zero"), "a character device"),
    ):
        with pytest.raises(ImportFailed, match=f": is {kind} and not a regular file"):
            read_text(path)


def test_a_profile_is_pointed_to_what_reads_it(tmp_path: Path) -> None:
    path = tmp_path / "a.wwp"
    path.write_bytes(b"SQLite format 3\0\x10\xff")
    with pytest.raises(ImportFailed, match="is a database") as caught:
        read_text(path)
    assert "waywiser show" in str(caught.value)


def test_bytes_that_are_no_text_are_reported_with_their_line(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"one\ntwo \xff\xfe")
    with pytest.raises(ImportFailed, match="a:2: is not text"):
        read_text(path)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ('{"a": 1,\n"b": [1, 2', "x:2: the file ends in the middle: it is truncated"),
        ('{"a": "b', "x:1: the file ends in the middle"),
        ('{"a": 1,\n"b" 2}', "x:2:5: is not JSON: expecting ':' delimiter"),
        ('{"a": 1} 2', "x:1:10: is not JSON: extra data"),
        ('{"a": 1, "a": 2}', "x: an object has the key 'a' twice"),
        ("[" * 100_000, "x: is nested too deep"),
        ("[" + "9" * 10_000 + "]", "x: is not JSON: Exceeds the limit"),
    ],
)
def test_what_is_no_json_is_reported_in_one_line(text: str, what: str) -> None:
    with pytest.raises(Malformed) as caught:
        parse_json(text, "x")
    assert str(caught.value).startswith(what)
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 400


def test_text_from_a_file_is_one_short_printable_line() -> None:
    assert clipped("a\nb\x1b[31m\ud800 c") == "a b [31m c"
    assert len(clipped("x" * 10**6)) == foreign_file.LIMIT_TEXT


def test_provenance_is_kept_short_whatever_it_is() -> None:
    deep: list[object] = []
    for _ in range(5000):
        deep = [deep]
    known = {"a": "x" * 1000, "b": 10**400, "c": float("nan"), "d": deep, "e": None, "f": 3}
    kept = plain(known, known)
    assert kept["e"] is None and kept["f"] == 3 and kept["d"] == "…"
    assert all(len(str(value)) <= foreign_file.LIMIT_TEXT for value in kept.values())
