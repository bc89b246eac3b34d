"""Medians of calls in one process, in microseconds, as JSON.

PYTHONPATH=TREE/python python call_times.py    for two trees in turn: old, new, new, old
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from waywiser import transfer

MIB = 1 << 20
SECONDS = 0.25
figures: dict[str, float] = {}


def measure(name: str, call: Callable[[], Any]) -> None:
    for _ in range(5):
        call()
    times: list[float] = []
    end = time.perf_counter() + SECONDS
    while len(times) < 15 or time.perf_counter() < end:
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    figures[name] = statistics.median(times) * 1e6


def copy(context: transfer.Context, to: Any, from_: Any) -> None:
    context.copy(to, from_)
    torch.cuda.synchronize()


def later(context: transfer.Context, to: Any, from_: Any) -> None:
    context.copy_async(to, from_).result()


def by_torch(to: Any, from_: Any) -> None:
    to.copy_(from_, non_blocking=True)
    torch.cuda.synchronize()


def main() -> None:
    contexts = {
        "default": transfer.Context(),
        "awake": transfer.Context(awake_seconds=0.002),
        "polite": transfer.Context(polite_bytes=4 * MIB),
    }
    there = torch.zeros(64 * MIB, dtype=torch.uint8, device="cuda")
    end = time.perf_counter() + 1.5  # until the clocks have risen
    while time.perf_counter() < end:
        there.add_(1)
        torch.cuda.synchronize()
    hosts = {
        "pinned": torch.zeros(64 * MIB, dtype=torch.uint8, pin_memory=True),
        "pageable": torch.zeros(64 * MIB, dtype=torch.uint8),
    }
    with torch.cuda.stream(torch.cuda.Stream()):
        for kib in (4, 64, 1024, 2048, 4096, 8192, 16384, 65536):
            for kind, memory in hosts.items():
                host, gpu = memory[: kib << 10], there[: kib << 10]
                for path, to, from_ in (("H2D", gpu, host), ("D2H", host, gpu)):
                    name = f"{kind} {path} {kib} KiB"
                    if kib <= 64:
                        measure(f"torch {name}", partial(by_torch, to, from_))
                    for which, context in contexts.items():
                        if which == "awake" and (kind == "pinned" or not 1024 <= kib <= 16384):
                            continue
                        if which == "polite" and kib < 8192:
                            continue
                        measure(
                            f"copy {which} {name}",
                            partial(copy, context, to, from_),
                        )
                    measure(
                        f"async default {name}",
                        partial(later, contexts["default"], to, from_),
                    )
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
