from __future__ import annotations

import json
from pathlib import Path

from machine.fake_nvml import FakeNvml
from machine.fake_system import system_of
from waywiser.machine.environment import environment

CPU = "sys/devices/system/cpu"


def test_what_explains_a_number_is_recorded(tmp_path: Path) -> None:
    files = system_of(
        tmp_path,
        {
            "proc/cpuinfo": "model name : X\nmicrocode : 0x42\nflags : fpu hypervisor",
            "proc/sys/kernel/osrelease": "6.1.0",
            "etc/os-release": 'PRETTY_NAME="Debian GNU/Linux 12"',
            "proc/cmdline": "root=/dev/secret iommu=pt nosmt quiet host=node7 -- --token=abc",
            "proc/loadavg": "1.5 0.5 0.1 1/100 5",
            "proc/meminfo": "MemTotal: 1024 kB\nSwapTotal: 512 kB\nSwapFree: 500 kB",
            "proc/sys/kernel/numa_balancing": "1",
            "sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never",
            f"{CPU}/cpu0/cpufreq/scaling_governor": "powersave",
            f"{CPU}/cpu1/cpufreq/scaling_governor": "performance",
            f"{CPU}/intel_pstate/no_turbo": "1",
            f"{CPU}/smt/active": "1",
            "sys/class/iommu/dmar0/x": "",
        },
    )
    variables = {"CUDA_VISIBLE_DEVICES": "0", "LD_PRELOAD": "x.so", "SECRET": "s", "HOME": "/h"}
    found = environment(files, variables, FakeNvml([]))
    assert found["kernel"] == "6.1.0"
    assert found["distribution"] == "Debian GNU/Linux 12"
    assert found["governor"] == ["performance", "powersave"]
    assert (found["turbo"], found["smt"], found["microcode"]) == ("off", "on", "0x42")
    assert found["boot_parameters"] == {"iommu": "pt", "nosmt": "set"}
    assert found["variables"] == {"CUDA_VISIBLE_DEVICES": "0", "LD_PRELOAD": "x.so"}
    assert found["numa_balancing"] == 1
    assert found["transparent_huge_pages"] == "madvise"
    assert found["swap_used_bytes"] == 12 << 10
    assert (found["driver"], found["cuda_driver"]) == ("580.159.04", "13.0")
    assert found["virtualisation"] == "unknown hypervisor"
    assert found["iommu"] == ["dmar0"]
    assert "secret" not in json.dumps(found) and "node7" not in json.dumps(found)


def test_an_empty_system_leaves_things_out_and_breaks_nothing(tmp_path: Path) -> None:
    found = environment(system_of(tmp_path, {}), {}, FakeNvml([], init_error=12))
    assert "governor" not in found and "turbo" not in found
    assert "no NVIDIA driver" in found["driver_reason"]


def test_this_machines_environment_is_json() -> None:
    found = environment()
    assert json.loads(json.dumps(found)) == found
    assert found["kernel"]
