"""Measures strategies for messages and exchanges between two GPUs, over the fast transport and over
TCP: their crossovers, and how well a model of some sizes predicts these.

    python benchmarks/strategies.py FOLDER [--mpicc PATH] [--ucx FOLDER] [--seconds 220]

One launch for each transport has ``--per-gpu`` ranks on each of two GPUs. It measures a message
from GPU to GPU, directly, in three steps and in chunks of every size. It measures exchanges by
every strategy with 1, 2, 4, ... processes of each GPU, with equal, skewed and sparse counts. The
second launch has ``UCX_TLS=tcp,self,cuda_copy``. The ranks of both get the rest of the environment
unchanged. ``--ucx`` names a folder with UCX (that of the wheel libucx-cu13, ``libucx``): it comes
first on the library path, and Open MPI uses it for memory of GPUs.

Every second size of a curve from 8 KiB on is held out. A model of the others predicts these and the
sizes at which two strategies cross; exchanges are compared with all processes of a GPU. A crossing
counts if the two differ by more than 10 % on both sides of it; it has to be
predicted within a factor of 2, and times with a median error of 20 % at most. FOLDER gets the
profiles (.wwp.xz), ``strategies.json`` and the page ``README.md``. The exit status is 1 if a survey
ended early or a prediction is outside, else 0. CUDA's Multi-Process Service is never started; the
page says whether one is running.
"""

from __future__ import annotations

import argparse
import json
import lzma
import math
import os
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any, NamedTuple

from waywiser.curves.answer import MATTERS
from waywiser.curves.curve import points_of
from waywiser.model.curve import CurveModel, CurveTimes, fit_curves
from waywiser.profile import Profile
from waywiser.profile.series_frame import SeriesFrame
from waywiser.stats.scatter import CurveBlocks
from waywiser.words import format_bytes
from waywiser.words.number_format import format_time
from waywiser.words.sizes import size_text

FITTED = (2**3, 2**7, 2**11, *(2**n for n in range(13, 27, 2)))
HELD_OUT = (2**9, *(2**n for n in range(14, 25, 2)))
SIZES = tuple(sorted((*FITTED, *HELD_OUT)))
FEW = (2**3, 2**13, 2**17, 2**21, 2**25)
CHUNKS = (2**16, 2**18, 2**20, 2**21, 2**22, 2**24)
CHUNKED = (2**21, 2**23, 2**24, 2**25)
FACTOR, MEDIAN = 2.0, 0.20
TRANSPORTS = {"fast": {}, "tcp": {"UCX_TLS": "tcp,self,cuda_copy"}}

Times = dict[int, float]
"""Bytes -> seconds"""


class Curve(NamedTuple):
    """What is measured at which sizes."""

    name: str
    text: str
    sizes: Sequence[int]


class Plan(NamedTuple):
    """The curves of one survey, and those of which two are compared."""

    message: list[Curve]
    chunks: list[Curve]
    exchanges: dict[str, list[Curve]]
    """The exchanges by one call, under what is sent."""
    pairs: list[Curve]
    """The same by messages between pairs."""

    @property
    def compared(self) -> dict[str, list[Curve]]:
        """Strategies of which every two may cross: with all processes of a GPU."""
        names = {curve.name for curve in self.pairs}
        own = {w: [c for c in curves if c.name in names] for w, curves in self.exchanges.items()}
        return {"message": self.message, **own}

    @property
    def curves(self) -> list[Curve]:
        several = [curve for own in self.exchanges.values() for curve in own]
        return [*self.message, *self.chunks, *several, *self.pairs]


