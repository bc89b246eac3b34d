"""What was measured between two places: sustained rate and shortest time of plain copies."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from waywiser.curves import Curve, Point, counted_copies, executor_text, memory_text
from waywiser.machine import DECLARED, Machine, PathClass, Traits
from waywiser.stats import median
from waywiser.words import Place, Value, grouped


class Between(Value, frozen=True):
    """One ordered pair of places."""

    source: str
    destination: str
    curve: Curve
    most: Point | None
    """The largest size, since smaller ones may come out of a cache: of those that all links of the
    kind with a bandwidth were measured at, so that they can be compared. None if no size is large
    enough for a bandwidth."""
    least: Point
    """The smallest size."""
    is_other: bool = False
    """Whether its method is not the one that pairs of its class are compared by."""

    @property
    def pair(self) -> tuple[str, str]:
        return self.source, self.destination

    @property
    def pair_class(self) -> tuple[str, ...]:
        """Pairs of one class are compared with each other, in both directions."""
        kinds = sorted(end.partition(":")[0] for end in self.pair)
        return (*kinds, "within" if self.source == self.destination else "between")

    @property
    def method(self) -> str:
        """Who copies, and the host memory: ``pinned by copy-engine[api=sync]``."""
        transfer = self.curve.first_transfer
        plain = DECLARED.reference_memory("gpu", "gpu")
        memories = {memory_text(end) for end in transfer.path.ends if end.kind != plain}
        return f"{' and '.join(sorted(memories))} by {executor_text(transfer)}".lstrip()

    @property
    def rate(self) -> float:
        """Bytes per second at ``most``; 0 without one."""
        return self.most.rate if self.most is not None else 0.0


def between_places(curves: Iterable[Curve], traits: Traits) -> dict[tuple[str, str], Between]:
    """Single copies by (source, destination), with default settings if there are: those of a class
    by one method where it was measured. No messages: the places of ranks may be of two hosts."""
    found: dict[tuple[str, str], Between] = {}
    classes = grouped((each.pair_class, each) for each in _candidates(curves, traits))
    for candidates in classes.values():
        found |= _by_one_method(candidates, traits)
    kinds = grouped(
        ((one.split(":")[0], other.split(":")[0], one == other), (one, other))
        for one, other in found
    )
    for keys in kinds.values():
        rated = [key for key in keys if found[key].most is not None]
        points = _at_a_common_size([found[key] for key in rated])
        for key, point in zip(rated, points, strict=True):
            found[key] = msgspec.structs.replace(found[key], most=point)
    return found


def _by_one_method(candidates: Sequence[Between], traits: Traits) -> dict[tuple[str, str], Between]:
    """Each pair of a class by the method that is best for the class; pairs without it by the one
    that is best for them."""
    found: dict[tuple[str, str], Between] = {}
    while left := [each for each in candidates if each.pair not in found]:
        methods = grouped((each.method, each) for each in left)
        best = max(methods.values(), key=lambda each: _worth(each, traits))
        is_other = bool(found)
        for each in best:
            known = found.get(each.pair)
            if known is None or _rank(each) > _rank(known):
                found[each.pair] = msgspec.structs.replace(each, is_other=is_other)
    return {each.pair: found[each.pair] for each in candidates}


def _rank(of_pair: Between) -> tuple[bool, float]:
    """Which of several curves of a pair by one method is shown: with default memories first, as in
    the headline table, then the fastest."""
    return of_pair.curve.is_default, of_pair.rate


def _at_a_common_size(links: Sequence[Between]) -> list[Point]:
    """The line of each link with a bandwidth at the largest size that all of them have; at its own
    largest if they have none in common."""
    known = [{point.bytes: point for point in each.curve.rated} for each in links]
    common = set.intersection(*map(set, known)) if known else set()
    return [points[max(common or points)] for points in known]


def _candidates(curves: Iterable[Curve], traits: Traits) -> Iterator[Between]:
    for curve in counted_copies(curves):
        transfer = curve.first_transfer
        if transfer.layout:
            continue
        path = transfer.path
        if traits.moves_nothing(path.source, path.destination) or traits.is_between_ranks(path):
            continue
        ends = transfer.path.places
        measured = [point for point in curve.measured if point.estimate and point.estimate.rate]
        if "file" not in (ends[0].kind, ends[1].kind) and measured:
            most = curve.plateau
            yield Between(str(ends[0]), str(ends[1]), curve, most, measured[0])


def _worth(
    of_method: Sequence[Between], traits: Traits
) -> tuple[bool, bool, bool, int, int, float]:
    """First the memory that paths with a GPU, or within the host, are compared by, then default
    settings, then the executor that they are compared by, as in the headline table; then the fewest
    settings, then what most pairs have, then the fastest."""
    first = of_method[0]
    path = first.curve.first_transfer.path
    paths: PathClass = "gpu" if "gpu" in first.source + first.destination else "host"
    of_links = all(traits.memory(end.kind).reference == paths for end in path.ends)
    reference = traits.executor(path.executor).reference == paths
    rates = [each.rate for each in of_method]
    pairs = len({each.pair for each in of_method})
    settings = len(first.curve.first_transfer.parameters)
    return of_links, first.curve.is_default, reference, -settings, pairs, median(rates)


def places(machine: Machine) -> list[Place]:
    """NUMA nodes, then GPUs."""
    nodes = [Place("numa", node.index) for node in machine.numa]
    return nodes + [Place("gpu", gpu.index) for gpu in machine.gpus]
