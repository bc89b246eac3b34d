"""``waywiser cluster``: which node, rail, pair or group of a cluster is slow, and does it hang?"""

from __future__ import annotations

import waywiser
from waywiser.cli.app import Json, print_verb, verb
from waywiser.cli.signals import stopped_by_signals
from waywiser.cli.streams import say
from waywiser.cluster.survey_options import ClusterJoinOptions, ClusterSurveyOptions
from waywiser.measure.option import given


@verb("Test a cluster: which node is slow, or hangs?", name="cluster survey")
def cluster_survey(options: ClusterSurveyOptions, dry_run: bool = False, json: Json = False) -> int:
    """Test the nodes of a cluster in pairs and together, and say which one is slow or hangs.

    --dry-run: It also says what the survey lacks here.

    waywiser cluster survey -o c
        in a Slurm allocation: test its nodes
    waywiser cluster survey --nodes 3 --address 10.0.0.1:7000 -o c
        wait for three nodes that join, and test them
    """
    with stopped_by_signals():
        found = waywiser.cluster_survey(**given(options), dry_run=dry_run, progress=_say)
    return print_verb(found, json=json)


@verb("Join a cluster survey as one of its nodes.", name="cluster join")
def cluster_join(options: ClusterJoinOptions) -> None:
    """Join a cluster survey as one of its nodes, until the survey ends; the token is in
    WAYWISER_CLUSTER_TOKEN.

    waywiser cluster join 10.0.0.1:7000
        join the survey that listens there
    waywiser cluster join 10.0.0.1:7000 --node-name n3
        join as node n3, whatever the name of the host is
    """
    with stopped_by_signals():
        waywiser.cluster_join(**given(options), progress=_say)


def _say(line: str) -> None:
    say(f"{line}\n")
