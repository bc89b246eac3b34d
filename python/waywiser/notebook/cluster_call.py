"""Which node of a cluster is slow: `waywiser.cluster_survey`, `waywiser.cluster_show` and
`waywiser.cluster_join`."""

from __future__ import annotations

import dataclasses
import os
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from waywiser.analysis.cluster.summary import ClusterSummary, summarise_cluster
from waywiser.analysis.cluster.verdict import verdict
from waywiser.cluster.node.node_agent import join_survey
from waywiser.cluster.survey_options import ClusterJoinOptions, ClusterSurveyOptions
from waywiser.cluster.surveys.hosts import groups_among
from waywiser.cluster.surveys.survey import new_plan, survey_cluster
from waywiser.cluster.surveys.survey_hosts import SurveyHosts, survey_hosts, with_groups
from waywiser.cluster.surveys.survey_needs import all_missing, needs_text
from waywiser.cluster.surveys.survey_transport import require_transport
from waywiser.cluster.surveys.time_plan import (
    TimePlan,
    check_seconds,
    encoded,
    expected_rounds,
    measured_costs,
    time_plan,
)
from waywiser.measure.option import given
from waywiser.measure.option import options_of as declared_options
from waywiser.measure.survey_run import Interrupted
from waywiser.notebook.cluster_progress import ClusterProgress
from waywiser.notebook.damaged_lines import damaged_notes
from waywiser.notebook.survey_call import options_of
from waywiser.notebook.verb_result import CLEAN, FINDING, INCONCLUSIVE, FileName, VerbResult
from waywiser.profile import ClusterFolder, is_cluster_folder, read_cluster
from waywiser.profile.cluster_folder import has_no_result, require_new_folder
from waywiser.render.parts import Block, Section, Words
from waywiser.words import (
    ClusterNode,
    FinishedTest,
    Rail,
    WaywiserError,
    count,
    format_seconds,
    visible,
)

OnLine = Callable[[str], object]
"""Called with each line that the command says while it goes on."""

_OF_PLAN = ("seed", "groups", "uplink_pairs", "size", "transport")
"""Options that the plan of a folder has; a resume may not change them."""


class ClusterOptionError(WaywiserError):
    """Options of a survey of a cluster that say opposite things."""


def survey_nodes(
    arguments: Mapping[str, Any], *, dry_run: bool = False, progress: OnLine | None = None
) -> VerbResult:
    """As `waywiser.cluster_survey`. Raises `WaywiserError`; finished tests are in the folder."""
    say = progress or _silent
    options = options_of(ClusterSurveyOptions, arguments, "cluster_survey")
    options = dataclasses.replace(options, resume=options.resume or options.retry)
    _require_agreement(options)
    path = Path(options.output or f"cluster-{datetime.now():%Y%m%d-%H%M%S}")
    hosts = survey_hosts(options)
    if dry_run:
        return _planned(options, hosts, path)
    with _opened(options, path, say) as folder, _resumable(options, path, folder, say):
        survey_cluster(options, hosts, folder, ClusterProgress(say))
    return _found(options, path)


def join_nodes(arguments: Mapping[str, Any], progress: OnLine | None = None) -> None:
    """As `waywiser.cluster_join`. Raises `WaywiserError`."""
    say = progress or _silent

    def note(line: str) -> None:
        say(visible(line))

    join_survey(options_of(ClusterJoinOptions, arguments, "cluster_join"), note)


def show_cluster(folder: FileName) -> VerbResult:
    """As `waywiser.cluster_show`. Raises `WaywiserError`."""
    result = read_cluster(Path(folder))
    summary = summarise_cluster(result, verdict(result.nodes, result.plan, result.tests))
    return VerbResult(
        summary,
        lambda: summary,
        lambda: _parts(summary, folder),
        exit_code=_exit_code(summary),
        said=damaged_notes(result.damaged, result.damaged_count),
    )


def _parts(summary: ClusterSummary, folder: FileName) -> Iterator[Block | Section]:
    from waywiser.render.views.cluster import cluster_parts

    yield from cluster_parts(summary, os.fspath(folder))


def _exit_code(summary: ClusterSummary) -> int:
    """1 for a finding, 3 if too little is known to say that there is none."""
    from waywiser.analysis.cluster.texts import has_finding

    if has_finding(summary.verdict):
        return FINDING
    return CLEAN if summary.severity == "info" else INCONCLUSIVE


def _silent(line: str) -> None:
    """Prints nothing."""


def _require_agreement(options: ClusterSurveyOptions) -> None:
    require_transport(options.transport)
    if options.resume and not options.output:
        raise ClusterOptionError("--resume needs the folder", remedy="name it with -o")


@contextmanager
def _opened(options: ClusterSurveyOptions, path: Path, say: OnLine) -> Iterator[ClusterFolder]:
    """The folder of the run. Raises `WaywiserError`."""
    if options.resume and path.exists() and (is_cluster_folder(path) or not has_no_result(path)):
        with ClusterFolder.resume(path) as folder:
            for note in damaged_notes(folder.skipped.first, folder.skipped.count):
                say(note)
            _require_plan(options, folder)
            if options.retry:
                folder.retry()
            yield folder
        return
    if options.resume:
        say(f"there is no {path} to resume: a new survey starts")
    with ClusterFolder.create(path, new_plan(options)) as folder:
        yield folder


