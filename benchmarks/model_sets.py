"""How well models predict transfers that run together: recorded, grown and planted machines.

    python benchmarks/model_sets.py [--machines 200] [--jobs 1] [-o docs/results/models/sets.md]
    python benchmarks/model_sets.py --live PROFILE.wwp.xz ... [-o docs/results/models/live.md]

Recorded: of each executor, five sets of the kept four-GPU surveys are fitted, and the others
predicted. Grown: a model of the kept two-GPU survey is asked about four GPUs. Planted: capacities
of synthetic machines are fitted under recorded noise (tests/planted/capacities.py). Every number
follows from the kept files and the seeds.
"""

from __future__ import annotations

import argparse
import math
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "python")]

from kept import RESULTS, unpacked  # noqa: E402
from planted.capacities import PROCESSES, CapacityScore, planted_capacities  # noqa: E402
from planted.noise import recorded  # noqa: E402
from waywiser.curves.name import name_of  # noqa: E402
from waywiser.machine.machine import Machine  # noqa: E402
from waywiser.model.capacity import CapacityModel, CapacityModelReader  # noqa: E402
from waywiser.model.capacity_fit import fit_capacities  # noqa: E402
from waywiser.model.held_out import ValidatedSet, validated, validation_sets  # noqa: E402
from waywiser.model.machine_model import profile_capacities  # noqa: E402
from waywiser.model.timed_sets import TimedSet, timed  # noqa: E402
from waywiser.model.whatif import with_gpus  # noqa: E402
from waywiser.profile import Profile  # noqa: E402
from waywiser.profile.series_frame import SeriesFrame  # noqa: E402
from waywiser.words import Workload, format_bytes  # noqa: E402
from waywiser.words.sizes_in_text import with_sizes  # noqa: E402

FOUR = RESULTS / "2026-11-20-h200-catalogue"
QUIET, BUSY = FOUR / "four-gpus", FOUR / "four-gpus-busy"
TWO = RESULTS / "2026-11-20-h200" / "two-gpus"

CALIBRATING_BYTES = 64 * 2**20
CALIBRATING = ("one-to-all", "all-to-host", "host-and-all")
FIRST_PAIRS = ({"numa:0", "gpu:0"}, {"gpu:0", "gpu:1"})
"""The places of the two bidirectional paths that are fitted."""

PLANTED = (
    "Four to eight GPUs, one or two hidden sides, ports that two GPUs or a side share, limits of "
    "both directions and of host memory, under the noise of recorded surveys. A limit counts if a "
    "calibrating set takes at least 3 % longer for it. Random sets mix directions and sizes from "
    "64 KiB to 256 MiB, and are compared with the truth without noise.\n\n"
)
FEW_PROCESSES = (
    "The same with two processes. They hardly show what all sets of a process have in common, so "
    "that `survey --model` measures calibrating sets in all processes.\n\n"
)
TARGETS = (
    "\nThe targets were a median of 1 %, a p95 of 4.5 % and at worst 6 % on the quiet host, and "
    "2 %, 6 % and 8 % on the busy one. On the busy host copies of 64 and 256 MiB between the host "
    "and all GPUs differ by up to 8 %, which one capacity cannot follow. The rules and their "
    "constants were chosen on these surveys: only the sets that are not fitted are new to them.\n"
)

CHUNK = 5
FIRST_SEED = 200_000


class Survey(NamedTuple):
    """A kept survey."""

    machine: Machine
    singles: list[TimedSet]
    sets: list[TimedSet]
    seconds: float
    """That reading it took."""

    @property
    def usual(self) -> list[TimedSet]:
        """The sets between pinned memory and the memories of GPUs."""
        return [each for each in self.sets if _is_usual(each.workload)]


def read(folder: Path) -> Survey:
    started = time.perf_counter()
    with (
        tempfile.TemporaryDirectory() as scratch,
        Profile.open(unpacked(folder / "standard.wwp.xz", Path(scratch) / "p.wwp")) as profile,
    ):
        singles, sets = timed(SeriesFrame.read(profile))
        return Survey(profile.machine, singles, sets, time.perf_counter() - started)


