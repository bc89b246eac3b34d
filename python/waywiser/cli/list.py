"""``waywiser list``: what can move bytes, between which memories, with which settings and source;
and what this machine does not support."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from waywiser.cli.app import Json
from waywiser.cli.result import print_result
from waywiser.cli.verb import verb

if TYPE_CHECKING:
    from waywiser.report.parts import Section


@verb("List executors, memories, operations and sets of transfers.", name="list")
def list_(everything: bool = False, json: Json = False) -> None:
    """List executors, memories, operations and sets of transfers, with settings and sources.

    --all: Also each path that cannot be measured on this machine.

    waywiser list
        show all executors, memories, operations and sets
    waywiser list --all
        also each path that this machine cannot measure
    """
    from waywiser.curves.name import SETS
    from waywiser.machine.catalogue import list_executors, list_memories, list_operations
    from waywiser.machine.nccl_library import find_nccl
    from waywiser.report.views.registry import registry_parts

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


def _libraries() -> dict[str, str]:
    """Which one this machine has of each library that executors load."""
    from waywiser.machine.nccl_library import REMEDY, find_nccl

    if (nccl := find_nccl()) is None:
        return {"nccl": f"library: not found; {REMEDY}"}
    return {"nccl": f"library: {nccl.path} (found by {nccl.found_by})"}


def _unsupported(everything: bool) -> Iterator[Section]:
    """The number of paths that need a GPU if this machine has none; ``everything``: all paths that
    cannot be measured here."""
    from waywiser.measure import scope
    from waywiser.measure.plan.paths import NO_GPU, find_paths
    from waywiser.report.parts import Section
    from waywiser.report.views.unsupported import (
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
        yield Section("", "", (*unsupported_words(needs_gpu.items(), machine, "--all"),))
