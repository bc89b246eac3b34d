"""Copies of pageable memory whose copying threads stay awake, beside plain copies.

    python benchmarks/awake.py [--processes 5] [--json FILE] [--within SECONDS]

Each process measures all methods in turn, with memory that was touched before: PyTorch's copies of
pinned and of pageable memory, and contexts with `plain`, with the defaults, and with
`spin_seconds`. `to torch` is the time of PyTorch's pageable copy in the same process, divided by
that of the method. The figure is the median over the processes, with their smallest and largest.
`CPUs` is the CPU time of the process in its wall time, while copies follow each other.

`without Python` is a program of C++ (`awake.cu`, compiled by nvcc) that runs after each process. It
calls the library's C interface, and beside it a prototype in plain CUDA whose threads stay awake,
in the shape that is fastest for each size. Needs torch, a GPU and nvcc.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from replicates import print_medians, replicates

MIB = 1 << 20
SIZES = (MIB // 2, MIB, 2 * MIB, 4 * MIB, 8 * MIB, 16 * MIB, 32 * MIB, 64 * MIB)
AWAKE_SECONDS = 0.002
ROOT = Path(__file__).parents[1]
Figures = dict[str, float]
# Threads of OpenMP, which torch copies between host memories with, would spin on all CPUs.
QUIET = {**os.environ, "OMP_WAIT_POLICY": "passive", "WAYWISER_POLICY": "off"}


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
        program = compiled(Path(folder))
        for figures in replicates(__file__, [], asked.processes, asked.within, QUIET):
            runs.append({**figures, **without_python(program)})
            if asked.json:
                asked.json.write_text(json.dumps(runs, indent=1) + "\n")
    print_medians(runs)
    return 0


def compiled(folder: Path) -> Path:
    import waywiser

    library = Path(waywiser.__file__).parent / "lib"
    program = folder / "awake"
    include = ROOT / "native" / "include"
    compiler = os.environ.get("CUDACXX") or shutil.which("nvcc")
    if compiler is None:
        sys.exit("awake.py: no nvcc is on the path: name it by CUDACXX")
    command: list[str | Path] = [compiler, "-O3", "-std=c++20", "-I", include, "-L", library]
    command += ["-Xlinker", f"-rpath={library}", "-o", program, ROOT / "benchmarks" / "awake.cu"]
    subprocess.run([*command, "-lwaywiser_transfer"], check=True)
    return program


def without_python(program: Path) -> Figures:
    command = [str(program), str(AWAKE_SECONDS)]
    output = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    found: Figures = {}
    for line in output.splitlines():
        row = json.loads(line)
        label = f"{row.pop('copy')}, without Python"
        found |= {f"{label}, {name}": value for name, value in row.items()}
        found[f"{label}, plain to awake"] = row["plain, us"] / row["awake, us"]
        found[f"{label}, plain to prototype"] = row["plain, us"] / row["prototype, us"]
        found[f"{label}, prototype to awake"] = row["prototype, us"] / row["awake, us"]
    return found


def replicate() -> Figures:
    from waywiser import transfer

    found: Figures = {}
    with (
        transfer.Context(plain=True) as plain,
        transfer.Context() as usual,
        transfer.Context(spin_seconds=AWAKE_SECONDS) as awake,
    ):
        for size in SIZES:
            for to_gpu in (True, False):
                found |= one(size, to_gpu, {"plain": plain, "default": usual, "awake": awake})
    return found


def one(size: int, to_gpu: bool, contexts: dict[str, Any]) -> Figures:
    import torch

    from waywiser import transfer

    there = torch.ones(size, dtype=torch.uint8, device="cuda")
    pageable = torch.ones(size, dtype=torch.uint8)
    pinned = transfer.pinned_empty((size,), torch.uint8)
    pinned.fill_(1)

    def torch_copy(host: Any) -> Callable[[], object]:
        if to_gpu:
            return lambda: there.copy_(host, non_blocking=True)
        return lambda: host.copy_(there, non_blocking=True)

    def copy(context: Any) -> Callable[[], object]:
        return lambda: context.copy(*((there, pageable) if to_gpu else (pageable, there)))

    methods = {"pinned": torch_copy(pinned), "torch": torch_copy(pageable)}
    methods |= {name: copy(context) for name, context in contexts.items()}
    label = f"{'H2D' if to_gpu else 'D2H'} {size / MIB:g} MiB"
    times, cpus = {}, {}
    rounds = 15 if size >= 64 * MIB else 60
    # Each method follows itself: threads stay awake from one copy to the next.
    for name, method in methods.items():
        seconds = []
        method()
        torch.cuda.synchronize()
        used, begun = time.process_time(), time.perf_counter()
        for _ in range(rounds):
            start = time.perf_counter()
            method()
            torch.cuda.synchronize()
            seconds.append(time.perf_counter() - start)
        cpus[name] = (time.process_time() - used) / (time.perf_counter() - begun)
        times[name] = statistics.median(seconds)
        time.sleep(2 * AWAKE_SECONDS)  # nobody spins in the next method's time
    found = {f"{label}, {name}, us": seconds * 1e6 for name, seconds in times.items()}
    found |= {
        f"{label}, {name}, to torch": times["torch"] / seconds
        for name, seconds in times.items()
        if name != "torch"
    }
    found[f"{label}, awake, of the pinned bandwidth"] = times["pinned"] / times["awake"]
    return found | {f"{label}, {name}, CPUs": share for name, share in cpus.items()}


if __name__ == "__main__":
    sys.exit(main())
