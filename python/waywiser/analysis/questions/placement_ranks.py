"""The ranks of a placement: all choices of a question are compared with each other, and all
questions are decided together (`waywiser.analysis.questions.curve_pairs`).

Each choice is a curve: copies of one GPU from the memory of each NUMA node, of one node with each
GPU, between each two GPUs, submitted by each node, and sets of as many GPUs.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, combinations, permutations
from typing import NamedTuple, get_args

from waywiser.analysis.questions import hidden
from waywiser.analysis.questions.curve_pairs import REGIMES, PairResult, curve_groups
from waywiser.analysis.questions.pair_answers import loss
from waywiser.analysis.questions.placement import (
    PlacementChoice,
    PlacementCost,
    PlacementQuestion,
    PlacementRank,
    PlacementSource,
)
from waywiser.curves import Curve, Kind, Regime, Subject, regime_of
from waywiser.curves.kinds import usual
from waywiser.machine import DECLARED, Machine
from waywiser.words import grouped


class _Question(NamedTuple):
    """What is chosen, as `PlacementRank` has it."""

    question: PlacementQuestion
    subject: str
    transfer: str
    is_headline: bool


class _Option(NamedTuple):
    """A choice before anything is decided. Options with one trait should be equal."""

    name: str
    trait: str
    curve: Curve


_Found = Iterator[tuple[_Question, _Option]]


def decided_ranks(
    subject: Subject, sides: Sequence[tuple[int, ...]], source: PlacementSource
) -> Iterator[PlacementRank]:
    """Compares all options of each question, and decides about all questions together.

    Comparisons between the same two traits are one group: memory of a remote node against memory of
    the local one. So pairs of which nothing differs are not pooled with pairs of which much does.
    """
    questions = _questions(subject, sides, source)
    pairs = [
        (f"{each.question}: {each.transfer}: {one.trait}, {other.trait}", (one.curve, other.curve))
        for each, options in questions
        for two in combinations(options, 2)
        for one, other in [sorted(two, key=lambda option: option.trait)]
    ]
    known = {
        (pair.a.text, pair.b.text, regime): pair
        for group in curve_groups(pairs)
        for regime, result in group.regimes.items()
        for pair in result.pairs
    }
    for each, options in questions:
        for regime in REGIMES:
            if choices := _choices(options, regime, known):
                yield PlacementRank(*each, regime, choices)


def _choices(
    options: Sequence[_Option],
    regime: Regime,
    known: Mapping[tuple[str, str, Regime], PairResult],
) -> tuple[PlacementChoice, ...]:
    """The options by the mean of their ratios to all others; none if few can be compared."""
    found = {
        (a.name, b.name): pair
        for a, b in permutations(options, 2)
        if (pair := known.get((a.curve.text, b.curve.text, regime)))
    }
    level = dict.fromkeys(chain.from_iterable(found), 0.0)
    for (first, second), pair in found.items():
        change = math.log(pair.evidence[0].ratio)
        level[first] += change
        level[second] -= change
    order = sorted(level, key=lambda name: -level[name])
    costs = {name: cost for name in order[1:] if (cost := _cost(found, order[0], name, regime))}
    if not costs:
        return ()
    order = [order[0], *sorted(costs, key=lambda name: costs[name].loss)]
    curves = {option.name: option.curve for option in options}
    points = {name: curves[name].at(costs[order[-1]].bytes) for name in order}
    return tuple(
        PlacementChoice(name, point.rate if point else 0.0, curves[name].text, costs.get(name))
        for name, point in points.items()
    )


def _cost(
    found: Mapping[tuple[str, str], PairResult], best: str, name: str, regime: Regime
) -> PlacementCost | None:
    for names in ((best, name), (name, best)):
        if pair := found.get(names):
            decision, at = pair.evidence
            effect = loss(decision, regime, of_second=names[1] == name)
            return PlacementCost(pair.outcome, *effect, decision.detectable, at.bytes)
    return None


def side_ranks(subject: Subject, source: PlacementSource) -> Iterator[PlacementRank]:
    """The own side against the other one, of hidden sides."""
    for each in hidden.costs(subject) if source == "latency" else ():
        size = max(p.bytes for p in each.curve.measured if regime_of(p.workload) == each.regime)
        found = each.decision
        cost = PlacementCost(found.outcome, *loss(found, each.regime), found.detectable, size)
        own, other = (PlacementChoice(name, 0.0, each.curve.text, c)
                      for name, c in (("own side", None), ("other side", cost)))  # fmt: skip
        headline = is_headline_kind(each.kind, subject.machine)
        yield PlacementRank("side", "", each.kind.bare, headline, each.regime, (own, other))


# What there is to choose.


def _questions(
    subject: Subject, sides: Sequence[tuple[int, ...]], source: PlacementSource
) -> list[tuple[_Question, Sequence[_Option]]]:
    """The questions with several options, of kinds of transfers that programs usually have."""
    machine, curves = subject.machine, list(usual(subject))
    by_name = chain(_of_host(machine, curves, sides, source), _of_threads(machine, curves))
    others = grouped(chain(_of_pairs(machine, curves), _of_sets(subject)))
    found: list[tuple[_Question, Sequence[_Option]]] = [
        *((each, [*{o.name: o for o in own}.values()]) for each, own in grouped(by_name).items()),
        *others.items(),
    ]
    several = [(each, options) for each, options in found if len(options) > 1]
    order = get_args(PlacementQuestion)
    return sorted(several, key=lambda each: order.index(each[0].question))


def is_headline_kind(kind: Kind, machine: Machine) -> bool:
    """Whether a program that feeds GPUs asks for the kind first: ordinary and page-locked memory,
    by the executor that such paths are compared by."""
    traits = machine.traits
    known = {traits.reference_memory(by, "numa") for by in ("host", "gpu")}
    return kind.reference == "gpu" and bool({kind.source, kind.destination} <= {*known, "GPU"})


def _of_host(
    machine: Machine,
    curves: Sequence[tuple[Curve, Kind]],
    sides: Sequence[tuple[int, ...]],
    source: PlacementSource,
) -> _Found:
    """The node of each GPU, and the GPU of each node. GPUs of different hidden sides are not
    compared: no node says on which side its memory is."""
    for curve, kind in curves:
        if kind.group != "host-GPU":
            continue
        gpu, node = sorted(curve.first_transfer.path.places, key=lambda place: place.kind)
        headline, whose = is_headline_kind(kind, machine), str(node)
        if source == "latency":
            side = next((n for n, group in enumerate(sides) if gpu.index in group), 0)
            whose = f"{node}, side {'AB'[side]}"
        of_gpu = _Question("buffer", str(gpu), kind.bare, headline)
        yield of_gpu, _Option(str(node), kind.nearness, curve)
        of_node = _Question("gpu", whose, kind.bare, headline)
        yield of_node, _Option(str(gpu), kind.nearness, curve)


def _of_threads(machine: Machine, curves: Sequence[tuple[Curve, Kind]]) -> _Found:
    """The node that submits a copy between two GPUs."""
    for curve, kind in curves:
        if kind.group == "GPU-GPU" and kind.submitter:
            source, destination = curve.first_transfer.path.places
            node = f"numa:{curve.first_transfer.parameters['submit']}"
            headline = is_headline_kind(kind, machine)
            question = _Question("thread", f"{source} -> {destination}", kind.bare, headline)
            yield question, _Option(node, kind.submitter, curve)


def _of_pairs(machine: Machine, curves: Sequence[tuple[Curve, Kind]]) -> _Found:
    """Two GPUs of all, by the direction that is slower, with peer access if it was measured."""
    pairs = grouped(
        (
            (
                f"{kind.source} -> {kind.destination} by {kind.executor}",
                frozenset(place.index for place in curve.first_transfer.path.places),
            ),
            (curve, kind),
        )
        for curve, kind in curves
        if kind.group == "GPU-GPU"
    )
    for (label, gpus), members in pairs.items():
        on = [each for each in members if each[0].first_transfer.parameters.get("peer") != "off"]
        curve, kind = min(on or members, key=lambda each: each[0].measured[-1].rate)
        question = _Question("pair", "", label, is_headline_kind(kind, machine))
        yield question, _Option(_named(gpus), kind.states, curve)


def _of_sets(subject: Subject) -> _Found:
    """The questions about sets of as many GPUs, which all exchange data with the host."""
    for curve in subject.curves:
        gpus = host_gpus(curve)
        paths = [transfer.path for transfer in curve.workload.transfers]
        ways = {(path.source.kind, path.destination.kind, path.executor) for path in paths}
        if len(gpus) < 2 or curve.workload.states or len(ways) > 1:
            continue
        source, destination = (
            "GPU" if end.place.kind == "gpu" else end.kind for end in paths[0].ends
        )
        label = f"{source} -> {destination} by {paths[0].executor}"
        yield _Question("set", f"{len(gpus)} GPUs", label, True), _Option(_named(gpus), "", curve)


def _named(gpus: Iterable[int]) -> str:
    return ", ".join(f"gpu:{gpu}" for gpu in sorted(gpus))


def host_gpus(curve: Curve) -> frozenset[int]:
    """The GPUs of copies that are all between the host and a GPU of their own; none else."""
    paths = [transfer.path for transfer in curve.workload.transfers]
    places = [path.places for path in paths if not DECLARED.is_between_ranks(path)]
    if len(places) < len(paths):
        return frozenset()
    if any({place.kind for place in ends} != {"numa", "gpu"} for ends in places):
        return frozenset()
    return frozenset(place.index for ends in places for place in ends if place.kind == "gpu")
