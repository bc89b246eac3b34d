"""How long reports, comparisons and fleets take, of as much as a large machine's survey holds.

    python benchmarks/at_scale.py [--hosts 400] [-o FILE.md]

Writes profiles of a machine with eight GPUs with every visit that its preset plans, and times the
commands on them in processes of their own, as a person waits for them. What the profiles hold is
made from seeds: times by a latency and a bandwidth, half of the sizes that a survey may skip
skipped, 0.3 % of scatter from block to block and 0.2 % within.
Only the times of the commands are measurements, and they are of the machine that runs this.
"""

from __future__ import annotations

import argparse
import os
import platform
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "python")]

import profiles  # noqa: E402
from machine.captured import machine as captured  # noqa: E402
from sides import records  # noqa: E402
from waywiser import __version__  # noqa: E402
from waywiser.machine.machine import Machine  # noqa: E402
from waywiser.measure.plan.plan import Plan, Request, make_plan  # noqa: E402
from waywiser.profile import WritableProfile  # noqa: E402
from waywiser.profile.whole import write_profile  # noqa: E402
from waywiser.words.records import BufferRecord, Failure, Visit  # noqa: E402

CAPTURE = "h200-vm-8gpu"
SAMPLES = 72
"""Of a visit, as in a survey of four GPUs on average (docs/results)."""

LATENCY, BANDWIDTH = 3e-6, 5e10
"""Seconds, and bytes per second, of every path."""

NEAR, FAR = 5.6e-6, 6.3e-6
"""Seconds that small copies take between a buffer in host memory and the GPUs of either side."""

CALLS = 5
"""Runs of each command; the median and all of them are printed."""


class Took(NamedTuple):
    command: str
    of: str
    wall: tuple[float, ...]
    """Seconds, of each call."""
    cpu: tuple[float, ...]
    bytes: int
    """Of the page that was written; 0 where none was."""
    promise: str

    def row(self) -> str:
        size = f"{self.bytes / 1e6:.2f} MB" if self.bytes else ""
        command = " ".join(word for word in self.command.split() if "/" not in word)
        cells = (f"`{command}`", self.of, _spread(self.wall), _spread(self.cpu), size)
        return "| " + " | ".join((*cells, self.promise)) + " |"


def host(number: int) -> Machine:
    """Of a fleet: the captured machine with a name and GPUs of its own."""
    found = captured(CAPTURE)
    gpus = tuple(
        msgspec.structs.replace(gpu, uuid=f"GPU-{number:04}-{gpu.index}") for gpu in found.gpus
    )
    return msgspec.structs.replace(found, hostname=f"n{number:04}", gpus=gpus)


def visits(machine: Machine, plan: Plan, seed: int) -> Iterator[Visit]:
    """All that are planned. Half of the sizes that are measured only where a rate still grows, or
    where a curve differs from its like, are skipped."""
    rng = random.Random(seed)
    skipped = Failure("skipped", "the rate has saturated, or a curve like it shows it")
    for point in plan.points:
        is_skipped = point.growing and not point.always and rng.random() < 0.5
        seconds = LATENCY + point.workload.bytes / BANDWIDTH
        width = len(point.workload.transfers)
        for block in range(point.processes):
            if is_skipped:
                bare = profiles.visit(point.workload, block, failure=skipped)
                yield msgspec.structs.replace(bare, stop="skipped", buffers=(), gpu_states=())
                continue
            around = seconds * rng.lognormvariate(0.0, 0.003)
            taken = profiles.samples(rng, around, SAMPLES, transfers=width)
            yield _located(profiles.visit(point.workload, block, taken), machine, rng)


def _located(visit: Visit, machine: Machine, rng: random.Random) -> Visit:
    """With the sides of its buffers in host memory found by what copies from there take."""
    gpus = len(machine.gpus)

    def near_some(buffer: BufferRecord) -> BufferRecord:
        if "@numa" not in buffer.memory:
            return buffer
        side = rng.randrange(2)
        seconds = (NEAR if (gpu < gpus / 2) == (side == 0) else FAR for gpu in range(gpus))
        result = tuple(each * rng.uniform(0.99, 1.01) for each in seconds)
        return msgspec.structs.replace(buffer, gpu_seconds=result)

    return msgspec.structs.replace(visit, buffers=tuple(map(near_some, visit.buffers)))


