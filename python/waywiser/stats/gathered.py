"""What is gathered series by series of a profile: by this process, or by several side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise

import msgspec

from waywiser import children
from waywiser.plan.name import label_of
from waywiser.profile import Profile
from waywiser.profile.profile import is_finished
from waywiser.records import Series
from waywiser.stats.line import Line, line_of
from waywiser.stats.locality import Sides
from waywiser.stats.nearness import Nearness, near_and_far, nearness
from waywiser.stats.reasons import Reasons
from waywiser.stats.told import ToldSeries, told_in
from waywiser.topology.machine import Machine
from waywiser.words import Workload

LEAST_SERIES = 500
"""For a process more: they take it about a tenth of a second."""


class Gathered(msgspec.Struct):
    """Of series in their order."""

    lines: list[Line] = msgspec.field(default_factory=list)
    visits: int = 0
    """That are not to be measured again."""
    nearness: dict[str, dict[int, Nearness]] = msgspec.field(default_factory=dict)
    """By series and block, as far as known."""
    reasons: Reasons = msgspec.field(default_factory=Reasons)

    def join(self, further: Gathered) -> None:
        """With what was gathered of the series that follow."""
        self.lines += further.lines
        self.visits += further.visits
        self.nearness.update(further.nearness)
        self.reasons.join(further.reasons)


def gather(
    series: Iterable[ToldSeries], machine: Machine, first: Mapping[str, str], sides: Sides | None
) -> Gathered:
    """``first`` gives for each curve the first of its class."""
    found = Gathered()
    for told in series:
        line = line_of(told, machine, first)
        found.lines.append(line)
        found.visits += sum(map(is_finished, told.series.visits))
        found.reasons.add(told, line, machine)
        if known := _nearness(told.series, line, sides, found.reasons):
            found.nearness[line.identity] = known
    return found


def gather_in(
    profile: Profile,
    workloads: Sequence[Workload],
    machine: Machine,
    first: Mapping[str, str],
    sides: Sides | None,
) -> Gathered:
    """Of those workloads of a profile. Raises `ProfileError` for a damaged file."""

    def part(opened: Profile, some: Sequence[Workload]) -> Gathered:
        return gather(told_in(opened, some), machine, first, sides)

    def encoded(some: Sequence[Workload]) -> bytes:
        with Profile.open(profile.path) as own:
            return msgspec.msgpack.encode(part(own, some))

    parts = list(_parts(workloads))
    if len(parts) == 1:
        return part(profile, workloads)
    jobs: list[Callable[[], bytes]] = [partial(encoded, some) for some in parts]
    together = Gathered()
    for some, found in zip(parts, children.side_by_side(jobs), strict=True):
        together.join(part(profile, some) if found is None else _DECODER.decode(found))
    return together


_DECODER = msgspec.msgpack.Decoder(Gathered)


def _parts(workloads: Sequence[Workload]) -> Iterator[Sequence[Workload]]:
    """In as many as processes are worth while, of about equal length."""
    count = max(1, min(children.useful(), len(workloads) // LEAST_SERIES))
    bounds = [len(workloads) * n // count for n in range(count + 1)]
    return (workloads[low:high] for low, high in pairwise(bounds))


def _nearness(
    series: Series, line: Line, sides: Sides | None, reasons: Reasons
) -> dict[int, Nearness]:
    """By block, as far as known; notes where it matters on which side the memory was."""
    if sides is None:
        return {}
    known: dict[int, Nearness] = {visit.block: nearness(visit, sides) for visit in series.visits}
    if line.estimate and (note := near_and_far(known, line.estimate.blocks)):
        reasons.note(note, label_of(series.workload))
    return {block: where for block, where in known.items() if where}
