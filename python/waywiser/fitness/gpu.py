"""Checks of the GPUs: drivers, links, clocks, and who else is using them."""

from __future__ import annotations

from collections.abc import Iterator

from waywiser.curves import Finding
from waywiser.fitness.situation import Situation
from waywiser.machine import LOST_REMEDY, Gpu, lost_text
from waywiser.machine.system import read_pci
from waywiser.words import MOST_INDEX, Severity, count, grouped, whole_number

_GRAVE = ("uncorrected", "NVLinks down", "failed recoveries")
"""Parts of the names of counters that are worth a look whenever they are not 0."""

_BY_CHOICE = frozenset({"clocks set by an administrator", "sync boost", "display clocks"})
"""Reasons for lower clocks that are settings; the others are problems."""


def presence(situation: Situation) -> Iterator[Finding]:
    """Whether there are GPUs, and whether the native library can use them."""
    machine = situation.machine
    if not machine.gpus:
        there = read_pci(situation.files) if situation.files else ()
        yield Finding(
            "no-gpu",
            "warning" if there else "info",
            f"no GPU can be measured: {machine.gpu_reason or 'none is known'}",
            evidence=(
                f"{len(there)} NVIDIA display devices in /sys/bus/pci/devices"
                if situation.is_live
                else "the machine in the profile",
            ),
            remedy="see the reason; host paths are measured",
        )
    elif situation.backend == "none":
        yield Finding(
            "no-cuda",
            "error",
            f"{count(len(machine.gpus), 'GPU')} found, but this waywiser was built without CUDA",
            evidence=("the native library's backend is none",),
            remedy="'make WAYWISER_CUDA=ON survey' builds it for GPUs",
        )


def lost(situation: Situation) -> Iterator[Finding]:
    """GPUs that are given to this process and do not answer."""
    if what := lost_text(situation.machine):
        yield Finding(
            "lost-gpu",
            "error",
            what,
            evidence=(
                "NVML, the devices on the PCI bus with their drivers, and /dev/nvidia*"
                if situation.is_live
                else "the machine in the profile",
            ),
            remedy=LOST_REMEDY,
        )


def without_driver(situation: Situation) -> Iterator[Finding]:
    """GPUs that no driver holds, though NVIDIA's is there."""
    found = [gpu.pci for gpu in situation.machine.unusable_gpus if gpu.state == "no driver"]
    if found:
        yield Finding(
            "no-driver",
            "warning",
            f"no driver holds {count(len(found), 'NVIDIA GPU')}: {', '.join(found)}",
            evidence=("/sys/bus/pci/devices/*/driver",),
            remedy="see the kernel's log (dmesg): its probe failed, or the driver does not "
            "support it",
        )


def driver(situation: Situation) -> Iterator[Finding]:
    """A driver older than the CUDA runtime that the library was built with."""
    machine, built = situation.machine, situation.runtime_version
    # Within a major version, an older driver runs a newer runtime (CUDA's minor compatibility).
    versions = (version.partition(".")[0] for version in (machine.cuda_driver, built))
    supported, needed = (whole_number(version, MOST_INDEX) for version in versions)
    if supported is None or needed is None or not machine.gpus:
        return
    if supported < needed:
        yield Finding(
            "driver",
            "error",
            f"the driver {machine.driver} supports CUDA up to {machine.cuda_driver}, and this "
            f"waywiser was built with CUDA {built}",
            evidence=("NVML's SystemGetCudaDriverVersion",),
            remedy="install a newer driver, or a released wheel of Waywiser, which needs R525 or "
            "later",
        )


def machine_code(situation: Situation) -> Iterator[Finding]:
    """GPUs that the library has neither machine code nor PTX for."""
    built = situation.architectures
    foreign = [gpu for gpu in situation.machine.gpus if built and not has_code(built, gpu.compute)]
    if foreign:
        which = ", ".join(f"gpu:{gpu.index} (compute capability {gpu.compute})" for gpu in foreign)
        yield Finding(
            "machine-code",
            "error",
            f"this waywiser has no machine code for {which}",
            evidence=(f"it was built for {built}",),
            remedy="'make WAYWISER_CUDA=ON build' on this machine builds for its GPUs",
        )


def has_code(built: str, compute: str) -> bool:
    """Whether a GPU of a compute capability (``8.6``) runs kernels that were built for these
    architectures: machine code runs from its minor version on within a major version, and the
    driver translates PTX for all later GPUs. One that is not known is taken to run them."""
    major, _, minor = compute.partition(".")
    if not (major.isdecimal() and minor.isdecimal()):
        return True
    here = (int(major), int(minor))
    for architecture in built.split():
        number, _, kind = architecture.partition("-")
        least = divmod(int(number), 10)
        if least <= here and (kind == "virtual" or least[0] == here[0]):
            return True
    return False


def links(situation: Situation) -> Iterator[Finding]:
    """PCIe links narrower or slower than device and slot can be together. Without a reading while
    bytes moved, a lower generation is how an idle GPU saves power and no more than an ``info``."""
    loaded = grouped((state.index, state) for state in situation.link_states)
    for gpu in situation.machine.gpus:
        if gpu.on_module:
            continue  # drivers state a PCIe link that carries no data
        readings = loaded.get(gpu.index, [])
        width = max((s.pcie_width for s in readings), default=gpu.pcie.width_now)
        generation = max((s.pcie_generation for s in readings), default=gpu.pcie.generation_now)
        if 0 < width < gpu.pcie.width_max:
            most = gpu.pcie.width_max
            yield Finding(
                "link-width",
                "warning",
                f"gpu:{gpu.index} has {width} of {most} PCIe lanes",
                evidence=(f"{gpu.name} at {gpu.pci}: x{width} now, x{most} possible",),
                remedy="reseat the card or its riser, and check the bifurcation of the slot in the "
                "firmware",
            )
        if 0 < generation < gpu.pcie.generation_max:
            yield _slow(gpu, generation, under_load=bool(readings))


