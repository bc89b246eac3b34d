"""The files of a checkpoint: safetensors files, shards with an index, or the folder of them."""

from __future__ import annotations

import difflib
import errno
import os
import re
import stat
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from waywiser.errors import WaywiserError
from waywiser.transfer.errors import InvalidOperand, TransferFileError, TransferFileNotFound
from waywiser.transfer.safetensors_header import (
    COPY_AGAIN,
    Header,
    SafetensorsError,
    TensorEntry,
    read_header,
)
from waywiser.transfer.strict_json import StrictJsonError, clipped, parse_object

INDEX_NAME = "model.safetensors.index.json"
INDEX_SUFFIX = ".safetensors.index.json"
FILE_SUFFIX = ".safetensors"
INDEX_BYTES_LIMIT = 100_000_000

CALL = "load_files"
PASS_NAMES = "pass a list of the names of tensors, which are texts"
REMEDIES = {
    errno.ENOENT: "check the path",
    errno.ENOTDIR: "check the path: a part of it is no folder",
    errno.EACCES: "check the permissions of the file and of its folders",
    errno.ENXIO: "pass a safetensors file",
    errno.EMFILE: "raise the limit of open files (ulimit -n), or load fewer files at once",
    errno.ENFILE: "close files of other programs, or load fewer files at once",
    errno.EIO: "check the disk, or copy the file to another one",
}
"""What to do about an error of the system."""

MATCHED_NAMES = 20_000
"""The most names that are searched for one like a missing one; comparing takes some 10 µs each."""
MATCHED_LENGTH = 200
"""The longest of them: the time of a comparison grows with the square."""


class TensorNotFoundError(WaywiserError, LookupError):
    """A tensor that was asked for, or that an index lists, is in none of the files."""


class OpenFile(NamedTuple):
    """An open safetensors file with a checked header. Its owner closes the descriptor."""

    path: Path
    descriptor: int
    header: Header


class Selection(NamedTuple):
    """The tensors to load from one file, in the order of their bytes."""

    file: OpenFile
    entries: tuple[TensorEntry, ...]


class _Source(NamedTuple):
    """A file to open, and what its index lists, if it has one."""

    path: Path
    index_path: Path | None = None
    listed: dict[str, str] | None = None
    """The names of the files of all tensors of the index."""
    expected: frozenset[str] = frozenset()
    """The tensors that the index lists in this file."""


@contextmanager
def open_checkpoint(
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    keys: Iterable[str] | None = None,
) -> Iterator[list[Selection]]:
    """Opens the files and selects the tensors to load; closes the files at the end.

    A path is a safetensors file, an index (``….json``), or a folder that has an index or a single
    safetensors file. With ``keys`` only these tensors are selected, and shards that an index lists
    none of them in are not opened. If an index lists a tensor in one shard and another shard has it
    too, that of the listed shard is taken. Shards are in the order of their names.

    Raises `SafetensorsError` for a file or an index that is not valid, a folder with two
    checkpoints or a tensor that two files have, `TensorNotFoundError` for a key that no file has or
    a tensor that is not in the shard that the index lists, `TransferFileError` for a file that
    cannot be read.
    """
    selected = _selected_keys(keys)
    sources = [source for path in _paths(paths) for source in _sources(path)]
    with ExitStack() as stack:
        opened = [(source, _open(source, stack)) for source in _needed_sources(sources, selected)]
        yield _select(sources, opened, selected)


def _paths(
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
) -> list[Path]:
    try:
        given = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
        found = [Path(path) for path in given]
    except TypeError as error:
        raise InvalidOperand(
            f"paths is {clipped(paths)}, not a path or a list of paths: {error}",
            where=CALL,
            remedy="pass the path of a safetensors file",
        ) from None
    if not found:
        raise SafetensorsError(
            "no file is named", where=CALL, remedy="pass the path of a safetensors file"
        )
    return found


def _selected_keys(keys: Iterable[str] | None) -> dict[str, None] | None:
    if keys is None:
        return None
    if isinstance(keys, str) or not isinstance(keys, Iterable):
        what = "the single text" if isinstance(keys, str) else "the single value"
        raise InvalidOperand(f"keys is {what} {clipped(keys)}", where=CALL, remedy=PASS_NAMES)
    names = list(keys)
    for key in names:
        if not isinstance(key, str):
            raise InvalidOperand(f"keys holds {clipped(key)}", where=CALL, remedy=PASS_NAMES)
    return dict.fromkeys(names)


