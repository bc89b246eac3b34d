"""The commands that measure again what is suspected."""

from __future__ import annotations

import shlex

import msgspec

from waywiser.curves.subject import Subject
from waywiser.machine.machine import Machine, PlacedRank
from waywiser.notebook.remeasure import MOST_WORKLOADS, _measure

MPICC = "/opt/my mpi/bin/mpicc"
RANKS = (PlacedRank(0, (0,), 0), PlacedRank(1, (1,), 0))


def test_of_many_workloads_the_worst_are_named_without_sizes_and_with_the_mpi_library() -> None:
    paths = [f"device@gpu:0 -> pinned@numa:0 by cpu[chunk={2**n}]" for n in range(10, 30)]
    request = {
        "preset": "quick",
        "sizes": "8",
        "workloads": [f"{path} of {size}" for path in paths for size in (8, 64)],
    }
    machine = Machine("n", "x86_64", "CPU", (), (), (), (), ranks=RANKS)
    node = Subject(
        "n",
        machine,
        (),
        "n.wwp",
        "2026-11-20",
        msgspec.json.encode(request).decode(),
        environment={"messages": {"mpicc": MPICC}},
    )
    words = shlex.split(_measure(node, paths, "again.wwp"))
    assert words[:2] == ["waywiser", "survey"]
    assert words[words.index("--mpicc") + 1] == MPICC
    named = [word for n, word in enumerate(words) if words[n - 1] == "--workload"]
    assert len(named) == MOST_WORKLOADS
    assert named[0] == "device@gpu:0 -> pinned@numa:0 by cpu[chunk=1KiB]"
    assert "--sizes" not in words and "--only" not in words
