"""Runs in an emulated machine: looks at where pages and threads are, and leaves what it found.

    python inside.py PART...

Each part is a function here. ``$OUT/facts.json`` has what each returned, or its error.
"""

from __future__ import annotations

import ctypes
import json
import os
import platform
import subprocess
import sys
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec

from waywiser.machine import native
from waywiser.machine.catalogue import list_memories
from waywiser.machine.file_places import scratch_folder
from waywiser.machine.machine import Machine, NumaNode, PlacedRank
from waywiser.machine.native_words import native_machine, native_memory, native_transfer
from waywiser.machine.ranks import placements
from waywiser.measure.probe.options import ProbeOptions
from waywiser.measure.probe.supervisor import run_orders
from waywiser.measure.ranks.mpi_library import find_library
from waywiser.measure.ranks.placement import place_ranks
from waywiser.measure.ranks.world import RankTeams
from waywiser.measure.scope import live_machine
from waywiser.words import Memory, Place, Transfer, Workload
from waywiser.words import Path as WayPath
from waywiser.words.records import Order, Process, Rule, Visit

OUT = Path(os.environ["OUT"])
MIB = 2**20
HUGE = {"pages": "huge"}
BYTES = 6 * MIB
PLANTED = Path("/task/planted.so")
"""Calls of the system that plant a fault, which ``$PLANTED`` names."""


def pages_by_node(
    *, bound: bool = False, process: int | str = "self", of_files: str = ""
) -> Counter[int]:
    """Bytes of a process by node, as the kernel counts them; ``bound``: only of memory that it has
    bound to a node; ``of_files``: instead those of mapped files with this in their path."""
    found: Counter[int] = Counter()
    for line in Path(f"/proc/{process}/numa_maps").read_text().splitlines():
        words = line.split()
        kib = next((int(w.partition("=")[2]) for w in words if w.startswith("kernelpages")), 4)
        _, is_file, file = line.partition("file=")
        is_one = of_files in file if of_files else not (bound and words[1] == "default")
        if bool(is_file) == bool(of_files) and is_one:
            for word in words:
                node, equals, count = word.partition("=")
                if equals and node[:1] == "N" and node[1:].isdigit():
                    found[int(node[1:])] += int(count) * kib * 1024
    return found


def grown(before: Counter[int], *, bound: bool = False) -> dict[str, float]:
    """MiB by node that came since then, without changes of less than a quarter."""
    return _mib(pages_by_node(bound=bound), before)


def _mib(now: Counter[int], before: Counter[int]) -> dict[str, float]:
    by_node = {node: (now[node] - before[node]) / MIB for node in now | before}
    return {str(node): round(mib, 2) for node, mib in by_node.items() if abs(mib) >= 0.25}


MOVE_PAGES = {"x86_64": 279, "aarch64": 239}[platform.machine()]
PAGE = os.sysconf("SC_PAGESIZE")


def located_by_node(*, of_files: bool = False, process: int = 0) -> Counter[int]:
    """Bytes by node as move_pages(2) answers for each page: of the memory that a process, which may
    be this one, has bound to a node, or of the files that it has mapped in /tmp and /var/tmp."""
    folder = Path(f"/proc/{process or 'self'}")
    ends = {}
    for line in (folder / "maps").read_text().splitlines():
        start, end = (int(each, 16) for each in line.split()[0].split("-"))
        ends[start] = end
    call = ctypes.CDLL("libc.so.6", use_errno=True).syscall  # without a fault of this test
    found: Counter[int] = Counter()
    for line in (folder / "numa_maps").read_text().splitlines():
        words = line.split()
        is_file = "file=/tmp/" in line or "file=/var/tmp/" in line
        is_meant = is_file if of_files else words[1] != "default" and "file=" not in line
        start = int(words[0], 16)
        if is_meant and start in ends:  # another process may have mapped it meanwhile
            count = (ends[start] - start) // PAGE
            pages = (ctypes.c_void_p * count)(*range(start, ends[start], PAGE))
            where = (ctypes.c_int * count)()
            numbers = (ctypes.c_long(process), ctypes.c_long(count))
            if call(ctypes.c_long(MOVE_PAGES), *numbers, pages, None, where, ctypes.c_long(0)):
                raise OSError(ctypes.get_errno(), "move_pages")
            for node, pages_there in Counter(where).items():
                if node >= 0:  # else there is no page yet
                    found[node] += pages_there * PAGE
    return found