def _sources(path: Path) -> list[_Source]:
    if path.is_dir():
        return _folder_sources(path)
    if path.suffix == ".json":
        return _index_sources(path)
    return [_Source(path)]


def _folder_sources(folder: Path) -> list[_Source]:
    with _named_errors(folder):
        names = sorted(os.listdir(folder))
    names = [name for name in names if not name.startswith(".")]  # a killed save may have left some
    indices = [name for name in names if name.endswith(INDEX_SUFFIX)]
    if INDEX_NAME in indices:
        indices = [INDEX_NAME]
    if len(indices) == 1:
        sources = _index_sources(folder / indices[0])
        _require_one_of_two(folder, indices[0], names, sources)
        return sources
    files = [name for name in names if name.endswith(FILE_SUFFIX)]
    if not indices and len(files) == 1:
        _require_all_shards(folder, files[0])
        return [_Source(folder / files[0])]
    found = f"{len(indices)} indices" if indices else f"no index and {len(files)} safetensors files"
    raise SafetensorsError(
        f"the folder has {found}", where=str(folder), remedy="pass the index or the files by name"
    )


def _require_one_of_two(folder: Path, index: str, names: list[str], sources: list[_Source]) -> None:
    """Raises if the folder has shards and the same checkpoint as a single file: one of them is
    older, and other programs load the file."""
    single = index.removesuffix(INDEX_SUFFIX) + FILE_SUFFIX
    if single not in names or any(source.path.name == single for source in sources):
        return
    raise SafetensorsError(
        f"the folder has {single} and {index}, which lists other files: one of the two is older",
        where=str(folder),
        remedy=f"pass {str(folder / single)!r} or {str(folder / index)!r} as paths, "
        "and remove the other",
    )


def _require_all_shards(folder: Path, file: str) -> None:
    """Raises for the only shard that is there of several, as after a download that was stopped."""
    count = shards_of(file)
    if count > 1:
        raise SafetensorsError(
            f"the folder has no index, and {file} is one of {count} shards",
            where=str(folder),
            remedy=f"copy all shards and their index, or pass {str(folder / file)!r} for this one",
        )


def shards_of(file: str) -> int:
    """How many shards the checkpoint has that a file of this name belongs to."""
    found = re.search(rf"-\d{{5}}-of-(\d{{5}}){re.escape(FILE_SUFFIX)}$", file, re.ASCII)
    return int(found[1]) if found else 1


def listed_files(index: Path) -> frozenset[str]:
    """The names of the files that an index lists. Raises `SafetensorsError` and
    `TransferFileError`."""
    return frozenset(source.path.name for source in _index_sources(index))


def _index_sources(index: Path) -> list[_Source]:
    """The shards that an index lists, beside it. Names that lead elsewhere are errors; a shard may
    be a symbolic link, as in the caches of model hubs."""
    try:
        listed = _weight_map(parse_object(_read_index(index), counts_only=False))
    except StrictJsonError as error:
        raise SafetensorsError(
            f"the index is not valid: {error}", where=str(index), remedy=COPY_AGAIN
        ) from None
    expected: dict[str, list[str]] = {}
    for tensor, name in listed.items():
        expected.setdefault(name, []).append(tensor)
    return [
        _Source(index.parent / name, index, listed, frozenset(expected[name]))
        for name in sorted(expected)
    ]


def _read_index(index: Path) -> bytes:
    with ExitStack() as stack:
        descriptor, nbytes = open_regular(index, stack)
        if nbytes > INDEX_BYTES_LIMIT:
            raise StrictJsonError(f"it has {nbytes:,} bytes, more than {INDEX_BYTES_LIMIT:,}")
        parts = []
        with _named_errors(index):
            while part := os.read(descriptor, 2**20):
                parts.append(part)
                if sum(map(len, parts)) > INDEX_BYTES_LIMIT:
                    raise StrictJsonError(f"it has more than {INDEX_BYTES_LIMIT:,} bytes")
        return b"".join(parts)


def _weight_map(parsed: dict[str, Any]) -> dict[str, str]:
    listed = parsed.get("weight_map")
    if not isinstance(listed, dict):
        raise StrictJsonError("it has no object weight_map")
    for tensor, name in listed.items():
        if not isinstance(name, str) or not _is_plain_name(name):
            raise StrictJsonError(
                f"weight_map puts tensor {clipped(tensor)} in something that is not the plain name "
                "of a file in the folder of the index"
            )
    return listed


def _is_plain_name(name: str) -> bool:
    return name not in ("", ".", "..") and not any(mark in name for mark in "/\\\0")


