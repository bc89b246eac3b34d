"""Findings about confidential computing, IOMMU, ACS and GPUDirect Storage."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

import profiles
from kept import RESULTS, unpacked
from machine.captured import machine
from machine.fake_system import system_of
from waywiser.curves.answer import Finding
from waywiser.fitness.diagnosis import diagnose, stored_situation, unchecked
from waywiser.fitness.situation import Situation
from waywiser.machine.machine import Machine
from waywiser.profile import Profile, WritableProfile

A100 = machine("two-socket-4gpu")
H200 = machine("h200-vm-8gpu")
NO_GPU = machine("no-gpu")

CUFILE = {
    "cufile": "/usr/local/cuda/lib64/libcufile.so.0",
    "cufile_allow_compat_mode": "on",
    "cufile_use_pci_p2pdma": "off",
}

IDS = {"confidential-gpu", "confidential-guest", "iommu", "iommu-unknown", "acs", "acs-unknown"}


def found(environment: dict[str, Any], on: Machine = A100) -> dict[str, Finding]:
    """Findings by their id, of a machine whose environment was stored."""
    return {each.id: each for each in diagnose(Situation(on, stored=environment))}


def test_a_machine_without_any_of_it_has_no_finding() -> None:
    quiet = {"gpu_confidential": "off", "iommu_types": ["identity"]}
    assert not found(quiet).keys() & {*IDS, "gpudirect-storage"}
    assert not found({}).keys() & {*IDS, "gpudirect-storage"}


def test_confidential_gpus_are_a_warning_with_what_was_measured() -> None:
    finding = found({"gpu_confidential": "on"})["confidential-gpu"]
    assert finding.severity == "warning" and "bounce buffers" in finding.text
    assert "measured" not in finding.text
    measured = {"H2D": "H2D 9.1 GB/s, 14 % of the theoretical peak"}
    situation = Situation(A100, stored={"gpu_confidential": "on"}, measured=measured)
    (known,) = [each for each in diagnose(situation) if each.id == "confidential-gpu"]
    assert known.text.endswith("; measured: H2D 9.1 GB/s, 14 % of the theoretical peak")


def test_a_confidential_guest_matters_where_there_are_gpus() -> None:
    guest = {"confidential_guest": "TDX"}
    assert found(guest)["confidential-guest"].severity == "warning"
    assert found(guest, NO_GPU)["confidential-guest"].severity == "info"


@pytest.mark.parametrize(
    ("types", "on", "severity"),
    [
        (["DMA-FQ"], A100, "warning"),
        (["DMA", "identity"], A100, "warning"),
        (["DMA"], H200, "info"),
    ],
)
def test_an_iommu_that_translates_is_found(types: list[str], on: Machine, severity: str) -> None:
    finding = found({"iommu_types": types}, on)["iommu"]
    assert finding.severity == severity
    assert ", ".join(types) in finding.evidence[0]
    assert "iommu=pt" in finding.remedy


def test_an_arm_machine_may_need_translation() -> None:
    arm = msgspec.structs.replace(A100, architecture="aarch64")
    assert found({"iommu_types": ["DMA-FQ"]}, arm)["iommu"].severity == "info"


def test_an_iommu_of_unknown_mode_is_reported_once(tmp_path: Path) -> None:
    files = system_of(tmp_path, {"sys/class/iommu/dmar0/x": "", "sys/class/iommu/dmar1/x": ""})
    findings = diagnose(Situation(A100, files))
    (finding,) = [each for each in findings if each.id == "iommu-unknown"]
    assert "2 IOMMUs" in finding.text and finding.severity == "info"
    assert "iommu-unknown" not in found({"iommu": ["dmar0"]})


@pytest.mark.parametrize("line", ["quiet iommu=pt", "intel_iommu=off", "amd_iommu=off iommu=soft"])
def test_the_kernels_command_line_says_that_nothing_is_translated(
    line: str, tmp_path: Path
) -> None:
    files = system_of(tmp_path, {"sys/class/iommu/dmar0/x": "", "proc/cmdline": line})
    assert "iommu-unknown" not in {each.id for each in diagnose(Situation(A100, files))}


def test_bridges_that_redirect_are_named() -> None:
    gpus = tuple(msgspec.structs.replace(gpu, nvlinks=()) for gpu in A100.gpus)
    by_pcie = msgspec.structs.replace(A100, gpus=gpus)
    environment = {"acs_redirects": ["0000:02:00.0"], "acs_unreadable": ["0000:02:01.0"]}
    finding = found(environment, by_pcie)["acs"]
    assert finding.severity == "warning"
    assert "1 bridge " in finding.text and "0000:02:00.0" in finding.evidence[0]
    linked = found({"acs_redirects": ["0000:02:00.0"]}, H200)["acs"]
    assert linked.severity == "info" and "NVLinks" in linked.text
    unknown = found({"acs_unreadable": ["0000:02:00.0", "0000:02:01.0"]})
    assert unknown["acs-unknown"].severity == "info" and "acs" not in unknown


@pytest.mark.parametrize(
    ("environment", "says"),
    [
        ({}, "nvidia-fs is not loaded, and use_pci_p2pdma is off and no mounted"),
        ({"direct_storage_filesystems": ["xfs on NVMe"]}, "compatibility mode"),
        ({"nvidia_fs": "2.25.7"}, "no mounted file system supports it"),
        (
            {
                "cufile_use_pci_p2pdma": "on",
                "nvme_multipath": "Y",
                "direct_storage_filesystems": ["xfs on NVMe"],
            },
            "multipath=Y",
        ),
        ({"cufile_allow_compat_mode": "off"}, "calls of cuFile fail"),
    ],
)
def test_cufile_that_would_go_through_the_host_is_reported(
    environment: dict[str, Any], says: str
) -> None:
    finding = found(CUFILE | environment)["gpudirect-storage"]
    assert says in finding.text and "would not use GPUDirect Storage" in finding.text
    assert finding.severity == "info" and "gdscheck" in finding.remedy


def test_the_configuration_of_cufile_that_counts_is_named() -> None:
    own = found(CUFILE | {"cufile_configuration": "/opt/own.json"})["gpudirect-storage"]
    assert "/opt/own.json: use_pci_p2pdma off" in own.evidence[0]
    assert "use_pci_p2pdma in /opt/own.json" in own.remedy
    assert "in /etc/cufile.json" in found(CUFILE)["gpudirect-storage"].remedy


@pytest.mark.parametrize(
    ("environment", "way"),
    [
        ({"nvidia_fs": "2.25.7"}, "nvidia-fs 2.25.7"),
        ({"cufile_use_pci_p2pdma": "on", "nvme_multipath": "N"}, "PCI P2PDMA"),
    ],
)
def test_cufile_that_would_be_direct_is_reported(environment: dict[str, Any], way: str) -> None:
    known = CUFILE | environment | {"direct_storage_filesystems": ["ext4 on NVMe"]}
    finding = found(known)["gpudirect-storage"]
    assert finding.text == f"cuFile can use GPUDirect Storage by {way} for ext4 on NVMe"
    assert "gpudirect-storage" not in found(known, NO_GPU)


def test_the_live_machine_adds_what_the_driver_says(tmp_path: Path) -> None:
    situation = Situation(
        A100, system_of(tmp_path, {}), "cuda", "13.0", stored={"gpu_confidential": "on"}
    )
    assert "confidential-gpu" in {each.id for each in diagnose(situation)}


def test_a_profile_shows_what_it_measured(tmp_path: Path) -> None:
    file = tmp_path / "a.wwp"
    environment = {"kernel": "6.8", "gpu_confidential": "on", "iommu_types": ["DMA-FQ"]}
    with WritableProfile.create(file, profiles.machine(), environment) as profile:
        for visit in profiles.visits():
            profile.commit_visit(visit)
    with Profile.open(file) as profile:
        situation = stored_situation(profile)
    findings = {each.id: each.text for each in diagnose(situation)}
    assert "; measured: H2D 55.01 GB/s, 87 % " in findings["confidential-gpu"]
    assert "of the theoretical peak; D2H 53.97" in findings["confidential-gpu"]
    assert "; P2P 3" in findings["iommu"]
    assert "confidential" not in " ".join(unchecked(situation))


def test_an_older_profile_says_that_it_was_not_checked(tmp_path: Path) -> None:
    packed = RESULTS / "2026-11-20-h200-catalogue" / "one-gpu" / "check.wwp.xz"
    with Profile.open(unpacked(packed, tmp_path / "a.wwp")) as profile:
        situation = stored_situation(profile)
    assert not situation.measured
    assert "confidential computing, IOMMU mode, ACS and GPUDirect Storage" in unchecked(situation)


@pytest.mark.parametrize("value", ["many", {"a": 1}, [None, 3], float("nan"), True, 0])
def test_values_of_another_form_are_unknown(value: object) -> None:
    keys = (*CUFILE, "confidential_guest", "iommu_types", "acs_redirects", "nvidia_fs")
    assert diagnose(Situation(A100, stored=dict.fromkeys(keys, value)))


def test_the_machine_of_a_profile_needs_no_gpu() -> None:
    bare = msgspec.structs.replace(A100, gpus=())
    assert "iommu" not in found({"iommu_types": ["DMA"]}, bare)