def write(file: Path, machine: Machine, plan: Plan, seed: int) -> Path:
    write_profile(
        file, machine, profiles.ENVIRONMENT, visits(machine, plan, seed),
        plan_json=msgspec.json.encode({"request": plan.request}),
        command=("waywiser", "survey", "--preset", plan.preset.name),
    )  # fmt: skip
    with WritableProfile.resume(file, profiles.ENVIRONMENT) as profile:
        for found in records(seed, gpus=len(machine.gpus)):
            profile.commit_locality(found)
    return file


def timed(command: str, of: str, files: Sequence[Path], *, page: Path | None = None,
          promise: str = "", calls: int = CALLS) -> Took:  # fmt: skip
    """The command over the files, ``calls`` times."""
    name, *options = command.split()
    words = [sys.executable, "-m", "waywiser", name, *map(str, files), *options]
    wall, cpu = [], []
    for _ in range(calls):
        if page:
            page.unlink(missing_ok=True)
        output = ["-o", str(page)] if page else []
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        start = time.monotonic()
        done = subprocess.run([*words, *output], check=False, capture_output=True, text=True)
        wall.append(time.monotonic() - start)
        if done.returncode > 1 or "error" in done.stderr:
            raise SystemExit(f"{command}: {done.stderr}")
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu.append(after.ru_utime + after.ru_stime - used.ru_utime - used.ru_stime)
    size = page.stat().st_size if page else 0
    return Took(command, of, tuple(wall), tuple(cpu), size, promise)


def all_timed(folder: Path, hosts: int) -> Iterator[Took]:
    machine = captured(CAPTURE)
    page = folder / "page.html"
    for preset in ("standard", "full"):
        plan = make_plan(machine, Request(preset=preset))
        of = f"{preset}: {len(plan.points)} series in {plan.visits} visits"
        pair = [write(folder / f"{preset}-{n}.wwp", machine, plan, n) for n in (1, 2)]
        yield timed("report", of, pair[:1], page=page, promise="under 5 s and 10 MB")
        yield timed("report --format md --all", of, pair[:1], page=folder / "page.md")
        yield timed("compare", f"two of {of}", pair, promise="under 2 s")
        yield timed("show", of, pair[:1])
        for file in pair:
            file.unlink()
    plan = make_plan(machine, Request(preset="check"))
    files = [write(folder / f"{n:04}.wwp", host(n), plan, n) for n in range(hosts)]
    of = f"{hosts} hosts, check: {len(plan.points)} series each"
    yield timed("check", of, files, promise="under 60 s", calls=3)
    yield timed("check --baseline " + str(files[1]), "two of check", files[:1])


def _spread(values: Sequence[float]) -> str:
    """``1.23 s (1.20 to 1.31)``."""
    ordered = sorted(values)
    return f"{ordered[len(ordered) // 2]:.2f} s ({ordered[0]:.2f} to {ordered[-1]:.2f})"


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def document(rows: Sequence[Took]) -> str:
    cpus = len(os.sched_getaffinity(0))
    table = "\n".join(row.row() for row in rows)
    return f"""\
# How long the analyses take

<!-- Written by benchmarks/at_scale.py. -->

    python benchmarks/at_scale.py -o docs/results/at-scale.md

Waywiser {__version__}, Python {platform.python_version()}, {cpus} CPUs ({_processor()}). The \
profiles hold every visit that the preset plans on a captured machine with eight H200s \
(tests/captures), some of them skipped, {SAMPLES} samples in the others, \
made from seeds: their figures are no measurements. Every call is a process of its own; \
the table has the median of {CALLS} calls ({rows[-2].command}: \
{len(rows[-2].wall)}), the fastest and the slowest.

| command | of | time | CPU time | page | promised |
| --- | --- | --- | --- | --- | --- |
{table}
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--hosts", type=int, default=400)
    parser.add_argument("-o", "--output", type=Path, help="write the page there")
    options = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for row in all_timed(Path(folder), options.hosts):
            rows.append(row)
            print(row.row(), file=sys.stderr, flush=True)
    text = document(rows)
    if options.output:
        options.output.write_text(text)
    else:
        print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
