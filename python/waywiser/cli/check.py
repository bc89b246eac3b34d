"""``waywiser check``: is this machine healthy, and which of many is not?"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import msgspec

from waywiser.cli.app import (
    USUAL_THRESHOLD,
    ExpectedGpus,
    Json,
    Repeat,
    Threshold,
    parse_fraction,
)
from waywiser.cli.result import exit_code, print_result
from waywiser.cli.verb import verb
from waywiser.words import WaywiserError
from waywiser.words.numbers import Bounds
from waywiser.words.status import STATUSES

if TYPE_CHECKING:
    from waywiser.analysis.comparison.checkup import Checkup
    from waywiser.analysis.comparison.fleet import Fleet
    from waywiser.analysis.health.health import HealthCheck
    from waywiser.analysis.history.history import History
    from waywiser.cli.check_outputs import Outputs
    from waywiser.curves.normal import NormalPath
    from waywiser.curves.normal_table import NormalValue
    from waywiser.curves.subject import Subject
    from waywiser.report.parts import Block

USUAL_SECONDS = 30


class CheckError(WaywiserError):
    """What a check cannot do with what it was given."""


@dataclass(frozen=True)
class Given:
    """What the command line says of the references."""

    baseline: tuple[str, ...]
    fleet: str
    repeat: tuple[str, ...]
    values: tuple[NormalValue, ...]
    """Those of other machines."""
    measure: bool
    threshold: float
    max_hidden: float | None
    expect_gpus: int
    since: str
    labels: dict[str, dict[str, str]]


@verb("Say whether this machine, a node or a fleet is healthy.")
def check(
    files: list[str] | None = None,
    baseline: list[str] | None = None,
    keep: bool = False,
    fleet: str = "",
    within: Annotated[int, Bounds(10, 3600)] = USUAL_SECONDS,
    repeat: Repeat = None,
    measure: bool = True,
    threshold: Threshold = USUAL_THRESHOLD,
    max_hidden: str = "",
    expect_gpus: ExpectedGpus = 0,
    values: list[str] | None = None,
    since: str = "",
    labels: str = "",
    suspects: bool = False,
    everything: bool = False,
    json: Json = False,
    page: str = "",
    prometheus: str = "",
    junit: str = "",
) -> int:
    """Say whether a machine is healthy, by its baseline, its former nights, nodes of its kind, its
    own equal parts, other people's machines and its devices.

    [FILE...]: Nothing: this machine is measured. A profile: its machine is checked. Several
        profiles or their folder: each host beside its peers and its own nights.
    --baseline FILE: A profile of the node when it was healthy; may be repeated. Three show the
        noise between surveys. By default those of --keep.
    --keep: Keep the profile as a baseline of its machine, if the check finds nothing wrong.
    --fleet FOLDER: Profiles of nodes of its kind, and of its own nights; of this machine also what
        former checks measured.
    --within SECONDS: Measure this machine for so long at most; a machine on which all is decided
        takes less.
    --measure/--no-measure: Measure suspected paths again now, if the profile is of this machine
        (the default), or only read files.
    --max-hidden FRACTION: End with 3 if a loss of more than this, such as 10%, could hide on a
        headline path; by default if one of more than 15% could on a pinned or P2P copy or a set.
    --values FILE: Use the values of other machines in a table (CSV) too. May be repeated.
    --since DAY: List changes between nights from this day on, 2026-11-01, or of so many days, 14d.
    --labels FILE: Labels of nodes: lines of a host name or a GPU's UUID and NAME=VALUE pairs.
    --suspects: Print only the hosts to measure again, as a host list for Slurm.
    --all: List all paths, not only those with a finding.
    --page FILE: Also write one HTML page that needs no network; - for standard output.
    --prometheus FILE: Also write metrics for the textfile collector of Prometheus; - for standard
        output: the text then goes to standard error.
    --junit FILE: Also write JUnit XML; - for standard output.

    waywiser check
        measure this machine, and say whether it is healthy
    waywiser check nodes --page check.html
        find the nodes that differ from others or from their former nights
    """
    from waywiser.analysis.history.labels import first_day, read_labels
    from waywiser.cli.check_outputs import Outputs

    outputs = Outputs(json=json, page=page, prometheus=prometheus, junit=junit, suspects=suspects)
    outputs.require()
    given = Given(
        baseline=tuple(baseline or ()),
        fleet=fleet,
        repeat=tuple(repeat or ()),
        values=_values(values or ()),
        measure=measure,
        threshold=parse_fraction(threshold, "threshold"),
        max_hidden=parse_fraction(max_hidden, "loss") if max_hidden else None,
        expect_gpus=expect_gpus,
        since=first_day(since),
        labels=read_labels(labels) if labels else {},
    )
    names = files or []
    if len(names) > 1 or (names and os.path.isdir(names[0])):
        return _check_many(names, given, outputs, everything=everything)
    file = names[0] if names else _measured(given, within)
    return _check_one(file, given, outputs, everything=everything, keep=keep)


def _measured(given: Given, within: int) -> str:
    from waywiser.cli.measure_check import measure_check

    return measure_check(given.baseline, given.threshold, within, given.expect_gpus)


def _check_many(names: Sequence[str], given: Given, outputs: Outputs, *, everything: bool) -> int:
    """Checks the hosts of many profiles."""
    from waywiser.analysis.health.many_hosts import health_of_hosts
    from waywiser.analysis.health.read_hosts import read_fleet, read_history
    from waywiser.cli.check_outputs import health_document
    from waywiser.cli.unread_files import none_read
    from waywiser.report.views.health import health_parts

    if given.baseline:
        raise CheckError(
            "--baseline is for one profile, and several were named",
            remedy="name one profile, or leave --baseline out",
        )
    named = [*names, *filter(None, (given.fleet,))]
    peers = read_fleet(named, given.threshold, given.expect_gpus)
    nights = read_history(named, given.threshold, given.since, given.labels)
    found = health_of_hosts(peers, nights)
    outputs.write(found)
    if outputs.suspects:
        outputs.print_suspects(found)
    elif found.hosts or outputs.json:
        parts = health_parts(found, everything=everything)
        document = health_document(found)
        print_result(document, parts, json=outputs.json, to_errors=outputs.use_standard_output)
    if not found.hosts:
        raise none_read(peers.unreadable, "no host to check")
    return exit_code(STATUSES[found.status])


def _check_one(file: str, given: Given, outputs: Outputs, *, everything: bool, keep: bool) -> int:
    """Checks one profile."""
    from waywiser.analysis.comparison.read_subject import read_subject
    from waywiser.analysis.comparison.seen_causes import seen_causes
    from waywiser.cli.check_outputs import health_document
    from waywiser.report.views.health import health_parts

    node = read_subject(file, links=True)
    found, failure = _verdict(node, file, given)
    details = () if found.baseline is None else tuple(checkup_parts(
        found.baseline, node, failure, found.other_machines))  # fmt: skip
    outputs.write(found, node, details)
    if outputs.suspects:
        outputs.print_suspects(found)
    else:
        is_below = any(path.verdict == "below" for path in found.other_machines)
        seen = seen_causes(node) if is_below else {}
        parts = health_parts(found, details, everything=everything, seen=seen)
        document = health_document(found, seen)
        print_result(document, parts, json=outputs.json, to_errors=outputs.use_standard_output)
    if keep:
        _keep(file, node, found)
    return exit_code(STATUSES[found.status])


def _verdict(node: Subject, file: str, given: Given) -> tuple[HealthCheck, str]:
    """The verdict, and why suspected paths could not be measured again."""
    from waywiser.analysis.health.health import health_of
    from waywiser.analysis.health.reference import host_health
    from waywiser.analysis.health.single_host import host_results
    from waywiser.curves.normal import normal_paths_of
    from waywiser.curves.subject import Subject
    from waywiser.profile import Profile

    checkup, failure = _against_baseline(node, file, given)
    with Profile.open(file) as profile:
        read, beside = Subject.of(profile), normal_paths_of(profile, given.values)
    peers, nights = _in_fleet(node, file, given)
    results = host_results(node, read, beside, checkup, peers, nights)
    if checkup is not None:
        checkup = msgspec.structs.replace(
            checkup, notes=(*checkup.notes, *_normal_notes(node, beside)))  # fmt: skip
    host = host_health(node.name, (node.called,), results)
    found = health_of(
        [host], baseline=checkup, peers=peers, nights=nights, other_machines=tuple(beside)
    )
    return found, failure


def _against_baseline(node: Subject, file: str, given: Given) -> tuple[Checkup | None, str]:
    """What the baselines say; None without one."""
    from waywiser.analysis.comparison.checkup import check_up
    from waywiser.analysis.comparison.read_subject import read_subject
    from waywiser.analysis.health.kept_profiles import kept_baselines
    from waywiser.cli.remeasure import measure_again
    from waywiser.machine.machine import require_real

    names = given.baseline or kept_baselines(node.machine)
    before = [read_subject(each, links=True) for each in names]
    if not before:
        if given.repeat or given.max_hidden is not None:
            option = "--repeat" if given.repeat else "--max-hidden"
            raise CheckError(f"{option} is for a baseline", remedy="name one with --baseline")
        return None, ""
    for old in before:
        require_real(old.machine, old.called, allowed="simulated")
    again = [read_subject(each) for each in given.repeat]
    limit, hidden = given.threshold, given.max_hidden
    found, failure = check_up(node, before, limit, again, hidden), ""
    if found.suspects and given.measure:
        measured, failure = measure_again(file, node, found.suspects, given.repeat)
        if measured is not None:
            found = check_up(node, before, limit, [*again, measured], hidden)
    return found, failure


def _in_fleet(node: Subject, file: str, given: Given) -> tuple[Fleet | None, History | None]:
    """The host beside its peers and its nights, if profiles of them are known."""
    from waywiser.analysis.health.kept_profiles import former_checks
    from waywiser.analysis.health.read_hosts import read_fleet, read_history

    former = [each for each in former_checks(node.machine) if not _same(each, file)]
    if not given.fleet and not former:
        return None, None
    folders = [given.fleet] if given.fleet else []
    nights = read_history(
        [*folders, *former, file], given.threshold, given.since, given.labels
    ).only(node.name)
    peers = None
    if folders:
        peers = read_fleet([*folders, file], given.threshold, given.expect_gpus).only(node.name)
    return peers, nights


def _same(one: str, other: str) -> bool:
    try:
        return os.path.samefile(one, other)
    except OSError:
        return False


def _keep(file: str, node: Subject, found: HealthCheck) -> None:
    from waywiser.analysis.health.kept_profiles import NotKept, keep_baseline
    from waywiser.cli.streams import say

    if found.status == "failed":
        raise NotKept(
            "is not kept: the check found what is wrong", where=file, remedy="repair it first"
        )
    say(f"waywiser: kept as a baseline: {keep_baseline(file, node.machine)}\n")


def _values(tables: Sequence[str]) -> tuple[NormalValue, ...]:
    """The values of this version and those of tables."""
    from waywiser.curves.normal_table import read_table, shipped_values

    return (*shipped_values(), *(each for name in tables for each in read_table(name)))


def _normal_notes(node: Subject, beside: Sequence[NormalPath]) -> Iterator[str]:
    """What is below the range of other machines, and how many paths have a verdict. No verdict
    changes the status beside a baseline."""
    from waywiser.curves.normal import NO_BASELINE, below_findings, verdicts_text

    below = below_findings(node.machine, beside)
    for finding in below:
        yield f"review: {finding.title}; {finding.remedy}"
    if text := verdicts_text(beside):
        yield f"beside other machines {text}{f'. {NO_BASELINE}' if below else ''}"


def checkup_parts(
    found: Checkup, node: Subject, failure: str = "", beside: Sequence[NormalPath] = ()
) -> Iterator[Block]:
    """Why, and the commands that measure on the ``node`` what is not decided;
    ``failure`` says why that was not done here. Drops show what is normal for their link."""
    from waywiser.analysis.comparison.change_texts import (
        change_text,
        detectable_text,
        figures_before_and_now,
        sizes_text,
    )
    from waywiser.analysis.comparison.comparison_text import (
        NOT_DECIDED,
        label,
        to_decide,
    )
    from waywiser.analysis.comparison.path_change import one_value_text
    from waywiser.cli.remeasure import command_parts
    from waywiser.report.parts import Words
    from waywiser.words.same_wording import by_wording
    from waywiser.words.sizes_in_text import with_units

    if found.reasons:
        yield Words(found.tested, indent=2)
    for line in found.reasons[1:]:
        yield Words(line, indent=2)
    if found.undecided or found.comparison.another_machine:
        yield from command_parts(node, found.comparison, "check")
    if failure:
        yield Words(f"it could not be measured again here: {failure}", indent=2)
    if found.drops:
        yield Words("largest drops:", indent=2)
    normal = {path.workload: path for path in beside if path.range is not None}
    for drop in found.drops:
        undecided = drop.verdict == NOT_DECIDED
        has_changed = drop.verdict != "no change"
        loss = detectable_text(
            drop.detectable,
            hides=undecided,
            has_changed=has_changed,
            of_time=drop.size.is_time,
        )
        yield Words(f"{change_text(drop.size)}  {drop.verdict}: {with_units(drop.name)}", indent=4)
        if drop.size.verdict == NOT_DECIDED:
            loss = one_value_text(drop.size)
        before, now = figures_before_and_now(drop.size)
        at = f" at {size}" if (size := sizes_text(drop.size)) else ""
        own = normal.get(drop.size.series)
        usual = f"; {own.verdict_text}" if own is not None else ""
        yield Words(f"{before} before, {now} now{at}; {loss}{usual}", indent=12)
    named = {drop.name for drop in found.drops if drop.verdict == NOT_DECIDED}
    if unclear := [path for path in found.comparison.measured if label(path) in named]:
        yield Words(to_decide(found.comparison, unclear), indent=4)
    for line, _ in by_wording(found.notes):
        yield Words(f"note: {line}", indent=2)
