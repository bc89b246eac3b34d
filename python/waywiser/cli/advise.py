"""``waywiser advise``: the method for one copy, first the answer, then the reason."""

from __future__ import annotations

from typing import TYPE_CHECKING

from waywiser.analysis.policy.advice import Advice, AdvisedMethod, CopyRequest, advise, find_table
from waywiser.analysis.policy.decision_table import DecisionTable
from waywiser.analysis.policy.texts import costs_text, method_text, size_text
from waywiser.cli.lines import say
from waywiser.words import format_bytes
from waywiser.words.number_format import RATE_BYTES, count, format_rate, format_time

if TYPE_CHECKING:
    from rich.console import Console

    from waywiser.curves.subject import Subject


def run_advise(file: str, request: CopyRequest, *, table: bool = False, json: bool = False) -> int:
    """Returns 0. Raises `PolicyError`, and the `ProfileError` of a bad profile."""
    found = advise([_subject(file)], request)
    if json:
        from waywiser.cli.streams import print_json

        print_json(found)
        return 0
    from waywiser.cli.printing import plain_console

    print_advice(found, plain_console(), table=table)
    return 0


def run_table(file: str, request: CopyRequest, *, json: bool = False) -> int:
    """Prints the method of every measured size. Returns 0, and raises as `run_advise` does."""
    found, notes = find_table([_subject(file)], request)
    if json:
        from waywiser.cli.streams import print_json

        print_json(found)
        return 0
    from waywiser.cli.printing import plain_console

    console = plain_console()
    pieces = f", lists of {count(found.count, 'piece')}" if found.count > 1 else ""
    say(console, f"{found.kind}{pieces}", "bold")
    for note in notes:
        say(console, f"Note: {note}.")
    print_table_of(found, console)
    return 0


def _subject(file: str) -> Subject:
    from waywiser.curves.subject import Subject
    from waywiser.profile import Profile

    with Profile.open(file) as profile:
        return Subject.of(profile)


USES_POLICY = (
    "waywiser.transfer chooses this method if a policy of this profile is installed (waywiser "
    "policy FILE -o machine.json, then WAYWISER_POLICY=machine.json); else it uses its defaults."
)


def print_advice(found: Advice, console: Console, *, table: bool = False) -> None:
    """The method, its bandwidth, the alternatives, why, the code, and what it takes."""
    request, best = found.request, found.best
    say(console, method_text(best.method), "bold")
    pieces = f"{count(best.time.pieces, 'piece')} of " if request.count > 1 else ""
    what = f"{pieces}{format_bytes(request.bytes)} from {request.source} to {request.destination}"
    say(console, f"{_expected(best)} for {what}")
    if any(each.time.interpolated for each in (best, *found.alternatives)):
        say(console, "≈: not measured at this size, but estimated from other sizes.")
    say(console, f"Why: {found.why}.")
    for other in found.alternatives:
        excluded = f" ({other.excluded})" if other.excluded else ""
        say(console, f"{method_text(other.method)}: {_expected(other)}, "
                     f"{_takes(other.margin)}{excluded}", indent=2)  # fmt: skip
    say(console, f"It takes from others: {costs_text(best.time.costs)}.")
    for line in found.code:
        say(console, f"{line.library}: {line.code}")
    say(console, USES_POLICY)
    for note in found.notes:
        say(console, f"Note: {note}.")
    if table:
        print_table_of(found.table, console)


def _expected(each: AdvisedMethod) -> str:
    """``14.2 GB/s (13.9 to 14.6), 75.6 ms``; of few bytes the time alone."""
    relative = (each.time.high - each.time.low) / 2 / each.time.seconds
    about = "≈ " if each.time.interpolated else ""
    time = format_time(each.time.seconds, relative)
    if each.bytes_per_second * each.time.seconds < RATE_BYTES:
        low, high = (format_time(end, relative) for end in (each.time.low, each.time.high))
        return f"{about}{time} ({low} to {high})"
    rates = each.bytes_per_second, each.low, each.high
    rate, low, high = (format_rate(end, relative) for end in rates)
    return f"{about}{rate} GB/s ({low} to {high}), {time}"


def _takes(margin: float) -> str:
    """``takes 17% longer``, ``takes 4% less time``."""
    return f"takes {margin:.0%} longer" if margin >= 0 else f"takes {-margin:.0%} less time"


def print_table_of(table: DecisionTable, console: Console) -> None:
    """A line for each measured size."""
    from waywiser.cli.text_table import TextColumn, print_table

    columns = (
        TextColumn("from"),
        TextColumn("measured"),
        TextColumn("method", left=True, folds=True),
        TextColumn("bandwidth or time"),
        TextColumn("next best", left=True, folds=True),
        TextColumn("because", left=True),
    )
    rows = []
    for each in table.decisions:
        moved, time = each.bytes * each.time.pieces, each.time
        relative = (time.high - time.low) / 2 / time.seconds
        does = (
            f"{format_rate(moved / time.seconds, relative)} GB/s"
            if moved >= RATE_BYTES
            else format_time(time.seconds, relative)
        )
        other = each.next
        margin = each.margin(other) if other is not None else None
        rows.append((
            size_text(each.from_bytes),
            format_bytes(each.bytes),
            method_text(table.methods[each.chosen]),
            f"≈ {does}" if time.interpolated else does,
            f"{method_text(table.methods[other])} {margin:+.0%}"
            if other is not None and margin is not None else "—",
            REASONS[each.why],
        ))  # fmt: skip
    say(console, "")
    print_table(console, columns, rows)


REASONS = {
    "only": "the only one",
    "faster": "fastest",
    "simpler": "simpler, no slower than the noise",
    "shorter": "as its neighbours, within the noise",
}
"""Why a method is used at a size, in a table."""
