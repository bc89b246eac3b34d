"""Output files: where a command writes, and what it may replace.

A file appears whole or not at all (`waywiser.words.atomic_write`), and nothing is overwritten but a
former output of the same kind. ``-`` is standard output; a device or a pipe is written as it is.
"""

from __future__ import annotations

import errno
import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, NamedTuple, TextIO, cast

from waywiser.profile.errors import ExistingFile, NotWritable
from waywiser.profile.file_name import SUFFIX
from waywiser.profile.write_probe import OBSTACLES, obstacle_of
from waywiser.words import (
    NotRegular,
    TooLarge,
    new_file,
    read_regular,
    replaced_file,
    try_to_replace,
)

STANDARD_OUTPUT = "-"

OTHER_FORMATS = ("csv", "html", "json", "md", "parquet", "pdf", "png", "svg", "txt", "xml")
"""Names of files that other commands write or read: no profile is named so."""

LIMIT_BYTES = 256 * 2**20
"""Size of an existing file that is read before it is replaced: a report has a few MB a machine."""

_MOUNT_THE_FOLDER = "mount the folder of the file instead of the file, or name a file in a folder"


class OutputKind(NamedTuple):
    """Outputs of which a new one may replace a former one."""

    name: str
    """``report``, in messages."""
    mark: str
    """What is in every file of this kind, and in no other."""


@contextmanager
def new_output(path: Path) -> Iterator[Path]:
    """An empty temporary file to write to; it is renamed to ``path`` when the block ends well.

    Raises `ExistingFile` if ``path`` exists, before anything is written and again at the end;
    `NotWritable` if the folder is missing, full or closed. After an error nothing is left.
    """
    with _explained(path), new_file(path) as part:
        yield part


@contextmanager
def open_output(output: str, kind: OutputKind | None = None) -> Iterator[BinaryIO]:
    """The stream of an output. A former output of its ``kind`` is replaced. Raises as `new_output`
    for any other file."""
    if output == STANDARD_OUTPUT:
        sys.stdout.flush()
        yield sys.stdout.buffer
        return
    path = Path(output)
    with _explained(path):
        if _is_stream(path):
            with path.open("wb") as stream:
                yield cast(BinaryIO, stream)
            return
        is_former = _require_former(path, kind)
        written = replaced_file(path.resolve()) if is_former else new_file(path)
        with written as part, part.open("wb") as stream:
            yield cast(BinaryIO, stream)


@contextmanager
def open_text_output(output: str) -> Iterator[TextIO]:
    """As `open_output`, of text. The bytes are the same on every platform: UTF-8, with the ends of
    lines that the format has."""
    if output == STANDARD_OUTPUT and _is_captured():
        yield sys.stdout
        return
    with open_output(output) as binary:
        stream = io.TextIOWrapper(binary, encoding="utf-8", newline="")
        try:
            yield stream
            stream.flush()
        finally:
            stream.detach()


def write_output(output: str, content: bytes, kind: OutputKind | None = None) -> None:
    """Writes all of an output, as `open_output` does."""
    if output == STANDARD_OUTPUT and _is_captured():
        sys.stdout.write(content.decode(errors="replace"))
        return
    with open_output(output, kind) as stream:
        stream.write(content)


def make_folder(folder: Path) -> None:
    """Makes a folder for outputs, if it is not there. Raises `NotWritable`."""
    with _explained(folder):
        if not folder.is_dir():
            folder.mkdir()


def require_output(output: str, kind: OutputKind | None = None) -> None:
    """Asks, before long work, whether `open_output` could begin, and raises as it does."""
    path = Path(output)
    if output in ("", STANDARD_OUTPUT):
        return
    if output.endswith(os.sep):
        raise NotWritable("names a folder", where=output, remedy="name a file in it")
    with _explained(path):
        if _is_stream(path):
            return
        if _require_former(path, kind):
            path = path.resolve()
            try_to_replace(path)
        else:
            with suppress(FileNotFoundError):
                path.lstat()
                raise FileExistsError(str(path))
        path.parent.stat()
        if not path.parent.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
        if not os.access(path.parent, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))


def require_one_output(**outputs: str | bool) -> None:
    """Raises `NotWritable` if two of these options write to one file, or more than one to standard
    output: True and ``-`` do."""
    files: dict[str, str] = {}
    for name, output in outputs.items():
        if isinstance(output, str) and output not in ("", STANDARD_OUTPUT):
            other = files.setdefault(os.path.realpath(output), name)
            if other != name and not _is_stream(Path(output)):
                raise NotWritable(
                    f"--{other} and --{name} both write to this file",
                    where=output,
                    remedy="name another file for one of them",
                )
    taken = [name for name, output in outputs.items() if output in (True, STANDARD_OUTPUT)]
    if len(taken) > 1:
        options = [f"--{name}" if outputs[name] is True else f"--{name} -" for name in taken]
        raise NotWritable(
            f"{' and '.join(options)} both write to standard output",
            remedy="leave one out, or name a file",
        )


def require_profile_name(path: Path) -> None:
    """Raises `NotWritable` for standard output (``-``), for the name of another format, and for
    one that is not UTF-8: a profile stores the command that made it as text."""
    if str(path) == STANDARD_OUTPUT:
        raise NotWritable(
            "a profile cannot be written to standard output", remedy="name a file: -o node.wwp"
        )
    try:
        str(path).encode()
    except UnicodeEncodeError:
        raise NotWritable(
            "the name is not UTF-8", where=ascii(str(path)), remedy="name a file in UTF-8"
        ) from None
    suffix = path.suffix.removeprefix(".").lower()
    if suffix in OTHER_FORMATS:
        raise NotWritable(
            f"a profile is not {suffix}",
            where=str(path),
            remedy=f"name it {path.with_suffix(SUFFIX).name}; waywiser export and waywiser report "
            "write other formats",
        )


def _require_former(path: Path, kind: OutputKind | None) -> bool:
    """Returns whether a former output is there. Raises `ExistingFile` for a file with any content
    that is none."""
    if kind is None or not path.exists() or path.is_dir():
        return False
    try:
        content = read_regular(path, LIMIT_BYTES)
    except (NotRegular, TooLarge):
        content = None
    if content is None or (content and kind.mark.encode() not in content):
        raise _existing(path, f"the file exists, is no {kind.name}, and is not overwritten")
    return True


def _is_stream(path: Path) -> bool:
    """Whether it is a device or a pipe (/dev/stdout), in which nothing is overwritten."""
    return path.is_char_device() or path.is_fifo()


def _is_captured() -> bool:
    """Whether standard output is captured as text."""
    return getattr(sys.stdout, "buffer", None) is None


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """The system's reasons for not writing there as errors of outputs."""
    try:
        yield
    except FileExistsError as error:
        if path.is_dir():
            raise ExistingFile(
                "is a directory", where=str(path), remedy="name a file in it"
            ) from error
        raise _existing(path, "the file exists and is not overwritten") from error
    except OSError as error:
        if error.errno in OBSTACLES:
            obstacle = obstacle_of(error, path)
            raise NotWritable(obstacle.what, where=str(path), remedy=obstacle.remedy) from error
        is_mounted = error.errno == errno.EBUSY
        raise NotWritable(
            f"cannot be {'replaced' if is_mounted else 'written'}: {error.strerror or error}",
            where=str(path),
            remedy=_MOUNT_THE_FOLDER
            if is_mounted
            else "name a file in a folder that exists, is yours and has space",
        ) from error


def _existing(path: Path, what: str) -> ExistingFile:
    return ExistingFile(what, where=str(path), remedy="name another file, or move this one away")
