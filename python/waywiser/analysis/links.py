"""Twins that differ, told by link: what several kinds of transfer say of one is one finding."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from waywiser.analysis.answer import Exhibit, Finding
from waywiser.analysis.grouped import exhibit, percent
from waywiser.analysis.subject import Subject
from waywiser.analysis.twins import Twin
from waywiser.severity import Severity
from waywiser.words import Path, Place, format_bytes

BROKEN = 0.20
"""A link that is slower by this has lost lanes or a generation, or goes another way."""

EXPLAINING = ("slow link", "throttled")
"""Kinds of doubt that are a reason for a link to be slow."""

STAGED = ("peer off", "no peer access", "through the host")
"""Kinds of link between two GPUs that are none: bytes go by the host's memory."""

SPEAK = 4
"""Exhibits of one finding, at most of so many kinds of transfer."""


class Link(NamedTuple):
    """Something that several kinds of transfer go through."""

    name: str
    """``gpu:3's link to the host``."""
    places: tuple[Place, ...]


def path_of(twin: Twin) -> Path:
    """The path of its only transfer."""
    return twin.point.workload.transfers[0].path


def ends(twin: Twin) -> str:
    """``gpu:0``, ``gpu:0 → gpu:1``: the places that tell it from its twins."""
    source, destination = path_of(twin).places
    if source == destination:
        return str(source)
    return f"{source} → {destination}"


def findings(subject: Subject, twins: Sequence[Twin]) -> Iterator[Finding]:
    """Slow links, then odd paths that are faster than the rest."""
    by_link: dict[Link, list[Twin]] = {}
    slow = [twin for twin in twins if twin.verdict == "more"]
    for twin in slow:
        by_link.setdefault(_link(twin, slow, twins), []).append(twin)
    for link, members in by_link.items():
        yield _slow(subject, link, members)
    fast = [twin for twin in twins if twin.verdict == "less" and twin.twins > 2]
    if fast:
        yield _fast(subject, fast)


def common_gpu(twins: Sequence[Twin]) -> int | None:
    """The GPU that is at an end of all of them; None where there is none."""
    common: set[int] | None = None
    for twin in twins:
        own = {place.index for place in _gpus(twin)}
        common = own if common is None else common & own
    return min(common) if common else None


def _gpus(twin: Twin) -> list[Place]:
    return [place for place in path_of(twin).places if place.kind == "gpu"]


def _link(twin: Twin, slow: Sequence[Twin], twins: Sequence[Twin]) -> Link:
    path = path_of(twin)
    source, destination = path.places
    if twin.kind.group == "within a GPU":
        return Link(f"{source}'s memory", (source,))
    if twin.kind.group == "host-GPU":
        gpu = _gpus(twin)[0]
        return Link(f"{gpu}'s link to the host", (gpu,))
    if twin.kind.link in STAGED:
        return Link(f"the way from {source} to {destination} by the host", (source, destination))
    if twin.kind.group == "GPU-GPU":
        for place in (source, destination):
            if _mostly(place, slow, twins):
                return Link(f"{place}'s link to its peers", (place,))
        first, second = sorted((source, destination), key=lambda place: place.index)
        return Link(f"the link between {first} and {second}", (first, second))
    return Link(f"the way from {source} to {destination}", tuple({source: 0, destination: 0}))


def _mostly(place: Place, slow: Sequence[Twin], twins: Sequence[Twin]) -> bool:
    """Whether most of the ways out of a GPU, or most into it, are slow: at least two."""

    def ways(found: Sequence[Twin], end: int) -> int:
        between = [
            twin for twin in found if twin.kind.group == "GPU-GPU" and twin.kind.link not in STAGED
        ]
        paths = [path_of(twin) for twin in between]
        return sum((path.source, path.destination)[end].place == place for path in paths)

    return any(ways(slow, end) >= max(2, ways(twins, end) / 2) for end in (0, 1))


def _slow(subject: Subject, link: Link, members: Sequence[Twin]) -> Finding:
    head = _clearest(members)
    much = percent(head.effect, head.effect_interval)
    severity: Severity = "error" if head.effect >= BROKEN else "warning"
    others = _others(members, head)
    whom = "its twin's" if head.twins == 2 else f"those of its {head.twins - 1} twins"
    return Finding(
        id="slow-link",
        severity=severity,
        statement=f"{link.name} is slow: {head.kind} takes {much} longer than {whom} "
        f"({_way(head)}, {_sizes(head)}){others}{_seen(members)}",
        effect=head.effect,
        interval=head.effect_interval,
        devices=tuple(subject.device(place) for place in link.places),
        exhibits=tuple(_exhibits(members)),
        remedy="compare its slot, riser, cables, link state (nvidia-smi -q) and health counters "
        "with its twins'; measure again alone: waywiser survey --preset full "
        f"--only '{head.curve}' --only '{head.others.line.curve}'",
    )


