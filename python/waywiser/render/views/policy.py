"""Policies: which method is fastest for each copy, and how two policies differ."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain, groupby

from waywiser.analysis.policy.build import why_not_written
from waywiser.analysis.policy.decision_table import CopyKind, DecisionTable, Method
from waywiser.analysis.policy.difference import (
    PolicyComparison,
    PolicyDifference,
    rows_by_kind,
)
from waywiser.analysis.policy.table import Fingerprint, Policy, PolicyRow
from waywiser.analysis.policy.texts import costly_text, costs_text, method_text
from waywiser.curves.texts import span
from waywiser.render.parts import Block, Code, Section, Sheet, SheetColumn, Words
from waywiser.words import (
    RATE_BYTES,
    by_wording,
    count,
    format_bytes,
    format_rate,
    format_time,
    grouped,
    size_text,
)

COLUMNS = (
    "from",
    SheetColumn("method", folds=True),
    f"time below {format_bytes(RATE_BYTES)}",
    f"GB/s from {format_bytes(RATE_BYTES)} on",
    SheetColumn("next best", folds=True),
    SheetColumn("takes from others", folds=True),
)

LEGEND = (
    "A line: the method from this size on, for lists the size of a piece. Time, GB/s: at the "
    "smallest and the largest size of the line, from call to completion. Next best: how much "
    "longer it takes. Takes from others: what other work lacks meanwhile."
)

DIFFERENCE_COLUMNS = (
    SheetColumn("copy", folds=True),
    "sizes",
    SheetColumn("A", folds=True),
    SheetColumn("B", folds=True),
    "B's method on A",
    "A's method on B",
)


def policy_parts(found: Policy, tables: Sequence[DecisionTable] = ()) -> Iterator[Block | Section]:
    """The machine, and for each kind of copy a line per range of sizes with one method. Counts of
    pieces with the choices of the next smaller count are not repeated. ``tables`` have notes."""
    yield Words(f"Policy of {machine_text(found.machine)}, measured {found.measured}")
    for kind, rows in chain.from_iterable(map(rows_by_kind, found.classes)):
        notes = dict.fromkeys(n for table in tables if table.kind == kind for n in table.notes)
        *others, last = _sheets(kind, rows)
        for sheet in others:
            yield Section("", sheet.title, (sheet,))
        lines = (Words(f"Note: {line}.") for line, _ in by_wording(list(notes)))
        yield Section("", last.title, (last, *lines))
    yield Section("", "", (Words(LEGEND),))
    reasons = ((table.kind, why_not_written(table)) for table in tables)
    kept = tuple(dict.fromkeys(f"{kind}: {why}" for kind, why in reasons if why))
    if kept:
        why = Words("Without rows, so that the library keeps its defaults:")
        yield Section("", "", (why, *(Words(line, indent=2) for line in kept)))
    yield from hidden_parts(tables)


def table_parts(
    found: Policy, tables: Sequence[DecisionTable], files: Sequence[str]
) -> Iterator[Block | Section]:
    """`policy_parts`, and the command that writes the policy of the ``files``."""
    yield from policy_parts(found, tables)
    if not _number_of_rows(found):
        yield Words("It would decide nothing: programs keep the library's defaults.")
        return
    command = f"waywiser export {' '.join(files)} --for waywiser -o machine.json"
    lines = (Words("To use it:"), Code(command, indent=4), Words(_use("machine.json")))
    yield Section("", "", lines)


def written_parts(
    found: Policy, tables: Sequence[DecisionTable], output: str
) -> Iterator[Block | Section]:
    """What is in the file ``output``, and how programs use it."""
    number = _number_of_rows(found)
    kinds = count(len(found.classes), "kind")
    yield Words(f"{output}: {count(number, 'row')} for {kinds} of copies")
    if number:
        yield Words(_use(output))
    else:
        yield Words("It decides nothing: programs with it keep the library's defaults.")
    yield from hidden_parts(tables)


def _number_of_rows(found: Policy) -> int:
    return sum(len(each.rows) + len(each.host_contiguous) for each in found.classes)


def _use(file: str) -> str:
    return (
        f"Programs use it with WAYWISER_POLICY={file}, or from ~/.config/waywiser/ or "
        "/etc/waywiser/."
    )


def hidden_parts(tables: Sequence[DecisionTable]) -> Iterator[Section]:
    """The kinds of copies and the sizes at which noise hides which method is better."""
    found = [each for each in tables if each.hidden and not why_not_written(each)]
    if not found:
        return
    lines = [Words("Not decided by these times, so that the simpler method is kept:")]
    for kind, same in grouped((each.kind, each) for each in found).items():
        lines.append(Words(": ".join(filter(None, (str(kind), same[0].remedy))), indent=2))
        lines += [Words(each.hidden, indent=4) for each in same]
    yield Section("", "", tuple(lines))


def _sheets(kind: CopyKind, rows: Sequence[PolicyRow]) -> Iterator[Sheet]:
    before: list[tuple[str, ...]] = []
    for (pieces, threads), group in groupby(rows, key=lambda row: (row.count, row.threads)):
        ranges = [_range(list(same)) for _, same in groupby(group, key=lambda row: row.method)]
        choices = [row[:2] for row in ranges]
        if pieces == 1 or choices != before:
            lists = f", lists of {pieces} pieces and more" if pieces > 1 else ""
            cpus = f" (from {count(threads, 'CPU')} on)" if threads > 1 else ""
            yield Sheet.of(f"{kind}{lists}{cpus}", COLUMNS, ranges)
        before = choices


def _range(rows: Sequence[PolicyRow]) -> tuple[str, ...]:
    """A range of sizes with one method."""
    first, last = rows[0], rows[-1]
    margins = [row.next.margin for row in rows if row.next is not None]
    other = next((row.next for row in reversed(rows) if row.next is not None), None)
    rival = "no other was measured"
    if other is not None:
        ends = span(f"{min(margins):+.0%}", f"{max(margins):+.0%}")
        method = Method(other.executor, other.settings)
        name = method_text(method, by_multiprocessors=other.by_multiprocessors)
        rival = f"{name}: {ends}"
    times = [row for row in rows if row.bytes * row.pieces < RATE_BYTES]
    rates = [row for row in rows if row.bytes * row.pieces >= RATE_BYTES]
    return (
        size_text(first.from_bytes),
        costly_text(Method(first.executor, first.settings), last.costs),
        _of_ends(times, _time),
        _of_ends(rates, _rate),
        rival,
        costs_text(last.costs),
    )


def _of_ends(rows: Sequence[PolicyRow], text: Callable[[PolicyRow], str]) -> str:
    return span(text(rows[0]), text(rows[-1])) if rows else ""


def _time(row: PolicyRow) -> str:
    return format_time(row.seconds, _deviation(row))


def _rate(row: PolicyRow) -> str:
    return format_rate(row.bytes * row.pieces / row.seconds, _deviation(row))


def _deviation(row: PolicyRow) -> float:
    """Half of the interval, as a share of the time."""
    return (row.high - row.low) / 2 / row.seconds


def machine_text(machine: Fingerprint) -> str:
    """``NVIDIA H200 (PCIe 5 x16), Intel ..., driver 580``."""
    link = f" ({machine.gpu_link})" if machine.gpu_link else ""
    gpu = f"{machine.gpu}{link}" if machine.gpu else "a machine without GPUs"
    driver = f"driver {machine.driver}" if machine.driver else ""
    return ", ".join(filter(None, (gpu, machine.cpu, driver)))


def difference_parts(
    found: PolicyComparison, files: Sequence[str], policies: Sequence[Policy]
) -> Iterator[Block]:
    """How many choices are equal, then a line for each range of sizes that differs."""
    differ = found.sizes - found.equal
    yield Words(f"{differ} of {count(found.sizes, 'choice')} differ.", "lead")
    for name, file, policy in zip("AB", files, policies, strict=True):
        yield Words(f"{name}: {file}, {machine_text(policy.machine)}, {policy.measured}")
    if found.differences:
        rows = map(_difference, found.differences)
        yield Sheet.of("Different choices", DIFFERENCE_COLUMNS, rows)
    for only, name in ((found.only_first, "A"), (found.only_second, "B")):
        if only:
            yield Words(f"Only {name} has: {'; '.join(map(str, only))}")


def _difference(each: PolicyDifference) -> tuple[str, ...]:
    pieces = f", lists of {each.count} pieces and more" if each.count > 1 else ""
    return (
        f"{each.kind}{pieces}",
        span(size_text(each.first_bytes), size_text(each.last_bytes)),
        *map(method_text, each.methods),
        _loss(each.loss_on_first),
        _loss(each.loss_on_second),
    )


def _loss(loss: float | None) -> str:
    return "not known" if loss is None else f"takes {loss:+.0%}"
