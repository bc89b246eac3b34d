"""``waywiser import``: other tools' results as a profile, and what could not be taken over."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from waywiser.cli.streams import put_line

if TYPE_CHECKING:
    from waywiser.exchange.imports.profiles import Imported

SCHEMA = 1
"""The schema of the JSON form."""

MOST_NAMED = 8
"""Things with the same reason that are each given a line."""


def run_import(
    files: Sequence[str],
    output: str | None,
    *,
    format: str | None = None,
    machine: str | None = None,
    topology: str | None = None,
    json: bool = False,
) -> int:
    """Writes the profile ``output`` (by default named after ``machine`` where that is given) and
    says what is in it.

    Returns 0. Raises `ImportFailed` for anything that is wrong with a file, and the `ProfileError`
    of an output that exists or cannot be written; then there is no profile.
    """
    from waywiser.exchange.imports.profiles import import_files
    from waywiser.exchange.imports.reading import clipped
    from waywiser.profile import default_name
    from waywiser.profile.output_file import require_profile_name

    target = Path(output) if output is not None else default_name(machine or "imported")
    require_profile_name(target)
    found = import_files(
        [Path(file) for file in files],
        target,
        format=format,
        machine=machine,
        topology=None if topology is None else Path(topology),
        command=("waywiser", "import", *map(clipped, files)),
    )
    if json:
        _write_json(found, target)
    else:
        _print(found, target)
    return 0


def _write_json(found: Imported, target: Path) -> None:
    from waywiser.cli.streams import print_json

    document = {
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
    }
    print_json(document)


def _print(found: Imported, target: Path) -> None:
    from waywiser.exchange.imports.machine import UNNAMED
    from waywiser.words.number_format import count

    groups: dict[str, list[str]] = {}
    for unsupported in found.unsupported_paths:
        groups.setdefault(unsupported.reason, []).append(unsupported.path)
    tools: dict[str, int] = {}
    for each in found.files:
        if each.found is not None:
            tool = f"{each.found.tool} {each.found.version}".rstrip()
            tools[tool] = tools.get(tool, 0) + 1
    for tool, files in tools.items():
        put_line(f"{count(files, 'file')} of {tool}")
    for reason, members in sorted(groups.items(), key=lambda item: -len(item[1])):
        put_line(f"not imported: {reason} ({len(members)})")
        for member in members[:MOST_NAMED]:
            put_line(f"  {member}")
        if len(members) > MOST_NAMED:
            put_line(f"  and {len(members) - MOST_NAMED} more: see --json")
    if found.failed:
        put_line(f"{count(found.failed, 'series')} failed there: the reasons are in the profile")
    host = found.machine.hostname
    blocks = f" in {count(found.visits, 'block')}" if found.visits != found.series else ""
    put_line(f"{host}: {count(found.series, 'series')}{blocks} imported into {target}")
    if host == UNNAMED:
        put_line("the files do not name the machine: --machine NAME would")
