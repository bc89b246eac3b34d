"""``waywiser survey --list``: what can move bytes, between which memories, with which settings and
source; and what this machine does not support."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from waywiser.cli.app import print_result

if TYPE_CHECKING:
    from waywiser.render.parts import Section


def show_list(*, everything: bool, json: bool) -> None:
    """Shows executors, memories, operations and sets of transfers, with settings and sources."""
    from waywiser.curves import SETS
    from waywiser.machine import find_nccl
    from waywiser.machine.catalogue import list_executors, list_memories, list_operations
    from waywiser.render.views.registry import registry_parts

    executors, memories, operations = list_executors(), list_memories(), list_operations()
    document = {
        "schema": 1,
        "executors": executors,
        "memories": memories,
        "operations": operations,
        "sets": SETS,
        "libraries": {"nccl": find_nccl()},
    }
    parts = (
        part
        for parts in (
            registry_parts(executors, memories, operations, _libraries()),
            _unsupported(everything),
        )
        for part in parts
    )
    print_result(document, parts, json=json)


def show_normal(tables: Sequence[str], *, everything: bool, json: bool) -> None:
    """Shows the bandwidths that other people's machines reach, with those of more tables (CSV)."""
    from waywiser.curves import read_table, shipped_values
    from waywiser.curves.normal import range_document
    from waywiser.curves.normal_table import ranges
    from waywiser.render.views.normal import range_parts

    known = [*shipped_values()]
    for name in tables:
        known += read_table(name)
    document = {"schema": 1, "ranges": [range_document(each) for each in ranges(known)]}
    print_result(document, range_parts(known, everything=everything), json=json)


def _libraries() -> dict[str, str]:
    """Which one this machine has of each library that executors load."""
    from waywiser.machine import find_nccl
    from waywiser.machine.nccl_library import REMEDY

    if (nccl := find_nccl()) is None:
        return {"nccl": f"library: not found; {REMEDY}"}
    return {"nccl": f"library: {nccl.path} (found by {nccl.found_by})"}


def _unsupported(everything: bool) -> Iterator[Section]:
    """The number of paths that need a GPU if this machine has none; ``everything``: all paths that
    cannot be measured here."""
    from waywiser.measure import scope
    from waywiser.measure.plan.paths import NO_GPU, find_paths
    from waywiser.render.parts import Section
    from waywiser.render.views.unsupported import (
        all_unsupported_words,
        reasons_of,
        unsupported_words,
    )

    machine = scope.live_machine()
    if machine.gpus and not everything:
        return
    groups = reasons_of(find_paths(machine).unsupported_paths)
    if everything:
        blocks = (*all_unsupported_words(groups.items()),)
        yield Section("", "Not measured on this machine", blocks)
    else:
        reason = machine.gpu_reason or NO_GPU
        needs_gpu = {reason: groups.get(reason, [])}
        yield Section("", "", (*unsupported_words(needs_gpu.items(), machine, "--list --all"),))
