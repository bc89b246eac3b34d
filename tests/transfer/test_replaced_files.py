"""Checkpoints in folders that cannot be exchanged with new ones."""

from __future__ import annotations

import errno
import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from files.other_file_systems import answers, mounted, output_of, preloaded, run_program
from transfer import torch_stand_in
from transfer.test_load_files import load_module
from waywiser.files import replaceable
from waywiser.files.file_owner import Owner
from waywiser.transfer.checkpoint import INDEX_NAME
from waywiser.transfer.errors import InvalidTransfer, TransferFileError

__all__ = ["preloaded"]

SAVED = """
import os, sys
import numpy as np
from transfer import torch_stand_in
sys.modules["torch"] = torch_stand_in
from waywiser.transfer.torch import load_files, save_files
folder = sys.argv[1]
def tensors(value):
    return {name: torch_stand_in.Tensor(np.full(9, value, np.uint8), torch_stand_in.uint8)
            for name in "abc"}
for value, shard_bytes in enumerate(map(int, sys.argv[2:])):
    try:
        save_files(tensors(value), folder, shard_bytes=shard_bytes)
    except (ValueError, OSError) as error:
        print(type(error).__name__, error)
loaded = load_files(folder, "cpu")
values = {int(x) for each in loaded.values() for x in each.array}
print(len(loaded), values, *sorted(os.listdir(folder)))
"""

SAVED_FILE = SAVED.replace("shard_bytes=shard_bytes", "").partition("loaded =")[0]

THREE = " ".join(f"model-0000{n}-of-00003.safetensors" for n in (1, 2, 3))
TWO = " ".join(f"model-0000{n}-of-00002.safetensors" for n in (1, 2))


def tensors(value: int, names: str = "abc") -> dict[str, Any]:
    return {
        name: torch_stand_in.Tensor(np.full(9, value, np.uint8), torch_stand_in.uint8)
        for name in names
    }


@pytest.fixture
def saving(monkeypatch: pytest.MonkeyPatch) -> Any:
    return load_module(monkeypatch, torch_stand_in)


