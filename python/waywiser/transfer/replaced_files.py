"""The files of a checkpoint in a folder that cannot be exchanged with another one: a mount point, a
folder of a lower layer of an overlay, or any folder on some file systems.

The new files have hidden names in the folder until all are on the disk. One rename of the index
makes them the checkpoint: it lists the hidden names first. Then the old shards go, the new ones get
their names as further links, and a second rename makes an index that lists these. So the folder has
the old checkpoint or the new one at each moment, and what was killed is loaded like any other.
"""

from __future__ import annotations

import errno
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from waywiser.files.attributes import Attributes
from waywiser.files.file_locks import take_lock
from waywiser.files.replaceable import is_mount, require_replaceable
from waywiser.files.unfinished import remove_leftovers, remove_one, sync_folder, unfinished_name
from waywiser.transfer.checkpoint import (
    FILE_SUFFIX,
    INDEX_NAME,
    INDEX_SUFFIX,
    listed_files,
    shards_of,
)
from waywiser.transfer.errors import InvalidTransfer, TransferFileError, TransferFileNotFound
from waywiser.transfer.safetensors_header import SafetensorsError

_PREFIX = ".saving-"
_SINGLE = f"model{FILE_SUFFIX}"

_LOCK_TRIES = 600
_LOCK_SECONDS = 0.1
"""Another save to the folder puts its files in place within milliseconds."""

Written = Callable[[Path, Path, int, Attributes | None], AbstractContextManager[Any]]
"""Makes a file at a path with a name for messages, a number of bytes, and former attributes."""


def is_part(entry: os.DirEntry[str]) -> bool:
    """Whether it is a part of a checkpoint, or what a killed save has left in its folder."""
    named = entry.name.endswith((FILE_SUFFIX, INDEX_SUFFIX)) or entry.name.startswith(_PREFIX)
    return named and not entry.is_dir(follow_symlinks=False)


@contextmanager
def replaced_files(folder: Path, names: Sequence[str], written: Written) -> Iterator[ReplacedFiles]:
    """Replaces the checkpoint in a folder by files of these names when the block ends.

    Files that are no part of a checkpoint stay. Raises `InvalidTransfer`, before anything is
    written, if no moment could have the old checkpoint or the new one.
    """
    _remove_leftovers(folder)
    made = ReplacedFiles(folder, names, written)
    try:
        made.require_possible()
        yield made
        made.put_in_place()
    finally:
        made.close()
    _remove_leftovers(folder)