def _slow(gpu: Gpu, generation: int, *, under_load: bool) -> Finding:
    link, most = f"gpu:{gpu.index}'s PCIe link", gpu.pcie.generation_max
    evidence = f"{gpu.name} at {gpu.pci}: generation {generation} now, {most} possible"
    severity: Severity = "info"
    what = f"{link} is at generation {generation} of {most}; idle GPUs lower it"
    remedy = "a survey reads it again under load"
    if under_load:
        severity = "warning"
        what = f"{link} stays at generation {generation} of {most} under load"
        evidence += ", read while bytes moved"
        remedy = (
            "check the link speed in the firmware, the riser, and PCIe errors in the kernel log"
        )
    return Finding("link-generation", severity, what, evidence=(evidence,), remedy=remedy)


def clocks(situation: Situation) -> Iterator[Finding]:
    """Clocks that something reduces. An idle GPU does not show it: readings while bytes moved come
    before the capture."""
    for gpu in situation.machine.gpus:
        states = [state for state in situation.gpu_states if state.index == gpu.index]
        held = [reason for state in states for reason in state.throttle]
        for reason in dict.fromkeys(held if states else gpu.throttle):
            evidence = (
                f"{gpu.name}: {gpu.clock_sm_mhz} of {gpu.clock_sm_max_mhz} MHz, "
                f"{gpu.temperature_c} °C, {gpu.power_w:.0f} W"
            )
            if states:
                number = sum(reason in state.throttle for state in states)
                evidence = f"{gpu.name}: {number} of {len(states)} readings while bytes moved"
            yield Finding(
                "throttling",
                "info" if reason in _BY_CHOICE else "warning",
                f"gpu:{gpu.index}'s clocks are reduced: {reason}",
                evidence=(evidence,),
                remedy="nvidia-smi -q -d CLOCK,POWER,TEMPERATURE,PERFORMANCE shows more; improve "
                "the "
                "cooling, or raise the limit",
            )


def users(situation: Situation) -> Iterator[Finding]:
    """Other processes on a GPU: their work is timed too, and they have a right to be left alone."""
    for gpu in situation.machine.gpus:
        if gpu.processes:
            yield Finding(
                "gpu-in-use",
                "warning",
                f"gpu:{gpu.index} is used by {count(len(gpu.processes), 'other process')}",
                evidence=("; ".join(gpu.processes),),
                remedy="a survey skips it without --share; wait, or select other GPUs with --gpus",
            )


def modes(situation: Situation) -> Iterator[Finding]:
    """MIG, ECC and persistence mode."""
    for gpu in situation.machine.gpus:
        where = f"{gpu.name} at {gpu.pci}"
        if gpu.mig not in ("", "off"):
            yield Finding(
                "mig",
                "warning",
                f"gpu:{gpu.index} is a MIG instance ({gpu.mig}): its link is shared with the "
                "others, and there is no peer access",
                evidence=(where,),
                remedy="to measure the whole GPU, as root: nvidia-smi -mig 0",
            )
        if gpu.ecc == "off":
            yield Finding(
                "ecc",
                "info",
                f"gpu:{gpu.index} has ECC off: memory may be faster, and errors are not detected",
                evidence=(where,),
                remedy="compare only with GPUs whose ECC is off",
            )
        if gpu.persistence == "off":
            yield Finding(
                "persistence",
                "warning",
                f"gpu:{gpu.index} has persistence mode off: the driver deinitialises it "
                "between processes, so each start is slow and clocks are low",
                evidence=(where,),
                remedy="as root: nvidia-smi -pm 1, or run nvidia-persistenced",
            )


def affinity(situation: Situation) -> Iterator[Finding]:
    """GPUs of a machine with several NUMA nodes whose nearest node is not known."""
    machine = situation.machine
    unknown = [f"gpu:{gpu.index}" for gpu in machine.gpus if gpu.numa < 0 and gpu.links_known]
    if unknown and len(machine.numa) > 1 and not machine.virtual:
        yield Finding(
            "gpu-numa",
            "warning",
            f"the system does not say which NUMA node is nearest to {', '.join(unknown)}",
            evidence=("numa_node is -1 in /sys/bus/pci/devices",),
            remedy="look for a newer firmware; a survey shows by latency which memory is on "
            "whose side",
        )


def counters(situation: Situation) -> Iterator[Finding]:
    """Error counters that were not 0 in the last reading, whenever they rose."""
    for gpu in situation.counters:
        found = [
            f"{name} {value}"
            for name, value in gpu.counters.items()
            if value and any(part in name for part in _GRAVE)
        ]
        if found:
            yield Finding(
                "error-counters",
                "info",
                f"gpu:{gpu.index} has counted errors, perhaps long ago: {', '.join(found)}",
                evidence=("NVML's counters at the end of the survey",),
                remedy="compare with an earlier profile: waywiser check says what is new",
            )


def errors(situation: Situation) -> Iterator[Finding]:
    """Error counters of GPUs and their links that rose during a survey."""
    health = situation.health
    if health is None or not health.is_problem:
        return
    found = [*map(str, health.rises), *health.xids, *health.standing]
    corrected = all(" corrected" in text or "replays" in text for text in found)
    yield Finding(
        "health",
        "warning" if corrected else "error",
        f"error counters of GPUs: {', '.join(found)}",
        evidence=("NVML's counters at the start and at the end of the survey",),
        remedy="look at nvidia-smi -q and the kernel's log, and have what rises again replaced",
    )
