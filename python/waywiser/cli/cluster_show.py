"""``waywiser cluster show``: which node, rail, link or group of a cluster is slow?"""

from __future__ import annotations

import sys

import waywiser
from waywiser.cli.app import Json, print_verb, say_lines, verb
from waywiser.cli.streams import print_json


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
    --exclude: Print only the other nodes, as a host list for sbatch --exclude. After --good-hosts
        if both are given.
    --drain: Print only, and never run, the commands for Slurm's administrator that drain bad nodes;
        after the others if several are given.

    waywiser cluster show c
        show which node of the survey in folder c is slow
    waywiser cluster show c --exclude
        print the nodes that jobs should not have
    """
    found = waywiser.cluster_show(folder)
    if not (good_hosts or exclude or drain):
        return print_verb(found, json=json)
    from waywiser.analysis.cluster import host_lines

    verdict = found.result.verdict
    lists: dict[str, list[str]] = {}
    if good_hosts:
        lists["good_hosts"] = [*host_lines.good_hosts(verdict)]
    if exclude:
        lists["exclude"] = [*filter(None, [host_lines.excluded_hosts(verdict)])]
    if drain:
        lists["drain"] = [*host_lines.drain_lines(verdict)]
    if json:
        print_json({"schema": 1, **lists})
    else:
        sys.stdout.writelines(f"{line}\n" for lines in lists.values() for line in lines)
    say_lines(found.said)
    return 0
