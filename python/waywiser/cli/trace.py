"""``waywiser trace``: which copies of a program are slow, at which line."""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import Annotated

import waywiser
from waywiser.cli.app import Json, given_of, print_result, print_verb, say_lines, verb
from waywiser.cli.command_help import Verb
from waywiser.cli.streams import say
from waywiser.words import Bounds, WaywiserError


class TraceVerb(Verb):
    """A verb whose options end where the traced command begins."""

    allow_interspersed_args = False


@verb("Say which copies of a program are slow, at which line.", cls=TraceVerb)
def trace(
    command: list[str] | None = None,
    output: str = "",
    profile: str = "",
    against: str = "",
    with_patch: bool = False,
    lines: str = "innermost",
    cupti: str = "",
    pid: Annotated[int | None, Bounds(1, 1 << 30)] = None,
    seconds: Annotated[int, Bounds(1, 3600)] = 10,
    all: bool = False,
    json: Json = False,
) -> int:
    """Run a program and say, on standard error, which of its copies are slow, at which line, and
    what they could take.

    [COMMAND...]: The program with its arguments; -- before it if it begins with a dash.
    -o, --output FILE: It keeps what was recorded (.wwt); show and report read it. A former trace is
        replaced.
    --profile FILE: Without it the trace has what was seen, and no advice.
    --against FILE: It is a trace of the same program before a change: what was saved, beside what
        was predicted.
    --with-patch: Run the program with waywiser.transfer.torch.patch active.
    --lines LINES: Which lines of the program a copy has: innermost, or all: calls of one line by
        several callers are lines of their own.
    --cupti FILE: The library of CUPTI to use, libcupti.so.12 or 13; by default that of the program,
        of the CUDA toolkit or of a wheel.
    --pid PID: Watch a program that runs, in place of a command.
    --seconds N: Watch the program of --pid for so long; by default 10.
    --all: All lines, not only the slowest.

    waywiser trace --profile node.wwp -- python train.py
        see which copies of a training are slow, and what to do
    waywiser trace --pid 4711 --seconds 10
        see what a running program moves, and where its memory is
    """
    given = given_of(locals())
    del given["json"]
    found = waywiser.trace(**given)
    if pid is not None:
        return print_verb(found, json=json)
    try:  # standard output is the program's: text and JSON go to standard error
        if json and found.document:
            from waywiser.words import json_text

            sys.stderr.write(f"{json_text(found.document)}\n")
        elif not json:
            print_result(None, found.parts, to_errors=True)
        say_lines(found.said)
    except (OSError, WaywiserError) as error:
        with suppress(OSError):
            say(f"waywiser: {error}\n")
    return found.exit_code