def planned(per_gpu: int) -> Plan:
    """``per_gpu`` ranks of the first GPU have the lowest numbers."""
    path = f"device@rank:0 -> device@rank:{per_gpu} by "
    all_ranks = f"device@rank:0-{2 * per_gpu - 1}"
    among = f"{all_ranks} -> {all_ranks} by "
    message = [Curve("direct", f"{path}mpi", SIZES), Curve("3-step", f"{path}mpi-staged", SIZES)]
    chunks = [
        Curve(f"chunks of {format_bytes(chunk)}", f"{path}mpi-staged[chunk={chunk}]",
              [size for size in CHUNKED if size > chunk])
        for chunk in CHUNKS
    ]  # fmt: skip
    chunks += [
        Curve(f"chunks of 2 MiB, {n} buffers", f"{path}mpi-staged[buffers={n},chunk={2**21}]",
              CHUNKED[-1:])
        for n in (3, 4)
    ]  # fmt: skip
    every = dict(_strategies(per_gpu, [2**n for n in range(per_gpu.bit_length())]))
    few = dict(_strategies(per_gpu, [per_gpu]))
    exchanges = {
        "alltoall": [Curve(n, f"{among}alltoall{_words(s)}", SIZES) for n, s in every.items()],
        "alltoallv, skewed": [
            Curve(n, f"{among}alltoallv{_words([*s, 'counts=skewed'])}", SIZES)
            for n, s in few.items()
        ],
        "alltoallv, one neighbour": [
            Curve(n, f"{among}alltoallv{_words([*s, 'counts=neighbours'])}", FEW)
            for n, s in few.items()
        ],
    }
    pairs = [
        Curve(n, f"{among}alltoall{_words([*s, 'exchange=pairs'])}", FEW) for n, s in few.items()
    ]
    return Plan(message, chunks, exchanges, pairs)


def _words(settings: Sequence[str]) -> str:
    return f"[{','.join(sorted(settings))}]" if settings else ""


def _strategies(per_gpu: int, numbers: Sequence[int]) -> Iterator[tuple[str, list[str]]]:
    """Names and settings; those of several processes for each of ``numbers``. All processes of a
    GPU are the default, which is not written."""
    yield "direct", ["strategy=direct"]
    yield "3-step", []
    if per_gpu == 1:
        return
    for strategy in ("extra-message", "duplicate-pointer"):
        for n in numbers:
            if n > 1 or strategy == "duplicate-pointer":
                some = [f"per-gpu={n}"] if n < per_gpu else []
                yield f"{strategy} by {n}", [f"strategy={strategy}", *some]


# Measuring.


def environment(transport: str, ucx: Path | None) -> dict[str, str]:
    """Returns the environment of this process with the variables of the transport."""
    found = {**os.environ, "NCCL_NVLS_ENABLE": "0"}
    if ucx is not None:
        paths = [str(ucx / "lib"), found.get("LD_LIBRARY_PATH", "")]
        found |= {
            "LD_LIBRARY_PATH": os.pathsep.join(filter(None, paths)),
            "UCX_MODULE_DIR": str(ucx / "lib" / "ucx"),
            "OMPI_MCA_pml": "ucx",
            "OMPI_MCA_pml_ucx_tls": "any",
            "OMPI_MCA_pml_ucx_devices": "any",
        }
    return found | TRANSPORTS[transport]


def survey(
    file: Path, plan: Plan, per_gpu: int, mpicc: str, own: Mapping[str, str], seconds: float
) -> tuple[float, bool]:
    """The seconds that it took, and whether it ended by itself; else what it had measured is in the
    profile."""
    # Named sizes leave a survey without a deadline; each curve has its own.
    command = [sys.executable, "-m", "waywiser", "survey", "-o", str(file), "--share",
               "--preset", "quick", "--sizes", "8",
               "--ranks", str(2 * per_gpu), "--ranks-per-gpu", str(per_gpu),
               *(["--mpicc", mpicc] if mpicc else [])]  # fmt: skip
    for curve in plan.curves:
        for size in curve.sizes:
            command += ["--workload", f"{curve.text} of {size}"]
    begun = time.monotonic()
    process = subprocess.Popen(command, env=dict(own), stdout=subprocess.DEVNULL)
    try:
        ended = process.wait(timeout=seconds) == 0
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGINT)
        process.wait()
        ended = False
    return time.monotonic() - begun, ended


