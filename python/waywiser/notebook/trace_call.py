"""Which copies of a program are slow, at which line: `waywiser.trace`."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import msgspec

from waywiser.analysis.trace.savings import TraceAdvice, trace_advice
from waywiser.notebook.verb_result import FileName, VerbResult
from waywiser.notebook.without_effect import require_effect
from waywiser.profile import Trace, read_trace
from waywiser.words import WaywiserError

if TYPE_CHECKING:
    from waywiser.curves import Subject
    from waywiser.render.parts import Block, Section

LINES = ("innermost", "all")


def trace_command(
    command: Sequence[str],
    *,
    output: FileName | None = None,
    profile: FileName | None = None,
    against: FileName | None = None,
    with_patch: bool = False,
    lines: str = "innermost",
    cupti: FileName | None = None,
    pid: int | None = None,
    seconds: int = 10,
    everything: bool = False,
) -> VerbResult:
    """As `waywiser.trace`. Files are looked at before the program runs."""
    if lines not in LINES:
        raise WaywiserError(f"{lines!r} is no choice of lines", remedy="write innermost or all")
    if pid is not None:
        given = {"a command": command, "-o": output, "--against": against, "--cupti": cupti,
                 "--with-patch": with_patch}  # fmt: skip
        require_effect({"--pid watches a program that runs": given})
        return _watched(pid, seconds, profile)
    if not command:
        raise WaywiserError(
            "no program is named", remedy="write waywiser trace -- python train.py, or --pid PID"
        )
    if output:
        from waywiser.profile.trace_file import require_trace_output

        require_trace_output(os.fspath(output))
    before = read_trace(os.fspath(against)) if against else None
    if before is not None and not profile and os.path.exists(before.profile):
        profile = before.profile
    subject = _subject(profile)
    from waywiser.measure.trace.run import traced

    found = traced(command, cupti=os.fspath(cupti or ""), patched=with_patch)
    found = msgspec.structs.replace(found, profile=os.path.abspath(profile) if profile else "")
    return _kept(found, subject, before, output, whole_chain=lines == "all", everything=everything)


def _kept(
    found: Trace,
    subject: Subject | None,
    before: Trace | None,
    output: FileName | None,
    *,
    whole_chain: bool,
    everything: bool,
) -> VerbResult:
    """The result. The exit code is the program's, whatever becomes of its records, which are
    written first."""
    from waywiser.analysis.trace.patch_comparison import compare_traces
    from waywiser.render.views.trace import comparison_parts

    code, said = found.exit_code, _written(found, output)
    try:
        advice = trace_advice(found, subject, whole_chain=whole_chain)
        compared = None
        if before is not None:
            compared = compare_traces(before, found, trace_advice(before, subject))
    except (OSError, WaywiserError) as error:
        return VerbResult(found, dict, tuple, exit_code=code, said=(*said, f"waywiser: {error}"))

    def parts() -> Iterator[Block | Section]:
        if compared is not None:
            yield from comparison_parts(compared)
        yield from _parts(found, advice, everything=everything)

    document = _document(advice, compared)
    return VerbResult(found, lambda: document, parts, exit_code=code, said=said)


def _written(found: Trace, output: FileName | None) -> tuple[str, ...]:
    """Writes a trace to a file that is named; returns what is to say of it."""
    from waywiser.profile.trace_file import write_trace

    try:
        if output:
            write_trace(found, os.fspath(output))
    except (OSError, WaywiserError) as error:
        return (f"waywiser: {error}",)
    return ()


def _parts(found: Trace, advice: TraceAdvice, *, everything: bool) -> Iterator[Block | Section]:
    from waywiser.render.views.trace import trace_parts

    yield from trace_parts(found, advice, everything=everything, profile=found.profile)


def _document(advice: TraceAdvice, compared: object = None) -> dict[str, object]:
    """The JSON form."""
    return {"schema": 1, **msgspec.to_builtins(advice), "compared": msgspec.to_builtins(compared)}


def _subject(profile: FileName | None) -> Subject | None:
    """The profile of the machine; None without one. Raises `WaywiserError` for one that cannot be
    used."""
    if not profile:
        return None
    from waywiser.curves import Subject
    from waywiser.machine import require_real
    from waywiser.profile import Profile

    with Profile.open(profile) as opened:
        require_real(opened.machine, os.fspath(profile))
        return Subject.of(opened)


def _watched(pid: int, seconds: int, profile: FileName | None) -> VerbResult:
    from waywiser.machine import DECLARED
    from waywiser.measure.scope import live_machine
    from waywiser.measure.trace.watch import watch, with_copies
    from waywiser.profile import Profile
    from waywiser.profile.traffic import packet_overheads
    from waywiser.render.views.trace import watched_parts

    subject, machine = _subject(profile), live_machine()
    found = watch(pid, seconds, machine)
    if profile and subject is not None:
        known = {gpu.index: gpu.uuid for gpu in subject.machine.gpus}
        watched = {gpu.gpu for gpu in found.gpus}
        if others := [gpu for gpu in machine.gpus
                      if gpu.index in watched and known.get(gpu.index) != gpu.uuid]:  # fmt: skip
            note = f"the profile is of other GPUs than gpu:{others[0].index}, and is not used"
            found = msgspec.structs.replace(found, notes=(*found.notes, note))
            subject = None
        else:
            with Profile.open(profile) as opened:
                found = with_copies(found, packet_overheads(opened.iter_series(), DECLARED))
    return VerbResult(found, lambda: found, lambda: watched_parts(found, subject))


def subject_of_trace(
    found: Trace, profile: FileName | None = None
) -> tuple[Subject | None, tuple[str, ...]]:
    """The ``profile``, else the one that a trace was compared with; None, and why, if that is not
    there any more. Raises `WaywiserError` for a ``profile`` that cannot be used."""
    if profile:
        return _subject(profile), ()
    try:
        return _subject(found.profile), ()
    except WaywiserError as error:
        return None, (f"waywiser: the profile of the trace cannot be used: {error}",)


def show_trace(
    file: str, profile: FileName | None = None, *, everything: bool = False
) -> VerbResult:
    """A trace that was kept, beside a profile, by default the one that it was made with if that is
    still there. Raises `WaywiserError` for a bad file."""
    found = read_trace(file)
    subject, notes = subject_of_trace(found, profile)
    if profile:
        found = msgspec.structs.replace(found, profile=os.path.abspath(profile))
    advice = trace_advice(found, subject)
    return VerbResult(
        found,
        lambda: _document(advice),
        lambda: _parts(found, advice, everything=everything),
        said=notes,
    )
