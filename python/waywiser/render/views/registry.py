"""What can move bytes, between which memories, with which settings, and the literature source."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from waywiser.curves import SETS
from waywiser.machine import ExecutorKind, MemoryKind, Parameter
from waywiser.machine.catalogue import OperationKind
from waywiser.render.parts import Block, Section, Words
from waywiser.words import grouped, with_units

INDENT = 27
"""Characters of the names."""


def registry_parts(
    executors: Sequence[ExecutorKind],
    memories: Sequence[MemoryKind],
    operations: Sequence[OperationKind],
    libraries: Mapping[str, str] = {},
) -> Iterator[Block | Section]:
    """An entry for each, those of operations by place. ``libraries`` says of those that executors
    load which one this machine has."""
    yield Words("Executors: who moves the bytes", "lead")
    for executor in executors:
        moves = f"moves: {', '.join(executor.layouts)}"
        yield _entry(
            _named(executor.name, executor.description),
            _below(f"source: {executor.source}"),
            *([_below(moves)] if executor.layouts != ("contiguous",) else []),
            *([_below(libraries[executor.loads])] if executor.loads in libraries else []),
            *_settings(executor.parameters),
        )
    yield Words("Memories: kinds, and where they are", "lead")
    for memory in memories:
        needs = "; needs a GPU" if memory.needs_gpu and "gpu" not in memory.places else ""
        yield _entry(
            _named(memory.name, f"{memory.description} (at {_places(memory.places)}{needs})"),
            _below(f"source: {memory.source}"),
            *_settings(memory.parameters),
        )
    yield Words("Operations: what costs time and moves no bytes", "lead")
    for places in dict.fromkeys(operation.places for operation in operations):
        yield _entry(Words(f"at {_places(places)}", indent=2))
        here = [operation for operation in operations if operation.places == places]
        for family in _families(here):
            yield _entry(
                *(_named(each.name, each.description) for each in family),
                _below(f"source: {family[0].source}"),
                *_settings(family[0].parameters),
            )
    yield Words("Sets: transfers that start together, by name", "lead")
    yield _entry(*(_named(name, description) for name, description in SETS.items()))


def _entry(*blocks: Block) -> Section:
    return Section("", "", blocks)


def _named(name: str, description: str) -> Words:
    return Words(description, label=f"  {name}", indent=INDENT)


def _below(text: str) -> Words:
    return Words(text, indent=INDENT)


def _families(operations: Sequence[OperationKind]) -> list[list[OperationKind]]:
    """Those that come from the same source and take the same settings are shown together."""
    alike = grouped(((each.source, repr(each.parameters)), each) for each in operations)
    return list(alike.values())


def _places(kinds: Sequence[str]) -> str:
    return " or ".join("file:NAME" if kind == "file" else f"{kind}:N" for kind in kinds)


def _settings(parameters: Sequence[Parameter]) -> Iterator[Words]:
    for parameter in parameters:
        # A setting in bytes has a unit here as in all texts.
        settings = (with_units(f"{parameter.name}={value}") for value in parameter.choices)
        values = ", ".join(setting.partition("=")[2] for setting in settings)
        yield _below(f"{parameter.name}: {parameter.description} ({values})")
