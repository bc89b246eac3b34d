"""The check of NCCL: whether collectives of GPUs can be measured."""

from __future__ import annotations

from collections.abc import Iterator

from waywiser.curves import Finding
from waywiser.fitness.situation import Situation
from waywiser.machine.nccl_library import REMEDY


def nccl(situation: Situation) -> Iterator[Finding]:
    """The NCCL of this machine, and whether it loads; nothing if it has no two GPUs."""
    if situation.nccl is None or len(situation.machine.gpus) < 2:
        return
    found = situation.nccl
    if found.library is None:
        what = "NCCL is not found: collectives among GPUs are not measured"
        looked = "WAYWISER_NCCL, the system, the Python environment and PyTorch have none"
        yield Finding("nccl", "info", what, evidence=(looked,), remedy=REMEDY)
        return
    evidence = f"{found.library.path} (found by {found.library.found_by})"
    if found.version:
        what = f"NCCL {found.version} measures collectives among GPUs in a full survey"
        yield Finding("nccl", "info", what, evidence=(evidence,), remedy="")
    else:
        what = f"NCCL cannot be used: {found.reason}"
        yield Finding("nccl", "warning", what, evidence=(evidence,), remedy=REMEDY)