def mps_text() -> str:
    """Whether CUDA's Multi-Process Service runs, if this process can see that."""
    names = []
    for found in Path("/proc").glob("[0-9]*/comm"):
        try:
            names.append(found.read_text().strip())
        except OSError:
            continue  # it has ended
    if running := sorted({name for name in names if name.startswith("nvidia-cuda-mps")}):
        return f"CUDA's Multi-Process Service ran ({', '.join(running)}): ranks shared a context."
    pipe = os.environ.get("CUDA_MPS_PIPE_DIRECTORY", "/tmp/nvidia-mps")
    said = f"no nvidia-cuda-mps process is visible, and {pipe} "
    said += "exists" if Path(pipe).exists() else "does not exist"
    return f"CUDA's Multi-Process Service did not run ({said}): processes took turns on a GPU."


# Reading and predicting.


def read(file: Path) -> dict[str, Times]:
    """The median of each series, by curve."""
    found: dict[str, Times] = {}
    if file.exists():
        with Profile.open(file) as profile:
            for each in points_of(SeriesFrame.read(profile)):
                if each.blocks:
                    middle = statistics.median(block.median for block in each.blocks)
                    found.setdefault(each.workload.curve, {})[each.bytes] = middle
    return found


def fitted(times: Times) -> CurveModel | None:
    """The model of the sizes that are not held out; None if they are too few."""
    sizes = [size for size in sorted(times) if size in FITTED]
    if len(sizes) < 4:
        return None
    blocks = CurveBlocks(sizes, [{0: times[size]} for size in sizes], [0.0] * len(sizes))
    (model,) = fit_curves([CurveTimes("", "link", blocks)])
    return model


def errors(times: Times) -> dict[int, float]:
    """Predicted over measured time, minus 1, of the sizes that are held out."""
    model = fitted(times)
    own = [size for size in HELD_OUT if size in times]
    return {size: model.seconds(size) / times[size] - 1 for size in own} if model else {}


class Crossing(NamedTuple):
    """The size at which another strategy becomes the faster."""

    faster: str
    slower: str
    bytes: float


def crossings(names: tuple[str, str], one: Times, other: Times) -> list[Crossing]:
    """Returns the crossings with a difference that matters at sizes on both sides."""
    logs = {size: math.log(one[size] / other[size]) for size in sorted(one.keys() & other.keys())}
    clear = [size for size, log in logs.items() if abs(log) > math.log1p(MATTERS)]
    found = []
    for low, high in pairwise(clear):
        if logs[low] * logs[high] < 0:
            share = logs[low] / (logs[low] - logs[high])
            at = low * (high / low) ** share
            faster, slower = names if logs[high] < 0 else names[::-1]
            found.append(Crossing(faster, slower, at))
    return found


class Checked(NamedTuple):
    """A crossing as measured and as predicted; one of both may be missing."""

    what: str
    faster: str
    slower: str
    measured: float | None
    predicted: float | None

    @property
    def is_right(self) -> bool:
        if self.measured is None or self.predicted is None:
            return False
        return max(self.measured / self.predicted, self.predicted / self.measured) <= FACTOR


def checked(what: str, curves: Sequence[Curve], times: Mapping[str, Times]) -> Iterator[Checked]:
    """All crossings of every two of the curves; measured ones at all sizes, predicted ones by the
    models at many."""
    known = [c for c in curves if (own := times.get(c.text)) and fitted(own) is not None]
    for one, other in combinations(known, 2):
        names = one.name, other.name
        both = times[one.text], times[other.text]
        models = [fitted(own) for own in both]
        ends = [size for size in SIZES if all(size in own for own in both)]
        grid = sorted({round(ends[0] * (ends[-1] / ends[0]) ** (n / 96)) for n in range(97)})
        curves_of = [{size: model.seconds(size) for size in grid} for model in models if model]
        expected = crossings(names, curves_of[0], curves_of[1])
        for measured in crossings(names, *both):
            same = [each for each in expected if each.faster == measured.faster]
            closest = min(same, key=lambda e: abs(math.log(e.bytes / measured.bytes)), default=None)
            if closest is not None:
                expected.remove(closest)
            yield Checked(what, measured.faster, measured.slower, measured.bytes,
                          closest.bytes if closest else None)  # fmt: skip
        for left in expected:
            yield Checked(what, left.faster, left.slower, None, left.bytes)