def _require_plan(options: ClusterSurveyOptions, folder: ClusterFolder) -> None:
    """Raises `ClusterOptionError` for an option that differs from the plan of the folder; a batch
    file may give again what it gave at first."""
    planned, again = folder.plan, new_plan(options)
    nodes = [name for group in planned.groups.values() for name in group]
    differs = {
        "transport": planned.transport not in ("", again.transport),
        "seed": planned.seed != again.seed,
        "uplink_pairs": planned.uplink_pairs != again.uplink_pairs,
        "size": planned.bytes != again.bytes,
        "groups": planned.groups_from != "file"
        or planned.groups != groups_among(again.groups, nodes),
    }
    for name in given(options):
        if differs.get(name):
            raise ClusterOptionError(
                "a resume has the plan of the folder: "
                f"{declared_options(options)[name].name} cannot be changed",
                where=str(folder.path),
                remedy="leave it out, or survey into a new folder",
            )


@contextmanager
def _resumable(
    options: ClusterSurveyOptions, path: Path, folder: ClusterFolder, say: OnLine
) -> Iterator[None]:
    """Says how to go on if the run ends early. Nothing is left of a run that has not begun."""
    again = f"go on with: {resume_command(options, path)}"
    try:
        yield
    except KeyboardInterrupt:
        done = count(len(folder.tests), "finished test")
        if not options.resume:
            folder.remove_if_empty()
        raise Interrupted(f"interrupted: {done} stored", where=str(path), remedy=again) from None
    except WaywiserError:
        if options.resume or not folder.remove_if_empty():
            say(f"{count(len(folder.tests), 'finished test')} stored; {again}")
        raise


def resume_command(options: ClusterSurveyOptions, path: Path) -> str:
    """The command line that goes on with a run."""
    words = ["waywiser", "cluster", "survey", "-o", str(path), "--resume"]
    declared = declared_options(options)
    for name, value in given(options).items():
        if name in (*_OF_PLAN, "output", "resume", "retry"):
            continue
        words += [declared[name].name] if value is True else [declared[name].name, str(value)]
    return shlex.join(words)


def _found(options: ClusterSurveyOptions, path: Path) -> VerbResult:
    """What the folder says."""
    shown = show_cluster(path)
    notes = [*shown.said, f"results: {path}; waywiser cluster show {path} shows them again"]
    reached = sum(node.state != "not reached" for node in read_cluster(path).nodes)
    code = shown.exit_code
    if reached < options.expect_nodes:
        notes.append(f"{reached} of {count(options.expect_nodes, 'expected node')} were reached")
        code = FINDING
    return VerbResult(
        shown.result, lambda: shown.document, lambda: shown.parts, exit_code=code, said=notes
    )


def _planned(options: ClusterSurveyOptions, hosts: SurveyHosts, path: Path) -> VerbResult:
    """What would be tested, of a resume what is left; how long it takes if nothing is suspect; and
    what the survey lacks on this machine. The exit code is 1 if it could not be made."""
    lacks = all_missing(options, hosts)
    missing = [*lacks.always]
    finished: Sequence[FinishedTest] = ()
    if options.resume and path.exists():
        result = read_cluster(path)
        nodes, plan, finished = list(result.nodes), result.plan, result.tests
    else:
        nodes = _expected_nodes(options, hosts)
        plan = with_groups(new_plan(options), hosts, tuple(node.name for node in nodes))
        try:
            require_new_folder(path)
        except WaywiserError as error:
            missing.append(str(error))
    names = tuple(node.name for node in nodes)
    plan = replace(plan, transport=plan.transport or "nccl")
    costs = measured_costs(plan.transport, len(nodes), finished)
    checking = 0.0 if options.no_check or finished else check_seconds(len(nodes))
    found = time_plan(expected_rounds(nodes, plan, finished), costs, checking)

    def document() -> dict[str, object]:
        known = {"schema": 1, "nodes": names, "plan": plan, "time": encoded(found)}
        return {**known, "missing": missing, "missing_for_mpi": lacks.for_mpi}

    def parts() -> Iterator[Block]:
        yield from _plan_lines(len(nodes), found)
        yield from map(Words, needs_text(missing, lacks.for_mpi))

    return VerbResult(found, document, parts, exit_code=FINDING if missing else CLEAN)


def _expected_nodes(options: ClusterSurveyOptions, hosts: SurveyHosts) -> list[ClusterNode]:
    """Those of a list of hosts, or as many as are waited for."""
    number = options.nodes or options.expect_nodes
    width = len(str(number))
    names = hosts.names or tuple(f"node-{each:0{width}}" for each in range(1, number + 1))
    return [ClusterNode(name, rails=(Rail(0),)) for name in names]


def _plan_lines(nodes: int, found: TimePlan) -> Iterator[Block]:
    yield Words(
        f"{count(nodes, 'node')}: {count(found.tests, 'test')} in {count(found.rounds, 'round')}, "
        f"about {format_seconds(found.seconds)} if nothing is suspect"
    )
    if found.check_seconds:
        seconds = format_seconds(found.check_seconds)
        yield Words(f"check of each node by itself: {seconds}", indent=2)
    for phase in found.phases:
        rounds, tests = count(phase.rounds, "round"), count(phase.tests, "test")
        seconds = format_seconds(phase.seconds)
        yield Words(f"{phase.phase}: {tests} in {rounds}, {seconds}", indent=2)
