"""The check of GPUDirect Storage: whether cuFile would read straight into GPU memory."""

from __future__ import annotations

from collections.abc import Iterator

from waywiser.curves import Finding
from waywiser.fitness.situation import Situation
from waywiser.machine.direct_storage import CONFIGURATION


def direct_storage(situation: Situation) -> Iterator[Finding]:
    """Whether cuFile, if it is installed, would use GPUDirect Storage or go through the host."""
    library = situation.text("cufile")
    if not library or not situation.machine.gpus:
        return
    configuration = situation.text("cufile_configuration") or CONFIGURATION
    module = situation.text("nvidia_fs")
    peer = situation.text("cufile_use_pci_p2pdma") == "on"
    compatible = situation.text("cufile_allow_compat_mode") != "off"
    mounted = situation.items("direct_storage_filesystems", str)
    seen = (
        f"{library}; nvidia-fs: {module or 'not loaded'}; {configuration}: use_pci_p2pdma "
        f"{'on' if peer else 'off'}, allow_compat_mode {'on' if compatible else 'off'}"
    )
    if not (reasons := list(_obstacles(situation))):
        way = f"nvidia-fs {module}" if module else "PCI P2PDMA"
        what = f"cuFile can use GPUDirect Storage by {way} for {', '.join(mounted)}"
        remedy = "check one file with gdscheck -p and gdsio"
        yield Finding("gpudirect-storage", "info", what, evidence=(seen,), remedy=remedy)
        return
    otherwise = (
        "files are read into host memory and copied (compatibility mode)"
        if compatible
        else "calls of cuFile fail, since allow_compat_mode is off"
    )
    yield Finding(
        "gpudirect-storage",
        "info",
        f"cuFile is installed, but would not use GPUDirect Storage: {' and '.join(reasons)}; "
        f"{otherwise}",
        evidence=(seen,),
        remedy=f"load nvidia-fs, or set use_pci_p2pdma in {configuration} (NVMe, Linux 6.2 or "
        f"later); "
        "use ext4 or xfs on NVMe; check with gdscheck -p",
    )


def _obstacles(situation: Situation) -> Iterator[str]:
    """Why cuFile would not use GPUDirect Storage."""
    if not situation.text("nvidia_fs"):
        if situation.text("cufile_use_pci_p2pdma") != "on":
            yield "nvidia-fs is not loaded, and use_pci_p2pdma is off"
        elif situation.text("nvme_multipath") == "Y":
            yield "use_pci_p2pdma is on, but nvme_core has multipath=Y, which excludes it"
    if not situation.items("direct_storage_filesystems", str):
        yield "no mounted file system supports it"
