"""Tries what an MPI library can do with each kind of memory: each operation in a launch of its own,
so that a crash costs one answer and no process."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence

from waywiser.machine import Machine, native
from waywiser.measure.probe.protocol import Attempt, Outcome, decode_from_worker, encode
from waywiser.measure.ranks.attempt import OPERATIONS
from waywiser.measure.ranks.launch import Launch
from waywiser.measure.ranks.mpi_library import MpiError, MpiLibrary
from waywiser.measure.ranks.rank_end import RankEnd
from waywiser.measure.supervise import Deadline
from waywiser.words import Memory, Place, Value

RANKS = 2
_SECONDS = 30.0
"""Seconds for one try; it takes one."""

_COMMAND = (sys.executable, "-m", "waywiser.measure.ranks.attempt")


class Try(Value, frozen=True):
    """Whether MPI moved the right bytes from and to a kind of memory."""

    operation: str
    memory: str
    """The memory of rank 0."""
    right: bool | None
    """None if the memory cannot be had, so that MPI was not tried."""
    reason: str = ""
    """Why not: what the library said, or how the rank ended."""
    cuda_stated: int = -1
    """Whether the library states that it takes memory of CUDA; -1 if it does not say."""


def memories(machine: Machine) -> list[tuple[Memory, ...]]:
    """The kinds of memory to try, of each a memory for each rank: first those that need no GPU,
    then, where there is a GPU, the others in each way to allocate them."""
    found: list[tuple[Memory, ...]] = []
    for kind in sorted(native.load().memories(), key=lambda kind: bool(kind["needs_gpu"])):
        places = [_place(kind["places"], machine, rank) for rank in range(RANKS)]
        if None in places or (kind["needs_gpu"] and not machine.gpus):
            continue
        variants: list[dict[str, str]] = [{}]
        for parameter in kind["parameters"] if kind["needs_gpu"] else ():
            variants += [{parameter["name"]: choice} for choice in parameter["choices"][1:]]
        for variant in variants:
            found.append(
                tuple(Memory(kind["name"], place, variant) for place in places if place is not None)
            )
    return found


def untaken_kinds(
    library: MpiLibrary, machine: Machine, template: str = ""
) -> dict[str, dict[str, str]]:
    """Returns, for each operation, the kinds of memory on GPUs that it does not take, each with the
    reason. A kind that is not sent is not exchanged either, and is listed once. Raises `MpiError`
    if ranks cannot be started at all. A machine without GPUs is not asked."""
    found: dict[str, dict[str, str]] = {operation: {} for operation in OPERATIONS}
    if not machine.gpus:
        return found
    known = native.load().memories()
    on_gpu = {kind["name"] for kind in known if "gpu" in kind["places"]}
    plain = [of_ranks for of_ranks in memories(machine) if not of_ranks[0].variant]
    first = next(of_ranks for of_ranks in plain if of_ranks[0].kind not in on_gpu)
    try_one(library, machine, "send", first, template)
    for of_ranks in plain:
        kind = of_ranks[0].kind
        if kind in on_gpu:
            try:
                tried = try_in_turn(library, machine, tuple(OPERATIONS), of_ranks, template)
            except MpiError as error:
                found["send"][kind] = error.what
            else:
                for each in tried:
                    found[each.operation] |= {kind: each.reason} if each.right is False else {}
    return found


def _place(kinds: Sequence[str], machine: Machine, rank: int) -> Place | None:
    if "gpu" in kinds and machine.gpus:
        return Place.parse(f"gpu:{machine.gpus[min(rank, len(machine.gpus) - 1)].index}")
    return Place.parse(f"numa:{machine.numa[0].index}") if "numa" in kinds else None


def try_all(library: MpiLibrary, machine: Machine, template: str = "") -> Iterator[Try]:
    """Each operation with each kind of memory, as it is tried. Raises `MpiError` if ranks cannot
    be started at all; later it is a result that MPI does not start beside a GPU's memory."""
    starts = False
    for of_ranks in memories(machine):
        for operation in OPERATIONS:
            try:
                yield try_one(library, machine, operation, of_ranks, template)
            except MpiError as error:
                if not starts:
                    raise
                yield Try(operation, str(of_ranks[0]), False, error.what)
            starts = True


def try_one(
    library: MpiLibrary,
    machine: Machine,
    operation: str,
    of_ranks: Sequence[Memory],
    template: str = "",
) -> Try:
    """One operation with a memory of each rank. Raises `MpiError` if MPI does not start."""
    return try_in_turn(library, machine, (operation,), of_ranks, template)[0]


def try_in_turn(
    library: MpiLibrary,
    machine: Machine,
    operations: Sequence[str],
    of_ranks: Sequence[Memory],
    template: str = "",
) -> list[Try]:
    """Operations in one launch, up to the first that is not right. Raises `MpiError` if MPI does
    not start."""
    memory = str(of_ranks[0])
    found: list[Try] = []
    with Launch(library, _COMMAND, len(of_ranks), template=template) as launch:
        for rank, own in zip(_by_number(launch.ranks), of_ranks, strict=True):
            attempt = Attempt(library.bridge, tuple(operations), own, machine)
            rank.channel.send(encode(attempt), Deadline(_SECONDS))
        launch.join()
        stated = min(rank.joined.cuda_stated for rank in launch.ranks if rank.joined)
        for operation in operations:
            right, reason = _answered(launch, operation)
            found.append(Try(operation, memory, right, reason, stated))
            if not right:
                break
        else:
            launch.launcher.await_end(Deadline(_SECONDS))
    return found


def _answered(launch: Launch, operation: str) -> tuple[bool | None, str]:
    """Whether all ranks had the right bytes, None if MPI was not tried; and why not."""
    try:
        answers = launch.answers(operation, _SECONDS)
    except MpiError as error:
        return False, error.what
    found = map(decode_from_worker, answers)
    failed = next((each for each in found if isinstance(each, Outcome) and each.problem), None)
    if failed is None:
        return True, ""
    return (None if failed.unsupported else False), failed.problem


def _by_number(ranks: Sequence[RankEnd]) -> list[RankEnd]:
    """The ranks in the order that the launcher states, before MPI has started."""
    return sorted(ranks, key=lambda rank: rank.stated)
