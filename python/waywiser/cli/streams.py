"""The streams that a command was given: closed, full, or left by their reader."""

from __future__ import annotations

import codecs
import io
import os
import sys
from contextlib import suppress
from typing import TextIO

from waywiser.render.program_name import as_called

PLAINER = "waywiser-plainer"
"""The name of the error handler that `prepare` registers."""

_PLAINER = {
    "µ": "u",
    "±": "~",  # one character, so that columns stay aligned
    "×": "x",
    "·": ".",
    "°": " deg",
    "–": "-",
    "—": "-",
    "−": "-",
    "…": "...",
    "→": "->",
    "←": "<-",
    "↔": "<->",
    "✓": "v",
    "█": "#",
    "░": ".",
}
"""What is written where an encoding lacks a character; question marks for any other."""


_OUTPUT = 1
"""The number of standard output."""


def prepare() -> None:
    """Makes the standard streams fit to be used.

    A closed one becomes the null device, or the next file opened would take its number and be
    written to; a closed standard output is one that cannot be written. Characters that the
    terminal's encoding lacks (±, µ) get plainer (+-, u).
    """
    codecs.register_error(PLAINER, _plainer)
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            mode = os.O_RDONLY if number == _OUTPUT else os.O_RDWR
            os.set_inheritable(os.open(os.devnull, mode), True)  # takes the lowest number
    if sys.stdout is None:
        sys.stdout = open(_OUTPUT, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=PLAINER)


def _plainer(error: UnicodeError) -> tuple[str, int]:
    """An error handler of codecs: returns what is written instead, and where to go on."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    missing = error.object[error.start : error.end]
    return "".join(_PLAINER.get(each, "?") for each in missing), error.end


def say(text: str, stream: TextIO | None = None) -> None:
    """Writes to people, on standard error unless another stream is given; commands in it can be
    typed as they stand. If nothing reads it (a pipe left, a terminal closed, a full disk), the
    work goes on in silence."""
    stream = stream or sys.stderr
    try:
        stream.write(as_called(text))
        stream.flush()
    except OSError:
        give_up(stream)


def put_line(text: object) -> None:
    """Writes to standard output; commands in it can be typed as they stand. What of it may come
    from a file that anyone made steers no terminal."""
    from waywiser.words import visible

    sys.stdout.write(as_called(visible(str(text))) + "\n")


def print_json(document: object) -> None:
    """Writes a document to standard output."""
    from waywiser.words.visible_text import pretty_json

    sys.stdout.write(pretty_json(document))


def give_up(stream: TextIO) -> None:
    """Lets what else is written, also what waits in the buffer, go to the null device."""
    null = os.open(os.devnull, os.O_WRONLY)
    try:
        with suppress(OSError, io.UnsupportedOperation):
            os.dup2(null, stream.fileno())
    finally:
        os.close(null)
