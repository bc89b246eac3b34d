"""``waywiser check``: is this machine healthy, and which of many is not?"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated

from waywiser.cli.app import (
    USUAL_THRESHOLD,
    ExpectedGpus,
    Json,
    Repeat,
    Threshold,
    exit_code,
    parse_fraction,
    verb,
)
from waywiser.words import STATUSES, Bounds, WaywiserError

if TYPE_CHECKING:
    from waywiser.analysis.comparison.checkup import Checkup
    from waywiser.analysis.health.check import References
    from waywiser.cli.check_outputs import Outputs
    from waywiser.curves import NormalPath, Subject
    from waywiser.report.parts import Block

USUAL_SECONDS = 30
"""`waywiser.measure.machine_check.USUAL_SECONDS`, whose module takes longer to import than the
help may."""


@verb("Say whether this machine, a node or a fleet is healthy.")
def check(
    files: list[str] | None = None,
    baseline: list[str] | None = None,
    keep: bool = False,
    fleet: str = "",
    within: Annotated[int, Bounds(0, 3600)] = USUAL_SECONDS,
    repeat: Repeat = None,
    threshold: Threshold = USUAL_THRESHOLD,
    max_hidden: str = "",
    expect_gpus: ExpectedGpus = 0,
    values: list[str] | None = None,
    since: str = "",
    dask: str = "",
    part: str = "",
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
    --within SECONDS: Measure this machine for so long at most, 10 or more; a machine on which all
        is decided takes less. Of a profile of this machine suspected paths are measured again. With
        0 nothing is measured: files are read.
    --max-hidden FRACTION: End with 3 if a loss of more than this, such as 10%, could hide on a
        headline path; by default if one of more than 15% could on a pinned or P2P copy or a set.
    --values FILE: Use the values of other machines in a table (CSV) too, or labels of nodes: lines
        of a host name or a GPU's UUID and NAME=VALUE pairs, or a table whose first column has
        these. May be repeated.
    --since DAY: List changes between nights from this day on, 2026-11-01, or of so many days, 14d.
    --dask ADDRESS: Let the workers of this Dask scheduler, tcp://HOST:8786, check the nights of a
        data set.
    --part PART: One step of a check of a data set in parts: references/16 first, then 1/16 to 16/16
        in any order, as jobs of an array, then join.
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
    from waywiser.analysis.health.check import References, read_values, require_seconds
    from waywiser.analysis.history.labels import first_day
    from waywiser.cli.check_outputs import Outputs

    outputs = Outputs(json=json, page=page, prometheus=prometheus, junit=junit, suspects=suspects)
    outputs.require()
    require_seconds(within)
    table, labels = read_values(values or ())
    references = References(
        baseline=tuple(baseline or ()),
        fleet=fleet,
        repeat=tuple(repeat or ()),
        values=table,
        threshold=parse_fraction(threshold, "threshold"),
        max_hidden=parse_fraction(max_hidden, "loss") if max_hidden else None,
        expect_gpus=expect_gpus,
        since=first_day(since),
        labels=labels,
    )
    names = files or []
    if dask or part:
        _require_effect(references, outputs, part, is_kept=keep, everything=everything)
        return _check_parts(names, references, outputs, dask, part, everything=everything)
    if len(names) > 1 or (names and os.path.isdir(names[0])):
        if keep:
            raise WaywiserError("--keep is for one profile", remedy="name one, or none to measure")
        return _check_many(names, references, outputs, everything=everything)
    if not names and not within:
        raise WaywiserError("--within 0 measures nothing", remedy="name a profile or a folder")
    file = names[0] if names else _measured(references, within, is_kept=keep)
    return _check_one(file, references, outputs, within > 0, everything=everything, is_kept=keep)


def _measured(references: References, within: int, *, is_kept: bool) -> str:
    """The profile of this machine, measured now."""
    from contextlib import closing

    from waywiser.analysis.health.early_stop import EarlyStop
    from waywiser.analysis.health.kept_profiles import new_check_file
    from waywiser.cli.progress import watcher
    from waywiser.cli.signals import stopped_by_signals
    from waywiser.cli.streams import say
    from waywiser.machine import machine_line
    from waywiser.measure.machine_check import prepare_check
    from waywiser.measure.survey_run import start

    survey = prepare_check(within, references.expect_gpus)
    file = new_check_file(survey.machine.hostname)
    looks = survey.plan.preset.processes
    stop = EarlyStop(file, survey.machine, references, looks, series=survey.plan.series_of_curves,
                     is_kept=is_kept)  # fmt: skip
    say(f"{machine_line(survey.machine)}\n")
    say(f"measuring for at most {within} s, less if all is decided\n")
    with stopped_by_signals(), closing(watcher()) as watching:
        start(survey, file, watching, command=("waywiser", *sys.argv[1:]), settle=stop)
    say(f"profile: {file} (waywiser show has its numbers)\n")
    return str(file)


def _check_many(
    names: Sequence[str], references: References, outputs: Outputs, *, everything: bool
) -> int:
    """Checks the hosts of many profiles."""
    from waywiser.analysis.health.check import check_hosts
    from waywiser.cli.unread_files import none_read

    found = check_hosts(names, references)
    outputs.write(found)
    if found.hosts or outputs.json:
        outputs.show(found, everything=everything)
    if not found.hosts:
        raise none_read(found.unreadable, "no host to check")
    return exit_code(STATUSES[found.status])


def _check_parts(
    names: Sequence[str],
    references: References,
    outputs: Outputs,
    dask: str,
    part: str,
    *,
    everything: bool,
) -> int:
    """Checks a data set by parts: all by Dask, or one step."""
    from waywiser.analysis.health.check import check_by_dask, check_part
    from waywiser.cli.streams import say

    if len(names) != 1 or bool(dask) is bool(part):
        raise WaywiserError(
            "--dask or --part is for one data set", remedy="name its folder, and one of the two"
        )
    found = (
        check_by_dask(names[0], references, dask)
        if dask
        else check_part(names[0], references, part)
    )
    if isinstance(found, os.PathLike):
        say(f"{found}\n")
        return 0
    outputs.write(found)
    outputs.show(found, everything=everything)
    return exit_code(STATUSES[found.status])


def _require_effect(
    references: References, outputs: Outputs, part: str, *, is_kept: bool, everything: bool
) -> None:
    """Raises `WaywiserError` for an option that changes nothing of a check in parts, or of this
    step of one."""
    idle: dict[str, dict[str, object]] = {
        "--dask and --part check all hosts of a data set": {
            "--baseline": references.baseline,
            "--repeat": references.repeat,
            "--max-hidden": references.max_hidden is not None,
            "--fleet": references.fleet,
            "--keep": is_kept,
        }
    }
    if part and not part.startswith("references"):
        usual = parse_fraction(USUAL_THRESHOLD, "threshold")
        idle["all parts have that of --part references/N"] = {
            "--threshold": references.threshold != usual,
            "--since": references.since,
        }
    if part and part != "join":
        idle["this step writes a file, and --part join has the answer"] = {
            "--json": outputs.json,
            "--page": outputs.page,
            "--prometheus": outputs.prometheus,
            "--junit": outputs.junit,
            "--suspects": outputs.suspects,
            "--all": everything,
        }
    for why, options in idle.items():
        if given := [option for option, value in options.items() if value]:
            raise WaywiserError(
                f"{given[0]} has no effect here: {why}", remedy=f"remove {given[0]}"
            )


def _check_one(
    file: str,
    references: References,
    outputs: Outputs,
    measure: bool,
    *,
    everything: bool,
    is_kept: bool,
) -> int:
    """Checks one profile."""
    from waywiser.analysis.health.check import check_profile, keep
    from waywiser.analysis.health.kept_profiles import NotKept
    from waywiser.cli.remeasure import measure_again
    from waywiser.cli.streams import say

    checked = check_profile(file, references, measure_again if measure else None)
    node, found = checked.node, checked.found
    details: tuple[Block, ...] = ()
    if found.baseline is not None:
        parts = checkup_parts(found.baseline, node, checked.failure, found.other_machines)
        details = tuple(parts)
    outputs.write(found, node, details)
    outputs.show(found, node, details, everything=everything)
    if is_kept:
        try:
            say(f"waywiser: kept as a baseline: {keep(checked, file)}\n")
        except NotKept as error:
            say(f"waywiser: {error}\n")
    return exit_code(STATUSES[found.status])


def checkup_parts(
    found: Checkup, node: Subject, failure: str = "", beside: Sequence[NormalPath] = ()
) -> Iterator[Block]:
    """Why, and the commands that measure on the ``node`` what is not decided;
    ``failure`` says why that was not done here. Drops show what is normal for their link."""
    from waywiser.analysis.comparison.comparison_text import (
        NOT_DECIDED,
        change_text,
        detectable_text,
        figures_before_and_now,
        label,
        sizes_text,
        to_decide,
        verdict_text,
    )
    from waywiser.analysis.comparison.part_change import one_value_text
    from waywiser.cli.remeasure import command_parts
    from waywiser.report.parts import Words
    from waywiser.words import by_wording, with_units

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
    verdicts = [verdict_text(found.comparison, path) for path in found.drops]
    for path, verdict in zip(found.drops, verdicts, strict=True):
        drop = path.size
        assert drop is not None
        loss = detectable_text(
            drop.decision.detectable,
            hides=verdict == NOT_DECIDED,
            has_changed=verdict != "no change",
            of_time=drop.is_time,
        )
        yield Words(f"{change_text(drop)}  {verdict}: {with_units(label(path))}", indent=4)
        if drop.verdict == NOT_DECIDED:
            loss = one_value_text(drop)
        before, now = figures_before_and_now(drop)
        at = f" at {size}" if (size := sizes_text(drop)) else ""
        own = normal.get(drop.series)
        usual = f"; {own.verdict_text}" if own is not None else ""
        yield Words(f"{before} before, {now} now{at}; {loss}{usual}", indent=12)
    undecided = zip(found.drops, verdicts, strict=True)
    named = {label(path) for path, verdict in undecided if verdict == NOT_DECIDED}
    if unclear := [path for path in found.comparison.measured if label(path) in named]:
        yield Words(to_decide(found.comparison, unclear), indent=4)
    for line, _ in by_wording(found.notes):
        yield Words(f"note: {line}", indent=2)
