"""Writes the pages about two papers: their figures of messages, measured again.

    python docs/papers/pages.py

The parts between marks are made from the surveys of ranks in docs/results (see rank_profiles.py).
A new profile there adds its tables, and the page no longer lists their figures as missing. A test
checks that the pages are current.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import message_figures as figures
from copy_figures import drawing
from rank_profiles import COPIES, RankProfile, between_marks, rank_profiles

from waywiser.render.figures.curves import Quantity

HERE = Path(__file__).parent
BEGIN, END = "<!-- made -->\n", "\n<!-- end -->\n"

Made = Callable[[RankProfile], Iterator[str]]


class Figure(NamedTuple):
    """One figure or table of a paper."""

    title: str
    says: str
    """What the paper shows."""
    made: Made
    """The lines that a profile gives; none if it has no data for the figure."""
    missing: str
    """The text if no profile has the data, with the reason."""
    lacks: str = ""
    """The text below the tables: limits of the profiles, and what the tables show."""
    is_of_all: bool = False
    """Whether the lines are the same for all profiles."""
    command: str = "waywiser survey --ranks 2 --preset standard -o ranks.wwp"
    """What makes it on the reader's machine."""
    picture: str = ""
    """The name of its picture in `PICTURES`; empty for none."""


class MessagePicture(NamedTuple):
    """Curves of one profile of ranks."""

    title: str
    profile: str
    curves: dict[str, str]
    """The text of each by its name."""
    what: Quantity


SEVERAL_MESSAGES = (
    "waywiser survey --ranks 8 --only '*; *' --only 'device@rank:0 -> device@rank:? by mpi' "
    "--only 'device@rank:0 -> device@rank:? by mpi-staged' "
    "--only 'pinned@rank:0 -> pinned@rank:? by mpi' "
    "--sizes 64,1KiB,16KiB,256KiB,4MiB -o ranks.wwp"
)
"""Messages that start together, and each of them alone. A standard survey plans those that start
together at two sizes."""
NO_CROWD = (
    "The command takes these messages alone, at five sizes, in about four minutes; a standard "
    "survey has messages that start together at 16 MiB and 64 MiB only. It was not run: the "
    "machine at hand has no GPU, and eight ranks that share its two CPUs take turns, which shows "
    "nothing."
)

NVLINK, TCP = "2026-11-25-ranks-and-nccl/nvlink", "2026-11-26-ranks-and-collectives/tcp"
OVER_NVLINK = "{0}@rank:0 -> {0}@rank:1 by {1}"
OVER_TCP = "device@rank:0 -> device@rank:8 by {}"
PICTURES = {
    "data-movement-2.svg": MessagePicture(
        "One message within a node, two H100",
        NVLINK,
        {
            "host memory": OVER_NVLINK.format("pinned", "mpi"),
            "GPU memory": OVER_NVLINK.format("device", "mpi"),
        },
        "latency",
    ),
    "data-movement-3.svg": MessagePicture(
        "One message between two H100 by two methods",
        NVLINK,
        {
            "GPU-aware (mpi)": OVER_NVLINK.format("device", "mpi"),
            "3-step (mpi-staged)": OVER_NVLINK.format("device", "mpi-staged"),
        },
        "bandwidth",
    ),
    "auto-tuning-6.svg": MessagePicture(
        "One message between two H200 over TCP",
        TCP,
        {
            "GPU-aware (mpi)": OVER_TCP.format("mpi"),
            "copied first": OVER_TCP.format("mpi-staged"),
            "chunks of 2 MiB": OVER_TCP.format("mpi-staged[chunk=2097152]"),
            "chunks of 256 KiB": OVER_TCP.format("mpi-staged[chunk=262144]"),
        },
        "bandwidth",
    ),
}


def svg(name: str) -> str:
    """One of `PICTURES`."""
    picture = PICTURES[name]
    return drawing(picture.title, picture.profile, picture.curves, picture.what)


class Elsewhere(NamedTuple):
    """A figure or table that has no measured messages."""

    title: str
    says: str
    ours: str
    """The command, and where ours is, or why there is none."""


def of_units(*units: str) -> Made:
    return lambda profile: (line for unit in units for line in figures.several(profile, unit))


