"""Measures programs of PyTorch before and after `waywiser.transfer.torch.patch()`.

    python benchmarks/patched.py [--processes 5] [--only PATTERN] [--seconds 1]
                                 [--within SECONDS] [--json FILE]

Every process measures all rows. PyTorch's calls outside and inside of `patch()`, and the library's
own call where it says where the library begins to be faster, take turns in random order. A row's
ratio is the median time over the median time outside of `patch()`, in the same process: below 1 is
faster. The figure is the median over the processes, the interval the smallest and the largest one.
Needs torch and a GPU.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from replicates import replicates

MIB = 1 << 20
BEFORE, AFTER = "PyTorch", "patch()"
OURS = "waywiser"
# Threads of OpenMP would spin on all CPUs for some milliseconds after each copy by torch.
QUIET = {**os.environ, "OMP_WAIT_POLICY": "passive"}
Method = Callable[[], object]


def both(call: Method) -> dict[str, Method]:
    """A call outside and inside of `patch()`; `times` enters the block before it starts."""
    return {BEFORE: call, AFTER: call}


# --- programs ----------------------------------------------------------------------------------


def training() -> dict[str, Method]:
    """Ten steps on batches of images in pageable memory (73.5 MiB), and one checkpoint of the
    weights and of Adam's state in host memory."""
    import torch

    model = torch.nn.Sequential(
        torch.nn.Conv2d(3, 64, 7, stride=4), torch.nn.ReLU(), torch.nn.AdaptiveAvgPool2d(8),
        torch.nn.Flatten(), torch.nn.Linear(4096, 4096), torch.nn.ReLU(),
        torch.nn.Linear(4096, 1000),
    ).cuda()  # fmt: skip
    optimizer = torch.optim.Adam(model.parameters())
    images = [torch.rand(128, 3, 224, 224) for _ in range(4)]
    labels = torch.randint(0, 1000, (128,))

    def run() -> None:
        for step in range(10):
            found = model(images[step % len(images)].to("cuda"))
            loss = torch.nn.functional.cross_entropy(found, labels.to("cuda"))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            loss.item()
        for kept in optimizer.state.values():
            kept["exp_avg"].cpu()
            kept["exp_avg_sq"].cpu()
        for value in model.state_dict().values():
            value.cpu()

    return both(run)


def swapping() -> dict[str, Method]:
    """Two requests to two models of 1 GiB, of which one is on the GPU at a time."""
    import torch

    models = [
        torch.nn.Sequential(*(torch.nn.Linear(4096, 4096, bias=False) for _ in range(16)))
        for _ in range(2)
    ]
    request = torch.rand(64, 4096)

    def run() -> None:
        with torch.inference_mode():
            for model in models:
                model.to("cuda")
                model(request.to("cuda")).cpu()
                model.to("cpu")

    return both(run)


def offloading() -> dict[str, Method]:
    """A forward pass through layers whose weights (64 MiB each) stay in pageable memory."""
    import torch

    weights = [torch.rand(4096, 4096) for _ in range(16)]
    there = torch.empty(4096, 4096, device="cuda")
    request = torch.rand(64, 4096, device="cuda")

    def run() -> None:
        with torch.inference_mode():
            value = request
            for weight in weights:
                there.copy_(weight)
                value = torch.nn.functional.linear(value, there)
            value.cpu()

    return both(run)


def small_requests() -> dict[str, Method]:
    """A hundred requests of 256 KiB to a model that stays on the GPU: no copy is the library's."""
    import torch

    model = torch.nn.Linear(1024, 1024).cuda()
    request = torch.rand(64, 1024)

    def run() -> None:
        with torch.inference_mode():
            for _ in range(100):
                model(request.to("cuda")).cpu()

    return both(run)


PROGRAMS = {
    "training: 10 steps and a checkpoint": training,
    "serving: 2 models of 1 GiB take turns": swapping,
    "serving: 16 layers of 64 MiB from the host": offloading,
    "serving: 100 small requests": small_requests,
}


# --- calls -------------------------------------------------------------------------------------


def to_gpu(nbytes: int) -> dict[str, Method]:
    import torch

    from waywiser import transfer

    host = torch.ones(nbytes, dtype=torch.uint8)
    there = torch.empty(nbytes, dtype=torch.uint8, device="cuda")
    return {
        **both(lambda: there.copy_(host)),
        OURS: lambda: transfer.copy_async(there, host).result(),
    }


def to_host(nbytes: int) -> dict[str, Method]:
    import torch

    from waywiser import transfer

    host = torch.ones(nbytes, dtype=torch.uint8)
    there = torch.ones(nbytes, dtype=torch.uint8, device="cuda")
    return {**both(lambda: host.copy_(there)), OURS: lambda: transfer.copy(host, there)}


def to_new_host(nbytes: int) -> dict[str, Method]:
    import torch

    from waywiser import transfer

    there = torch.ones(nbytes, dtype=torch.uint8, device="cuda")
    return {**both(lambda: there.cpu()), f"{OURS} to_host": lambda: transfer.to_host(there)}


