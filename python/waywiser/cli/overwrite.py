"""Outputs that are overwritten: a temporary file replaces the former one."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from waywiser.profile.errors import ExistingFile
from waywiser.words import WaywiserError
from waywiser.words.atomic_write import replaced_file
from waywiser.words.regular_file import NotRegular, TooLarge, read_regular


class NotWritten(WaywiserError):
    """The file or its folder does not take it."""


PROFILE = b"SQLite format 3\0"
"""How a profile begins."""


STANDARD_OUTPUT = "-"


LIMIT_BYTES = 256 * 2**20
"""Size of an existing file that is read before it is overwritten: a report has a few MB a
machine."""


def require_one_output(**outputs: str | bool) -> None:
    """Raises `NotWritten` if more than one of these options writes to standard output: True and
    ``-`` do. Asks of the files whether they can be written (`require_writable`)."""
    taken = [name for name, output in outputs.items() if output in (True, STANDARD_OUTPUT)]
    if len(taken) > 1:
        options = [f"--{name}" if outputs[name] is True else f"--{name} -" for name in taken]
        raise NotWritten(
            f"{' and '.join(options)} both write to standard output",
            remedy="leave one out, or name a file",
        )
    for output in outputs.values():
        if isinstance(output, str) and output not in ("", STANDARD_OUTPUT):
            require_writable(output)


def require_writable(path: str) -> None:
    """Asks, before long work, whether `write_over` could begin.

    Raises `NotWritten`, also for a profile: measurements are never overwritten.
    """
    target = Path(path)
    with explained(path):
        if is_stream(target):
            return
        if target.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if target.is_file():
            with target.open("rb") as file:
                if file.read(len(PROFILE)) == PROFILE:
                    raise NotWritten(
                        "is a profile, and is not overwritten", where=path, remedy="name another"
                    )
        folder = target.resolve().parent
        if not folder.is_dir():
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        if not os.access(folder, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))


def write_over(path: str, content: bytes) -> None:
    """Writes a file anew, or into a device or a pipe as it is; a link keeps its target's place.
    ``-`` is standard output. Raises as `require_writable`."""
    if path == STANDARD_OUTPUT:
        sys.stdout.write(content.decode())
        return
    require_writable(path)
    target = Path(path)
    with explained(path):
        if is_stream(target):
            target.write_bytes(content)
            return
        with replaced_file(target.resolve()) as part:
            part.write_bytes(content)


def require_former(path: str, mark: str, what: str) -> None:
    """Raises `ExistingFile` if there is a file with any content that lacks ``mark``: it is not a
    former ``what``, and not of this program."""
    target = Path(path)
    if path in ("", STANDARD_OUTPUT) or is_stream(target) or not target.exists():
        return
    with explained(path):
        try:
            content = read_regular(target, LIMIT_BYTES)
        except (NotRegular, TooLarge):
            content = None
    if content is None or (content and mark.encode() not in content):
        raise ExistingFile(
            f"the file exists, is no {what}, and is not overwritten",
            where=path,
            remedy="name another file, or move this one away",
        )


def is_stream(target: Path) -> bool:
    """Whether it is a device or a pipe (/dev/stdout), in which nothing is overwritten."""
    return target.is_char_device() or target.is_fifo()


@contextmanager
def explained(path: str) -> Iterator[None]:
    """The system's reasons for not writing there as `NotWritten`."""
    try:
        yield
    except OSError as error:
        raise NotWritten(
            f"cannot be written: {error.strerror or error}",
            where=path,
            remedy="name a file in a folder that exists, is yours and has space",
        ) from error
