"""Measures copies between host memory and one GPU over the links of several GPUs, and their limits.

    python benchmarks/relay.py [pinned] [pageable] [--gpu 0] [--links 1,2,4,8] [--gib 8]
                               [--rounds 7] [--within SECONDS] [--json FILE]

`pinned`: relay copies by `waywiser.transfer`, from and to host memory on both sockets, over 1, 2,
4 and 8 links. In every round the same links are measured without a relay copy: each alone, all at
once, with memory of their own socket and with the memory of the relay copy, with and without copies
over NVLink. `link_limits.py` decides from them which resource holds each relay copy. Latencies of
small copies show on which socket a piece of memory is, as in a survey, because a virtual machine
may hide its sockets.

`pageable`: the same copies of pageable memory, beside what the CPUs alone can copy between that
memory and small buffers, and beside the copy of PyTorch.

Everything is a whole call, timed by the host, in random order within a round. Some bytes of every
chunk are checked before and after. Needs torch, and works with any number of GPUs.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import random
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import Any, Protocol

import link_limits
import msgspec
import numpy as np
from link_limits import COPY_ENGINE, HOST_MEMORY, INTERCONNECT, LINK, NVLINK, LinkLimit, find_limit

from waywiser import transfer
from waywiser.profile.locality import Sides, decide_sides
from waywiser.stats.order import median, median_interval
from waywiser.words.number_format import count
from waywiser.words.records import BlockLatencies, Locality

MIB, GIB = 1 << 20, 1 << 30
PIECE = 32 * MIB
"""Bytes that links take from a common queue when they are measured without a relay copy."""
BLOCK = 2 * GIB
"""Bytes of one allocation of host memory, and of one relay copy."""
MARKED = 256 << 10
"""Some bytes of so many are checked: chunks of copies are larger."""
IN_FLIGHT = 2
"""Pieces that are queued on a link at once."""
LATENCY_ROUNDS, LATENCY_COPIES = 8, 5
RING = 64 << 10
"""Bytes of the buffer of a CPU that copies pageable memory alone: it stays in its caches."""
GIL_ITEMS = 512
"""Items from which on numpy copies without the GIL (500, numpy 2)."""
PLAIN = "copy of torch"
ALONE = "CPUs alone"
PINNED_SHARE = 0.65
"""Part of the time that pinned memory may take, if pageable memory is measured too."""
BALANCED = 0.35
"""Least part of the memory on either socket; more memory is allocated once to reach it."""

AIMS = {
    ("pinned", "H2D"): 300e9,
    ("pinned", "D2H"): 140e9,
    ("pageable", "H2D"): 90e9,
    ("pageable", "D2H"): 60e9,
}
"""What is aimed at over eight links, in bytes per second."""
OF_LINKS, OF_CPUS = 0.9, 0.8
"""Aims: the part of what all links carry at once (pinned), and of what the CPUs alone copy."""


class Gpus(Protocol):
    """GPU memory and streams."""

    count: int
    name: str

    def empty(self, gpu: int, nbytes: int) -> Any: ...
    def stream(self, gpu: int) -> Any: ...
    def copy(self, to: Any, of: Any) -> None:
        """Copies as programs do without the library, and waits."""


class TorchGpus:
    """The GPUs of PyTorch."""

    def __init__(self) -> None:
        import torch

        self._torch = torch
        self.count = torch.cuda.device_count()
        self.name = f"{torch.cuda.get_device_name(0)}, torch {torch.__version__}"

    def empty(self, gpu: int, nbytes: int) -> Any:
        return self._torch.empty(nbytes, dtype=self._torch.uint8, device=f"cuda:{gpu}")

    def stream(self, gpu: int) -> Any:
        return self._torch.cuda.Stream(gpu)

    def copy(self, to: Any, of: Any) -> None:
        tensors = [
            self._torch.from_numpy(each) if isinstance(each, np.ndarray) else each
            for each in (to, of)
        ]
        tensors[0].copy_(tensors[1])
        for each in tensors:
            if each.is_cuda:
                self._torch.cuda.synchronize(each.device)


@dataclass(frozen=True)
class Sizes:
    """Bytes that a measurement moves."""

    block: int = BLOCK
    blocks: int = 4
    piece: int = PIECE

    @property
    def total(self) -> int:
        return self.block * self.blocks

    @property
    def pieces_per_block(self) -> int:
        return self.block // self.piece


@dataclass
class Memory:
    """Pinned host memory in blocks, and the socket of each of its pieces."""

    blocks: list[Any]
    sides: list[list[int | None]]
    """The sides of the pieces of each block; None if a side is not known."""

    def pieces(self, size: int) -> Iterator[tuple[Any, int | None]]:
        for block, sides in zip(self.blocks, self.sides, strict=True):
            for number, side in enumerate(sides):
                yield block[number * size : (number + 1) * size], side

    def shares(self) -> dict[str, float]:
        """The part of the pieces on each side."""
        all_sides = [side for sides in self.sides for side in sides]
        names = {0: "A", 1: "B", None: "unknown"}
        return {
            name: all_sides.count(side) / len(all_sides)
            for side, name in names.items()
            if side in all_sides
        }


@dataclass
class Measured:
    """One number of links in one direction: bandwidths of each round, in bytes per second."""

    gpus: list[int]
    relay: list[float] = field(default_factory=list)
    one_by_one: list[float] = field(default_factory=list)
    """The relay copies of the blocks one after the other, as one program calls them."""
    bounds: dict[str, list[float]] = field(default_factory=dict)

    def add(self, bound: str, rate: float) -> None:
        self.bounds.setdefault(bound, []).append(rate)


# --- memory and sockets ----------------------------------------------------------------------


def allocate(sizes: Sizes, blocks: int) -> list[Any]:
    """Allocates pinned blocks, in turn from each NUMA node that the system shows."""
    nodes = [node["index"] for node in transfer.machine()["numa"]]
    found = []
    for number in range(blocks):
        numa = nodes[number % len(nodes)] if len(nodes) > 1 else None
        block = transfer.pinned_empty(sizes.block, "u1", numa=numa)
        found.append(block)
    return found


def find_sides(gpus: Gpus, plain: Any, blocks: Sequence[Any], sizes: Sizes) -> Sides | None:
    """The sockets of GPUs and of all pieces, by small copies from each piece to each GPU."""
    small = [gpus.empty(gpu, 8) for gpu in range(gpus.count)]
    pieces = [
        block[number * sizes.piece : (number + 1) * sizes.piece]
        for block in blocks
        for number in range(sizes.pieces_per_block)
    ]
    rounds: list[list[tuple[float, ...]]] = [[] for _ in pieces]
    for turn in range(LATENCY_ROUNDS):  # a disturbance is then not of all rounds of one piece
        for piece, found in zip(pieces, rounds, strict=True):
            part = piece[turn * 4096 :][:8]
            found.append(tuple(latency(plain, to, part) for to in small))
    records = tuple(BlockLatencies("unverified", tuple(found)) for found in rounds)
    numbers = tuple(range(gpus.count))
    return decide_sides([Locality(1, "", "pinned", gpus=numbers, blocks=records)])


def latency(plain: Any, to: Any, of: Any) -> float:
    times = []
    for _ in range(LATENCY_COPIES):
        start = time.perf_counter()
        plain.copy(to, of)
        times.append(time.perf_counter() - start)
    return median(times)


def pinned_memory(gpus: Gpus, plain: Any, sizes: Sizes) -> tuple[Memory, Sides | None]:
    """Pinned memory on both sockets, as far as the system gives memory of both."""
    blocks = allocate(sizes, sizes.blocks)
    sides = find_sides(gpus, plain, blocks, sizes)
    if sides is not None and len(sides.groups) == 2:
        found = piece_sides(sides, sizes)
        if least_share(found) < BALANCED:
            blocks += allocate(sizes, sizes.blocks)
            sides = find_sides(gpus, plain, blocks, sizes) or sides
            found = piece_sides(sides, sizes)
        chosen = balanced(found, sizes.blocks)
        return Memory([blocks[n] for n in chosen], [found[n] for n in chosen]), sides
    unknown: list[list[int | None]] = [[None] * sizes.pieces_per_block for _ in blocks]
    return Memory(blocks, unknown), sides


def piece_sides(sides: Sides, sizes: Sizes) -> list[list[int | None]]:
    found = [each.side for each in sides.blocks]
    per_block = sizes.pieces_per_block
    return [found[at : at + per_block] for at in range(0, len(found), per_block)]


def least_share(found: Sequence[Sequence[int | None]]) -> float:
    every = [side for sides in found for side in sides]
    return min(every.count(0), every.count(1)) / len(every)


def balanced(found: Sequence[Sequence[int | None]], blocks: int) -> list[int]:
    """Numbers of the blocks to use, so that the two sides have about as many pieces."""
    excess = {n: list(sides).count(0) - list(sides).count(1) for n, sides in enumerate(found)}
    chosen: list[int] = []
    total = 0
    while len(chosen) < blocks:
        best = min((n for n in excess if n not in chosen), key=lambda n: abs(total + excess[n]))
        chosen.append(best)
        total += excess[best]
    return sorted(chosen)


def in_turns(target: int, gpus: int, sides: Sides | None) -> list[int]:
    """All GPUs, the target first, then in turn from the other socket and from its own one."""
    others = [gpu for gpu in range(gpus) if gpu != target]
    own = sides.group_of(target) if sides is not None else None
    if sides is None or own is None:
        return [target, *others]
    local = [gpu for gpu in others if sides.group_of(gpu) == own]
    remote = [gpu for gpu in others if sides.group_of(gpu) != own]
    order = [target]
    while local or remote:
        for group in (remote, local):
            if group:
                order.append(group.pop(0))
    return order


# --- copies that run at once -----------------------------------------------------------------


class Tickets:
    """Numbers from 0 that lanes take in turn; none after the last, or after `end`."""

    def __init__(self, count: int | None) -> None:
        self._numbers = iter(range(count)) if count is not None else cycle([0])
        self._lock = threading.Lock()
        self._ended = False

    def take(self) -> int | None:
        with self._lock:
            return None if self._ended else next(self._numbers, None)

    def end(self) -> None:
        self._ended = True


@dataclass
class Lane:
    """Copies of pieces in one stream. ``pair`` has the destination and the source of a ticket."""

    stream: Any
    tickets: Tickets
    pair: Callable[[int], tuple[Any, Any]]


def run_at_once(plain: Any, lanes: Sequence[Lane], beside: Sequence[Lane] = ()) -> float:
    """Seconds from the common start until all lanes have ended. The copies ``beside`` them go on
    until then."""
    failures: list[BaseException] = []
    start = threading.Barrier(len(lanes) + len(beside) + 1)

    def work(lane: Lane) -> None:
        pending: deque[Any] = deque()
        try:
            start.wait()
            while (ticket := lane.tickets.take()) is not None:
                pending.append(plain.copy_async(*lane.pair(ticket), stream=lane.stream))
                if len(pending) == IN_FLIGHT:
                    pending.popleft().result()
            for handle in pending:
                handle.result()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(lane,)) for lane in (*lanes, *beside)]
    for thread in threads:
        thread.start()
    start.wait()
    began = time.perf_counter()
    for thread in threads[: len(lanes)]:
        thread.join()
    seconds = time.perf_counter() - began
    for lane in beside:
        lane.tickets.end()
    for thread in threads[len(lanes) :]:
        thread.join()
    if failures:
        raise failures[0]
    return seconds


# --- pinned memory ---------------------------------------------------------------------------


class PinnedLinks:
    """Measures relay copies of pinned memory and the links that they use."""

    def __init__(self, gpus: Gpus, target: int, sizes: Sizes) -> None:
        self.gpus = gpus
        self.target = target
        self.sizes = sizes
        self.plain = transfer.Context(plain=True, policy="off")
        self.memory, self.sides = pinned_memory(gpus, self.plain, sizes)
        self.order = in_turns(target, gpus.count, self.sides)
        self.whole = gpus.empty(target, sizes.total)
        self.streams = {gpu: gpus.stream(gpu) for gpu in self.order}
        self.peer_streams = {gpu: gpus.stream(gpu) for gpu in self.order}
        self.small = {
            gpu: [gpus.empty(gpu, sizes.piece) for _ in range(IN_FLIGHT)] for gpu in self.order
        }
        self.landing = {gpu: gpus.empty(target, sizes.piece) for gpu in self.order}
        self.contexts: dict[int, Any] = {}
        pieces = list(self.memory.pieces(sizes.piece))
        self.pieces = [piece for piece, _ in pieces]
        self.of_side = {
            side: [piece for piece, own in pieces if own == side]
            for side in {own for _, own in pieces}
        }

    @property
    def two_sides(self) -> bool:
        return self.sides is not None and len(self.sides.groups) == 2

    def context(self, links: int) -> Any:
        if links not in self.contexts:
            self.contexts[links] = transfer.Context(relays=self.order[1:links], policy="off")
        return self.contexts[links]

    def close(self) -> None:
        for context in (self.plain, *self.contexts.values()):
            context.close()

    # --- relay copies

    def device_part(self, number: int) -> Any:
        return self.whole[number * self.sizes.block : (number + 1) * self.sizes.block]

    def pairs(self, direction: str) -> list[tuple[Any, Any]]:
        """The destination and the source of each block."""
        found = [(self.device_part(n), block) for n, block in enumerate(self.memory.blocks)]
        return found if direction == "H2D" else [(host, device) for device, host in found]

    def relay(self, links: int, direction: str) -> float:
        """The bandwidth of all blocks, whose copies are queued at once."""
        context = self.context(links)
        start = time.perf_counter()
        for handle in [context.copy_async(*pair) for pair in self.pairs(direction)]:
            handle.result()
        return self.sizes.total / (time.perf_counter() - start)

    def one_by_one(self, links: int, direction: str) -> float:
        """The bandwidth of the same copies, each after the end of the one before."""
        context = self.context(links)
        start = time.perf_counter()
        for pair in self.pairs(direction):
            context.copy_async(*pair).result()
        return self.sizes.total / (time.perf_counter() - start)

    # --- links without relay copies

    def local_pieces(self, gpu: int) -> list[Any]:
        """Host memory of a GPU's own socket; all memory if there is one socket."""
        if not self.two_sides or self.sides is None:
            return self.pieces
        return self.of_side.get(self.sides.group_of(gpu), [])

    def lane(self, gpu: int, direction: str, tickets: Tickets, pieces: Sequence[Any]) -> Lane:
        buffers = self.small[gpu]
        into = direction == "H2D"

        def pair(ticket: int) -> tuple[Any, Any]:
            device = buffers[ticket % len(buffers)]
            host = pieces[ticket % len(pieces)]
            return (device, host) if into else (host, device)

        return Lane(self.streams[gpu], tickets, pair)

    def peer_lane(self, relay: int, direction: str, tickets: Tickets) -> Lane:
        ends = (self.landing[relay], self.small[relay][0])
        ends = ends if direction == "H2D" else ends[::-1]
        return Lane(self.peer_streams[relay], tickets, lambda _: ends)

    def alone(self, gpu: int, direction: str) -> float:
        """The bandwidth of one link alone, with memory of its own socket."""
        pieces = self.local_pieces(gpu) or self.pieces
        count = max(len(self.pieces) // self.gpus.count, 2)
        tickets = Tickets(count)
        seconds = run_at_once(self.plain, [self.lane(gpu, direction, tickets, pieces)])
        return count * self.sizes.piece / seconds

    def at_once(self, used: Sequence[int], direction: str, *, own: bool, peers: bool) -> float:
        """The bandwidth of links at once, which take pieces from a common queue. ``own``: with
        memory of their own sockets; else with the memory of the relay copy. ``peers``: while each
        relay also copies over NVLink."""
        tickets, endless = Tickets(len(self.pieces)), Tickets(None)
        lanes = [
            self.lane(gpu, direction, tickets, self.local_pieces(gpu) if own else self.pieces)
            for gpu in used
        ]
        beside = [self.peer_lane(gpu, direction, endless) for gpu in used[1:]] if peers else []
        seconds = run_at_once(self.plain, lanes, beside)
        return len(self.pieces) * self.sizes.piece / seconds

    def over_nvlink(self, used: Sequence[int], direction: str, own_link: float) -> float:
        """The bandwidth of all relays at once over NVLink, and that of the GPU's own link."""
        tickets = Tickets(len(self.pieces))
        lanes = [self.peer_lane(gpu, direction, tickets) for gpu in used[1:]]
        seconds = run_at_once(self.plain, lanes)
        return len(self.pieces) * self.sizes.piece / seconds + own_link

    # --- rounds

    def measure_round(self, direction: str, found: dict[int, Measured]) -> None:
        """Measures everything once and adds it to what was found, by number of links."""
        used = {links: self.order[:links] for links in found}
        alone = {gpu: self.alone(gpu, direction) for gpu in used[max(used)]}
        for links in random.sample(list(found), len(found)):
            each, gpus = found[links], used[links]
            each.add(LINK, sum(alone[gpu] for gpu in gpus))
            steps: list[tuple[list[float], Callable[[], float]]] = [
                (each.relay, partial(self.relay, links, direction)),
                (each.one_by_one, partial(self.one_by_one, links, direction)),
            ]
            plans: dict[str, Callable[[], float]] = {}
            if links > 1 and all(self.local_pieces(gpu) for gpu in gpus):
                plans[HOST_MEMORY] = partial(self.at_once, gpus, direction, own=True, peers=False)
            if self.two_sides:
                plans[INTERCONNECT] = partial(self.at_once, gpus, direction, own=False, peers=False)
            if links > 1:
                plans[COPY_ENGINE] = partial(self.at_once, gpus, direction, own=False, peers=True)
                plans[NVLINK] = partial(self.over_nvlink, gpus, direction, alone[self.target])
            steps += [(each.bounds.setdefault(name, []), call) for name, call in plans.items()]
            for rates, call in random.sample(steps, len(steps)):
                rates.append(call())

    def check(self, links: int) -> None:
        """Compares parts of all chunks of relay copies there and back. Raises ValueError at a
        difference."""
        for block in self.memory.blocks:
            mark(block)
        self.relay(links, "H2D")
        for block in self.memory.blocks:
            marks_of(block)[:] = 0
        self.relay(links, "D2H")
        if not all(marked(block) for block in self.memory.blocks):
            raise ValueError(f"a relay copy over {links} links moved wrong bytes")


def marks_of(memory: Any) -> Any:
    """The last bytes of every `MARKED` bytes."""
    return memory.reshape(-1, min(MARKED, memory.nbytes))[:, -8:]


def expected_marks(memory: Any) -> Any:
    marks = marks_of(memory)
    return (37 * np.arange(len(marks)) % 251 + 1).astype("u1")[:, None]


def mark(memory: Any) -> None:
    marks_of(memory)[:] = expected_marks(memory)


def marked(memory: Any) -> bool:
    return bool((marks_of(memory) == expected_marks(memory)).all())


def measure_pinned(
    gpus: Gpus, target: int, links: Sequence[int], sizes: Sizes, rounds: int, within: float
) -> dict[str, Any]:
    """Rounds of all measurements, as many as fit, and the limit of each number of links."""
    began = time.monotonic()
    bench = PinnedLinks(gpus, target, sizes)
    found = {
        direction: {n: Measured(bench.order[:n]) for n in links} for direction in ("H2D", "D2H")
    }
    for n in links:  # also allocates staging memory and enables peer access
        bench.check(n)
    started, done = time.monotonic(), 0
    while done < rounds:
        now = time.monotonic()
        if done > 0 and now - began + (now - started) / done > within:
            break
        for direction, each in found.items():
            bench.measure_round(direction, each)
        done += 1
    for n in links:
        bench.check(n)
    sides = bench.sides
    result = {
        "target": target,
        "order": bench.order,
        "bytes": sizes.total,
        "rounds": done,
        "groups": [list(group) for group in sides.groups] if sides else [],
        "p_value": sides.p_value if sides else None,
        "memory": bench.memory.shares(),
        "measured": {d: {n: asdict(m) for n, m in each.items()} for d, each in found.items()},
    }
    bench.close()
    return result


def limits_of(result: dict[str, Any], direction: str) -> list[LinkLimit]:
    return [
        find_limit(int(n), each["relay"], each["bounds"])
        for n, each in result["measured"][direction].items()
    ]


def show_pinned(result: dict[str, Any]) -> None:
    groups = " and ".join("GPUs " + ", ".join(map(str, group)) for group in result["groups"])
    memory = ", ".join(f"{share:.0%} on side {side}" for side, share in result["memory"].items())
    print(f"pinned memory: {memory}; groups by latency: {groups or 'not found'}; "
          f"{result['rounds']} rounds of {result['bytes'] / GIB:.3g} GiB\n")  # fmt: skip
    for direction in result["measured"]:
        limits = limits_of(result, direction)
        print("\n".join(link_limits.limit_table(direction, limits)))
        last = max(limits, key=lambda each: each.links)
        at_once = last.bounds.get(INTERCONNECT, last.bounds.get(HOST_MEMORY, last.rate))
        single = median(result["measured"][direction][last.links]["one_by_one"])
        print(f"\nover {last.links} links: {last.rate / at_once:.2f} of the same links at once "
              f"(aim {OF_LINKS}); calls one after the other {single / 1e9:.1f} GB/s")  # fmt: skip
        show_aim("pinned", direction, last.links, last.rate)
        print()
    print("limits, by the measurement that shows each:")
    for name, how in link_limits.SHOWN_BY.items():
        print(f"- {name}: {how}")


def show_aim(kind: str, direction: str, links: int, rate: float) -> None:
    aim = AIMS[kind, direction]
    if links < 8:
        print(f"aim: {aim / 1e9:.0f} GB/s with eight links; this machine has {links}")
    else:
        reached = "reached" if rate >= aim else "not reached"
        print(f"aim: {aim / 1e9:.0f} GB/s: {reached} with {rate / 1e9:.1f} GB/s")


# --- pageable memory -------------------------------------------------------------------------


def cpus_alone(memory: Any, threads: int, *, into_memory: bool) -> float:
    """The bandwidth at which CPUs copy between pageable memory and buffers in their caches."""
    part = memory.nbytes // threads
    # Each thread calls numpy once, which copies items of the buffer's size, one after the other,
    # and releases the GIL from `GIL_ITEMS` items on.
    size = min(RING, part // GIL_ITEMS)
    item = np.dtype(f"V{size}")
    start = threading.Barrier(threads + 1)
    calls = []
    for number in range(threads):
        own = memory[number * part :][: part // size * size].view(item)
        ring = np.lib.stride_tricks.as_strided(np.ones(size, "u1").view(item), own.shape, (0,))
        calls.append((own, ring) if into_memory else (ring, own))

    def work(to: Any, of: Any) -> None:
        start.wait()
        np.copyto(to, of)

    workers = [threading.Thread(target=work, args=call) for call in calls]
    for worker in workers:
        worker.start()
    start.wait()
    began = time.perf_counter()
    for worker in workers:
        worker.join()
    return float(part // size * size * threads / (time.perf_counter() - began))


def thread_counts(most: int) -> list[int]:
    """All threads, and half and a quarter of them: more are not always faster."""
    return sorted({max(most // part, 1) for part in (1, 2, 4)})


def measure_pageable(
    gpus: Gpus, order: Sequence[int], links: Sequence[int], total: int, rounds: int, within: float
) -> dict[str, Any]:
    """Copies of pageable memory over each number of links, the CPUs alone, and the plain copy."""
    began = time.monotonic()
    host = np.ones(total, "u1")
    device = gpus.empty(order[0], total)
    threads = transfer.machine()["threads"]
    contexts = {n: transfer.Context(relays=order[1:n], policy="off") for n in links}

    found: dict[str, dict[str, list[float]]] = {"H2D": {}, "D2H": {}}
    for number in range(rounds + 1):
        if number > 1 and (time.monotonic() - began) * (number + 1) / number > within:
            break
        for direction, rates in found.items():
            to, of = (device, host) if direction == "H2D" else (host, device)
            calls: dict[str, Callable[[], object]] = {PLAIN: partial(gpus.copy, to, of)}
            for n, context in contexts.items():
                calls[count(n, "link")] = partial(copy_and_wait, context, to, of)
            for most in thread_counts(threads):
                into = direction == "D2H"
                calls[f"{ALONE}, {count(most, 'thread')}"] = partial(
                    cpus_alone, host, most, into_memory=into
                )
            rates.update({name: [] for name in calls if name not in rates})  # in this order
            for name in random.sample(list(calls), len(calls)):
                start = time.perf_counter()
                own = calls[name]()
                seconds = time.perf_counter() - start
                if number > 0:  # the first round allocates staging memory
                    rate = own if isinstance(own, float) else total / seconds
                    rates[name].append(rate)
    for context in contexts.values():
        check_pageable(context, host, device)
        context.close()
    return {"bytes": total, "links": list(links), "measured": found}


def copy_and_wait(context: Any, to: Any, of: Any) -> None:
    context.copy_async(to, of).result()


def order_alone(gpus: Gpus, target: int) -> list[int]:
    """The GPUs as `in_turns` orders them, by latencies from a few small blocks."""
    small = Sizes(block=MIB, blocks=8, piece=MIB)
    with transfer.Context(plain=True, policy="off") as plain:
        sides = find_sides(gpus, plain, allocate(small, small.blocks), small)
    return in_turns(target, gpus.count, sides)


def check_pageable(context: Any, host: Any, device: Any) -> None:
    """The same as `PinnedLinks.check` for a copy of pageable memory."""
    mark(host)
    copy_and_wait(context, device, host)
    marks_of(host)[:] = 0
    copy_and_wait(context, host, device)
    if not marked(host):
        raise ValueError("a copy of pageable memory moved wrong bytes")


def show_pageable(result: dict[str, Any]) -> None:
    print(f"pageable memory, {result['bytes'] / GIB:.3g} GiB a copy")
    for direction, rates in result["measured"].items():
        print(f"\n| {direction}, pageable | GB/s | 95 % interval | rounds |\n|---|---|---|---|")
        for name, each in rates.items():
            span = median_interval(each)
            text = f"{span.low / 1e9:.1f} to {span.high / 1e9:.1f}" if span else ""
            print(f"| {name} | {median(each) / 1e9:.1f} | {text} | {len(each)} |")
        most = max(result["links"])
        rate = median(rates[count(most, "link")])
        alone = max(median(each) for name, each in rates.items() if name.startswith(ALONE))
        print(
            f"\nover {most} links: {rate / alone:.2f} of what the CPUs alone copy (aim {OF_CPUS})"
        )
        show_aim("pageable", direction, most, rate)
    print()


# --- the command -----------------------------------------------------------------------------


def numbers(text: str) -> list[int]:
    return sorted({int(each) for each in text.split(",")})


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kinds", nargs="*", choices=("pinned", "pageable", []), metavar="KIND",
                        help="pinned, pageable or both, the default")  # fmt: skip
    parser.add_argument("--gpu", type=int, default=0, help="the GPU that the copies are with")
    parser.add_argument("--links", type=numbers, default=[1, 2, 4, 8])
    parser.add_argument("--gib", type=int, default=8, help="bytes of all copies of a round")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument(
        "--within", type=float, default=float("inf"), metavar="SECONDS",
        help="start no further round that would end later",
    )  # fmt: skip
    parser.add_argument("--json", type=Path, help="also write all measurements there")
    wanted = parser.parse_args()
    if importlib.util.find_spec("torch") is None:
        print("relay.py: torch is not installed: python -m pip install torch", file=sys.stderr)
        return 2
    gpus = TorchGpus()
    if gpus.count == 0:
        print("relay.py: torch finds no GPU", file=sys.stderr)
        return 2
    return measure(gpus, wanted, Sizes(blocks=max(wanted.gib * GIB // BLOCK, 1)))


def measure(gpus: Gpus, wanted: argparse.Namespace, sizes: Sizes) -> int:
    links = [n for n in wanted.links if n <= gpus.count]
    left_out = [n for n in wanted.links if n > gpus.count]
    if left_out:
        more = ", ".join(map(str, left_out))
        print(f"not measured: {more} links, this machine has {gpus.count} GPUs\n")
    if not 0 <= wanted.gpu < gpus.count or not links:
        print(f"relay.py: this machine has {gpus.count} GPUs: choose --gpu and --links below that",
              file=sys.stderr)  # fmt: skip
        return 2
    kinds = wanted.kinds or ["pinned", "pageable"]
    result: dict[str, Any] = {"gpus": gpus.count, "name": gpus.name}
    print(f"{gpus.count} x {gpus.name}, {transfer.machine()['threads']} threads\n")
    began = time.monotonic()
    for kind in kinds:
        left = wanted.within - (time.monotonic() - began)
        within = left * PINNED_SHARE if kind != kinds[-1] else left
        if kind == "pinned":
            found = measure_pinned(gpus, wanted.gpu, links, sizes, wanted.rounds, within)
            show_pinned(found)
            found["limits"] = {
                direction: [asdict(each) for each in limits_of(found, direction)]
                for direction in found["measured"]
            }
        else:
            order = (
                result["pinned"]["order"] if "pinned" in result else order_alone(gpus, wanted.gpu)
            )
            total = sizes.total // 2
            found = measure_pageable(gpus, order, links, total, wanted.rounds, within)
            show_pageable(found)
        result[kind] = found
        if wanted.json:
            wanted.json.write_text(json.dumps(result, indent=1, default=msgspec.to_builtins) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
