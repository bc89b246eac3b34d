"""Where a command writes what it was asked for: a new file, a pipe, or standard output."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, TextIO, cast

from waywiser.cli.overwrite import STANDARD_OUTPUT, is_stream
from waywiser.profile.output_path import new_output


@contextmanager
def text_output(output: str) -> Iterator[TextIO]:
    """``-`` is standard output. The bytes are the same on every platform: UTF-8, lines ended as the
    format says.

    A file appears whole or not at all. Raises `ExistingFile`, `NotWritable`.
    """
    is_captured = getattr(sys.stdout, "buffer", None) is None  # as text
    if output == STANDARD_OUTPUT and is_captured:
        yield sys.stdout
        return
    with binary_output(output) as binary:
        stream = io.TextIOWrapper(binary, encoding="utf-8", newline="")
        try:
            yield stream
            stream.flush()
        finally:
            stream.detach()


@contextmanager
def binary_output(output: str) -> Iterator[BinaryIO]:
    """As `text_output`, of bytes."""
    if output == STANDARD_OUTPUT:
        sys.stdout.flush()
        yield sys.stdout.buffer
        return
    path = Path(output)
    if is_stream(path):
        with path.open("wb") as stream:
            yield cast(BinaryIO, stream)
        return
    with new_output(path) as part, part.open("wb") as stream:
        yield cast(BinaryIO, stream)
