"""Medians of copies in one process, in microseconds, with their CPU time, as JSON.

PYTHONPATH=TREE/python python copy_times.py    for two trees in turn: before, after, after, before
"""

from __future__ import annotations

import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from waywiser import transfer

MIB = 1 << 20
SECONDS = float(os.environ.get("AB_SECONDS", "0.12"))
OLD_NAMES = {"spin_seconds": "awake_seconds", "max_queued_bytes": "polite_bytes"}
"""The names of options at 45c76b13."""

figures: dict[str, list[float]] = {}


def measure(name: str, call: Callable[[], Any], pause: float = 0.0, least: int = 7) -> None:
    for _ in range(3):
        call()
    times: list[float] = []
    cpu = 0.0
    end = time.perf_counter() + SECONDS
    while len(times) < least or (time.perf_counter() < end and len(times) < 4000):
        if pause:
            time.sleep(pause)
        cpu_start, start = time.process_time(), time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
        cpu += time.process_time() - cpu_start
    figures[name] = [statistics.median(times) * 1e6, cpu / len(times) * 1e6]


def copy(context: transfer.Context, to: Any, from_: Any) -> None:
    context.copy(to, from_)
    torch.cuda.synchronize()


def later(context: transfer.Context, to: Any, from_: Any) -> None:
    context.copy_async(to, from_).result()


def by_torch(to: Any, from_: Any) -> None:
    to.copy_(from_, non_blocking=True)
    torch.cuda.synchronize()


def context(**options: Any) -> transfer.Context:
    try:
        return transfer.Context(**options)
    except TypeError:
        return transfer.Context(**{OLD_NAMES[name]: value for name, value in options.items()})


def methods(kind: str, kib: int) -> list[str]:
    """The contexts that copy so many bytes of pinned or pageable memory."""
    large = kib >= 65536
    found = ["default"]
    if kind == "pageable" and 1024 <= kib <= 65536:
        found.append("awake")
    return found + (["polite", "relay"] if large else [])


def measure_copies(
    contexts: dict[str, transfer.Context], there: Any, hosts: dict[str, Any], kib: int
) -> None:
    default = contexts["default"]
    for kind, memory in hosts.items():
        host, gpu = memory[: kib << 10], there[: kib << 10]
        for path, to, from_ in (("H2D", gpu, host), ("D2H", host, gpu)):
            name = f"{kind} {path} {kib} KiB"
            if kib in (4, 65536):
                measure(f"torch {name}", partial(by_torch, to, from_))
            if kind == "pageable" or kib <= 65536:
                for which in methods(kind, kib):
                    if which in contexts:
                        measure(f"copy {which} {name}", partial(copy, contexts[which], to, from_))
            if kib in (4, 65536):
                measure(f"async default {name}", partial(later, default, to, from_))
            if kib in (16384, 65536):
                call = partial(copy, default, to, from_)
                measure(f"paused default {name}", call, pause=0.01, least=15)
    if kib in (65536, 1048576):
        half = kib << 9
        to, from_ = hosts["pageable"][:half], hosts["pageable"][half : 2 * half]
        measure(f"host to host {kib // 2} KiB", partial(default.copy, to, from_))


def measure_files(default: transfer.Context, there: Any, host: Any) -> None:
    count = 256 * MIB
    with tempfile.NamedTemporaryFile(dir="/dev/shm") as file:
        file.write(bytes(count))
        file.flush()

        def read() -> None:
            default.read(file.name, there[:count])
            torch.cuda.synchronize()

        measure("read to GPU 262144 KiB", read)
        measure("read to host 262144 KiB", lambda: default.read(file.name, host[:count]))
        measure("write from GPU 262144 KiB", lambda: default.write(file.name, there[:count]))


def main() -> None:
    contexts = {
        "default": context(),
        "awake": context(spin_seconds=0.002),
        "polite": context(max_queued_bytes=4 * MIB),
    }
    if torch.cuda.device_count() > 1:
        contexts["relay"] = context(relays=[1])
    there = torch.zeros(1024 * MIB, dtype=torch.uint8, device="cuda")
    end = time.perf_counter() + 1.0  # until the clocks have risen
    while time.perf_counter() < end:
        there[: 64 * MIB].add_(1)
        torch.cuda.synchronize()
    hosts = {
        "pinned": torch.zeros(1024 * MIB, dtype=torch.uint8, pin_memory=True),
        "pageable": torch.zeros(1024 * MIB, dtype=torch.uint8),
    }
    with torch.cuda.stream(torch.cuda.Stream()):
        for kib in (4, 1024, 8192, 16384, 65536, 262144, 1048576):
            measure_copies(contexts, there, hosts, kib)
        measure_files(contexts["default"], there, hosts["pageable"])
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
