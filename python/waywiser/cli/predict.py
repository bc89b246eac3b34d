"""``waywiser predict``: the time of a workload, what limits it, and how sure that is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from waywiser.measure.plan.requested_workloads import parse_workload
from waywiser.model.changes import Change, MachineChanges
from waywiser.model.errors import ModelError
from waywiser.model.machine_model import obtained_model
from waywiser.model.prediction import (
    LONGER,
    LimitingCapacity,
    Prediction,
    Predictor,
    measured_times,
)
from waywiser.profile import Profile
from waywiser.words import WaywiserError, Workload, format_bytes
from waywiser.words.number_format import RATE_BYTES, count, format_rate, format_time
from waywiser.words.sizes_in_text import with_sizes

if TYPE_CHECKING:
    from rich.console import Console

SCHEMA = 1
"""The schema of the JSON form. A new field does not change it."""

MOST_MEASUREMENTS = 6
"""Measurements that a prediction is said to rest on; more are counted."""

MOST_SHOWN = 32
"""Transfers that have a line."""


def run_predict(
    file: str,
    text: str,
    *,
    messages: int = 1,
    changes: Sequence[str] = (),
    gpus: int | None = None,
    compare: bool = False,
    json: bool = False,
) -> int:
    """Prints the prediction. Returns 0. Raises `WorkloadError`, `ModelError`, and the
    `ProfileError` of a bad profile."""
    if not text.strip():
        raise WaywiserError(
            "--workload is missing",
            remedy="name transfers as show prints them, with a size each: 'A -> B by X of 64MiB'",
        )
    workload = parse_workload(text)
    assumed = MachineChanges(tuple(map(Change.parse, changes)), gpus)
    if compare and str(assumed):
        raise WaywiserError(
            "--compare has no measurement of a changed machine",
            remedy="remove it, or --set and --gpus",
        )
    with Profile.open(file) as profile:
        obtained = obtained_model(profile)
        try:
            found = Predictor(obtained.model, assumed).predict(workload, messages)
        except ModelError as error:
            raise ModelError(error.what, where=file, remedy=error.remedy) from error
        if compare:
            from waywiser.profile.series_frame import SeriesFrame

            measured = measured_times(SeriesFrame.read(profile), workload, messages)
            found = msgspec.structs.replace(found, measured=measured)
        origin, created = _origin(profile), profile.created
    if str(assumed):
        note = f"the machine is assumed to have {assumed}, which nobody measured"
        found = msgspec.structs.replace(found, notes=(note, *found.notes))
    if json:
        from waywiser.cli.streams import print_json

        print_json(_document(found, file, created, is_kept=obtained.is_kept))
        return 0
    from waywiser.cli.printing import plain_console

    console = plain_console()
    print_prediction(found, console)
    if compare:
        _print_measured(found, console)
    _print_origin(origin, obtained.note, file, console)
    return 0


def _document(found: Prediction, file: str, created: str, *, is_kept: bool) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "profile": file,
        "created": created,
        "from_kept_model": is_kept,
        **msgspec.to_builtins(found),
        "is_known": found.is_known,
        "error": found.error,
    }


def print_prediction(found: Prediction, console: Console) -> None:
    """The time of all, what limits it, a line for each transfer, what it rests on."""
    from waywiser.cli.lines import say

    say(console, _headline(found), "bold")
    if found.unknown:
        several = len(found.unknown) > 1
        names = " and ".join(filter(None, (", ".join(found.unknown[:-1]), found.unknown[-1])))
        most = format_time(found.interval.high, 0.01)
        say(
            console,
            f"Unknown: the {'capacities' if several else 'capacity'} of {names} "
            f"{'were' if several else 'was'} not measured. The transfers take at most {most} if "
            f"{'these carry' if several else 'it carries'} no more than was measured.",
        )
    for limit in found.limits:
        say(console, f"Limited by {_limit_text(limit)}.")
    if not found.limits:
        say(console, _without_capacity(found))
    if len(found.transfers) > 1:
        _print_transfers(found, console)
    shown = [_named(text) for text in found.rests_on[:MOST_MEASUREMENTS]]
    say(console, "It rests on measurements of:")
    for name in shown:
        say(console, name, indent=2)
    if more := len(found.rests_on) - len(shown):
        say(console, f"and {more} more", indent=2)
    for note in found.notes:
        say(console, f"Note: {with_sizes(note)}.")


def _without_capacity(found: Prediction) -> str:
    """What sets the time, if no capacity does."""
    queues = dict.fromkeys(each.limit for each in found.transfers if each.limit)
    if queues:
        return f"Limited by the {' and the '.join(queues)}: one transfer runs after another."
    alone = max(each.alone for each in found.transfers)
    if found.span > LONGER * alone:
        return f"One alone takes {format_time(alone, 0.01)}."
    return "No shared resource limits it: each transfer takes the time that it takes alone."


def _headline(found: Prediction) -> str:
    """``1.33 ms (1.28 to 1.37) for 2 transfers of 128 MiB together: 101 GB/s``."""
    low, high = found.interval.low, found.interval.high
    sure = (high - low) / 2 / found.span
    number = len(found.transfers)
    if found.is_known:
        around = f"{format_time(found.span, sure)} (95 %: {format_time(low, sure)} to "
        around += f"{format_time(high, sure)})"
    else:
        around = f"{format_time(found.span, 0.01)} or more, since a limit is unknown,"
    what = f"{count(number, 'transfer')}, {format_bytes(found.bytes)} together"
    if number == 1:
        what = with_sizes(found.workload)
    if found.bytes < RATE_BYTES:
        return f"{around} for {what}"
    most = "at most " if not found.is_known else ""
    return f"{around} for {what}: {most}{format_rate(found.bytes / found.span, sure)} GB/s"


def _limit_text(limit: LimitingCapacity) -> str:
    """``PCIe to gpu:*, which carries 55.6 GB/s (54 to 57) by copy-engine, by sets``."""
    around = limit.interval
    sure = (around.high - around.low) / 2 / limit.bytes_per_second if around else 0.005
    rate = f"{format_rate(limit.bytes_per_second, sure)} GB/s"
    if around is not None:
        rate += f" ({format_rate(around.low, sure)} to {format_rate(around.high, sure)})"
    return f"{limit.resource}: {rate} for {limit.method}, {BASES[limit.basis]}"


BASES = {
    "sets": "from sets of transfers",
    "one transfer": "which one transfer fills",
    "assumed": "which is assumed",
}
"""Where a capacity is from."""


def _print_transfers(found: Prediction, console: Console) -> None:
    from waywiser.cli.lines import say
    from waywiser.cli.text_table import TextColumn, print_table

    measured = found.measured.seconds if found.measured is not None else ()
    waits = any(each.waited > 0 for each in found.transfers)
    columns = [
        TextColumn("transfer", left=True, folds=True),
        TextColumn("alone"),
        *([TextColumn("waits")] if waits else []),
        TextColumn("together"),
        TextColumn("95 %"),
        *([TextColumn("measured")] if measured else []),
        TextColumn("limited by", left=True, folds=True),
    ]
    rows = []
    for n, each in enumerate(found.transfers[:MOST_SHOWN]):
        low, high = each.interval.low, each.interval.high
        sure = (high - low) / 2 / each.seconds
        times = [format_time(each.alone, 0.005)]
        if waits:
            times.append(format_time(each.waited, 0.005) if each.waited > 0 else "—")
        times.append(format_time(each.seconds, 0.005))
        times.append(f"{format_time(low, sure)} to {format_time(high, sure)}")
        if measured:
            times.append(format_time(measured[n], 0.005))
        rows.append((with_sizes(each.transfer), *times, each.limit or "—"))
    print_table(console, columns, rows)
    if (more := len(found.transfers) - MOST_SHOWN) > 0:
        say(console, f"and {more} more transfers; --json has all")
    if waits and measured:
        say(
            console,
            "Measured times of transfers are from their own starts: without what they wait.",
        )


def _print_measured(found: Prediction, console: Console) -> None:
    from waywiser.cli.lines import say

    measured, error = found.measured, found.error
    if measured is None or error is None:
        say(console, "Measured: the profile has no measurement of it.")
        return
    inside = found.interval.low <= measured.span <= found.interval.high
    say(
        console,
        f"Measured: {format_time(measured.span, 0.002)} in "
        f"{count(measured.processes, 'process')}; the prediction is {error:+.1%} off, "
        f"{'within' if inside else 'outside'} its interval.",
        "bold",
    )


def _print_origin(origin: str, note: str, file: str, console: Console) -> None:
    from waywiser.cli.lines import say

    say(console, "Times are those of the transfers on the devices; waywiser advise has times from "
                 "the call to completion, which are longer for small transfers.")  # fmt: skip
    say(console, f"The profile was {origin}; a machine in another state takes other times.")
    if note:
        say(console, f"Note: the model was fitted now, since {note}; waywiser model {file} "
                     "keeps it.")  # fmt: skip


def _origin(profile: Profile) -> str:
    """``measured on 2026-11-20``; results of other tools are only known to be imported."""
    day = profile.created[:10]
    if profile.machine.simulated:
        return f"simulated on {day} {profile.machine.simulated}"
    return f"imported on {day}" if "imported" in profile.environment else f"measured on {day}"


def _named(text: str) -> str:
    """A measured workload by its short name, with units."""
    from waywiser.curves.name import label_of

    try:
        return with_sizes(label_of(Workload.parse(text)))
    except WaywiserError:
        return text