def _needed_sources(sources: list[_Source], selected: dict[str, None] | None) -> list[_Source]:
    """Skips shards that cannot hold a selected tensor, if indices list all that are selected."""
    if selected is None or not selected.keys() <= _expected(sources):
        return sources
    return [
        source
        for source in sources
        if source.index_path is None or not source.expected.isdisjoint(selected)
    ]


def _expected(sources: list[_Source]) -> frozenset[str]:
    return frozenset().union(*(source.expected for source in sources))


def _open(source: _Source, stack: ExitStack) -> OpenFile:
    path = source.path
    descriptor, nbytes = open_regular(path, stack, source.index_path)
    with _named_errors(path):
        return OpenFile(path, descriptor, read_header(descriptor, nbytes, str(path)))


@contextmanager
def _named_errors(path: Path, index: Path | None = None) -> Iterator[None]:
    """Errors of the system with the path, and with what to do; ``index``: what lists the file."""
    try:
        yield
    except SafetensorsError:
        raise
    except OSError as error:
        missing = error.errno == errno.ENOENT
        kind = TransferFileNotFound if missing else TransferFileError
        remedy = REMEDIES.get(error.errno or 0, "")
        if missing and index is not None:
            remedy = f"download all files that {index} lists into its folder"
        what = os.strerror(error.errno) if error.errno else str(error)
        raise kind(what, where=str(path), remedy=remedy, number=error.errno) from None
    except StrictJsonError:
        raise
    except ValueError as error:  # a null byte
        raise TransferFileError(
            str(error), where=repr(str(path)), remedy="pass the path of a file", number=errno.EINVAL
        ) from None


def open_regular(path: Path, stack: ExitStack, index: Path | None = None) -> tuple[int, int]:
    """Opens a regular file for reading; returns its descriptor and its bytes."""
    # Without O_NONBLOCK, opening a FIFO would wait for a writer.
    with _named_errors(path, index):
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    stack.callback(os.close, descriptor)
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        raise SafetensorsError(
            "it is not a regular file", where=str(path), remedy="pass a safetensors file"
        )
    os.set_blocking(descriptor, True)
    return descriptor, status.st_size


def _select(
    sources: list[_Source],
    opened: list[tuple[_Source, OpenFile]],
    selected: dict[str, None] | None,
) -> list[Selection]:
    owners: dict[str, OpenFile] = {}
    selections = []
    for source, file in opened:
        _check_listed(source, file, selected)
        chosen = []
        for entry in file.header.tensors.values():
            listed = None if source.listed is None else source.listed.get(entry.name)
            if listed not in (None, file.path.name):
                continue
            if entry.name in owners:
                raise SafetensorsError(
                    f"tensor {clipped(entry.name)} is in {owners[entry.name].path} too",
                    where=str(file.path),
                    remedy="load the files one by one, or name one of them",
                )
            owners[entry.name] = file
            if selected is None or entry.name in selected:
                chosen.append(entry)
        selections.append(Selection(file, tuple(chosen)))
    if selected is not None:
        _check_found(sources, owners.keys(), selected)
    return selections


def _check_listed(source: _Source, file: OpenFile, selected: dict[str, None] | None) -> None:
    missing = source.expected.difference(file.header.tensors)
    if selected is not None:
        missing &= selected.keys()
    if missing:
        raise TensorNotFoundError(
            f"it has no tensor {clipped(min(missing))}, which {source.index_path} lists there",
            where=str(file.path),
            remedy="download or copy the index and the shards again",
        )


def _check_found(sources: list[_Source], found: Iterable[str], selected: dict[str, None]) -> None:
    names = dict.fromkeys(found)
    missing = [key for key in selected if key not in names]
    if not missing:
        return
    names.update(dict.fromkeys(sorted(_expected(sources))))
    near = _near(missing[0], names)
    others = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
    raise TensorNotFoundError(
        f"there is no tensor {clipped(missing[0])}{others} in {_files(sources)}",
        remedy=f"did you mean {' or '.join(near)}?" if near else "check keys",
    )


def _near(key: str, names: Iterable[str]) -> list[str]:
    if len(key) > MATCHED_LENGTH:
        return []
    short = [name for name in names if len(name) <= MATCHED_LENGTH][:MATCHED_NAMES]
    return [clipped(name) for name in difflib.get_close_matches(key, short, n=3)]


def _files(sources: list[_Source]) -> str:
    first = str(sources[0].path) if sources else "the index"
    return first if len(sources) <= 1 else f"{first} and {len(sources) - 1} more files"
