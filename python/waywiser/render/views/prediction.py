"""A prediction: the time of all, what limits it, a line for each transfer, what it rests on."""

from __future__ import annotations

from collections.abc import Iterator

from waywiser.curves import label_of
from waywiser.model.prediction import LONGER, LimitingCapacity, Prediction
from waywiser.render.parts import Block, Sheet, SheetColumn, Words, numbers
from waywiser.words import (
    RATE_BYTES,
    WaywiserError,
    Workload,
    by_wording,
    bytes_of_each,
    count,
    format_bytes,
    format_rate,
    format_time,
    with_sizes,
)

MOST_MEASUREMENTS = 6
"""Measurements that a prediction is said to rest on; more are counted."""

MOST_SHOWN = 32
"""Transfers that have a line."""

BASES = {
    "sets": "from sets of transfers",
    "one transfer": "which one transfer fills",
    "assumed": "which is assumed",
}
"""Where a capacity is from."""


TRANSFER_COLUMNS = (
    SheetColumn("transfer", folds=True),
    *numbers("alone", "waits", "together", "95 %", "measured"),
    SheetColumn("limited by", folds=True),
)


def prediction_parts(found: Prediction) -> Iterator[Block]:
    """What is predicted."""
    yield Words(_headline(found), "lead")
    if found.unknown:
        yield Words(_unknown(found))
    for limit in found.limits:
        yield Words(f"Limited by {_limit_text(limit)}.")
    if not found.limits:
        yield Words(_without_capacity(found))
    if len(found.transfers) > 1:
        yield from _transfers(found)
    yield Words("It rests on measurements of:")
    for text in found.rests_on[:MOST_MEASUREMENTS]:
        yield Words(_named(text), indent=2)
    if (more := len(found.rests_on) - MOST_MEASUREMENTS) > 0:
        yield Words(f"and {more} more", indent=2)
    for line, _ in by_wording(found.notes):
        yield Words(f"Note: {with_sizes(line)}.")


def measured_parts(found: Prediction, *, is_changed: bool = False) -> Iterator[Block]:
    """What was measured beside it; if the machine of the prediction ``is_changed``, on the machine
    as it was."""
    measured, error = found.measured, found.error
    if measured is None or error is None:
        yield Words("Measured: the profile has no measurement of it.")
        return
    if is_changed:
        yield Words(
            f"Measured without the change: {format_time(measured.span, 0.002)} in "
            f"{count(measured.processes, 'process')}; with it the prediction is {error:+.1%}.",
            "lead",
        )
        return
    where = "within" if found.interval.contains(measured.span) else "outside"
    yield Words(
        f"Measured: {format_time(measured.span, 0.002)} in "
        f"{count(measured.processes, 'process')}; the prediction is {error:+.1%} off, "
        f"{where} its interval.",
        "lead",
    )


def _headline(found: Prediction) -> str:
    """``1.33 ms (95 %: 1.28 ms to 1.37 ms) for 2 × 64 MiB: 101 GB/s``."""
    low, high = found.interval.low, found.interval.high
    sure = (high - low) / 2 / found.span
    number = len(found.transfers)
    if found.is_known:
        around = f"{format_time(found.span, sure)} (95 %: {format_time(low, sure)} to "
        around += f"{format_time(high, sure)})"
    else:
        around = f"{format_time(found.span, 0.01)} or more, since a limit is unknown,"
    if number == 1:
        what = with_sizes(found.workload)
    elif number * (each := bytes_of_each(found.workload)) == found.bytes:
        what = f"{number} × {format_bytes(each)}"
    else:
        what = f"{count(number, 'transfer')}, {format_bytes(found.bytes)} together"
    if found.bytes < RATE_BYTES:
        return f"{around} for {what}"
    most = "at most " if not found.is_known else ""
    return f"{around} for {what}: {most}{format_rate(found.bytes / found.span, sure)} GB/s"


def _unknown(found: Prediction) -> str:
    several = len(found.unknown) > 1
    names = " and ".join(filter(None, (", ".join(found.unknown[:-1]), found.unknown[-1])))
    most = format_time(found.interval.high, 0.01)
    return (
        f"Unknown: the {'capacities' if several else 'capacity'} of {names} "
        f"{'were' if several else 'was'} not measured. The transfers take at most {most} if "
        f"{'these carry' if several else 'it carries'} no more than was measured."
    )


def _without_capacity(found: Prediction) -> str:
    """What sets the time, if no capacity does."""
    queues = dict.fromkeys(each.limit for each in found.transfers if each.limit)
    if queues:
        return f"Limited by the {' and the '.join(queues)}: one transfer runs after another."
    alone = max(each.alone for each in found.transfers)
    if found.span > LONGER * alone:
        return f"One alone takes {format_time(alone, 0.01)}."
    several = len(found.transfers) > 1
    which = "that its transfers share" if several else "on its way"
    if not found.resources:
        said = f"The model has no resource {which}"
    elif not found.with_capacity:
        said = f"Of {count(found.resources, 'resource')} {which} no capacity is known"
    else:
        resources = count(found.resources, "resource")
        said = (
            f"Of {resources} {which}, {found.with_capacity} with a known capacity, none limits it"
        )
    return f"{said}: each transfer takes the time that it takes alone." if several else f"{said}."


def _limit_text(limit: LimitingCapacity) -> str:
    """``PCIe to gpu:*, which carries 55.6 GB/s (54 to 57) by copy-engine, by sets``."""
    around = limit.interval
    sure = (around.high - around.low) / 2 / limit.bytes_per_second if around else 0.005
    rate = f"{format_rate(limit.bytes_per_second, sure)} GB/s"
    if around is not None:
        rate += f" ({format_rate(around.low, sure)} to {format_rate(around.high, sure)})"
    return f"{limit.resource}: {rate} for {limit.method}, {BASES[limit.basis]}"


def _transfers(found: Prediction) -> Iterator[Block]:
    measured = found.measured.seconds if found.measured is not None else ()
    waits = any(each.waited > 0 for each in found.transfers)
    rows = []
    for n, each in enumerate(found.transfers[:MOST_SHOWN]):
        low, high = each.interval.low, each.interval.high
        sure = (high - low) / 2 / each.seconds
        waited = format_time(each.waited, 0.005) if each.waited > 0 else "—"
        rows.append((
            with_sizes(each.transfer),
            format_time(each.alone, 0.005),
            waited if waits else "",
            format_time(each.seconds, 0.005),
            f"{format_time(low, sure)} to {format_time(high, sure)}",
            format_time(measured[n], 0.005) if measured else "",
            each.limit or "—",
        ))  # fmt: skip
    yield Sheet.of("Transfers", TRANSFER_COLUMNS, rows).without_empty_columns()
    if (more := len(found.transfers) - MOST_SHOWN) > 0:
        yield Words(f"and {more} more transfers; --json has all")
    if waits and measured:
        own = "Measured times of transfers are from their own starts: without what they wait."
        yield Words(own)


def _named(text: str) -> str:
    """A measured workload by its short name, with units."""
    try:
        return with_sizes(label_of(Workload.parse(text)))
    except WaywiserError:
        return text