def huge_bytes() -> int:
    """Bytes in huge pages of the memory that this process has bound to a node."""
    lines = Path("/proc/self/numa_maps").read_text().splitlines()
    bound = {int(line.split()[0], 16) for line in lines if line.split()[1] != "default"}
    found, is_bound = 0, False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        name, _, rest = line.partition(" ")
        if "-" in name:
            is_bound = int(name.partition("-")[0], 16) in bound
        elif is_bound and name == "AnonHugePages:":
            found += int(rest.split()[0]) * 1024
    return found


def huge_page() -> int:
    return int(Path("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size").read_text())


def kills() -> int:
    lines = Path("/proc/vmstat").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("oom_kill "))


def memories(machine: Machine) -> Iterator[Memory]:
    """Kinds of memory that are bound to a node, at every node, with each choice of each of their
    parameters. What the runtime of the GPU allocates, which the fake one does by malloc, is not."""
    for kind in list_memories():
        if kind.name not in ("pageable", "pinned"):
            continue
        variants = [{}, *({p.name: c} for p in kind.parameters for c in p.choices)]
        for node in machine.numa:
            known = (v for v in variants if v.get("from") != "host-alloc")
            yield from (Memory(kind.name, Place("numa", node.index), v) for v in known)


def places() -> list[dict[str, Any]]:
    """Where the pages of each kind of memory are, on nodes without CPUs too."""
    machine, library = live_machine(range(8)), native.load()
    there = native_machine(machine)
    found = []
    for memory in memories(machine):
        before, located, huge = pages_by_node(bound=True), located_by_node(), huge_bytes()
        nbytes = BYTES + 2 * huge_page() if "pages=huge" in str(memory) else BYTES
        entry: dict[str, Any] = {
            "memory": str(memory),
            "node": memory.place.index,
            "mib": nbytes / MIB,
            "wants_huge": nbytes > BYTES,
        }
        try:
            buffer = library.PlacedMemory(native_memory(memory), nbytes, there)
            entry["grown"] = grown(before, bound=True)
            entry["located"] = _mib(located_by_node(), located)
            entry["huge"] = (huge_bytes() - huge) // huge_page()
            del buffer
        except (RuntimeError, MemoryError) as error:
            entry["error"] = str(error)
        found.append(entry)
    return found


def visits() -> list[dict[str, Any]]:
    """Where buffers and threads are while copies between nodes are measured."""
    machine, library = live_machine(), native.load()
    there = native_machine(machine)
    rule = library.StopRule(minimum_seconds=0.2, hard_seconds=0.4, soft_seconds=0.3)
    first, last = machine.numa[0].index, machine.numa[-1].index
    found = []
    for source, destination, variant in ((first, last, {}), (last, last, {}), (first, last, HUGE)):
        nbytes = huge_page() if variant else 2 * MIB
        for side in ("pull", "push")[: 1 + (source != destination and not variant)]:
            ends = (Memory("pageable", Place("numa", n), variant) for n in (source, destination))
            cpus = min(len(node.cpus) for node in machine.numa)
            settings = {"threads": str(min(cpus, 2))} | (
                {"side": side} if source != destination else {}
            )
            transfer = Transfer(WayPath(*ends, "cpu"), nbytes, settings)
            before, located = pages_by_node(bound=True), located_by_node()
            session = library.Session(there, memory_bytes=256 * MIB)
            with affinities() as seen:
                result = session.measure([native_transfer(transfer)], rule=rule)
            after = [_mib(located_by_node(), located)]
            session.measure([native_transfer(transfer)], rule=rule)
            after.append(_mib(located_by_node(), located))
            found.append(
                {
                    "transfer": str(transfer),
                    "nodes": sorted({source, destination}),
                    "runs_on": source if side == "push" else destination,
                    "buffers": result["buffers"],
                    "grown": grown(before, bound=True),
                    "located": after,
                    "threads": sorted(seen),
                }
            )
            del session
    return found


