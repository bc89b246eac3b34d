"""The options of a survey: the one list of them.

The command line, `waywiser.survey`, and the check of ``--resume`` read this table. `tune` and
`simulate` take some of its options (`waywiser.measure.tune_options`,
`waywiser.measure.simulate_options`), and `waywiser.cluster.survey_options` extends the first part
of it. Nothing heavy is imported: ``--help`` shows the table.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

from waywiser.measure.option import Stored, option
from waywiser.words import MOST_GPUS, Bounds, WaywiserError, WordError, parse_bytes

WEEK_SECONDS = 7 * 24 * 3600

MOST_RANKS = 256
"""Processes of one launch on one machine."""

MOST_SEED = 2**53 - 1
"""What every reader of JSON keeps."""

DEADLINE = "--deadline"


class OptionError(WaywiserError):
    """An option with a value that cannot be meant."""


def memory_bytes(text: str) -> int:
    """The bytes of ``--memory``. Raises `OptionError`."""
    try:
        found = parse_bytes(text)
    except WordError as error:
        raise OptionError(f"--memory {error.what}", remedy=error.remedy) from error
    if not found:
        raise OptionError(
            f"--memory {text} leaves no memory for buffers", remedy="write --memory 4GiB"
        )
    return found


def absolute(files: Sequence[str]) -> tuple[str, ...]:
    """The paths of files, whatever the working directory is later."""
    return tuple(map(os.path.abspath, files))


@dataclass(frozen=True)
class AnySurveyOptions:
    """What a survey of one machine and one of a cluster have in common."""

    mpicc: str | None = option(
        "The mpicc of the MPI library; by default that of WAYWISER_MPICC, the first in PATH, or "
        "that of the Python environment.",
        metavar="PATH",
        stored=Stored("selection", "mpicc"),
    )
    deadline: float | None = option(
        "End after this time.",
        more="What says least is skipped if it is short; 'survey' repeats more if time is left.",
        name=DEADLINE,
        metavar="SECONDS",
        bounds=Bounds(1, WEEK_SECONDS, "number of seconds"),
        stored=Stored("request", "deadline_seconds", float),
    )


@dataclass(frozen=True)
class SurveyOptions(AnySurveyOptions):
    """Options as they were given; the default for what was not given."""

    output: str | None = option(
        "Write to FILE.", more="By default HOST-TIME.wwp.", metavar="FILE", short="-o"
    )
    dataset: str | None = option(
        "Write what follows from the profile into the data set of this folder too, as "
        "day=DATE/HOST-RUN.parquet.",
        metavar="FOLDER",
    )
    preset: str | None = option(
        "How much to measure: check or quick (under 30 s), standard (minutes) or full (hours).",
        more="By default standard.",
        metavar="NAME",
        stored=Stored("request", "preset"),
    )
    only: tuple[str, ...] = option(
        "Select paths that have all these words, or match this glob; may be repeated. Words are "
        "parts of a path as it is printed, and terms: h2d, d2h, d2d, p2p, local, h2h, bidir, "
        "between-ranks, host-to-all, all-to-host, collectives, zero-copy, uvm, disk, scattered, "
        "memcpy, pcie, nvlink, latency (up to 4 KiB). Examples: 'h2d sm', 'p2p nvlink', "
        "'pinned*gpu:0*'.",
        default=(),
        metavar="PATTERN",
        stored=Stored("request", "only"),
    )
    workload: tuple[str, ...] = option(
        "Transfers that start together: 'A -> B by X; C -> D by Y of 64MiB', or paths as --only "
        "names them: 'h2d pinned gpu:0 of 64MiB'. May be repeated.",
        more="They are measured instead of those of the preset.",
        default=(),
        metavar="TEXT",
        stored=Stored("request", "workloads"),
    )
    sizes: str | None = option(
        "Sizes to measure: every power of two in 8:1GiB, four sizes for each in 8:1GiB:4, or a "
        "list, 1KiB,1MiB.",
        more="By default those of the preset.",
        metavar="SIZES",
        takes_numbers=True,
        stored=Stored("request", "sizes"),
    )
    gpus: str | None = option(
        "GPUs to measure: 0,1 or none; by default all.",
        metavar="LIST",
        takes_numbers=True,
        stored=Stored("selection", "gpus"),
    )
    expect_gpus: int = option(
        "Expect N GPUs: fewer are an error.",
        default=0,
        metavar="N",
        bounds=Bounds(0, MOST_GPUS),
    )
    memory: str | None = option(
        "Most memory for all buffers together; by default 4GiB.",
        metavar="BYTES",
        takes_numbers=True,
        stored=Stored("selection", "memory_bytes", memory_bytes),
    )
    file: tuple[str, ...] = option(
        "Also measure reads of this file, which is never written; may be repeated.",
        default=(),
        metavar="PATH",
        stored=Stored("selection", "files", absolute),
    )
    scratch: str | None = option(
        "Make scratch files in this folder, on the disk to measure.",
        more="By default where the profile is written.",
        metavar="FOLDER",
        stored=Stored("selection", "scratch", os.path.abspath),
    )
    no_scratch: bool = option(
        "Make no scratch files, and measure no disk.",
        default=False,
        stored=Stored("selection", "scratch", lambda _: ""),
    )
    nccl: str | None = option(
        "The libnccl.so.2 to measure; by default that of WAYWISER_NCCL, the system, the Python "
        "environment's wheel, or PyTorch.",
        metavar="PATH",
        stored=Stored("selection", "nccl", os.path.abspath),
    )
    model: bool = option(
        "Also measure the sets of transfers that a model of the machine needs.",
        default=False,
        stored=Stored("request", "model"),
    )
    share: bool = option(
        "Also measure GPUs that other processes use.",
        default=False,
        stored=Stored("selection", "share"),
    )
    ranks: int = option(
        "Measure messages between so many processes of MPI on this machine, and nothing else.",
        default=0,
        metavar="N",
        bounds=Bounds(2, MOST_RANKS),
        stored=Stored("selection", "ranks"),
    )
    ranks_per_gpu: int = option(
        "So many processes of MPI for each GPU.",
        more="By default as many of the --ranks for each.",
        default=0,
        metavar="N",
        bounds=Bounds(1, MOST_RANKS),
        stored=Stored("selection", "ranks_per_gpu"),
    )
    rank_cpus: str | None = option(
        "CPUs of the --ranks: near their GPUs (the default), far from them, or at a node, numa:1. "
        "near,far has so many ranks of each, which the report compares.",
        metavar="WHERE",
        stored=Stored("selection", "rank_cpus"),
    )
    launcher: str | None = option(
        "Start processes of MPI by another launcher than the library's mpiexec: "
        "'srun -n {ranks} {command}'.",
        metavar="TEMPLATE",
        stored=Stored("selection", "launcher"),
    )
    seed: int | None = option(
        "Seed of all that is drawn: the same number draws the same.",
        more="By default 1.",
        metavar="N",
        bounds=Bounds(0, MOST_SEED),
        stored=Stored("request", "seed"),
    )
    resume: bool = option(
        "Go on with what -o has: nothing is repeated, and what is not there is begun.",
        default=False,
    )
