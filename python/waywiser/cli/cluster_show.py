"""``waywiser cluster show``: which node, rail, link or group of a cluster is slow?"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from waywiser.cli.app import CLEAN, FINDING, INCONCLUSIVE, Json, print_result, verb
from waywiser.words import WaywiserError

if TYPE_CHECKING:
    from waywiser.analysis.cluster.summary import ClusterSummary


class ClusterShowError(WaywiserError):
    """A command line that asks for two outputs at once."""


@verb("Show which node of a cluster is slow or hangs.", name="cluster show")
def cluster_show(
    folder: str,
    good_hosts: bool = False,
    exclude: bool = False,
    drain: bool = False,
    json: Json = False,
) -> int:
    """Show which node, rail, pair or group of a cluster is slow or hangs, with the evidence and
    what to do; also while the survey goes on.

    FOLDER: The results of a cluster survey.
    --good-hosts: Print only the nodes that jobs can have, one on each line, as a hostfile.
    --exclude: Print only the other nodes, as a host list for sbatch --exclude.
    --drain: Print only, and never run, the commands for Slurm's administrator that drain bad nodes.

    waywiser cluster show c
        show which node of the survey in folder c is slow
    waywiser cluster show c --exclude
        print the nodes that jobs should not have
    """
    from waywiser.analysis.cluster import host_lines
    from waywiser.analysis.cluster.summary import summarise_cluster
    from waywiser.analysis.cluster.verdict import verdict
    from waywiser.cli.damaged_lines import say_damaged
    from waywiser.profile import read_cluster
    from waywiser.report.views.cluster import cluster_parts

    outputs = {"--good-hosts": good_hosts, "--exclude": exclude, "--drain": drain, "--json": json}
    _require_one(outputs)
    result = read_cluster(Path(folder))
    say_damaged(result.damaged, result.damaged_count)
    found = verdict(result.nodes, result.plan, result.tests)
    if good_hosts or exclude or drain:
        lines = host_lines.drain_lines(found) if drain else [host_lines.excluded_hosts(found)]
        _print_lines(host_lines.good_hosts(found) if good_hosts else filter(None, lines))
        return CLEAN
    summary = summarise_cluster(result, found)
    print_result(summary, cluster_parts(summary, folder), json=json)
    return exit_code(summary)


def exit_code(summary: ClusterSummary) -> int:
    """1 for a finding, 3 if too little is known to say that there is none."""
    from waywiser.analysis.cluster.texts import has_finding

    if has_finding(summary.verdict):
        return FINDING
    return CLEAN if summary.severity == "info" else INCONCLUSIVE


def _print_lines(lines: Iterable[str]) -> None:
    for line in lines:
        sys.stdout.write(f"{line}\n")


def _require_one(outputs: Mapping[str, bool]) -> None:
    given = [name for name, is_given in outputs.items() if is_given]
    if len(given) > 1:
        raise ClusterShowError(
            f"{' and '.join(given)} exclude each other", remedy="give one of them"
        )
