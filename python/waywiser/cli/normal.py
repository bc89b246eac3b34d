"""``waywiser normal``: what bandwidth other machines reach, and whether a profile's are like it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from waywiser.cli.app import Json
from waywiser.cli.result import print_result
from waywiser.cli.streams import put_line
from waywiser.cli.verb import verb
from waywiser.words import WaywiserError

if TYPE_CHECKING:
    from waywiser.curves.normal import NormalPath
    from waywiser.curves.normal_table import NormalRange, NormalValue

SCHEMA = 1
"""The schema of the JSON form."""

MOST_BYTES = 4 * 2**20
"""Size of a table of values that is read."""


@verb("Show what bandwidth other machines reach, and compare a profile with it.")
def normal(
    file: str | None = None,
    everything: bool = False,
    values: list[str] | None = None,
    as_rows: str = "",
    json: Json = False,
) -> None:
    """Show the bandwidths that other machines reach by link, path and size, or compare the headline
    paths of a profile with them.

    [FILE]: A profile: show which headline paths are below what is normal, and known causes with the
        command that checks each. The exit code is 0 for every verdict: a range of other machines
        is no baseline.
    --all: Show each value with its source; of a profile each path.
    --values FILE: Use the values of a table (CSV) too, after a check of its form. May be repeated.
    --as-rows SOURCE: Instead: write the bandwidths of the profile as rows for such a table; SOURCE
        is the page (https://...) or the repository (owner/name:path) where others find it.

    waywiser normal
        show what is normal for each link
    waywiser normal node.wwp
        show which headline paths of a profile are below it, and known causes
    """
    from waywiser.curves.normal_table import shipped_values

    if as_rows and (file is None or json or everything):
        raise WaywiserError(
            "--as-rows writes rows of a profile, and nothing else",
            remedy="name a profile with it, without --all and --json",
        )
    known = [*shipped_values()]
    for name in values or ():
        known += _read(name)
    if file is None:
        _show_ranges(known, everything=everything, json=json)
    elif as_rows:
        _write_rows(file, as_rows)
    else:
        _show_paths(file, known, everything=everything, json=json)


def _read(name: str) -> tuple[NormalValue, ...]:
    """Raises `WaywiserError` for a file that is no table of values."""
    from waywiser.curves.normal_table import read_values
    from waywiser.words.regular_file import NotRegular, TooLarge, read_regular

    try:
        text = read_regular(Path(name), MOST_BYTES).decode()
    except (OSError, NotRegular, TooLarge) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise WaywiserError(f"cannot be read: {why}", where=name, remedy="name a table") from None
    except UnicodeDecodeError:
        raise WaywiserError("is no text in UTF-8", where=name, remedy="name a table") from None
    return read_values(text, name)


def _show_ranges(known: list[NormalValue], *, everything: bool, json: bool) -> None:
    from waywiser.curves.normal_table import ranges
    from waywiser.report.views.normal import range_parts

    document = {"schema": SCHEMA, "ranges": [_range_of(each) for each in ranges(known)]}
    print_result(document, range_parts(known, everything=everything), json=json)


def _show_paths(file: str, known: list[NormalValue], *, everything: bool, json: bool) -> None:
    from waywiser.analysis.comparison.read_subject import read_subject
    from waywiser.analysis.comparison.seen_causes import seen_causes
    from waywiser.curves.curve import curves_of
    from waywiser.curves.normal import NO_BASELINE, normal_paths
    from waywiser.curves.overview import overview
    from waywiser.profile import Profile
    from waywiser.report.views.normal import normal_parts

    with Profile.open(file) as profile:
        found = normal_paths(profile.machine, curves_of(overview(profile).series), known)
    document: dict[str, Any] = {
        "schema": SCHEMA,
        "profile": file,
        "paths": [path_document(each) for each in found],
        "note": NO_BASELINE,
    }
    is_below = any(path.verdict == "below" for path in found)
    seen = seen_causes(read_subject(file, links=True)) if is_below else {}
    document["seen"] = seen
    parts = normal_parts(file, found, everything=everything, seen=seen)
    print_result(document, parts, json=json)


def path_document(path: NormalPath) -> dict[str, Any]:
    """The JSON form of a headline path beside those of other machines."""
    from waywiser.curves.normal_causes import causes_of

    is_below = path.verdict == "below"
    return {
        "path": path.path,
        "workload": path.workload,
        "gb_per_s": path.gb_per_s,
        "interval": path.interval,
        "link": path.link,
        "verdict": path.verdict,
        "why": path.why,
        "range": None if path.range is None else _range_of(path.range),
        "causes": causes_of(path.link, path.path) if is_below else [],
    }


def _range_of(found: NormalRange) -> dict[str, Any]:
    return {
        "link": found.link,
        "path": found.path,
        "size": found.size,
        "gpu": found.gpu,
        "low": found.whole.low,
        "high": found.whole.high,
        "sources": found.sources,
        "values": found.values,
    }


def _write_rows(file: str, source: str) -> None:
    """Raises `WaywiserError` if no row can be made, or if the rows are not in the form."""
    from waywiser.curves.curve import curves_of
    from waywiser.curves.normal import values_of
    from waywiser.curves.normal_table import read_values, values_text
    from waywiser.curves.overview import overview
    from waywiser.profile import Profile

    with Profile.open(file) as profile:
        curves = curves_of(overview(profile).series)
        found = values_of(profile.machine, curves, source, profile.created[:7])
    if not found:
        raise WaywiserError(
            "no headline path has a link that is known and an interval that is narrow enough",
            where=file,
            remedy=f"waywiser normal {file} says of each path why",
        )
    text = values_text(found)
    read_values(text, "the rows")
    put_line(text.rstrip("\n"))
