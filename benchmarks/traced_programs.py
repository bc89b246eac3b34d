"""Programs whose copies `waywiser trace` is tried on: as people write them, and as it advises.

    python benchmarks/traced_programs.py NAME [--advised] [--steps N]

NAME: loop (a training loop with batches from pageable memory, results and small numbers one by
one), images (a DataLoader), pretrained (transformers loads a model from files), generate (with an
offloaded cache), cupy, kernels (large kernels alone), launches (small kernels alone), graph (the
same in a CUDA graph), small (copies of 64 B), threads (so many threads that copy). Needs a GPU and
PyTorch; pretrained and generate transformers, cupy CuPy. Prints a line of JSON: the seconds of the
part that is measured, and what it copied.
"""

from __future__ import annotations

import argparse
import json
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
        _model().save_pretrained(folder)

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
    model = _model().to(GPU)
    words = torch.ones(1, 512, dtype=torch.long, device=GPU)
    kind = None if advised else "offloaded"

    def run(count: int) -> None:
        model.generate(words, max_new_tokens=count, do_sample=False, cache_implementation=kind,
                       pad_token_id=0)  # fmt: skip

    return {"seconds": timed(lambda: run(steps), lambda: run(2))}


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


def threads(steps: int, advised: bool) -> dict[str, Any]:
    """``steps`` copies of 8 MiB and the time of each by events, in 8 threads."""
    host = torch.ones(8 * MIB, dtype=torch.uint8, pin_memory=True)
    seconds: list[float] = []

    def copies() -> None:
        there = torch.empty(8 * MIB, dtype=torch.uint8, device=GPU)
        with torch.cuda.stream(torch.cuda.Stream()):
            before, after = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            for _ in range(steps):
                before.record()
                there.copy_(host, non_blocking=True)
                after.record()
                after.synchronize()
                seconds.append(before.elapsed_time(after) / 1e3)

    torch.zeros(1, device=GPU)
    workers = [threading.Thread(target=copies) for _ in range(1 if advised else 8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return {"seconds": sum(seconds), "copies": len(seconds), "h2d_bytes": len(seconds) * 8 * MIB}


PROGRAMS = {
    each.__name__: each
    for each in (loop, images, pretrained, generate, cupy, kernels, launches, graph, small, threads)
}
STEPS = {
    "loop": 80, "images": 40, "generate": 40, "cupy": 60, "kernels": 300, "launches": 100_000,
    "graph": 100_000, "small": 20_000, "threads": 100,
}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("name", choices=PROGRAMS)
    parser.add_argument("--advised", action="store_true")
    parser.add_argument("--steps", type=int, default=0)
    options = parser.parse_args()
    steps = options.steps or STEPS.get(options.name, 1)
    found = PROGRAMS[options.name](steps, options.advised)
    print(json.dumps({"name": options.name, "advised": options.advised, "steps": steps, **found}))


if __name__ == "__main__":
    main()
