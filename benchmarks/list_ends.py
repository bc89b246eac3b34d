"""Times of lists with a contiguous side: until `result()`, `done()`, and until the GPU is idle.

    python benchmarks/list_ends.py [ROUNDS]

256 MiB between scattered blocks of a GPU and pinned memory. In each round a contiguous copy of
PyTorch comes first, until the GPU is idle, and then lists, one after the other: they differ in what
is waited for first. A line has the median times in us since the call: until the call has returned,
and until each of the next steps has. Needs torch and a GPU.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

KIB = 1024
TOTAL = 256 * KIB**2
BLOCKS = (KIB, 4 * KIB, 28 * KIB, 128 * KIB)
WARM_UP = 5
Step = Callable[[Any], object]


def main() -> int:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    for size in BLOCKS:
        for direction, ends in lists(size).items():
            for name, times in measured(ends, rounds).items():
                print(size // KIB, "KiB", direction, name, *(f"{each * 1e6:.0f}" for each in times))
    return 0


def lists(size: int) -> dict[str, tuple[Any, Any, Any, Any]]:
    """Direction -> destination, source, and their indexes."""
    import torch

    from waywiser import transfer

    count = TOTAL // size
    pool = torch.empty((2 * count, size), dtype=torch.uint8, device="cuda")
    host = transfer.pinned_empty((count, size), torch.uint8)
    host.fill_(1)
    order, ascending = torch.randperm(2 * count)[:count], torch.arange(count)
    return {"D2H": (host, pool, ascending, order), "H2D": (pool, host, order, ascending)}


def measured(ends: tuple[Any, Any, Any, Any], rounds: int) -> dict[str, list[float]]:
    """Name -> median times since the call, in seconds."""
    import torch

    from waywiser import transfer

    to, of = ends[:2]
    count = min(to.shape[0], of.shape[0])

    def idle(_: Any) -> None:
        torch.cuda.synchronize()

    def look(handle: Any) -> None:
        while not handle.done():
            pass

    orders: dict[str, Sequence[Step]] = {
        "call, idle, result()": (idle, lambda handle: handle.result()),
        "call, result(), idle": (lambda handle: handle.result(), idle),
        "call, done(), idle": (look, idle),
    }
    times: dict[str, list[list[float]]] = {"contiguous": [], **{name: [] for name in orders}}
    for _ in range(WARM_UP + rounds):
        torch.cuda.synchronize()
        start = time.perf_counter()
        to[:count].copy_(of[:count], non_blocking=True)
        torch.cuda.synchronize()
        times["contiguous"].append([time.perf_counter() - start])
        for name, steps in orders.items():
            start = time.perf_counter()
            handle = transfer.copy_blocks_async(*ends)
            since = [time.perf_counter() - start]
            for step in steps:
                step(handle)
                since.append(time.perf_counter() - start)
            times[name].append(since)
    return {
        name: [statistics.median(column) for column in zip(*rows[WARM_UP:], strict=True)]
        for name, rows in times.items()
    }


if __name__ == "__main__":
    sys.exit(main())
