"""The choices of a placement before anything is decided.

Every question has choices, and each choice is a curve: copies of one GPU from the memory of each
NUMA node, of one node with each GPU, between each two GPUs, submitted by each node, and sets of as
many GPUs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from waywiser.analysis.questions.placement import PlacementQuestion, PlacementSource
from waywiser.curves.curve import Curve
from waywiser.curves.kinds import Kind, usual
from waywiser.curves.subject import Subject
from waywiser.machine.machine import Machine


class PlacementOption(NamedTuple):
    """A choice before anything is decided. Options with one trait should be equal."""

    name: str
    trait: str
    curve: Curve


class OptionGroup(NamedTuple):
    """The options of one question, as `PlacementRank` has its choices."""

    question: PlacementQuestion
    subject: str
    transfer: str
    is_headline: bool
    options: tuple[PlacementOption, ...]


def placement_options(
    subject: Subject, sides: Sequence[tuple[int, ...]], source: PlacementSource
) -> Iterator[OptionGroup]:
    """The options of all questions, of kinds of transfers that programs usually have."""
    curves = list(usual(subject))
    yield from _host_questions(subject.machine, curves, sides, source)
    yield from _thread_questions(subject.machine, curves)
    yield from _pair_questions(subject.machine, curves)
    yield from _set_questions(subject)


def is_headline_kind(kind: Kind, machine: Machine) -> bool:
    """Whether a program that feeds GPUs asks for the kind first: ordinary and page-locked memory,
    by the executor that such paths are compared by."""
    traits = machine.traits
    known = {traits.reference_memory(by, "numa") for by in ("host", "gpu")}
    return kind.reference == "gpu" and bool({kind.source, kind.destination} <= {*known, "GPU"})


_Found = dict[tuple[str, str], dict[str, PlacementOption]]
"""Options by subject and kind, then by name."""


def _host_questions(
    machine: Machine,
    curves: Sequence[tuple[Curve, Kind]],
    sides: Sequence[tuple[int, ...]],
    source: PlacementSource,
) -> Iterator[OptionGroup]:
    """The node of each GPU, and the GPU of each node. GPUs of different hidden sides are not
    compared: no node says on which side its memory is."""
    nodes: _Found = {}
    gpus: _Found = {}
    headline: dict[str, bool] = {}
    for curve, kind in curves:
        if kind.group != "host-GPU" or curve.path is None:
            continue
        (node,) = (place for place in curve.path.places if place.kind == "numa")
        (gpu,) = (place for place in curve.path.places if place.kind == "gpu")
        headline[kind.bare] = is_headline_kind(kind, machine)
        option = PlacementOption(str(node), kind.nearness, curve)
        nodes.setdefault((str(gpu), kind.bare), {})[str(node)] = option
        whose = str(node)
        if source == "latency":
            side = next((n for n, group in enumerate(sides) if gpu.index in group), 0)
            whose = f"{node}, side {'AB'[side]}"
        option = PlacementOption(str(gpu), kind.nearness, curve)
        gpus.setdefault((whose, kind.bare), {})[str(gpu)] = option
    for question, found in (("buffer", nodes), ("gpu", gpus)):
        for (whose, label), options in found.items():
            yield OptionGroup(
                question,  # type: ignore[arg-type]
                whose,
                label,
                headline[label],
                tuple(options.values()),
            )


def _thread_questions(
    machine: Machine, curves: Sequence[tuple[Curve, Kind]]
) -> Iterator[OptionGroup]:
    """The node that submits a copy between two GPUs."""
    found: _Found = {}
    headline: dict[str, bool] = {}
    for curve, kind in curves:
        transfer = curve.transfer
        if kind.group != "GPU-GPU" or not kind.submitter or transfer is None:
            continue
        source, destination = transfer.path.places
        node = f"numa:{transfer.parameters['submit']}"
        headline[kind.bare] = is_headline_kind(kind, machine)
        key = (f"{source} -> {destination}", kind.bare)
        found.setdefault(key, {})[node] = PlacementOption(node, kind.submitter, curve)
    for (whose, label), options in found.items():
        yield OptionGroup("thread", whose, label, headline[label], tuple(options.values()))


def _pair_questions(
    machine: Machine, curves: Sequence[tuple[Curve, Kind]]
) -> Iterator[OptionGroup]:
    """Two GPUs of all, by the direction that is slower, with peer access if it was measured."""
    pairs: dict[str, dict[tuple[int, int], list[tuple[Curve, Kind]]]] = {}
    for curve, kind in curves:
        if kind.group != "GPU-GPU" or curve.path is None:
            continue
        low, high = sorted(place.index for place in curve.path.places)
        what = f"{kind.source} -> {kind.destination} by {kind.executor}"
        pairs.setdefault(what, {}).setdefault((low, high), []).append((curve, kind))
    for label, found in pairs.items():
        options, headline = [], False
        for (low, high), members in found.items():
            on = [each for each in members if not _is_without_peer(each[0])]
            curve, kind = min(on or members, key=lambda each: each[0].measured[-1].rate)
            headline = headline or is_headline_kind(kind, machine)
            options.append(PlacementOption(f"gpu:{low}, gpu:{high}", kind.states, curve))
        yield OptionGroup("pair", "", label, headline, tuple(options))


def _is_without_peer(curve: Curve) -> bool:
    return curve.transfer is not None and curve.transfer.parameters.get("peer") == "off"


def _set_questions(subject: Subject) -> Iterator[OptionGroup]:
    """The questions about sets of as many GPUs, which all exchange data with the host."""
    found: dict[tuple[str, str], list[PlacementOption]] = {}
    for curve in subject.curves:
        gpus = host_gpus(curve)
        if len(gpus) < 2 or curve.workload.states:
            continue
        first = curve.workload.transfers[0].path
        same = all(
            (t.path.source.kind, t.path.destination.kind, t.path.executor)
            == (first.source.kind, first.destination.kind, first.executor)
            for t in curve.workload.transfers
        )
        if same:
            ends = (first.source, first.destination)
            kinds = ["GPU" if end.place.kind == "gpu" else end.kind for end in ends]
            label = f"{kinds[0]} -> {kinds[1]} by {first.executor}"
            name = ", ".join(f"gpu:{gpu}" for gpu in gpus)
            found.setdefault((f"{len(gpus)} GPUs", label), []).append(
                PlacementOption(name, "", curve)
            )
    for (whose, label), options in found.items():
        yield OptionGroup("set", whose, label, True, tuple(options))


def host_gpus(curve: Curve) -> tuple[int, ...]:
    """The GPUs of transfers that are all between the host and a GPU of their own; empty else."""
    transfers = curve.workload.transfers
    if any({p.kind for p in t.path.places} != {"numa", "gpu"} for t in transfers):
        return ()
    gpus = [place.index for t in transfers for place in t.path.places if place.kind == "gpu"]
    return tuple(sorted(set(gpus)))
