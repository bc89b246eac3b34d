"""What a snapshot of a training costs its steps.

    python benchmarks/snapshot.py --processes 5 --out results.json

It needs torch and a GPU with 48 GB of memory. A step is products of matrices, then Adam of over a
billion parameters (fused), which changes every tensor that a snapshot has: the parameters, or with
`--moments` both moments too. The products take so long that the copy of a snapshot takes
longer than one step. One snapshot is made every ten steps. In each process all methods take turns.
Steps are timed by events of the GPU. `--check` compares a snapshot with a copy on the GPU.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch

from waywiser.transfer.torch import snapshot

PARAMETERS = 2**30
TENSORS = 64
EVERY = 10
STEP_OF_COPY = 0.85
"""A step takes so much of the time that the copy of a snapshot into pinned memory takes alone."""
ALONE = "alone"


class Training:
    """Parameters with their gradients and Adam, and products of matrices."""

    def __init__(self, parameters: int, moments: bool) -> None:
        self.moments = ("exp_avg", "exp_avg_sq") if moments else ()
        count = parameters // TENSORS
        self.parameters = [
            torch.nn.Parameter(torch.randn(count, device="cuda")) for _ in range(TENSORS)
        ]
        for each in self.parameters:
            each.grad = torch.randn_like(each)
        self.adam = torch.optim.Adam(self.parameters, lr=1e-3, fused=True)
        self.adam.step()
        self.matrix = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
        self.products = 0

    def tensors(self) -> dict[str, torch.Tensor]:
        named = {}
        for number, each in enumerate(self.parameters):
            named[f"{number}.parameter"] = each.detach()
            for moment in self.moments:
                named[f"{number}.{moment}"] = self.adam.state[each][moment]
        return named

    def compute(self) -> None:
        for _ in range(self.products):
            torch.mm(self.matrix, self.matrix)

    def calibrate(self, seconds: float) -> None:
        """Sets the number of products, so that a step takes so long."""
        for _ in range(3):
            self.products = 16
            torch.cuda.synchronize()
            begin = time.perf_counter()
            self.compute()
            torch.cuda.synchronize()
            product = (time.perf_counter() - begin) / self.products
            begin = time.perf_counter()
            self.adam.step()
            torch.cuda.synchronize()
            adam = time.perf_counter() - begin
        self.products = max(round((seconds - adam) / product), 1)


class Method:
    """Makes snapshots; `wait_source_read` comes before each step of Adam."""

    def begin(self, tensors: dict[str, torch.Tensor]) -> None: ...
    def wait_source_read(self) -> None: ...
    def end(self) -> None: ...


class Ours(Method):
    def __init__(self, tensors: dict[str, torch.Tensor], *, pinned: bool) -> None:
        self.made = snapshot(tensors, pinned=pinned)
        self.host = self.made.result()

    def begin(self, tensors: dict[str, torch.Tensor]) -> None:
        self.made = snapshot(tensors, into=self.host)

    def wait_source_read(self) -> None:
        self.made.wait_source_read()

    def end(self) -> None:
        self.made.result()


class Blocking(Method):
    """copy_ into host memory, while the training waits."""

    def __init__(self, tensors: dict[str, torch.Tensor], *, pinned: bool) -> None:
        self.host = {
            name: torch.zeros(each.shape, dtype=each.dtype, pin_memory=pinned)
            for name, each in tensors.items()
        }

    def begin(self, tensors: dict[str, torch.Tensor]) -> None:
        for name, each in tensors.items():
            self.host[name].copy_(each)


class SideStream(Blocking):
    """copy_(non_blocking=True) into pinned memory on another stream, which Adam waits for."""

    def __init__(self, tensors: dict[str, torch.Tensor], *, pinned: bool) -> None:
        super().__init__(tensors, pinned=pinned)
        self.side = torch.cuda.Stream()

    def begin(self, tensors: dict[str, torch.Tensor]) -> None:
        self.side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.side):
            for name, each in tensors.items():
                self.host[name].copy_(each, non_blocking=True)

    def wait_source_read(self) -> None:
        torch.cuda.current_stream().wait_stream(self.side)

    def end(self) -> None:
        self.side.synchronize()


METHODS: dict[str, Callable[[dict[str, torch.Tensor]], Method]] = {
    ALONE: lambda tensors: Method(),
    "waywiser snapshot, pinned": lambda tensors: Ours(tensors, pinned=True),
    "waywiser snapshot, pageable": lambda tensors: Ours(tensors, pinned=False),
    "torch, pinned on a side stream": lambda tensors: SideStream(tensors, pinned=True),
    "torch, copy_ to pinned": lambda tensors: Blocking(tensors, pinned=True),
    "torch, copy_ to pageable": lambda tensors: Blocking(tensors, pinned=False),
}


def steps_of(training: Training, method: Method, steps: int) -> list[float]:
    """Seconds of each step."""
    tensors = training.tensors()
    events = [torch.cuda.Event(enable_timing=True) for _ in range(steps + 1)]
    torch.cuda.synchronize()
    events[0].record()
    for step in range(steps):
        if step % EVERY == 0:
            method.begin(tensors)
        training.compute()
        method.wait_source_read()
        training.adam.step()
        events[step + 1].record()
    torch.cuda.synchronize()
    method.end()
    return [one.elapsed_time(other) / 1e3 for one, other in pairwise(events)]


def copy_alone(method: Ours, tensors: dict[str, torch.Tensor]) -> float:
    times = []
    for _ in range(3):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        method.begin(tensors)
        method.end()
        times.append(time.perf_counter() - begin)
    return statistics.median(times)


def work(parameters: int, moments: bool, steps: int, seed: int, names: list[str]) -> dict[str, Any]:
    training = Training(parameters, moments)
    tensors = training.tensors()
    found: dict[str, Any] = {
        "gpu": torch.cuda.get_device_name(),
        "bytes": sum(each.nbytes for each in tensors.values()),
    }
    pinned = Ours(tensors, pinned=True)
    found["copy_seconds"] = copy_alone(pinned, tensors)
    training.calibrate(STEP_OF_COPY * found["copy_seconds"])
    del pinned
    order = [*names]
    random.Random(seed).shuffle(order)
    for name in [ALONE, *order]:
        method = METHODS[name](tensors)
        if name != ALONE:
            method.begin(tensors)
            method.wait_source_read()
            method.end()
        found[name] = steps_of(training, method, steps)
        if name.startswith("waywiser") and "pageable" in name:
            found["copy_pageable_seconds"] = copy_alone(method, tensors)  # type: ignore[arg-type]
        del method
    return found


def check(parameters: int, moments: bool) -> None:
    """A snapshot has the bytes from before a step that follows at once."""
    training = Training(parameters, moments)
    tensors = training.tensors()
    for pinned in (True, False):
        host = snapshot(tensors, pinned=pinned).result()
        for round_ in range(3):
            training.adam.step()
            made = snapshot(tensors, into=host)
            kept = {name: each.clone() for name, each in tensors.items()}
            blocks = made.source_read_pending
            made.wait_source_read()
            training.adam.step()
            made.result()
            torch.cuda.synchronize()
            for name, each in kept.items():
                assert torch.equal(host[name], each.cpu()), (pinned, round_, name)
                assert not torch.equal(tensors[name], each), name
            print(f"pinned={pinned} round {round_}: equal; it would block: {blocks}", flush=True)
            del kept


def table(runs: list[dict[str, Any]]) -> str:
    first = runs[0]
    copies = statistics.median(run["copy_seconds"] for run in runs)
    alone = statistics.median(statistics.mean(run[ALONE]) for run in runs)
    lines = [
        f"{first['gpu']}, {len(runs)} processes, {len(first[ALONE])} steps each; a step alone "
        f"{alone * 1e3:.1f} ms, a snapshot of {first['bytes'] / 1e9:.2f} GB into pinned memory "
        f"alone {copies * 1e3:.1f} ms",
        "",
        "| method | mean step to alone: median, smallest to largest | slowest step to alone |",
        "|---|---|---|",
    ]
    for name in METHODS:
        known = [run for run in runs if name in run]
        if not known:
            continue
        means = [statistics.mean(run[name]) / statistics.mean(run[ALONE]) for run in known]
        slowest = max(max(run[name]) / statistics.mean(run[ALONE]) for run in known)
        lines.append(
            f"| {name} | {statistics.median(means):.3f}, {min(means):.3f} to {max(means):.3f} | "
            f"{slowest:.2f} |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--parameters", type=int, default=PARAMETERS)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--processes", type=int, default=5)
    parser.add_argument("--methods", nargs="*", default=[name for name in METHODS if name != ALONE])
    parser.add_argument("--moments", action="store_true", help="snapshots have the moments too")
    parser.add_argument("--first", type=int, default=0, help="the number of the first process")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--merge", type=Path, nargs="*", help="print the table of these results")
    parser.add_argument("--seed", type=int)
    arguments = parser.parse_args()
    if arguments.merge:
        print(table([run for file in arguments.merge for run in json.loads(file.read_text())]))
        return
    if arguments.check:
        check(arguments.parameters, arguments.moments)
        return
    if arguments.seed is not None:
        found = work(
            arguments.parameters,
            arguments.moments,
            arguments.steps,
            arguments.seed,
            arguments.methods,
        )
        print(json.dumps(found))
        return
    runs = []
    for seed in range(arguments.first, arguments.first + arguments.processes):
        command = [sys.executable, __file__, "--seed", str(seed), "--steps", str(arguments.steps)]
        command += ["--parameters", str(arguments.parameters), "--methods", *arguments.methods]
        command += ["--moments"] if arguments.moments else []
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(done.stderr)
        runs.append(json.loads(done.stdout.splitlines()[-1]))
        print(table(runs), end="\n\n", file=sys.stderr, flush=True)
        if arguments.out:
            arguments.out.write_text(json.dumps(runs, indent=1))
    print(table(runs))


if __name__ == "__main__":
    main()
