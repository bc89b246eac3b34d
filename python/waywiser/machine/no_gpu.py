"""Why a machine has no GPU that can be measured: the true reason, and what to do about it."""

from __future__ import annotations

from collections.abc import Sequence

from waywiser.machine.facts import NvmlFacts, SystemFacts
from waywiser.machine.hwloc import HwlocObject
from waywiser.machine.nvml import MISMATCH, NO_LIBRARY, is_mismatch
from waywiser.machine.unusable_gpus import find_unusable
from waywiser.machine.visible_devices import NO_DEVICE_FILES
from waywiser.words import count

_BATCH = "ask the batch system for GPUs, in Slurm with --gpus or --gres=gpu:N"


def why_no_gpu(nvml: NvmlFacts, system: SystemFacts, objects: Sequence[HwlocObject]) -> str:
    """Why NVML shows no GPU; ``objects`` are those of GPUs in hwloc's tree."""
    if system.visible_devices == NO_DEVICE_FILES:
        return _no_device_files()
    unusable = find_unusable(nvml, system, objects)
    states = {gpu.state for gpu in unusable}
    if states == {"not given"}:
        return (
            f"none of {count(len(unusable), 'NVIDIA GPU')} on the PCI bus is given to this process "
            f"({_BATCH}; start a container with --gpus)"
        )
    if lost := [gpu for gpu in unusable if gpu.state == "lost"]:
        verb = "does" if len(lost) == 1 else "do"
        named = ", ".join(map(str, lost))
        return f"{count(len(lost), 'NVIDIA GPU')} {verb} not answer: {named} (see dmesg)"
    shown = len(system.pci) or len(objects)
    seen = f"{count(shown, 'NVIDIA GPU')} on the PCI bus, but " if shown else ""
    if is_mismatch(nvml.reason):
        return seen + MISMATCH
    return seen + (_without_library(system) if nvml.reason == NO_LIBRARY else nvml.reason)


def _without_library(system: SystemFacts) -> str:
    """Why ``libnvidia-ml.so.1`` is missing."""
    if system.platform == "tegra":
        return (
            "this is an NVIDIA Tegra (Jetson), and its system has no libnvidia-ml.so.1, through "
            "which Waywiser finds GPUs (JetPack has it from version 6 on; update it)"
        )
    if system.kernel_driver:
        return (
            f"NVIDIA's kernel module {system.kernel_driver} is loaded, and libnvidia-ml.so.1 is "
            "not found (install the driver's libraries of this version; in a container, set "
            "NVIDIA_DRIVER_CAPABILITIES=compute,utility)"
        )
    return NO_LIBRARY


def _no_device_files() -> str:
    return f"Slurm gave this job no GPU: CUDA_VISIBLE_DEVICES is {NO_DEVICE_FILES} ({_BATCH})"


def why_all_hidden(number: int, setting: str | None) -> str:
    """Why CUDA shows none of the GPUs that NVML shows."""
    if setting is None:
        return "every GPU has MIG on and no instance (make one with nvidia-smi mig)"
    if setting == NO_DEVICE_FILES:
        return _no_device_files()
    every = "the GPU" if number == 1 else f"all {number} GPUs"
    return f"CUDA_VISIBLE_DEVICES={setting!r} hides {every} (unset it)"
