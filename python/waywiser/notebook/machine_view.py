"""A machine as tables: its NUMA nodes, its GPUs, and what its links could do at best."""

from __future__ import annotations

import html
import os
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeGuard

from waywiser.machine import Gpu, Machine, format_list, machine_line
from waywiser.machine.peaks import peaks
from waywiser.notebook.data_table import DataTable
from waywiser.notebook.profile_view import ProfileView
from waywiser.notebook.verb_result import FileName, VerbResult
from waywiser.profile import Profile, is_profile
from waywiser.words import by_wording, visible

if TYPE_CHECKING:
    from waywiser.render.parts import Block, Section

NUMA_TYPES: dict[str, type] = {
    "numa": int,
    "cpus": int,
    "cpu_list": str,
    "memory_bytes": int,
    "package": int,
}

GPU_TYPES: dict[str, type] = {
    "gpu": int,
    "name": str,
    "numa": int,
    "memory_bytes": int,
    "pcie_generation": int,
    "pcie_width": int,
    "nvlinks": str,
    "peers": str,
    "pci": str,
}
"""``numa`` is the nearest NUMA node. PCIe is what the link can do, not an idle state. ``nvlinks``
are the lanes to each neighbour, ``peers`` the GPUs whose memory this one can access directly."""

PEAK_TYPES: dict[str, type] = {
    "source": str,
    "destination": str,
    "gb_per_s": float,
    "made_of": str,
}
"""``made_of`` says where the bound comes from, or why there is none."""


class MachineView(VerbResult):
    """A machine as a capture shows it, as ``waywiser topology`` does."""

    def __init__(self, machine: Machine, said: Sequence[str] = ()) -> None:
        super().__init__(
            machine,
            lambda: {"schema": 1, "machine": machine, "peaks": list(peaks(machine))},
            lambda: _machine_parts(machine),
            said=said,
        )
        self.machine = machine
        """All that is known of the machine."""

    @cached_property
    def numa(self) -> DataTable:
        """One row per NUMA node."""
        rows = (
            (node.index, len(node.cpus), format_list(node.cpus), node.memory_bytes, node.package)
            for node in self.machine.numa
        )
        return DataTable.of("NUMA nodes", NUMA_TYPES, rows)

    @cached_property
    def gpus(self) -> DataTable:
        """One row per GPU."""
        return DataTable.of("GPUs", GPU_TYPES, map(_gpu_row, self.machine.gpus))

    @cached_property
    def peaks(self) -> DataTable:
        """The theoretical peaks of copies between the host (its first NUMA node) and each GPU,
        between GPUs, and within them; a row per direction."""
        rows = (
            (
                peak.source,
                peak.destination,
                None if peak.bytes_per_second is None else peak.bytes_per_second / 1e9,
                peak.made_of,
            )
            for peak in peaks(self.machine)
        )
        return DataTable.of("peaks", PEAK_TYPES, rows)

    def __repr__(self) -> str:
        return visible("\n".join([*self._lines(), *map(repr, self._tables())]))

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        lines = "".join(f"<p>{html.escape(visible(line))}</p>" for line in self._lines())
        return lines + "".join(table._repr_html_() for table in self._tables())

    def _lines(self) -> Iterator[str]:
        machine = self.machine
        yield machine_line(machine)
        if machine.virtual:
            yield f"virtual: {machine.virtual}"
        yield from (f"note: {line}" for line, _ in by_wording(machine.notes))

    def _tables(self) -> Iterator[DataTable]:
        yield from (table for table in (self.numa, self.gpus, self.peaks) if len(table))


def view_machine(
    source: ProfileView | str | os.PathLike[str] | None = None,
    *,
    capture: FileName | None = None,
    anonymous: bool = False,
) -> MachineView:
    """As `waywiser.topology`. Raises `WaywiserError`."""
    from waywiser.machine import capture_live, load_capture, machine_from
    from waywiser.machine.anonymous import anonymised
    from waywiser.machine.capture import CaptureError, capture_text
    from waywiser.profile import STANDARD_OUTPUT, write_output

    machine = _machine_of_profile(source)
    if machine is not None:
        if capture is not None or anonymous:
            raise CaptureError(
                "a profile has no capture of its machine",
                where=source.path if isinstance(source, ProfileView) else str(source),
                remedy="show it without --capture and --anonymous",
            )
        return MachineView(machine)
    _require_file(source)
    found = capture_live() if source is None else load_capture(Path(str(source)), or_profile=True)
    if anonymous:
        found = anonymised(found)
    notes = []
    if capture is not None:
        write_output(os.fspath(capture), capture_text(found).encode())
        if os.fspath(capture) != STANDARD_OUTPUT:
            names = "" if anonymous else " (it names the host, its GPUs and processes on them)"
            notes.append(f"captured in {os.fspath(capture)}{names}")
    return MachineView(machine_from(found), notes)


def _require_file(source: object) -> None:
    """Raises `CaptureError` for what is named and no file."""
    from waywiser.machine.capture import CaptureError

    if source is not None and not _is_file_name(source):
        raise CaptureError(
            f"{source!r} is not the name of a file",
            remedy="name a profile, a capture or hwloc XML, or pass what waywiser.open returns",
        )
    if source is not None and not os.path.lexists(source):
        raise CaptureError(
            "there is no such file",
            where=os.fspath(source),
            remedy="name a profile, a capture or hwloc XML",
        )


def _machine_of_profile(source: object) -> Machine | None:
    """The machine of a profile; None of anything else."""
    if isinstance(source, ProfileView):
        return source.machine
    if not _is_file_name(source) or not is_profile(Path(source)):
        return None
    with Profile.open(source) as profile:
        return profile.machine


def _is_file_name(source: object) -> TypeGuard[FileName]:
    return (
        isinstance(source, str | os.PathLike)
        and bool(os.fspath(source))
        and "\0" not in str(source)
    )


def _machine_parts(machine: Machine) -> Iterator[Block | Section]:
    from waywiser.render.views.machine import machine_parts

    yield from machine_parts(machine)


def _gpu_row(gpu: Gpu) -> tuple[Any, ...]:
    lanes = ", ".join(f"{link.lanes or 'unknown'} to {link.to}" for link in gpu.nvlinks)
    return (
        gpu.index,
        gpu.name,
        gpu.numa if gpu.numa >= 0 else None,
        gpu.memory_bytes or None,
        gpu.pcie.generation_max or None,
        gpu.pcie.width_max or None,
        lanes or ("none" if gpu.links_known else None),
        format_list(gpu.peers) or ("none" if gpu.links_known else None),
        gpu.pci,
    )
