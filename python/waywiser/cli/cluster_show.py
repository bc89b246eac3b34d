"""``waywiser cluster show``: which node, rail, link or group of a cluster is slow?"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping

import waywiser
from waywiser.cli.app import Json, print_verb, say_lines, verb
from waywiser.words import WaywiserError


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
    outputs = {"--good-hosts": good_hosts, "--exclude": exclude, "--drain": drain, "--json": json}
    _require_one(outputs)
    found = waywiser.cluster_show(folder)
    if not (good_hosts or exclude or drain):
        return print_verb(found, json=json)
    from waywiser.analysis.cluster import host_lines

    verdict = found.result.verdict
    lines = host_lines.drain_lines(verdict) if drain else [host_lines.excluded_hosts(verdict)]
    _print_lines(host_lines.good_hosts(verdict) if good_hosts else filter(None, lines))
    say_lines(found.said)
    return 0


def _print_lines(lines: Iterable[str]) -> None:
    for line in lines:
        sys.stdout.write(f"{line}\n")


def _require_one(outputs: Mapping[str, bool]) -> None:
    given = [name for name, is_given in outputs.items() if is_given]
    if len(given) > 1:
        raise ClusterShowError(
            f"{' and '.join(given)} exclude each other", remedy="give one of them"
        )
