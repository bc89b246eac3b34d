"""How fast tensors of a GPU are saved, on a disk and in memory, with the bytes on the disk.

    python benchmarks/saving.py FOLDER [FOLDER ...] --nbytes 2GiB --processes 5 --out results.json

It needs torch, safetensors and a GPU (--device cpu: without one). Every process saves the same
tensors once by each method, in an order of its own; each file is brought to the disk (fsync of the
file and of its folder) and removed. `direct I/O alone` writes as many bytes of page-aligned host
memory with O_DIRECT to a new file, by eight threads in blocks of 1 MiB, and brings it to the disk:
what the disk takes. A ratio is that of the times of one process; the median over processes is
printed with the smallest and the largest.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import mmap
import os
import random
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from waywiser.words import parse_bytes

DIRECT = "direct I/O alone"
OURS = "waywiser save_files"
BLOCK = 2**20
THREADS = 8
TENSORS = 48
"""As many weights as a model of 2 GiB has; each has a small one beside it."""


def tensors_of(nbytes: int, device: str) -> dict[str, Any]:
    import torch

    count = nbytes // TENSORS // 2
    made: dict[str, Any] = {}
    for number in range(TENSORS):
        made[f"layers.{number}.weight"] = torch.randn(count // 1024, 1024, device=device).to(
            torch.bfloat16
        )
        made[f"layers.{number}.norm"] = torch.randn(4096, device=device)
    return made


def sync(path: Path) -> None:
    for each, flags in ((path, os.O_RDONLY), (path.parent, os.O_RDONLY | os.O_DIRECTORY)):
        descriptor = os.open(each, flags)
        os.fsync(descriptor)
        os.close(descriptor)


def direct_alone(path: Path, memory: mmap.mmap, nbytes: int) -> None:
    """Writes page-aligned memory, again and again, around the page cache where that is possible."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    try:
        descriptor = os.open(path, flags | os.O_DIRECT, 0o600)
    except OSError:
        path.unlink(missing_ok=True)
        descriptor = os.open(path, flags, 0o600)
    in_memory = str(path).startswith("/dev/shm/")
    if not in_memory:
        os.posix_fallocate(descriptor, 0, nbytes)
    view = memoryview(memory)
    starts = iter(range(0, nbytes, BLOCK))
    lock = threading.Lock()

    def write() -> None:
        while True:
            with lock:
                at = next(starts, None)
            if at is None:
                return
            begin = at % len(memory)
            done = os.pwrite(descriptor, view[begin : begin + BLOCK], at)
            assert done == BLOCK

    threads = [threading.Thread(target=write) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    os.close(descriptor)
    view.release()


def work(folder: Path, nbytes: int, device: str, seed: int) -> dict[str, float]:
    """Seconds by each method in this process."""
    import safetensors.torch
    import torch

    from waywiser.transfer.torch import save_files

    tensors = tensors_of(nbytes, device)
    total = sum(each.nbytes for each in tensors.values()) // BLOCK * BLOCK
    memory = mmap.mmap(-1, 64 * BLOCK)
    ctypes.memset(ctypes.addressof(ctypes.c_char.from_buffer(memory)), 7, len(memory))
    methods: dict[str, Callable[[Path], None]] = {
        DIRECT: lambda path: direct_alone(path, memory, total),
        OURS: lambda path: save_files(tensors, path),
        "safetensors.torch.save_file": lambda path: safetensors.torch.save_file(tensors, path),
        "torch.save": lambda path: torch.save(tensors, path),
    }
    order = [*methods]
    random.Random(seed).shuffle(order)
    save_files({"warm": torch.zeros(2**24, device=device)}, folder / "warm.safetensors")
    (folder / "warm.safetensors").unlink()
    if device != "cpu":
        torch.cuda.synchronize()
    found = {}
    for name in order:
        path = folder / f"saved-{seed}.bin"
        begin = time.perf_counter()
        methods[name](path)
        sync(path)
        found[name] = time.perf_counter() - begin
        if name == OURS:
            check(path, tensors)
        path.unlink()
        sync(folder)
    return {name: found[name] for name in methods} | {"bytes": float(total)}


def check(path: Path, tensors: dict[str, Any]) -> None:
    """The file has the tensors."""
    import safetensors
    import torch

    with safetensors.safe_open(path, "pt") as file:
        assert set(file.keys()) == set(tensors)
        for name in ("layers.0.norm", f"layers.{TENSORS - 1}.weight"):
            assert torch.equal(file.get_tensor(name), tensors[name].cpu()), name


def measured(folder: Path, arguments: argparse.Namespace) -> list[dict[str, float]]:
    runs = []
    for seed in range(arguments.processes):
        command = [
            sys.executable, __file__, str(folder), "--nbytes", arguments.nbytes, "--device",
            arguments.device, "--seed", str(seed),
        ]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(done.stderr)
        runs.append(json.loads(done.stdout.splitlines()[-1]))
        print(json.dumps(runs[-1]), file=sys.stderr, flush=True)
    return runs


def table(folder: Path, runs: list[dict[str, float]]) -> str:
    lines = [
        f"{folder}, {runs[0]['bytes'] / 2**30:.2f} GiB, {len(runs)} processes",
        "",
        "| method | GB/s, median | to direct I/O alone: median, smallest to largest |",
        "|---|---|---|",
    ]
    for name in runs[0]:
        if name == "bytes":
            continue
        rates = [run["bytes"] / run[name] / 1e9 for run in runs]
        ratios = [run[DIRECT] / run[name] for run in runs]
        lines.append(
            f"| {name} | {statistics.median(rates):.2f} | {statistics.median(ratios):.2f}, "
            f"{min(ratios):.2f} to {max(ratios):.2f} |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--nbytes", default="2GiB")
    parser.add_argument("--processes", type=int, default=5)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--seed", type=int)
    arguments = parser.parse_args()
    if arguments.seed is not None:
        print(json.dumps(work(
            arguments.folders[0], parse_bytes(arguments.nbytes), arguments.device, arguments.seed
        )))  # fmt: skip
        return
    all_runs = {}
    for folder in arguments.folders:
        runs = measured(folder, arguments)
        all_runs[str(folder)] = runs
        print(table(folder, runs), end="\n\n", flush=True)
        if arguments.out:
            arguments.out.write_text(json.dumps(all_runs, indent=1))


if __name__ == "__main__":
    main()
