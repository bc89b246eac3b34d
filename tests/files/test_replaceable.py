"""What can be replaced, tried without a change."""

from __future__ import annotations

import errno
import os
import tempfile
from pathlib import Path

import pytest

from files.other_file_systems import answers, mounted, output_of, run_program
from waywiser.files.replaceable import can_be_exchanged, is_mount, require_replaceable

TRIED = """
import os, sys
from pathlib import Path
from waywiser.files.replaceable import can_be_exchanged, is_mount, require_replaceable
path = Path(sys.argv[1])
before = sorted(os.listdir(path.parent))
if path.is_dir():
    print(is_mount(path), can_be_exchanged(path, path.with_name("probe")))
else:
    try:
        require_replaceable(path, path.with_name("probe"))
        print(is_mount(path), "yes")
    except OSError as error:
        print(is_mount(path), error.errno)
assert sorted(os.listdir(path.parent)) == before
"""


def test_plain_files_and_folders_can_be_replaced_and_stay_as_they_are(tmp_path: Path) -> None:
    file, folder = tmp_path / "file", tmp_path / "folder"
    file.write_bytes(b"text")
    (folder / "inner").mkdir(parents=True)
    before = [os.lstat(each) for each in (file, folder)]
    require_replaceable(file, tmp_path / "probe")
    assert can_be_exchanged(folder, tmp_path / "probe")
    assert [os.lstat(each) for each in (file, folder)] == before
    assert sorted(os.listdir(tmp_path)) == ["file", "folder"]
    assert os.listdir(folder) == ["inner"]
    assert not is_mount(file) and not is_mount(folder)


def test_what_is_gone_meanwhile_can_be_replaced(tmp_path: Path) -> None:
    require_replaceable(tmp_path / "none", tmp_path / "probe")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("kind", ["tmpfs", "bind"])
def test_a_mounted_folder_cannot_be_exchanged(tmp_path: Path, kind: str) -> None:
    (tmp_path / "target").mkdir()
    (tmp_path / "source").mkdir()
    mount = {
        "tmpfs": f"mount -t tmpfs none '{tmp_path}/target'",
        "bind": f"mount --bind '{tmp_path}/source' '{tmp_path}/target'",
    }[kind]
    done = run_program(TRIED, tmp_path / "target", prefix=mounted(mount))
    assert output_of(done) == "True False"


def test_a_mounted_file_cannot_be_replaced(tmp_path: Path) -> None:
    for name in ("target", "source"):
        (tmp_path / name).write_bytes(b"x")
    mount = f"mount --bind '{tmp_path}/source' '{tmp_path}/target'"
    done = run_program(TRIED, tmp_path / "target", prefix=mounted(mount))
    assert output_of(done) == f"True {errno.EBUSY}"
    done = run_program(TRIED, tmp_path / "source", prefix=mounted(mount))
    assert output_of(done) == "False yes"


def test_a_folder_of_a_lower_layer_cannot_be_exchanged_and_a_new_one_can(tmp_path: Path) -> None:
    for name in ("lower/old", "upper", "work", "whole"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "lower" / "file").write_bytes(b"x")
    mount = (
        f"cd '{tmp_path}'; mount -t tmpfs none work; mkdir work/w work/u; mount -t overlay "
        "-o lowerdir=lower,upperdir=work/u,workdir=work/w,redirect_dir=off none whole; "
        "mkdir whole/new"
    )
    prefix = mounted(mount)
    for name, expected in (("old", "False False"), ("new", "False True"), ("file", "False yes")):
        done = run_program(TRIED, tmp_path / "whole" / name, prefix=prefix)
        assert output_of(done) == expected, name


@pytest.mark.parametrize("number", [errno.EXDEV, errno.EBUSY, errno.EPERM, errno.EINVAL])
def test_other_file_systems_say_why_not(tmp_path: Path, preloaded: Path, number: int) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_bytes(b"x")
    more = answers(preloaded, tmp_path, rename=number)
    done = run_program(TRIED, tmp_path / "folder", more=more)
    assert output_of(done) == "False False"
    done = run_program(TRIED, tmp_path / "file", more=more)
    assert output_of(done) == f"False {number}"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files to other users")
def test_a_file_of_another_user_in_a_sticky_folder_cannot_be_replaced() -> None:
    with tempfile.TemporaryDirectory() as name:
        file = Path(name, "file")
        file.write_bytes(b"x")
        os.chown(file, 4711, 4711)
        os.chmod(name, 0o1777)
        child = os.fork()
        if child == 0:
            os.setresuid(4712, 4712, 4712)
            try:
                require_replaceable(file, Path(name, "probe"))
                os._exit(0)
            except OSError as error:
                os._exit(error.errno or 255)
        _, status = os.waitpid(child, 0)
        assert os.listdir(name) == ["file"]
    if os.waitstatus_to_exitcode(status) == errno.EACCES:
        pytest.skip("the folder for temporary files is closed for other users")
    assert os.waitstatus_to_exitcode(status) == errno.EPERM
