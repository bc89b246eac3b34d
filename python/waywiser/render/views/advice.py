"""The method for one copy, first the answer, then the reason; and the method of every size."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from waywiser.analysis.policy.advice import Advice, AdvisedMethod
from waywiser.analysis.policy.candidates import SURVEYED_MESSAGES, is_of_library
from waywiser.analysis.policy.decision_table import (
    HOST_CONTIGUOUS,
    DecisionTable,
    SizeDecision,
)
from waywiser.analysis.policy.texts import costly_text, costs_text
from waywiser.render.parts import Block, Section, Sheet, SheetColumn, Words, numbers
from waywiser.words import (
    RATE_BYTES,
    by_wording,
    count,
    format_bytes,
    format_rate,
    format_time,
    size_text,
)

USES_POLICY = (
    "waywiser.transfer chooses this method if a policy of this profile is installed that decides "
    "this copy (waywiser export FILE --for waywiser -o machine.json, then "
    "WAYWISER_POLICY=machine.json); else it uses its defaults. "
    "waywiser.transfer.explain says which."
)

REASONS = {
    "only": "the only one",
    "faster": "fastest",
    "simpler": "simpler, no slower than the noise",
    "shorter": "as its neighbours, within the noise",
}
"""Why a method is used at a size, in a table."""

COLUMNS = (
    *numbers("from", "measured"),
    SheetColumn("method", folds=True),
    *numbers("bandwidth or time"),
    SheetColumn("next best", folds=True),
    "because",
)


def advice_parts(found: Advice, *, table: bool = False) -> Iterator[Block | Section]:
    """The method, its bandwidth, the alternatives, why, the code, and what it takes; with ``table``
    the method of every measured size."""
    request, best = found.request, found.best
    yield Words(costly_text(best.method, best.time.costs), "lead")
    pieces = f"{count(best.time.pieces, 'piece')} of " if request.count > 1 else ""
    what = f"{pieces}{format_bytes(request.bytes)} from {request.source} to {request.destination}"
    what += f", {HOST_CONTIGUOUS}" if request.host_contiguous else ""
    yield Words(f"{_expected(best)} for {what}")
    yield Words(f"Why: {found.why}.")
    for other in found.alternatives:
        excluded = f" ({other.excluded})" if other.excluded else ""
        takes = f"{_expected(other)}, {takes_text(other.margin)}{excluded}"
        yield Words(f"{costly_text(other.method, other.time.costs)}: {takes}", indent=2)
    if any(each.time.interpolated for each in (best, *found.alternatives)):
        yield Words("≈: not measured at this size, but estimated from other sizes.")
    has_it = is_of_library(best.method, (request.source, request.destination), request.count)
    if has_it:
        yield Words(f"It takes from others: {costs_text(best.time.costs)}.")
    else:
        of_ranks = SURVEYED_MESSAGES in found.notes
        why = "no survey of ranks measures it" if of_ranks else "another tool measured it"
        yield Words(f"What it takes from others is not known: {why}.")
    for line in found.code:
        yield Words(f"{line.library}: {line.code}")
    if has_it:
        yield Words(USES_POLICY)
    for note, _ in by_wording(found.notes):
        yield Words(f"Note: {note}.")
    if table:
        yield Section("", "", (_sheet(found.table),))


def table_parts(found: DecisionTable, notes: Sequence[str]) -> Iterator[Block | Section]:
    """The method of every measured size."""
    pieces = f", lists of {count(found.count, 'piece')}" if found.count > 1 else ""
    yield Words(f"{found.kind}{pieces}", "lead")
    for note in notes:
        yield Words(f"Note: {note}.")
    yield Section("", "", (_sheet(found),))


def _sheet(table: DecisionTable) -> Sheet:
    rows = (_row(table, each) for each in table.decisions)
    return Sheet.of("Method by size", COLUMNS, rows)


def _row(table: DecisionTable, each: SizeDecision) -> tuple[str, ...]:
    moved, time = each.bytes * each.time.pieces, each.time
    relative = (time.high - time.low) / 2 / time.seconds
    does = format_time(time.seconds, relative)
    if moved >= RATE_BYTES:
        does = f"{format_rate(moved / time.seconds, relative)} GB/s"
    rival = "—"
    if each.next is not None and (margin := each.margin(each.next)) is not None:
        other = each.times[each.next] or time
        rival = f"{costly_text(table.methods[each.next], other.costs)} {margin:+.0%}"
    return (
        size_text(each.from_bytes),
        format_bytes(each.bytes),
        costly_text(table.methods[each.chosen], time.costs),
        f"≈ {does}" if time.interpolated else does,
        rival,
        REASONS[each.why],
    )


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


def takes_text(margin: float) -> str:
    """``takes 17% longer``, ``takes 4% less time``; from 100 % on ``takes ×2.3 the time``."""
    if margin >= 1:
        digits = ".0f" if margin >= 99 else ".3g"
        return f"takes ×{margin + 1:{digits}} the time"
    return f"takes {margin:.0%} longer" if margin >= 0 else f"takes {-margin:.0%} less time"
