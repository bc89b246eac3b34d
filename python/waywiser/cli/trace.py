"""``waywiser trace``: which copies of a program are slow, at which line."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated

from waywiser.cli.app import Json, print_result, verb
from waywiser.cli.command_help import Verb
from waywiser.words import Bounds, WaywiserError

if TYPE_CHECKING:
    from waywiser.analysis.trace.savings import TraceAdvice
    from waywiser.curves import Subject
    from waywiser.profile import Trace

LINES = ("innermost", "all")


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
    everything: bool = False,
    json: Json = False,
) -> int:
    """Run a program and say, on standard error, which of its copies are slow, at which line, and
    what they could take.

    [COMMAND...]: The program with its arguments; -- before it if it begins with a dash.
    -o, --output FILE: Also keep what was recorded (.wwt); show and report read it. A former file is
        replaced.
    --profile FILE: A profile of this machine (waywiser survey): what the copies could take.
    --against FILE: A trace of the same program before a change: what was saved, beside what was
        predicted.
    --with-patch: Run the program with waywiser.transfer.torch.patch active.
    --lines LINES: Which lines of the program a copy has: innermost, or all: calls of one line by
        several callers are lines of their own.
    --cupti FILE: The library of CUPTI to use, libcupti.so.12 or 13; by default that of the program,
        of the CUDA toolkit or of a wheel.
    --pid PID: Watch a program that runs, in place of a command.
    --seconds N: Watch the program of --pid for so long.
    --all: Show all lines.

    waywiser trace --profile node.wwp -- python train.py
        see which copies of a training are slow, and what to do
    waywiser trace --pid 4711 --seconds 10
        see what a running program moves, and where its memory is
    """
    if lines not in LINES:
        raise WaywiserError(f"{lines!r} is no choice of lines", remedy="write innermost or all")
    if pid is not None:
        given = {"a command": command, "-o": output, "--against": against, "--cupti": cupti,
                 "--with-patch": with_patch}  # fmt: skip
        if beside := [name for name, value in given.items() if value]:
            raise WaywiserError(f"--pid excludes {beside[0]}", remedy=f"remove {beside[0]}")
        return _watch(pid, seconds, profile, json=json)
    if not command:
        raise WaywiserError(
            "no program is named", remedy="write waywiser trace -- python train.py, or --pid PID"
        )
    return _trace(
        command, output, profile, against, cupti,
        with_patch=with_patch, whole_chain=lines == "all", everything=everything, json=json,
    )  # fmt: skip


def _trace(
    command: Sequence[str],
    output: str,
    profile: str,
    against: str,
    cupti: str,
    *,
    with_patch: bool,
    whole_chain: bool,
    everything: bool,
    json: bool,
) -> int:
    """Runs the program, and shows what was recorded. Files are looked at before."""
    import msgspec

    from waywiser.analysis.trace.savings import trace_advice
    from waywiser.cli.pages import require_page
    from waywiser.cli.streams import say
    from waywiser.measure.trace.run import traced
    from waywiser.profile import read_trace
    from waywiser.profile.trace_file import write_trace

    if output:
        require_page(output)
    before = read_trace(against) if against else None
    if before is not None and not profile and os.path.exists(before.profile):
        profile = before.profile
    subject = _subject(profile)
    found = traced(command, cupti=cupti, patched=with_patch)
    found = msgspec.structs.replace(found, profile=os.path.abspath(profile) if profile else "")
    try:  # the exit code is the program's, whatever becomes of its records
        advice = trace_advice(found, subject, whole_chain=whole_chain)
        _show(found, advice, before, subject, everything=everything, json=json)
        if output:
            write_trace(found, output)
    except (OSError, WaywiserError) as error:
        with suppress(OSError):
            say(f"waywiser: {error}\n")
    return found.exit_code


def _show(
    found: Trace,
    advice: TraceAdvice,
    before: Trace | None,
    subject: Subject | None,
    *,
    everything: bool,
    json: bool,
) -> None:
    """Standard output is the program's: text and JSON go to standard error."""
    import sys

    from waywiser.analysis.trace.patch_comparison import compare_traces
    from waywiser.analysis.trace.savings import trace_advice
    from waywiser.report.views.trace import comparison_parts, trace_parts
    from waywiser.words import json_text

    compared = None
    if before is not None:
        compared = compare_traces(before, found, trace_advice(before, subject))
    if json:
        sys.stderr.write(f"{json_text(document_of(advice, compared))}\n")
        return
    if compared is not None:
        print_result(None, comparison_parts(compared), to_errors=True)
    parts = trace_parts(found, advice, everything=everything, profile=found.profile)
    print_result(None, parts, to_errors=True)


def document_of(advice: TraceAdvice, compared: object = None) -> dict[str, object]:
    """The JSON form."""
    import msgspec

    return {"schema": 1, **msgspec.to_builtins(advice), "compared": msgspec.to_builtins(compared)}


def _subject(profile: str) -> Subject | None:
    """The profile of the machine; None without one. Raises `WaywiserError` for one that cannot be
    used."""
    if not profile:
        return None
    from waywiser.curves import Subject
    from waywiser.machine import require_real
    from waywiser.profile import Profile

    with Profile.open(profile) as opened:
        require_real(opened.machine, profile)
        return Subject.of(opened)


def _watch(pid: int, seconds: int, profile: str, *, json: bool) -> int:
    from waywiser.measure.scope import live_machine
    from waywiser.measure.trace.watch import watch
    from waywiser.report.views.trace import watched_parts

    subject = _subject(profile)
    found = watch(pid, seconds, live_machine())
    print_result(found, watched_parts(found, subject), json=json)
    return 0


def subject_of_trace(found: Trace) -> Subject | None:
    """The profile that a trace was compared with; None, and why, if it is not there any more."""
    from waywiser.cli.streams import say

    try:
        return _subject(found.profile)
    except WaywiserError as error:
        say(f"waywiser: the profile of the trace cannot be used: {error}\n")
        return None


def show_trace(file: str, *, everything: bool = False, json: bool = False) -> None:
    """Shows a trace that was kept, beside the profile that it was made with if that is still
    there. Raises `WaywiserError` for a bad file."""
    from waywiser.analysis.trace.savings import trace_advice
    from waywiser.profile import read_trace
    from waywiser.report.views.trace import trace_parts

    found = read_trace(file)
    advice = trace_advice(found, subject_of_trace(found))
    parts = trace_parts(found, advice, everything=everything, profile=found.profile)
    print_result(document_of(advice) if json else None, parts, json=json)
