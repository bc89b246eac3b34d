"""``waywiser import``: other tools' results as a profile, and what could not be taken over."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from waywiser.cli.app import Json, print_result, verb

if TYPE_CHECKING:
    from waywiser.exchange.imports.profiles import Imported
    from waywiser.report.parts import Block

SCHEMA = 1
"""The schema of the JSON form."""

MOST_NAMED = 8
"""Things with the same reason that are each given a line."""


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
    -o, --output FILE: Write the profile to FILE; by default NAME-TIME.wwp with the name of
        --machine, else imported-TIME.wwp.
    --format FORMAT: The form of the files: nvbandwidth, google-benchmark, google-benchmark-csv,
        osu, nccl, benchpress, transferbench or gpu-copy; by default what the content shows.
    --machine NAME: Name of the machine; by default that in the files.
    --topology FILE: A capture or hwloc XML of the machine that was measured: links and peaks.
    --topology-anyway: Keep a topology that contradicts the files, with a note; else it is an error.

    waywiser import nvbandwidth.json -o node.wwp
        make a profile of a result
    waywiser import nvbandwidth.json --topology capture.json -o node.wwp
        the same with the links of the machine that was measured
    """
    from waywiser.exchange.imports.foreign_file import clipped
    from waywiser.exchange.imports.profiles import import_files

    target = _target(output, machine)
    found = import_files(
        [Path(file) for file in files],
        target,
        format=format,
        machine=machine,
        topology=Path(topology) if topology else None,
        topology_anyway=topology_anyway,
        command=("waywiser", "import", *map(clipped, files)),
    )
    print_result(_document(found, target), _parts(found, target), json=json)


def _target(output: str | None, machine: str | None) -> Path:
    """The file to write. Raises `WaywiserError` for a name that no profile may have."""
    from waywiser.profile import default_name, require_profile_name

    target = Path(output) if output is not None else default_name(machine or "imported")
    require_profile_name(target)
    return target


def _document(found: Imported, target: Path) -> dict[str, object]:
    return {
        "schema": SCHEMA,
        "profile": str(target),
        "machine": found.machine.hostname,
        "files": [
            {
                "file": each.name,
                "format": each.found.format if each.found else "",
                "tool": each.found.tool if each.found else "",
                "version": each.found.version if each.found else "",
                "date": each.found.date if each.found else "",
                "measured": len(each.found.measured) if each.found else 0,
            }
            for each in found.files
        ],
        "series": found.series,
        "visits": found.visits,
        "failed": found.failed,
        "unsupported_paths": found.unsupported_paths,
        "notes": [{"note": note, "series": number} for note, number in found.notes],
        "topology_notes": list(found.topology_notes),
    }


def _parts(found: Imported, target: Path) -> Iterator[Block]:
    from waywiser.exchange.imports.machine import UNNAMED
    from waywiser.exchange.imports.profiles import RUN
    from waywiser.report.parts import Words
    from waywiser.report.views.unsupported import reasons_of
    from waywiser.words import by_wording, count, grouped

    known = [(each.name, each.found) for each in found.files if each.found is not None]
    tools = grouped((f"{each.tool} {each.version}".rstrip(), name) for name, each in known)
    for tool, names in tools.items():
        files = len({name.partition(RUN)[0] for name in names})
        runs = f" with {len(names)} runs" if len(names) > files else ""
        yield Words(f"{count(files, 'file')} of {tool}{runs}")
    groups = reasons_of(found.unsupported_paths)
    for reason, members in sorted(groups.items(), key=lambda item: -len(item[1])):
        yield Words(f"not imported: {reason} ({len(members)})")
        for member in members[:MOST_NAMED]:
            yield Words(member, indent=2)
        if len(members) > MOST_NAMED:
            yield Words(f"and {len(members) - MOST_NAMED} more: see --json", indent=2)
    series = dict(found.notes)
    for line, same in by_wording(list(series)):
        yield Words(f"note: {line} ({count(sum(series[note] for note in same), 'series')})")
    if found.failed:
        failed = count(found.failed, "series")
        yield Words(f"{failed} failed there: the reasons are in the profile")
    host = found.machine.hostname
    blocks = f" in {count(found.visits, 'block')}" if found.visits != found.series else ""
    yield Words(f"{host}: {count(found.series, 'series')}{blocks} imported into {target}")
    for line, _ in by_wording(found.topology_notes):
        yield Words(f"note: {line}")
    if host == UNNAMED:
        yield Words("the files do not name the machine: --machine NAME would")
