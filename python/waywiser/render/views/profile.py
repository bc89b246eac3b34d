"""A profile: the headline paths, the links of GPUs, the matrices, the curves, and what limits the
numbers."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby
from string import ascii_lowercase

import msgspec

from waywiser.analysis.questions.hidden import sentences
from waywiser.analysis.questions.slow_links import links_of_gpus
from waywiser.analysis.questions.sustained import found_sustained, sustained_table
from waywiser.curves import (
    NO_BASELINE,
    Curve,
    Finding,
    Overview,
    Point,
    ReasonGroup,
    below_findings,
    by_family,
    curves_of,
    headline_groups,
    imported_from,
    label_of,
    normal_paths,
    outliers_text,
    who_copies_sentences,
)
from waywiser.curves.headlines import ORDER
from waywiser.curves.overview import Summary
from waywiser.fitness.situation import Situation
from waywiser.machine import Machine, lost_text, machine_line
from waywiser.measure.plan.schedule import is_for_time
from waywiser.profile import Profile, resume_command
from waywiser.profile.planned import planned
from waywiser.profile.quality_flags import OUTLIER_PROCESS, REMEDIES
from waywiser.render.parts import Block, Section, Words
from waywiser.render.views.answers import answer_sheet
from waywiser.render.views.curve_lines import ANY_FLAG, curve_line_sections
from waywiser.render.views.curve_sizes import (
    MOST_COLUMNS,
    Marks,
    class_section,
    curve_section,
    layouts_section,
    operations_sheet,
    other_settings_section,
    titled_section,
)
from waywiser.render.views.doctor import disturbance_words
from waywiser.render.views.gpu_links import gpu_link_sections
from waywiser.render.views.headline import headline_sheet
from waywiser.render.views.pairs import pair_sections
from waywiser.render.views.unsupported import all_unsupported_words, unsupported_words
from waywiser.words import by_wording, count, counted, format_time, series_of, with_sizes
from waywiser.words.member_lines import member_lines

FEW_REASONS = 3
"""The largest number of reasons of skipped sizes that are all shown; if there are more, only those
about time are."""
SHOWN_MEMBERS = 3
"""Series of a warning that the terminal names; ``--json`` names all."""

FEW = 6
"""Curves up to which the headline paths are not shown in a table of their own."""

DETAILED = 12
"""So few curves are shown each with a table of its own, if all sizes are."""


def profile_parts(
    profile: Profile,
    found: Overview,
    *,
    only: Sequence[str] = (),
    everything: bool = False,
    headline_last: bool = False,
) -> Iterator[Block | Section]:
    """``only`` are the patterns that chose what was ``found``. ``everything`` shows every size of
    every curve, and all that was not measured, by name. ``headline_last`` puts the headline paths
    after all else, where a terminal shows them at the end of a survey."""
    machine = profile.machine
    marks = dict(zip(REMEDIES, ascii_lowercase, strict=False))
    shown = by_family(curves_of(found.series))
    headline = msgspec.structs.replace(headline_sheet(machine, shown), caption="")
    headlines = [Section("", "", (headline,))] if headline.rows else []
    links, slow = ({}, ()) if only else links_of_gpus(machine, found)
    below = below_findings(machine, normal_paths(machine, shown))
    yield Section(
        "", "", (*_header(profile, found, slow), *(_below(each, found.profile) for each in below))
    )
    if len(shown) > FEW and not headline_last:
        yield from headlines
    if not only:
        yield from gpu_link_sections(profile, links, shown)
    yield from pair_sections(machine, shown)
    yield from _curves(shown, marks) if everything else _curve_lines(machine, shown, marks)
    for table in sustained_table(found_sustained(shown)):
        yield Section("", table.title, (answer_sheet(table),))
    reasons = _reasons(machine, found, marks, everything)
    if headline_last:
        yield Section("", "", (*reasons, *_about(machine, found, everything)))
        yield from headlines
        yield from _next(found, shown, only, everything)
    else:
        after = _next(found, shown, only, everything)
        yield Section("", "", (*reasons, *_about(machine, found, everything), *after))


def _about(machine: Machine, found: Overview, everything: bool) -> Iterator[Words]:
    """The health of the machine, and what the numbers are."""
    if found.health is not None:
        yield Words(str(found.health), tone="warning" if found.health.is_problem else "plain")
    if found.sides is not None:
        yield from map(Words, sentences(found.sides))
    yield from map(Words, who_copies_sentences(machine.traits.who_copies))
    if any(point.estimate for point in found.series):
        yield Words(_legend(found.series, everything))


def _next(
    found: Overview, shown: Sequence[Curve], only: Sequence[str], everything: bool
) -> Iterator[Words]:
    if not shown:
        return
    file = shlex.quote(found.profile)
    if not everything:
        chosen = "".join(f" --only {shlex.quote(pattern)}" for pattern in only)
        yield Words(f"every size: waywiser show {file}{chosen} --all")
    yield Words(f"next: waywiser report {file}")


def _header(profile: Profile, found: Overview, slow_links: Sequence[str]) -> Iterator[Words]:
    """The machine, the date, the preset; what is wrong with its GPUs; the status of the numbers;
    whether all was measured."""
    machine = machine_line(profile.machine, reason=False)
    request = planned(profile.plan_json).request
    tools = imported_from(profile.environment)
    day = f"{found.created[:16].replace('T', ' ')} UTC" if found.created else ""
    parts = [machine, "" if tools else day]
    parts.append(f"preset {request.preset}" if request and request.preset else "")
    parts.append(f"imported from {', '.join(tools)} at {day}" if tools else "")
    yield Words("; ".join(filter(None, parts)), "lead")
    yield from (Words(text, "lead", "warning") for text in
                (lost_text(profile.machine), *slow_links) if text)  # fmt: skip
    late = sum(is_for_time(point.skipped) for point in found.series)
    yield Words(_sentence(found.summary, late, imported=bool(tools)))
    yield from disturbance_words(Situation(profile.machine, stored=profile.environment))
    if found.planned_visits and found.visits < found.planned_visits:
        text = (
            f"not complete: {found.visits} of {found.planned_visits} visits are stored; "
            f"go on with: {resume_command(found.profile)}"
        )
        yield Words(text, "lead", "warning")


def _below(finding: Finding, file: str) -> Words:
    """What is below the range of other machines, and what to do."""
    remedy = finding.remedy.replace("check FILE", f"check {shlex.quote(file)}")
    return Words(f"review: {finding.title}; {remedy}. {NO_BASELINE}", tone="warning")


def _reasons(machine: Machine, found: Overview, marks: Marks, everything: bool) -> Iterator[Words]:
    """One line for each reason, with the number of what it concerns; with ``everything`` all that
    was not measured by name."""
    groups = (*found.unsupported_paths, *found.unsupported)
    unsupported = [(group.reason, group.members) for group in groups]
    if everything:
        yield from all_unsupported_words(unsupported)
    else:
        yield from unsupported_words(unsupported, machine, "--all")
    for group in found.failures:
        yield from _group("failed", group)
    few = not everything and len(found.skipped) <= FEW_REASONS
    for group in found.skipped:
        is_short = is_for_time(group.reason)
        if is_short and everything:
            yield from _group("skipped", group)
        elif is_short or few:
            what = _late(found, group) if is_short else counted(group.members)
            yield Words(f"skipped: {group.reason} ({what})", tone="warning")
    for group in found.warnings:
        yield from _warning(marks[group.reason], group, found, everything)
    visits = {group.reason: len(group.members) for group in found.notes}
    for line, reasons in by_wording(list(visits)):
        number = sum(visits[reason] for reason in reasons)
        yield Words(f"note: {line} ({count(number, 'visit')})")
    for group in found.unbounded if everything else ():
        yield Words(f"no bound for {count(len(group.members), 'curve')}: {group.reason}")
    for group in found.link_use_unknown if everything else ():
        yield Words(f"links of {count(len(group.members), 'curve')} unknown: {group.reason}")


def _late(found: Overview, group: ReasonGroup) -> str:
    """``62 series, and 12 repetitions of others``: which have no time at all, of visits that were
    skipped for want of time."""
    without = {label_of(point.workload) for point in found.series if is_for_time(point.skipped)}
    series = Counter(map(series_of, group.members))
    never = sum(name in without for name in series)
    repeated = sum(number for name, number in series.items() if name not in without)
    of = " of others" if never else ""
    parts = (
        count(never, "series") if never else "",
        f"{count(repeated, 'repetition')}{of}" if repeated else "",
    )
    return ", and ".join(filter(None, parts))


def _group(title: str, group: ReasonGroup) -> Iterator[Words]:
    many = f" ({counted(group.members)})" if len(group.members) > 1 else ""
    yield Words(f"{title}: {group}{many}", tone="warning")
    for member in member_lines(group.members):
        yield Words(with_sizes(member), indent=2)


def _warning(mark: str, group: ReasonGroup, found: Overview, everything: bool) -> Iterator[Words]:
    what = f"{group.reason}, {count(len(group.members), 'series')}"
    if not everything:
        what = outliers_text(found.series) if group.reason == OUTLIER_PROCESS else what
        yield Words(f"{mark}  {what}: {group.remedy}", tone="warning")
        return
    yield Words(f"{mark}  {what}", tone="warning")
    for member in group.members[:SHOWN_MEMBERS]:
        yield Words(with_sizes(member), indent=5)
    if (more := len(group.members) - SHOWN_MEMBERS) > 0:
        yield Words(f"and {more} more: see --json", indent=5)
    yield Words(f"remedy: {group.remedy}", indent=5)


def _curves(shown: Sequence[Curve], marks: Marks) -> Iterator[Section]:
    """All sizes: of few curves each with a table of its own; of many by family, with tables of
    their own for the default settings and one row for each of the others."""
    operations = [curve for curve in shown if curve.workload.kind == "operation"]
    moving = [curve for curve in shown if curve.workload.kind != "operation"]
    if len(moving) <= DETAILED:
        yield from (curve_section(curve, marks) for curve in moving)
    else:
        for family, group in groupby(moving, key=lambda curve: curve.family):
            yield Section("", family, (), (*_family(list(group), marks),))
    if operations:
        title = "operations: time per call"
        yield Section("", title, (operations_sheet(operations, marks),))


def _family(family: Sequence[Curve], marks: Marks) -> Iterator[Section]:
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
        yield from _path(group, marks)
        if path in equal:
            yield class_section(path, equal.pop(path), marks)
    for ends, group in layouts.items():
        yield layouts_section(ends, group, family, marks)
    if pairs:
        yield titled_section("sizes are of each transfer", pairs, marks)
    for first, group in equal.items():
        yield class_section(first, group, marks)


def _path(group: Sequence[Curve], marks: Marks) -> Iterator[Section]:
    """The default settings first; the others as rows below."""
    yield from (curve_section(curve, marks) for curve in group if curve.is_default)
    if others := [curve for curve in group if not curve.is_default]:
        title = str(others[0].base) if len(others) == len(group) else ""
        yield other_settings_section(others, marks, title)


BUS = (
    "GB/s of a collective of n GPUs or ranks is the algorithm bandwidth; bus: this × 2(n-1)/n of "
    "an allreduce, (n-1)/n of an allgather, reduce-scatter, alltoall, gather and scatter, 1 of a "
    "broadcast and reduce"
)


def _legend(points: Sequence[Point], everything: bool) -> str:
    kinds = sorted({point.estimate.kind for point in points if point.estimate}, reverse=True)
    kind = " or ".join(kinds)
    bus = f"; {BUS}" if any(point.bus_rate for point in points) else ""
    if everything:
        return (
            f"±: half of the 95 % interval of the median time, {kind}, and of GB/s; app sees: "
            "median time from call to completion, empty if that was of shorter executions; "
            f"samples: of a block × blocks{bus}"
        )
    return (
        "GB/s: at the largest size, if possible of several processes; latency: at the smallest "
        "size; ±: half of the 95 % interval of GB/s, or of the latency or time if GB/s is empty, "
        f"{kind}; letters, or {ANY_FLAG} in a narrow terminal: quality flags of these two "
        f"sizes{bus}"
    )


def _curve_lines(machine: Machine, shown: Sequence[Curve], marks: Marks) -> Iterator[Section]:
    """A line for each curve, those of headline paths first."""
    groups = headline_groups(machine, (curve.workload for curve in shown))
    first = sorted(groups, key=lambda curve: ORDER.index(groups[curve]))
    yield from curve_line_sections(shown, marks, first)


def _sentence(summary: Summary, late: int, *, imported: bool) -> str:
    """How much was measured, and of how many series there was no time, ``late``; what cannot be
    measured is said with its reason. Results of other tools do not say whether they converged."""
    measured = summary.converged + summary.not_converged
    share = f" ({summary.converged / measured:.0%} of the measured)" if measured else ""
    parts = [f"{count(summary.series, 'series')} of {count(summary.curves, 'curve')}"]
    if not imported:
        parts.append(f"{summary.converged} converged{share}")
    others = {
        "did not converge": 0 if imported else summary.not_converged,
        "not supported when measured": summary.unsupported,
        "failed": summary.failed,
        "not needed or too long": summary.skipped - late,
        "without time": late,
    }
    parts += [f"{count} {what}" for what, count in others.items() if count]
    took = f"; {format_time(summary.seconds, 0.005)} of measuring" if not imported else ""
    return ", ".join(parts) + took
