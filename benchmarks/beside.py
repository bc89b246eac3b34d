"""Measures how much an allreduce, copies to the host and a matrix product slow one another on two
GPUs, by Waywiser and in a PyTorch program.

    python benchmarks/beside.py [--seconds 90] [--profile beside.wwp] [--page README.md]

Surveys sets with a collective: an allreduce of 256 MiB over both GPUs together with a copy of 1 GiB
from the first GPU to host memory (pinned by copy engine; pageable by the driver, staged, and staged
with one piece in flight), with a matrix product, and with a copy and a matrix product. Then
`torch_beside.py` times the step of a PyTorch program that starts a copy and then an allreduce.
Needs two GPUs and NCCL; without PyTorch the second table is missing. The exit status is 1 if a set
was not measured.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from waywiser import __version__
from waywiser.analysis.questions.sustained import (
    SustainedMember,
    found_sustained,
    interval_text,
    sized,
    slowdown_text,
)
from waywiser.curves.subject import Subject
from waywiser.machine.machine import machine_line
from waywiser.profile import Profile
from waywiser.words.number_format import format_time

ALLREDUCE = "device@gpu:0-1 -> device@gpu:0-1 by nccl[collective=allreduce] of {collective}"
COPY = "device@gpu:0 -> {host}@numa:{node} by {executor} of {copy}"
PRODUCT = "device@gpu:0 -> device@gpu:0 by matrix-product of 64MiB"
METHODS = (
    ("pinned", "copy-engine"),
    ("pageable", "copy-engine"),
    ("pageable", "staged"),
    ("pageable", "staged[slots=1,threads=1]"),
)


def workloads(collective: str, copy: str, node: int) -> list[str]:
    allreduce = ALLREDUCE.format(collective=collective)
    copies = [COPY.format(host=h, node=node, executor=by, copy=copy) for h, by in METHODS]
    sets = [[each] for each in (*copies, PRODUCT)] + [[copies[0], PRODUCT]]
    return ["; ".join([allreduce, *others]) for others in sets]


def survey(file: Path, texts: Sequence[str], seconds: int) -> None:
    command = [sys.executable, "-m", "waywiser", "survey", "-o", str(file), "--share",
               "--deadline", str(seconds)]  # fmt: skip
    for text in texts:
        command += ["--workload", text]
    subprocess.run(command, check=True)


def torch_rows(collective: str, copy: str) -> list[list[str]]:
    """Returns the rows of the PyTorch program; none if PyTorch is missing or fails."""
    script = Path(__file__).with_name("torch_beside.py")
    done = subprocess.run(
        [sys.executable, str(script), collective, copy],
        capture_output=True, text=True, check=False, timeout=120,
        env={**os.environ, "NCCL_NVLS_ENABLE": "0"},
    )  # fmt: skip
    if done.returncode != 0:
        print(f"PyTorch: not measured: {done.stderr.strip().splitlines()[-1:]}", file=sys.stderr)
    return [line.split("|") for line in done.stdout.splitlines() if line.count("|") == 5]


def page(machine: str, members: Sequence[SustainedMember], torch: list[list[str]]) -> Iterator[str]:
    yield "# An allreduce beside copies and compute on two GPUs\n"
    yield f"{machine}; Waywiser {__version__}; `NCCL_NVLS_ENABLE=0`. All streams have the default "
    yield "priority. Made by `benchmarks/beside.py`; the profile is in this folder.\n"
    yield "## Each member while the others run throughout\n"
    yield "The slowdown is the time together over the time alone, in the same process, in turn, by "
    yield "the host's clock. Shorter members repeat until the longest is done.\n"
    yield "| member | beside | alone | beside | slowdown | 95 % | processes |"
    yield "|---|---|---|---|---|---|---|"
    for each in members:
        blocks = len(each.point.measured.used)
        alone = each.seconds / each.slowdown.median
        yield (
            f"| {sized(each.transfer)} | {'; '.join(map(sized, each.others))} | "
            f"{format_time(alone)} | {format_time(each.seconds)} | "
            f"{slowdown_text(each.slowdown)} | {interval_text(each.slowdown.interval)} | {blocks} |"
        )
    if not torch:
        return
    yield "\n## The step of a PyTorch program\n"
    yield "`torch.distributed`, one process for each GPU. The first process starts a copy to the "
    yield "host. Then all start an allreduce and wait for it (`allreduce`), and then for the copy "
    yield "(`both`). The table has the ratio to the allreduce alone, and to the longer of both "
    yield "alone: medians in turn, with the least and the most.\n"
    yield "| copy | allreduce alone | copy alone | allreduce, of alone | both, of the longer |"
    yield "|---|---|---|---|---|"
    for name, allreduce, copy, seen, both, _ in torch:
        yield f"| {name} | {allreduce} | {copy} | {seen} | {both} |"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=int, default=90, help="of the survey; 90 by default")
    parser.add_argument("--profile", type=Path, default=Path("beside.wwp"))
    parser.add_argument("--page", type=Path, help="write the tables there too")
    parser.add_argument("--collective", default="256MiB", help="bytes of the allreduce")
    parser.add_argument("--copy", default="1GiB", help="bytes of the copy to the host")
    parser.add_argument("--node", type=int, default=0, help="NUMA node of the host memory")
    options = parser.parse_args()
    os.environ["NCCL_NVLS_ENABLE"] = "0"
    texts = workloads(options.collective, options.copy, options.node)
    survey(options.profile, texts, options.seconds)
    torch = torch_rows(options.collective, options.copy)
    with Profile.open(options.profile) as profile:
        subject = Subject.of(profile)
    members = found_sustained(subject.curves)
    lines = page(machine_line(subject.machine, host=False), members, torch)
    text = "\n".join(line.rstrip(" ") for line in lines) + "\n"
    print(text)
    if options.page:
        options.page.write_text(text)
    return int(len({each.point.text for each in members}) < len(texts))


if __name__ == "__main__":
    sys.exit(main())