def balancing() -> str:
    """Whether the kernel moves pages to the node of the CPU that uses them."""
    return Path("/proc/sys/kernel/numa_balancing").read_text().strip()


def files() -> list[dict[str, Any]]:
    """Where the pages of files in the page cache are, as a buffer of one states and as the kernel
    answers: files that a thread of each node was the first to read."""
    library = native.load()
    found = []
    machine = live_machine()
    place = scratch_folder("/var/tmp")
    with_files = msgspec.structs.replace(machine, files=(place,))
    rule = library.StopRule(minimum_seconds=0.05, hard_seconds=0.2, soft_seconds=0.1)
    every = os.sched_getaffinity(0)
    for node in machine.numa:
        source = Memory("mapped", Place("file", file=place.name), {"state": "warm"})
        target = Memory("pageable", Place("numa", node.index))
        transfer = Transfer(WayPath(source, target, "cpu"), 2 * MIB, {"threads": "1"})
        before = located_by_node(of_files=True)
        os.sched_setaffinity(0, node.cpus)
        session = library.Session(native_machine(with_files), memory_bytes=64 * MIB)
        result = session.measure([native_transfer(transfer)], rule=rule)
        located = _mib(located_by_node(of_files=True), before)
        os.sched_setaffinity(0, every)
        found.append(
            {"node": node.index, "stated": result["buffers"][0]["detail"], "located": located}
        )
        del session
    return found


def forbidden() -> dict[str, Any]:
    """What becomes of memory at a node that the control group does not allow."""
    from waywiser import transfer

    library = native.load()
    cpus = tuple(sorted(os.sched_getaffinity(0)))
    nodes = tuple(NumaNode(index, cpus, 2**30, 0) for index in (0, 1))
    machine = msgspec.structs.replace(live_machine(), numa=nodes)
    rule = library.StopRule(minimum_seconds=0.05, hard_seconds=0.2, soft_seconds=0.1)
    ends = (Memory("pageable", Place("numa", node)) for node in (0, 1))
    way = Transfer(WayPath(*ends, "cpu"), 2 * MIB, {"threads": "1", "side": "pull"})
    before = located_by_node()
    session = library.Session(native_machine(machine), memory_bytes=64 * MIB)
    result = session.measure([native_transfer(way)], rule=rule)
    found = {"buffers": result["buffers"], "located": _mib(located_by_node(), before)}
    for node in (0, 1):
        try:
            transfer.pinned_empty(MIB, "u1", numa=node)
            found[f"pinned {node}"] = "there"
        except Exception as error:
            found[f"pinned {node}"] = f"{type(error).__name__}: {error}"
    return found


@contextmanager
def affinities() -> Iterator[set[str]]:
    """The lists of CPUs of the threads that start meanwhile."""
    seen: set[str] = set()
    done = threading.Event()
    known = set(os.listdir("/proc/self/task"))

    def watch() -> None:
        own = str(threading.get_native_id())
        while not done.wait(0.02):
            for task in set(os.listdir("/proc/self/task")) - known - {own}:
                try:
                    status = Path(f"/proc/self/task/{task}/status").read_text()
                except OSError:
                    continue
                seen.add(status.partition("Cpus_allowed_list:")[2].split()[0])

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield seen
    finally:
        done.set()
        watcher.join()


