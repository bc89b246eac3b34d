"""The headline table: bandwidth and latency of the paths that people ask about first.

The report, ``waywiser show`` and notebooks use this one rule: the headline paths of the machine
(`waywiser.curves.headline`) and reads of files. If a profile has none of them, as files of other
tools may, the fastest path of each family stands for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from waywiser.curves.answer import MATTERS
from waywiser.curves.curve import FAMILIES, SMALL_BYTES, Curve, Point
from waywiser.curves.exchanges import is_exchange
from waywiser.curves.headline import (
    ALL_CORES,
    BETWEEN_NODES,
    FILE_READ,
    GROUPS,
    all_cores_group,
    headline,
    reads_file,
)
from waywiser.curves.methods import is_cached, is_copy
from waywiser.machine import DECLARED, Machine, call_text
from waywiser.words import UNEVEN_EXCHANGE, Workload, format_settings, grouped, size_of
from waywiser.words.collective import FACTORS

LIBRARY_CALL = "waywiser.transfer.copy"
"""How the call of an executor begins with which the transfer library makes a copy."""

ORDER = (
    *(*GROUPS[:-1], ALL_CORES, BETWEEN_NODES, GROUPS[-1]),
    *(FILE_READ, *FAMILIES, *FACTORS, UNEVEN_EXCHANGE),
)
"""The groups in the order in which they are shown."""


SAME_PATHS = dict(zip(FAMILIES, ("H2D", "D2H", "local copy", "P2P"), strict=False))
"""The groups with the paths of the first families."""


@dataclass(frozen=True)
class HeadlineRow:
    """One group of headline paths: its first path, and all with a bandwidth at one size."""

    group: str
    first: Curve
    large: Point | None
    """The first path at the largest size that several processes measured, or at its largest size if
    none was; None if that is too small to show a bandwidth."""
    small: Point | None
    """The first path at its smallest size, if that shows the latency."""
    paths: tuple[Point, ...]
    """All paths of the group that have a bandwidth, at the largest size that they have in common,
    one that several processes measured if there is any, the slowest first; empty if there is only
    one such path, or no common size."""
    cached: bool
    """Whether a cache can hold the bytes of ``large``."""
    paths_cached: bool
    """Whether a cache can hold the bytes of ``paths``."""
    call: str
    """The call that makes the transfers, and the memory that it needs."""

    @property
    def at(self) -> str:
        """The size of ``large``: ``64 MiB``, ``64 MiB (cached)``; empty without one."""
        return _size(self.large, self.cached) if self.large is not None else ""

    @property
    def paths_at(self) -> str:
        """The size of ``paths``; empty without any."""
        return _size(self.paths[0], self.paths_cached) if self.paths else ""


def headline_groups(machine: Machine, workloads: Iterable[Workload]) -> dict[str, str]:
    """The group of each headline path among ``workloads``, by curve: reads of files too, and of a
    machine without GPUs copies by all cores."""
    known = list(workloads)
    found: dict[str, str] = {**headline(machine, known)}
    for workload in known:
        if of_cores := all_cores_group(workload, machine):
            found.setdefault(workload.curve, of_cores)
        if reads_file(workload, machine.traits):
            found.setdefault(workload.curve, FILE_READ)
    return found


def headline_rows(
    machine: Machine, curves: Sequence[Curve], *, library: bool = False
) -> list[HeadlineRow]:
    """Returns a row for each group that was measured, and for each file that was read. With
    ``library`` a row follows if the copies of `waywiser.transfer` are faster by `MATTERS`."""
    rows = []
    for (group, _), members in _members(machine, curves).items():
        row = _row(machine, group, members)
        if by_settings := _by_settings(row, curves):
            row = replace(row, call=f"{row.call}{by_settings}")
        rows.append(row)
        if library and (found := _by_library(machine, row, curves)) is not None:
            rows.append(_row(machine, group, [found]))
    return rows


def _by_library(machine: Machine, row: HeadlineRow, curves: Sequence[Curve]) -> Curve | None:
    """The fastest curve between the memories of a row that a call of the transfer library makes
    alone, if it is faster: at the largest size that both have, beyond both intervals. None if there
    is none. Copies over relays need other GPUs that are idle."""
    own = row.first.transfer
    if own is None or row.large is None:
        return None
    known = {point.bytes: point for point in row.first.rated}
    found: list[tuple[float, Curve]] = []
    for curve in curves:
        transfer = curve.transfer
        if transfer is None or transfer.layout or curve.workload.states:
            continue
        if transfer.path.ends != own.path.ends:
            continue
        is_relayed = DECLARED.executor(transfer.path.executor).route == "over relays"
        if is_relayed or not call_text([transfer], machine.traits).startswith(LIBRARY_CALL):
            continue
        common = [point for point in curve.rated if point.bytes in known]
        if common and (ratio := _faster(common[-1], known[common[-1].bytes])):
            found.append((ratio, curve))
    return max(found, key=lambda each: each[0])[1] if found else None


def _faster(point: Point, other: Point) -> float:
    """How many times as fast a series is as another one; 0 if that is not certain, or little."""
    ours, theirs = (each.estimate.rate if each.estimate else None for each in (point, other))
    if ours is None or theirs is None or ours.interval is None or theirs.interval is None:
        return 0.0
    ratio = ours.value / theirs.value
    is_certain = ours.interval.low > theirs.interval.high
    return ratio if is_certain and ratio >= 1 + MATTERS else 0.0


def headline_path_rows(machine: Machine, curves: Sequence[Curve]) -> list[HeadlineRow]:
    """Returns a row for each path that `headline_rows` is made of, by group."""
    found = _members(machine, curves)
    return [
        _row(machine, group, [curve]) for (group, _), members in found.items() for curve in members
    ]


def _members(machine: Machine, curves: Sequence[Curve]) -> dict[tuple[str, str], list[Curve]]:
    """The paths by group, and by file if they read one, in the order in which they are shown."""
    groups = headline_groups(machine, (curve.workload for curve in curves))
    members = grouped(
        ((groups[curve.text], _file(curve)), curve) for curve in curves if curve.text in groups
    )
    if not members:
        return _by_family(machine, curves)
    shown = {curve.family for own in members.values() for curve in own}
    others = [
        curve
        for curve in curves
        if curve.workload.kind == "collective"
        or (curve.family not in shown and _is_variant(machine, curve))
    ]
    members = _by_family(machine, others) | members
    ordered = sorted(members, key=lambda key: (ORDER.index(key[0]), key[1]))
    return {key: members[key] for key in ordered}


def _by_family(machine: Machine, curves: Sequence[Curve]) -> dict[tuple[str, str], list[Curve]]:
    """The fastest path of each family, by the name that a group of the same paths has."""
    return {
        (SAME_PATHS.get(family, family), ""): [curve]
        for family, curve in _of_families(machine, curves)
    }


def _is_variant(machine: Machine, curve: Curve) -> bool:
    """Whether a path with a GPU is one that people ask about first but for settings, as other
    tools' results have them, or for the state of the caches."""
    with_gpu = any(place.kind == "gpu" for place in curve.workload.places)
    return with_gpu and is_copy(curve) and _is_reference(machine, curve)


