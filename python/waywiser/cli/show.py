"""``waywiser show``: a profile as tables, with the quality flags of its numbers."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from itertools import groupby
from string import ascii_lowercase

from rich.console import Console
from rich.text import Text

from waywiser.analysis.questions.hidden import sentences
from waywiser.cli.curve_lines import ANY_FLAG, print_curve_lines
from waywiser.cli.curve_table import Marks, print_curve
from waywiser.cli.gpu_link_table import print_gpu_links
from waywiser.cli.headline_table import print_headline
from waywiser.cli.lines import say
from waywiser.cli.matrix import (
    MOST_COLUMNS,
    print_class,
    print_layouts,
    print_other_settings,
    print_pairs,
)
from waywiser.cli.operation_table import print_operations
from waywiser.cli.pair_matrix import print_matrices
from waywiser.cli.printing import plain_console
from waywiser.cli.streams import print_json
from waywiser.curves.curve import Curve, by_family, curves_of
from waywiser.curves.headlines import ORDER, headline_groups
from waywiser.curves.imported import imported_from
from waywiser.curves.overview import Overview, Summary, overview
from waywiser.curves.point import Point, outliers_text
from waywiser.curves.reasons import ReasonGroup
from waywiser.machine.machine import Machine
from waywiser.machine.machine_line import machine_line
from waywiser.measure.plan.schedule import is_for_time
from waywiser.profile import Profile
from waywiser.profile.planned import planned, resume_command
from waywiser.profile.quality_flags import OUTLIER_PROCESS, REMEDIES
from waywiser.report.views.unsupported import all_unsupported_words, unsupported_words
from waywiser.words.members import counted, member_lines
from waywiser.words.number_format import count, format_time
from waywiser.words.sizes_in_text import with_sizes

SHOWN_MEMBERS = 3
"""Series of a warning that the terminal names; ``--json`` names all."""

FEW = 6
"""Curves up to which the headline paths are not shown in a table of their own."""

DETAILED = 12
"""So few curves are shown each with a table of its own, if all sizes are."""


def run_show(
    file: str,
    json: bool,
    only: Sequence[str] = (),
    everything: bool = False,
    *,
    headline_last: bool = False,
) -> int:
    """Prints the profile; returns 0. ``everything`` shows every size of every curve;
    ``headline_last`` puts the headline paths at the end. Raises `WaywiserError` for bad files and
    patterns."""
    with Profile.open(file) as profile:
        found = overview(profile, only)
        if json:
            print_json(found.for_json())
        else:
            print_profile(
                profile, found, only=only, everything=everything, headline_last=headline_last
            )
    return 0


def print_profile(
    profile: Profile,
    found: Overview,
    console: Console | None = None,
    *,
    only: Sequence[str] = (),
    everything: bool = False,
    headline_last: bool = False,
) -> None:
    """The profile for the terminal, to standard output unless another console is given: the
    headline paths, the links of GPUs, the matrices, one line for each curve, and what limits the
    numbers.

    ``only`` are the patterns that chose what was ``found``. ``everything`` shows every size of
    every curve, and all that was not measured, by name. ``headline_last`` prints the headline paths
    after all else, where a terminal shows them at the end of a survey.
    """
    console = console or plain_console()
    machine = profile.machine
    marks = dict(zip(REMEDIES, ascii_lowercase, strict=False))
    shown = by_family(curves_of(found.series))
    _print_header(console, profile, found)
    if len(shown) > FEW and not headline_last:
        print_headline(console, machine, shown)
    if not only:
        print_gpu_links(console, profile, found, shown)
    print_matrices(console, machine, shown)
    if everything:
        _print_curves(console, shown, marks)
        _print_reasons(console, found, marks)
    else:
        groups = headline_groups(machine, (curve.workload for curve in shown))
        first = sorted(groups, key=lambda curve: ORDER.index(groups[curve]))
        print_curve_lines(console, shown, marks, first)
        _print_brief_reasons(console, machine, found, marks)
    if found.health is not None:
        say(console, str(found.health), style="yellow" if found.health.is_problem else "")
    if found.sides is not None:
        for text in sentences(found.sides):
            say(console, text)
    if any(line.estimate for line in found.series):
        say(console, _legend(found.series, everything))
    if not shown:
        return
    if headline_last:
        console.print()
        print_headline(console, machine, shown)
    file = shlex.quote(found.profile)
    if not everything:
        chosen = "".join(f" --only {shlex.quote(pattern)}" for pattern in only)
        say(console, f"every size: waywiser show {file}{chosen} --all")
    say(console, f"next: waywiser report {file}")


def _print_header(console: Console, profile: Profile, found: Overview) -> None:
    """The machine, the date, the preset; the status of the numbers; whether all was measured."""
    machine = machine_line(profile.machine, reason=False)
    request = planned(profile.plan_json).request
    tools = imported_from(profile.environment)
    day = f"{found.created[:16].replace('T', ' ')} UTC" if found.created else ""
    parts = [machine, "" if tools else day]
    parts.append(f"preset {request.preset}" if request and request.preset else "")
    parts.append(f"imported from {', '.join(tools)} at {day}" if tools else "")
    say(console, "; ".join(filter(None, parts)), style="bold")
    unsupported = [member for group in found.unsupported_paths for member in group.members]
    say(console, _sentence(found.summary, counted(unsupported), imported=bool(tools)))
    if found.planned_visits and found.visits < found.planned_visits:
        text = (
            f"not complete: {found.visits} of {found.planned_visits} visits are stored; "
            f"go on with: {resume_command(found.profile)}"
        )
        say(console, text, style="bold yellow")
    console.print()


def _print_brief_reasons(console: Console, machine: Machine, found: Overview, marks: Marks) -> None:
    """One line for each reason, with the number of what it concerns."""
    for line in unsupported_words(_unsupported(found), machine, "--all"):
        say(console, line.text)
    for group in found.failures:
        _print_group(console, "failed", group)
    for group in found.skipped:
        if is_for_time(group.reason):
            say(console, f"skipped: {group.reason} ({counted(group.members)})", "yellow")
    for group in found.warnings:
        what = f"{group.reason}, {count(len(group.members), 'series')}"
        if group.reason == OUTLIER_PROCESS:
            what = outliers_text(found.series)
        say(console, f"{marks[group.reason]}  {what}: {group.remedy}", "yellow")
    for group in found.notes:
        say(console, f"note: {group.reason} ({count(len(group.members), 'visit')})")


def _print_reasons(console: Console, found: Overview, marks: Marks) -> None:
    """The same, with all that was not measured by name."""
    for line in all_unsupported_words(_unsupported(found)):
        say(console, line.text, indent=line.indent)
    for group in found.failures:
        _print_group(console, "failed", group)
    for group in found.skipped:
        if is_for_time(group.reason):
            _print_group(console, "skipped", group)
    for group in found.warnings:
        _print_warning(console, marks[group.reason], group)
    for group in found.notes:
        say(console, f"note: {group.reason} ({count(len(group.members), 'visit')})")
    for group in found.unbounded:
        say(console, f"no bound for {count(len(group.members), 'curve')}: {group.reason}")
    for group in found.link_use_unknown:
        say(console, f"links of {count(len(group.members), 'curve')} unknown: {group.reason}")


def _unsupported(found: Overview) -> list[tuple[str, tuple[str, ...]]]:
    """The reasons why something cannot be measured here, as the plan or the measurement found."""
    return [
        (group.reason, group.members) for group in (*found.unsupported_paths, *found.unsupported)
    ]


def _print_curves(console: Console, shown: Sequence[Curve], marks: Marks) -> None:
    """All sizes: of few curves each with a table of its own; of many by family, with tables of
    their own for the default settings and one row for each of the others."""
    operations = [curve for curve in shown if curve.workload.operation is not None]
    moving = [curve for curve in shown if curve.workload.operation is None]
    if len(moving) <= DETAILED:
        for curve in moving:
            print_curve(console, curve, marks)
    else:
        for family, group in groupby(moving, key=lambda curve: curve.family):
            console.rule(Text(family, style="bold"), align="left")
            _print_family(console, list(group), marks)
    if operations:
        print_operations(console, operations, marks)


def _print_family(console: Console, family: Sequence[Curve], marks: Marks) -> None:
    equal: dict[str, list[Curve]] = {}
    paths: dict[str, list[Curve]] = {}
    layouts: dict[str, list[Curve]] = {}
    pairs: list[Curve] = []
    for curve in family:
        if curve.like and len(curve.measured) <= MOST_COLUMNS:
            equal.setdefault(curve.like, []).append(curve)
        elif curve.transfer is None:
            pairs.append(curve)
        elif curve.transfer.layout is not None:
            ends = str(curve.base).partition(" by ")[0]
            layouts.setdefault(ends, []).append(curve)
        else:
            paths.setdefault(str(curve.base), []).append(curve)
    for path, group in paths.items():
        _print_path(console, group, marks)
        if path in equal:
            print_class(console, path, equal.pop(path), marks)
    for ends, group in layouts.items():
        print_layouts(console, ends, group, family, marks)
    if pairs:
        print_pairs(console, pairs, marks)
    for first, group in equal.items():
        print_class(console, first, group, marks)


def _print_path(console: Console, group: Sequence[Curve], marks: Marks) -> None:
    """The default settings first; the others as rows below."""
    for curve in group:
        if curve.is_default:
            print_curve(console, curve, marks)
    others = [curve for curve in group if not curve.is_default]
    if others:
        if len(others) == len(group):
            say(console, str(others[0].base), "bold")
        print_other_settings(console, others, marks)


def _print_group(console: Console, title: str, group: ReasonGroup) -> None:
    many = f" ({counted(group.members)})" if len(group.members) > 1 else ""
    say(console, f"{title}: {group.reason}{many}", "yellow")
    for member in member_lines(group.members):
        say(console, with_sizes(member), indent=2)


def _print_warning(console: Console, mark: str, group: ReasonGroup) -> None:
    say(console, f"{mark}  {group.reason}, {count(len(group.members), 'series')}", "yellow")
    for member in group.members[:SHOWN_MEMBERS]:
        say(console, with_sizes(member), indent=5)
    if (more := len(group.members) - SHOWN_MEMBERS) > 0:
        say(console, f"and {more} more: see --json", indent=5)
    say(console, f"remedy: {group.remedy}", indent=5)


def _legend(lines: Sequence[Point], everything: bool) -> str:
    kinds = sorted({line.estimate.kind for line in lines if line.estimate}, reverse=True)
    kind = " or ".join(kinds)
    if everything:
        return (
            f"±: half of the 95 % interval of the median time, {kind}, and of GB/s; app sees: "
            "median time from call to completion, empty if that was of shorter executions; "
            "samples: of a block × blocks"
        )
    return (
        "GB/s: at the largest size; latency: at the smallest size; ±: half of the 95 % interval of "
        f"GB/s, or of the latency or time if GB/s is empty, {kind}; letters, or {ANY_FLAG} in a "
        "narrow terminal: quality flags of these two sizes"
    )


def _sentence(summary: Summary, unsupported: str, *, imported: bool) -> str:
    """How much was measured, and how many paths, operations and pairs of memories are
    ``unsupported``. Results of other tools do not say whether they converged."""
    measured = summary.converged + summary.not_converged
    share = f" ({summary.converged / measured:.0%} of the measured)" if measured else ""
    parts = [f"{count(summary.series, 'series')} of {count(summary.curves, 'curve')}"]
    if not imported:
        parts.append(f"{summary.converged} converged{share}")
    others = {
        "did not converge": 0 if imported else summary.not_converged,
        "not supported when measured": summary.unsupported,
        "failed": summary.failed,
        "skipped with a reason": summary.skipped,
    }
    parts += [f"{count} {what}" for what, count in others.items() if count]
    parts += [f"{unsupported} not supported"] if unsupported else []
    took = f"; {format_time(summary.seconds, 0.005)} of measuring" if not imported else ""
    return ", ".join(parts) + took