@pytest.fixture
def no_exchange(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on NFS."""

    def reject(*_: Any) -> None:
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))

    monkeypatch.setattr(replaceable, "exchange", reject)


@pytest.fixture
def folder(tmp_path: Path, no_exchange: None) -> Iterator[Path]:
    made = tmp_path / "model"
    made.mkdir()
    yield made
    assert os.listdir(tmp_path) == ["model"]


def held(saving: Any, folder: Path) -> set[int]:
    loaded = saving.load_files(folder, "cpu")
    return {int(value) for each in loaded.values() for value in each.array}


def listed(folder: Path) -> str:
    return " ".join(sorted(os.listdir(folder)))


def test_a_mount_point_is_saved_to_and_nothing_is_written_beside_it(tmp_path: Path) -> None:
    """The file system above it is read-only."""
    mount = (
        f"mount -t tmpfs none '{tmp_path}'; mkdir '{tmp_path}/model'; "
        f"mount -t tmpfs none '{tmp_path}/model'; mkdir '{tmp_path}/model/lost+found'; "
        f"mount -o remount,ro '{tmp_path}'"
    )
    prefix = mounted(mount)
    for sizes, names in (([9], THREE), ([9, 18], TWO), ([18, 9, 9], THREE), ([99, 99], "")):
        done = run_program(SAVED, tmp_path / "model", *sizes, prefix=prefix)
        files = f"{names} {INDEX_NAME}" if names else "model.safetensors"
        assert output_of(done) == f"3 {{{len(sizes) - 1}}} lost+found {files}"


def test_a_folder_of_a_lower_layer_is_saved_to(tmp_path: Path) -> None:
    (tmp_path / "lower" / "model").mkdir(parents=True)
    output_of(run_program(SAVED, tmp_path / "lower" / "model", 9))
    (tmp_path / "whole").mkdir()
    (tmp_path / "disk").mkdir()
    prefix = mounted(
        f"cd '{tmp_path}'; mount -t tmpfs none disk; mkdir disk/work disk/upper; "
        "mount -t overlay -o lowerdir=lower,upperdir=disk/upper,workdir=disk/work,redirect_dir=off "
        "none whole"
    )
    done = run_program(SAVED, tmp_path / "whole" / "model", 9, 18, prefix=prefix)
    assert output_of(done) == f"3 {{1}} {TWO} {INDEX_NAME}"
    done = run_program(SAVED, tmp_path / "lower" / "model")
    assert output_of(done) == f"3 {{0}} {THREE} {INDEX_NAME}"


def test_a_mounted_file_is_an_error_before_anything_is_written(tmp_path: Path) -> None:
    for name in ("model.safetensors", "source"):
        (tmp_path / name).write_bytes(b"former")
    mount = f"mount --bind '{tmp_path}/source' '{tmp_path}/model.safetensors'"
    done = run_program(SAVED_FILE, tmp_path / "model.safetensors", 9, prefix=mounted(mount))
    assert output_of(done).startswith("TransferFileError save_files")
    assert "it is a mount point" in done.stdout and "mount the folder of the file" in done.stdout
    assert sorted(os.listdir(tmp_path)) == ["model.safetensors", "source"]


@pytest.mark.parametrize("number", [errno.EXDEV, errno.EPERM])
def test_a_file_that_is_not_replaced_is_an_error_before_anything_is_written(
    tmp_path: Path, preloaded: Path, number: int
) -> None:
    (tmp_path / "x").write_bytes(b"former")
    done = run_program(
        SAVED_FILE, tmp_path / "x", 9, more=answers(preloaded, tmp_path, rename=number)
    )
    assert output_of(done).startswith("TransferFileError save_files")
    assert (tmp_path / "x").read_bytes() == b"former" and os.listdir(tmp_path) == ["x"]


def test_shards_replace_shards(saving: Any, folder: Path) -> None:
    for value, size, names in ((0, 9, THREE), (1, 9, THREE), (2, 18, TWO), (3, 9, THREE)):
        saving.save_files(tensors(value), folder, shard_bytes=size)
        assert held(saving, folder) == {value}
        assert listed(folder) == f"{names} {INDEX_NAME}"
        index = json.loads((folder / INDEX_NAME).read_text())
        assert " ".join(sorted(set(index["weight_map"].values()))) == names


def test_one_file_replaces_one_file(saving: Any, folder: Path) -> None:
    for value in (0, 1):
        saving.save_files(tensors(value), folder, shard_bytes=99)
        assert held(saving, folder) == {value}
        assert listed(folder) == "model.safetensors"


def test_one_file_and_shards_do_not_replace_each_other(saving: Any, folder: Path) -> None:
    for first, second in ((9, 99), (99, 9)):
        saving.save_files(tensors(1), folder, shard_bytes=first)
        before = listed(folder)
        with pytest.raises(InvalidTransfer, match=r"at one moment \(save to a new folder in it\)"):
            saving.save_files(tensors(2), folder, shard_bytes=second)
        assert held(saving, folder) == {1} and listed(folder) == before
        for each in folder.iterdir():
            each.unlink()


def test_other_files_stay(saving: Any, folder: Path) -> None:
    (folder / "config.json").write_text("{}")
    (folder / "logs").mkdir()
    for value in (0, 1):
        saving.save_files(tensors(value), folder, shard_bytes=9)
    assert listed(folder) == f"config.json logs {THREE} {INDEX_NAME}"


def test_without_hard_links_only_a_checkpoint_is_not_replaced(
    saving: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def reject(*_: Any) -> None:
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(os, "link", reject)
    (folder / THREE.split()[0]).write_bytes(b"a part of a checkpoint")
    (folder / "model-00004-of-00004.safetensors").write_bytes(b"another")
    order: list[str] = []
    rename = os.rename

    def noted(one: Path, other: Path) -> None:
        rename(one, other)
        order.append(other.name)

    with monkeypatch.context() as patch:
        patch.setattr(os, "rename", noted)
        saving.save_files(tensors(1), folder, shard_bytes=9)
    assert order == [*THREE.split(), INDEX_NAME]
    assert held(saving, folder) == {1} and listed(folder) == f"{THREE} {INDEX_NAME}"
    with pytest.raises(InvalidTransfer, match=r"without hard links.*save to a new folder"):
        saving.save_files(tensors(2), folder, shard_bytes=9)
    assert held(saving, folder) == {1} and listed(folder) == f"{THREE} {INDEX_NAME}"


def test_who_may_read_them_stays_the_same(saving: Any, folder: Path) -> None:
    folder.chmod(0o2770)
    saving.save_files(tensors(0), folder, shard_bytes=18)
    for each in folder.iterdir():
        each.chmod(0o640)
    (folder / INDEX_NAME).chmod(0o600)
    for size in (18, 9):
        saving.save_files(tensors(1), folder, shard_bytes=size)
        modes = {each.name: stat.S_IMODE(each.stat().st_mode) for each in folder.iterdir()}
        assert modes.pop(INDEX_NAME) == 0o600 and set(modes.values()) == {0o640}
    assert stat.S_IMODE(folder.stat().st_mode) == 0o2770


def test_a_step_that_fails_leaves_the_old_one_or_the_new_one(
    saving: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each call that changes names fails once, whichever it is."""
    saving.save_files(tensors(0), folder, shard_bytes=9)
    seen: set[int] = set()
    for step in range(100):
        left = step

        def failing(call: Any) -> Any:
            def wrapper(*arguments: Any, **more: Any) -> Any:
                nonlocal left
                if not str(arguments[0]).endswith("trial") and "probe" not in str(arguments):
                    left -= 1
                    if left == -1:
                        raise OSError(errno.EIO, os.strerror(errno.EIO))
                return call(*arguments, **more)

            return wrapper

        before = held(saving, folder)
        with monkeypatch.context() as patch:
            for name in ("rename", "link", "unlink", "mkdir"):
                patch.setattr(os, name, failing(getattr(os, name)))
            try:
                saving.save_files(tensors(step + 1), folder, shard_bytes=9)
                whole = left >= 0
            except (TransferFileError, InvalidTransfer):
                whole = False
        found = held(saving, folder)
        assert found in (before, {step + 1})
        seen |= found
        if whole:
            break
    assert len(seen) > 3
    ended = Owner.of_this_process()._replace(started=1)
    for name in os.listdir(folder):  # as if this process had ended
        os.rename(folder / name, folder / name.replace(str(Owner.of_this_process()), str(ended)))
    index = (folder / INDEX_NAME).read_text()
    (folder / INDEX_NAME).write_text(index.replace(str(Owner.of_this_process()), str(ended)))
    saving.save_files(tensors(200), folder, shard_bytes=9)
    assert listed(folder) == f"{THREE} {INDEX_NAME}"


def test_two_saves_at_once_leave_one_of_them(saving: Any, folder: Path) -> None:
    from concurrent.futures import ThreadPoolExecutor

    def save(value: int) -> None:
        for _ in range(5):
            saving.save_files(tensors(value), folder, shard_bytes=9)

    with ThreadPoolExecutor(3) as threads:
        for future in [threads.submit(save, value) for value in range(3)]:
            future.result()
    assert len(held(saving, folder)) == 1
    assert listed(folder) == f"{THREE} {INDEX_NAME}"
