"""Leftovers of killed processes: removed if their process has ended, and only then."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from files.other_file_systems import answers, output_of, run_program
from waywiser.files import unfinished
from waywiser.files.file_locks import take_lock
from waywiser.files.file_owner import Owner
from waywiser.files.unfinished import remove_leftovers, remove_one, shortened, unfinished_name

REMOVED = """
import os, sys
from pathlib import Path
from waywiser.files.unfinished import remove_leftovers
remove_leftovers(Path(sys.argv[1]), ".a-", remove=os.unlink)
print(len(os.listdir(sys.argv[1])))
"""

MADE = """
import os, sys
from waywiser.files.file_locks import take_lock
from waywiser.files.unfinished import unfinished_name
path = os.path.join(sys.argv[1], unfinished_name(".a-"))
made = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
take_lock(made)
print(path, flush=True)
sys.stdin.read()
"""


def ended(**changed: Any) -> str:
    """The name of an owner that has ended."""
    owner = Owner.of_this_process()._replace(started=1)
    return f"{owner._replace(**changed)}-01234567"


def left(folder: Path, **options: Any) -> list[str]:
    remove_leftovers(folder, ".a-", remove=remove_one, **options)
    return sorted(os.listdir(folder))


def test_what_ended_processes_have_left_goes_and_nothing_else(tmp_path: Path) -> None:
    kept = sorted(
        [
            unfinished_name(".a-"),
            f".b-{ended()}",
            f".a-{ended()}x",
            f".a-{ended(host='0' * 10, boot='0' * 8)}",
            ".a-12345-01234567",
            ".a-",
            "file",
        ]
    )
    for name in (*kept, f".a-{ended()}"):
        (tmp_path / name).touch()
    (tmp_path / f".a-{ended(process=2**22 + 1)}").mkdir()
    assert left(tmp_path) == kept


def test_what_is_locked_stays(tmp_path: Path) -> None:
    (tmp_path / f".a-{ended()}").touch()
    with (tmp_path / f".a-{ended()}").open("r+b") as held:
        assert take_lock(held.fileno()) is True
        assert left(tmp_path) == [f".a-{ended()}"]
    assert left(tmp_path) == []


def test_what_belongs_to_it_goes_first_or_stays_with_it(tmp_path: Path) -> None:
    for name in ("", "-journal", "-model.safetensors"):
        (tmp_path / f".a-{ended()}{name}").touch()
    (tmp_path / f".a-{ended()}-trial").mkdir()
    assert len(left(tmp_path, kept={f".a-{ended()}-journal"})) == 4
    assert left(tmp_path) == []


def test_of_another_container_only_what_no_process_locks(tmp_path: Path) -> None:
    name = f".a-{ended(namespaces='0' * 6)}"
    (tmp_path / name).touch()
    assert left(tmp_path, is_locked=False) == [name]
    with (tmp_path / name).open("r+b") as held:
        assert take_lock(held.fileno()) is True
        assert left(tmp_path) == [name]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(unfinished, "is_of_one_kernel", lambda descriptor: False)
        assert left(tmp_path) == [name]
        patch.setattr(unfinished, "is_of_one_kernel", lambda descriptor: True)
        assert left(tmp_path) == []


def test_links_and_pipes_stay(tmp_path: Path) -> None:
    (tmp_path / f".a-{ended()}").symlink_to(tmp_path)
    os.mkfifo(tmp_path / f".a-{ended(started=2)}")
    assert len(left(tmp_path)) == 2


def test_a_folder_that_is_missing_has_none(tmp_path: Path) -> None:
    remove_leftovers(tmp_path / "none", ".a-", remove=os.unlink)


@pytest.mark.parametrize("number", [-1, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOLCK])
def test_file_systems_without_locks(tmp_path: Path, preloaded: Path, number: int) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    more = answers(preloaded, folder, flock=number)
    with subprocess.Popen(
        [sys.executable, "-c", MADE, folder],
        env={**os.environ, **more, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        made = Path(process.stdout.readline().strip())
        assert output_of(run_program(REMOVED, folder, more=more)) == "1", "it lives"
        process.kill()
    other_host = made.with_name(f".a-{ended(host='0' * 10, boot='0' * 8)}")
    other_container = made.with_name(f".a-{ended(namespaces='0' * 6)}")
    for each in (other_host, other_container):
        each.touch()
    assert output_of(run_program(REMOVED, folder, more=more)) == ("1" if number == -1 else "2")
    assert not made.exists() and other_host.exists()


@given(st.text(st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), max_size=300))
def test_names_are_never_too_long(name: str) -> None:
    made = unfinished_name(f".{shortened(name)}.saving-", ".part")
    assert len(os.fsencode(made)) <= 255 - len("-model-00001-of-00001.safetensors")
    assert name.startswith(shortened(name))
