from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from waywiser.words import regular_file
from waywiser.words.regular_file import NotRegular, TooLarge, open_regular, read_regular


def test_a_file_is_read_whole_up_to_the_limit(tmp_path: Path) -> None:
    path = tmp_path / "a"
    for content in (b"", b"x", bytes(200_000)):
        path.write_bytes(content)
        assert read_regular(path, max(1, len(content))) == content
        if len(content) > 1:
            with pytest.raises(TooLarge, match="has 200,000 bytes, and at most 199,999 bytes"):
                read_regular(path, len(content) - 1)


def test_what_is_no_regular_file_is_an_error_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("pipe")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "socket"))
    for path, kind in (
        (tmp_path, "a directory"),
        (tmp_path / "pipe", "a FIFO"),
        (tmp_path / "link", "a FIFO"),
        (tmp_path / "socket", "a socket"),
        (Path("/dev/zero"), "a character device"),
    ):
        with pytest.raises(NotRegular) as caught:
            read_regular(path, 10)
        assert caught.value.strerror == f"is {kind} and not a regular file"


def test_a_fifo_that_takes_the_name_before_it_is_opened_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a"
    path.touch()
    opened = os.open

    def exchanged(name: Path, flags: int) -> int:
        path.unlink()
        os.mkfifo(path)
        return opened(name, flags)

    monkeypatch.setattr(regular_file.os, "open", exchanged)
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(NotRegular, match="a FIFO"):
        read_regular(path, 10)
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_file_that_reports_no_size_is_read_up_to_the_limit() -> None:
    path = Path("/proc/self/smaps")
    if not path.exists():
        pytest.skip("no /proc/self/smaps, a file that reports no size, on this system")
    with pytest.raises(TooLarge, match="has more than 99 bytes"):
        read_regular(path, 99)
    assert len(read_regular(path, 2**24)) > 99


def test_a_file_that_grows_while_it_is_read_is_read_up_to_the_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"start")
    read, counts = os.read, []

    def grown(descriptor: int, count: int) -> bytes:
        with path.open("ab") as file:
            file.write(bytes(2**20))
        counts.append(count)
        return read(descriptor, count)

    monkeypatch.setattr(regular_file.os, "read", grown)
    with pytest.raises(TooLarge):
        read_regular(path, 300_000)
    assert sum(counts) <= 300_000 + len(counts)


def test_the_descriptor_is_not_inherited(tmp_path: Path) -> None:
    (tmp_path / "a").touch()
    with open_regular(tmp_path / "a") as descriptor:
        assert not os.get_inheritable(descriptor)
