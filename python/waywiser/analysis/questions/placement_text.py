"""The words of a placement: its sentences and its tables."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from waywiser.analysis.questions import hidden
from waywiser.analysis.questions.curve_pairs import REGIMES
from waywiser.analysis.questions.pair_answers import MARKS, slower_text
from waywiser.analysis.questions.placement import (
    ConcurrentUse,
    GpuPlacement,
    Placement,
    PlacementCost,
    PlacementQuestion,
    PlacementRank,
)
from waywiser.curves import (
    BANDWIDTH_BYTES,
    EQUIVALENT_WITHIN,
    START_BYTES,
    Regime,
    Sheet,
    SheetCell,
    Subject,
    capital,
    percent,
    size_span,
    table,
)
from waywiser.curves.texts import named
from waywiser.machine import Machine
from waywiser.stats import Interval, relative
from waywiser.words import count, format_bytes, format_rate, grouped

REGIME_TEXT: dict[Regime, str] = {
    "bandwidth": f"copies of {format_bytes(BANDWIDTH_BYTES)} and more",
    "medium": f"copies of {size_span(START_BYTES, BANDWIDTH_BYTES)}",
    "latency": f"copies below {format_bytes(START_BYTES)}",
    "operation": "operations",
}

WORST: dict[PlacementQuestion, str] = {
    "buffer": "the worst NUMA node for buffer and thread",
    "side": "memory of the other side",
    "gpu": "the slowest GPU of a node",
    "thread": "the worst NUMA node for the thread that submits",
    "pair": "the worst pair of GPUs",
    "set": "the worst set of GPUs",
}

CHOICE: dict[PlacementQuestion, str] = {
    "buffer": "The NUMA node of buffer and thread",
    "side": "The side of the memory",
    "thread": "The NUMA node of the thread that submits",
    "gpu": "The GPU of a NUMA node",
    "pair": "The choice of two GPUs",
    "set": "The choice of GPUs that copy together",
}

LOSS: dict[Regime, str] = {
    "bandwidth": "has less bandwidth",
    "medium": "has less bandwidth",
    "latency": "takes longer",
}

SIGNS = "−n %: so much less bandwidth, of small copies +n %: so much longer"

MOVES = (
    "Virtual CPUs may move between sockets: a thread that is pinned to one can run on another "
    "socket later. Only the hypervisor can prevent that."
)


def sentences(found: Placement, subject: Subject) -> Iterator[str]:
    """The answer: nodes, sides, GPUs together; how sure it is follows what it is about."""
    yield from _nodes(found)
    yield from _sides(found, subject)
    for question in CHOICE:
        if question == "gpu" and found.nodes:
            yield from _nearest(found)
        else:
            yield from _choice(found, question)
    yield from map(_together, found.concurrent)
    yield from _spreads(found)


def unanswered(found: Placement, subject: Subject) -> Iterator[str]:
    """What the profile does not show, with what would show it."""
    machine = subject.machine
    if not machine.gpus:
        yield "the machine has no GPU"
        return
    if len(machine.numa) > 1 and not found.of("buffer"):
        yield (
            "the NUMA node of buffers: no path between host and GPU was measured from two nodes"
            + subject.surveyed("; run waywiser survey --preset standard")
        )
    if len(machine.gpus) > 2 and not found.of("pair"):
        yield "GPUs that exchange data: no two pairs of GPUs were measured"
    if len(machine.gpus) > 2 and not found.of("set"):
        yield (
            "which GPUs share a link to the host: only sets of all GPUs were measured"
            + subject.surveyed(f"; run waywiser survey --workload '{_two_copies(machine)}'")
        )
    yield from _undecided(found)


def _two_copies(machine: Machine) -> str:
    """Copies of two GPUs that start together."""
    traits = machine.traits
    host, device = (traits.reference_memory("gpu", place) for place in ("numa", "gpu"))
    gpus = [gpu.index for gpu in machine.gpus[:2]]
    by = traits.reference_executor("gpu")
    node = machine.numa[0].index if machine.numa else 0
    return "; ".join(f"{host}@numa:{node} -> {device}@gpu:{gpu} by {by}" for gpu in gpus)


def _undecided(found: Placement) -> Iterator[str]:
    large = (rank for rank in found.ranks if rank.is_headline and rank.regime == "bandwidth")
    open_ = grouped(
        ((rank.question, rank.transfer), rank.cost.detectable)
        for rank in large
        if rank.cost.outcome == "no change found"
    )
    texts = grouped((question, f"{kind} {_unseen(own)}") for (question, kind), own in open_.items())
    for question, parts in texts.items():
        choice = CHOICE[question].replace("The", "the", 1)
        yield f"{choice}, {REGIME_TEXT['bandwidth']}: {named(parts)}"


def _unseen(detectable: Sequence[float | None]) -> str:
    """The most that any of several differences could be."""
    known = [each for each in detectable if each is not None]
    if len(known) < len(detectable):
        return "measured in one process"
    return f"could differ by {percent(max(known))} unseen"


# Sentences.


def _nodes(found: Placement) -> Iterator[str]:
    """Which node each GPU has, those of one node together."""
    nodes = grouped(((gpu.node, gpu.basis), gpu) for gpu in found.gpus)
    for (node, basis), own in nodes.items():
        who = _gpus([gpu.gpu for gpu in own])
        if basis == "measured" and node is not None:
            yield f"Put buffers and threads of {who} on numa:{node}: it was measured to be better."
        elif basis == "no difference":
            where = f"; the system names numa:{node}" if node is not None else ""
            yield (
                f"{who}: the NUMA node of buffers and threads makes no difference"
                f"{_excluded([gpu.rank for gpu in own])}{where}."
            )
        elif basis == "system":
            yield (
                f"Put buffers and threads of {who} on numa:{node}: the system names it, and no "
                "measurement decides."
            )


def _sides(found: Placement, subject: Subject) -> Iterator[str]:
    """The measured locality if the system hides it, how sure it is, and that CPUs may move."""
    seen = subject.overview.sides
    if found.source == "latency" and seen is not None:
        first = next(hidden.sentences(seen), "")
        yield (
            f"The system does not show it: {first}. Keep buffers, threads and transfers of each "
            "side apart."
        )
        if seen.by == "level":
            yield (
                "How sure this is: little. All blocks of memory were on one side, so that only the "
                "level of the latencies differs; repeat the survey."
            )
        else:
            yield (
                f"How sure this is: such latencies have a probability of {seen.p_value:.2g} by "
                f"chance, and {seen.agreeing} of {len(seen.blocks)} blocks of memory show it alone."
            )
    elif found.source == "not known" and found.gpus and len(subject.machine.numa) < 2:
        if subject.origin == "imported":
            yield "The files do not say where the GPUs are."
            return
        yield _shown(subject.machine)
        if seen is not None and len(seen.gpus) > 1:
            first = next(hidden.sentences(seen), "")
            yield (
                f"{capital(first)}. That does not exclude two sockets with all GPUs on one of them."
            )
        elif len(subject.machine.gpus) == 1:
            yield "Latencies of one GPU cannot show hidden sides: two GPUs and more can."
    if found.source != "system" and found.virtual:
        if seen is not None and seen.cores.stability == "drifting":
            yield f"{capital(list(hidden.sentences(seen))[-1])}."
        yield MOVES


def _shown(machine: Machine) -> str:
    """What the system shows of the nodes of GPUs."""
    nodes = count(len(machine.numa), "NUMA node")
    near = [gpu.index for gpu in machine.gpus if gpu.numa >= 0]
    unknown = [gpu.index for gpu in machine.gpus if gpu.numa < 0]
    if near and unknown:
        where = f"{_gpus(unknown)} {'is' if len(unknown) == 1 else 'are'}"
        return f"The system shows {nodes}, near {_gpus(near)}, and not where {where}."
    where = f", near {_gpus(near)}" if near else " and not where its GPUs are"
    return f"The system shows {nodes}{where}."


def _nearest(found: Placement) -> Iterator[str]:
    """The nearest GPUs of each node."""
    for each in found.nodes:
        rank = each.rank
        if each.basis == "measured" and rank is not None:
            yield (
                f"Nearest to numa:{each.node}: {_gpus(each.gpus)}. The slowest, "
                f"{rank.worst.name}, {slower_text(cost_text(rank.cost), rank.regime)} "
                f"({rank.transfer}, at {format_bytes(rank.cost.bytes)})."
            )
        elif each.basis == "no difference":
            excluded = f"no difference{_excluded([rank])}"
            yield f"All GPUs are equally near to numa:{each.node}: {excluded}."
        elif each.basis == "system":
            yield f"Nearest to numa:{each.node}: {_gpus(each.gpus)}, as the system shows it."


def _choice(found: Placement, question: PlacementQuestion) -> Iterator[str]:
    """The cost of the worst choice for headline kinds: a sentence for large and one for small
    copies that differ, and one for kinds that do not."""
    known = [rank for rank in found.of(question) if rank.is_headline]
    equal: dict[str, float] = {}
    for regime in (REGIMES[0], REGIMES[-1]):
        kinds = grouped((rank.transfer, rank) for rank in known if rank.regime == regime)
        worst = []
        for kind, own in kinds.items():
            differ = [rank for rank in own if rank.cost.outcome == "different"]
            if differ:
                worst.append(max(differ, key=lambda each: each.cost.loss))
            elif regime == "bandwidth" and all(r.cost.outcome == "equivalent" for r in own):
                equal[kind] = max(r.cost.limit or 0.0 for r in own)
        if worst:
            parts = [_worst(rank) for rank in sorted(worst, key=lambda each: -each.cost.loss)]
            yield (
                f"{capital(WORST[question])} {LOSS[regime]}, for {REGIME_TEXT[regime]}: "
                f"{'; '.join(parts)}."
            )
            if question in ("pair", "set") and regime == "bandwidth":
                names = named([f"({each.name})" for each in worst[0].good])
                yield f"Not slower than the best: {names}."
    if equal:
        limit = percent(rounded_up(max(equal.values())))
        yield (
            f"{CHOICE[question]} makes no difference of more than {limit} for "
            f"{REGIME_TEXT['bandwidth']}: {named([*equal])}."
        )


def _excluded(ranks: Sequence[PlacementRank | None]) -> str:
    """`` of more than 1.3 %``: what is excluded of the choices that these show to be equivalent."""
    known = [rank.cost.limit for rank in ranks if rank is not None]
    most = max((limit for limit in known if limit is not None), default=None)
    return f" of more than {percent(rounded_up(most))}" if most is not None else ""


def rounded_up(share: float) -> float:
    """The share, rounded up to a tenth of a percent."""
    return math.ceil(share * 1000 - 1e-9) / 1000


def _worst(rank: PlacementRank) -> str:
    """``pinned -> GPU by copy-engine 7.3 % (4.6–10) at 256 B, numa:0 against numa:1 for gpu:5``."""
    whom = f" for {rank.subject}" if rank.subject else ""
    return (
        f"{rank.transfer} {cost_text(rank.cost)} at {format_bytes(rank.cost.bytes)}, "
        f"{rank.worst.name} against {rank.best.name}{whom}"
    )


def _together(use: ConcurrentUse) -> str:
    alone = format_rate(use.alone_rate, 0.01)
    share = f"{use.share:.0%}{_span(use.interval)}"
    head = f"{use.name}: {_rate(use)} GB/s, {share} of {alone} GB/s alone"
    if use.outcome == "different" and use.share < 1:
        return f"{head}. Plan with this bandwidth for {_gpus(use.gpus)} together."
    if use.outcome == "equivalent":
        return f"{head}: {_gpus(use.gpus)} do not slow each other."
    if use.detectable is None:
        return f"{head}, measured in one process."
    return f"{head}; a loss of less than {percent(use.detectable)} could have been missed."


def _rate(use: ConcurrentUse) -> str:
    return format_rate(use.rate, relative(use.share, use.interval, of_rate=True))


def _span(interval: Interval | None) -> str:
    if interval is None:
        return ""
    low, high = f"{interval.low:.0%}", f"{interval.high:.0%}"
    return f" ({low} to {high})" if low != high else ""


def _spreads(found: Placement) -> Iterator[str]:
    if found.spreads:
        parts = [f"{each.transfer} −{percent(each.spread)}" for each in found.spreads]
        processes = max(each.processes for each in found.spreads)
        yield (
            f"The hypervisor placed the memory of the {processes} processes of this survey. For "
            f"{REGIME_TEXT['bandwidth']} the slowest process has less bandwidth than the fastest: "
            f"{', '.join(parts)}."
        )


def _gpus(numbers: Sequence[int]) -> str:
    """``gpu:0``, ``GPUs 0-3``."""
    return f"gpu:{numbers[0]}" if len(numbers) == 1 else f"GPUs {hidden.ranges_text(numbers)}"


def cost_text(cost: PlacementCost) -> str:
    """``45 % (41–49)``."""
    return percent(cost.loss, cost.interval)


# Tables.


def placement_tables(found: Placement) -> tuple[Sheet, ...]:
    """The node of each GPU, the cost of the worst choice by kind, and GPUs together."""
    return (
        *table(
            "Placement of each GPU",
            ("GPU", "NUMA node", "side", "because", "worst choice"),
            map(_gpu_row, found.gpus),
            f"Worst choice: what a copy from the worst NUMA node loses: {SIGNS}.",
        ),
        *table(
            "Cost of the worst choice",
            ("choice", "transfer", "large copies", "medium sizes", "small copies"),
            _cost_rows(found),
            f"The largest of all GPUs; {SIGNS}. yes: the worst choice is slower by "
            f"{EQUIVALENT_WITHIN}. Large: from {format_bytes(BANDWIDTH_BYTES)}, small: below "
            f"{format_bytes(START_BYTES)}.",
        ),
        *table(
            "GPUs that copy together",
            ("transfers", "slowed", "GB/s", "of the sum alone"),
            map(_use_row, found.concurrent),
            "yes: less bandwidth together than alone.",
        ),
    )


def _gpu_row(gpu: GpuPlacement) -> tuple[SheetCell, ...]:
    rank = gpu.rank
    worst = _cost_cell(rank, f" ({rank.transfer})") if rank is not None else SheetCell("—")
    return (
        SheetCell(f"gpu:{gpu.gpu}"),
        SheetCell("—" if gpu.node is None else f"numa:{gpu.node}"),
        SheetCell("—" if gpu.side is None else "AB"[gpu.side]),
        SheetCell(gpu.basis),
        worst,
    )


def _cost_rows(found: Placement) -> Iterator[tuple[SheetCell, ...]]:
    ordered = sorted(found.ranks, key=lambda each: not each.is_headline)
    kinds = grouped(((rank.question, rank.transfer), rank) for rank in ordered)
    for (question, kind), ranks in kinds.items():
        own = grouped((rank.regime, rank) for rank in ranks)
        worst = {regime: _cost_cell(max(found, key=_gravity)) for regime, found in own.items()}
        cells = (worst.get(regime, SheetCell("—")) for regime in REGIMES)
        yield (SheetCell(CHOICE[question]), SheetCell(kind), *cells)


def _gravity(rank: PlacementRank) -> tuple[bool, bool, float]:
    """The largest decided cost; else what could hide most."""
    cost = rank.cost
    limit = math.inf if cost.limit is None else cost.limit
    differs = cost.outcome == "different"
    return differs, cost.outcome == "no change found", cost.loss if differs else limit


def _cost_cell(rank: PlacementRank, of: str = "") -> SheetCell:
    cost = rank.cost
    text = "not replicated" if cost.limit is None else f"< {percent(rounded_up(cost.limit))}"
    if cost.outcome == "different":
        text = f"{'+' if rank.regime == 'latency' else '−'}{cost_text(cost)}"
    return SheetCell(f"{text}{of}", MARKS[cost.outcome], rank.worst.series)


def _use_row(use: ConcurrentUse) -> tuple[SheetCell, ...]:
    loss = "" if use.detectable is None else f"< {percent(use.detectable)}"
    mark = MARKS[use.outcome]
    return (
        SheetCell(use.name),
        SheetCell(loss if mark == "unclear" else "", mark, use.series),
        SheetCell(_rate(use)),
        SheetCell(f"{use.share:.0%}{_span(use.interval)}"),
    )
