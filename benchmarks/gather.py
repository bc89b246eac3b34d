"""Compares lists with a contiguous host side with contiguous copies: blocks of a GPU that are
gathered into one pinned buffer, or scattered from it. Beside them lists that are scattered on both
sides ("mixed"), of pinned and of pageable memory.

    python benchmarks/gather.py [--processes 5] [--json FILE] [--within SECONDS]

Each process measures all methods in turn: `copy_blocks`, PyTorch's index on the GPU with one copy,
and the prototype in plain CUDA (`gather.cu`, compiled by nvcc), which has its index on the GPU
before the time starts. A ratio is to the contiguous copy of the same process; the figure is the
median over the processes, with their smallest and largest. A matrix product is timed alone and
beside. Needs torch, a GPU and nvcc.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from replicates import print_medians, replicates

KIB, MIB = 1 << 10, 1 << 20
BLOCKS = (KIB, 4 * KIB, 16 * KIB, 28 * KIB, 64 * KIB, 128 * KIB)
TOTAL = 256 * MIB
ROUNDS = 9
PROTOTYPE = Path(__file__).with_name("gather.cu")
Figures = dict[str, float]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--processes", type=int, default=5)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--within", type=float, default=float("inf"), metavar="SECONDS")
    parser.add_argument("--replicate", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.replicate:
        json.dump(replicate(), sys.stdout)
        return 0
    runs: list[Figures] = []
    with tempfile.TemporaryDirectory() as folder:
        prototype = Path(folder) / "gather"
        subprocess.run(
            ["nvcc", "-O3", "-std=c++20", "-arch=native", "-o", prototype, PROTOTYPE], check=True
        )
        for figures in replicates(__file__, [], asked.processes, asked.within):
            runs.append({**figures, **of_prototype(output([str(prototype)]))})
            if asked.json:
                asked.json.write_text(json.dumps(runs, indent=1) + "\n")
    print_medians(runs)
    return 0


def output(command: list[str]) -> str:
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout


def of_prototype(text: str) -> Figures:
    found: Figures = {}
    for line in text.splitlines():
        row = json.loads(line)
        size = f"{row['block'] // KIB} KiB, prototype"
        for way in ("D2H", "H2D"):
            found[f"{way} {size}"] = row[f"contiguous {way}"] / row[way]
        found[f"multiprocessors busy, D2H {size}"] = row["multiprocessors"]
    return found


def timed(methods: dict[str, Callable[[], object]], waiting: tuple[str, ...] = ()) -> Figures:
    """The median time of each method, in turns: until the GPU is idle. Those that are named as
    ``waiting`` return when the transfer has ended: to look whether a GPU is idle takes some 70 us
    more."""
    import torch

    times: dict[str, list[float]] = {name: [] for name in methods}
    for number in range(ROUNDS + 1):
        for name, method in methods.items():
            torch.cuda.synchronize()
            start = time.perf_counter()
            method()
            if name not in waiting:
                torch.cuda.synchronize()
            if number > 0:
                times[name].append(time.perf_counter() - start)
    return {name: statistics.median(each) for name, each in times.items()}


def replicate() -> Figures:
    found: Figures = {}
    for size in BLOCKS:
        found |= blocks(size)
    return found | beside_a_product()


class Blocks:
    """Scattered blocks of a GPU, and a pinned buffer for them."""

    def __init__(self, size: int) -> None:
        import torch

        from waywiser import transfer

        self.count = TOTAL // size
        self.pool = torch.empty((2 * self.count, size), dtype=torch.uint8, device="cuda")
        self.pool.random_(0, 256)
        self.host = transfer.pinned_empty((self.count, size), torch.uint8)
        self.order = torch.randperm(2 * self.count)[: self.count]
        self.on_gpu = self.order.cuda()
        self.ascending = torch.arange(self.count)

    def save(self) -> Any:
        from waywiser import transfer

        return transfer.copy_blocks_async(self.host, self.pool, self.ascending, self.order)

    def load(self) -> Any:
        from waywiser import transfer

        return transfer.copy_blocks_async(self.pool, self.host, self.order, self.ascending)


def blocks(size: int) -> Figures:
    import torch

    one = Blocks(size)
    there = one.pool[: one.count]
    expected = one.pool.index_select(0, one.on_gpu).cpu()
    one.save().result()
    assert torch.equal(one.host, expected), "gathered wrong bytes"
    one.host.copy_(expected.flip(1))
    one.load().result()
    torch.cuda.synchronize()
    assert torch.equal(one.pool.index_select(0, one.on_gpu).cpu(), one.host), (
        "scattered wrong bytes"
    )
    mixed = torch.randperm(one.count)
    pageable = torch.zeros_like(one.host, pin_memory=False)
    from waywiser import transfer

    transfer.copy_blocks(pageable, one.pool, mixed, one.order)
    assert torch.equal(pageable[mixed], one.pool.index_select(0, one.on_gpu).cpu()), (
        "gathered wrong bytes into pageable memory"
    )
    times = timed(
        {
            "contiguous D2H": lambda: one.host.copy_(there, non_blocking=True),
            "contiguous H2D": lambda: there.copy_(one.host, non_blocking=True),
            "D2H": lambda: one.save().result(),
            "H2D": lambda: one.load().result(),
            "D2H, submitted": one.save,
            "D2H, index_select": lambda: one.host.copy_(
                one.pool.index_select(0, one.on_gpu), non_blocking=True
            ),
            "H2D, index_copy_": lambda: one.pool.index_copy_(
                0, one.on_gpu, one.host.to("cuda", non_blocking=True)
            ),
            "D2H, mixed": lambda: transfer.copy_blocks(one.host, one.pool, mixed, one.order),
            "H2D, mixed": lambda: transfer.copy_blocks(one.pool, one.host, one.order, mixed),
            "D2H, mixed, pageable": lambda: transfer.copy_blocks(
                pageable, one.pool, mixed, one.order
            ),
            "H2D, mixed, pageable": lambda: transfer.copy_blocks(
                one.pool, pageable, one.order, mixed
            ),
        },
        waiting=("D2H", "H2D"),
    )
    label = f"{size // KIB} KiB"
    found = {
        f"{name.split(',')[0]} {label}{name[3:]}": times[f"contiguous {name[:3]}"] / times[name]
        for name in times
        if not name.startswith("contiguous")
    }
    found[f"contiguous D2H, GB/s, {label}"] = TOTAL / times["contiguous D2H"] / 1e9
    busy = multiprocessors(one.save)
    if busy is not None:
        found[f"multiprocessors busy, D2H {label}"] = busy / times["D2H"]
        found[f"multiprocessors busy, H2D {label}"] = (multiprocessors(one.load) or 0) / times[
            "H2D"
        ]
    return found


def multiprocessors(method: Callable[[], Any]) -> float | None:
    """Seconds of kernels times their blocks, in one call; None if the profiler sees no kernel."""
    import torch

    activities = [torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=activities) as profile:
        method().result()
        torch.cuda.synchronize()
    with tempfile.NamedTemporaryFile(suffix=".json") as trace:
        profile.export_chrome_trace(trace.name)
        events = json.loads(Path(trace.name).read_text())["traceEvents"]
    kernels = [event for event in events if event.get("cat") == "kernel"]
    if not kernels:
        return None
    return float(sum(event["dur"] * 1e-6 * event["args"]["grid"][0] for event in kernels))


def beside_a_product() -> Figures:
    import torch

    one = Blocks(16 * KIB)
    left, right = (torch.randn(8192, 8192, dtype=torch.bfloat16, device="cuda") for _ in range(2))
    product = torch.empty_like(left)
    aside = torch.cuda.Stream()
    there = one.pool[: one.count]

    def alone(copies: Callable[[], object] | None) -> tuple[float, float]:
        torch.cuda.synchronize()
        start, stop, ended = (torch.cuda.Event(enable_timing=True) for _ in range(3))
        kept = []
        with torch.cuda.stream(aside):
            start.record()
            for _ in range(12 if copies else 0):  # about 60 ms; the products take 30
                kept.append(copies() if copies else None)
            ended.record()
        begin = torch.cuda.Event(enable_timing=True)
        begin.record()
        for _ in range(20):
            torch.matmul(left, right, out=product)
        stop.record()
        torch.cuda.synchronize()
        return begin.elapsed_time(stop), start.elapsed_time(ended)

    def contiguous() -> object:
        return one.host.copy_(there, non_blocking=True)

    methods = {"alone": None, "contiguous D2H": contiguous, "D2H": one.save, "H2D": one.load}
    products: dict[str, list[float]] = {name: [] for name in methods}
    copies: dict[str, list[float]] = {name: [] for name in methods}
    for _ in range(8):
        for name, method in methods.items():
            product_time, copy_time = alone(method)
            products[name].append(product_time)
            copies[name].append(copy_time)
    base = statistics.median(products["alone"][1:])
    found = {
        f"product beside {name}, times as long": statistics.median(each[1:]) / base
        for name, each in products.items()
        if name != "alone"
    }
    pace = statistics.median(copies["contiguous D2H"][1:])
    for way in ("D2H", "H2D"):
        found[f"{way} beside a product, to contiguous D2H"] = pace / statistics.median(
            copies[way][1:]
        )
    return found


if __name__ == "__main__":
    sys.exit(main())