def full_node() -> dict[str, Any]:
    """What becomes of buffers on a node that is full, and after it is empty again."""
    import numpy as np

    from waywiser import transfer

    machine, library = live_machine(), native.load()
    node = machine.numa[-1].index
    free = (library.free_on_node(node) or 0) // MIB
    found: dict[str, Any] = {"node": node, "free_before": free, "kills_before": kills()}
    with transfer.Context() as context:
        fills = Path("/tmp/fill")
        fills.mkdir(exist_ok=True)
        options = f"mpol=bind:{node},size=4g"
        subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", fills], check=True)
        with (fills / "file").open("wb") as file:
            for _ in range(max(free - 8, 0)):
                file.write(b"\1" * MIB)
        found["free_full"] = (library.free_on_node(node) or 0) // MIB
        memory = Memory("pageable", Place("numa", node))
        try:
            library.PlacedMemory(native_memory(memory), 64 * MIB, native_machine(machine))
        except Exception as error:
            found["error"] = f"{type(error).__name__}: {error}"
        found["staged_full"] = _staged(transfer, context, np, node)
        (fills / "file").unlink()
        found["staged_after"] = _staged(transfer, context, np, node)
    found["kills_after"] = kills()
    return found


def _staged(transfer: Any, context: Any, np: Any, node: int) -> dict[str, Any]:
    before = pages_by_node(bound=True)
    array = transfer.pinned_empty(64 * MIB, np.uint8, numa=node)
    source = np.arange(array.size, dtype=np.uint8)
    context.copy(array, source)
    by_node = grown(before, bound=True)
    return {"grown": by_node, "equal": bool((array == source).all())}


class _OnGpu:
    """Bytes on the fake GPU, as a GPU library of Python would have them."""

    def __init__(self, nbytes: int) -> None:
        from waywiser_fake import _testing

        self.buffer = _testing.DeviceBuffer(0, nbytes)
        data = (self.buffer.address, False)
        shape = {"shape": (nbytes,), "typestr": "|u1", "strides": None, "stream": None}
        self.__cuda_array_interface__ = {**shape, "data": data, "version": 3}


def gpu_near() -> dict[str, Any]:
    """Where staging memory and threads are for copies to a GPU beside node 1."""
    import numpy as np

    from waywiser import transfer

    found: dict[str, Any] = {"machine": transfer.machine()}
    source = np.ones(32 * MIB, np.uint8)
    target = _OnGpu(source.size)
    for name, options in (("near", {}), ("node 0", {"numa_nodes": [0]})):
        before = pages_by_node(bound=True)
        with affinities() as seen, transfer.Context(threads=2, **options) as context:
            context.copy(target, source)
            found[name] = {"grown": grown(before, bound=True)}
        found[name]["threads"] = sorted(seen)
    found["equal"] = target.buffer.read() == source.tobytes()
    return found


def planted() -> dict[str, Any]:
    """What `places`, `visits` and `files` find with a fault in a call of the system."""
    found = {}
    for fault, part in (
        ("wrong node", "places"),
        ("wrong socket", "visits"),
        ("wrong answer", "files"),
    ):
        folder = OUT / fault.replace(" ", "-")
        folder.mkdir()
        environment = {**os.environ, "OUT": str(folder), "PLANTED": fault}
        environment["LD_PRELOAD"] = str(PLANTED)
        subprocess.run([sys.executable, __file__, part], env=environment, check=True)
        found[fault] = json.loads((folder / "facts.json").read_text())[part]
    return found


def ranks() -> dict[str, Any]:
    """Where threads and memory of ranks are while messages are sent between them: two ranks at each
    of three places, each with a GPU; and four without GPUs."""
    machine = live_machine()
    without = msgspec.structs.replace(machine, gpus=())
    return {
        "placements": _seen(machine, place_ranks(machine, 2, cpus="near,far,numa:1")),
        "sockets": _seen(without, place_ranks(without, 4)),
    }