def injection(profile: RankProfile) -> Iterator[str]:
    rows = list(figures.injection(profile))
    if rows:
        yield from figures.head("messages", "pairs", "limit")
        yield from rows


def lines(profile: RankProfile) -> Iterator[str]:
    curves = list(figures.message_curves(profile))
    if curves:
        yield from figures.lines_of(curves)


def by_memory_without_nvlink(profile: RankProfile) -> Iterator[str]:
    """Yields figure 6 for profiles without NVLink, whose messages go over a network."""
    if "NVLink" not in profile.name:
        yield from figures.by_memory(profile)


ONE_NODE = (
    "Off-node messages, and on-node messages between sockets, are not measured: the machines at "
    "hand are single nodes that show one NUMA node."
)

DATA_MOVEMENT = (
    Figure(
        "Figure 2: the cost of a message by size",
        "On Summit the latency of host memory is a quarter to a fiftieth of that of GPU memory. "
        "GPU memory has more bandwidth within a node, and less between nodes.",
        figures.costs_by_size,
        "no profile has messages of host and GPU memory.",
        ONE_NODE,
        picture="data-movement-2.svg",
    ),
    Figure(
        "Table I: the postal model by protocol",
        "Short, eager and rendezvous messages have a line each. Here a fit finds the lines and the "
        "sizes between them. Another page has Summit's own table, from its raw data: "
        "[31 of 32 parameters](../results/models/summit.md).",
        lines,
        "no profile has curves that are long enough.",
        "A line describes messages of host memory badly. Caches and two copies by CPUs shape their "
        "curve, and sizes above 16 MiB did not converge.",
        command=(
            "waywiser survey --ranks 2 --preset standard -o ranks.wwp; waywiser predict ranks.wwp"
        ),
    ),
    Figure(
        "Table II: copies between host and GPU",
        "Summit, from the socket of the GPU: 1.09e-05 s and 2.36e-11 to 2.38e-11 s/B. An H100 of "
        f"another host (`{COPIES}`):",
        lambda _: figures.copies_table(),
        "no survey of copies is kept.",
        is_of_all=True,
        command="waywiser survey -o copies.wwp; waywiser predict copies.wwp",
    ),
    Figure(
        "Table III: the injection limit",
        "Summit's nodes inject 3.0e-11 s/B from host memory, 5.1e-11 from GPU memory.",
        injection,
        "it needs several pairs of ranks: `waywiser survey --ranks 8`. "
        "[Another page](../results/models/summit.md) tests the limit of Summit: 24.1 GB/s by 138 "
        "measurements.",
        command="waywiser survey --ranks 8 -o ranks.wwp; waywiser predict ranks.wwp",
    ),
    Figure(
        "Figure 3: one message, GPU-aware or copied first (theirs is a model)",
        "In the paper's model, MPI with pointers to GPU memory (`mpi`) is faster at all sizes than "
        "the 3-step method (`mpi-staged`). Here both are measured, and a model of the other sizes "
        "predicts every second size. The paper's own method is the sum of the steps: a copy, a "
        "message between hosts and a copy, each by its own curve (table II, figure 2).",
        figures.one_message,
        "no profile has both methods.",
        "For few bytes the sums of steps are too small: curves of copies are times on the device, "
        "and a program also waits for the calls. In the profiles of 25 November the paper's result "
        "holds over NVLink from 4 KiB on. Over TCP it holds at no measured size: the library's own "
        "method for GPU memory is slower than a copy, a message and a copy. These GPUs are in one "
        "host; between nodes GPUDirect takes the place of NVLink.",
        picture="data-movement-3.svg",
    ),
    Figure(
        "Figure 4: bytes divided among processes",
        "All cores of a node together are the fastest at every size, although their injection is "
        "limited.",
        of_units("process"),
        f"it needs several processes of two GPUs, each with its own CPUs. {NO_CROWD}",
        command=f"{SEVERAL_MESSAGES}; waywiser predict ranks.wwp --crossovers",
    ),
    Figure(
        "Figure 5: several messages (theirs is a model)",
        "One copy and n messages between hosts are faster than n messages between GPUs if n is "
        "large. For small messages that is from 7 on by the paper's model of Summit, and from 5 on "
        "by [its raw data](../results/models/summit.md). For Lassen n is larger.",
        of_units("peer", "message"),
        "it needs several messages of one rank, or windows: `--ranks 2 --preset standard`. "
        f"{NO_CROWD}",
        command=f"{SEVERAL_MESSAGES}; waywiser predict ranks.wwp --crossovers",
    ),
    Figure(
        "Figure 6: MPI_Alltoall and MPI_Alltoallv by four strategies",
        "The extra message is the fastest for the smallest messages, the duplicate device pointer "
        "for the largest. Times in parentheses are modelled from other sizes of the strategy.",
        of_units("rank"),
        "it needs exchanges among GPUs with several processes each.",
        "As in the paper, the duplicate pointer is the fastest for the largest messages. For the "
        "smallest the fastest is the 3-step method, or a duplicate pointer of one process. There "
        "is no network between these GPUs. Processes of one GPU took turns, because CUDA's "
        "Multi-Process Service did not run. The surveys ended early, and most cells were not "
        "measured.",
        command="waywiser survey --ranks 16 -o exchanges.wwp",
    ),
)

