from __future__ import annotations

from pathlib import Path

from machine.fake_system import system_of
from waywiser.machine.facts import PciFacts
from waywiser.machine.system import read_pci, read_system


def test_nvidias_display_devices_are_found_with_their_links(tmp_path: Path) -> None:
    gpu = "sys/bus/pci/devices/0000:1b:00.0"
    bare = "sys/bus/pci/devices/0000:3d:00.0"
    audio = "sys/bus/pci/devices/0000:1b:00.1"
    other = "sys/bus/pci/devices/0000:05:00.0"
    files = system_of(
        tmp_path,
        {
            f"{gpu}/vendor": "0x10de",
            f"{gpu}/class": "0x030200",
            f"{gpu}/numa_node": "1",
            f"{gpu}/current_link_speed": "2.5 GT/s PCIe",
            f"{gpu}/current_link_width": "16",
            f"{gpu}/max_link_speed": "32.0 GT/s PCIe",
            f"{gpu}/max_link_width": "16",
            f"{bare}/vendor": "0x10de",
            f"{bare}/class": "0x030000",
            f"{bare}/max_link_width": "255",
            f"{audio}/vendor": "0x10de",
            f"{audio}/class": "0x040300",
            f"{other}/vendor": "0x1002",
            f"{other}/class": "0x030000",
        },
    )
    assert read_pci(files) == (
        PciFacts("0000:1b:00.0", 1, 1, 16, 5, 16),
        PciFacts("0000:3d:00.0"),
    )


def test_facts_of_the_system(tmp_path: Path) -> None:
    files = system_of(
        tmp_path,
        {
            "proc/cpuinfo": "processor : 0\nmodel name : Some Processor",
            "proc/self/status": "Mems_allowed_list:\t0-1",
            "proc/meminfo": "MemTotal:       1024 kB\nMemFree:         512 kB",
            "sys/devices/system/node/has_cpu": "0",
        },
    )
    facts = read_system(files)
    assert facts.cpu_model == "Some Processor"
    assert (facts.memory_nodes, facts.cpu_nodes, facts.pci) == ((0, 1), (0,), ())
    assert facts.memory_bytes == 2**20
    assert facts.affinity and facts.hostname
