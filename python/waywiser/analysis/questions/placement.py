"""Where to put buffers and threads, which GPUs to use together, and the cost of the worst choice.

Every question has choices, and each choice is a curve: copies of one GPU from the memory of each
NUMA node, of one node with each GPU, between each two GPUs, submitted by each node, and sets of as
many GPUs. All choices of a question are compared with each other, and all questions are decided
together (`waywiser.analysis.questions.curve_pairs`). If the system hides the nodes, the sides that
latencies show answer (`waywiser.analysis.questions.hidden`).
`waywiser.analysis.questions.placement_text` writes the sentences."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Literal, NamedTuple

from waywiser.analysis.questions import hidden
from waywiser.analysis.questions.curve_pairs import PairResult, curve_groups
from waywiser.analysis.questions.together import Together, found_together
from waywiser.curves.kinds import Kind, usual
from waywiser.curves.regimes import RATE_BYTES, Regime
from waywiser.curves.subject import MeasuredCurve, Subject
from waywiser.machine.machine import Machine
from waywiser.stats.decision import Decision, Verdict
from waywiser.stats.order import Interval
from waywiser.words import Value

PlacementQuestion = Literal["buffer", "side", "gpu", "thread", "pair", "set"]
"""What is chosen: the node of a buffer and of the thread that copies; the hidden side of both; the
GPU of a node; the node of the thread that submits a copy between GPUs; two GPUs that exchange data;
several GPUs that exchange data with the host at the same time."""

PlacementSource = Literal["system", "latency", "not known"]
"""What says which GPUs and memory are local to each other."""

Basis = Literal["measured", "no difference", "system", "not known"]
"""Why a node is named: it was measured to be better; the node makes no difference; only the system
names it; nobody knows it."""


class PlacementCost(Value, frozen=True):
    """How much longer a choice takes than the best one."""

    verdict: Verdict
    longer: float
    """Share of the time of the best choice: 0.5 is half as long again."""
    interval: Interval | None
    """95 %; None if nothing replicates it."""
    detectable: float | None
    """The smallest difference that would have been found; None if the noise is not known."""
    bytes: int
    """The size that shows it."""

    @property
    def limit(self) -> float | None:
        """The difference that is excluded: the farther end of the interval if both choices are
        equivalent, else what would have been found; None if neither is known, and for a choice that
        differs."""
        if self.verdict == "different":
            return None
        if self.verdict == "equivalent" and self.interval is not None:
            return max(abs(self.interval.low), abs(self.interval.high))
        return self.detectable


class PlacementChoice(Value, frozen=True):
    """One of several places to choose from."""

    name: str
    """``numa:0``, ``gpu:1``, ``gpu:0, gpu:1``, ``own side``."""
    rate: float
    """Bytes per second at the size that shows the cost of the worst choice; 0 if not known."""
    series: str
    """The text of the curve that shows it."""
    cost: PlacementCost | None
    """Against the best choice; None for the best one."""


class PlacementRank(Value, frozen=True):
    """The choices of one question, the best first."""

    question: PlacementQuestion
    subject: str
    """What the choice is made for: ``gpu:0``, ``numa:1``, ``gpu:0 -> gpu:1``, ``2 GPUs``; empty if
    for the whole machine."""
    transfer: str
    """The kind of transfer: ``pinned -> GPU by copy-engine``."""
    is_headline: bool
    """Whether paths with a GPU are compared by it: sentences name these kinds."""
    regime: Regime
    choices: tuple[PlacementChoice, ...]

    @property
    def best(self) -> PlacementChoice:
        return self.choices[0]

    @property
    def worst(self) -> PlacementChoice:
        return self.choices[-1]

    @property
    def good(self) -> tuple[PlacementChoice, ...]:
        """The best choice, and all that were not found to be slower."""
        return tuple(
            each
            for each in self.choices
            if each.cost is None or each.cost.verdict != "different" or each.cost.longer <= 0
        )

    @property
    def cost(self) -> PlacementCost:
        """The cost of the worst choice."""
        cost = self.worst.cost
        assert cost is not None, "a rank has two choices and more"
        return cost


class GpuPlacement(Value, frozen=True):
    """Where the buffers of one GPU, and the threads that copy, belong."""

    gpu: int
    node: int | None
    """The NUMA node; None if the node is not known."""
    basis: Basis
    side: int | None = None
    """The number of the group in `Placement.sides`, if latencies show two."""
    rank: PlacementRank | None = None
    """The rank that shows the largest cost; None if no node was compared with another."""


class NodePlacement(Value, frozen=True):
    """The GPUs that are nearest to one NUMA node."""

    node: int
    gpus: tuple[int, ...]
    """Those that were not measured to be slower than the best one."""
    basis: Basis
    rank: PlacementRank | None = None
    """The rank that shows the largest cost; None if no GPU was compared with another."""


class ConcurrentUse(Value, frozen=True):
    """Copies of several GPUs from or to the host that start together."""

    name: str
    series: str
    gpus: tuple[int, ...]
    is_bidirectional: bool
    rate: float
    """Bytes per second of all together."""
    alone_rate: float
    """The sum of what each reaches alone."""
    share: float
    """The share of that sum that is reached together."""
    interval: Interval | None
    """95 % of the share."""
    verdict: Verdict
    detectable: float | None


class ProcessSpread(Value, frozen=True):
    """How much the processes of a survey differ, if the hypervisor places their memory."""

    transfer: str
    series: str
    processes: int
    spread: float
    """By how much the slowest process takes longer than the fastest, at large sizes: the median
    over sizes and GPUs."""


class Placement(Value, frozen=True):
    """Where to put buffers and threads, and which GPUs to use together."""

    machine: str
    source: PlacementSource
    virtual: str
    """The hypervisor, under which virtual CPUs may move between sockets; empty on bare metal."""
    sides: tuple[tuple[int, ...], ...]
    """GPUs that are local to the same memory; one group if no sides are known."""
    gpus: tuple[GpuPlacement, ...]
    nodes: tuple[NodePlacement, ...]
    """Only of a machine that shows two nodes and more."""
    ranks: tuple[PlacementRank, ...]
    concurrent: tuple[ConcurrentUse, ...]
    spreads: tuple[ProcessSpread, ...]
    """Only of a virtual machine that shows one node or none."""
    sentences: tuple[str, ...] = ()
    """The answer in plain sentences, the most important ones first."""
    unanswered: tuple[str, ...] = ()

    def __str__(self) -> str:
        from waywiser.analysis.questions.placement_text import placement_text

        return placement_text(self)

    def of(self, question: PlacementQuestion) -> tuple[PlacementRank, ...]:
        """The ranks of one question."""
        return tuple(rank for rank in self.ranks if rank.question == question)


class _Option(NamedTuple):
    """A choice before anything is decided. Options with one trait should be equal."""

    name: str
    trait: str
    curve: MeasuredCurve


class _Question(NamedTuple):
    question: PlacementQuestion
    subject: str
    transfer: str
    is_headline: bool
    options: tuple[_Option, ...]


def placement(subject: Subject) -> Placement:
    """Ranks the places of buffers and threads, and the GPUs to use together."""
    from waywiser.analysis.questions.placement_text import sentences, unanswered

    machine, seen = subject.machine, subject.overview.sides
    by_latency = seen is not None and len(seen.groups) == 2
    hides = len({gpu.numa for gpu in machine.gpus if gpu.numa >= 0}) < 2 or _contradicted(subject)
    shows = len(machine.numa) > 1 and any(gpu.numa >= 0 for gpu in machine.gpus)
    source: PlacementSource = (
        "latency" if by_latency and hides else "system" if shows else "not known"
    )
    sides = seen.groups if source == "latency" and seen is not None else _shown_sides(machine)
    ranks = (*_decided(_questions(subject, sides, source)), *_side_ranks(subject, source))
    found = Placement(
        machine=subject.name,
        source=source,
        virtual=machine.virtual,
        sides=sides,
        gpus=tuple(_of_gpus(machine, ranks, sides, source)),
        nodes=tuple(_of_nodes(machine, ranks)),
        ranks=ranks,
        concurrent=tuple(_concurrent(subject)),
        spreads=tuple(_spreads(subject)) if machine.virtual and len(machine.numa) < 2 else (),
    )
    return _with_words(found, sentences(found, subject), unanswered(found, machine))


def _with_words(found: Placement, sentences: Iterable[str], unanswered: Iterable[str]) -> Placement:
    import msgspec

    return msgspec.structs.replace(found, sentences=tuple(sentences), unanswered=tuple(unanswered))


def _contradicted(subject: Subject) -> bool:
    return any(each.id == "affinity-contradicted" for each in hidden.findings(subject))


def _shown_sides(machine: Machine) -> tuple[tuple[int, ...], ...]:
    """The GPUs of each node that the system names; all together if it names none."""
    nodes: dict[int, list[int]] = {}
    for gpu in machine.gpus:
        nodes.setdefault(gpu.numa, []).append(gpu.index)
    return tuple(tuple(gpus) for _, gpus in sorted(nodes.items()))


# The questions.


def _questions(
    subject: Subject, sides: Sequence[tuple[int, ...]], source: PlacementSource
) -> Iterator[_Question]:
    curves = list(usual(subject))
    yield from _host_questions(subject.machine, curves, sides, source)
    yield from _thread_questions(subject.machine, curves)
    yield from _pair_questions(subject.machine, curves)
    yield from _set_questions(subject)


def _is_headline(kind: Kind, machine: Machine) -> bool:
    """Whether a program that feeds GPUs asks for the kind first: ordinary and page-locked memory,
    by the executor that such paths are compared by."""
    traits = machine.traits
    known = {traits.reference_memory(by, "numa") for by in ("host", "gpu")}
    return kind.reference == "gpu" and bool({kind.source, kind.destination} <= {*known, "GPU"})


_Found = dict[tuple[str, str], dict[str, _Option]]
"""Options by subject and kind, then by name."""


def _host_questions(
    machine: Machine,
    curves: Sequence[tuple[MeasuredCurve, Kind]],
    sides: Sequence[tuple[int, ...]],
    source: PlacementSource,
) -> Iterator[_Question]:
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
        headline[kind.bare] = _is_headline(kind, machine)
        option = _Option(str(node), kind.nearness, curve)
        nodes.setdefault((str(gpu), kind.bare), {})[str(node)] = option
        whose = str(node)
        if source == "latency":
            side = next((n for n, group in enumerate(sides) if gpu.index in group), 0)
            whose = f"{node}, side {'AB'[side]}"
        option = _Option(str(gpu), kind.nearness, curve)
        gpus.setdefault((whose, kind.bare), {})[str(gpu)] = option
    for question, found in (("buffer", nodes), ("gpu", gpus)):
        for (whose, label), options in found.items():
            yield _Question(
                question,  # type: ignore[arg-type]
                whose,
                label,
                headline[label],
                tuple(options.values()),
            )


def _thread_questions(
    machine: Machine, curves: Sequence[tuple[MeasuredCurve, Kind]]
) -> Iterator[_Question]:
    """The node that submits a copy between two GPUs."""
    found: _Found = {}
    headline: dict[str, bool] = {}
    for curve, kind in curves:
        transfer = curve.transfer
        if kind.group != "GPU-GPU" or not kind.submitter or transfer is None:
            continue
        source, destination = transfer.path.places
        node = f"numa:{transfer.parameters['submit']}"
        headline[kind.bare] = _is_headline(kind, machine)
        key = (f"{source} -> {destination}", kind.bare)
        found.setdefault(key, {})[node] = _Option(node, kind.submitter, curve)
    for (whose, label), options in found.items():
        yield _Question("thread", whose, label, headline[label], tuple(options.values()))


def _pair_questions(
    machine: Machine, curves: Sequence[tuple[MeasuredCurve, Kind]]
) -> Iterator[_Question]:
    """Two GPUs of all, by the direction that is slower, with peer access if it was measured."""
    pairs: dict[str, dict[tuple[int, int], list[tuple[MeasuredCurve, Kind]]]] = {}
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
            curve, kind = min(on or members, key=lambda each: each[0].points[-1].rate)
            headline = headline or _is_headline(kind, machine)
            options.append(_Option(f"gpu:{low}, gpu:{high}", kind.states, curve))
        yield _Question("pair", "", label, headline, tuple(options))


def _is_without_peer(curve: MeasuredCurve) -> bool:
    return curve.transfer is not None and curve.transfer.parameters.get("peer") == "off"


def _set_questions(subject: Subject) -> Iterator[_Question]:
    """The questions about sets of as many GPUs, which all exchange data with the host."""
    found: dict[tuple[str, str], list[_Option]] = {}
    for curve in subject.curves:
        gpus = _host_gpus(curve)
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
            found.setdefault((f"{len(gpus)} GPUs", label), []).append(_Option(name, "", curve))
    for (whose, label), options in found.items():
        yield _Question("set", whose, label, True, tuple(options))


def _host_gpus(curve: MeasuredCurve) -> tuple[int, ...]:
    """The GPUs of transfers that are all between the host and a GPU of their own; empty else."""
    transfers = curve.workload.transfers
    if any({p.kind for p in t.path.places} != {"numa", "gpu"} for t in transfers):
        return ()
    gpus = [place.index for t in transfers for place in t.path.places if place.kind == "gpu"]
    return tuple(sorted(set(gpus)))


# The decision.


def _decided(questions: Iterable[_Question]) -> Iterator[PlacementRank]:
    """Compares all options of each question, and decides about all questions together.

    Comparisons between the same two traits are one group: memory of a remote node against memory of
    the local one. So pairs of which nothing differs are not pooled with pairs of which much does.
    """
    several = [each for each in questions if len(each.options) > 1]
    pairs: dict[str, list[tuple[MeasuredCurve, MeasuredCurve]]] = {}
    for each in several:
        for one, other in combinations(each.options, 2):
            one, other = sorted((one, other), key=lambda option: option.trait)
            label = f"{each.question}: {each.transfer}: {one.trait}, {other.trait}"
            pairs.setdefault(label, []).append((one.curve, other.curve))
    known: dict[tuple[str, str], dict[Regime, PairResult]] = {}
    for group in curve_groups(pairs):
        for regime, result in group.regimes.items():
            for pair in result.pairs:
                known.setdefault((pair.a.text, pair.b.text), {})[regime] = pair
    for each in several:
        regimes: tuple[Regime, ...] = ("bandwidth", "medium", "latency")
        for regime in regimes:
            if rank := _rank(each, regime, known):
                yield rank


def _rank(
    question: _Question,
    regime: Regime,
    known: Mapping[tuple[str, str], Mapping[Regime, PairResult]],
) -> PlacementRank | None:
    """The options by the mean of their ratios to all others; None if few can be compared."""
    found: dict[tuple[str, str], PairResult] = {}
    for one, other in combinations(question.options, 2):
        for a, b in ((one, other), (other, one)):
            if pair := known.get((a.curve.text, b.curve.text), {}).get(regime):
                found[a.name, b.name] = pair
    level = dict.fromkeys((name for names in found for name in names), 0.0)
    for (first, second), pair in found.items():
        change = math.log(pair.evidence[0].ratio)
        level[first] += change
        level[second] -= change
    options = {option.name: option for option in question.options}
    order = sorted(level, key=lambda name: -level[name])
    costs = {name: _cost(found, order[0], name) for name in order[1:]}
    compared = {name: cost for name, cost in costs.items() if cost is not None}
    if not compared:
        return None
    order = [order[0], *sorted(compared, key=lambda name: compared[name].longer)]
    size = compared[order[-1]].bytes
    choices = []
    for name in order:
        curve = options[name].curve
        point = curve.at(size)
        rate = point.rate if point is not None else 0.0
        choices.append(PlacementChoice(name, rate, curve.text, compared.get(name)))
    return PlacementRank(
        question.question,
        question.subject,
        question.transfer,
        question.is_headline,
        regime,
        tuple(choices),
    )


def _cost(
    found: Mapping[tuple[str, str], PairResult], best: str, name: str
) -> PlacementCost | None:
    if pair := found.get((best, name)):
        decision, at = pair.evidence
        return _cost_of(decision, at.bytes, pair.verdict, is_first=False)
    if pair := found.get((name, best)):
        decision, at = pair.evidence
        return _cost_of(decision, at.bytes, pair.verdict, is_first=True)
    return None


def _cost_of(decision: Decision, size: int, verdict: Verdict, *, is_first: bool) -> PlacementCost:
    """The cost of the first or the second of a pair, whose ratio is that of bandwidths."""
    span, ratio = decision.interval, decision.ratio
    if is_first:
        interval = Interval(1 / span.high - 1, 1 / span.low - 1) if span and span.low > 0 else None
        return PlacementCost(verdict, 1 / ratio - 1, interval, decision.detectable, size)
    interval = Interval(span.low - 1, span.high - 1) if span else None
    return PlacementCost(verdict, ratio - 1, interval, decision.detectable, size)


def _side_ranks(subject: Subject, source: PlacementSource) -> Iterator[PlacementRank]:
    """The own side against the other one, of hidden sides."""
    for each in hidden.costs(subject) if source == "latency" else ():
        curve = subject.curve(each.curve)
        if curve is None:
            continue
        size = next(
            (p.bytes for p in reversed(curve.points) if _regime(p.bytes) == each.regime),
            curve.points[-1].bytes,
        )
        cost = _cost_of(each.decision, size, each.decision.verdict, is_first=True)
        own, other = (PlacementChoice(name, 0.0, each.curve, c)
                      for name, c in (("own side", None), ("other side", cost)))  # fmt: skip
        kind = next(kind for known, kind in usual(subject) if known.text == each.curve)
        headline = _is_headline(kind, subject.machine)
        yield PlacementRank("side", "", each.kind, headline, each.regime, (own, other))


def _regime(size: int) -> Regime:
    from waywiser.curves.regimes import START_BYTES

    if size < START_BYTES:
        return "latency"
    return "medium" if size < RATE_BYTES else "bandwidth"


# What follows for each GPU, and for several.


def _basis(
    ranks: Iterable[PlacementRank], question: PlacementQuestion, whose: str
) -> tuple[Basis, PlacementRank | None]:
    """What the ranks of one GPU or node decide, and the one that shows most: the largest cost, or
    the largest difference that is not excluded."""
    own = [each for each in ranks if (each.question, each.subject) == (question, whose)]
    own = [each for each in own if each.is_headline] or own
    if differ := [each for each in own if each.cost.verdict == "different"]:
        return "measured", max(differ, key=lambda each: each.cost.longer)
    rank = max(own, key=lambda each: math.inf if each.cost.limit is None else each.cost.limit,
               default=None)  # fmt: skip
    if own and all(each.cost.verdict == "equivalent" for each in own):
        return "no difference", rank
    return "system", rank


def _of_gpus(
    machine: Machine,
    ranks: Sequence[PlacementRank],
    sides: Sequence[tuple[int, ...]],
    source: PlacementSource,
) -> Iterator[GpuPlacement]:
    for gpu in machine.gpus:
        basis, rank = _basis(ranks, "buffer", f"gpu:{gpu.index}")
        side = None
        if source == "latency":
            side = next((n for n, group in enumerate(sides) if gpu.index in group), None)
        node = gpu.numa if gpu.numa >= 0 else None
        if basis == "measured" and rank is not None:
            node = _number(rank.best.name)
        elif basis == "system" and (source != "system" or node is None):
            basis, node = "not known", None
        yield GpuPlacement(gpu.index, node, basis, side, rank)


def _of_nodes(machine: Machine, ranks: Sequence[PlacementRank]) -> Iterator[NodePlacement]:
    for node in machine.numa if len(machine.numa) > 1 else ():
        basis, rank = _basis(ranks, "gpu", f"numa:{node.index}")
        gpus = [gpu.index for gpu in machine.gpus if gpu.numa == node.index]
        if basis != "system" and rank is not None:
            gpus = sorted(_number(each.name) for each in rank.good)
        elif not gpus:
            basis = "not known"
        yield NodePlacement(node.index, tuple(gpus), basis, rank)


def _number(name: str) -> int:
    """The number of ``numa:0`` or ``gpu:0``."""
    return int(name.partition(":")[2])


def _concurrent(subject: Subject) -> Iterator[ConcurrentUse]:
    """Sets of the executor that paths with a GPU are compared by, of two GPUs and more."""
    reference = subject.machine.traits.reference_executor("gpu")
    for each in found_together(subject)[0]:
        gpus = _host_gpus(each.curve)
        executors = {transfer.path.executor for transfer in each.transfers}
        if len(gpus) > 1 and executors == {reference} and not each.point.workload.shared:
            yield _use(each, gpus)


def _use(each: Together, gpus: tuple[int, ...]) -> ConcurrentUse:
    directions = {t.path.source.place.kind for t in each.transfers}
    return ConcurrentUse(
        name=each.curve.name,
        series=each.curve.text,
        gpus=gpus,
        is_bidirectional=len(directions) > 1,
        rate=each.rate,
        alone_rate=each.alone_rate,
        share=each.share,
        interval=each.share_interval,
        verdict=each.decision.verdict,
        detectable=each.decision.detectable,
    )


def _spreads(subject: Subject) -> Iterator[ProcessSpread]:
    """The processes of headline kinds at large sizes."""
    from waywiser.stats.order import median

    found: dict[str, list[tuple[MeasuredCurve, float, int]]] = {}
    for curve, kind in usual(subject):
        if kind.group != "host-GPU" or not _is_headline(kind, subject.machine):
            continue
        for point in curve.points:
            blocks = [block.median for block in point.estimate.blocks if block.median > 0]
            if point.bytes >= RATE_BYTES and len(blocks) > 1:
                spread = max(blocks) / min(blocks) - 1
                found.setdefault(kind.bare, []).append((curve, spread, len(blocks)))
    for label, known in found.items():
        most = max(processes for *_, processes in known)
        spreads = [spread for _, spread, processes in known if processes == most]
        yield ProcessSpread(label, known[0][0].text, most, median(spreads))
