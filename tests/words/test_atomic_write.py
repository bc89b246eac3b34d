"""Files that are replaced: who may read them, what cannot be replaced, and what a kill leaves."""

from __future__ import annotations

import errno
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from files.other_file_systems import answers, mounted, output_of, preloaded, run_program
from waywiser.files.file_owner import Owner
from waywiser.words.atomic_write import new_file, replaced_file, try_to_replace

__all__ = ["preloaded"]

REPLACED = """
import os, sys
from pathlib import Path
from waywiser.words import atomic_write
with atomic_write.replaced_file(Path(sys.argv[1])) as part:
    part.write_bytes(b"new")
    os.kill(os.getpid(), int(sys.argv[2]))
"""

REPORTED = """
import os, sys
from pathlib import Path
from waywiser.words.atomic_write import replaced_file, try_to_replace
path = Path(sys.argv[1])
for call in (try_to_replace, lambda path: replaced_file(path).__enter__()):
    try:
        call(path)
        print("yes", end=" ")
    except OSError as error:
        print(error.errno, end=" ")
print(len(os.listdir(path.parent)))
"""


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664, 0o444, 0o200])
def test_a_replaced_file_keeps_its_mode_from_the_first_byte_on(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "metrics.prom"
    path.write_text("former")
    path.chmod(mode)
    with replaced_file(path) as part:
        assert mode_of(part) & ~0o600 == mode & ~0o600
        part.write_text("new")
        assert mode_of(part) & ~0o600 == mode & ~0o600
    assert mode_of(path) == mode
    path.chmod(0o600)
    assert path.read_text() == "new"


def test_a_program_that_makes_the_file_again_changes_no_mode(tmp_path: Path) -> None:
    path = tmp_path / "library.so"
    for mode, writing in ((None, new_file), (0o640, replaced_file)):
        if mode is not None:
            path.chmod(mode)
        with writing(path) as part:
            before = mode_of(part)
            part.unlink()
            part.write_text("compiled")
            part.chmod(0o755)
        assert mode_of(path) == (before if mode is None else mode)


def test_a_new_file_has_the_mode_of_a_new_file(tmp_path: Path) -> None:
    (tmp_path / "plain").touch()
    for name, writing in (("new", new_file), ("replaced", replaced_file)):
        with writing(tmp_path / name) as part:
            part.write_text("x")
        assert mode_of(tmp_path / name) == mode_of(tmp_path / "plain")


def test_a_link_is_replaced_by_a_file_with_the_mode_of_a_new_one(tmp_path: Path) -> None:
    (tmp_path / "plain").touch()
    (tmp_path / "closed").touch(0o600)
    (tmp_path / "link").symlink_to("closed")
    with replaced_file(tmp_path / "link") as part:
        part.write_text("x")
    assert mode_of(tmp_path / "link") == mode_of(tmp_path / "plain")
    assert not (tmp_path / "link").is_symlink()


def test_a_name_that_is_too_long_is_an_error_before_anything_is_written(tmp_path: Path) -> None:
    for writing in (new_file, replaced_file):
        with pytest.raises(OSError, match="too long"), writing(tmp_path / ("x" * 256)):
            pytest.fail("it began to write")
    assert os.listdir(tmp_path) == []


def test_a_mounted_file_is_an_error_before_anything_is_written(tmp_path: Path) -> None:
    for name in ("target", "source"):
        (tmp_path / name).write_bytes(b"x")
    prefix = mounted(f"mount --bind '{tmp_path}/source' '{tmp_path}/target'")
    done = run_program(REPORTED, tmp_path / "target", prefix=prefix)
    assert output_of(done) == f"{errno.EBUSY} {errno.EBUSY} 2"


@pytest.mark.parametrize("number", [errno.EXDEV, errno.EPERM])
def test_so_is_one_that_the_file_system_does_not_replace(
    tmp_path: Path, preloaded: Path, number: int
) -> None:
    (tmp_path / "file").write_bytes(b"x")
    more = answers(preloaded, tmp_path, rename=number)
    done = run_program(REPORTED, tmp_path / "file", more=more)
    assert output_of(done) == f"{number} {number} 1"


def test_what_can_be_replaced_stays_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "file"
    try_to_replace(path)
    path.write_bytes(b"x")
    before = path.stat()
    try_to_replace(path)
    assert path.stat() == before and os.listdir(tmp_path) == ["file"]


def test_the_next_one_removes_what_killed_processes_have_left(tmp_path: Path) -> None:
    path = tmp_path / "metrics.prom"
    path.write_text("former")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    for _ in range(2):
        killed = subprocess.run(
            [sys.executable, "-c", REPLACED, path, str(int(signal.SIGKILL))],
            env=environment,
            check=False,
        )
        assert killed.returncode == -signal.SIGKILL
        assert path.read_text() == "former"
        (left,) = set(os.listdir(tmp_path)) - {path.name}
        (tmp_path / f"{left}-journal").touch()  # of a profile
    other = f".{path.name}.{Owner.of_this_process()._replace(host='0' * 10)}-00000000.part"
    (tmp_path / other).touch()
    with replaced_file(path) as part:
        assert sorted(os.listdir(tmp_path)) == sorted([path.name, part.name, other])
        part.write_text("new")
    assert sorted(os.listdir(tmp_path)) == sorted([path.name, other])
    (tmp_path / other.replace("0" * 10, Owner.of_this_process().host)).touch()
    path.unlink()
    with new_file(path):
        pass
    assert len(os.listdir(tmp_path)) == 3, "this process lives"


NEW = """
import os, signal, sys
from pathlib import Path
from waywiser.words import atomic_write
def kill(folder): os.kill(os.getpid(), signal.SIGKILL)
atomic_write.sync_folder = kill
with atomic_write.new_file(Path(sys.argv[1])) as part:
    part.write_text("whole")
"""


def test_one_killed_when_the_file_has_its_name_leaves_a_second_name_that_goes(
    tmp_path: Path,
) -> None:
    path = tmp_path / "node.wwp"
    killed = run_program(NEW, path)
    assert killed.returncode == -signal.SIGKILL
    assert path.read_text() == "whole" and len(os.listdir(tmp_path)) == 2
    with pytest.raises(FileExistsError), new_file(path):
        pass
    assert path.read_text() == "whole" and os.listdir(tmp_path) == ["node.wwp"]
