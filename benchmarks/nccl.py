"""Compares the times of NCCL's collectives with those of plain C (`plain_nccl.c`) over the same
library, in one process, before, between and after surveys of them. PyTorch's times are listed too.

    python benchmarks/nccl.py [--json FILE] [--sizes 1MiB,16MiB,256MiB] [--rounds 3]

Each round's ratio is of a survey to the plain runs on both sides of it; the median of the rounds
counts. From 16 MiB on 3 % is allowed, below 10 %. A plain run is the faster of two forms: all calls
of a sample are enqueued before the first starts, as in a survey, or each starts when it is
enqueued, as in nccl-tests. Some small calls of the second form wait for the host; one large call of
the first form waits for the release of the other GPU's stream. PyTorch (`torch.distributed`) has a
process for each GPU, and is only shown: its times are those of a loop of asynchronous calls between
two events, on the slowest GPU. Needs two GPUs, a C compiler, NCCL with its header, and CUDA. The
exit status is 1 if a ratio is outside what is allowed and the plain runs agree within that, else 0.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from itertools import pairwise, product
from pathlib import Path
from typing import Any

from waywiser.profile import Profile
from waywiser.profile.estimate import estimate
from waywiser.words import format_bytes, parse_bytes

ALL = "device@gpu:0-{last} -> device@gpu:0-{last} by nccl[collective={name}]"
CURVES = {name: ALL.replace("{name}", name) for name in ("allreduce", "allgather", "alltoall")}
CURVES["send"] = "device@gpu:0 -> device@gpu:1 by nccl"
SAMPLES = 30
WIDE = 16 << 20
"""From so many bytes on 3 % is allowed, below it 10 %."""

Times = dict[tuple[str, int], float]
"""(what, bytes) -> seconds"""


def build(folder: Path) -> Path:
    program, source = folder / "plain_nccl", Path(__file__).with_name("plain_nccl.c")
    cuda = os.environ.get("CUDA_HOME", "/usr/local/cuda")
    subprocess.run(
        ["gcc", "-O2", f"-I{cuda}/include", str(source), "-o", str(program),
         f"-L{cuda}/lib64", f"-Wl,-rpath,{cuda}/lib64", "-lcudart", "-lnccl"], check=True
    )  # fmt: skip
    return program


def plain(program: Path, sizes: list[int]) -> Times:
    """Medians of the faster form of each."""
    found: Times = {}
    for how, what in product(("queued", "loop"), CURVES):
        command = [str(program), how, what, str(SAMPLES), *map(str, sizes)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        for line in done.stdout.splitlines():
            if line.startswith(what):
                _, size, median, _ = line.split()
                key = what, int(size)
                found[key] = min(found.get(key, float("inf")), float(median))
    return found


def surveyed(gpus: int, sizes: list[int]) -> tuple[Times, Times]:
    """Medians, and the relative half-widths of their intervals."""
    named = {text.replace("{last}", str(gpus - 1)): what for what, text in CURVES.items()}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "surveyed.wwp"
        command = [sys.executable, "-m", "waywiser", "survey", "-o", str(file), "--preset",
                   "standard", "--share", "--sizes", ",".join(map(str, sizes))]  # fmt: skip
        for curve in named:
            command += ["--workload", curve]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        medians: Times = {}
        relative: Times = {}
        with Profile.open(file) as profile:
            for series in profile.series():
                what, result = named.get(series.workload.curve), estimate(series)
                if what is not None and result is not None:
                    medians[what, series.workload.bytes] = result.median
                    relative[what, series.workload.bytes] = (
                        float("nan") if result.relative is None else result.relative
                    )
    return medians, relative


def torch_times(gpus: int, sizes: list[int]) -> Times:
    """PyTorch's; nothing where it is missing or fails."""
    script = Path(__file__).with_name("torch_collectives.py")
    command = [sys.executable, str(script), str(gpus), str(SAMPLES), *map(str, sizes)]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False,
        env={**os.environ, "NCCL_NVLS_ENABLE": "0"}, timeout=300,
    )  # fmt: skip
    if done.returncode != 0:
        print(f"PyTorch: not measured: {done.stderr.strip().splitlines()[-1:]}", file=sys.stderr)
    rows = [line.split() for line in done.stdout.splitlines()]
    rows = [row for row in rows if len(row) == 3 and row[0] in CURVES]
    return {(what, int(size)): float(seconds) for what, size, seconds in rows}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path, help="also write the figures there")
    parser.add_argument("--sizes", default="1MiB,16MiB,256MiB")
    parser.add_argument("--rounds", type=int, default=3, help="3 by default")
    wanted = parser.parse_args()
    os.environ["NCCL_NVLS_ENABLE"] = "0"
    sizes = [parse_bytes(text) for text in wanted.sizes.split(",")]
    listed = subprocess.run(["nvidia-smi", "-L"], check=True, capture_output=True, text=True)
    gpus = len(listed.stdout.splitlines())
    with tempfile.TemporaryDirectory() as folder:
        program = build(Path(folder))
        plains = [plain(program, sizes)]
        surveys = []
        for _ in range(wanted.rounds):
            surveys.append(surveyed(gpus, sizes))
            plains.append(plain(program, sizes))
        torch = torch_times(gpus, sizes)
    rows = list(compared(plains, surveys, torch))
    print(f"{gpus} GPUs; us; ratio of the times, each round's")
    print(f"{'waywiser':>10} {'plain':>10} {'torch':>10} {'ratio':>7}  what")
    for row in rows:
        times = [statistics.median(row["seconds"]), statistics.median(row["plain_seconds"])]
        shown = [f"{seconds * 1e6:.2f}" for seconds in times]
        shown.append("-" if row["torch"] is None else f"{row['torch'] * 1e6:.2f}")
        each = ", ".join(f"{ratio:.3f}" for ratio in row["ratios"])
        figures = " ".join(f"{figure:>10}" for figure in shown)
        print(f"{figures} {row['ratio']:7.4f}  {row['what']} "
              f"{format_bytes(row['bytes'])} ({each}){row['note']}")  # fmt: skip
    expected = len(CURVES) * len(sizes)
    if len(rows) < expected:
        print(f"{expected - len(rows)} of {expected} were not measured")
    if wanted.json:
        wanted.json.write_text(json.dumps({"gpus": gpus, "rows": rows}, indent=2) + "\n")
    return int(len(rows) < expected or any(row["note"] for row in rows if row["steady"]))


def compared(
    plains: list[Times], surveys: list[tuple[Times, Times]], torch: Times
) -> list[dict[str, Any]]:
    rows = []
    for key in plains[0]:
        if not all(key in medians for medians, _ in surveys):
            continue
        what, size = key
        allowed = 0.03 if size >= WIDE else 0.10
        own = [medians[key] for medians, _ in surveys]
        others = [times[key] for times in plains]
        ratios = [s / statistics.mean(p) for s, p in zip(own, pairwise(others), strict=True)]
        ratio = statistics.median(ratios)
        steady = max(others) / min(others) - 1 <= allowed
        note = f"; more than {allowed:.0%}" if abs(ratio - 1) > allowed else ""
        note += "" if steady or not note else ", and the plain runs disagree by as much"
        rows.append(
            {"what": what, "bytes": size, "seconds": own, "plain_seconds": others,
             "relative": [found[key] for _, found in surveys], "torch": torch.get(key),
             "ratios": ratios, "ratio": ratio, "allowed": allowed, "steady": steady, "note": note}
        )  # fmt: skip
    return rows


if __name__ == "__main__":
    sys.exit(main())
