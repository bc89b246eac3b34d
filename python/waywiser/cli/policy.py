"""``waywiser policy``: which method is fastest for each copy, as a table or a policy file."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from waywiser.analysis.policy.build import why_not_written
from waywiser.analysis.policy.decision_table import CopyKind, DecisionTable, Method
from waywiser.analysis.policy.difference import PolicyComparison, PolicyDifference, compare_policies
from waywiser.analysis.policy.errors import NotAPolicy, PolicyError
from waywiser.analysis.policy.file import is_policy, read_policy
from waywiser.analysis.policy.table import FORMAT, Fingerprint, Policy, PolicyRow
from waywiser.analysis.policy.texts import costs_text, method_text, size_text
from waywiser.words import format_bytes
from waywiser.words.number_format import RATE_BYTES, count, format_rate, format_time
from waywiser.words.regular_file import open_regular

if TYPE_CHECKING:
    from rich.console import Console

HEAD_BYTES = 4096

_RATED = format_bytes(RATE_BYTES)


class _Source(NamedTuple):
    """A policy, and the tables that it was made of if it is not from a file."""

    policy: Policy
    tables: tuple[DecisionTable, ...] = ()


def run_policy(
    files: Sequence[str], output: str = "", *, compare: bool = False, json: bool = False
) -> int:
    """Returns 0. Raises `PolicyError`, `NotWritable`, `ExistingFile`, and the `ProfileError` of a
    bad profile."""
    from waywiser.profile.output_file import (
        OutputKind,
        require_one_output,
        require_output,
        write_output,
    )

    require_one_output(json=json, output=output)
    policy_file = OutputKind("policy", f'"{FORMAT}"')
    require_output(output, policy_file)
    if compare:
        if len(files) != 2 or output:
            raise PolicyError(
                f"--compare takes two files, and {count(len(files), 'file')} are given"
                if len(files) != 2
                else "--compare writes no policy",
                remedy="write waywiser policy --compare A B",
            )
        _compare(files, json=json)
        return 0
    source = _read(files)
    found = source.policy
    if output:
        write_output(output, found.to_json(), policy_file)
    if json:
        sys.stdout.write(found.to_json().decode())
    elif output and output != "-":
        rows = sum(len(each.rows) for each in found.classes)
        print(f"{output}: {count(rows, 'row')} for {count(len(found.classes), 'kind')} of copies")
        print(_install(output))
    elif not output:
        from waywiser.cli.printing import plain_console

        print_policy(found, plain_console(), source.tables)
        print(f"\nTo use it: waywiser policy {' '.join(files)} -o machine.json")
        print(_install("machine.json"))
    return 0


def _install(file: str) -> str:
    return (
        f"Programs use it with WAYWISER_POLICY={file}, or from ~/.config/waywiser/ or "
        "/etc/waywiser/."
    )


def _read(files: Sequence[str]) -> _Source:
    from waywiser.analysis.policy.build import decision_tables, policy_of
    from waywiser.curves.subject import Subject
    from waywiser.profile import Profile

    policies = [file for file in files if _is_policy(file)]
    if policies and len(files) > 1:
        raise NotAPolicy(
            "is a policy already",
            where=policies[0],
            remedy="give profiles alone, or two files with --compare",
        )
    if policies:
        return _Source(read_policy(policies[0]))
    subjects = []
    for file in dict.fromkeys(files):
        with Profile.open(file) as profile:
            subjects.append(Subject.of(profile))
    tables = decision_tables(subjects)
    if not tables:
        raise PolicyError(
            "no method of the transfer library was measured",
            where=files[0],
            remedy="measure paths: waywiser survey --preset standard",
        )
    return _Source(policy_of(tables, subjects), tables)


def _is_policy(file: str) -> bool:
    try:
        with open_regular(file) as descriptor, open(descriptor, "rb", closefd=False) as stream:
            return is_policy(stream.read(HEAD_BYTES))
    except OSError:
        return Path(file).suffix == ".json"


def print_policy(found: Policy, console: Console, tables: Sequence[DecisionTable] = ()) -> None:
    """The machine, and for each kind of copy a line per range of sizes with one method. Counts of
    pieces with the choices of the next smaller count are not repeated. ``tables`` have notes."""
    from waywiser.cli.lines import say
    from waywiser.cli.text_table import TextColumn, print_table

    console.print(f"Policy of {machine_text(found.machine)}, measured {found.measured}",
                  soft_wrap=True, highlight=False)  # fmt: skip
    columns = (
        TextColumn("from", left=True),
        TextColumn("method", left=True, folds=True),
        TextColumn(f"time below {_RATED}", left=True),
        TextColumn(f"GB/s from {_RATED} on", left=True),
        TextColumn("next best", left=True, folds=True),
        TextColumn("takes from others", left=True, folds=True),
    )
    for each in found.classes:
        kind = CopyKind(each.source, each.destination, each.relation, each.peers_idle)
        before: list[tuple[str, ...]] = []
        for (pieces, threads), group in groupby(each.rows, key=lambda r: (r.count, r.threads)):
            ranges = _ranges(list(group))
            choices = [row[:2] for row in ranges]
            if pieces > 1 and choices == before:
                continue
            before = choices
            title = str(kind)
            title += f", lists of {pieces} pieces and more" if pieces > 1 else ""
            cpus = f" (from {count(threads, 'CPU')} on)" if threads > 1 else ""
            console.print(f"\n[bold]{title}[/bold]{cpus}", highlight=False, soft_wrap=True)
            print_table(console, columns, ranges)
        for note in dict.fromkeys(n for table in tables if table.kind == kind for n in table.notes):
            say(console, f"Note: {note}.")
    console.print(
        "\nA line: the method from this size on, for lists the size of a piece. Time, GB/s: at the "
        "smallest and the largest size of the line, from call to completion. Next best: how much "
        "longer it takes. Takes from others: what other work lacks meanwhile.",
        highlight=False,
        soft_wrap=True,
    )
    reasons = ((table.kind, why_not_written(table)) for table in tables)
    kept = {f"{kind}: {why}": None for kind, why in reasons if why}
    if kept:
        say(console, "\nWithout rows, so that the library keeps its defaults:")
        for line in kept:
            say(console, line, indent=2)


def _ranges(rows: Sequence[PolicyRow]) -> list[tuple[str, ...]]:
    lines: list[tuple[str, ...]] = []
    for _, group in groupby(rows, key=lambda row: row.method):
        found = list(group)
        first, last = found[0], found[-1]
        margins = [row.next.margin for row in found if row.next is not None]
        other = next((row.next for row in reversed(found) if row.next is not None), None)
        lines.append((
            size_text(first.from_bytes),
            method_text(Method(first.executor, first.settings)),
            *_times_and_rates(found),
            f"{method_text(Method(other.executor, other.settings))}: {_margins(margins)}"
            if other is not None else "no other was measured",
            costs_text(last.costs),
        ))  # fmt: skip
    return lines


def _times_and_rates(rows: Sequence[PolicyRow]) -> tuple[str, str]:
    """The times of few bytes, and the bandwidths of the others: each from the first to the last of
    the rows."""
    times = [row for row in rows if row.bytes * row.pieces < RATE_BYTES]
    rates = [row for row in rows if row.bytes * row.pieces >= RATE_BYTES]
    return _of_ends(times, _time), _of_ends(rates, _rate)


def _of_ends(rows: Sequence[PolicyRow], text: Callable[[PolicyRow], str]) -> str:
    return _span(text(rows[0]), text(rows[-1])) if rows else ""


def _time(row: PolicyRow) -> str:
    return format_time(row.seconds, _deviation(row))


def _rate(row: PolicyRow) -> str:
    return format_rate(row.bytes * row.pieces / row.seconds, _deviation(row))


def _deviation(row: PolicyRow) -> float:
    """Half of the interval, as a share of the time."""
    return (row.high - row.low) / 2 / row.seconds


def _span(low: str, high: str) -> str:
    return low if low == high else f"{low} to {high}"


def _margins(margins: Sequence[float]) -> str:
    return _span(f"{min(margins):+.0%}", f"{max(margins):+.0%}")


def machine_text(machine: Fingerprint) -> str:
    """``NVIDIA H200 (PCIe 5 x16), Intel ..., driver 580``."""
    link = f" ({machine.gpu_link})" if machine.gpu_link else ""
    gpu = f"{machine.gpu}{link}" if machine.gpu else "a machine without GPUs"
    driver = f"driver {machine.driver}" if machine.driver else ""
    return ", ".join(filter(None, (gpu, machine.cpu, driver)))


def _compare(files: Sequence[str], *, json: bool) -> None:
    first, second = (_read([file]) for file in files)
    found = compare_policies(first.policy, second.policy, first.tables, second.tables)
    if json:
        from waywiser.cli.streams import print_json

        print_json(found)
        return
    from waywiser.cli.printing import plain_console

    print_comparison(found, files, (first.policy, second.policy), plain_console())


def print_comparison(
    found: PolicyComparison,
    files: Sequence[str],
    policies: Sequence[Policy],
    console: Console,
) -> None:
    """How many choices are equal, then a line for each range of sizes that differs."""
    from waywiser.cli.lines import say
    from waywiser.cli.text_table import TextColumn, print_table

    differ = found.sizes - found.equal
    say(console, f"{differ} of {count(found.sizes, 'choice')} differ.", "bold")
    for name, file, policy in zip("AB", files, policies, strict=True):
        say(console, f"{name}: {file}, {machine_text(policy.machine)}, {policy.measured}")
    if found.differences:
        columns = (
            TextColumn("copy", left=True, folds=True),
            TextColumn("sizes", left=True),
            TextColumn("A", left=True, folds=True),
            TextColumn("B", left=True, folds=True),
            TextColumn("B's method on A", left=True),
            TextColumn("A's method on B", left=True),
        )
        print_table(console, columns, [_difference(each) for each in found.differences])
    for only, name in ((found.only_first, "A"), (found.only_second, "B")):
        if only:
            say(console, f"Only {name} has: {'; '.join(map(str, only))}")


def _difference(each: PolicyDifference) -> tuple[str, ...]:
    pieces = f", lists of {each.count} pieces and more" if each.count > 1 else ""
    return (
        f"{each.kind}{pieces}",
        _span(size_text(each.first_bytes), size_text(each.last_bytes)),
        *map(method_text, each.methods),
        _loss(each.loss_on_first),
        _loss(each.loss_on_second),
    )


def _loss(loss: float | None) -> str:
    return "not known" if loss is None else f"takes {loss:+.0%}"
