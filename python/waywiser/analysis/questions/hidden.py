"""Sides of a machine that its system does not show, found by latencies.

Which GPUs are on one side together is decided in `waywiser.profile.locality`, from blocks of memory
that every worker tries before it measures. The series themselves show what remote memory
costs: each knows on which side the pages of each of its blocks were
(`waywiser.profile.locality`, `waywiser.stats.remote_penalty`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

from waywiser.analysis.questions.pair_answers import MARKS, signed, time_ratio
from waywiser.curves import (
    EQUIVALENT_WITHIN,
    Curve,
    Exhibit,
    Finding,
    Kind,
    Regime,
    Sheet,
    SheetCell,
    Subject,
    hidden_loss,
    regime_of,
    table,
)
from waywiser.curves.kinds import usual
from waywiser.machine import Machine, format_list
from waywiser.profile import Sides
from waywiser.profile.cores import CoreVerdict
from waywiser.stats import Decision, decide, median
from waywiser.stats.division import P_LIMIT
from waywiser.stats.remote_penalty import SidesOfProcess, remote_penalty
from waywiser.words import Place, Value, grouped


class RemotePenalty(Value, frozen=True):
    """The cost of remote memory for one kind of transfer, at the sizes of one regime."""

    kind: Kind
    regime: Regime
    curve: Curve
    local: int
    """Processes with local memory; some have both."""
    remote: int
    decision: Decision
    """Its ratio is that of bandwidths, remote over local."""


def findings(subject: Subject) -> Iterator[Finding]:
    """The sides, if the system does not show them, and what they cost."""
    sides = subject.overview.sides
    if sides is None or len(sides.groups) != 2:
        return
    shown = _shown(subject.machine, sides.gpus)
    measured = [set(group) for group in sides.groups]
    if all(any(group <= side for side in measured) for group in shown):
        return
    hidden = len(shown) < 2
    yield Finding(
        id="hidden-sockets" if hidden else "affinity-contradicted",
        severity="warning",
        statement=f"the system shows {'no sides' if hidden else 'other sides'} of this machine, "
        f"but it has two: {next(sentences(sides), '')}",
        effect=sides.remote_seconds / sides.local_seconds - 1 if sides.local_seconds else None,
        devices=tuple(subject.device(Place("gpu", gpu)) for gpu in sides.gpus),
        exhibits=tuple(_exhibits(subject, sides)),
        remedy="do not rely on NUMA numbers here: use buffers that were measured to be on the side "
        "of their GPU, and keep the threads and rings of each side apart",
    )


def summary(subject: Subject) -> str:
    """One sentence about the measured sides; empty if none was measured."""
    sides = subject.overview.sides
    if sides is None or len(sides.gpus) < 2:
        return ""
    return f"By latency, {next(sentences(sides), '')}."


def tables(subject: Subject) -> tuple[Sheet, ...]:
    """The cost of remote memory, if blocks were on both sides."""
    return table(
        "Remote against local memory, by measured side",
        ("transfer", "regime", "remote takes", "local and remote processes"),
        map(_row, costs(subject)),
        f"yes: the side changes the time by {EQUIVALENT_WITHIN}.",
    )


def costs(subject: Subject) -> list[RemotePenalty]:
    """The remote penalties of kinds with processes on both sides, decided together, small sizes
    first."""
    kinds = grouped(
        ((kind.bare, regime), (kind, curve))
        for curve, kind in usual(subject)
        if kind.group == "host-GPU"
        for regime in {regime_of(point.workload): 0 for point in curve.measured}
    )
    compared, effects = [], []
    for (_, regime), members in kinds.items():
        processes = _processes(subject, [curve for _, curve in members], regime)
        if (effect := remote_penalty(processes)) is not None:
            local, remote = (sum(map(bool, side)) for side in zip(*processes, strict=True))
            compared.append((members[0][0], regime, members[0][1], local, remote))
            effects.append(effect)
    return [
        RemotePenalty(*known, decision)
        for known, decision in zip(compared, decide(effects), strict=True)
    ]


def _processes(subject: Subject, curves: Iterable[Curve], regime: Regime) -> list[SidesOfProcess]:
    """Each process that was local or remote, by curve: the median over sizes of its distance from
    what the size usually takes, in logarithms."""
    where = subject.overview.nearness
    points = [p for curve in curves for p in curve.measured if regime_of(p.workload) == regime]
    logs = grouped((point.bytes, math.log(point.seconds)) for point in points)
    usual_logs = {size: median(values) for size, values in logs.items()}
    apart = grouped(
        ((block.block, side, point.curve), math.log(block.median) - usual_logs[point.bytes])
        for point in points
        for block in point.measured.blocks
        if (side := where.get(point.identity, {}).get(block.block)) and block.median > 0
    )
    found: dict[int, dict[str, dict[str, float]]] = {}
    for (process, side, curve), distances in apart.items():
        own = found.setdefault(process, {"local": {}, "remote": {}})
        own[side][curve] = median(distances)
    return [SidesOfProcess(**sides) for sides in found.values()]


def _row(cost: RemotePenalty) -> tuple[SheetCell, ...]:
    decision = cost.decision
    unsure = decision.outcome == "no change found"
    text = f"{signed(decision, cost.regime)}{f', {hidden_loss(decision)}' if unsure else ''}"
    return (
        SheetCell(cost.kind.bare),
        SheetCell(cost.regime),
        SheetCell(text, MARKS[decision.outcome], cost.curve.text),
        SheetCell(f"{cost.local} and {cost.remote}"),
    )


def _exhibits(subject: Subject, sides: Sides) -> Iterator[Exhibit]:
    """The latencies that show the sides, then the differences that they make."""
    if not sides.blocks:
        return
    first = Place("gpu", sides.gpus[0])
    traits = subject.machine.traits
    kind, executor = traits.reference_memory("gpu", "gpu"), traits.reference_executor("gpu")
    probe = f"{sides.blocks[0].memory} -> {kind}@{first} by {executor}"
    yield Exhibit(probe, "8 bytes to a GPU on the block's side", sides.local_seconds, "s")
    yield Exhibit(probe, "8 bytes to a GPU on the other side", sides.remote_seconds, "s")
    for cost in costs(subject):
        if cost.decision.outcome == "different":
            what = f"remote over local, {cost.regime} of {cost.kind.bare}"
            yield time_ratio(cost.curve.text, what, cost.decision)


def _shown(machine: Machine, gpus: Sequence[int]) -> list[set[int]]:
    """The GPUs by the node that the system says they are at; one group if it says nothing."""
    nodes = grouped((gpu.numa, gpu.index) for gpu in machine.gpus if gpu.index in gpus)
    return list(map(set, nodes.values()))


def sentences(found: Sides) -> Iterator[str]:
    """One sentence of GPUs, if there are several, and one of cores, if anything was seen."""
    if len(found.groups) == 2:
        yield _two(found)
    elif len(found.gpus) > 1:
        yield _one(found)
    if text := _cores(found.cores):
        yield text


def _two(found: Sides) -> str:
    first, second = (
        f"GPU{'s' if len(group) > 1 else ''} {ranges_text(group)}" for group in found.groups
    )
    text = (
        f"{first} and {second} are on two sides: {found.local_seconds * 1e6:.2f} µs from memory on "
        f"their own, {found.remote_seconds * 1e6:.2f} from the other, the same from "
        f"{found.agreeing} of {len(found.blocks)} blocks"
    )
    if found.by == "level":
        return f"{text}; by their level alone, since all blocks were on one side"
    return f"{text} (probability of this by chance: {found.p_value:.2g})"


def _one(found: Sides) -> str:
    differ = found.p_value is not None and found.p_value <= P_LIMIT
    small = ", but differences that are too small to divide them" if differ else ""
    which, microseconds = ranges_text(found.gpus), found.local_seconds * 1e6
    return (
        f"GPUs {which} have equal latency to host memory, {microseconds:.2f} µs from "
        f"each of {len(found.blocks)} blocks: no hidden NUMA node was found{small}"
    )


def _cores(found: CoreVerdict) -> str:
    if found.stability in ("not determined", "none seen"):
        return ""
    near, far = found.local_seconds * 1e9, found.remote_seconds * 1e9
    times = f"{near:.0f} against {far:.0f} ns for a load"
    if found.stability == "drifting":
        return (
            f"cores drift between two sides ({times}): {len(found.changed)} of "
            f"{len(found.cores)} changed, the fastest within {found.seconds:.2g} s"
        )
    return (
        f"each core stayed on one of two hidden NUMA nodes ({times}) during {found.seconds:.2g} s "
        "of observation"
    )


def ranges_text(numbers: Sequence[int]) -> str:
    """``0-3, 6`` for 0, 1, 2, 3, 6."""
    return format_list(tuple(numbers)).replace(",", ", ")
