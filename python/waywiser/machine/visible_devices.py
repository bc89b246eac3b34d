"""Which GPUs a CUDA process will see, and in which order: ``CUDA_VISIBLE_DEVICES`` as CUDA reads
it with ``CUDA_DEVICE_ORDER=PCI_BUS_ID``.

CUDA C++ Programming Guide, "CUDA environment variables", and NVIDIA's MIG user guide: entries are
numbers, UUIDs or unambiguous beginnings of UUIDs; the first entry that names nothing ends the
list; an entry named twice leaves nothing; a process is shown one MIG instance only.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from waywiser.machine.facts import GpuFacts, MigInstance
from waywiser.words import whole_number

NO_DEVICE_FILES = "NoDevFiles"
"""What Slurm sets ``CUDA_VISIBLE_DEVICES`` to in a job that was given no GPU."""


class Visible(NamedTuple):
    """A GPU, or one instance of a GPU that is cut up."""

    gpu: GpuFacts
    instance: MigInstance | None = None

    @property
    def uuid(self) -> str:
        return self.instance.uuid if self.instance else self.gpu.uuid


class Visibility(NamedTuple):
    devices: tuple[Visible, ...]
    notes: tuple[str, ...] = ()


def visible_devices(gpus: Sequence[GpuFacts], setting: str | None) -> Visibility:
    """The devices of ``gpus`` (in PCI order) that the setting leaves visible, in CUDA's order."""
    if setting is None:
        chosen = [found for gpu in gpus if (found := _whole(gpu)) is not None]
        notes = [
            f"{gpu.name} {gpu.pci} has MIG on and no instance, so CUDA does not show it"
            for gpu in gpus
            if gpu.mig == "on" and not gpu.mig_instances
        ]
    else:
        chosen, notes = _chosen(gpus, setting)
    if chosen and chosen[0].instance is not None and len(chosen) > 1:
        notes.append("CUDA shows a process one MIG instance: the first one counts")
        chosen = chosen[:1]
    if any(device.instance is not None for device in chosen[1:]):
        notes.append("MIG instances are skipped if there is a whole GPU: CUDA does not show both")
        chosen = [device for device in chosen if device.instance is None]
    return Visibility(tuple(chosen), tuple(notes))


def _chosen(gpus: Sequence[GpuFacts], setting: str) -> tuple[list[Visible], list[str]]:
    chosen: list[Visible] = []
    if setting == NO_DEVICE_FILES:
        return [], []
    for entry in (part.strip() for part in setting.split(",")):
        found = _named(gpus, entry)
        if found is None:
            note = f"CUDA_VISIBLE_DEVICES: {entry!r} names no GPU here, so the list ends before it"
            return chosen, [note] if entry else []
        if found in chosen:
            return [], [f"CUDA_VISIBLE_DEVICES names {entry} twice, so CUDA shows no GPU"]
        chosen.append(found)
    return chosen, []


def _named(gpus: Sequence[GpuFacts], entry: str) -> Visible | None:
    if entry.isascii() and entry.isdigit():
        index = whole_number(entry, len(gpus) - 1)
        return None if index is None else _whole(gpus[index])
    if not entry.upper().startswith(("GPU-", "MIG-")):
        return None
    lowered = entry.lower()
    found = [_whole(gpu) for gpu in gpus if gpu.uuid.lower().startswith(lowered)]
    found += [
        Visible(gpu, instance)
        for gpu in gpus
        for instance in gpu.mig_instances
        if instance.uuid.lower().startswith(lowered)
    ]
    return found[0] if len(found) == 1 else None


def _whole(gpu: GpuFacts) -> Visible | None:
    """The GPU itself, its first instance where MIG is on, or nothing if it has none."""
    if gpu.mig != "on":
        return Visible(gpu)
    return Visible(gpu, gpu.mig_instances[0]) if gpu.mig_instances else None
