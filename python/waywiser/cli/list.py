"""``waywiser list``: what can move bytes, between what, with which settings, after whom; and what
this machine does not support."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from waywiser.cli.streams import print_json
from waywiser.cli.unsupported import all_unsupported_lines, reasons_of, unsupported_lines
from waywiser.curves.name import SETS
from waywiser.machine.catalogue import (
    ExecutorKind,
    MemoryKind,
    OperationKind,
    Parameter,
    list_executors,
    list_memories,
    list_operations,
)
from waywiser.measure import scope
from waywiser.measure.plan.paths import NO_GPU, find_paths
from waywiser.words.sizes_in_text import with_units

WIDTH = 96
"""Columns of the text: what fits into most terminals and messages."""

INDENT = 27
"""Columns of the names."""


def run_list(*, json: bool, everything: bool = False) -> None:
    """Prints the registry, and the number of paths that need a GPU if this machine has none;
    ``everything`` lists all paths that cannot be measured here. Needs no GPU and no driver."""
    executors, memories, operations = list_executors(), list_memories(), list_operations()
    if json:
        listed = {"schema": 1, "executors": executors, "memories": memories}
        listed |= {"operations": operations, "sets": SETS}
        print_json(listed)
    else:
        print("\n".join(_text(executors, memories, operations)))
        for line in _unsupported(everything):
            print(line)


def _unsupported(everything: bool) -> Iterator[str]:
    machine = scope.live_machine()
    if machine.gpus and not everything:
        return
    groups = reasons_of(find_paths(machine).unsupported_paths)
    if everything:
        yield from ("", "Not measured on this machine", *all_unsupported_lines(groups.items()))
    else:
        reason = machine.gpu_reason or NO_GPU
        needs_gpu = {reason: groups.get(reason, [])}
        yield ""
        for line in unsupported_lines(needs_gpu.items(), machine, "--all"):
            yield from _wrapped(line, first="", rest=2)


def _text(
    executors: Sequence[ExecutorKind],
    memories: Sequence[MemoryKind],
    operations: Sequence[OperationKind],
) -> Iterator[str]:
    yield "Executors: who moves the bytes"
    for executor in executors:
        yield from _entry(executor.name, executor.description, executor.source)
        if executor.layouts != ("contiguous",):
            yield from _wrapped(
                ", ".join(executor.layouts), first=f"{'':{INDENT}}moves: ", rest=INDENT + 7
            )
        yield from _settings(executor.parameters)
    yield ""
    yield "Memories: kinds, and where they are"
    for memory in memories:
        needs = "; needs a GPU" if memory.needs_gpu and "gpu" not in memory.places else ""
        description = f"{memory.description} (at {_places(memory.places)}{needs})"
        yield from _entry(memory.name, description, memory.source)
        yield from _settings(memory.parameters)
    yield ""
    yield "Operations: what costs time and moves no bytes"
    for places in dict.fromkeys(operation.places for operation in operations):
        yield ""
        yield f"  at {_places(places)}"
        here = [operation for operation in operations if operation.places == places]
        for family in _families(here):
            yield from _family(family)
    yield ""
    yield "Sets: transfers that start together, by name"
    yield ""
    for name, description in SETS.items():
        yield from _wrapped(description, first=f"  {name:<24} ", rest=INDENT)


def _families(operations: Sequence[OperationKind]) -> list[list[OperationKind]]:
    """Those that come from the same source and take the same settings are shown together."""
    found: dict[tuple[str, str], list[OperationKind]] = {}
    for operation in operations:
        key = (operation.source, repr(operation.parameters))
        found.setdefault(key, []).append(operation)
    return list(found.values())


def _family(family: Sequence[OperationKind]) -> Iterator[str]:
    yield ""
    for operation in family:
        yield from _wrapped(operation.description, first=f"  {operation.name:<24} ", rest=INDENT)
    yield from _source(family[0].source)
    yield from _settings(family[0].parameters)


def _places(kinds: Sequence[str]) -> str:
    return " or ".join("file:NAME" if kind == "file" else f"{kind}:N" for kind in kinds)


def _entry(name: str, description: str, source: str) -> Iterator[str]:
    yield ""
    yield from _wrapped(description, first=f"  {name:<24} ", rest=INDENT)
    yield from _source(source)


def _source(source: str) -> Iterator[str]:
    yield from _wrapped(source, first=f"{'':{INDENT}}source: ", rest=INDENT + 8)


def _settings(parameters: Sequence[Parameter]) -> Iterator[str]:
    for parameter in parameters:
        # A setting in bytes has a unit here as in all texts.
        settings = (with_units(f"{parameter.name}={value}") for value in parameter.choices)
        values = ", ".join(setting.partition("=")[2] for setting in settings)
        yield from _wrapped(
            f"{parameter.description} ({values})",
            first=f"{'':{INDENT}}{parameter.name}: ",
            rest=INDENT + 4,
        )


def _wrapped(text: str, *, first: str, rest: int) -> list[str]:
    return textwrap.wrap(text, WIDTH, initial_indent=first, subsequent_indent=" " * rest)
