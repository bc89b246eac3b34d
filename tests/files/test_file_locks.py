"""Locks of a file system, and of one that has none."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from files.other_file_systems import answers, output_of, run_program
from waywiser.files.file_locks import has_range_locks, is_of_one_kernel, take_lock

TRIED = """
import os, sys
from waywiser.files.file_locks import has_range_locks, take_lock
for flags in (os.O_RDWR, os.O_RDONLY):
    file = os.open(sys.argv[1], flags)
    print(take_lock(file), has_range_locks(file), end=" ")
    os.close(file)
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    made = tmp_path / "file"
    made.write_bytes(b"x")
    return made


def test_one_of_two_gets_a_lock(file: Path) -> None:
    one, other = (os.open(file, os.O_RDWR) for _ in range(2))
    assert take_lock(one) is True
    assert take_lock(other) is False
    os.close(one)
    assert take_lock(other) is True
    os.close(other)


def test_a_trial_of_range_locks_leaves_none(file: Path) -> None:
    one, other = (os.open(file, os.O_RDONLY) for _ in range(2))
    assert has_range_locks(one) and has_range_locks(other) and has_range_locks(one)
    assert not [line for line in Path("/proc/locks").read_text().splitlines() if _is_of(line, file)]
    os.close(one)
    os.close(other)


def _is_of(line: str, file: Path) -> bool:
    return f":{file.stat().st_ino} " in line


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        ({}, "True True True True"),
        ({"flock": errno.ENOSYS, "ranges": errno.ENOLCK}, "None False None False"),
        ({"flock": errno.EOPNOTSUPP, "ranges": errno.EINVAL}, "None False None False"),
        ({"flock": -1}, "True True None True"),
        ({"ranges": errno.EAGAIN}, "True True True True"),
    ],
)
def test_other_file_systems(
    file: Path, preloaded: Path, numbers: dict[str, int], expected: str
) -> None:
    more = answers(preloaded, file, **numbers)
    assert output_of(run_program(TRIED, file, more=more)) == expected


def test_a_file_in_memory_is_of_one_kernel() -> None:
    with open("/proc/self/stat") as process:
        assert not is_of_one_kernel(process.fileno())
    made = os.memfd_create("file")
    assert is_of_one_kernel(made)
    os.close(made)
