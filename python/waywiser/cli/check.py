"""``waywiser check``: is this machine healthy, and which of many is not?"""

from __future__ import annotations

from typing import Annotated

import waywiser
from waywiser.cli.app import (
    USUAL_THRESHOLD,
    ExpectedGpus,
    Json,
    Repeat,
    Threshold,
    given_of,
    print_result,
    say_lines,
    verb,
)
from waywiser.words import Bounds, WaywiserError

USUAL_SECONDS = 30
"""`waywiser.measure.machine_check.USUAL_SECONDS`, whose module takes longer to import than the
help may."""


@verb("Say whether this machine, a node or a fleet is healthy.")
def check(
    files: list[str] | None = None,
    baseline: list[str] | None = None,
    keep: bool = False,
    within: Annotated[int, Bounds(0, 3600)] = USUAL_SECONDS,
    repeat: Repeat = None,
    threshold: Threshold = USUAL_THRESHOLD,
    max_hidden: str = "",
    expect_gpus: ExpectedGpus = 0,
    values: list[str] | None = None,
    since: str = "",
    part: str = "",
    suspects: bool = False,
    all: bool = False,
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
        noise between surveys. By default those of --keep. A folder has profiles of nodes of its
        kind, and of its own nights; of this machine what former checks measured counts too.
    --keep: Keep the profile as a baseline of its machine, if the check finds nothing wrong.
    --within SECONDS: Measure this machine for so long at most, 10 or more; a machine on which all
        is decided takes less. Of a profile of this machine suspected paths are measured again. With
        0 nothing is measured: files are read.
    --max-hidden FRACTION: End with 3 if a loss of more than this, such as 10%, could hide on a
        headline path; by default if one of more than 15% could on a pinned or P2P copy or a set.
    --values FILE: They are values of other machines, or labels of nodes: lines of a host name or a
        GPU's UUID and NAME=VALUE pairs, or a table whose first column has these.
    --since DAY[/DAY]: List changes between nights from this day on, 2026-11-01, or of so many days,
        14d. A second day is the first one of a folder that is looked at: 14d/60d takes seconds
        where a year of a large fleet takes minutes.
    --part PART: Check a data set in parts: references/16 first, then 1/16 to 16/16 in any order, as
        jobs of an array, then join. tcp://HOST:8786 lets the workers of this Dask scheduler do all.
    --suspects: Print only the hosts to measure again, as a host list for Slurm.
    --all: All paths, not only those with a finding.
    --page FILE: Also write one HTML page that needs no network; - for standard output.
    --prometheus FILE: Also write metrics for the textfile collector of Prometheus; - for standard
        output: the text then goes to standard error.
    --junit FILE

    waywiser check
        measure this machine, and say whether it is healthy
    waywiser check nodes --page check.html
        find the nodes that differ from others or from their former nights
    """
    given = given_of(locals())
    del given["json"]
    names = given.pop("files", ())
    from waywiser.cli.progress import following
    from waywiser.cli.streams import print_json, put_line
    from waywiser.profile import STANDARD_OUTPUT, require_one_output

    require_one_output(json=json, page=page, prometheus=prometheus, junit=junit, suspects=suspects)
    try:
        with following() as watching:
            found = waywiser.check(*names, **given, progress=watching)
    except WaywiserError as error:
        if json and (unread := getattr(error, "document", None)) is not None:
            print_json(unread)
        raise
    if suspects:
        if found.suspects:
            put_line(found.suspects)
    else:
        to_errors = STANDARD_OUTPUT in (page, prometheus, junit)
        document = found.document if json else None
        print_result(document, found.parts, json=json, to_errors=to_errors)
    say_lines(found.said)
    return found.exit_code
