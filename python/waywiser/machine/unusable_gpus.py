"""Which GPUs of a machine cannot be used, and why: lost ones, and those of other programs.

A container or a batch job often sees all GPUs on the PCI bus and may use some of them. A GPU is
lost only if it is given to this process: NVML counts it and names an error other than a lack of
permission, or NVIDIA's driver holds it and its device node can be opened.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from waywiser.machine.facts import NvmlFacts, PciFacts, SilentGpu, SystemFacts
from waywiser.machine.hwloc import HwlocObject
from waywiser.machine.machine import Machine, UnusableGpu, UnusableState
from waywiser.machine.nvml import is_mismatch
from waywiser.machine.silent_gpus import EXCLUDED, NO_PERMISSION
from waywiser.machine.system_files import format_list
from waywiser.words import count

NVIDIA_DRIVER = "nvidia"

_NO_ANSWER = "no answer"

_ANSWERED = frozenset({"NVML", "CUDA"})
"""Kinds of devices that hwloc adds to the tree for a GPU that answered NVML or CUDA."""


def find_unusable(
    nvml: NvmlFacts, system: SystemFacts, objects: Sequence[HwlocObject]
) -> tuple[UnusableGpu, ...]:
    """The GPUs without an answer, by address; ``objects`` are those of GPUs in hwloc's tree. None
    without a driver that answers: then its reason is that of all GPUs."""
    if not nvml.gpus and (not nvml.driver or is_mismatch(nvml.reason)):
        return ()
    seen = {item.attributes.get("pci_busid", ""): _answered_hwloc(item) for item in objects}
    known = {pci: PciFacts(pci) for pci in seen} | {facts.address: facts for facts in system.pci}
    silent = {gpu.pci: gpu for gpu in nvml.silent if gpu.pci}
    rest = sorted({*known, *silent} - {gpu.pci for gpu in nvml.gpus})
    unplaced = [gpu for gpu in nvml.silent if not gpu.pci]
    if len(unplaced) == len(free := [pci for pci in rest if pci not in silent]):
        silent |= dict(zip(free, unplaced, strict=True))
        unplaced = []
    found = (
        _of_address(known.get(pci, PciFacts(pci)), silent.get(pci, SilentGpu(-1, pci)), seen)
        for pci in rest
    )
    return (*found, *map(_without_address, unplaced))


def _answered_hwloc(item: HwlocObject) -> bool:
    return any(part.attributes.get("subtype") in _ANSWERED for part in item.walk())


def _without_address(gpu: SilentGpu) -> UnusableGpu:
    state: UnusableState = "not given" if gpu.error == NO_PERMISSION else "lost"
    return UnusableGpu("", state, f"number {gpu.index} of the driver: {gpu.reason}")


def _of_address(facts: PciFacts, gpu: SilentGpu, seen: dict[str, bool]) -> UnusableGpu:
    if facts.driver not in (None, NVIDIA_DRIVER):
        state: UnusableState = "other driver" if facts.driver else "no driver"
        return UnusableGpu(facts.address, state, facts.driver or "")
    if gpu.error == NO_PERMISSION or facts.access in ("denied", "absent", "hidden"):
        return UnusableGpu(facts.address, "not given")
    if gpu.error == EXCLUDED:
        return UnusableGpu(facts.address, "not given", gpu.reason)
    if gpu.index >= 0 or facts.access == "open" or seen.get(facts.address):
        return UnusableGpu(facts.address, "lost", gpu.reason or _NO_ANSWER)
    return UnusableGpu(facts.address, "unknown", gpu.reason)


def lost_text(machine: Machine) -> str:
    """``1 NVIDIA GPU does not answer: 0000:02:00.0 (GPU is lost); the others are gpu:0-1``; empty
    if each GPU that is given to this process answers."""
    lost = machine.lost_gpus
    if not lost:
        return ""
    verb = "does" if len(lost) == 1 else "do"
    others = format_list(tuple(gpu.index for gpu in machine.gpus))
    left = f"the others are gpu:{others}" if others else "no other can be used"
    named = ", ".join(map(str, lost))
    return f"{count(len(lost), 'NVIDIA GPU')} {verb} not answer: {named}; {left}"


LOST_REMEDY = (
    "see the Xid messages in the kernel's log (dmesg), and reset the GPU (nvidia-smi -r) or "
    "restart the machine"
)


def unusable_notes(found: Sequence[UnusableGpu]) -> Iterator[str]:
    """One line for each state but ``lost``, which is an error and no note."""
    texts = {
        "not given": "not given to this process",
        "other driver": "held by another driver than NVIDIA's",
        "no driver": "held by no driver: its probe failed, or the driver does not support it "
        "(see dmesg)",
        "unknown": "silent: it does not answer, or is not given to this process, which was not "
        "recorded",
    }
    for state, text in texts.items():
        gpus = [gpu for gpu in found if gpu.state == state]
        if gpus:
            verb = "is" if len(gpus) == 1 else "are"
            yield f"{count(len(gpus), 'NVIDIA GPU')} {verb} {text}: {', '.join(map(str, gpus))}"
