"""Compares `waywiser.transfer` with the copies that programs make today.

    python benchmarks/transfer.py [--processes 6] [--only PATTERN] [--json FILE] [--gib 4]
                                   [--within SECONDS] [--policy FILE]

Every process measures all rows in turn, with memory that was touched before. A row is a time, and
its ratio to the base of its group in the same process: the bandwidth as a part of the base's. The
figure is the median over the processes. The interval is their smallest and largest ratio: with six
processes it holds the median of all processes with 97 % probability (order statistics, no
normality assumed). Needs torch and a GPU; libraries that are not installed are listed as such.

With `--policy` there are two rows for each copy of the library: with its defaults, and with the
policy. Both take turns in one process, and the base of the second row is the first one. Without it
the library uses the policy that it finds, as every program does (docs/policy.md).
"""

from __future__ import annotations

import argparse
import ctypes
import importlib.util
import json
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
SIZES = (4 * KIB, 64 * KIB, MIB, 4 * MIB, 16 * MIB, 64 * MIB, 256 * MIB, GIB, 4 * GIB)
BLOCKS = (KIB, 4 * KIB, 16 * KIB, 28 * KIB, 64 * KIB, 128 * KIB)
BASE = "base"
WITH_POLICY = ", with the policy"
# Threads of OpenMP, which torch copies between host memories with, would spin on all CPUs for some
# milliseconds after that, while the next method is timed.
QUIET = {**os.environ, "OMP_WAIT_POLICY": "passive"}
LONGEST_GROUP = 4.0  # seconds; slow groups have fewer rounds, three at least
PAIR = "two processes on two GPUs, pageable H2D"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--processes", type=int, default=6)
    parser.add_argument("--only", default="", help="groups whose name matches the expression")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--gib", type=int, default=4, help="size of the safetensors file")
    parser.add_argument(
        "--within", type=float, default=float("inf"), metavar="SECONDS",
        help="start no further process that would end later",
    )  # fmt: skip
    parser.add_argument(
        "--policy", type=Path, metavar="FILE",
        help="also measure the library with this policy, beside its defaults",
    )  # fmt: skip
    parser.add_argument("--replicate", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--feed", type=int, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.feed is not None:
        json.dump(feed(asked.feed), sys.stdout)
        return 0
    if asked.replicate:
        json.dump(replicate(asked.only, asked.gib, asked.policy), sys.stdout)
        return 0
    if re.search(asked.only, PAIR):
        two_processes()
    begun = time.monotonic()
    runs: list[dict[str, Any]] = []
    failed = 0
    for number in range(asked.processes):
        gone = time.monotonic() - begun
        if number > 0 and gone * (number + 1) / number > asked.within:
            print(f"{number} of {asked.processes} processes fit into {asked.within:.0f} s")
            break
        command = [sys.executable, __file__, "--replicate", "--only", asked.only]
        environment = QUIET
        if asked.policy is not None:
            command += ["--policy", str(asked.policy)]
            environment = {**QUIET, "WAYWISER_POLICY": "off"}  # other contexts have the defaults
        done = subprocess.run(
            [*command, "--gib", str(asked.gib)],
            stdout=subprocess.PIPE,
            text=True,
            check=False,
            env=environment,
        )
        if done.returncode != 0:
            print(f"process {number} failed with {done.returncode}", file=sys.stderr)
            failed += 1
            continue
        runs.append(json.loads(done.stdout))
        if asked.json:
            found = {"ratios": ratios_to_bases(runs), "runs": runs}
            asked.json.write_text(json.dumps(found, indent=1) + "\n")
    if runs:
        show(runs)
    return 0 if runs and not failed else 1


def feed(gpu: int) -> float:
    """GB/s of one process that copies 1 GiB of pageable memory to a GPU for two seconds."""
    import torch

    import waywiser.transfer as ww

    device = torch.empty(GIB, dtype=torch.uint8, device=f"cuda:{gpu}")
    pageable = host_tensor(GIB)
    ww.copy(device, pageable)
    torch.cuda.synchronize(gpu)
    start, copies = time.perf_counter(), 0
    while time.perf_counter() - start < 2:
        ww.copy(device, pageable)
        torch.cuda.synchronize(gpu)
        copies += 1
    return copies * GIB / (time.perf_counter() - start) / 1e9


def two_processes() -> None:
    """Two processes that feed a GPU each, at once and one after the other."""
    import torch

    if torch.cuda.device_count() < 2:
        return

    def run(gpus: tuple[int, ...]) -> list[float]:
        started = [
            subprocess.Popen(
                [sys.executable, __file__, "--feed", str(gpu)],
                stdout=subprocess.PIPE,
                text=True,
                env=QUIET,
            )
            for gpu in gpus
        ]
        return [float(process.communicate()[0]) for process in started]

    ratios = []
    for _ in range(3):
        apart = run((0,)) + run((1,))
        ratios.append(sum(run((0, 1))) / sum(apart))
    print(f"{PAIR}: {statistics.median(ratios):.3f} of two runs one after the other, ", end="")
    print(f"{min(ratios):.3f} to {max(ratios):.3f} (n = {len(ratios)})")


def show(runs: list[dict[str, Any]]) -> None:
    """Prints a Markdown table of each group."""
    print(f"{runs[0]['machine']}, n = {len(runs)} processes\n")
    ratios = ratios_to_bases(runs)
    for group, rows in runs[0]["groups"].items():
        print(f"| {group} | time | GB/s | of the base | interval |\n|---|---|---|---|---|")
        for name, row in rows.items():
            times = [run["groups"][group][name] for run in runs if name in run["groups"][group]]
            if isinstance(times[0]["seconds"], str):
                print(f"| {name} | {times[0]['seconds']} | | | |")
                continue
            seconds = statistics.median(each["seconds"] for each in times)
            moved = times[0]["bytes"]
            rate = f"{moved / seconds / 1e9:.2f}" if moved > 1 else ""
            known = ratios.get(group, {}).get(name)
            ratio, interval = "", ""
            if known is not None:
                own_base = f" of {row[BASE]}" if BASE in row else ""
                ratio = f"{known['ratio']:.3f}{own_base}"
                interval = f"{known['low']:.3f} to {known['high']:.3f}"
            print(f"| {name} | {format_seconds(seconds)} | {rate} | {ratio} | {interval} |")
        print()
        for name, row in rows.items():
            if "method" in row:
                print(f"- {name}: {row['method']}")
        print()
    for note in sorted({note for run in runs for note in run["notes"]}):
        print(f"- {note}")


def ratios_to_bases(runs: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """The ratio of each row to its base, by group and name: the median of the processes with the
    smallest and the largest ratio. Rows without a time have none."""
    found: dict[str, dict[str, Any]] = {}
    for group, rows in runs[0]["groups"].items():
        for name in rows:
            in_runs = [run["groups"].get(group, {}) for run in runs]
            ratios = [ratio_to_base(each, name) for each in in_runs if name in each]
            known = [ratio for ratio in ratios if ratio is not None]
            if known:
                found.setdefault(group, {})[name] = {
                    BASE: base_of(rows, name),
                    "ratio": statistics.median(known),
                    "low": min(known),
                    "high": max(known),
                    "processes": len(known),
                }
    return found


def base_of(rows: dict[str, Any], name: str) -> str:
    """The name of a row's base: the one that it names, or the first of its group."""
    return rows[name].get(BASE) or next(iter(rows))


def ratio_to_base(rows: dict[str, Any], name: str) -> float | None:
    """The bandwidth of a row over that of its base."""
    row, base = rows[name], rows.get(base_of(rows, name))
    if base is None or isinstance(base["seconds"], str) or not row["bytes"]:
        return None
    return (row["bytes"] / row["seconds"]) / (base["bytes"] / base["seconds"])


def format_seconds(seconds: float) -> str:
    return f"{seconds * 1e6:.2f} us" if seconds < 1e-3 else f"{seconds * 1e3:.3f} ms"


# --- one process ---------------------------------------------------------------------------------


class Rows:
    """The rows of one process, by group. ``policy``: the file of a policy to compare with."""

    def __init__(self, only: str, policy: Path | None = None) -> None:
        import waywiser.transfer as ww

        self.only = re.compile(only)
        self._policies: dict[str, str | Path | None] = {"": None}
        self.libraries: dict[str, Any] = {"": ww}
        if policy is not None:
            self._policies = {"": "off", WITH_POLICY: policy}
            self.libraries = {
                ending: ww.Context(policy=file) for ending, file in self._policies.items()
            }
            if unused := self.libraries[WITH_POLICY].warnings():
                raise SystemExit(f"{policy}: the policy is not used: {'; '.join(unused)}")
        self.groups: dict[str, dict[str, Any]] = {}
        self.notes: list[str] = []

    def wants(self, group: str) -> bool:
        return self.only.search(group) is not None

    def ours(
        self, name: str, make: Callable[[Any], Callable[[], object]], libraries: Any = None
    ) -> dict[str, Callable[[], object]]:
        """Methods of the library by name: with its defaults, and with the policy if there is one.
        ``make`` takes the package or a context."""
        libraries = libraries or self.libraries
        return {f"{name}{ending}": make(library) for ending, library in libraries.items()}

    @contextmanager
    def contexts(self, **limits: Any) -> Iterator[dict[str, Any]]:
        """Contexts with limits, as `ours` takes them."""
        import waywiser.transfer as ww

        with ExitStack() as stack:
            yield {
                ending: stack.enter_context(ww.Context(**limits, policy=file))
                for ending, file in self._policies.items()
            }

    def explain(self, group: str, name: str, dst: Any, src: Any) -> None:
        """Keeps how the library makes a copy that was measured, if there is a policy."""
        for ending, library in self.libraries.items() if WITH_POLICY in self.libraries else ():
            row = self.groups.get(group, {}).get(f"{name}{ending}")
            if row is not None:
                row["method"] = library.explain(dst, src)

    def measure(self, group: str, size: int, methods: dict[str, Callable[[], object]]) -> None:
        """Times all methods of a group in turns, in another order in each: what ran before changes
        caches and sleeping threads. Each method returns when its copy has ended."""
        if not self.wants(group):
            return
        rows = self.groups.setdefault(group, {})
        times: dict[str, list[float]] = {name: [] for name in methods}
        rounds = 7 if size >= 64 * MIB else 30 if size >= MIB else 300
        start = time.perf_counter()
        for method in methods.values():
            method()
        once = time.perf_counter() - start
        rounds = max(min(rounds, int(LONGEST_GROUP / once)), 3)
        order = list(methods.items())
        for _ in range(rounds):
            random.shuffle(order)
            for name, method in order:
                start = time.perf_counter()
                method()
                times[name].append(time.perf_counter() - start)
        for name, seconds in times.items():
            rows[name] = {"seconds": statistics.median(seconds), "bytes": size}
            defaults = name.removesuffix(WITH_POLICY)
            if defaults != name:
                rows[name][BASE] = defaults

    def missing(self, group: str, name: str, why: str) -> None:
        if self.wants(group):
            self.groups.setdefault(group, {})[name] = {"seconds": why, "bytes": 0}


def replicate(only: str, gib: int, policy: Path | None = None) -> dict[str, Any]:
    import torch

    torch.cuda.init()
    rows = Rows(only, policy)
    parts = (opening, contiguous, few_threads, both_ways, small, several_gpus, polite, blocks)
    for part in (*parts, beside_a_product):
        part(rows)
        torch.cuda.empty_cache()
    files(rows, gib)
    gpus = torch.cuda.device_count()
    machine = f"{gpus} x {torch.cuda.get_device_name(0)}, {os.cpu_count()} CPUs"
    return {
        "machine": f"{machine}, torch {torch.__version__}",
        "groups": rows.groups,
        "notes": rows.notes,
    }


def opening(rows: Rows) -> None:
    """Making a context; nothing is pinned yet."""
    import waywiser.transfer as ww

    group = "Context()"
    if not rows.wants(group):
        return
    times = []
    for _ in range(5):
        start = time.perf_counter()
        with ww.Context():
            times.append(time.perf_counter() - start)
    rows.groups[group] = {"made": {"seconds": statistics.median(times), "bytes": 0}}


def label(size: int) -> str:
    for unit, name in ((GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB")):
        if size >= unit:
            return f"{size // unit} {name}"
    return f"{size} B"


def host_tensor(size: int, pinned: bool = False) -> Any:
    """Returns touched host memory."""
    import torch

    return torch.ones(size, dtype=torch.uint8, pin_memory=pinned)


def waited(call: Callable[[], object]) -> Callable[[], None]:
    """Makes a call that returns when all of the current GPU's work is done."""
    import torch

    def run() -> None:
        kept = call()
        torch.cuda.synchronize()
        del kept

    return run


def contiguous(rows: Rows) -> None:
    for size in SIZES:
        into, out = f"H2D {label(size)}", f"D2H {label(size)}"
        if rows.wants(into) or rows.wants(out):
            contiguous_of(rows, size, into, out)


def contiguous_of(rows: Rows, size: int, into: str, out: str) -> None:
    import torch

    device = torch.empty(size, dtype=torch.uint8, device="cuda")
    pinned, pageable = host_tensor(size, True), host_tensor(size)
    methods: dict[str, Callable[[], object]] = {
        "torch, pinned": waited(lambda: device.copy_(pinned, non_blocking=True)),
        **rows.ours("waywiser, pinned", lambda ww: waited(lambda: ww.copy(device, pinned))),
        "torch, pageable": waited(lambda: device.copy_(pageable)),
        "torch pin_memory(), then copy": waited(
            lambda: device.copy_(pageable.pin_memory(), non_blocking=True)
        ),
        **rows.ours("waywiser, pageable", lambda ww: waited(lambda: ww.copy(device, pageable))),
    }
    methods |= others(device, pageable, size, into=True)
    rows.measure(into, size, methods)
    rows.explain(into, "waywiser, pinned", device, pinned)
    rows.explain(into, "waywiser, pageable", device, pageable)
    methods = {
        "torch, pinned": waited(lambda: pinned.copy_(device, non_blocking=True)),
        **rows.ours("waywiser, pinned", lambda ww: waited(lambda: ww.copy(pinned, device))),
        "torch, pageable": waited(lambda: pageable.copy_(device)),
        **rows.ours("waywiser, pageable", lambda ww: waited(lambda: ww.copy(pageable, device))),
        "torch .cpu(), fresh memory": waited(lambda: device.cpu()),
        **rows.ours(
            "waywiser to_host(), fresh memory", lambda ww: waited(lambda: ww.to_host(device))
        ),
    }
    methods |= others(device, pageable, size, into=False)
    rows.measure(out, size, methods)
    rows.explain(out, "waywiser, pinned", pinned, device)
    rows.explain(out, "waywiser, pageable", pageable, device)


def others(device: Any, pageable: Any, size: int, *, into: bool) -> dict[str, Callable[[], object]]:
    """The runtime's own call, and cupy's, for pageable memory."""
    found: dict[str, Callable[[], object]] = {}
    runtime = cuda_runtime()
    if runtime is not None:
        to, of = (device, pageable) if into else (pageable, device)
        call, default = runtime.cudaMemcpy, 4
        arguments = (
            ctypes.c_void_p(to.data_ptr()), ctypes.c_void_p(of.data_ptr()), ctypes.c_size_t(size),
            default,
        )  # fmt: skip
        found["cudaMemcpy, pageable"] = waited(lambda: call(*arguments))
    if importlib.util.find_spec("cupy") is not None:
        import cupy

        array, host = cupy.asarray(device), pageable.numpy()
        if into:
            found["cupy set, pageable"] = waited(lambda: array.set(host))
        else:
            found["cupy get, pageable"] = waited(lambda: array.get(out=host))
    return found


def few_threads(rows: Rows) -> None:
    import torch

    group = "D2H 1 GiB, 4 threads"
    if not rows.wants(group):
        return
    device = torch.empty(GIB, dtype=torch.uint8, device="cuda")
    pinned, pageable = host_tensor(GIB, True), host_tensor(GIB)

    def plain() -> None:
        pinned.copy_(device, non_blocking=True)
        torch.cuda.synchronize()

    with rows.contexts(threads=4) as contexts:
        ours = rows.ours(
            "waywiser, pageable", lambda four: lambda: four.copy(pageable, device), contexts
        )
        rows.measure(group, GIB, {"torch, pinned": plain, **ours})


def both_ways(rows: Rows) -> None:
    import torch

    group = "H2D and D2H at once, 1 GiB each"
    if not rows.wants(group):
        return
    a, b = (torch.empty(GIB, dtype=torch.uint8, device="cuda") for _ in range(2))
    pins = [host_tensor(GIB, True) for _ in range(2)]
    pages = [host_tensor(GIB) for _ in range(2)]
    streams = [torch.cuda.Stream() for _ in range(2)]

    def pinned() -> None:
        with torch.cuda.stream(streams[0]):
            a.copy_(pins[0], non_blocking=True)
        with torch.cuda.stream(streams[1]):
            pins[1].copy_(b, non_blocking=True)
        torch.cuda.synchronize()

    def staged(ww: Any) -> Callable[[], None]:
        def run() -> None:
            handles = [
                ww.copy_async(a, pages[0], stream=streams[0]),
                ww.copy_async(pages[1], b, stream=streams[1]),
            ]
            for handle in handles:
                handle.result()

        return run

    ours = rows.ours("waywiser, pageable", staged)
    rows.measure(group, 2 * GIB, {"torch, pinned": pinned, **ours})


def small(rows: Rows) -> None:
    """The time of the call alone, of 4 KiB: what a program pays besides the copy."""
    import torch

    group = "Python call, pinned 4 KiB, H2D"
    if not rows.wants(group):
        return
    device = torch.empty(4 * KIB, dtype=torch.uint8, device="cuda")
    pinned = host_tensor(4 * KIB, True)

    def theirs() -> None:
        for _ in range(20):
            device.copy_(pinned)

    def calls(ww: Any) -> Callable[[], None]:
        def run() -> None:
            for _ in range(20):
                ww.copy(device, pinned)

        return run

    ours = rows.ours("waywiser copy", calls)
    rows.measure(group, 20 * 4 * KIB, {"torch copy_": theirs, **ours})


def several_gpus(rows: Rows) -> None:
    import torch

    if torch.cuda.device_count() < 2:
        if rows.wants("relay") or rows.wants("peer access off"):
            rows.notes.append("one GPU: relays and copies between GPUs were not measured")
        return
    peers_off(rows)
    device = torch.empty(GIB, dtype=torch.uint8, device="cuda:0")
    pinned, pageable = host_tensor(GIB, True), host_tensor(GIB)
    with rows.contexts(relays=list(range(1, torch.cuda.device_count()))) as relayed:
        rows.measure(
            "relay H2D 1 GiB",
            GIB,
            {
                "torch, pinned": waited(lambda: device.copy_(pinned, non_blocking=True)),
                **rows.ours(
                    "waywiser, pinned", lambda ww: waited(lambda: ww.copy(device, pinned)), relayed
                ),
                **rows.ours(
                    "waywiser, pageable",
                    lambda ww: waited(lambda: ww.copy(device, pageable)),
                    relayed,
                ),
            },
        )
        rows.measure(
            "relay D2H 1 GiB",
            GIB,
            {
                "torch, pinned": waited(lambda: pinned.copy_(device, non_blocking=True)),
                **rows.ours(
                    "waywiser, pinned", lambda ww: waited(lambda: ww.copy(pinned, device)), relayed
                ),
                **rows.ours(
                    "waywiser, pageable",
                    lambda ww: waited(lambda: ww.copy(pageable, device)),
                    relayed,
                ),
            },
        )


def peers_off(rows: Rows) -> None:
    """GPU to GPU without peer access: cudaMemcpyPeer of the runtime beside the staged copy."""
    import torch

    runtime = cuda_runtime()
    if runtime is None:
        rows.missing("peer access off", "cudaMemcpyPeer", "libcudart was not found")
        return

    def synchronize_both() -> None:
        torch.cuda.synchronize(0)
        torch.cuda.synchronize(1)

    with rows.contexts(peer_access=False) as apart:
        for size in (16 * MIB, 64 * MIB, 256 * MIB, GIB):
            group = f"peer access off, {label(size)}"
            if not rows.wants(group):
                continue
            one = torch.empty(size, dtype=torch.uint8, device="cuda:0")
            two = torch.empty(size, dtype=torch.uint8, device="cuda:1")

            def theirs(one: Any = one, two: Any = two, size: int = size) -> None:
                runtime.cudaMemcpyPeer(
                    ctypes.c_void_p(two.data_ptr()), 1, ctypes.c_void_p(one.data_ptr()), 0,
                    ctypes.c_size_t(size),
                )  # fmt: skip
                synchronize_both()

            def copies(ww: Any, one: Any = one, two: Any = two) -> Callable[[], None]:
                def run() -> None:
                    ww.copy(two, one)
                    synchronize_both()

                return run

            ours = rows.ours("waywiser", copies, apart)
            rows.measure(group, size, {"cudaMemcpyPeer": theirs, **ours})


def cuda_runtime() -> Any:
    for spec in ("nvidia.cuda_runtime", "nvidia.cu13"):
        try:
            found = importlib.util.find_spec(spec)
        except ModuleNotFoundError:
            continue
        for folder in (found.submodule_search_locations or []) if found else []:
            for path in Path(folder).glob("lib/libcudart.so*"):
                return ctypes.CDLL(str(path))
    try:
        return ctypes.CDLL("libcudart.so")
    except OSError:
        return None


def polite(rows: Rows) -> None:
    """An 8-byte copy on another stream while 1 GiB is copied from pageable memory."""
    import torch

    import waywiser.transfer as ww

    group = "polite: 8 B beside 1 GiB pageable"
    if not rows.wants(group):
        return
    device = torch.empty(GIB, dtype=torch.uint8, device="cuda")
    pageable, eight = host_tensor(GIB), host_tensor(8, True)
    there = torch.empty(8, dtype=torch.uint8, device="cuda")
    stream = torch.cuda.Stream()
    for bound in (0, 4 * MIB, 8 * MIB, 16 * MIB):
        with ww.Context(max_queued_bytes=bound or None) as context:
            context.copy(device, pageable)
            times: list[float] = []
            ending = threading.Event()

            def bystander(times: list[float] = times, ending: Any = ending) -> None:
                with torch.cuda.stream(stream):
                    while not ending.is_set():
                        start = time.perf_counter()
                        there.copy_(eight, non_blocking=True)
                        stream.synchronize()
                        times.append(time.perf_counter() - start)
                        time.sleep(50e-6)

            beside = threading.Thread(target=bystander)
            beside.start()
            seconds = []
            for _ in range(15):
                start = time.perf_counter()
                context.copy(device, pageable)
                torch.cuda.synchronize()
                seconds.append(time.perf_counter() - start)
            ending.set()
            beside.join()
            name = f"{label(bound)} queued at most" if bound else "no bound"
            found = rows.groups.setdefault(group, {})
            found[name] = {"seconds": statistics.median(seconds), "bytes": GIB}
            for rank, quantile in (("median", 0.5), ("99th percentile", 0.99)):
                at = sorted(times)[int(quantile * (len(times) - 1))]
                found[f"{name}: bystander, {rank}"] = {"seconds": at, "bytes": 0}


def blocks(rows: Rows) -> None:
    """KV blocks: 256 MiB in scattered blocks between a pinned pool and a GPU."""
    for size in BLOCKS:
        group = f"blocks of {label(size)}"
        if rows.wants(group):
            blocks_of(rows, size, group)


def blocks_of(rows: Rows, size: int, group: str) -> None:
    import torch

    import waywiser.transfer as ww

    count = 256 * MIB // size
    total = count * size
    there = torch.empty((count, size), dtype=torch.uint8, device="cuda")
    here = host_tensor(total, True).reshape(count, size)
    order = torch.randperm(count)
    back = torch.randperm(count)
    runs = (torch.randperm(count // 16)[:, None] * 16 + torch.arange(16)).flatten()
    on_gpu = back.cuda()
    targets, sources = order.tolist(), back.tolist()
    two = ww.Context(list_multiprocessors=2)

    def loop() -> None:
        for to, of in zip(targets, sources, strict=True):
            there[to].copy_(here[of], non_blocking=True)

    methods: dict[str, Callable[[], object]] = {
        "one contiguous pinned copy": waited(lambda: there.copy_(here, non_blocking=True)),
        **rows.ours(
            "waywiser copy_blocks, H2D",
            lambda ww: waited(lambda: ww.copy_blocks(there, here, order, back)),
        ),
        **rows.ours(
            "waywiser copy_blocks, D2H",
            lambda ww: waited(lambda: ww.copy_blocks(here, there, back, order)),
        ),
        "waywiser copy_blocks, two multiprocessors, H2D": waited(
            lambda: two.copy_blocks(there, here, order, back)
        ),
        "waywiser copy_blocks, two multiprocessors, D2H": waited(
            lambda: two.copy_blocks(here, there, back, order)
        ),
        **rows.ours(
            "waywiser copy_blocks, runs of 16, H2D",
            lambda ww: waited(lambda: ww.copy_blocks(there, here, runs, runs)),
        ),
        **rows.ours(
            "waywiser copy_blocks, runs of 16, D2H",
            lambda ww: waited(lambda: ww.copy_blocks(here, there, runs, runs)),
        ),
        "torch index_select on the CPU, then copy": waited(
            lambda: there.copy_(here.index_select(0, back))
        ),
        "torch index_select on the GPU, then copy": waited(
            lambda: here.copy_(there.index_select(0, on_gpu), non_blocking=True)
        ),
    }
    if count <= 10000:
        methods["a loop of torch copies, H2D"] = waited(loop)
    batch = batch_copy(there, here, targets, sources, size)
    if isinstance(batch, str):
        rows.missing(group, "cudaMemcpyBatchAsync, H2D", batch)
    else:
        methods["cudaMemcpyBatchAsync, H2D"] = waited(batch)
    rows.measure(group, total, methods)
    two.close()


def batch_copy(
    there: Any, here: Any, targets: list[int], sources: list[int], size: int
) -> Callable[[], object] | str:
    """One call of the runtime for all blocks, or why there is none."""
    import torch

    runtime = cuda_runtime()
    if runtime is None:
        return "libcudart was not found"
    version = ctypes.c_int()
    runtime.cudaRuntimeGetVersion(ctypes.byref(version))
    if version.value < 13000:
        return f"CUDA runtime {version.value}: the call has other arguments before 13.0"

    class Location(ctypes.Structure):
        _fields_ = (("type", ctypes.c_int), ("id", ctypes.c_int))

    class Attributes(ctypes.Structure):
        _fields_ = (
            ("order", ctypes.c_int),
            ("source", Location),
            ("destination", Location),
            ("flags", ctypes.c_uint),
        )

    count = len(targets)
    pointers, sizes = ctypes.c_void_p * count, ctypes.c_size_t * count
    to = pointers(*(there.data_ptr() + size * n for n in targets))
    of = pointers(*(here.data_ptr() + size * n for n in sources))
    in_stream_order = 1
    attributes, first = Attributes(order=in_stream_order), ctypes.c_size_t(0)
    stream = torch.cuda.Stream()
    arguments = (
        to, of, sizes(*([size] * count)), ctypes.c_size_t(count), ctypes.byref(attributes),
        ctypes.byref(first), ctypes.c_size_t(1), ctypes.c_void_p(stream.cuda_stream),
    )  # fmt: skip

    def run() -> None:
        status = runtime.cudaMemcpyBatchAsync(*arguments)
        if status != 0:
            raise RuntimeError(f"cudaMemcpyBatchAsync failed with {status}")

    try:
        run()
    except RuntimeError as error:
        return str(error)
    return run


def beside_a_product(rows: Rows) -> None:
    """What copies of blocks cost a matrix product that runs at the same time."""
    import torch

    import waywiser.transfer as ww

    group = "a matrix product beside copies"
    if not rows.wants(group):
        return
    size, total = 28 * KIB, 256 * MIB
    count = total // size
    there = torch.empty((count, size), dtype=torch.uint8, device="cuda")
    here = host_tensor(count * size, True).reshape(count, size)
    order, back = torch.randperm(count), torch.randperm(count)
    left, right = (torch.randn(8192, 8192, dtype=torch.bfloat16, device="cuda") for _ in range(2))
    product = torch.empty_like(left)
    aside = torch.cuda.Stream()
    two = ww.Context(list_multiprocessors=2)
    copies: dict[str, Callable[[], object] | None] = {
        "the product alone": None,
        "contiguous pinned H2D": lambda: there.copy_(here, non_blocking=True),
        "waywiser copy_blocks, H2D": lambda: ww.copy_blocks_async(there, here, order, back),
        "waywiser copy_blocks, D2H": lambda: ww.copy_blocks_async(here, there, back, order),
        "two multiprocessors, H2D": lambda: two.copy_blocks_async(there, here, order, back),
        "two multiprocessors, D2H": lambda: two.copy_blocks_async(here, there, back, order),
    }
    times: dict[str, list[float]] = {name: [] for name in copies}
    for _ in range(8):
        for name, copy in copies.items():
            torch.cuda.synchronize()
            start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            kept = []
            with torch.cuda.stream(aside):
                for _ in range(12 if copy else 0):  # about 60 ms; the products take 30
                    kept.append(copy() if copy else None)
            start.record()
            for _ in range(20):
                torch.matmul(left, right, out=product)
            stop.record()
            torch.cuda.synchronize()
            times[name].append(start.elapsed_time(stop) / 1e3)
            del kept
    two.close()
    rows.groups[group] = {
        name: {"seconds": statistics.median(seconds[1:]), "bytes": 1}
        for name, seconds in times.items()
    }


# --- files ---------------------------------------------------------------------------------------


def files(rows: Rows, gib: int) -> None:
    import torch

    import waywiser.transfer as ww

    wanted = [g for g in ("file in memory", "file, cached", "file, cold") if rows.wants(g)]
    for group in wanted:
        folder = "/dev/shm" if group == "file in memory" else tempfile.gettempdir()
        size = {"file in memory": gib * GIB, "file, cold": GIB // 2}.get(group, GIB)
        path = Path(folder) / f"waywiser-benchmark-{os.getpid()}.safetensors"
        try:
            write_safetensors(path, size)
            device = torch.empty(size, dtype=torch.uint8, device="cuda")
            pinned = host_tensor(min(size, GIB), True)

            def plain(device: Any = device, pinned: Any = pinned) -> None:
                device[: pinned.numel()].copy_(pinned, non_blocking=True)
                torch.cuda.synchronize()

            def reads(ww: Any, device: Any = device, path: Path = path) -> Callable[[], None]:
                return waited(lambda: ww.read(path, device))

            if group == "file, cold":
                cold(rows, group, path, size, reads(ww))
                continue
            rows.measure(group, pinned.numel(), {"torch, pinned copy of 1 GiB": plain})
            rows.measure(group, size, rows.ours("waywiser read", reads))
            del device
            torch.cuda.empty_cache()
            for name, load in loaders(path):
                if isinstance(load, str):
                    rows.missing(group, name, load)
                    continue
                try:
                    rows.measure(group, size, {name: load})
                except Exception as error:
                    rows.missing(group, name, f"failed: {error}"[:120])
                torch.cuda.empty_cache()
        finally:
            path.unlink(missing_ok=True)


def cold(rows: Rows, group: str, path: Path, size: int, read: Callable[[], None]) -> None:
    """Reads of a disk, which nothing is cached of, beside reads of the same by O_DIRECT alone."""
    found = rows.groups.setdefault(group, {})
    alone: list[float] = []
    ours: list[float] = []
    for _ in range(3):
        for times, run in ((alone, lambda: read_direct(path, size)), (ours, read)):
            drop(path)
            start = time.perf_counter()
            run()
            times.append(time.perf_counter() - start)
    found["direct I/O alone, 16 threads"] = {"seconds": statistics.median(alone), "bytes": size}
    found["waywiser read to the GPU"] = {"seconds": statistics.median(ours), "bytes": size}


def drop(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def read_direct(path: Path, size: int) -> None:
    import mmap

    chunk = 4 * MIB
    file = os.open(path, os.O_RDONLY | os.O_DIRECT)
    following = iter(range(0, size, chunk))
    guard = threading.Lock()

    def work() -> None:
        with mmap.mmap(-1, chunk) as buffer:
            while True:
                with guard:
                    at = next(following, None)
                if at is None:
                    return
                os.preadv(file, [buffer], at)

    threads = [threading.Thread(target=work) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    os.close(file)


def write_safetensors(path: Path, size: int) -> None:
    """Writes a file of 64 MiB tensors, and as many of 16 KiB, as models have them."""
    header: dict[str, Any] = {}
    at = 0
    while at < size - 65 * MIB:
        for elements in (32 * MIB, 8 * KIB):
            nbytes = 2 * elements
            header[f"t{len(header)}"] = {
                "dtype": "BF16",
                "shape": [elements],
                "data_offsets": [at, at + nbytes],
            }
            at += nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 4096 + 4096 - 8)
    block = os.urandom(MIB) * 64
    with path.open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        left = at
        while left > 0:
            left -= file.write(block[: min(left, len(block))])


def loaders(path: Path) -> Iterator[tuple[str, Callable[[], object] | str]]:
    from waywiser.transfer.torch import load_files

    yield "waywiser load_files", waited(lambda: load_files([path], "cuda:0"))
    for name, module, make in (
        ("safetensors load_file", "safetensors", safetensors_loader),
        ("fastsafetensors", "fastsafetensors", fastsafetensors_loader),
        ("InstantTensor", "instanttensor", instanttensor_loader),
        ("Run:ai model streamer", "runai_model_streamer", runai_loader),
        ("kvikio", "kvikio", kvikio_loader),
    ):
        if importlib.util.find_spec(module) is None:
            yield name, "not installed"
            continue
        try:
            yield name, waited(make(path))
        except Exception as error:
            yield name, f"failed: {error}"[:120]


def safetensors_loader(path: Path) -> Callable[[], object]:
    from safetensors.torch import load_file

    return lambda: load_file(path, device="cuda:0")


def fastsafetensors_loader(path: Path) -> Callable[[], object]:
    from fastsafetensors import SafeTensorsFileLoader, SingleGroup

    def load() -> object:
        loader = SafeTensorsFileLoader(SingleGroup(), "cuda:0", nogds=True)
        loader.add_filenames({0: [str(path)]})
        loaded = loader.copy_files_to_device()
        tensors = {name: loaded.get_tensor(name) for name in loaded.key_to_rank_lidx}
        return loader, loaded, tensors

    return load


def instanttensor_loader(path: Path) -> Callable[[], object]:
    import instanttensor

    def load() -> object:
        with instanttensor.safe_open([str(path)], framework="pt", device=0) as file:
            # A tensor lies in a buffer that is used again: its documentation says to clone it.
            return {name: tensor.clone() for name, tensor in file.tensors()}

    return load


def runai_loader(path: Path) -> Callable[[], object]:
    from runai_model_streamer import SafetensorsStreamer

    def load() -> object:
        with SafetensorsStreamer() as streamer:
            streamer.stream_file(str(path))
            return {name: tensor.to("cuda:0") for name, tensor in streamer.get_tensors()}

    return load


def kvikio_loader(path: Path) -> Callable[[], object]:
    import cupy
    import kvikio

    def load() -> object:
        buffer = cupy.empty(path.stat().st_size, dtype="uint8")
        with kvikio.CuFile(str(path), "r") as file:
            file.read(buffer)
        return buffer

    return load


if __name__ == "__main__":
    sys.exit(main())