def _file(curve: Curve) -> str:
    """The file that a path reads: no two files are equivalent."""
    source = curve.transfer.path.source.place if curve.transfer is not None else None
    return str(source) if source is not None and source.kind == "file" else ""


def _row(machine: Machine, group: str, members: Sequence[Curve]) -> HeadlineRow:
    first = min(
        members,
        key=lambda curve: (not curve.rated, bool(curve.like), -len(curve.measured)),
    )
    large, small = first.plateau, first.measured[0]
    paths = tuple(_at_common_size(members))
    return HeadlineRow(
        group=group,
        first=first,
        large=large,
        small=small if 0 < small.bytes <= SMALL_BYTES else None,
        paths=paths,
        cached=large is not None and _is_cached(machine, first, large.bytes),
        paths_cached=bool(paths) and _is_cached(machine, first, paths[0].bytes),
        call=f"{call_text(first.workload.transfers, machine.traits)}{_on_bus(large)}",
    )


def _by_settings(row: HeadlineRow, curves: Sequence[Curve]) -> str:
    """``; 20.1 GB/s at 32 MiB by …`` of an exchange that other settings make faster, with these;
    empty for everything else."""
    if row.large is None or row.group != _family(row.first) or not _is_exchange(row.first):
        return ""
    (own,) = row.first.workload.transfers
    best, settings = row.large, own.parameters
    for curve in filter(_is_exchange, curves):
        (transfer,) = curve.workload.transfers
        known = curve.plateau
        if transfer.path == own.path and known is not None and known.rate > best.rate:
            best, settings = known, transfer.parameters
    if best.rate < (1 + MATTERS) * row.large.rate:
        return ""
    used = format_settings(settings).strip("[]") or "default settings"
    return f"; {best.rate_text} GB/s at {size_of(best.text)} by {used}"


