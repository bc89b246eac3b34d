"""Pinned lists that are scattered on both sides, by the number of multiprocessors, as JSON.

PYTHONPATH=TREE/python python mixed_lists.py

Of each: the bandwidth relative to a contiguous copy, the CPU milliseconds of a call, and for some
how much longer 30 matrix products take beside so many calls.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable
from functools import partial

import torch

from waywiser import transfer

KIB, MIB = 1 << 10, 1 << 20
PRODUCTS = 30


def median(call: Callable[[], object]) -> tuple[float, float]:
    """Seconds of a call until the GPU is idle, and CPU seconds."""
    call()
    times: list[float] = []
    cpu = time.process_time()
    for _ in range(9):
        torch.cuda.synchronize()
        start = time.perf_counter()
        call()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    return statistics.median(times), (time.process_time() - cpu) / len(times)


def products(call: Callable[[], object] | None) -> tuple[float, int]:
    """Milliseconds of matrix products, and the number of calls beside them."""
    left, right = (torch.randn(8192, 8192, dtype=torch.bfloat16, device="cuda") for _ in range(2))
    aside, calls = torch.cuda.Stream(), 0
    torch.cuda.synchronize()
    start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    for _ in range(PRODUCTS):
        torch.matmul(left, right)
    stop.record()
    with torch.cuda.stream(aside):
        while call is not None and not stop.query():
            call()
            aside.synchronize()
            calls += 1
    torch.cuda.synchronize()
    return start.elapsed_time(stop), calls


def main() -> None:
    figures: dict[str, list[float]] = {}
    contexts = {count: transfer.Context(list_multiprocessors=count) for count in (1, 2, 3)}
    for total in (16 * MIB, 256 * MIB):
        gpu = torch.zeros(2 * total, dtype=torch.uint8, device="cuda")
        host = torch.zeros(2 * total, dtype=torch.uint8, pin_memory=True)
        for kib in (1, 4, 16, 28, 64):
            count = total // (kib * KIB)
            there, here = (one[: 2 * count * kib * KIB].view(2 * count, -1) for one in (gpu, host))
            orders = [torch.randperm(2 * count)[:count] for _ in range(2)]
            for to, source, way in ((there, here, "H2D"), (here, there, "D2H")):
                whole = median(partial(to.copy_, source, non_blocking=True))[0]
                for most, context in contexts.items():
                    call = partial(context.copy_blocks, to, source, *orders)
                    seconds, cpu = median(call)
                    found = [whole / 2 / seconds, cpu * 1e3]
                    if kib in (4, 16) and total > 16 * MIB:
                        alone = min(products(None)[0] for _ in range(2))
                        beside, calls = products(call)
                        found += [beside / alone, calls]
                    name = f"{way} {total // MIB} MiB {kib} KiB, {most} multiprocessors"
                    figures[name] = [round(value, 3) for value in found]
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