def is_calibrating(workload: Workload) -> bool:
    """Whether it is one of the five sets of its executor that are fitted."""
    if workload.transfers[0].bytes != CALIBRATING_BYTES:
        return False
    places = {str(place) for place in workload.places}
    is_pair = len(workload.transfers) == 2 and places in FIRST_PAIRS
    return is_pair or name_of(workload).startswith(CALIBRATING)


def _is_usual(workload: Workload) -> bool:
    kinds = {memory.kind for transfer in workload.transfers for memory in transfer.path.ends}
    return kinds <= {"pinned", "device"} and len(_executors(workload)) == 1


def _executors(workload: Workload) -> set[str]:
    return {transfer.path.executor for transfer in workload.transfers}


def executor_of(timed_set: TimedSet) -> str:
    return timed_set.workload.transfers[0].path.executor


def summary(errors: Sequence[float]) -> str:
    """Median, 95th percentile and worst of absolute errors, as cells of a table."""
    ordered = sorted(map(abs, errors))
    at = [len(ordered) // 2, math.ceil(0.95 * len(ordered)) - 1, -1]
    return " | ".join(f"{ordered[n]:.1%}" for n in at)


def alone(reader: CapacityModelReader, workload: Workload) -> float:
    """What the slowest transfer takes alone: a prediction without a model of sharing."""
    known = [reader.alone.of(transfer) for transfer in workload.transfers]
    return max(each.seconds for each in known if each is not None)


# Recorded machines.


def recorded_sets() -> Iterator[str]:
    surveys = {"quiet": read(QUIET), "busy": read(BUSY)}
    readers: dict[str, CapacityModelReader] = {}
    for name, survey in surveys.items():
        calibrating = [each for each in survey.usual if is_calibrating(each.workload)]
        readers[name] = CapacityModelReader(
            fit_capacities(survey.machine, survey.singles, calibrating)
        )
    yield "## Sets of four H200s\n\n"
    yield (
        "Of each executor five sets of 64 MiB copies are fitted: one to all, all to host, host and "
        "all, and the first bidirectional path with the host and between GPUs. The others are "
        "predicted. *Alone* is the time of the slowest transfer without the others. p95: one of "
        "20 is larger. Unknown: the model says that a limit was not measured.\n\n"
    )
    yield "| host | executor | predicted | median | p95 | worst | in interval | unknown |"
    yield " alone: median | p95 | worst |\n|" + "---|" * 11 + "\n"
    pooled: dict[str, list[float]] = {}
    for name, survey in surveys.items():
        for executor in sorted({executor_of(each) for each in survey.usual}):
            own = [
                each
                for each in survey.usual
                if executor_of(each) == executor and not is_calibrating(each.workload)
            ]
            predictions = [readers[name].predicted(each.workload) for each in own]
            errors = [p.span / each.span - 1 for p, each in zip(predictions, own, strict=True)]
            naive = [alone(readers[name], each.workload) / each.span - 1 for each in own]
            pooled.setdefault(name, []).extend(errors)
            unknown = sum(not each.is_known for each in predictions)
            inside = sum(
                p.interval.low <= each.span <= p.interval.high
                for p, each in zip(predictions, own, strict=True)
            )
            yield (
                f"| {name} | {executor} | {len(own)} | {summary(errors)} | {inside} | {unknown} | "
                f"{summary(naive)} |\n"
            )
        yield f"| {name} | both | {len(pooled[name])} | {summary(pooled[name])} | | | | | |\n"
    yield TARGETS
    yield "\n### Each transfer of the predicted sets\n\n"
    yield (
        "From the start of a transfer to its end, in the sets that were not fitted. A max-min "
        "share gives both directions of a link the same part, and one may get more.\n\n"
    )
    yield "| host | executor | transfers | median | p95 | worst | in the 95 % interval |\n"
    yield "|---|---|---|---|---|---|---|\n"
    for name, survey in surveys.items():
        for executor in sorted({executor_of(each) for each in survey.usual}):
            own = [each for each in survey.usual if executor_of(each) == executor]
            held_out = [each for each in own if not is_calibrating(each.workload)]
            predicted = validated(readers[name].model, held_out)
            errors = [error for each in predicted for error in each.transfer_errors]
            within = [inside for each in predicted for inside in each.are_transfers_in_interval]
            yield (
                f"| {name} | {executor} | {len(errors)} | {summary(errors)} | "
                f"{sum(within) / len(within):.1%} |\n"
            )
    yield "\n### Capacities that the five sets show\n\n"
    yield "| host | resource | method | GB/s | 95 % interval |\n|---|---|---|---|---|\n"
    for name, reader in readers.items():
        yield from _capacities(name, reader.model)
    yield "\n### Each set: predicted over measured time, minus 1\n\n"
    yield "In italics: fitted.\n\n"
    yield from _each_set(surveys, readers)


def costs() -> Iterator[str]:
    """How long reading and fitting take on this machine."""
    yield "\n### Cost\n\n"
    for name, folder in (("quiet", QUIET), ("busy", BUSY)):
        survey = read(folder)
        started = time.perf_counter()
        fit_capacities(survey.machine, survey.singles, survey.sets)
        seconds = time.perf_counter() - started
        yield (
            f"- {name}: reading {survey.seconds:.1f} s, fitting all {len(survey.sets)} sets "
            f"{seconds:.1f} s.\n"
        )


def _capacities(name: str, model: CapacityModel) -> Iterator[str]:
    for each in model.capacities:
        if each.basis == "sets" and each.interval is not None:
            low, high = each.interval.low / 1e9, each.interval.high / 1e9
            yield (
                f"| {name} | {each.resource} | {each.method} | {each.bytes_per_second / 1e9:.1f} | "
                f"{low:.1f} to {high:.1f} |\n"
            )
    for queue in model.queues:
        yield (
            f"| {name} | one after another, by {queue.end} | {queue.method} | | gap "
            f"{queue.gap * 1e6:.1f} µs |\n"
        )


def _each_set(surveys: dict[str, Survey], readers: dict[str, CapacityModelReader]) -> Iterator[str]:
    cells: dict[tuple[str, int], dict[tuple[str, str], str]] = {}
    for name, survey in surveys.items():
        for each in survey.usual:
            executor = executor_of(each)
            found = readers[name].predicted(each.workload)
            error = f"{found.span / each.span - 1:+.1%}"
            error = f"*{error}*" if is_calibrating(each.workload) else error
            text = name_of(each.workload).replace(f" by {executor}", "")
            row = cells.setdefault((text, each.workload.transfers[0].bytes), {})
            row[name, executor] = error + ("" if found.is_known else ", unknown")
    columns = sorted({column for row in cells.values() for column in row}, reverse=True)
    names = " | ".join(f"{name}, {executor}" for name, executor in columns)
    yield f"| set | size | {names} |\n|---|---|{'---|' * len(columns)}\n"
    for (text, size), row in sorted(cells.items()):
        values = " | ".join(row.get(column, "") for column in columns)
        yield f"| {text} | {format_bytes(size)} | {values} |\n"


# More GPUs than were measured.


def grown_machine() -> Iterator[str]:
    two, four = read(TWO), read(QUIET)
    reader = CapacityModelReader(with_gpus(fit_capacities(two.machine, two.singles, two.sets), 4))
    executors = {executor_of(each) for each in two.sets if _is_usual(each.workload)}
    groups: dict[str, list[tuple[TimedSet, float, bool]]] = {}
    for each in four.usual:
        if executor_of(each) not in executors:
            continue
        gpus = {place for place in each.workload.places if place.kind == "gpu"}
        has_host = any(place.kind == "numa" for place in each.workload.places)
        what = "between GPUs"
        if has_host:
            what = "host and all GPUs" if len(gpus) > 1 else "host and one GPU, bidirectional"
        found = reader.predicted(each.workload)
        groups.setdefault(what, []).append((each, found.span / each.span - 1, found.is_known))
    yield "\n## Four GPUs from a survey of two\n\n"
    yield (
        "The survey of two H200s, on another day, has no set over all GPUs. Its model is asked "
        "about four GPUs, and compared with the quiet survey of four. What is unknown has no "
        "prediction; the last column is how far the naive answer, that nothing is shared, would be "
        "off.\n\n"
    )
    yield "| sets | number | known | median | p95 | worst | naive worst |\n" + "|---" * 7 + "|\n"
    for what, known in groups.items():
        errors = [error for _, error, is_known in known if is_known]
        naive = max(
            (abs(alone(reader, each.workload) / each.span - 1) for each, _, _ in known), default=0.0
        )
        cells = summary(errors) if errors else "– | – | –"
        yield f"| {what} | {len(known)} | {len(errors)} | {cells} | {naive:.1%} |\n"


# A survey of this machine.


def live(files: Sequence[Path]) -> Iterator[str]:
    """The validation sets of surveys made with ``--model``, by kind of GPU."""
    yield "# Sets of one GPU, predicted and measured\n\n"
    yield "<!-- Written by benchmarks/model_sets.py --live. -->\n\n"
    yield LIVE
    surveys: dict[str, list[_Survey]] = {}
    for packed in files:
        gpu, survey = _read_survey(packed)
        surveys.setdefault(gpu, []).append(survey)
    for gpu, own in surveys.items():
        yield from _live_of(gpu, own)


class _Survey(NamedTuple):
    """One survey made with ``--model``."""

    validated: list[ValidatedSet]
    naive: list[float]
    """The time of the slowest transfer alone over the measured time, minus 1."""
    calibrating: dict[str, float]
    """Workload -> seconds."""


def _read_survey(packed: Path) -> tuple[str, _Survey]:
    """(its kind of GPU, the survey)."""
    with tempfile.TemporaryDirectory() as folder:
        file = unpacked(packed, Path(folder) / packed.stem)
        with Profile.open(file) as profile:
            frame = SeriesFrame.read(profile)
            model = profile_capacities(profile, frame)
            own = validation_sets(profile, frame)
            gpu = profile.machine.gpus[0].name
    reader = CapacityModelReader(model)
    validation = {str(each.workload) for each in own}
    return gpu, _Survey(
        validated(model, own),
        [alone(reader, each.workload) / each.span - 1 for each in own],
        {
            str(each.workload): each.span
            for each in timed(frame)[1]
            if str(each.workload) not in validation and _is_like_validation(each.workload)
        },
    )


def _live_of(gpu: str, surveys: Sequence[_Survey]) -> Iterator[str]:
    found = [each for survey in surveys for each in survey.validated]
    naive = [each for survey in surveys for each in survey.naive]
    calibrating = [survey.calibrating for survey in surveys]
    yield f"## {gpu}, {len(surveys)} surveys\n\n"
    yield "| what | sets | number | median | p95 | worst | in the 95 % interval |\n"
    yield "|---|---|---|---|---|---|---|\n"
    for text, chosen in (
        ("all", found),
        ("copy engines alone", [each for each in found if not _has_kernels(each)]),
        ("with kernels", [each for each in found if _has_kernels(each)]),
    ):
        inside = sum(each.is_in_interval for each in chosen)
        of_sets = summary([each.error for each in chosen])
        yield f"| time of a set | {text} | {len(chosen)} | {of_sets} | {inside} |\n"
        transfers = [error for each in chosen for error in each.transfer_errors]
        inside = sum(sum(each.are_transfers_in_interval) for each in chosen)
        of_all = summary(transfers)
        yield f"| time of each transfer | {text} | {len(transfers)} | {of_all} | {inside} |\n"
    yield f"| the slowest transfer alone | all | {len(naive)} | {summary(naive)} | |\n"
    common = set.intersection(*map(set, calibrating))
    apart = [
        max(each[text] for each in calibrating) / min(each[text] for each in calibrating) - 1
        for text in common
    ]
    yield f"| longest over shortest, same set | calibrating | {len(apart)} | {summary(apart)} | |\n"
    yield "\n| error | measured, ms | set |\n|---|---|---|\n"
    for each in sorted(found, key=lambda each: -abs(each.error)):
        text = with_sizes(str(each.timed.workload))
        yield f"| {each.error:+.1%} | {each.timed.span * 1e3:.3f} | {text} |\n"
    yield "\n"


LIVE = (
    "Surveys `waywiser survey --preset standard --model` of [machines with one "
    "GPU](../2026-11-25-sets/README.md), some minutes apart, each with validation sets of its own. "
    "A set has two to four transfers between pinned memory and the GPU, in both directions, by "
    "copy engines and by kernels, of 64 KiB to 256 MiB. No set was fitted. An error is predicted "
    "over measured time, minus 1; p95: one of 20 is larger. The last row of a table is the floor: "
    "how far the same set was apart in these surveys.\n\n"
    "The time of all is predicted about as well as a second survey would. That of each transfer is "
    "not, if kernels take part. On the H200 a copy that starts beside a large kernel copy took "
    "0.05 to 0.4 ms longer, kernels got two to three times as much of the direction from the GPU "
    "as copy engines, and the direction from the GPU got more than the other one. The model shares "
    "equally. So the interval of such a transfer begins at its time alone. It ends with the time "
    "of all, or, if only copies of the runtime share the link, with its time if the others come "
    "first. Without that rule, made on the H200, 62 % of its transfers were in their intervals. "
    "Small sets take up to 16 % longer than predicted, since transfers do not start at the same "
    "moment.\n\n"
    "The aims for sets were a median of 4 % and a p95 of 12 %, the end of each transfer included, "
    "on two GPUs, which were not available.\n\n"
)


def _is_like_validation(workload: Workload) -> bool:
    """Whether it has copies by copy engines or kernels between pinned memory and a GPU alone."""
    return all(
        t.path.executor in ("copy-engine", "sm")
        and t.layout is None
        and {memory.kind for memory in t.path.ends} == {"pinned", "device"}
        for t in workload.transfers
    )


def _has_kernels(each: ValidatedSet) -> bool:
    return any(t.path.executor != "copy-engine" for t in each.timed.workload.transfers)


# Planted machines.


def scored(job: tuple[int, int, int]) -> CapacityScore:
    first, last, processes = job
    score = CapacityScore()
    for seed in range(first, last):
        score.add(planted_capacities(seed, recorded(), processes))
    return score


def planted_machines(count: int, jobs: int, processes: int) -> Iterator[str]:
    chunks = [
        (first, min(first + CHUNK, FIRST_SEED + count), processes)
        for first in range(FIRST_SEED, FIRST_SEED + count, CHUNK)
    ]
    total = CapacityScore()
    with ProcessPoolExecutor(jobs) as pool:
        for score in pool.map(scored, chunks):
            total.merge(score)
            print(f"{total.machines} of {count} machines", file=sys.stderr)
    yield f"\n## {count} planted machines, {processes} processes\n\n"
    yield PLANTED if processes == PROCESSES else FEW_PROCESSES
    errors = summary(total.errors)
    yield "| what | result | target |\n|---|---|---|\n"
    yield (
        f"| planted capacities that are found | {total.found} of {total.planted} | |\n"
        f"| of these in their 95 % interval | {total.covered / total.found:.1%} | 93 to 97 % |\n"
        f"| machines with exactly the planted ports | {total.exact_groups / total.machines:.1%} | "
        "at least 95 % |\n"
        f"| machines with a port that was not planted | {total.false_groups / total.machines:.1%} "
        "| at most 1 % |\n"
        f"| {len(total.errors)} random sets: median, p95, worst | "
        f"{errors.replace(' |', ',')} | p95 at most 3 % |\n"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--machines", type=int, default=200)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("-o", "--output", type=Path)
    parser.add_argument(
        "--live", type=Path, nargs="+", help="packed profiles of `waywiser survey --model`"
    )
    given = parser.parse_args()
    if given.live:
        text = "".join(live(given.live))
        if given.output:
            given.output.write_text(text)
        else:
            print(text)
        return
    parts = [
        "# Models of transfers that run together\n\n",
        "<!-- Written by benchmarks/model_sets.py. -->\n\n",
        "The method is in [methodology](../../methodology.md). The profiles are those of "
        "[four H200s](../2026-11-20-h200-catalogue/README.md), quiet and with other users on the "
        "host, and of [two](../2026-11-20-h200/README.md).\n\n",
        *recorded_sets(),
        *costs(),
        *grown_machine(),
    ]
    if given.machines:
        parts += planted_machines(given.machines, given.jobs, PROCESSES)
        parts += planted_machines(given.machines // 4, given.jobs, 2)
    text = "".join(parts)
    if given.output:
        given.output.parent.mkdir(parents=True, exist_ok=True)
        given.output.write_text(text)
    else:
        print(text)


if __name__ == "__main__":
    main()