def _seen(members: Sequence[Twin]) -> str:
    """What was seen of the GPU while it was measured that would explain it."""
    doubts = [doubt for twin in members for doubt in twin.point.estimate.doubts]
    told = {doubt.what: 0 for doubt in doubts if doubt.kind in EXPLAINING}
    return f"; {', '.join(told)}" if told else ""


def _clearest(members: Sequence[Twin]) -> Twin:
    """The one whose interval is narrowest: the least noisy witness."""

    def width(twin: Twin) -> float:
        return twin.interval.width if twin.interval is not None else float("inf")

    return min(members, key=lambda twin: (width(twin), -twin.effect))


def _way(twin: Twin) -> str:
    return f"{path_of(twin).source.place} to {path_of(twin).destination.place}"


def _sizes(twin: Twin) -> str:
    low, high = format_bytes(twin.sizes[0]), format_bytes(twin.sizes[-1])
    return low if low == high else f"{low} to {high}"


def _others(members: Sequence[Twin], head: Twin) -> str:
    """What else says so, by direction."""
    rest = [twin for twin in members if twin is not head]
    if not rest:
        return ""
    effects = sorted(twin.effect for twin in rest)
    span = percent(effects[0])
    if len(effects) > 1 and percent(effects[-1]) != span:
        span = f"{span.removesuffix(' %')} to {percent(effects[-1])}"
    return (
        f"; so do {len(rest)} more, by {span}" if len(rest) > 1 else f"; so does 1 more, by {span}"
    )


def _exhibits(members: Sequence[Twin]) -> Iterator[Exhibit]:
    for twin in sorted(members, key=lambda each: -each.effect)[:SPEAK]:
        yield exhibit(twin.point)
        yield exhibit(twin.others)
        yield Exhibit(
            twin.point.line.workload,
            "time over that of its twins",
            1 + twin.effect,
            "ratio",
            twin.interval,
        )


def _fast(subject: Subject, members: Sequence[Twin]) -> Finding:
    """One for all: a path that is better than it ought to be breaks nothing."""
    head = min(members, key=lambda twin: twin.effect)
    ratio = 1 / (1 + head.effect) - 1
    places = {str(place): place for twin in members for place in _gpus(twin)}
    named = ", ".join(sorted({ends(twin) for twin in members})[:SPEAK])
    return Finding(
        id="fast-link",
        severity="info",
        statement=f"{len(members)} paths are faster than their twins, most of all {head.curve}: "
        f"they take {percent(ratio)} longer ({named})",
        effect=ratio,
        devices=tuple(subject.device(place) for place in places.values()),
        exhibits=tuple(_exhibits([head])),
        remedy="see what the others lack: the twins may not be as equal as the topology says",
    )


def uneven(subject: Subject, classes: Sequence[Sequence[Twin]]) -> Iterator[Finding]:
    """Classes that fall apart into groups, one finding for all of them."""
    if not classes:
        return
    head = max(classes, key=lambda twins: max(twin.effect for twin in twins))
    slow = [twin for twin in head if twin.verdict == "more"]
    most = max(slow, key=lambda twin: twin.effect)
    gpus = sorted({place.index for twin in slow for place in _gpus(twin)})
    sides = subject.overview.sides
    along = sides is not None and any(set(gpus) == set(group) for group in sides.groups)
    why = "; they are one hidden side of the machine" if along else ""
    kinds = ", ".join(str(twins[0].kind) for twins in classes[:SPEAK])
    yield Finding(
        id="uneven-twins",
        severity="info" if along else "warning",
        statement=f"paths that ought to be equal fall into groups ({kinds}): {len(slow)} of "
        f"{len(head)} by up to {percent(most.effect, most.effect_interval)} slower, with "
        f"{', '.join(f'gpu:{gpu}' for gpu in gpus) or ends(most)}{why}",
        effect=most.effect,
        interval=most.effect_interval,
        devices=tuple(subject.device(Place("gpu", gpu)) for gpu in gpus),
        exhibits=tuple(_exhibits(slow)),
        remedy="keep a GPU's buffers on its own side"
        if along
        else "the machine is less even than its topology says: look for switches, sockets or "
        "slots that the groups share",
    )
