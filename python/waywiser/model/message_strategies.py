"""The strategies for messages between GPUs of two nodes that a profile knows, as measured and as
modelled.

Bienz et al. (HPEC 2021) compare them:

- *direct*: GPU-aware MPI, each message from the memory of a GPU to that of another;
- *3-step*: a copy of all bytes to the host, messages between the hosts, a copy to the other GPU;
- *all cores*: the same, but processes of the host share the bytes equally. They are taken to share
  the memory that is copied to;
- *extra message*: the same, but one process sends the others their shares, and gathers them;
- *duplicate pointer*: each of these processes copies its own share from the GPU and to it, measured
  while the other GPUs of the node do the same.

Each step is measured, or modelled, by itself. `measured_whole` makes a strategy of a method that
was measured from end to end; such methods are compared with these as ``others``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from waywiser.model.count_table import CountTimes
from waywiser.model.errors import ModelError
from waywiser.model.messages import ONE_SENDER, Locality, MessageTimes
from waywiser.model.rank_nodes import RankNode
from waywiser.model.strategies import Strategy, StrategyStep
from waywiser.model.strategy_steps import (
    GPU,
    HOST,
    PLACES,
    MessageModels,
    MessageStep,
    StepMaker,
    job_times,
)
from waywiser.words import Value

DIRECT, THREE_STEP, ALL_CORES = "direct", "3-step", "all cores"
EXTRA_MESSAGE, OWN_SHARES = "extra message", "duplicate pointer"
OF_ONE_SENDER = (ONE_SENDER, "ping-pong")
"""Tests whose numbers and sizes are those of messages to compare strategies for."""


class MissingStrategy(Value, frozen=True):
    """A strategy that is not known at all."""

    name: str
    is_modelled: bool
    """Whether the model lacks it; else the measurements do."""
    reason: str


class MessageStrategies(Value, frozen=True):
    """What can be compared."""

    modelled: tuple[Strategy, ...]
    measured: tuple[Strategy, ...]
    missing: tuple[MissingStrategy, ...]
    counts: tuple[int, ...]
    """Numbers of messages that were measured, ascending."""
    sizes: tuple[int, ...]
    """Bytes of one message that were measured, ascending."""
    processes: int | None
    """Processes of each GPU that share its messages; None if not known."""
    copies: Locality | None
    """Where copies are; None without any."""
    extents: tuple[str, ...]
    """What of the steps is known: beyond it a strategy is not."""
    notes: tuple[str, ...]
    subject: str = "Messages from a GPU to GPUs of another node"
    unit: str = "message"
    """What the numbers are of."""
    replicate: str = "job"
    """The kind of replicate, such as a job or a process."""

    @property
    def rivals(self) -> tuple[str, ...]:
        """All that may be the fastest, known or not: not those that have all steps of another, and
        more."""
        known = [each.name for each in (*self.modelled, *self.measured)]
        names = dict.fromkeys((*known, *(each.name for each in self.missing)))
        return tuple(name for name in names if name != EXTRA_MESSAGE)


def strategies_of(
    messages: Sequence[MessageTimes],
    models: MessageModels,
    node: RankNode,
    *,
    processes: int | None = None,
    copies: Locality | None = None,
    others: Mapping[str, CountTimes] = {},
) -> MessageStrategies:
    """All strategies that are known in part at least. ``processes`` of each GPU and the place of
    ``copies`` are by default those of the profile. Raises `ModelError` for a place that no copy was
    measured at. ``others`` are methods that were measured from end to end, by name."""
    place, notes = _place(models, node, copies)
    share = processes or node.processes_of_a_gpu
    maker = StepMaker(messages, models, node.sender, place)
    steps = _steps(maker, share)
    modelled, no_models = _strategies(steps, is_modelled=True)
    measured, no_times = _strategies(steps, is_modelled=False)
    unshared = _no_share(share, node)
    between = [each for each in messages if each.locality == "off-node"]
    points = {(each.bytes, each.count) for each in between if each.test in OF_ONE_SENDER}
    points = points or {(each.bytes, 1) for each in between}
    of_others = {key for times in others.values() for key in times}
    return MessageStrategies(
        modelled=tuple(modelled),
        measured=(*measured, *(measured_whole(name, own) for name, own in others.items())),
        missing=(*no_models, *no_times, *unshared),
        counts=tuple(sorted({number for _, number in points | of_others})),
        sizes=tuple(sorted({n for n, k in points if k == 1} | {n for n, _ in of_others})),
        processes=share,
        copies=place,
        extents=tuple(dict.fromkeys(x.extent for own in steps.values() for x in own if x.extent)),
        notes=(*notes, *maker.notes),
    )


def _steps(maker: StepMaker, share: int | None) -> dict[str, list[MessageStep]]:
    """The steps of each strategy; without those that need several processes, if there are none."""
    to_host, to_gpu = maker.copy(GPU, HOST), maker.copy(HOST, GPU)
    found = {DIRECT: [maker.several(GPU)], THREE_STEP: [to_host, maker.several(HOST), to_gpu]}
    if share is not None and share > 1:
        shared = maker.shared(share)
        found[ALL_CORES] = [to_host, shared, to_gpu]
        ends = [maker.between_processes(name, share) for name in ("distribute", "gather")]
        found[EXTRA_MESSAGE] = [to_host, ends[0], shared, ends[1], to_gpu]
        own = [maker.own_copies(kind, share) for kind in (GPU, HOST)]
        found[OWN_SHARES] = [own[0], shared, own[1]]
    return found


def place_of(text: str) -> Locality | None:
    """The place of copies that a user names; None of an empty text. Raises `ModelError`."""
    names = dict(zip((*PLACES, "off-socket"), (*PLACES, PLACES[1]), strict=True))
    if text and text not in names:
        raise ModelError(f"{text!r} is no place of copies", remedy=f"write {' or '.join(PLACES)}")
    return names.get(text)


def require_two(found: MessageStrategies, where: str) -> None:
    """Raises `ModelError` if there are no two strategies to compare."""
    if max(len(found.modelled), len(found.measured)) > 1:
        return
    known = {each.name for each in (*found.modelled, *found.measured)}
    plain = {DIRECT, THREE_STEP} - known
    reasons = {each.name: each.reason for each in found.missing if each.name in plain}
    raise ModelError(
        f"only {known.pop()} is known of the strategies between GPUs of two nodes" if known
        else "has no messages between GPUs of two nodes, which strategies are for",
        where=where,
        remedy="import results of BenchPress that it lacks: "
        + "; ".join(f"{name}: {reason}" for name, reason in reasons.items()),
    )  # fmt: skip


def measured_whole(name: str, times: CountTimes) -> Strategy:
    """A method whose times are from end to end, by bytes and number of messages."""
    table = job_times(times)
    return Strategy(name, (StrategyStep("all", lambda count, bytes: table.get((count, bytes))),))


def _no_share(share: int | None, node: RankNode) -> list[MissingStrategy]:
    """Strategies without several processes to share the bytes."""
    if share is not None and share > 1:
        return []
    more = "say more with --processes"
    reason = f"each GPU has one process in these results, so nothing is shared: {more}"
    if share is None:
        reason = f"it is not known how many processes each GPU has ({node.text}): {more}"
    elif share < 1:
        reason = f"there are fewer processes than GPUs ({node.text}): {more}"
    return [MissingStrategy(name, is_modelled, reason)
            for name in (ALL_CORES, EXTRA_MESSAGE, OWN_SHARES)
            for is_modelled in (True, False)]  # fmt: skip


def _strategies(
    strategies: Mapping[str, Sequence[MessageStep]], *, is_modelled: bool
) -> tuple[list[Strategy], list[MissingStrategy]]:
    found, missing = [], []
    for name, steps in strategies.items():
        costs = [each.modelled if is_modelled else each.measured for each in steps]
        known = [StrategyStep(each.name, cost) for each, cost in zip(steps, costs, strict=True)
                 if cost is not None]  # fmt: skip
        if len(known) == len(steps):
            found.append(Strategy(name, tuple(known)))
        else:
            lacks = dict.fromkeys(
                each.lacks for each, cost in zip(steps, costs, strict=True) if cost is None
            )
            missing.append(MissingStrategy(name, is_modelled, f"it needs {', '.join(lacks)}"))
    return found, missing


def _place(
    models: MessageModels, node: RankNode, requested: Locality | None
) -> tuple[Locality | None, list[str]]:
    """(where copies are, what is to be known of it)."""
    known = {kind: [each.locality for each, _ in models.classes
                    if (each.source, each.destination) == kind]
             for kind in ((GPU, HOST), (HOST, GPU))}  # fmt: skip
    both = [place for place in PLACES if all(place in each for each in known.values())]
    if requested is not None and requested not in both:
        there = " and ".join(both)
        raise ModelError(
            f"no copies {requested} in both directions were measured",
            remedy=f"write --copies {there}" if len(both) == 1 else
            f"measured are those {there}" if both else "import results with copies (memcpy)",
        )  # fmt: skip
    if requested is not None or not both:
        return requested, []
    of_sender = [each for each, _ in models.classes if node.sender in each.pairs]
    own = {each.locality for each in of_sender if (each.source, each.destination) == (GPU, HOST)}
    stated = next((place for place in both if place in own), None)
    if stated is not None:
        return stated, []
    note = f"which GPU a sender has is not stated: its copies are taken to be {both[0]}"
    more = f"; --copies {both[1]} takes the others" if len(both) > 1 else ""
    return both[0], [f"{note}{more}"]
