from __future__ import annotations

from pathlib import Path

import pytest

from machine.fake_system import system_of
from waywiser.machine.direct_storage import direct_storage

LIBRARY = {"usr/local/cuda-13.0/lib64/libcufile.so.0": ""}

STATS = (
    "GDS Version: 1.15.0.42\nNVFS statistics(ver: 4.0)\nNVFS Driver(version: 2.25.7)\nReads : n=9"
)

MOUNTS = "\n".join(
    f"{n} 1 259:{n} / {point} rw - {kind} {source} {options}"
    for n, (point, kind, source, options) in enumerate(
        [
            ("/", "ext4", "/dev/nvme0n1p2", "rw,errors=remount-ro"),
            ("/fast", "xfs", "/dev/nvme1n1", "rw"),
            ("/safe", "ext4", "/dev/nvme2n1", "rw,data=journal"),
            ("/disk", "ext4", "/dev/sda1", "rw"),
            ("/far", "nfs4", "node:/x", "rw,proto=rdma,port=20049"),
            ("/slow", "nfs4", "node:/y", "rw,proto=tcp"),
            ("/big", "lustre", "10.0.0.1@o2ib:/big", "rw"),
        ]
    )
)


def test_nothing_is_recorded_without_cufile(tmp_path: Path) -> None:
    assert direct_storage(system_of(tmp_path, {"proc/driver/nvidia-fs/stats": STATS})) == {}


def test_the_module_and_its_version_are_recorded(tmp_path: Path) -> None:
    found = direct_storage(
        system_of(tmp_path, {**LIBRARY, "proc/driver/nvidia-fs/stats": STATS})
    )  # fmt: skip
    assert found["cufile"] == "/usr/local/cuda-13.0/lib64/libcufile.so.0"
    assert found["nvidia_fs"] == "2.25.7"
    assert (found["cufile_allow_compat_mode"], found["cufile_use_pci_p2pdma"]) == ("on", "off")


def test_a_module_without_statistics_is_loaded(tmp_path: Path) -> None:
    loaded = system_of(tmp_path, {**LIBRARY, "sys/module/nvidia_fs/refcnt": "0"})
    assert direct_storage(loaded)["nvidia_fs"] == "loaded"


@pytest.mark.parametrize(
    ("text", "compatible", "peer"),
    [
        ('{"properties": {"allow_compat_mode": false, "use_pci_p2pdma": true}}', "off", "on"),
        ('// "allow_compat_mode": false\n  "allow_compat_mode" : true, // x', "on", "off"),
        ("not JSON at all", "on", "off"),
    ],
)
def test_settings_of_cufile_are_read_around_its_comments(
    text: str, compatible: str, peer: str, tmp_path: Path
) -> None:
    found = direct_storage(system_of(tmp_path, {**LIBRARY, "etc/cufile.json": text}))
    assert found["cufile_allow_compat_mode"] == compatible
    assert found["cufile_use_pci_p2pdma"] == peer


def test_the_variable_of_cufile_names_another_file(tmp_path: Path) -> None:
    files = system_of(
        tmp_path,
        {
            **LIBRARY,
            "etc/cufile.json": '{"properties": {"use_pci_p2pdma": false}}',
            "opt/own.json": '{"properties": {"use_pci_p2pdma": true}}',
        },
    )
    usual = direct_storage(files, {})
    assert usual["cufile_configuration"] == "/etc/cufile.json"
    assert usual["cufile_use_pci_p2pdma"] == "off"
    own = direct_storage(files, {"CUFILE_ENV_PATH_JSON": "/opt/own.json"})
    assert own["cufile_configuration"] == "/opt/own.json"
    assert own["cufile_use_pci_p2pdma"] == "on"
    empty = direct_storage(files, {"CUFILE_ENV_PATH_JSON": ""})
    assert empty["cufile_configuration"] == "/etc/cufile.json"


def test_file_systems_count_by_kind_disk_and_options(tmp_path: Path) -> None:
    found = direct_storage(system_of(tmp_path, {**LIBRARY, "proc/self/mountinfo": MOUNTS}))
    assert found["direct_storage_filesystems"] == ["ext4 on NVMe", "lustre", "nfs4", "xfs on NVMe"]


def test_a_damaged_list_of_mounts_is_empty(tmp_path: Path) -> None:
    found = direct_storage(system_of(tmp_path, {**LIBRARY, "proc/self/mountinfo": "x - \n - ext4"}))
    assert found["direct_storage_filesystems"] == []
