"""Whether the times of messages between two ranks are right: the same ping-pong in plain C
(`plain_mpi.c`), compiled by the same mpicc and launched in turn with surveys.

    python benchmarks/mpi.py [--mpicc PATH] [--device] [--sizes 64KiB,1MiB,16MiB] [--rounds 9]

The best samples of all launches are compared, since those of two programs are disturbed equally
only in the long run. Both use two CPUs of this process, each rank one: if a launch has the choice,
times of small messages have two levels. 5 % is allowed from 64 KiB on, with
``--device`` (memory of GPUs; needs a library that takes it) 3 % from 1 MiB on. Smaller sizes are
shown, not decided about. The exit status is 1 when a size lies outside, else 0.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from waywiser.measure.ranks.launcher import launch_command, launch_environment
from waywiser.measure.ranks.mpi_library import MpiLibrary, find_library
from waywiser.profile import Profile
from waywiser.words import format_bytes, parse_bytes

SAMPLES = 30
Times = dict[int, list[float]]
"""Bytes -> seconds of half a round trip"""


def build(library: MpiLibrary, folder: Path, device: bool) -> Path:
    program, source = folder / "plain_mpi", Path(__file__).with_name("plain_mpi.c")
    cuda = os.environ.get("CUDA_HOME", "/usr/local/cuda")
    options = (
        ["-DDEVICE", f"-I{cuda}/include", f"-L{cuda}/lib64", f"-Wl,-rpath,{cuda}/lib64", "-lcudart"]
        if device
        else []
    )
    command = [library.mpicc.path, "-O2", str(source), "-o", str(program), *options]
    subprocess.run(command, check=True)
    return program


def plain(library: MpiLibrary, program: Path, sizes: list[int], found: Times) -> None:
    """Adds the best sample of each size of one launch."""
    command = launch_command(library, [str(program), str(SAMPLES), *map(str, sizes)], 2)
    environment = launch_environment(2, "", str(program.parent))
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    for line in done.stdout.splitlines():
        size, best, _ = line.split()
        found.setdefault(int(size), []).append(float(best))


def surveyed(library: MpiLibrary, kind: str, sizes: list[int], found: Times) -> None:
    """Adds the best sample of each visit of one survey."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "surveyed.wwp"
        subprocess.run(
            [sys.executable, "-m", "waywiser", "survey", "-o", str(file), "--preset", "quick",
             "--ranks", "2", "--mpicc", library.mpicc.path, "--share",
             "--workload", f"{kind}@rank:0 -> {kind}@rank:1 by mpi",
             "--sizes", ",".join(map(str, sizes))],
            check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        with Profile.open(file) as profile:
            for series in profile.series():
                for visit in series.visits:
                    if visit.samples.span:
                        best = min(visit.samples.span)
                        found.setdefault(series.workload.bytes, []).append(best)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mpicc", default="", help="by default that of 'waywiser doctor --mpi'")
    parser.add_argument("--device", action="store_true", help="memory of GPUs")
    parser.add_argument("--sizes", default="8,1KiB,64KiB,1MiB,16MiB")
    parser.add_argument("--rounds", type=int, default=9, help="launches of plain C; 9 by default")
    parser.add_argument("--json", type=Path, help="also write the figures there")
    wanted = parser.parse_args()
    library = find_library(wanted.mpicc)
    cpus = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cpus[0], cpus[len(cpus) // 2]})  # seldom threads of one core
    sizes = [parse_bytes(text) for text in wanted.sizes.split(",")]
    plains: Times = {}
    surveys: Times = {}
    with tempfile.TemporaryDirectory() as folder:
        program = build(library, Path(folder), wanted.device)
        for _ in range(wanted.rounds):
            plain(library, program, sizes, plains)
            surveyed(library, "device" if wanted.device else "pageable", sizes, surveys)
    print(f"{library.name} {library.version}; best samples, us; GB/s of half a round trip")
    print(f"{'bytes':>9} {'waywiser':>10} {'plain':>10} {'GB/s':>7} {'ratio':>7}")
    rows, outside = [], 0
    for size in sizes:
        if size not in surveys:
            print(f"{format_bytes(size):>9} not measured")
            outside += 1
            continue
        own, other = min(surveys[size]), min(plains[size])
        allowed = 0.03 if wanted.device and size >= 1 << 20 else 0.05
        decided = size >= 64 << 10
        wrong = decided and abs(own / other - 1) > allowed
        outside += wrong
        verdict = f"  more than {allowed:.0%}" if wrong else "" if decided else "  not decided"
        print(f"{format_bytes(size):>9} {own * 1e6:10.2f} {other * 1e6:10.2f} "
              f"{size / own / 1e9:7.2f} {own / other:7.4f}{verdict}")  # fmt: skip
        rows.append({"bytes": size, "seconds": surveys[size], "plain_seconds": plains[size],
                     "ratio": own / other})  # fmt: skip
    if wanted.json:
        document = {"library": library.name, "version": library.version, "rows": rows}
        wanted.json.write_text(json.dumps(document, indent=2) + "\n")
    return int(outside > 0)


if __name__ == "__main__":
    sys.exit(main())