AUTO_TUNING = (
    Figure(
        "Figure 6: messages between memories of CPUs and GPUs of two nodes",
        "In the paper, copies and messages that overlap (double buffering, in chunks of 2 MB) are "
        "the fastest from 128 KB on, and the placement of the processes hardly matters. Here both "
        "ranks are on one host, and TCP takes the place of the network. The table has GB/s.",
        by_memory_without_nvlink,
        "no survey of ranks over TCP is kept.",
        "Methods without a row were not measured yet, such as messages between host and GPU "
        "memory. `waywiser tune chunks.wwp --ranks 2 --only 'device@rank:0 -> device@rank:1*'` "
        "searches the best chunk. `mpi-staged` without a chunk copies the whole message first. At "
        "32 MiB, chunks of 2 MiB are the fastest of the measured ones, as in the paper.",
        picture="auto-tuning-6.svg",
    ),
)

DATA_MOVEMENT_ELSEWHERE = (
    Elsewhere(
        "Figure 1: a node of Summit",
        "Two Power9 with three GPUs each, NVLink between them, and one NIC.",
        "On your machine: `waywiser report ranks.wwp` draws the node with the bandwidth of its "
        "links. "
        "Ours: [four H200](../results/2026-11-20-h200-catalogue/four-gpus/links.png) in one host. "
        "**Missing:** the links to a network; the machines at hand have none between their GPUs.",
    ),
)

AUTO_TUNING_ELSEWHERE = (
    Elsewhere(
        "Figure 1 and table I: the systems",
        "GPUs at one PCIe switch, at two, and at two CPUs; C2070, M2090 and C2050, PCIe 2.",
        "On your machine: `waywiser survey -o copies.wwp; waywiser report copies.wwp`. Ours: [the "
        "machines](../results/auto-tuning-2013.md) of today, and what changed since.",
    ),
    Elsewhere(
        "Figure 2: GPU and host memory, local and remote, in one and both directions",
        "Remote copies reach 70 to 80 % of local ones, both directions up to 70 % of the best.",
        "On your machine: `waywiser survey --only 'h2d copy-engine' --only 'd2h copy-engine' "
        "--only "
        "bidir -o copies.wwp`. Ours: [figure by figure](../results/auto-tuning-2013.md#figure-by-"
        "figure), [a "
        "DGX-1](../results/auto-tuning-2013.md#a-dgx-1-local-against-remote-memory) with "
        "remote memory. They differ: today both directions reach nine tenths of the sum, and "
        "pinned "
        "memory has no remote penalty on the DGX-1.",
    ),
    Elsewhere(
        "Figures 3 and 5: GPU to GPU, by CUDA and by tuned double buffering",
        "Remote GPUs reach 65 % of the best; CUDA's own copy 85 to 95 % of tuned double buffering.",
        "On your machine: `waywiser survey --preset full --only 'device -> device by staged' "
        "--only "
        "'p2p copy-engine' -o peers.wwp`. Ours: [peer access against the host](../results/"
        "auto-tuning-2013.md#gpu-0-to-gpu-1-four-h200), and [staged copies between GPUs]"
        "(../results/auto-tuning-2013.md#figure-by-figure). They differ: NVLink and NVSwitch are "
        "ten times as fast as "
        "the path through the host.",
    ),
    Elsewhere(
        "Sections IV.B and V.B: disks",
        "The place of the disk matters little; double buffering gains 10 to 20 % from 512 KB on.",
        "On your machine: `waywiser survey --only 'file device by staged' --only direct-io -o "
        "disk.wwp`. Ours: [disk](../results/auto-tuning-2013.md#figure-by-figure), where "
        "overlap gains "
        "more. **Missing:** a machine that shows two NUMA nodes and has a disk.",
    ),
)