class ReplacedFiles:
    """New files in a folder, under hidden names."""

    def __init__(self, folder: Path, names: Sequence[str], written: Written) -> None:
        self._folder = folder
        self._names = names
        self._written = written
        self._mark = unfinished_name(_PREFIX)
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        self._lock = os.open(folder / self._mark, flags, 0o600)
        self._are_listed = False
        """Whether the index lists the hidden names."""
        take_lock(self._lock)

    def close(self) -> None:
        """Removes what has a hidden name still, unless the index lists it."""
        if not self._are_listed:
            for name in os.listdir(self._folder):
                if name.startswith(f"{self._mark}-"):
                    remove_one(self._folder / name)
            remove_one(self._folder / self._mark)
        os.close(self._lock)

    def file(self, name: str, nbytes: int) -> AbstractContextManager[Any]:
        """A new file, which is on the disk when the block ends."""
        return self._written(self._hidden(name), self._folder / name, nbytes, self._former(name))

    def require_possible(self) -> None:
        """Raises `InvalidTransfer` or `OSError` if the files cannot take the place of others."""
        found = self._found()
        for name in found:
            require_replaceable(self._folder / name, self._hidden("trial"))
        self._has_links = self._tries_link()
        others = set(found) - set(self._names)
        if INDEX_NAME not in self._names:
            if others:
                self._reject(min(others), "one file")
        elif _SINGLE in found:
            self._reject(_SINGLE, "shards")
        elif not self._has_links and _can_be_loaded(found):
            self._reject(min(found), "shards, without hard links,")

    def put_in_place(self) -> None:
        """Makes the new files the checkpoint, and removes the old ones."""
        with _locked(self._folder):
            if INDEX_NAME in self._names and self._has_links:
                self._switch_index()
                return
            old = set(self._found()).difference(self._names)
            for name in sorted(self._names, key=lambda name: name == INDEX_NAME):
                if name == INDEX_NAME:
                    sync_folder(self._folder)
                os.rename(self._hidden(name), self._folder / name)
            sync_folder(self._folder)
            for name in old:
                os.unlink(self._folder / name)

    def _switch_index(self) -> None:
        folder = self._folder
        shards = [name for name in self._names if name != INDEX_NAME]
        old = [name for name in self._found() if name != INDEX_NAME]
        sync_folder(folder)
        self._write_index({name: self._hidden(name).name for name in shards})
        self._are_listed = True
        os.rename(self._hidden("first"), folder / INDEX_NAME)
        sync_folder(folder)
        for name in old:
            os.unlink(folder / name)
        for name in shards:
            os.link(self._hidden(name), folder / name)
        sync_folder(folder)
        os.rename(self._hidden(INDEX_NAME), folder / INDEX_NAME)
        self._are_listed = False
        sync_folder(folder)

    def _write_index(self, names: Mapping[str, str]) -> None:
        """An index that lists files by other names."""
        index = json.loads(self._hidden(INDEX_NAME).read_bytes())
        index["weight_map"] = {tensor: names[file] for tensor, file in index["weight_map"].items()}
        former = self._former(INDEX_NAME)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        mode = 0o666 if former is None else 0o600
        with os.fdopen(os.open(self._hidden("first"), flags, mode), "wb") as file:
            if former is not None:
                former.apply(file.fileno())
            file.write(json.dumps(index).encode())
            file.flush()
            os.fsync(file.fileno())

    def _former(self, name: str) -> Attributes | None:
        """The attributes of the file of this name, else those of another part."""
        for each in (name, *self._found()):
            if (found := Attributes.of(self._folder / each)) is not None:
                return found
        return None

    def _found(self) -> list[str]:
        """The parts of a checkpoint that are in the folder."""
        with os.scandir(self._folder) as entries:
            return sorted(
                entry.name
                for entry in entries
                if is_part(entry) and not entry.name.startswith(_PREFIX)
            )

    def _hidden(self, name: str) -> Path:
        return self._folder / f"{self._mark}-{name}"

    def _tries_link(self) -> bool:
        try:
            os.link(self._folder / self._mark, self._hidden("trial"))
        except OSError:
            return False
        os.unlink(self._hidden("trial"))
        return True

    def _reject(self, name: str, new: str) -> None:
        why = "is a mount point" if is_mount(self._folder) else "cannot be exchanged with a new one"
        raise InvalidTransfer(
            f"the folder {why}, and {new} cannot replace {name!r} in it at one moment",
            where=f"save_files {str(self._folder)!r}",
            remedy="save to a new folder in it",
        )


def _can_be_loaded(found: Sequence[str]) -> bool:
    """Whether files are a checkpoint, and no part of one."""
    indices = [name for name in found if name.endswith(INDEX_SUFFIX)]
    return bool(indices) or (len(found) == 1 and shards_of(found[0]) == 1)


def _remove_leftovers(folder: Path) -> None:
    try:
        kept = listed_files(folder / INDEX_NAME)
    except (SafetensorsError, TransferFileNotFound):
        kept = frozenset()
    except TransferFileError:
        return  # it cannot be read, and may list any of them
    remove_leftovers(folder, _PREFIX, remove=os.unlink, kept=kept)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Keeps out other saves to the folder, if its file system has locks."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        tries = 0
        while take_lock(descriptor) is False:
            tries += 1
            if tries == _LOCK_TRIES:
                raise BlockingIOError(
                    errno.EAGAIN, "another program has had the lock of the folder for a minute"
                )
            time.sleep(_LOCK_SECONDS)
        yield
    finally:
        os.close(descriptor)
