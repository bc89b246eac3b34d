"""Writes the pages about three papers on copies within a machine.

    python docs/papers/copy_papers.py

Everything on them is made from the profiles of docs/results (see copy_figures.py), with a picture
for each figure of curves. A test checks that pages and pictures are current.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from copy_figures import KIB, MIB, CopyFigure, Statement, pictures, section

HERE = Path(__file__).parent

TO, BACK = "{}@numa:0 -> device@gpu:0 by {}", "device@gpu:0 -> {}@numa:0 by {}"
H2D, D2H = TO.format("pinned", "copy-engine"), BACK.format("pinned", "copy-engine")
PAGEABLE_H2D = TO.format("pageable", "copy-engine")
PAGEABLE_D2H = BACK.format("pageable", "copy-engine")
STAGING = "pageable@numa:0 -> pinned@numa:0 by copy-engine"
P2P = "device@gpu:0 -> device@gpu:1 by copy-engine"
NO_PEER = f"{P2P}[peer=off]"
PEER_CURVES = {"peer access": P2P, "without peer access": NO_PEER}
PEER_IS_FASTER = Statement("peer access is faster", P2P, "faster", NO_PEER)
PREFETCH = "managed@numa:0 -> managed@gpu:0 by prefetch"
PREFETCH_BACK = "managed@gpu:0 -> managed@numa:0 by prefetch"
DEMAND = "managed@numa:0 -> managed@gpu:0 by page-fault"
DEMAND_BACK = "managed@gpu:0 -> managed@numa:0 by page-fault"
BETWEEN = "managed@gpu:0 -> managed@gpu:1 by "

ONE_NODE = (
    "Remote CPUs and GPUs. The machines at hand are virtual machines that show one NUMA node; on a "
    "machine that shows two, the same command measures both."
)
NO_POWER = "S822LC and AC922. No machine with POWER CPUs is at hand."
NO_AC922 = "AC922. No machine with POWER9 is at hand, and no raw data of one."
DGX = (
    "[The DGX-1's own files](../results/dgx-1.md), imported, have this figure with local and "
    "remote "
    "memory."
)
CELLS = (
    "With `waywiser import FOLDER --machine s822lc --topology NODE.xml -o s822lc.wwp; waywiser "
    "report "
    "s822lc.wwp` the S822LC's own files (the thesis's repository, `data/microbench`) give its "
    "three "
    "tables: of 15 cells 12 agree, and three are not determined "
    "([methodology, section 15](../methodology.md)). "
)


class Paper(NamedTuple):
    """One page."""

    title: str
    about: str
    figures: tuple[CopyFigure, ...]


COMM_SCOPE = Paper(
    "Comm|Scope (2019), measured again",
    "C. Pearson and others, *Evaluating characteristics of CUDA communication primitives on "
    "high-bandwidth interconnects* (ICPE 2019), measure 27 transfers of an AC922 (POWER9, 4 × "
    "V100, NVLink 2), an S822LC (POWER8, 4 × P100, NVLink 1) and a 4029GP (Xeon, 8 × V100, "
    "PCIe 3). "
    "[The catalogue](../catalogue.md) has a row for each of the 27.",
    (
        CopyFigure(
            "Figure 1: share of communication in the training of neural networks",
            "Peer, host-to-device and device-to-host copies take up to half of the time of an "
            "epoch in MXNet.",
            missing="The figure is of a program and not of the machine. Waywiser measures copies, "
            "and runs no training.",
        ),
        CopyFigure(
            "Table 1: which transfers are measured",
            "Comm|Scope has 27 benchmarks: pageable, pinned, zero-copy and unified memory, in one "
            "and both directions, with and without peer access.",
            "waywiser survey --list",
            more="Ours: [the catalogue](../catalogue.md) has each with its command and its figure. "
            "Waywiser also imports Comm|Scope's files: `waywiser import FILE -o scope.wwp`.",
        ),
        CopyFigure(
            "Figure 2: the effect of flushed CPU caches",
            "Caches make curves irregular: copies of data in the cache of a CPU are faster.",
            "waywiser survey --only 'device by copy-engine' -o caches.wwp",
            {
                "pageable to GPU": PAGEABLE_H2D,
                "pageable to GPU, flushed": f"{PAGEABLE_H2D} (flushed)",
                "pinned to GPU": H2D,
                "pinned to GPU, flushed": f"{H2D} (flushed)",
            },
            (
                Statement(
                    "flushing slows pageable copies that fit in the caches",
                    f"{PAGEABLE_H2D} (flushed)",
                    "slower",
                    PAGEABLE_H2D,
                    64 * KIB,
                ),
                Statement(
                    "it does not change large pinned copies",
                    f"{H2D} (flushed)",
                    "equal",
                    H2D,
                    64 * MIB,
                ),
            ),
        ),
        CopyFigure(
            "Figures 3 to 5: interconnects with their peaks; table 2: the systems",
            "Peaks in both directions together: 150 GB/s (NVLink 2 × 3), 80 GB/s (NVLink 1 × "
            "2) and "
            "31.6 GB/s (PCIe 3 x16) to each GPU.",
            "waywiser report NAME.wwp",
            picture="",
            more="Ours: the chapter *Topology and links* draws the machine with the bandwidth of "
            "each link and its share of the peak. "
            "![Four H200](../results/2026-11-20-h200-catalogue/four-gpus/links.png)",
        ),
        CopyFigure(
            "Figure 6: pageable to GPU, and its two steps",
            "A pageable copy is a copy by one CPU thread to pinned memory, and a copy by the GPU. "
            "The first is the limit.",
            "waywiser survey --preset full --only 'pageable pinned' --only 'h2d copy-engine' "
            "-o pageable.wwp",
            {
                "pageable to GPU": PAGEABLE_H2D,
                "pageable to pinned": STAGING,
                "pinned to GPU": H2D,
            },
            (
                Statement("pinned copies are faster", H2D, "faster", PAGEABLE_H2D),
                Statement(
                    "the pageable copy is not faster than its first step",
                    PAGEABLE_H2D,
                    "equal",
                    STAGING,
                    64 * MIB,
                ),
            ),
            ONE_NODE,
            picture="comm-scope-6.svg",
        ),
        CopyFigure(
            "Figure 7: both directions at once",
            "Pinned copies overlap: both directions have nearly twice the bandwidth of one. "
            "Pageable "
            "copies do not, since their first steps take turns.",
            "waywiser survey --only bidir -o both.wwp",
            {
                "pinned, both directions": f"{H2D}; {D2H}",
                "pinned, to GPU": H2D,
                "pageable, both directions": f"{PAGEABLE_H2D}; {PAGEABLE_D2H}",
                "pageable, to GPU": PAGEABLE_H2D,
            },
            (
                Statement(
                    "both directions of pinned copies have more than one",
                    f"{H2D}; {D2H}",
                    "faster",
                    H2D,
                ),
                Statement(
                    "those of pageable copies have little more",
                    f"{PAGEABLE_H2D}; {PAGEABLE_D2H}",
                    "equal",
                    PAGEABLE_H2D,
                ),
            ),
            ONE_NODE,
        ),
        CopyFigure(
            "Figure 8: GPU to GPU with and without peer access",
            "Without peer access a copy goes through the host, and fast links are not used.",
            "waywiser survey --only 'p2p copy-engine' -o peers.wwp",
            PEER_CURVES,
            (PEER_IS_FASTER,),
            ONE_NODE,
            picture="comm-scope-8.svg",
        ),
        CopyFigure(
            "Figure 9: GPU to pinned memory, and zero-copy",
            "Zero-copy writes match copies at intermediate sizes. Reads are slower on the "
            "S822LC, and "
            "both drop for very large transfers.",
            "waywiser survey --only zero-copy --only 'd2h copy-engine' -o zero-copy.wwp",
            {
                "copy to the host": D2H,
                "zero-copy write, paper's grid": f"{BACK.format('pinned', 'sm')}[grid=paper]",
                "zero-copy read, paper's grid": f"{TO.format('pinned', 'sm')}[grid=paper]",
                "zero-copy write, tuned": BACK.format("pinned", "sm"),
                "zero-copy read, tuned": TO.format("pinned", "sm"),
            },
            (
                Statement(
                    "zero-copy writes match copies",
                    BACK.format("pinned", "sm"),
                    "equal",
                    D2H,
                    16 * MIB,
                ),
                Statement(
                    "zero-copy bandwidth drops for very large transfers",
                    BACK.format("pinned", "sm"),
                    "slower",
                    D2H,
                ),
            ),
            ONE_NODE,
            picture="comm-scope-9.svg",
        ),
        CopyFigure(
            "Figure 10: unified memory on demand",
            "Pages that move on demand are faster than pageable copies if enough threads ask for "
            "them. To the host one thread is not enough.",
            "waywiser survey --only 'managed by page-fault' -o demand.wwp",
            {
                "to GPU": DEMAND,
                "to the host, 1 thread": DEMAND_BACK,
                "to the host, 8 threads": f"{DEMAND_BACK}[threads=8]",
                "to the host, 63 threads": f"{DEMAND_BACK}[threads=63]",
                "pageable copy to the host": PAGEABLE_D2H,
            },
            (
                Statement(
                    "several threads are faster than one",
                    f"{DEMAND_BACK}[threads=8]",
                    "faster",
                    DEMAND_BACK,
                    64 * MIB,
                ),
                Statement(
                    "on demand, with enough threads, is faster than a pageable copy",
                    f"{DEMAND_BACK}[threads=63]",
                    "faster",
                    PAGEABLE_D2H,
                    64 * MIB,
                ),
            ),
            ONE_NODE,
            picture="comm-scope-10.svg",
        ),
        CopyFigure(
            "Figure 11: prefetch beside pinned copies",
            "Prefetch nearly matches copies of large sizes, and is far slower from 4 KiB to 32 "
            "MiB.",
            "waywiser survey --only 'managed by prefetch' --only 'h2d copy-engine' -o prefetch.wwp",
            {"prefetch": PREFETCH, "pinned copy": H2D},
            (
                Statement("prefetch is slower at 1 MiB", PREFETCH, "slower", H2D, MIB),
                Statement("it matches large copies", PREFETCH, "equal", H2D),
            ),
            ONE_NODE,
            picture="comm-scope-11.svg",
        ),
    ),
)

THESIS = Paper(
    "Explicit transfers (2018), measured again",
    "C. Pearson's thesis chapter *Explicit Memory Performance* measures `cudaMemcpy` on an "
    "S822LC, an "
    "AC922 and a DGX-1. Waywiser imported the DGX-1's own files: "
    "[28 claims, of which 25 agree](../results/dgx-1.md). This page has its figures on a "
    "machine of "
    "today.",
    (
        CopyFigure(
            "CPU-CPU transfer bandwidth",
            "Bandwidth within a CPU and between CPUs saturates at what one thread loads and "
            "stores.",
            "waywiser survey --preset full --only 'h2h' -o host.wwp",
            {
                "pageable to pinned by cudaMemcpy": STAGING,
                "pageable to pageable by one thread": "pageable@numa:0 -> pageable@numa:0 by cpu",
                "by 8 threads": "pageable@numa:0 -> pageable@numa:0 by cpu[threads=8]",
            },
            (
                Statement(
                    "one thread is the limit: several are faster",
                    "pageable@numa:0 -> pageable@numa:0 by cpu[threads=8]",
                    "faster",
                    "pageable@numa:0 -> pageable@numa:0 by cpu",
                    64 * MIB,
                ),
            ),
            f"{NO_AC922} {ONE_NODE}",
            more=DGX,
        ),
        CopyFigure(
            "cudaMemcpy bandwidth for CPU0-GPU0 transfers: pageable, pinned, write-combined",
            "Pinned and write-combined memory have the same curves, which saturate at the link. "
            "Pageable copies reach a quarter to a half of it.",
            "waywiser survey --only 'copy-engine h2d' --only 'copy-engine d2h' -o kinds.wwp",
            {
                "pinned to GPU": H2D,
                "write-combined to GPU": TO.format("write-combined", "copy-engine"),
                "pageable to GPU": PAGEABLE_H2D,
                "GPU to pinned": D2H,
                "GPU to write-combined": BACK.format("write-combined", "copy-engine"),
                "GPU to pageable": PAGEABLE_D2H,
            },
            (
                Statement(
                    "write-combined memory is as fast as pinned",
                    TO.format("write-combined", "copy-engine"),
                    "equal",
                    H2D,
                ),
                Statement("pageable memory is slower", PAGEABLE_H2D, "slower", H2D),
            ),
            NO_AC922,
            picture="explicit-kinds.svg",
            more=DGX,
        ),
        CopyFigure(
            "CPU-GPU affinity and cudaMemcpy bandwidth; table: effect of affinity",
            "Affinity changes the bandwidth of pinned copies on S822LC and AC922, and of copies to "
            "pageable memory; on the DGX-1 of none.",
            "waywiser survey -o affinity.wwp; waywiser report affinity.wwp",
            more=f"{CELLS}[The DGX-1](../results/dgx-1.md#affinity) "
            "agrees "
            "in three rows of four: copies from a GPU to remote pageable memory are 31 % "
            "slower in its "
            "own files.",
            missing=f"{NO_AC922} {ONE_NODE} Tests plant the effects of all three machines and find "
            "them (`tests/test_thesis_tables.py`).",
        ),
        CopyFigure(
            "Table: host-device transfer anisotropy",
            "Copies in the two directions differ for all kinds of memory; pageable copies to "
            "the GPU "
            "tend to be faster.",
            "waywiser survey -o anisotropy.wwp; waywiser report anisotropy.wwp",
            {
                "pinned to GPU": H2D,
                "GPU to pinned": D2H,
                "pageable to GPU": PAGEABLE_H2D,
                "GPU to pageable": PAGEABLE_D2H,
            },
            (
                Statement("pinned copies to the GPU are faster", H2D, "faster", D2H),
                Statement(
                    "pageable copies to the GPU are faster", PAGEABLE_H2D, "faster", PAGEABLE_D2H
                ),
            ),
            NO_AC922,
            more=f"{CELLS}{DGX}",
        ),
        CopyFigure(
            "cudaMemcpy bandwidth on identical links; table: identical CPU-GPU links",
            "Identical links differ for pageable copies on S822LC and AC922, and never on the "
            "DGX-1.",
            "waywiser survey -o links.wwp; waywiser show links.wwp",
            {
                f"pinned to GPU {n}": f"pinned@numa:0 -> device@gpu:{n} by copy-engine"
                for n in range(4)
            },
            tuple(
                Statement(
                    f"pinned copies to GPUs 0 and {n} are equal",
                    H2D,
                    "equal",
                    f"pinned@numa:0 -> device@gpu:{n} by copy-engine",
                    64 * MIB,
                )
                for n in (1, 2, 3)
            ),
            NO_AC922,
            more=(
                f"{CELLS}[The "
                f"DGX-1](../results/dgx-1.md#differences-between-equivalent-paths) agrees."
            ),
        ),
        CopyFigure(
            "GPU-GPU cudaMemcpy bandwidth and peer access",
            "Peer access adds 40 % on the S822LC, and doubles the bandwidth on the DGX-1.",
            "waywiser survey --only 'p2p copy-engine' -o peers.wwp",
            PEER_CURVES,
            (PEER_IS_FASTER,),
            NO_AC922,
            more=DGX,
        ),
        CopyFigure(
            "GPU-GPU cudaMemcpy bandwidth on identical links; table: identical GPU-GPU links",
            "Without peer access identical pairs differ on S822LC (30 %) and DGX-1; with it "
            "none does.",
            "waywiser survey --only 'p2p copy-engine' -o peers.wwp; waywiser show peers.wwp",
            {
                f"GPU 0 to GPU {n}": f"device@gpu:0 -> device@gpu:{n} by copy-engine"
                for n in (1, 2, 3)
            },
            tuple(
                Statement(
                    f"with peer access GPUs 1 and {n} are equal",
                    P2P,
                    "equal",
                    f"device@gpu:0 -> device@gpu:{n} by copy-engine",
                    64 * MIB,
                )
                for n in (2, 3)
            ),
            NO_AC922,
            more=f"{CELLS}[The DGX-1](../results/dgx-1.md#differences-between-equivalent-paths) "
            "agrees in all "
            "rows: without peer access GPU 0 to GPU 1 is 8 % slower than to GPUs 2 and 3.",
        ),
    ),
)

POWER = Paper(
    "Data transfers of Power and NVLink machines (2018), measured again",
    "C. Pearson, I. Chung, Z. Sura, W. Hwu and J. Xiong, *NUMA-aware data-transfer "
    "measurements for "
    "Power/NVLink multi-GPU systems* (ISC 2018 workshops), measure copies, unified memory and page "
    "faults of an S822LC and an AC922.",
    (
        CopyFigure(
            "Figure 1: the two machines",
            "Two CPUs and four GPUs each, NVLink 1 and 2 between CPU and GPU.",
            "waywiser report NAME.wwp",
            more="Ours: ![Four H200](../results/2026-11-20-h200-catalogue/four-gpus/links.png)",
        ),
        CopyFigure(
            "Figure 2, a to f: explicit transfers",
            "Pinned copies reach the link, pageable ones do not. Between GPUs, no peer access "
            "halves "
            "the bandwidth.",
            "waywiser survey --only 'copy-engine' -o explicit.wwp",
            {
                "pinned to GPU": H2D,
                "GPU to pinned": D2H,
                "pageable to GPU": PAGEABLE_H2D,
                "GPU to pageable": PAGEABLE_D2H,
                "GPU to GPU, peer access": P2P,
                "GPU to GPU, without": NO_PEER,
            },
            (
                Statement(
                    "pinned copies are faster than pageable ones", H2D, "faster", PAGEABLE_H2D
                ),
                PEER_IS_FASTER,
            ),
            f"{NO_POWER} {ONE_NODE}",
            picture="power-explicit.svg",
        ),
        CopyFigure(
            "Figure 2, g to l: unified memory",
            "Prefetch nearly reaches pinned copies. Demand is much slower for large transfers, "
            "and to "
            "the CPU one thread is the limit.",
            "waywiser survey --only 'managed by prefetch' --only 'managed by page-fault' -o "
            "managed.wwp",
            {
                "prefetch to GPU": PREFETCH,
                "prefetch to the host": PREFETCH_BACK,
                "demand to GPU": DEMAND,
                "demand to the host": DEMAND_BACK,
                "prefetch, GPU to GPU": f"{BETWEEN}prefetch",
                "demand, GPU to GPU": f"{BETWEEN}page-fault",
            },
            (
                Statement("prefetch to the GPU matches a pinned copy", PREFETCH, "equal", H2D),
                Statement("demand is slower than prefetch", DEMAND, "slower", PREFETCH),
                Statement(
                    "demand to the host is slower than to the GPU",
                    DEMAND_BACK,
                    "slower",
                    DEMAND,
                    64 * MIB,
                ),
            ),
            f"{NO_POWER} {ONE_NODE}",
            picture="power-managed.svg",
        ),
        CopyFigure(
            "Table 1: latency of a page fault",
            "14.9 and 24.1 µs to the GPU, 13.6 and 27.4 µs to the CPU, 25.5 and 38.0 µs "
            "between local "
            "GPUs (S822LC, AC922).",
            "waywiser survey --only page-fault-latency -o faults.wwp",
            {
                "to the GPU": "page-fault-latency@gpu:0",
                "to the CPU": "page-fault-latency@numa:0",
                "between GPUs": "page-fault-latency[from=gpu:1]@gpu:0",
            },
            (
                Statement(
                    "a fault between GPUs takes longer than one to the GPU",
                    "page-fault-latency[from=gpu:1]@gpu:0",
                    "slower",
                    "page-fault-latency@gpu:0",
                ),
            ),
            f"{NO_POWER} {ONE_NODE}",
        ),
        CopyFigure(
            "Future work: logical paths and physical links, models, runtimes",
            "The paper plans to map logical paths to links by their traffic, to make models, "
            "and to "
            "build runtimes that know the topology.",
            "waywiser show NAME.wwp --all; waywiser predict NAME.wwp; waywiser advise NAME.wwp",
            more="Ours: surveys read the counters of PCIe and NVLink "
            "([0.1 % in 208 comparisons](../results/2026-11-20-h200-catalogue/README.md)), "
            "[models](../results/models/held-out.md) predict other sizes and "
            "[sets](../results/models/sets.md), and `waywiser.transfer` copies by "
            "[policies](../policy.md).",
        ),
    ),
)

PAPERS = {
    "comm-scope-2019.md": COMM_SCOPE,
    "explicit-transfers-2018.md": THESIS,
    "power-nvlink-2018.md": POWER,
}

HEAD = """\
<!-- Made by `python docs/papers/copy_papers.py`; a test checks it. -->

Sizes are binary, GB/s are 10⁹ bytes per second. A statement of the paper agrees if ours is faster
or slower by 10 % or more, or within 10 % where the paper has them equal.
"""


def document(name: str) -> str:
    """A whole page, as Markdown."""
    return "\n".join(_lines(PAPERS[name])).rstrip() + "\n"


def _lines(paper: Paper) -> Iterator[str]:
    yield from (f"# {paper.title}", "", paper.about, "", HEAD)
    for each in paper.figures:
        yield from section(each)


def main() -> int:
    for name, paper in PAPERS.items():
        (HERE / name).write_text(document(name))
        for picture, svg in pictures(paper.figures):
            (HERE / picture).write_text(svg)
    return 0


if __name__ == "__main__":
    sys.exit(main())
