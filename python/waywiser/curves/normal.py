"""Headline paths beside those of other machines of their class (`waywiser.curves.normal_table`).

A path is *below* if even the upper end of its interval is less than `MARGIN` under the lowest value
of at least three named sources. It is *normal* if its interval is not below that, and not *above*
the highest value by as much. Everything else has no verdict, and says why. A range of other
machines is no baseline: no verdict changes whether a node passes a check.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from msgspec.structs import replace

from waywiser.curves.answer import Exhibit, Finding, device_at
from waywiser.curves.curve import Curve, Point, curves_of
from waywiser.curves.headline import Group, group_of
from waywiser.curves.headlines import headline_groups, headline_path_rows
from waywiser.curves.kinds import nearness_of
from waywiser.curves.normal_causes import causes_of
from waywiser.curves.normal_table import (
    C2C,
    LEAST_SOURCES,
    SENT,
    NormalRange,
    NormalValue,
    model_name,
    range_of_class,
    read_values,
    shipped_values,
    size_class,
    values_text,
)
from waywiser.curves.overview import overview
from waywiser.machine import Machine
from waywiser.machine.link_class import LinkClass, link_class
from waywiser.profile import Profile, SeriesFrame
from waywiser.stats import Interval, relative
from waywiser.version import __version__
from waywiser.words import (
    Place,
    Reason,
    Value,
    WaywiserError,
    Workload,
    count,
    format_rate,
    grouped,
    size_of,
)

MARGIN = 0.05
"""What is this much under the lowest value, or over the highest, is outside of the range: tools
differ in their sizes, in what they time, and in the digits that they print."""

NO_BASELINE = "A range of other machines is no baseline: it does not make a node fail."

BELOW = "below-normal"
"""The finding that headline paths are below the range of their class."""


class NormalPath(Value, frozen=True):
    """One headline path beside those of other machines."""

    path: str
    """The group of headline paths: ``H2D``."""
    name: str
    """``H2D, numa:0 -> gpu:0``."""
    workload: str
    """The text of its series, size included."""
    places: tuple[str, ...]
    gb_per_s: float
    interval: Interval | None
    """95 %, GB/s; None if the measurement has none."""
    link: str
    """The class of its link; empty if it is not known."""
    verdict: Reason
    why: str
    """Why it has no verdict; empty if it has one."""
    range: NormalRange | None = None

    @property
    def figure(self) -> str:
        """``49.81 GB/s at 64 MiB``."""
        width = relative(self.gb_per_s, self.interval, of_rate=True)
        at = f" at {size}" if (size := size_of(self.workload)) else ""
        return f"{format_rate(self.gb_per_s * 1e9, width)} GB/s{at}"

    @property
    def text(self) -> str:
        """``PCIe 4 x16: 24.7–28.4 (7 sources)`` after what is not normal; for a column that is
        named ``normal for``."""
        if self.range is None:
            return "link not known" if not self.link else ""
        if not self.range.decides:
            return f"{self.range}, no verdict"
        place = f"{self.verdict} " if self.verdict in ("below", "above") else ""
        return f"{place}{self.range}{self._undecided}"

    @property
    def brief(self) -> str:
        """``24.7–28.4``, ``above``, ``not decided``; empty if too few sources are known."""
        if self.range is None or not self.range.decides:
            return ""
        if not self.verdict:
            return "not decided"
        return self.range.figures if self.verdict == "normal" else self.verdict

    @property
    def verdict_text(self) -> str:
        """``normal for PCIe 4 x16: 24.7–28.4 (7 sources)``, ``below what is normal for …``; empty
        without a range."""
        if self.range is None:
            return ""
        place = f"{self.verdict} what is " if self.verdict in ("below", "above") else ""
        return f"{place}normal for {self.range}{self._undecided}"

    @property
    def _undecided(self) -> str:
        """What follows a range without a verdict."""
        if self.verdict or self.range is None:
            return ""
        return ", not decided" if self.range.decides else ", no verdict"


def normal_paths(
    machine: Machine,
    curves: Sequence[Curve],
    values: Iterable[NormalValue] | None = None,
) -> list[NormalPath]:
    """Returns each headline path with a GPU that has a bandwidth, beside the ``values``, by default
    those of this version."""
    known = shipped_values() if values is None else tuple(values)
    found = []
    for row in headline_path_rows(machine, curves):
        if row.large is not None and (group := _group(machine, row.large.workload)) is not None:
            found.append(_beside(machine, group, row.large, known))
    return found


def normal_paths_of(
    profile: Profile, values: Iterable[NormalValue] | None = None
) -> list[NormalPath]:
    """Returns the headline paths of a profile as `normal_paths` does, and reads only their series,
    if it has any. Raises `ProfileError` for a damaged file."""
    frame, machine = SeriesFrame.read(profile), profile.machine
    groups = headline_groups(machine, frame.workloads)
    if groups:
        frame = frame.only(lambda workload: workload.curve in groups)
    return normal_paths(machine, curves_of(overview(profile, frame=frame).series), values)


def _group(machine: Machine, workload: Workload) -> Group | None:
    """The group of headline paths that figures of other tools are compared with: settings of how
    the copy is called do not change the bandwidth of a link. None for another path, and for one
    without a GPU."""
    if not any(place.kind == "gpu" for place in workload.places):
        return None
    plain = tuple(replace(transfer, parameters={}) for transfer in workload.transfers)
    return group_of(replace(workload, transfers=plain, cache="warm"), machine.traits)


def _beside(
    machine: Machine, group: Group, point: Point, values: Sequence[NormalValue]
) -> NormalPath:
    workload = point.workload
    rate = point.measured.rate
    assert rate is not None
    link, why = _link(machine, workload)
    found = None
    if not why:
        found = range_of_class(values, link, group, _size(workload), _model(machine, workload))
        why = _why_not(found, rate.interval)
    verdict: Reason = ""
    if found is not None and not why:
        verdict, why = _verdict(found, rate.interval)
    return NormalPath(
        path=group,
        name=_name(group, workload),
        workload=point.text,
        places=tuple(map(str, workload.places)),
        gb_per_s=rate.value / 1e9,
        interval=_in_gb(rate.interval),
        link=link,
        verdict=verdict,
        why=why,
        range=found,
    )


def _link(machine: Machine, workload: Workload) -> tuple[str, str]:
    """The class of the link, and why there is no range of it."""
    if machine.untimed:
        return "", f"the machine is {'simulated' if machine.simulated else machine.untimed}"
    found: LinkClass = link_class(machine, workload)
    if found.unknown:
        return "", found.unknown
    if len({transfer.bytes for transfer in workload.copies}) > 1:
        return found.name, "its transfers have different sizes"
    is_of_host = any(place.kind == "numa" for place in workload.places)
    if is_of_host and any(nearness_of(t.path, machine) == "remote" for t in workload.copies):
        return found.name, "the host memory is on another NUMA node than the GPU"
    return found.name, ""


def _size(workload: Workload) -> str:
    return size_class(workload.copies[0].bytes)


def _model(machine: Machine, workload: Workload) -> str:
    """The model of its GPUs; empty if they are of several."""
    gpus = [machine.gpu(place.index) for place in workload.places if place.kind == "gpu"]
    names = {gpu.name for gpu in gpus if gpu is not None}
    return names.pop() if len(names) == 1 else ""


def _why_not(found: NormalRange | None, interval: Interval | None) -> str:
    if found is None:
        return "no source has this link, path and size"
    if not found.decides:
        of = " of this model" if found.link == C2C else ""
        return f"a verdict needs {LEAST_SOURCES} sources{of}"
    return "" if interval is not None else "the measurement has no interval"


def _verdict(found: NormalRange, interval: Interval | None) -> tuple[Reason, str]:
    assert interval is not None
    low, high = found.whole.low * 1e9 * (1 - MARGIN), found.whole.high * 1e9 * (1 + MARGIN)
    if interval.high < low:
        return "below", ""
    if interval.low > high:
        return "above", ""
    if interval.low < low or interval.high > high:
        return "", "its interval is too wide: it may be outside of the range"
    return "normal", ""


def _in_gb(interval: Interval | None) -> Interval | None:
    return None if interval is None else Interval(interval.low / 1e9, interval.high / 1e9)


def _name(group: Group, workload: Workload) -> str:
    """``H2D, numa:0 -> gpu:0``; of several transfers ``bidirectional, numa:0 <-> gpu:0``, or the
    group alone."""
    if len(workload.copies) > 2:
        return group
    source, destination = workload.copies[0].path.places
    if source == destination:
        return f"{group}, within {source}"
    return f"{group}, {source} {'->' if len(workload.copies) == 1 else '<->'} {destination}"


class NoNormalValues(WaywiserError):
    """A profile that gives no row for a table of values."""


def rows_text(profile: Profile, source: str) -> str:
    """The rows of a profile for a table of values; ``source`` is where others find it, empty for
    rows that are sent. Raises `NoNormalValues`, and what `read_values` raises for rows that are not
    in the form."""
    curves = curves_of(overview(profile).series)
    found = values_of(profile.machine, curves, source or SENT, profile.created[:7])
    if not found:
        raise NoNormalValues(
            "no headline path has a link that is known and an interval that is narrow enough",
            where=str(profile.path),
            remedy=f"waywiser check {profile.path} --all says of each path why",
        )
    text = values_text(found)
    read_values(text, "the rows")
    return text


def values_of(
    machine: Machine, curves: Sequence[Curve], source: str, date: str
) -> list[NormalValue]:
    """Returns the lowest and the highest bandwidth of each headline path whose link is known and
    whose interval is at most `MARGIN` wide, as rows of a table of values."""
    rows: list[NormalValue] = []
    by_class: dict[tuple[str, str, str], list[Point]] = {}
    for row in headline_path_rows(machine, curves):
        if row.large is None or (group := _group(machine, row.large.workload)) is None:
            continue
        link, why = _link(machine, row.large.workload)
        rate = row.large.measured.rate
        width = relative(rate.value, rate.interval) if rate is not None else None
        if not why and width is not None and 2 * width <= MARGIN:
            key = link, group, _model(machine, row.large.workload)
            by_class.setdefault(key, []).append(row.large)
    for (link, path, model), points in by_class.items():
        points.sort(key=lambda point: point.rate)
        ends = {(p.workload.copies[0].bytes, f"{p.rate:.4g}"): p for p in (points[0], points[-1])}
        rows += [
            NormalValue(
                link=link,
                path=path,
                bytes=size,
                gb_per_s=point.rate / 1e9,
                gpu=model_name(model),
                group="",
                is_inferred=False,
                source=source,
                date=date,
                tool=f"waywiser {__version__}",
                note="virtual machine" if machine.virtual else "",
            )
            for (size, _), point in ends.items()
        ]
    return rows


def below_findings(machine: Machine, paths: Iterable[NormalPath]) -> list[Finding]:
    """Returns a finding for each range that headline paths are below: these are named, the slowest
    first."""
    found = []
    below = [path for path in paths if path.verdict == "below"]
    for own in grouped(((str(path.range), path.path), path) for path in below).values():
        own.sort(key=lambda path: path.gb_per_s)
        first, known = own[0], own[0].range
        assert known is not None
        names = dict.fromkeys(place for path in own for place in path.places)
        gpus = [place for place in map(Place.parse, names) if place.kind == "gpu"]
        more = f" (and {count(len(own) - 1, 'more such path')})" if own[1:] else ""
        causes = [cause.name for cause in causes_of(first.link, first.path)]
        found.append(
            Finding(
                id=BELOW,
                severity="warning",
                statement=f"{first.name}{more} has {first.figure}, below what is normal for "
                f"{known}",
                effect=1 - first.gb_per_s / known.whole.low,
                devices=tuple(device_at(place, machine) for place in gpus),
                exhibits=tuple(
                    Exhibit(path.workload, "bandwidth", path.gb_per_s * 1e9, "B/s", _in_bytes(path))
                    for path in own
                ),
                detail=NO_BASELINE,
                remedy=f"check the known causes ({', '.join(causes)}): waywiser check FILE has "
                "the command for each",
            )
        )
    return found


def _in_bytes(path: NormalPath) -> Interval | None:
    own = path.interval
    return None if own is None else Interval(own.low * 1e9, own.high * 1e9)


def verdicts_text(paths: Sequence[NormalPath]) -> str:
    """``12 of 14 headline paths have a verdict: 11 normal, 1 below``; empty without a path."""
    if not paths:
        return ""
    verdicts = Counter(path.verdict for path in paths)
    known = {name: verdicts[name] for name in ("normal", "below") if verdicts[name]}
    if not known:
        return f"none of {count(len(paths), 'headline path')} has a verdict"
    total = sum(known.values())
    each = ", ".join(f"{number} {name}" for name, number in known.items())
    have = "has" if total == 1 else "have"
    return f"{total} of {count(len(paths), 'headline path')} {have} a verdict: {each}"


def path_document(path: NormalPath) -> dict[str, Any]:
    """The JSON form of a headline path beside those of other machines."""
    is_below = path.verdict == "below"
    return {
        "path": path.path,
        "workload": path.workload,
        "gb_per_s": path.gb_per_s,
        "interval": path.interval,
        "link": path.link,
        "verdict": path.verdict,
        "why": path.why,
        "range": None if path.range is None else range_document(path.range),
        "causes": causes_of(path.link, path.path) if is_below else [],
    }


def range_document(found: NormalRange) -> dict[str, Any]:
    """The JSON form of a range of other machines."""
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
