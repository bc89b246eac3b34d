"""What other machines reach: the ranges, a profile's headline paths beside them, known causes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from waywiser.curves import NO_BASELINE, NormalPath, NormalValue, verdicts_text
from waywiser.curves.normal_causes import Cause, causes_of
from waywiser.curves.normal_table import LARGE_TEXT, LEAST_SOURCES, OURS, NormalRange, ranges
from waywiser.render.parts import Block, Code, Section, Sheet, SheetCell, SheetColumn, Words
from waywiser.render.writing import spread
from waywiser.stats import relative
from waywiser.words import count, format_number, format_rate, grouped, size_of

RANGE_COLUMNS = (
    SheetColumn("normal for"),
    SheetColumn("path"),
    SheetColumn("GB/s", number=True),
    SheetColumn("sources", number=True),
    SheetColumn("link inferred", number=True, spared=1),
    SheetColumn("size", spared=2),
)

VALUE_COLUMNS = (
    SheetColumn("GB/s", number=True),
    SheetColumn("GPU"),
    SheetColumn("group", spared=1),
    SheetColumn("date", spared=2),
    SheetColumn("source", folds=True),
    SheetColumn("tool", folds=True, spared=3),
)

PATH_COLUMNS = (
    SheetColumn("headline path"),
    SheetColumn("GB/s", number=True, notes="±", notes_spared=2),
    SheetColumn("size", number=True, short="at", spared=1),
    SheetColumn("verdict"),
    SheetColumn("normal for", folds=True),
)


def range_parts(
    values: Sequence[NormalValue], *, everything: bool = False
) -> Iterator[Block | Section]:
    """All ranges of large sizes; with ``everything`` of all sizes, each with its values and their
    sources."""
    found = [each for each in ranges(values) if everything or each.size == LARGE_TEXT]
    sources = len({value.counted_as for value in values})
    yield Words(
        f"Bandwidths that machines of others reach: {count(len(values), 'value')} of "
        f"{count(sources, 'source')}"
    )
    if everything:
        for each in found:
            yield Section("", f"{each.path}, {each.size}: {each}", (_value_sheet(each),))
    else:
        yield Section("", "", (Sheet.of("", RANGE_COLUMNS, map(_range_row, found)),))
    yield Section(
        "",
        "",
        (
            Words(
                "GB/s: from the lowest to the highest value; 'or' stands between groups none of "
                "which is a fault. Link inferred: sources that do not state the link, which "
                f"follows from model and figure. {LEAST_SOURCES} sources are the least for a "
                f"verdict; those of this project ({OURS}...) count as one. {NO_BASELINE}"
            ),
            *(() if everything else (Words("--all names the sources, and shows small sizes."),)),
        ),
    )


def _range_row(found: NormalRange) -> tuple[object, ...]:
    inferred = {value.counted_as for value in found.values if value.is_inferred}
    return (
        found.of,
        found.path,
        found.figures,
        len(found.sources),
        len(inferred) or "",
        found.size,
    )


def _value_sheet(found: NormalRange) -> Sheet:
    rows = (
        (format_number(v.gb_per_s), v.gpu or "not stated", v.group, v.date, v.source, v.tool)
        for v in sorted(found.values, key=lambda value: value.gb_per_s)
    )
    return Sheet.of("", VALUE_COLUMNS, rows).without_empty_columns()


def normal_parts(
    file: str,
    paths: Sequence[NormalPath],
    *,
    everything: bool = False,
    seen: Mapping[str, str] = {},
) -> Iterator[Block | Section]:
    """The verdict of each headline path; those of one group and verdict in one line, with
    ``everything`` each in its own. Then the known causes, if any path is below: those that were
    ``seen`` in the profile first."""
    if not paths:
        yield Words(f"{file} has no headline path with a GPU at a size that shows a bandwidth")
        return
    yield Words(f"{verdicts_text(paths)}", "lead")
    yield Section("", "", (path_sheet(paths, everything=everything),))
    below = [path for path in paths if path.verdict == "below"]
    causes: dict[str, Cause] = {}
    for path in below:
        causes |= {cause.id: cause for cause in causes_of(path.link, path.path)}
    if causes:
        ordered = sorted(causes.values(), key=lambda cause: cause.id not in seen)
        blocks = [
            block for cause in ordered for block in _cause_blocks(cause, seen.get(cause.id, ""))
        ]
        yield Section("", "Known causes, each with a command that checks it", tuple(blocks))
    yield Section("", "", (Words(NO_BASELINE),))


def path_sheet(paths: Sequence[NormalPath], *, everything: bool = False) -> Sheet:
    """A line for each verdict of a group; with ``everything`` for each path."""
    alike = [[path] for path in paths] if everything else _alike(paths)
    return Sheet.of("", PATH_COLUMNS, map(_path_row, alike)).without_empty_columns()


def _alike(paths: Sequence[NormalPath]) -> list[list[NormalPath]]:
    found = grouped(((path.path, path.verdict, path.why, str(path.range)), path) for path in paths)
    return list(found.values())


def _path_row(paths: Sequence[NormalPath]) -> tuple[object, ...]:
    """The slowest of several paths that have one verdict."""
    first = min(paths, key=lambda path: path.gb_per_s)
    width = relative(first.gb_per_s, first.interval, of_rate=True)
    more = f", the slowest of {len(paths)}" if len(paths) > 1 else ""
    link = f"{first.link}: " if first.link and first.range is None else ""
    verdict = first.verdict or "no verdict"
    known = str(first.range or "")
    return (
        f"{first.name}{more}",
        SheetCell(format_rate(first.gb_per_s * 1e9, width), note=spread(width)),
        size_of(first.workload),
        verdict,
        f"{known}; {first.why}" if known and first.why else known or f"{link}{first.why}",
    )


def _cause_blocks(cause: Cause, seen: str) -> Iterator[Block]:
    yield Words(f"{cause.cause}.", indent=2)
    if seen:
        yield Words(f"this profile: {seen}", tone="warning", indent=4)
    yield Code(cause.check, indent=4)
    yield Words(f"look for: {cause.look_for}", indent=4)
    if cause.example:
        yield Words(f"example: {cause.example} ({cause.source})", indent=4)
