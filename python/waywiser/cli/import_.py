"""``waywiser import``: other tools' results as a profile, and what could not be taken over."""

from __future__ import annotations

import waywiser
from waywiser.cli.app import Json, given_of, print_verb, verb


@verb("Make one profile from results of other tools.", name="import")
def import_(
    files: list[str],
    output: str | None = None,
    format: str | None = None,
    machine: str | None = None,
    topology: str | None = None,
    topology_anyway: bool = False,
    json: Json = False,
) -> None:
    """Make one profile from results of nvbandwidth, TransferBench, Comm|Scope and others.

    FILE...: Results of another tool, or a folder of them.
    -o, --output FILE: By default NAME-TIME.wwp with the name of --machine, else imported-TIME.wwp.
    --format FORMAT: nvbandwidth, google-benchmark, google-benchmark-csv,
        osu, nccl, benchpress, transferbench or gpu-copy; by default what the content shows.
    --machine NAME: Name of the machine; by default that in the files.
    --topology FILE: A capture or hwloc XML of the machine that was measured: links and peaks.
    --topology-anyway: Keep a topology that contradicts the files, with a note; else it is an error.

    waywiser import nvbandwidth.json -o node.wwp
        make a profile of a result
    waywiser import nvbandwidth.json --topology capture.json -o node.wwp
        the same with the links of the machine that was measured
    """
    given = given_of(locals())
    del given["json"]
    print_verb(waywiser.import_(*given.pop("files"), **given), json=json)
