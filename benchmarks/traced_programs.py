"""Programs whose copies `waywiser trace` is tried on: as people write them, and as it advises.

    python benchmarks/traced_programs.py NAME ... [--advised] [--steps N] [--pairs N] [--times N]

NAME: loop (a training loop with batches from pageable memory, results and small numbers one by
one), images (a DataLoader), pretrained (transformers loads a model from files), generate (with an
offloaded cache), cupy, kernels (large kernels alone), launches (small kernels alone), graph (the
same in a CUDA graph), small (copies of 64 B), threads (--threads that copy in turn, with events of
CUDA around each copy), steady (copies for so many seconds), profiled (torch.profiler beside it),
processes (one for each GPU, spawned, with copies between them and collectives). Needs a GPU and
PyTorch; pretrained and generate transformers, cupy CuPy. Prints a line of JSON: the seconds of the
part that is measured, and what it copied. With --pairs each program runs as written and as advised,
in turn, so many times.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import tempfile
import threading
import time
from collections.abc import Callable
from typing import Any

import torch

MIB = 1 << 20
GPU = "cuda"


def timed(work: Callable[[], Any], warm: Callable[[], Any] | None = None) -> float:
    """Seconds of the work, with all that it started on the GPU."""
    if warm is not None:
        warm()
    torch.cuda.synchronize()
    started = time.perf_counter()
    work()
    torch.cuda.synchronize()
    return time.perf_counter() - started


def loop(steps: int, advised: bool) -> dict[str, Any]:
    batch = torch.ones(16 * MIB, dtype=torch.float32, pin_memory=advised)
    weight = torch.randn(4096, 4096, device=GPU)
    kept = torch.empty(16 * MIB, dtype=torch.float32, pin_memory=True)
    numbers = [torch.ones(16, dtype=torch.float32) for _ in range(250)]

    def work() -> None:
        for step in range(steps):
            there = batch.to(GPU, non_blocking=advised)
            out = there.view(4096, 4096) @ weight
            if step % 10 == 9:
                if advised:
                    kept.copy_(out.view(-1), non_blocking=True)
                else:
                    out.cpu()
            if advised:
                torch.cat(numbers).to(GPU)
            else:
                for number in numbers:
                    number.to(GPU)

    def warm() -> None:
        batch.to(GPU)
        weight @ weight

    return {"seconds": timed(work, warm), "h2d_bytes": steps * (64 * MIB + 250 * 64)}


def images(steps: int, advised: bool) -> dict[str, Any]:
    from torch.utils.data import DataLoader, TensorDataset

    data = TensorDataset(torch.zeros(64 * steps, 3, 224, 224, dtype=torch.uint8))
    loader = DataLoader(data, batch_size=64, num_workers=2, pin_memory=advised)
    convolution = torch.nn.Conv2d(3, 16, 7, device=GPU)

    def work() -> None:
        with torch.no_grad():
            for (batch,) in loader:
                there = batch.to(GPU, non_blocking=advised)
                convolution(there.float())

    def warm() -> None:
        convolution(torch.zeros(1, 3, 224, 224, device=GPU))

    return {"seconds": timed(work, warm), "h2d_bytes": steps * 64 * 3 * 224 * 224}


@functools.cache
def _model() -> Any:
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=32000, hidden_size=2048, intermediate_size=5504, num_hidden_layers=12,
        num_attention_heads=16,
    )  # fmt: skip
    return LlamaForCausalLM(config).to(torch.float16)


def pretrained(steps: int, advised: bool) -> dict[str, Any]:
    from transformers import LlamaForCausalLM

    from waywiser.transfer.torch import patch

    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        _model().cpu().save_pretrained(folder)

        def load() -> Any:
            model = LlamaForCausalLM.from_pretrained(folder, dtype=torch.float16)
            if not advised:
                return model.to(GPU)
            with patch():
                return model.to(GPU)

        torch.zeros(1, device=GPU)
        seconds = timed(load)
    return {"seconds": seconds}


def generate(steps: int, advised: bool) -> dict[str, Any]:
    from waywiser.transfer.torch import patch

    torch.zeros(1, device=GPU)
    model = _model().cpu()

    def load() -> None:
        if advised:
            with patch():
                model.to(GPU)
        else:
            model.to(GPU)

    loading = timed(load)
    words = torch.ones(1, 512, dtype=torch.long, device=GPU)

    def run(count: int) -> None:
        model.generate(words, max_new_tokens=count, do_sample=False,
                       cache_implementation="offloaded", pad_token_id=0)  # fmt: skip

    generating = timed(lambda: run(steps), lambda: run(2))
    return {"seconds": loading + generating, "load_seconds": loading}


def cupy(steps: int, advised: bool) -> dict[str, Any]:
    import cupy as cp
    import cupyx
    import numpy as np

    host = np.ones(16 * MIB, dtype=np.float32)
    if advised:
        pinned = cupyx.empty_pinned(host.shape, dtype=host.dtype)
        pinned[...] = host
        host = pinned
    there = cp.empty(host.shape, dtype=host.dtype)

    def work() -> None:
        for _ in range(steps):
            there.set(host)
            cp.sqrt(there, out=there)
        cp.cuda.Device().synchronize()

    return {"seconds": timed(work, lambda: there.set(host)), "h2d_bytes": steps * host.nbytes}


def kernels(steps: int, advised: bool) -> dict[str, Any]:
    a = torch.randn(4096, 4096, device=GPU)
    out = torch.empty_like(a)

    def work() -> None:
        for _ in range(steps):
            torch.mm(a, a, out=out)

    return {"seconds": timed(work, work)}


def launches(steps: int, advised: bool) -> dict[str, Any]:
    a = torch.zeros(16, device=GPU)

    def work() -> None:
        for _ in range(steps):
            a.add_(1)

    return {"seconds": timed(work, work)}


def graph(steps: int, advised: bool) -> dict[str, Any]:
    a = torch.zeros(16, device=GPU)
    a.add_(1)
    torch.cuda.synchronize()
    captured = torch.cuda.CUDAGraph()
    with torch.cuda.graph(captured):
        for _ in range(100):
            a.add_(1)

    def work() -> None:
        for _ in range(steps // 100):
            captured.replay()

    return {"seconds": timed(work, work)}


def small(steps: int, advised: bool) -> dict[str, Any]:
    host = torch.ones(16, pin_memory=True)
    there = torch.empty(16, device=GPU)

    def work() -> None:
        for _ in range(steps):
            there.copy_(host, non_blocking=True)

    return {"seconds": timed(work, work), "copies": 2 * steps}


def threads(steps: int, advised: bool, workers: int = 8) -> dict[str, Any]:
    """``steps`` copies of 256 MiB of each thread, in turn, and the time of each by events."""
    host = torch.ones(256 * MIB, dtype=torch.uint8, pin_memory=True)
    seconds: list[float] = []
    turn = threading.Lock()

    def copies() -> None:
        there = torch.empty(256 * MIB, dtype=torch.uint8, device=GPU)
        with torch.cuda.stream(torch.cuda.Stream()):
            before, after = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            for _ in range(steps):
                with turn:
                    before.record()
                    there.copy_(host, non_blocking=True)
                    after.record()
                    after.synchronize()
                    seconds.append(before.elapsed_time(after) / 1e3)

    torch.zeros(1, device=GPU)
    running = [threading.Thread(target=copies) for _ in range(workers)]
    for worker in running:
        worker.start()
    for worker in running:
        worker.join()
    found = {"copies": len(seconds), "h2d_bytes": len(seconds) * host.nbytes}
    return {"seconds": sum(seconds), "threads": workers, **found}


def steady(steps: int, advised: bool) -> dict[str, Any]:
    """Copies to the GPU, and half as many back, for ``steps`` seconds."""
    host = torch.ones(64 * MIB, dtype=torch.uint8, pin_memory=True)
    there = torch.empty_like(host, device=GPU)
    print(json.dumps({"pid": os.getpid()}), flush=True)
    copies = 0
    started = time.perf_counter()
    while time.perf_counter() - started < steps:
        for _ in range(2):
            there.copy_(host, non_blocking=True)
        host.copy_(there, non_blocking=True)
        torch.cuda.synchronize()
        copies += 1
    seconds = time.perf_counter() - started
    moved = {"h2d_bytes": 2 * copies * host.nbytes, "d2h_bytes": copies * host.nbytes}
    return {"seconds": seconds, **moved}


def profiled(steps: int, advised: bool) -> dict[str, Any]:
    """Copies before, and beside, ``torch.profiler``: how many of them it sees."""
    from torch.profiler import ProfilerActivity, profile

    host = torch.ones(MIB, dtype=torch.uint8)
    there = torch.empty_like(host, device=GPU)
    for _ in range(steps):
        there.copy_(host)
    with profile(activities=[ProfilerActivity.CUDA]) as found:
        for _ in range(steps):
            there.copy_(host)
        torch.cuda.synchronize()
    seen = sum(event.count for event in found.key_averages() if "Memcpy HtoD" in event.key)
    return {"seconds": 0.0, "copies": 2 * steps, "seen_by_profiler": seen}


def _process(rank: int, count: int, steps: int, port: int) -> None:
    import torch.distributed as dist

    torch.cuda.set_device(rank)
    dist.init_process_group(
        "nccl", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=count
    )
    batch = torch.ones(16 * MIB, dtype=torch.uint8)
    sums = torch.ones(4 * MIB, device=f"cuda:{rank}")
    other = torch.empty_like(sums, device=f"cuda:{(rank + 1) % count}")
    for _ in range(steps):
        batch.to(f"cuda:{rank}")
        dist.all_reduce(sums)
        other.copy_(sums)
    torch.cuda.synchronize()
    dist.destroy_process_group()


def processes(steps: int, advised: bool) -> dict[str, Any]:
    import socket

    count = torch.cuda.device_count()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    started = time.perf_counter()
    torch.multiprocessing.spawn(_process, (count, steps, port), nprocs=count)
    moved = {"h2d_bytes": count * steps * 16 * MIB, "p2p_bytes": count * steps * 16 * MIB}
    return {"seconds": time.perf_counter() - started, "processes": count, **moved}


PROGRAMS = {
    each.__name__: each
    for each in (
        loop, images, pretrained, generate, cupy, kernels, launches, graph, small, threads, steady,
        profiled, processes,
    )
}  # fmt: skip
STEPS = {
    "loop": 80, "images": 40, "generate": 20, "cupy": 60, "kernels": 300, "launches": 100_000,
    "graph": 100_000, "small": 20_000, "threads": 20, "steady": 8, "profiled": 50, "processes": 30,
}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="+", choices=PROGRAMS)
    parser.add_argument("--advised", action="store_true")
    parser.add_argument("--pairs", type=int, default=0, help="as written and as advised, in turn")
    parser.add_argument("--times", type=int, default=1)
    parser.add_argument("--steps", type=int, default=0)
    parser.add_argument("--threads", type=int, default=8)
    options = parser.parse_args()
    runs = [False, True] * options.pairs or [options.advised] * options.times
    for name in options.names:
        steps = options.steps or STEPS.get(name, 1)
        others = {"workers": options.threads} if name == "threads" else {}
        for advised in runs:
            found = PROGRAMS[name](steps, advised, **others)
            print(json.dumps({"name": name, "advised": advised, "steps": steps, **found}))


if __name__ == "__main__":
    main()