def planted_ranks() -> dict[str, Any]:
    """What the same finds of a rank at each socket with faults in two calls of the system."""
    machine = msgspec.structs.replace(live_machine(), gpus=())
    os.environ.update(LD_PRELOAD=str(PLANTED), PLANTED="wrong node, wrong socket")
    try:
        return _seen(machine, place_ranks(machine, 2))
    finally:
        del os.environ["LD_PRELOAD"], os.environ["PLANTED"]


def _seen(machine: Machine, placed: tuple[PlacedRank, ...]) -> dict[str, Any]:
    """What was seen of each rank, and what the visits state."""
    machine = msgspec.structs.replace(machine, ranks=placed)
    kinds = [("pageable", "mpi"), *([("device", "mpi-staged")] if machine.gpus else [])]
    first = [(own[0].index, own[-1].index) for own in placements(placed)]
    texts = [f"{kind}@rank:{one} -> {kind}@rank:{other} by {executor} of 1MiB"
             for one, other in first for kind, executor in kinds]  # fmt: skip
    texts += [f"pageable@rank:{one}-{other} -> pageable@rank:{one}-{other} by alltoall of 1MiB"
              for one, other in first]  # fmt: skip
    began = time.monotonic()
    visits, looks = _measured(machine, texts)
    seen: dict[int, dict[str, list[Any]]] = {}
    for _, rank, look in looks:
        own = seen.setdefault(rank, {name: [] for name in look})
        for name, value in look.items():
            own[name] += [value] if value not in own[name] else []
    return {
        "seconds": round(time.monotonic() - began, 1),
        "placed": [{"cpus": list(rank.cpus), "node": rank.numa} for rank in placed],
        "seen": [seen.get(rank.index) for rank in placed],
        "failures": [str(visit.failure) for visit in visits if visit.failure],
        "buffers": [f"{buffer.memory} {buffer.state}" for v in visits for buffer in v.buffers],
    }


Look = tuple[str, int, dict[str, Any]]
"""What a worker was started for, which rank it is (0 without ranks), and where its threads and
memory were."""


def _measured(machine: Machine, texts: list[str]) -> tuple[list[Visit], list[Look]]:
    """The visits of workloads, by ranks if the machine has some, and what was seen meanwhile of
    processes that had bound memory. They take longer where a worker or a rank was not seen at work:
    on a busy host a look takes seconds."""
    unbound = Path("/proc/self/status").read_text().partition("Cpus_allowed_list:")[2].split()[0]
    every: set[str | int] = {*range(len(machine.ranks))} or {*texts}
    for seconds in (1.0, 4.0, 12.0):
        visits, looks = _measured_for(seconds, machine, texts)
        at_work = [each for each in looks if each[2]["threads"] != [unbound]]
        if every <= {rank if machine.ranks else text for text, rank, _ in at_work}:
            break
    return visits, looks


def _measured_for(
    seconds: float, machine: Machine, texts: list[str]
) -> tuple[list[Visit], list[Look]]:
    """Returns what `_measured` does, by visits of so many seconds."""
    rule = Rule(minimum_seconds=seconds, soft_seconds=seconds + 0.1, hard_seconds=seconds + 0.3)
    settings: dict[str, Any] = {"block": 0, "rule": rule, "seed": 1}
    settings |= {"buffer_bytes": 4 * MIB, "expected_seconds": seconds, "timeout_seconds": 300.0}
    visits, looks = list[Visit](), list[Look]()
    size = max(len(machine.ranks), 1)
    module = RANKS if machine.ranks else WORKER
    done = threading.Event()

    now = ""
    began: dict[int, str] = {}
    """What was measured when a process was first seen with bound memory."""

    def orders() -> Iterator[Order]:
        nonlocal now
        for number, text in enumerate(texts):
            now = text
            work = Workload.parse(text)
            peers = not any(t.parameters.get("peer") == "off" for t in work.transfers)
            block = 0 if machine.ranks else number  # each in a worker of its own
            process = Process(peer_access=peers, block=block)
            yield Order(workload=work, process=process, **settings)

    def watch() -> None:
        processes: list[int] = []
        while not done.wait(0.2):  # a visit takes 0.5 s, and each look at a process much of 0.1 s
            if not (len(processes) == size and all(Path(f"/proc/{n}").exists() for n in processes)):
                processes = processes_of(module)
            for process in processes:
                with suppress(OSError, ValueError):  # it begins or ends
                    rank, look = _look(process)
                    if look["bound"]:
                        looks.append((began.setdefault(process, now), rank, look))

    teams = _teams(size) if machine.ranks else None
    options = ProbeOptions(memory_bytes=(16 if machine.ranks else 64) * MIB)
    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        run_orders(orders(), machine, options=options, on_visit=visits.append, teams=teams)
    finally:
        done.set()
        watcher.join()
    return visits, looks