NO_FIGURE_4 = (
    "**Not reproduced.** The paper places each process in the PCIe domain of its GPU or in the "
    "other one. Messages are up to 75 % slower in the other one. "
    "`waywiser survey --ranks 2 --rank-cpus near,far` measures both on a machine that shows two "
    "NUMA nodes. The machines of these profiles show one; there the command ends with an error. "
    "Where processes and buffers are in each placement is seen in "
    "[an emulated machine](../results/2026-11-29-emulated-placement.md), without times."
)


def data_movement(profiles: Sequence[RankProfile]) -> Iterator[str]:
    yield from _sources(profiles)
    yield from _elsewhere(DATA_MOVEMENT_ELSEWHERE)
    for figure in DATA_MOVEMENT:
        yield from _section(figure, profiles)


def auto_tuning(profiles: Sequence[RankProfile]) -> Iterator[str]:
    yield from _sources(profiles)
    yield from _elsewhere(AUTO_TUNING_ELSEWHERE)
    yield from ("## Figure 4: processes of one node, local and remote", "", NO_FIGURE_4, "")
    for figure in AUTO_TUNING:
        yield from _section(figure, profiles)


def _elsewhere(figures: Sequence[Elsewhere]) -> Iterator[str]:
    for each in figures:
        yield from (f"## {each.title}", "", each.says, "", each.ours, "")


def _sources(profiles: Sequence[RankProfile]) -> Iterator[str]:
    yield from ("## Profiles", "")
    yield from (f"- {figures.listed(profile)}" for profile in profiles)
    yield ""


def _label(profile: RankProfile) -> str:
    """``NVLink, NVIDIA H200, 16 ranks``."""
    return f"{profile.name}, {profile.gpus}, {len(profile.machine.ranks)} ranks"


def _section(figure: Figure, profiles: Sequence[RankProfile]) -> Iterator[str]:
    yield from (f"## {figure.title}", "", figure.says, "")
    yield from (f"On your machine: `{figure.command}`", "")
    if figure.picture:
        picture = PICTURES[figure.picture]
        yield from (f"![{picture.title}, `{picture.profile}.wwp.xz`]({figure.picture})", "")
    shown = [(profile, made) for profile in profiles if (made := list(figure.made(profile)))]
    for profile, made in shown[:1] if figure.is_of_all else shown:
        yield from (*(() if figure.is_of_all else (f"{_label(profile)}:", "")), *made, "")
    if not shown:
        yield from (f"**Not measured yet:** {figure.missing}", "")
    elif figure.lacks:
        yield from (figure.lacks, "")


PAGES: dict[str, Callable[[Sequence[RankProfile]], Iterator[str]]] = {
    "data-movement-2021.md": data_movement,
    "auto-tuning-2013.md": auto_tuning,
}


def current(text: str, name: str, profiles: Sequence[RankProfile]) -> str:
    """Returns the page with the tables of the profiles."""
    made = "\n".join(PAGES[name](profiles)).rstrip("\n").split("\n")
    return between_marks(text, BEGIN, END, made)


def main() -> int:
    profiles = list(rank_profiles())
    for name in PAGES:
        page = HERE / name
        page.write_text(current(page.read_text(), name, profiles))
    for name in PICTURES:
        (HERE / name).write_text(svg(name))
    return 0


if __name__ == "__main__":
    sys.exit(main())
