"""``waywiser cluster survey`` and ``join``: say what will be done, do it, show what was found."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from msgspec.structs import replace

from waywiser.cli.app import CLEAN, FINDING, print_result
from waywiser.cli.cluster_progress import ClusterProgress
from waywiser.cli.damaged_lines import say_damaged
from waywiser.cli.signals import stopped_by_signals
from waywiser.cli.streams import print_json, put_line, say
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
from waywiser.measure.option import given, options_of
from waywiser.measure.survey_run import Interrupted
from waywiser.profile import ClusterFolder, is_cluster_folder, read_cluster
from waywiser.profile.cluster_folder import has_no_result, require_new_folder
from waywiser.words import ClusterNode, Rail, WaywiserError, count, format_seconds, visible

_OF_PLAN = ("seed", "groups", "uplink_pairs", "size", "transport")
"""Options that the plan of a folder has; a resume may not change them."""


class ClusterOptionError(WaywiserError):
    """Options of a survey of a cluster that say opposite things."""


def run_cluster_survey(options: ClusterSurveyOptions, *, dry_run: bool, json: bool) -> int:
    """Surveys a cluster, or shows what would be tested, and returns the exit code: 0 if nothing is
    wrong, 1 for a finding or too few nodes, 3 if too little is known. Raises `WaywiserError`;
    finished tests are in the folder."""
    options = dataclasses.replace(options, resume=options.resume or options.retry)
    _require_agreement(options, dry_run=dry_run)
    path = Path(options.output or f"cluster-{datetime.now():%Y%m%d-%H%M%S}")
    hosts = survey_hosts(options)
    if dry_run:
        return _show_plan(options, hosts, path, json=json)
    with (
        stopped_by_signals(),
        _opened(options, path) as folder,
        _resumable(options, path, folder),
    ):
        survey_cluster(options, hosts, folder, ClusterProgress())
    return _show(options, path, json=json)


def run_cluster_join(options: ClusterJoinOptions) -> None:
    """Runs the agent of this node until the survey ends. Raises `WaywiserError`."""
    with stopped_by_signals():
        join_survey(options, lambda line: say(f"{visible(line)}\n"))


def _require_agreement(options: ClusterSurveyOptions, *, dry_run: bool) -> None:
    if options.resume and dry_run:
        raise ClusterOptionError(
            "--resume and --dry-run say opposite things", remedy="leave one out"
        )
    require_transport(options.transport)
    if options.resume and not options.output:
        raise ClusterOptionError("--resume needs the folder", remedy="name it with -o")


@contextmanager
def _opened(options: ClusterSurveyOptions, path: Path) -> Iterator[ClusterFolder]:
    """The folder of the run. Raises `WaywiserError`."""
    if options.resume and path.exists() and (is_cluster_folder(path) or not has_no_result(path)):
        with ClusterFolder.resume(path) as folder:
            say_damaged(folder.skipped.first, folder.skipped.count)
            _require_plan(options, folder)
            if options.retry:
                folder.retry()
            yield folder
        return
    if options.resume:
        say(f"there is no {path} to resume: a new survey starts\n")
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
                f"a resume has the plan of the folder: {options_of(options)[name].name} cannot be "
                "changed",
                where=str(folder.path),
                remedy="leave it out, or survey into a new folder",
            )


@contextmanager
def _resumable(options: ClusterSurveyOptions, path: Path, folder: ClusterFolder) -> Iterator[None]:
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
            say(f"{count(len(folder.tests), 'finished test')} stored; {again}\n")
        raise


def resume_command(options: ClusterSurveyOptions, path: Path) -> str:
    """The command line that goes on with a run."""
    words = ["waywiser", "cluster", "survey", "-o", str(path), "--resume"]
    declared = options_of(options)
    for name, value in given(options).items():
        if name in (*_OF_PLAN, "output", "resume", "retry"):
            continue
        words += [declared[name].name] if value is True else [declared[name].name, str(value)]
    return shlex.join(words)


def _show(options: ClusterSurveyOptions, path: Path, *, json: bool) -> int:
    """Shows what the folder says."""
    from waywiser.analysis.cluster.summary import summarise_cluster
    from waywiser.analysis.cluster.verdict import verdict
    from waywiser.cli.cluster_show import exit_code
    from waywiser.report.views.cluster import cluster_parts

    result = read_cluster(path)
    found = summarise_cluster(result, verdict(result.nodes, result.plan, result.tests))
    print_result(found, cluster_parts(found, str(path)), json=json)
    say(f"results: {path}; waywiser cluster show {path} shows them again\n")
    reached = sum(node.state != "not reached" for node in result.nodes)
    if reached < options.expect_nodes:
        say(f"{reached} of {count(options.expect_nodes, 'expected node')} were reached\n")
        return FINDING
    return exit_code(found)


def _show_plan(options: ClusterSurveyOptions, hosts: SurveyHosts, path: Path, *, json: bool) -> int:
    """Shows what would be tested, how long it takes if nothing is suspect, and what the survey
    lacks on this machine. Returns the exit code: 1 if it could not be made."""
    width = len(str(options.nodes or options.expect_nodes))
    names = hosts.names or tuple(
        f"node-{number:0{width}}"
        for number in range(1, (options.nodes or options.expect_nodes) + 1)
    )
    nodes = [ClusterNode(name, rails=(Rail(0),)) for name in names]
    plan = with_groups(new_plan(options), hosts, names)
    plan = replace(plan, transport=plan.transport or "nccl")
    costs = measured_costs(plan.transport, len(nodes), ())
    checking = 0.0 if options.no_check else check_seconds(len(nodes))
    found = time_plan(expected_rounds(nodes, plan, ()), costs, checking)
    lacks = all_missing(options, hosts)
    missing = [*lacks.always]
    try:
        require_new_folder(path)
    except WaywiserError as error:
        missing.append(str(error))
    if json:
        document = {"schema": 1, "nodes": names, "plan": plan, "time": encoded(found)}
        print_json({**document, "missing": missing, "missing_for_mpi": lacks.for_mpi})
        return FINDING if missing else CLEAN
    for line in _plan_lines(len(nodes), found):
        put_line(line)
    for line in needs_text(missing, lacks.for_mpi):
        put_line(visible(line))
    return FINDING if missing else CLEAN


def _plan_lines(nodes: int, found: TimePlan) -> Iterator[str]:
    yield (
        f"{count(nodes, 'node')}: {count(found.tests, 'test')} in {count(found.rounds, 'round')}, "
        f"about {format_seconds(found.seconds)} if nothing is suspect"
    )
    if found.check_seconds:
        yield f"  check of each node by itself: {format_seconds(found.check_seconds)}"
    for phase in found.phases:
        rounds, tests = count(phase.rounds, "round"), count(phase.tests, "test")
        yield f"  {phase.phase}: {tests} in {rounds}, {format_seconds(phase.seconds)}"