def pinning(nbytes: int, *, kept: bool) -> dict[str, Method]:
    """``kept``: all results stay, so that PyTorch has no freed memory to use again."""
    import torch

    from waywiser import transfer

    host = torch.ones(nbytes, dtype=torch.uint8)
    results: list[Any] = []

    def into_pinned_empty() -> Any:
        made = transfer.pinned_empty(nbytes, torch.uint8)
        transfer.copy(made, host)
        return made

    def keeping(method: Callable[[], Any]) -> Method:
        if not kept:
            return method

        def run() -> None:
            results.append(method())

        return run

    return {
        **both(keeping(lambda: host.pin_memory())),
        f"{OURS} pinned_empty and copy": keeping(into_pinned_empty),
    }


def call_overhead() -> dict[str, Method]:
    """A thousand calls that copy nothing."""
    import torch

    small = torch.ones(16)

    def run() -> None:
        for _ in range(1000):
            small.to("cpu")

    return both(run)


SIZES = (1, 2, 4, 8, 16, 64, 256)
CALLS: dict[str, Callable[[], dict[str, Method]]] = {
    **{f"H2D copy_ {size} MiB": lambda size=size: to_gpu(size * MIB) for size in SIZES},
    **{f"D2H copy_ {size} MiB": lambda size=size: to_host(size * MIB) for size in SIZES},
    **{f"cpu() {size} MiB": lambda size=size: to_new_host(size * MIB) for size in SIZES},
    **{
        f"pin_memory() {size} MiB, {'kept' if kept else 'freed'}": lambda size=size, kept=kept: (
            pinning(size * MIB, kept=kept)
        )
        for size in (8, 64, 256, 1040)
        for kept in (False, True)
    },
    "1000 calls of to() that copy nothing": call_overhead,
}
GROUPS = PROGRAMS | CALLS


# --- a process ---------------------------------------------------------------------------------


def replicate(only: str, seconds: float) -> dict[str, Any]:
    import torch

    torch.cuda.init()
    torch.backends.cuda.matmul.allow_tf32 = True
    found: dict[str, dict[str, Any]] = {}
    for name, prepare in GROUPS.items():
        if re.search(only, name):
            found[name] = times(prepare(), seconds)
            torch.cuda.empty_cache()
            getattr(torch._C, "_host_emptyCache", int)()
    software = f"PyTorch {torch.__version__}"
    return {"machine": f"{torch.cuda.get_device_name()}, {software}", "groups": found}


def times(methods: dict[str, Method], seconds: float) -> dict[str, Any]:
    """The times of each method in all rounds: three at least, and as many as fit."""
    import torch

    from waywiser.transfer.torch import patch

    found: dict[str, list[float]] = {name: [] for name in methods}
    order = list(methods)
    begun = time.perf_counter()
    for round_ in range(200):
        random.shuffle(order)
        for name in order:
            with patch() if name == AFTER else nullcontext():
                torch.cuda.synchronize()
                start = time.perf_counter()
                methods[name]()
                torch.cuda.synchronize()
                seconds_of_call = time.perf_counter() - start
            if round_:  # the first one warms up
                found[name].append(seconds_of_call)
        if round_ >= 3 and time.perf_counter() - begun > seconds:
            break
    return found


# --- all processes -----------------------------------------------------------------------------


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--processes", type=int, default=5)
    parser.add_argument("--only", default="", help="rows whose name matches the expression")
    parser.add_argument("--within", type=float, default=float("inf"), metavar="SECONDS")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--seconds", type=float, default=1.0, help="for the rounds of a row")
    parser.add_argument("--replicate", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.replicate:
        answers = os.fdopen(os.dup(1), "w")
        os.dup2(2, 1)
        json.dump(replicate(options.only, options.seconds), answers)
        return 0
    runs: list[dict[str, Any]] = []
    own = ["--only", options.only, "--seconds", str(options.seconds)]
    for times_of_rows in replicates(__file__, own, options.processes, options.within, QUIET):
        runs.append(times_of_rows)
        if options.json:
            options.json.write_text(json.dumps(runs) + "\n")
    print("\n".join(page(runs)))
    return 0


def page(runs: list[dict[str, Any]]) -> Iterator[str]:
    yield f"{runs[0]['machine']}, n = {len(runs)} processes\n"
    yield "| row | call | ms | ratio | interval |"
    yield "|---|---|---|---|---|"
    for name in runs[0]["groups"]:
        each = [{k: statistics.median(v) for k, v in run["groups"][name].items()} for run in runs]
        for method in each[0]:
            ratios = sorted(run[method] / run[BEFORE] for run in each)
            middle = statistics.median(run[method] for run in each) * 1e3
            ratio = "" if method == BEFORE else f"{statistics.median(ratios):.3f}"
            interval = "" if method == BEFORE else f"{ratios[0]:.3f} to {ratios[-1]:.3f}"
            yield f"| {name} | {method} | {middle:.3f} | {ratio} | {interval} |"


if __name__ == "__main__":
    sys.exit(main())
