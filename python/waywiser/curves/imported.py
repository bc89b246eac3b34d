"""What is known of results of another tool beside them: which tool, and how they scatter."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from waywiser.curves.curve import Point
from waywiser.machine import Machine
from waywiser.profile import BlockSummary, Origin, standard_error


def imported_from(environment: Mapping[str, Any]) -> tuple[str, ...]:
    """``("nvbandwidth 0.8",)``: the tools that a profile's environment names as its origin, each
    once; none of a survey's."""
    files = environment.get("imported")
    if not isinstance(files, list):
        return ()
    known = (file for file in files if isinstance(file, dict) and file.get("tool"))
    tools = (f"{file['tool']} {file.get('version', '')}".strip() for file in known)
    return tuple(dict.fromkeys(tools)) or ("another tool",)


def origin_of(machine: Machine, environment: Mapping[str, Any]) -> Origin:
    """Where the numbers of a profile of this machine and environment are from."""
    if machine.simulated:
        return "simulated"
    return "imported" if imported_from(environment) else "surveyed"


def as_imported(summaries: Sequence[Point], plan_json: str) -> Iterator[Point]:
    """The summaries of another tool, each block with the relative standard
    deviation that the tool stated, if it did and its repetitions are not there."""
    recorded = _recorded(plan_json)
    for series in summaries:
        origins = recorded.get(series.identity, ())
        blocks = tuple(_with_deviation(block, origins) for block in series.blocks)
        yield msgspec.structs.replace(series, blocks=blocks)


class _Origin(msgspec.Struct):
    deviation: float = 0.0


class _Plan(msgspec.Struct):
    imported: dict[str, list[_Origin]]


def _recorded(plan_json: str) -> dict[str, list[_Origin]]:
    try:
        return msgspec.json.decode(plan_json, type=_Plan).imported
    except (msgspec.MsgspecError, RecursionError):
        return {}  # it says less of where its blocks are from; they are what they are


def _with_deviation(block: BlockSummary, origins: Sequence[_Origin]) -> BlockSummary:
    if block.standard_error or block.has_interval or not 0 <= block.block < len(origins):
        return block
    stated = origins[block.block].deviation
    deviation = stated if 0 < stated < math.inf else 0.0
    error = standard_error(block.median, None, deviation, block.count)
    return msgspec.structs.replace(block, standard_error=error)
