"""The measured methods of each kind of copy that the transfer library can use, with their times.

Times are from call to completion. Their intervals include the noise between processes: that of the
curve, or of all curves of the class if they show the same noise (`waywiser.stats.noise_model`).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

from waywiser.analysis.policy.decision_table import CopyKind, Method
from waywiser.analysis.policy.table import Relation
from waywiser.curves import Curve, Point, Subject, percent
from waywiser.curves.methods import is_copy
from waywiser.machine import DECLARED, Machine, task_settings
from waywiser.machine.ranks import OF_TASK, kind_alone, measurement
from waywiser.profile import Estimate
from waywiser.profile.planned import TUNING
from waywiser.stats import (
    CONFIDENCE,
    Interval,
    Surveys,
    Timed,
    Variance,
    averaged,
    median,
    median_share,
    process_variance,
    share_beside_surveys,
    shared,
    student_quantile,
    survey_variance,
)
from waywiser.stats.level_shift import returned
from waywiser.stats.method_choice import UNKNOWN, winner
from waywiser.words import (
    RATE_BYTES,
    Layout,
    Memory,
    Transfer,
    format_bytes,
    format_settings,
    grouped,
    whole_number,
)

LARGE = 2**20
"""Size from which noise is that of bandwidths; smaller sizes have the noise of latencies."""

_CLASSES = ("host", "gpu", "file")
"""Memories of which policies have classes: those that paths of these classes are compared by."""

_PEER = "peer"
"""The parameter with which a survey switches peer access off: a relation in policies."""

MESSAGES = (
    "messages between two ranks were measured, and no copies within one process: the places are "
    "those of the ranks, which may be on two nodes"
)
"""What advice says that rests on messages alone. They are compared with no copies."""

SURVEYED_MESSAGES = (
    "messages between two ranks of this machine were measured, and no copies within one process"
)
"""The same of a survey, whose ranks are on one node."""

MOST_NAMED = 3
"""Pairs of places that are not used, each with a note."""

RELAYS = "relays"
"""The parameter that names relays in a survey, and has their number in a policy."""

_CHUNK, _NUMBER = (4096, 64 * 2**20, 4096), (1, 2**16, 1)
_BOUNDS = {"chunk": _CHUNK, "block": _CHUNK, "slots": (1, 16, 1), "threads": _NUMBER,
           "depth": _NUMBER, "blocks": _NUMBER}  # fmt: skip
"""The least and the largest value of settings, and their step. A policy with another value is
damage for the library."""

_MOST_HALF = math.log1p(UNKNOWN) / 2
"""Half of the logarithm by which two times differ that are different whatever the noise is."""


class MeasuredTime(NamedTuple):
    """One size of a candidate."""

    timed: Timed
    """The time with the interval that methods are compared by."""
    interval: Interval
    """The 95 % interval of what was measured, which one odd process widens."""
    series: str
    transfer: Transfer
    processes: int


class Candidate(NamedTuple):
    """A method with its times over sizes: of one copy, or of lists of pieces of one size."""

    method: Method
    piece: int
    """Bytes of a piece; 0 for one copy."""
    times: Mapping[int, MeasuredTime]
    """The times by all bytes, ascending."""


class Candidates(NamedTuple):
    """The candidates of one kind of copy, at the pair of places that the decision is made of."""

    kind: CopyKind
    threads: int
    candidates: tuple[Candidate, ...]
    paths: tuple[str, ...]
    """The pairs of places that are equivalent to it, itself first."""
    notes: tuple[str, ...]
    machine: Machine
    of_tools: bool = False
    """Whether methods of other tools count."""


class _Found(NamedTuple):
    """A measured point of a method, in one of the profiles."""

    method: Method
    piece: int
    point: Point
    curve: str
    representative: str
    of_ranks: bool
    """Whether it is a message between ranks."""
    task: str
    """The settings that say in which test of a benchmark it was measured, which are no part of the
    method."""
    is_one_alone: bool
    """Whether that test times one copy alone."""

    @property
    def rank(self) -> tuple[bool, bool]:
        """The order in which tests of one method count: first one copy alone, without others."""
        return not self.is_one_alone, bool(self.task)


class _Pair(NamedTuple):
    text: str
    found: list[_Found]

    @property
    def representatives(self) -> set[str]:
        return {each.representative for each in self.found}

    @property
    def methods(self) -> set[tuple[Method, int]]:
        return {(each.method, each.piece) for each in self.found}


def threads_of(machine: Machine) -> int:
    """CPUs of the machine that a survey could use; 1 if that is not known."""
    return max(1, sum(len(node.cpus) for node in machine.numa))


def candidates(
    subjects: Sequence[Subject],
    places: str = "",
    *,
    kind: CopyKind | None = None,
    of_tools: bool = False,
) -> Iterator[Candidates]:
    """Yields the methods of each kind of copy, or of one kind, for each number of threads.
    ``places`` is the pair to decide of, ``numa:1 -> gpu:0``; by default the pair that was measured
    most. With ``of_tools`` the methods of other tools count in imported profiles, with whatever
    settings these had, and messages in surveys of ranks."""
    by_threads = grouped((threads_of(each.machine), each) for each in subjects)
    for threads, same in sorted(by_threads.items()):
        kinds = grouped(chain.from_iterable(_found(each, kind, of_tools) for each in same))
        for own in sorted(kinds, key=str):
            if kind not in (None, own):
                continue
            measured = kinds[own]
            if own.host_contiguous:  # copies of one piece help to estimate short lists
                others = kinds.get(own.of_class, [])
                measured = [*measured, *(each for each in others if not each[1].piece)]
            copies = [(text, each) for text, each in measured if not each.of_ranks]
            known = grouped(copies or measured)
            pairs = [_Pair(text, found) for text, found in known.items()]
            found = _of_kind(own, threads, pairs, same[0].machine, places)
            imported = any(map(_has_others, same))
            of_survey = all(each.machine.ranks for each in same)
            messages = SURVEYED_MESSAGES if of_survey else MESSAGES
            notes = found.notes if copies else (messages, *found.notes)
            yield found._replace(of_tools=of_tools and imported, notes=notes)


def kind_of(
    source: Memory,
    destination: Memory,
    machine: Machine,
    *,
    peer: bool = True,
    layout: Layout | None = None,
) -> CopyKind | None:
    """The kind of copies between two memories; None if policies have no such class. Of the layouts
    only lists that are contiguous in host memory are a kind of their own."""
    traits = machine.traits
    for memory in (source, destination):
        if memory.variant or traits.memory(memory.kind).reference not in _CLASSES:
            return None
    relation = _relation(source, destination, machine, peer)
    contiguous = layout is not None and is_host_contiguous(source, destination, layout)
    return CopyKind(source.kind, destination.kind, relation, host_contiguous=contiguous)


def is_host_contiguous(source: Memory, destination: Memory, layout: Layout) -> bool:
    """Whether a layout is a list that is contiguous in host memory and scattered on a GPU."""
    on_gpu, on_host = {
        "source": (source, destination),
        "destination": (destination, source),
        "": (source, source),
    }[layout.scattered]
    return on_gpu.place.kind == "gpu" and on_host.place.kind == "numa"


def _relation(source: Memory, destination: Memory, machine: Machine, peer: bool) -> Relation:
    one, other = source.place, destination.place
    if one.kind != "gpu" or other.kind != "gpu":
        return ""
    if one == other:
        return "same"
    gpus = machine.gpu(one.index), machine.gpu(other.index)
    access = all(
        gpu is not None and place.index in gpu.peers
        for gpu, place in zip(gpus, (other, one), strict=True)
    )
    return "peers" if access and peer else "no-peers"


def _found(
    subject: Subject, only: CopyKind | None, of_tools: bool
) -> Iterator[tuple[CopyKind, tuple[str, _Found]]]:
    """(kind, (pair of places, measured point)) of all methods that count, of one kind or of all."""
    reported = _reported_blocks(subject)
    of_tools = of_tools and _has_others(subject)
    for curve in (*subject.decidable.curves, *subject.alone):
        transfer = curve.transfer
        if transfer is None or (subject.machine.ranks and measurement(transfer)):
            continue
        path = transfer.path
        peer = transfer.parameters.get(_PEER) != "off"
        source, destination = map(kind_alone, path.ends) if of_tools else path.ends
        kind = kind_of(source, destination, subject.machine, peer=peer, layout=transfer.layout)
        if kind is None or (only is not None and kind not in (only, only.of_class)):
            continue
        if not _counts(curve, transfer, kind, of_tools=of_tools):
            continue
        settings = {n: v for n, v in transfer.parameters.items() if n not in (_PEER, *OF_TASK)}
        task = format_settings(task_settings(transfer)).strip("[]")
        if of_tools:
            settings |= _of_tool(curve, kind, kind_of(source, destination, subject.machine))
        method = Method(path.executor, settings)
        text = " -> ".join(map(str, path.places))
        piece = transfer.layout.run if transfer.layout is not None else 0
        of_ranks = DECLARED.is_between_ranks(path)
        for point in curve.measured:
            if point.bytes >= 2 * piece and _is_reported(transfer, point, reported):
                found = _Found(method, piece, point, curve.text, curve.representative, of_ranks,
                               task, not measurement(transfer))  # fmt: skip
                yield kind, (text, found)


def _has_others(subject: Subject) -> bool:
    """Whether a profile has methods that are not the library's, which count if those are selected:
    those of other tools, and messages of surveyed ranks."""
    return subject.origin == "imported" or bool(subject.machine.ranks)


def _counts(curve: Curve, transfer: Transfer, kind: CopyKind, *, of_tools: bool) -> bool:
    """Whether a curve is a method of the transfer library or, if those count, of another tool."""
    if of_tools and transfer.layout is None:
        return is_copy(curve)
    return curve.workload.cache == "warm" and _is_in_library(transfer, kind)


def _of_tool(curve: Curve, kind: CopyKind, with_peers: CopyKind | None) -> dict[str, str]:
    """What distinguishes methods of other tools beside their settings: the state of the caches, and
    peer access that is off where the kind of copy does not say so."""
    parameters = curve.first_transfer.parameters
    found: dict[str, str] = {}
    if curve.workload.cache != "warm":
        found["cache"] = curve.workload.cache
    if _PEER in parameters and kind == with_peers:
        found[_PEER] = parameters[_PEER]
    return found


def is_of_library(method: Method, ends: Iterable[Memory], count: int = 1) -> bool:
    """Whether the transfer library copies so many pieces between two memories by a method, and not
    only another tool."""
    executor = DECLARED.executor(method.executor)
    library = executor.library
    on_gpu = any(end.place.kind == "gpu" for end in ends)
    if executor.reference == "host" and on_gpu:
        return False
    known = (name in library.settings for name in method.settings)
    return all(known) and (library.lists if count > 1 else library.contiguous)


_Reported = Mapping[tuple[str, str, int], int]
"""The last process that measured any settings of a path, a layout and a size in a tuning."""


def _reported_blocks(subject: Subject) -> tuple[int, _Reported]:
    """Returns the first process of the latest tuning of a profile, and the last one for each path.
    That measured the winner and the defaults again. A time of the search alone is biased, because
    it was looked at as the best of many; so it is no evidence for a method."""
    note = subject.environment.get(TUNING)
    first = note.get("first_block") if isinstance(note, dict) else None
    last: dict[tuple[str, str, int], int] = {}
    if not isinstance(first, int):
        return 0, last
    for curve in subject.curves:
        transfer = curve.transfer
        if transfer is None:
            continue
        for point in curve.measured:
            key = _target(transfer, point)
            tuned = [block.block for block in point.measured.blocks if block.block >= first]
            last[key] = max((last.get(key, first), *tuned))
    return first, last


def _target(transfer: Transfer, point: Point) -> tuple[str, str, int]:
    return str(transfer.path), str(transfer.layout), point.bytes


def _is_reported(transfer: Transfer, point: Point, tuning: tuple[int, _Reported]) -> bool:
    """Whether a survey measured it, or a tuning reported it."""
    first, last = tuning
    if not last:
        return True
    blocks = [block.block for block in point.measured.blocks]
    return min(blocks) < first or last[_target(transfer, point)] in blocks


def _is_in_library(transfer: Transfer, kind: CopyKind) -> bool:
    """Whether the transfer library of this version can do it in this way, or moves lists by this
    executor, of which a copy of one piece shows the cost."""
    executor = DECLARED.executor(transfer.path.executor)
    library, layout = executor.library, transfer.layout
    if not all(
        name == _PEER or (name in library.settings and is_bounded(name, value))
        for name, value in transfer.parameters.items()
    ):
        return False
    places = {place.kind for place in transfer.path.places}
    if executor.reference == "gpu" and "gpu" not in places:
        return False
    if layout is None:
        return library.contiguous or library.lists
    sides = {"scattered"} if kind.host_contiguous else set()
    plain = layout.settings.keys() == {"piece"} | sides
    # No survey measures the library's lists of other memory, which go through staging memory.
    reached = all(DECLARED.memory(each.kind).is_reached_by_gpus for each in transfer.path.ends)
    return library.lists and layout.kind == "list" and plain and reached and not kind.peers_idle


def is_bounded(name: str, value: str) -> bool:
    """Whether the library takes the value of a setting (docs/policy.md)."""
    least, most, step = _BOUNDS.get(name, (0, 0, 0))
    if not step:
        return True
    number = whole_number(value, most)
    return number is not None and least <= number and number % step == 0


def needs_idle_peers(method: Method) -> bool:
    """Whether a method uses the links of other GPUs."""
    return DECLARED.executor(method.executor).route == "over relays"


def _of_kind(
    kind: CopyKind, threads: int, pairs: list[_Pair], machine: Machine, places: str
) -> Candidates:
    """Takes the pair of places that was measured most; of its equivalents a clearly slower one, or
    ``places`` if that clearly differs."""
    pairs.sort(key=lambda pair: -len(pair.found))
    groups: list[list[_Pair]] = []
    for pair in pairs:
        matching = (g for g in groups if any(pair.representatives & e.representatives for e in g))
        if (group := next(matching, None)) is None:
            groups.append(group := [])
        group.append(pair)
    groups.sort(key=lambda group: all(pair.text != places for pair in group))
    base, *others = groups[0]
    times = {pair.text: _times(pair.found) for pair in groups[0]}
    requested = next((pair for pair in groups[0] if pair.text == places), None)
    used, notes = _compared(base, others, requested, times)
    found = times[used.text]
    if requested and used is base is not requested and requested.methods >= base.methods:
        used, found = requested, _with_own(times[base.text], times[requested.text])
        if found != times[requested.text]:
            notes.append(f"sizes that {places} lacks are those of its equivalent {base.text}")
    notes += _not_used(base.text, [group[0].text for group in groups[1:]])
    notes += _tests(used)
    chosen = [used, *(pair for pair in (base, *others) if pair is not used)]
    paths = tuple(pair.text for pair in chosen)
    return Candidates(kind, threads, tuple(found), paths, tuple(notes), machine)


def _not_used(base: str, others: Sequence[str]) -> list[str]:
    """What is said of pairs of places that are not equivalent."""
    if len(others) <= MOST_NAMED:
        return [f"{each} is not equivalent to {base}, and is not used" for each in others]
    more = f"{len(others) - MOST_NAMED + 1} more"
    named = ", ".join(others[: MOST_NAMED - 1])
    return [f"{named} and {more} are not equivalent to {base}, and are not used"]


def _compared(
    base: _Pair,
    others: Sequence[_Pair],
    requested: _Pair | None,
    times: Mapping[str, list[Candidate]],
) -> tuple[_Pair, list[str]]:
    """The pair of places whose times are used, and what is said of clear differences: of all pairs
    the slowest, or the one that is ``requested``."""
    used, notes = base, list[str]()
    for other in (pair for pair in others if requested in (None, pair)):
        slow, fast = other, used
        by = _slower_by(times[used.text], times[other.text])
        if not by and (requested or not notes):
            slow, fast = used, other
            by = _slower_by(times[other.text], times[used.text])
        if not by:
            continue
        why = ""
        if other is slow or requested:
            enough = other.methods >= base.methods
            used = other if enough else used
            why = "" if enough else f", since too few methods of {other.text} were measured"
        notes.append(f"{slow.text} {by} than {fast.text}: the times of {used.text} are used{why}")
    return used, notes


def _with_own(base: Sequence[Candidate], own: Sequence[Candidate]) -> list[Candidate]:
    """The candidates of an equivalent pair of places, with a pair's own times at the sizes that it
    has."""
    known = {(each.method, each.piece): each.times for each in own}
    return [
        each._replace(times=dict(sorted({**each.times, **known[each.method, each.piece]}.items())))
        for each in base
    ]


def _slower_by(base: Sequence[Candidate], other: Sequence[Candidate]) -> str:
    """``has 46 % less bandwidth``, ``takes 8.1 % longer below 64 KiB``: by how much the other pair
    of places is slower, the median of all that both have; empty if it is not clearly slower at most
    sizes of bandwidth, or at most others."""
    known = {(each.method, each.piece): each.times for each in base}
    ratios: dict[bool, list[float]] = {True: [], False: []}
    slower = Counter[bool]()
    for each in other:
        for size, time in each.times.items():
            own = known.get((each.method, each.piece), {}).get(size)
            if own is not None:
                ratios[size >= RATE_BYTES].append(time.timed.seconds / own.timed.seconds)
                slower[size >= RATE_BYTES] += winner(own.timed, time.timed) == "first"
    for of_bandwidth, found in ratios.items():
        if 2 * slower[of_bandwidth] > len(found) and (ratio := median(found)) > 1:
            if of_bandwidth:
                return f"has {percent(1 - 1 / ratio)} less bandwidth"
            return f"takes {percent(ratio - 1)} longer below {format_bytes(RATE_BYTES)}"
    return ""


def _times(found: Sequence[_Found]) -> list[Candidate]:
    """The candidates of one pair of places."""
    chosen = _counted(found)
    noise = _Noise(chosen.values())
    return [
        Candidate(
            method,
            piece,
            {size: _time(by_size[size], noise.of(by_size, size)) for size in sorted(by_size)},
        )
        for (method, piece), by_size in chosen.items()
    ]


_BySize = Mapping[int, Sequence[_Found]]


def _counted(found: Sequence[_Found]) -> dict[tuple[Method, int], _BySize]:
    """Returns the times that count for each method.

    Several curves can be one method for the library, as relays are: the one with most sizes counts.
    Of several tests of a benchmark, one copy alone counts, and another test at sizes beyond it.
    """
    curves: dict[tuple[Method, int], dict[str, dict[int, list[_Found]]]] = {}
    for each in found:
        by_curve = curves.setdefault((each.method, each.piece), {})
        by_curve.setdefault(each.curve, {}).setdefault(each.point.bytes, []).append(each)
    counted: dict[tuple[Method, int], _BySize] = {}
    for key, by_curve in curves.items():
        by_task = grouped((next(iter(own.values()))[0].rank, own) for own in by_curve.values())
        sizes: dict[int, Sequence[_Found]] = {}
        for _, same in sorted(by_task.items()):
            low, high = min(sizes, default=0), max(sizes, default=-1)
            own = max(same, key=len)
            sizes |= {size: at for size, at in own.items() if not low <= size <= high}
        counted[key] = sizes
    return counted


def _tests(pair: _Pair) -> Iterator[str]:
    """The notes about times that are not those of one copy alone."""
    for (method, _), by_size in _counted(pair.found).items():
        tasks = grouped((at[0].task, size) for size, at in by_size.items() if at[0].task)
        for task, sizes in tasks.items():
            span = format_bytes(min(sizes))
            if len(sizes) > 1:
                span += f" to {format_bytes(max(sizes))}"
            where = f" at {span}" if len(sizes) < len(by_size) else ""
            yield f"the times of {method}{where} are those of {task}"


class _Noise:
    """The variance between processes and between surveys of curves, below `LARGE` and above."""

    def __init__(self, curves: Iterable[_BySize]) -> None:
        self._own: dict[tuple[int, bool], Variance] = {}
        surveys: list[Surveys] = []
        for curve in curves:
            sides = {size: _surveys(points) for size, points in curve.items()}
            surveys += sides.values()
            by_regime = grouped(
                (size >= LARGE, process_variance(side.replicates, _within(curve[size])))
                for size, side in sides.items()
            )
            for regime, variances in by_regime.items():
                if own := averaged(variances):
                    self._own[id(curve), regime] = own
        self._middle = {
            regime: _middle([v for (_, r), v in self._own.items() if r is regime])
            for regime in (False, True)
        }
        self._survey = survey_variance(surveys)

    def of(self, curve: _BySize, size: int) -> tuple[Variance | None, Variance | None]:
        regime = size >= LARGE
        peers = self._middle[regime]
        own = self._own.get((id(curve), regime))
        return (shared(own, peers) if own else peers), self._survey


def _middle(variances: Sequence[Variance]) -> Variance | None:
    """The variance of the middle curve, which odd processes of few curves do not change."""
    if not variances:
        return None
    freedom = sum(each.freedom for each in variances)
    return Variance(median([each.value for each in variances]), freedom)


def _within(points: Sequence[_Found]) -> float:
    blocks = (block for each in points for block in each.point.measured.blocks)
    return max((block.deviation**2 for block in blocks), default=0.0)


def _blocks(found: Estimate) -> list[float]:
    """Seconds of each block from call to completion, or of the transfer if these are not known."""
    seen = [each.host_median for each in found.blocks]
    if found.host_median is not None and all(each is not None for each in seen):
        return [max(each or 0.0, b.median) for each, b in zip(seen, found.blocks, strict=True)]
    return [each.median for each in found.blocks]


def _surveys(points: Sequence[_Found]) -> Surveys:
    return Surveys([_blocks(each.point.measured) for each in points])


def _time(points: Sequence[_Found], noise: tuple[Variance | None, Variance | None]) -> MeasuredTime:
    first = points[0].point
    sides = _surveys(points)
    blocks = [math.exp(each) for survey in sides.replicates for each in survey]
    estimate = first.measured
    seconds = estimate.seen_median if len(points) == 1 else sides.median
    half = min(_half(sides, noise), _MOST_HALF)
    own = Interval(seconds * math.exp(-half), seconds * math.exp(half))
    seen = estimate.seen_interval
    if len(points) > 1:
        seen = Interval(min(blocks), max(blocks))
    if seen is not None and seen.low <= 0:  # wider than the time: as far below as above, by ratio
        seen = Interval(seconds * min(1.0, seconds / seen.high), seen.high)
    transfer = first.workload.transfer
    assert transfer is not None
    return MeasuredTime(
        Timed(seconds, _hull(own, seen) if len(blocks) == 1 and seen else own),
        _hull(own, seen) if seen else own,
        first.text,
        transfer,
        len(blocks),
    )


def _hull(one: Interval, other: Interval) -> Interval:
    return Interval(min(one.low, other.low), max(one.high, other.high))


def _half(sides: Surveys, noise: tuple[Variance | None, Variance | None]) -> float:
    """Half of the interval of the logarithm, by the noise between processes; if nothing shows it,
    half of the difference that `UNKNOWN` allows."""
    process, survey = noise
    if process is None:
        return _MOST_HALF
    of_surveys = median_share(len(sides.medians))
    weight = of_surveys * share_beside_surveys(sides.share_of_survey)
    value, freedom = process.value * weight, process.freedom
    if survey is not None:
        value, freedom = survey.value * of_surveys, survey.freedom
    value += (
        of_surveys * returned([math.log(each) for each in chain.from_iterable(sides.seconds)]) ** 2
    )
    return student_quantile(freedom, (1 + CONFIDENCE) / 2) * math.sqrt(value)