class Result(NamedTuple):
    """What one transport shows."""

    transport: str
    seconds: float
    ended: bool
    times: dict[str, Times]
    crossings: list[Checked]
    errors: dict[str, dict[int, float]]

    @property
    def median_error(self) -> float:
        every = [abs(error) for own in self.errors.values() for error in own.values()]
        return statistics.median(every) if every else math.inf


def result_of(
    transport: str, seconds: float, ended: bool, times: dict[str, Times], plan: Plan
) -> Result:
    groups = plan.compared.items()
    found = [each for what, own in groups for each in checked(what, own, times)]
    off = {curve.text: errors(times[curve.text]) for curve in plan.curves if curve.text in times}
    return Result(transport, seconds, ended, times, found, {k: v for k, v in off.items() if v})


# The page.


def table(title: str, curves: Sequence[Curve], times: Mapping[str, Times]) -> Iterator[str]:
    """Times by size; the fastest is bold."""
    own = {curve.name: times.get(curve.text, {}) for curve in curves}
    sizes = [size for size in SIZES if sum(size in each for each in own.values()) > 1]
    sizes = sizes[:: max(1, -(-len(sizes) // 9))]
    if not sizes:
        return
    yield from ("", f"### {title}", "", f"| | {' | '.join(map(format_bytes, sizes))} |")
    yield f"|---|{'---|' * len(sizes)}"
    least = {size: min(each[size] for each in own.values() if size in each) for size in sizes}
    for name, each in own.items():
        cells = (format_time(each[size]) if size in each else "" for size in sizes)
        bold = (f"**{cell}**" if cell and each[size] == least[size] else cell
                for size, cell in zip(sizes, cells, strict=True))  # fmt: skip
        yield f"| {name} | {' | '.join(bold)} |"


def best_chunks(plan: Plan, times: Mapping[str, Times]) -> Iterator[str]:
    for size in CHUNKED:
        found = {c.name: times[c.text][size] for c in (*plan.message[1:], *plan.chunks)
                 if size in times.get(c.text, {})}  # fmt: skip
        if found:
            best = min(found, key=lambda name: found[name])
            yield f"{format_bytes(size)}: {best} ({size / found[best] / 1e9:.2f} GB/s)"


def better_exchange(plan: Plan, times: Mapping[str, Times]) -> Iterator[str]:
    """Yields lines that compare the times of messages between pairs with those of one call."""
    calls = {curve.name: curve for curve in plan.exchanges["alltoall"]}
    for curve in plan.pairs:
        one, pairs = times.get(calls[curve.name].text, {}), times.get(curve.text, {})
        ratios = [
            f"{format_bytes(s)} {pairs[s] / one[s]:.2f}" for s in FEW if s in one and s in pairs
        ]
        if ratios:
            yield f"{curve.name}: {', '.join(ratios)}"


def section(result: Result, plan: Plan) -> Iterator[str]:
    right = [each for each in result.crossings if each.is_right]
    variables = " ".join(f"{k}={v}" for k, v in TRANSPORTS[result.transport].items())
    yield from ("", f"## {result.transport}{f' (`{variables}`)' if variables else ''}", "")
    early = "" if result.ended else ", ended early: some sizes are missing"
    yield f"{sum(map(len, result.times.values()))} series in {result.seconds:.0f} s{early}. "
    held_out = sum(map(len, result.errors.values()))
    yield f"Crossings predicted within a factor of 2: {len(right)} of {len(result.crossings)}. "
    yield f"Median error of {held_out} held-out times: {result.median_error:.1%}."
    yield from table("Message from GPU to GPU", plan.message, result.times)
    yield from table("In chunks", plan.chunks, result.times)
    yield from ("", f"Best chunk: {'; '.join(best_chunks(plan, result.times))}.")
    for what, curves in plan.exchanges.items():
        yield from table(what, curves, result.times)
    yield from ("", "Messages between pairs over one call for all (alltoall): "
                f"{'; '.join(better_exchange(plan, result.times))}.")  # fmt: skip
    yield from ("", "### Crossings", "", "| what | faster from there on | slower | measured | "
                "predicted | within a factor of 2 |", "|---|---|---|---|---|---|")  # fmt: skip
    for each in result.crossings:
        both = (size_text(round(x)) if x else "none" for x in (each.measured, each.predicted))
        yield (f"| {each.what} | {each.faster} | {each.slower} | {' | '.join(both)} | "
               f"{'yes' if each.is_right else 'no'} |")  # fmt: skip


def page(results: Sequence[Result], plan: Plan, machine: str, per_gpu: int, mps: str) -> str:
    lines = [
        "# Strategies for messages and exchanges between two GPUs",
        "",
        f"{machine}. {2 * per_gpu} ranks, {per_gpu} on each GPU, of `benchmarks/strategies.py`. "
        f"{mps}",
        "",
        "Times are medians of the slowest rank; the bytes of an exchange are all that one GPU "
        "sends, half of them to itself. Models are of every second size, and crossings are counted "
        f"where the two differ by more than {MATTERS:.0%} on both sides.",
    ]
    for result in results:
        lines += section(result, plan)
    return "\n".join(lines) + "\n"


def as_json(result: Result) -> dict[str, Any]:
    return {
        "transport": result.transport,
        "seconds": result.seconds,
        "ended": result.ended,
        "median_error": result.median_error if result.errors else None,
        "crossings": [{**each._asdict(), "right": each.is_right} for each in result.crossings],
        "errors": result.errors,
        "times": result.times,
    }


def machine_text(file: Path) -> str:
    with Profile.open(file) as profile:
        gpus = ", ".join(dict.fromkeys(gpu.name for gpu in profile.machine.gpus))
        return f"{len(profile.machine.gpus)} × {gpus}, {profile.machine.messages}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="where profiles and the page are written")
    parser.add_argument("--mpicc", default="", help="by default that of 'waywiser doctor --mpi'")
    parser.add_argument("--ucx", type=Path, help="a folder with UCX, as libucx of libucx-cu13")
    parser.add_argument("--per-gpu", type=int, default=8, help="ranks on each GPU; 8 by default")
    parser.add_argument("--seconds", type=float, default=220.0, help="of all surveys together")
    parser.add_argument("--transports", default=",".join(TRANSPORTS), help="fast, tcp or both")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    plan, results, machine = planned(options.per_gpu), [], "no survey"
    chosen = options.transports.split(",")
    mps, left = mps_text(), options.seconds
    for n, transport in enumerate(chosen):
        file = options.folder / f"{transport}.wwp"
        own = environment(transport, options.ucx)
        share = left / (len(chosen) - n)
        took, ended = survey(file, plan, options.per_gpu, options.mpicc, own, share)
        left -= took
        results.append(result_of(transport, took, ended, read(file), plan))
        if file.exists():
            machine = machine_text(file)
            packed = lzma.compress(file.read_bytes())
            file.with_name(file.name + ".xz").write_bytes(packed)
            file.unlink()
        text = page(results, plan, machine, options.per_gpu, mps)
        (options.folder / "README.md").write_text(text)
        document = {"machine": machine, "mps": mps, "results": list(map(as_json, results))}
        (options.folder / "strategies.json").write_text(json.dumps(document, indent=1) + "\n")
    print(text)
    return int(any(
        not each.ended or each.median_error > MEDIAN or not all(c.is_right for c in each.crossings)
        for each in results
    ))  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