def _is_exchange(curve: Curve) -> bool:
    found = curve.workload.transfers
    return len(found) == 1 and is_exchange(found[0])


def _on_bus(point: Point | None) -> str:
    """``; bus bandwidth 345 GB/s`` of a collective; empty for everything else."""
    return f"; bus bandwidth {point.bus_rate_text} GB/s" if point and point.bus_rate else ""


def _size(point: Point, cached: bool) -> str:
    return f"{size_of(point.text)}{' (cached)' if cached else ''}"


def _at_common_size(members: Sequence[Curve]) -> list[Point]:
    known = [points for curve in members if (points := curve.rated)]
    if len(known) < 2:
        return []
    for each in (list(map(_repeated, known)), known):
        if common := set.intersection(*({point.bytes for point in points} for points in each)):
            at = (point for points in each for point in points if point.bytes == max(common))
            return sorted(at, key=lambda point: point.rate)
    return []


def _repeated(points: Sequence[Point]) -> Sequence[Point]:
    """The sizes that several processes measured; all, if none was: one process may be disturbed."""
    return [point for point in points if len(point.measured.blocks) > 1] or points


def _is_cached(machine: Machine, curve: Curve, size: int) -> bool:
    """Whether caches can hold both sides of a copy, or the one that CPUs copy to or from staging
    memory."""
    if curve.transfer is None:
        return False
    ends = curve.transfer.path.ends
    if any(machine.traits.memory(end.kind).is_moved_by_cpus for end in ends):
        staged = {end.place.kind for end in ends} == {"numa", "gpu"}
        if staged and size <= machine.last_caches:
            return True
    return is_cached(*curve.transfer.path.places, size, machine.last_caches)


def _of_families(machine: Machine, curves: Sequence[Curve]) -> Iterator[tuple[str, Curve]]:
    """The fastest path of each family: of those that paths are compared by, if there are any, with
    the fewest settings."""
    families = grouped((_family(curve), curve) for curve in curves if curve.workload.transfers)
    for family, found in families.items():
        known = [curve for curve in found if _is_reference(machine, curve)] or found
        fewest = min(map(_settings, known))
        first = fastest(machine, [curve for curve in known if _settings(curve) == fewest])
        if first is not None:
            yield family, first


def _family(curve: Curve) -> str:
    """The family; of a collective what it does, as rates of different ones are not compared."""
    if curve.workload.kind != "collective":
        return curve.family
    (transfer,) = curve.workload.transfers
    known = transfer.collective in FACTORS or is_exchange(transfer)
    return transfer.collective if known else curve.family


def _settings(curve: Curve) -> int:
    return sum(len(transfer.parameters) for transfer in curve.workload.transfers)


def _is_reference(machine: Machine, curve: Curve) -> bool:
    """Whether executor and memories are those that paths are compared by, other than paths of
    unified memory."""
    if curve.transfer is None or curve.transfer.layout is not None:
        return False
    traits, path = machine.traits, curve.transfer.path
    classes = {traits.memory(end.kind).reference for end in path.ends}
    own = traits.executor(path.executor).reference
    return path.is_plain and classes == {own} and own not in ("", "unified")


def fastest(machine: Machine, curves: Sequence[Curve]) -> Curve | None:
    """Returns the curve with the highest bandwidth at the largest size that half of the curves
    have; a size that no cache holds comes before others. Returns None if none has a bandwidth."""
    at = grouped(
        ((not _is_cached(machine, curve, point.bytes), point.bytes), (point.rate, curve))
        for curve in curves
        for point in curve.measured
        if point.rate
    )
    if not at:
        return None
    uncached = [key for key in at if key[0]] or list(at)
    known = {id(curve) for key in uncached for _, curve in at[key]}
    shared = [key for key in uncached if 2 * len(at[key]) >= len(known)] or uncached
    return max(at[max(shared)], key=lambda each: each[0])[1]
