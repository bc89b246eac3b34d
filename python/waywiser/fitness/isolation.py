"""Checks of what keeps devices from memory, and costs bandwidth: confidential computing, IOMMU,
ACS."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from waywiser.curves import Finding
from waywiser.fitness.situation import Situation
from waywiser.machine import Machine, SystemFiles
from waywiser.machine.environment import boot_parameters
from waywiser.words import count

PASSTHROUGH = "identity"
"""The type of an IOMMU group whose addresses are not translated."""


def may_cost(environment: Mapping[str, Any]) -> bool:
    """Whether a check of this module may find something that costs bandwidth."""
    keys = ("confidential_guest", "iommu_types", "acs_redirects")
    return environment.get("gpu_confidential") == "on" or any(map(environment.get, keys))


def confidential_gpu(situation: Situation) -> Iterator[Finding]:
    """Confidential computing of GPUs, which encrypts what they exchange with the host."""
    if situation.text("gpu_confidential") != "on":
        return
    yield Finding(
        "confidential-gpu",
        "warning",
        "confidential computing of the GPUs is on: copies between host and GPU are encrypted and "
        "go through bounce buffers, so H2D and D2H stay below the link"
        + _measured(situation, "H2D", "D2H"),
        evidence=("NVML's SystemGetConfComputeState: ccFeature is on",),
        remedy="if it is not needed, turn it off with NVIDIA's gpu-admin-tools "
        "(--set-cc-mode=off), and "
        "survey again",
    )


def confidential_guest(situation: Situation) -> Iterator[Finding]:
    """A confidential virtual machine, whose memory devices cannot reach."""
    kind = situation.text("confidential_guest")
    if kind:
        yield Finding(
            "confidential-guest",
            "warning" if situation.machine.gpus else "info",
            f"a confidential virtual machine ({kind}): devices do not reach its private memory, so "
            "that their transfers go through bounce buffers" + _measured(situation, "H2D", "D2H"),
            evidence=("the guest's device in /sys/class/misc, or the flags in /proc/cpuinfo",),
            remedy="measure a virtual machine without it to see what it costs",
        )


def iommu(situation: Situation) -> Iterator[Finding]:
    """Whether the IOMMU translates the addresses that GPUs use."""
    if not situation.machine.gpus:
        return
    types = situation.items("iommu_types", str)
    translated = [kind for kind in types if kind != PASSTHROUGH]
    units = situation.items("iommu", str)
    if translated:
        yield Finding(
            "iommu",
            "warning" if _is_bare_x86(situation.machine) else "info",
            f"the IOMMU translates the addresses of GPUs ({', '.join(translated)}): host copies "
            "wait for translations, and P2P over PCIe goes through the host or fails"
            + _measured(situation, "H2D", "P2P"),
            evidence=(f"/sys/bus/pci/devices/*/iommu_group/type: {', '.join(types)}",),
            remedy="kernel parameter iommu=pt (passthrough), or iommu=off if no virtual machine "
            "needs it, "
            "and reboot",
        )
    elif units and not types and situation.files and not _is_passed_through(situation.files):
        yield Finding(
            "iommu-unknown",
            "info",
            f"the system has {count(len(units), 'IOMMU')}, and does not say whether they translate "
            "the addresses of GPUs",
            evidence=(
                "no /sys/bus/pci/devices/*/iommu_group/type, and no iommu=pt in /proc/cmdline",
            ),
            remedy='look for "Default domain type" in the kernel\'s log: Translated costs '
            "bandwidth",
        )


def _is_bare_x86(machine: Machine) -> bool:
    """Whether passthrough can be chosen: Arm machines with GPUs may need translation, and a virtual
    machine does not choose for its host."""
    return machine.architecture == "x86_64" and not machine.virtual


def _is_passed_through(files: SystemFiles) -> bool:
    """Whether the kernel's command line turns translation off."""
    parameters = boot_parameters(files)
    units = (parameters.get("intel_iommu"), parameters.get("amd_iommu"))
    return parameters.get("iommu") in ("pt", "off") or "off" in units


def acs(situation: Situation) -> Iterator[Finding]:
    """Bridges of a PCIe switch that send P2P transfers to the root complex."""
    redirects = situation.items("acs_redirects", str)
    unreadable = situation.items("acs_unreadable", str)
    if redirects:
        linked = all(gpu.nvlinks for gpu in situation.machine.gpus)
        beside = "; GPUs with NVLinks use those instead" if linked else ""
        yield Finding(
            "acs",
            "info" if linked else "warning",
            f"ACS of {count(len(redirects), 'bridge')} between GPUs of one PCIe switch redirects "
            f"P2P to the root complex: it takes the links to the host and back{beside}"
            + _measured(situation, "P2P"),
            evidence=(f"ACS control (request or completion redirect) of {', '.join(redirects)}",),
            remedy="turn it off in the firmware, or as root: setpci -s ADDRESS ECAP_ACS+6.w=0000 "
            "(not for machines that pass devices to virtual machines)",
        )
    elif unreadable:
        yield Finding(
            "acs-unknown",
            "info",
            f"GPUs share a PCIe switch, and whether ACS of its {count(len(unreadable), 'bridge')} "
            "redirects P2P is not known",
            evidence=("only root reads the configuration space of bridges",),
            remedy="run waywiser doctor once as root, or lspci -vvv as root and look for ACSCtl",
        )


def _measured(situation: Situation, *groups: str) -> str:
    """What the profile measured of these paths; empty without it."""
    known = [situation.measured[group] for group in groups if group in situation.measured]
    return f"; measured: {'; '.join(known)}" if known else ""
