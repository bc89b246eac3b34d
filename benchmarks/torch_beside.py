"""Steps of a PyTorch program, for benchmarks/beside.py: a copy to host memory is started, then an
allreduce; a process for each of two GPUs, the first of which copies.

    python benchmarks/torch_beside.py BYTES_OF_ALLREDUCE BYTES_OF_COPY

Prints, for each kind of copy: its name, the allreduce alone, the copy alone, the time until the
allreduce has ended over it alone, the time until both have ended over the longer alone, and the
number of steps.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

from waywiser import transfer
from waywiser.words import parse_bytes

STEPS = 7
Wait = Callable[[], Any]


def copies(size: int) -> dict[str, Callable[[], Wait]]:
    """Kinds of copies: each call starts one, and returns what waits for its end."""
    source = torch.ones(size, dtype=torch.uint8, device="cuda")
    pageable = torch.zeros(size, dtype=torch.uint8)
    pinned = torch.zeros(size, dtype=torch.uint8, pin_memory=True)
    side = torch.cuda.Stream()
    polite = transfer.Context(max_queued_bytes=4 << 20)

    def by_torch(destination: torch.Tensor) -> Wait:
        with torch.cuda.stream(side):
            destination.copy_(source, non_blocking=True)
        return side.synchronize

    def by_library(copy: Callable[..., Any], destination: torch.Tensor) -> Wait:
        with torch.cuda.stream(side):
            handle = copy(destination, source)
        return handle.result

    return {
        "PyTorch, pinned": lambda: by_torch(pinned),
        "PyTorch, pageable": lambda: by_torch(pageable),
        "waywiser.transfer, pageable": lambda: by_library(transfer.copy_async, pageable),
        "waywiser.transfer, pinned, 4 MiB queued": lambda: by_library(polite.copy_async, pinned),
        "waywiser.transfer, pageable, 4 MiB queued": lambda: by_library(
            polite.copy_async, pageable
        ),
    }


def allreduce(values: torch.Tensor) -> float:
    """The moment at which it has ended."""
    dist.all_reduce(values)
    torch.cuda.current_stream().synchronize()
    return time.perf_counter()


def seconds_of(copy: Callable[[], Wait]) -> float:
    begin = time.perf_counter()
    copy()()
    return time.perf_counter() - begin


def step(values: torch.Tensor, start: Callable[[], Wait] | None) -> tuple[float, float]:
    """Seconds until the allreduce has ended, and until both have."""
    torch.cuda.synchronize()
    dist.barrier()
    torch.cuda.synchronize()
    begin = time.perf_counter()
    wait = start() if start is not None else None
    ended = allreduce(values)
    if wait is not None:
        wait()
    return ended - begin, time.perf_counter() - begin


def spread(values: list[float]) -> str:
    low, middle, high = min(values), statistics.median(values), max(values)
    return f"×{middle:.3g} ({low:.3g}–{high:.3g})"


def measure(rank: int, collective: int, size: int) -> None:
    torch.cuda.set_device(rank)
    meeting = "tcp://127.0.0.1:29518"
    dist.init_process_group("nccl", init_method=meeting, rank=rank, world_size=2)
    values = torch.ones(collective // 4, dtype=torch.float32, device="cuda")
    known = copies(size) if rank == 0 else {}
    names: list[Any] = [list(known)]
    dist.broadcast_object_list(names, src=0)
    for name in names[0]:
        start = known.get(name)
        alone, copied, seen, both = [], [], [], []
        for _ in range(STEPS + 1):  # the first warms up
            values.fill_(1)
            alone.append(step(values, None)[0])
            copied.append(seconds_of(start) if start is not None else 0.0)
            ends = step(values, start)
            seen.append(ends[0] / alone[-1])
            both.append(ends[1] / max(alone[-1], copied[-1], 1e-9))
        if rank == 0:
            times = [f"{statistics.median(each[1:]) * 1e3:.4g} ms" for each in (alone, copied)]
            print("|".join([name, *times, spread(seen[1:]), spread(both[1:]), str(STEPS)]),
                  flush=True)  # fmt: skip
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(measure, tuple(map(parse_bytes, sys.argv[1:])), 2)
