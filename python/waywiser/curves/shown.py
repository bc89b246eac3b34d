"""The curves of a profile as people read them: by family of places, then by path."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import msgspec

from waywiser.curves.bystanders import bystander_of
from waywiser.curves.line import Line, by_curve
from waywiser.curves.sizes import SMALL_BYTES as SMALL_BYTES
from waywiser.machine.traits import DECLARED
from waywiser.words import (
    Operation,
    Path,
    Transfer,
    Workload,
    format_settings,
)
from waywiser.words.sizes_in_text import with_units

BYSTANDERS = "bystanders"
"""Small copies and loads beside large copies (`waywiser.curves.bystanders`), and loads alone."""

FAMILIES = (
    "host to device (H2D)",
    "device to host (D2H)",
    "local copy (D2D)",
    "device to device (P2P)",
    "host to host (H2H), one NUMA node",
    "host to host (H2H), two NUMA nodes",
    "files",
    "between ranks",
    "bidirectional",
    "concurrent",
    BYSTANDERS,
    "operations",
)

_BY_KINDS = {
    ("numa", "gpu"): FAMILIES[0],
    ("gpu", "numa"): FAMILIES[1],
    ("rank", "gpu"): FAMILIES[0],
    ("gpu", "rank"): FAMILIES[1],
    ("rank", "rank"): "between ranks",
}


@dataclass(frozen=True)
class Shown:
    """One curve: its lines, ascending in size, and what its text says."""

    text: str
    lines: tuple[Line, ...]

    @property
    def measured(self) -> list[Line]:
        return [line for line in self.lines if line.estimate is not None]

    @property
    def name(self) -> str:
        """The shortest name of a set of transfers."""
        return self.lines[0].name

    @property
    def like(self) -> str:
        return self.lines[0].like

    @cached_property
    def workload(self) -> Workload:
        """The workload without sizes."""
        if " by " not in self.text:
            return Workload(operation=Operation.parse(self.text))
        return Workload.parse(self.text)

    @property
    def transfer(self) -> Transfer | None:
        """The only transfer; None if several move at once."""
        return self.workload.transfer

    @property
    def base(self) -> Path | None:
        """The path with its memories as they are by default."""
        if self.transfer is None:
            return None
        path = self.transfer.path
        source = msgspec.structs.replace(path.source, variant={})
        return Path(source, msgspec.structs.replace(path.destination, variant={}), path.executor)

    @property
    def is_default(self) -> bool:
        return self.base is not None and self.text == str(self.base)

    @property
    def difference(self) -> str:
        """What is not as by default on the path: ``[api=sync]``, ``to device[from=pool]``."""
        if self.transfer is None or self.is_default:
            return ""
        path = self.transfer.path
        parts = [
            f"{word} {memory.kind}{format_settings(memory.variant)}"
            for word, memory in (("from", path.source), ("to", path.destination))
            if memory.variant
        ]
        parts.append(format_settings(self.transfer.parameters))
        parts += [f"as {layout}"] if (layout := self.transfer.layout) else []
        parts += [f"({self.workload.cache})"] if self.workload.cache != "warm" else []
        return with_units(" ".join(filter(None, parts)))

    @property
    def _has_bystander(self) -> bool:
        transfers = self.workload.transfers
        if any(DECLARED.executor(each.path.executor).bystander for each in transfers):
            return True
        sized = Workload.parse(self.lines[-1].workload) if len(transfers) == 2 else self.workload
        return bystander_of(sized, DECLARED) is not None

    @cached_property
    def family(self) -> str:
        if self.workload.operation is not None:
            return "operations"
        if self._has_bystander:
            return BYSTANDERS
        if self.transfer is None:
            two = len(self.workload.transfers) == 2 and " <-> " in self.name
            return "bidirectional" if two else "concurrent"
        source, destination = self.transfer.path.places
        kinds = (source.kind, destination.kind)
        if "file" in kinds:
            return "files"
        same = source == destination
        family = FAMILIES[2 if same else 3]
        if kinds == ("numa", "numa"):
            family = FAMILIES[4 if same else 5]
        return _BY_KINDS.get(kinds, family)


def curves(lines: Iterable[Line]) -> list[Shown]:
    """All that were measured at any size, by family, and by text within it."""
    found = [Shown(text, tuple(group)) for text, group in by_curve(lines).items()]
    measured = [curve for curve in found if curve.measured]
    return sorted(measured, key=lambda curve: (FAMILIES.index(curve.family), curve.text))


def by_text(shown: Sequence[Shown]) -> dict[str, Shown]:
    return {curve.text: curve for curve in shown}
