"""Measures how long it takes to get pinned memory: by `waywiser.transfer.pinned_empty`, by
`cudaHostAlloc`, and by PyTorch's `pin_memory=True`; and the parts of the first of them.

    python benchmarks/pinned.py [--gib 1,4,16] [--processes 5] [--within SECONDS] [--json FILE]

Each process gets memory of each size by each method twice, methods in random order, and frees it
each time. `parts` does what `pinned_empty` does in two steps that are timed: pages that threads
touch, and their registration. `memory` is by how much the memory that the system has available
falls. The figure is the median over the processes, with their smallest and largest. Needs torch and
a GPU.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import mmap
import os
import random
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from replicates import print_medians, replicates

GIB = 1 << 30
Figures = dict[str, float]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gib", default="1,4,16")
    parser.add_argument("--processes", type=int, default=5)
    parser.add_argument("--within", type=float, default=float("inf"), metavar="SECONDS")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--replicate", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.replicate:
        json.dump(replicate([int(size) for size in asked.gib.split(",")]), sys.stdout)
        return 0
    runs: list[Figures] = []
    for figures in replicates(__file__, ["--gib", asked.gib], asked.processes, asked.within):
        runs.append(figures)
        if asked.json:
            asked.json.write_text(json.dumps(runs, indent=1) + "\n")
    print_medians(runs)
    return 0


def replicate(sizes: list[int]) -> Figures:
    import torch

    torch.ones(1, device="cuda")
    found: Figures = {}
    for gib in sizes:
        methods = list(METHODS.items())
        random.shuffle(methods)
        for name, method in methods:
            for turn in ("first", "second"):
                found |= {
                    f"{gib} GiB, {name}, {turn}, {what}": figure
                    for what, figure in method(gib * GIB).items()
                }
    return dict(sorted(found.items(), key=lambda item: int(item[0].split()[0])))


def timed(allocate: Callable[[], Any], free: Callable[[Any], object]) -> Figures:
    before, start = available_gib(), time.perf_counter()
    memory = allocate()
    seconds = time.perf_counter() - start
    used, start = before - available_gib(), time.perf_counter()
    free(memory)
    return {
        "seconds": seconds,
        "memory, GiB": used,
        "freeing, seconds": time.perf_counter() - start,
    }


def available_gib() -> float:
    facts = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
    # What a virtual machine is given as it uses memory is in neither of both alone.
    return (int(facts["MemAvailable"].split()[0]) - int(facts["MemTotal"].split()[0])) / (1 << 20)


def by_waywiser(nbytes: int) -> Figures:
    from waywiser import transfer

    kept: list[Any] = []
    return timed(lambda: kept.append(transfer.pinned_empty(nbytes, "u1")), lambda _: kept.clear())


def by_runtime(nbytes: int) -> Figures:
    pointer = ctypes.c_void_p()

    def allocate() -> None:
        check(runtime().cudaHostAlloc(ctypes.byref(pointer), ctypes.c_size_t(nbytes), 0))

    return timed(allocate, lambda _: check(runtime().cudaFreeHost(pointer)))


def by_torch(nbytes: int) -> Figures:
    import torch

    kept: list[Any] = []

    def free(_: object) -> None:
        kept.clear()
        torch._C._host_emptyCache()

    def allocate() -> None:
        kept.append(torch.empty(nbytes, dtype=torch.uint8, pin_memory=True))

    return timed(allocate, free)


def in_parts(nbytes: int) -> Figures:
    memory = mmap.mmap(-1, nbytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    memory.madvise(mmap.MADV_HUGEPAGE)
    here = ctypes.c_char.from_buffer(memory)
    address = ctypes.addressof(here)
    workers = len(os.sched_getaffinity(0))
    part = nbytes // workers
    start = time.perf_counter()
    with ThreadPoolExecutor(workers) as threads:  # memset releases the interpreter
        list(threads.map(lambda n: ctypes.memset(address + n * part, 0, part), range(workers)))
    touched = time.perf_counter()
    check(runtime().cudaHostRegister(ctypes.c_void_p(address), ctypes.c_size_t(nbytes), 0))
    registered = time.perf_counter()
    check(runtime().cudaHostUnregister(ctypes.c_void_p(address)))
    unregistered = time.perf_counter()
    del here
    memory.close()
    return {
        "touching, seconds": touched - start,
        "registration, seconds": registered - touched,
        "end of registration, seconds": unregistered - registered,
        "unmapping, seconds": time.perf_counter() - unregistered,
    }


METHODS = {
    "pinned_empty": by_waywiser,
    "cudaHostAlloc": by_runtime,
    "torch.empty": by_torch,
    "parts": in_parts,
}


def runtime() -> Any:
    """The runtime that torch has loaded."""
    for line in Path("/proc/self/maps").read_text().splitlines():
        name = line.split()[-1]
        if "libcudart" in name:
            return ctypes.CDLL(name)
    return ctypes.CDLL("libcudart.so")


def check(status: int) -> None:
    if status != 0:
        raise RuntimeError(f"CUDA's runtime returned {status}")


if __name__ == "__main__":
    sys.exit(main())