def _teams(size: int) -> RankTeams:
    """Returns ranks with time to start on a busy machine that emulates this one."""
    return RankTeams(find_library(os.environ["MPICC"]), size, seconds=HUNG_SECONDS)


RANKS, WORKER = b"waywiser.measure.ranks.rank_worker", b"waywiser.measure.probe.worker"


def processes_of(module: bytes) -> list[int]:
    """The processes of a module, and not the launchers of ranks, which name it further behind."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if (folder / "cmdline").read_bytes().split(b"\0")[1:3] == [b"-m", module]:
                found.append(int(folder.name))
    return found


def _look(process: int) -> tuple[int, dict[str, Any]]:
    """The number of a rank, 0 for another worker, and where it is now: the lists of CPUs of its
    threads, and MiB by node of its bound memory, twice, and of the memory that MPI shares."""
    folder = Path(f"/proc/{process}")
    _, is_rank, after = (folder / "environ").read_text().partition("\0PMI_RANK=")
    threads = {
        (task / "status").read_text().partition("Cpus_allowed_list:")[2].split()[0]
        for task in (folder / "task").iterdir()
    }
    none: Counter[int] = Counter()
    return int(after.partition("\0")[0]) if is_rank else 0, {
        "threads": sorted(threads),
        "bound": _mib(pages_by_node(bound=True, process=process), none),
        "located": _mib(located_by_node(process=process), none),
        "shared": _mib(pages_by_node(process=process, of_files="mpich_shm"), none),
    }


def copies() -> list[dict[str, Any]]:
    """Where buffers and threads are for every copy from a node to a GPU."""
    machine = live_machine()
    return _rows(*_measured(machine, _to_gpus(machine)))


def advice() -> dict[str, Any]:
    """What verbs say of a survey of these copies."""
    machine = live_machine()
    words = [word for text in _to_gpus(machine) for word in ("--workload", text)]
    words += ["--preset", "quick", "--deadline", "6"]
    file = str(OUT / "advice.wwp")
    survey = _waywiser(["survey", *words, "-o", file], over_fake=True)[0]
    advise, mpich = _waywiser(["advise", file, "--placement"], ["export", file, "--for", "mpich"])
    return {"survey": survey, "advise": advise, "mpich": mpich}


def _to_gpus(machine: Machine) -> list[str]:
    return [
        f"pinned@numa:{node.index} -> device@gpu:{gpu.index} by copy-engine of 1MiB"
        for node in machine.numa
        for gpu in machine.gpus
    ]


def _rows(visits: list[Visit], looks: list[Look]) -> list[dict[str, Any]]:
    """What visits state of their buffers, and where threads and bound memory were meanwhile."""
    found = []
    for visit in visits:
        text = str(visit.workload)
        ranks = {place.index for place in visit.workload.places if place.kind == "rank"}
        own = [
            (rank, look)
            for started_for, rank, look in looks
            if (rank in ranks if ranks else Workload.parse(started_for) == visit.workload)
        ]
        found.append(
            {
                "workload": text,
                "failure": str(visit.failure or ""),
                "buffers": [[str(each.memory), each.state, each.detail] for each in visit.buffers],
                "threads": sorted({(rank, cpus) for rank, look in own for cpus in look["threads"]}),
                "nodes": sorted(
                    {(rank, node) for rank, look in own for name in ("bound", "located")
                     for node in look[name]}
                ),
            }
        )  # fmt: skip
    return found


def figures() -> dict[str, Any]:
    """The placements of buffers, threads, GPUs, files and ranks that a paper of 2013 compares."""
    machine = msgspec.structs.replace(
        live_machine(), files=(scratch_folder("/var/tmp", "scratch"),)
    )
    host = [(f"{kind}@numa:{node}", f"device@gpu:{gpu}")
            for kind in ("pinned", "pageable") for node in (0, 1) for gpu in (0, 1)]  # fmt: skip
    by = "by copy-engine of 1MiB"
    texts = [f"{one} -> {other} {by}" for one, other in host]
    texts += [f"{other} -> {one} {by}" for one, other in host]
    texts += [f"{one} -> {other} {by}; {other} -> {one} {by}" for one, other in host[:4]]
    ends = "device@gpu:0 -> device@gpu:1 by"
    texts += [f"{ends} copy-engine of 1MiB", f"{ends} copy-engine[peer=off] of 1MiB"]
    texts += [f"{ends} staged of 1MiB"]
    texts += [f"pageable@numa:{node} -> device@gpu:{gpu} by staged of 1MiB"
              for node in (0, 1) for gpu in (0, 1)]  # fmt: skip
    texts += [f"{path} by staged of 1MiB" for gpu in (0, 1)
              for path in (f"file@file:scratch -> device@gpu:{gpu}",
                           f"device@gpu:{gpu} -> file@file:scratch")]  # fmt: skip
    found = {"copies": _rows(*_measured(machine, texts))}
    placed = place_ranks(machine, 2, cpus="near,far")
    with_ranks = msgspec.structs.replace(machine, ranks=placed)
    texts = [f"{kind}@rank:{one} -> {kind}@rank:{one + 1} by {executor} of 1MiB"
             for one in (0, 2)
             for kind, executor in (("pageable", "mpi"), ("pinned", "mpi"),
                                    ("device", "mpi"), ("device", "mpi-staged"))]  # fmt: skip
    found["messages"] = _rows(*_measured(with_ranks, texts))
    found["ranks"] = [[list(rank.cpus), rank.numa, rank.gpu, rank.placement] for rank in placed]
    return found


def native_tests() -> dict[str, Any]:
    """What the native tests say, and one of them with a page size that is not the kernel's."""
    found = {}
    for name, chosen, fault in (
        ("sound", os.environ["NATIVE_TESTS"], ""),
        ("page size", "Pages.*", "page size"),
    ):
        words = [os.environ["NATIVE"], f"--gtest_filter={chosen}", "--gtest_output=json:tests.json"]
        environment = {**os.environ, "PLANTED": fault, "LD_PRELOAD": str(PLANTED) if fault else ""}
        code, out = run_to_its_end(words, environment)
        if code is None:  # once: an emulated machine can lose a wake-up
            print(f"native tests hung, the last line names the test: {out[-200:]}", flush=True)
            code, out = run_to_its_end(words, environment)
        if code is None:
            found[name] = {"code": code, "failures": [], "passed": [], "failed": [], "out": out}
            continue
        said = json.loads(Path("/tmp/tests.json").read_text())
        failed = {
            f"{suite['name']}.{case['name']}": "failures" in case
            for suite in said["testsuites"]
            for case in suite["testsuite"]
        }
        failures = [
            failure["failure"]
            for suite in said["testsuites"]
            for case in suite["testsuite"]
            for failure in case.get("failures", [])
        ]
        found[name] = {
            "code": code,
            "failures": failures[:5],
            "passed": [test for test, has_failed in failed.items() if not has_failed],
            "failed": [test for test, has_failed in failed.items() if has_failed],
            "out": out,
        }
    return found


