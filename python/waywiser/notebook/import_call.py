"""Other tools' results as a profile, and what could not be taken over: `waywiser.import_`."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from waywiser.exchange.imports.foreign_file import clipped
from waywiser.exchange.imports.profiles import Imported, import_files
from waywiser.notebook.verb_result import FileName, VerbResult

if TYPE_CHECKING:
    from waywiser.render.parts import Block

SCHEMA = 1
"""The schema of the JSON form."""

MOST_NAMED = 8
"""Things with the same reason that are each given a line."""


def import_results(
    names: Sequence[FileName],
    *,
    output: FileName | None = None,
    format: str | None = None,
    machine: str | None = None,
    topology: FileName | None = None,
    topology_anyway: bool = False,
) -> VerbResult:
    """As `waywiser.import_`. Raises `WaywiserError`."""
    files = [os.fspath(each) for each in names]
    target = _target(output, machine)
    found = import_files(
        list(map(Path, files)),
        target,
        format=format,
        machine=machine,
        topology=Path(topology) if topology else None,
        topology_anyway=topology_anyway,
        command=("waywiser", "import", *map(clipped, files)),
    )
    return VerbResult(found, lambda: _document(found, target), lambda: _parts(found, target))


def _target(output: FileName | None, machine: str | None) -> Path:
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
    from waywiser.render.parts import Words
    from waywiser.render.views.unsupported import reasons_of
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