HUNG_SECONDS = 600
"""Seconds after which something hangs: all native tests take one minute, and ranks start sooner."""


def run_to_its_end(words: list[str], environment: dict[str, str]) -> tuple[int | None, str]:
    """The exit code of a program, None if it hangs, and the end of what it printed."""
    output = Path("/tmp/printed")
    with (
        output.open("wb") as stream,
        subprocess.Popen(
            words, env=environment, cwd="/tmp", stdout=stream, stderr=subprocess.STDOUT
        ) as process,
    ):
        try:
            code: int | None = process.wait(HUNG_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            code = None
    return code, output.read_text(errors="replace")[-4000:]


def python_tests() -> dict[str, Any]:
    """What tests of Python say that need no built program of this machine."""
    root = Path(__file__).resolve().parents[2]
    words = ["-q", "-p", "no:cacheprovider", "--hypothesis-profile=emulated"]
    words += os.environ["PYTHON_TESTS"].split()
    answer = subprocess.run(
        [sys.executable, "-m", "pytest", *words],
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    )
    return {"code": answer.returncode, "out": answer.stdout[-4000:]}


def verbs() -> dict[str, Any]:
    """What the command line says of the machine."""
    names = ("topology", "doctor")
    return dict(zip(names, _waywiser(*([name, "--json"] for name in names)), strict=True))


def survey() -> dict[str, Any]:
    """A survey of host memory, whose profile it leaves."""
    words = ["survey", "--preset", "quick", "--gpus", "none", "--deadline", "6"]
    words += ["--only", os.environ["ONLY"], "--sizes", os.environ.get("SIZES", "64KiB,1MiB")]
    before = kills()
    profile = str(OUT / "survey.wwp")
    (answer,) = _waywiser([*words, "-o", profile])
    return {**answer, "err": answer["err"][-2000:], "kills": kills() - before}


def said_of_survey() -> dict[str, str]:
    """What verbs say of the profile of `survey`."""
    profile = str(OUT / "survey.wwp")
    commands = {
        "advise": ["advise", profile, "--placement"],
        "export": ["export", profile, "--for", "waywiser"],
    }
    answers = zip(commands, _waywiser(*commands.values()), strict=True)
    return {name: f"{found['out']}{found['err']}{found['code']}" for name, found in answers}


_COMMANDS = """
import io, json, sys
from contextlib import redirect_stderr, redirect_stdout
from waywiser.cli import run
answers = []
for words in json.loads(sys.argv[1]):
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = run(words)
    answers.append({"code": code, "out": out.getvalue(), "err": err.getvalue()})
print(json.dumps(answers))
"""


def _waywiser(*commands: list[str], over_fake: bool = False) -> list[dict[str, Any]]:
    """What each command of the command line ends with. One process runs them all: a start takes
    seconds here."""
    environment = {**os.environ, "COLUMNS": "200", "PYTHONFAULTHANDLER": "1"}
    if not over_fake:
        environment["WAYWISER_NATIVE"] = "waywiser._native"
    run = [sys.executable, "-c", _COMMANDS, json.dumps(commands)]
    answer = subprocess.run(run, env=environment, stdout=subprocess.PIPE, text=True, check=False)
    if answer.returncode < 0:  # once: it was seen in one of five runs, and its stacks are printed
        print(f"{commands} ended by signal {-answer.returncode}", flush=True)
        for words in commands:
            if "-o" in words:
                Path(words[words.index("-o") + 1]).unlink(missing_ok=True)
        answer = subprocess.run(run, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    found: list[dict[str, Any]] = json.loads(answer.stdout)
    return found


def main() -> None:
    parts: dict[str, Callable[[], Any]] = {name: globals()[name] for name in sys.argv[1:]}
    found: dict[str, Any] = {}
    for name, part in parts.items():
        print(f"{time.monotonic():.0f} s after power-on: {name}", flush=True)
        try:
            found[name] = part()
        except Exception:
            found[name] = {"failed": traceback.format_exc()}
        (OUT / "facts.json").write_text(json.dumps(found))


if __name__ == "__main__":
    main()
