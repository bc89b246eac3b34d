"""How much other programs use the CPUs, from made-up files, and once from a real load."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest

from machine.fake_system import system_of
from scripted_cpus import LIMIT, ScriptedCpus, process
from waywiser.machine import cpu_load
from waywiser.machine.cpu_load import CpuLoad, CpuLoadWatch, load_of
from waywiser.machine.system_files import SystemFiles


@pytest.fixture(autouse=True)
def real_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu_load, "BUSY_FRACTION", LIMIT)


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def scripted(others: float, own: float) -> CpuLoad:
    clock = Clock()
    watch = CpuLoadWatch(ScriptedCpus(others, own, clock), clock)
    clock.now += 20
    return watch.read()


@pytest.mark.parametrize(
    ("others", "own", "loaded"),
    [
        (0.0, 0.0, False),
        (0.0, 2.0, False),  # two surveys in succession, or one that copies by all CPUs
        (0.1, 1.0, False),
        (0.5, 1.4, True),
        (1.9, 0.1, True),
    ],
)
def test_the_load_is_the_cpu_time_of_others_alone(others: float, own: float, loaded: bool) -> None:
    found = scripted(others, own)
    assert found.others == pytest.approx(others, abs=0.01)
    assert (found.cpus, found.seconds, found.is_loaded) == (2, 20, loaded)
    assert "/proc/stat" in found.source and "survey's own" in found.source
    assert f"used {others:.1f} of 2 CPUs" in found.text


def test_the_time_of_ended_and_of_nested_processes_is_the_own_one(tmp_path: Path) -> None:
    def at(seconds: int, busy: int, *processes: str) -> None:
        lines = f"cpu0 {busy} 0 0 {seconds * 200 - busy} 0 0 0 0"
        files = {"proc/stat": lines, "proc/10/status": "Cpus_allowed_list: 0"}
        for line in processes:
            files[f"proc/{line.split()[0]}/stat"] = line
        system_of(tmp_path, files)

    clock = Clock()
    at(1, 0, process(10, 1, 50), process(11, 10, 20), process(12, 11, 5), process(13, 1, 7000))
    watch = CpuLoadWatch(SystemFiles(tmp_path), clock, process=10)
    # 12 has ended, and 11 waited for it: 60 ticks. 13 is nobody's of these.
    (tmp_path / "proc/12/stat").unlink()
    at(11, 900, process(10, 1, 150), process(11, 10, 220, waited=65), process(13, 1, 7900))
    clock.now += 10
    found = watch.read()
    ticks = os.sysconf("SC_CLK_TCK")
    assert found.others == pytest.approx((900 - 360) / ticks / 10)


@pytest.mark.parametrize("stat", ["", "cpu0 0 0 0 0 0 0 0 0", "cpu0 nonsense", "cpu0"])
def test_where_proc_stat_does_not_count_the_pressure_is_used(stat: str, tmp_path: Path) -> None:
    def at(cgroup: int, system: int) -> None:
        some = "some avg10=0.00 avg60=0.00 avg300=0.00 total={}\nfull avg10=0.00 total=9"
        files = {
            "proc/stat": stat,
            "proc/self/cgroup": "0::/user/job",
            "sys/fs/cgroup/user/job/cpu.pressure": some.format(cgroup),
            "proc/pressure/cpu": some.format(system),
        }
        system_of(tmp_path, files)

    clock = Clock()
    at(5_000_000, 1)
    watch = CpuLoadWatch(SystemFiles(tmp_path), clock)
    at(9_000_000, 2)
    clock.now += 10
    found = watch.read()
    assert (found.others, found.waiting) == (None, pytest.approx(0.4))
    assert found.is_loaded and "user/job/cpu.pressure" in found.source
    assert "waited for a CPU in 40% of the time" in found.text


def test_a_container_with_its_own_proc_stat_shows_no_time_of_others(tmp_path: Path) -> None:
    def at(ticks: int, total: int) -> None:
        system_of(
            tmp_path,
            {
                "proc/stat": f"cpu0 {ticks} 0 0 {ticks * 9}",
                f"proc/{os.getpid()}/status": "Cpus_allowed_list: 0",
                "proc/self/mounts": "lxcfs /proc/stat fuse.lxcfs rw 0 0",
                "proc/pressure/cpu": f"some avg10=0.00 total={total}",
            },
        )

    clock = Clock()
    at(100, 0)
    watch = CpuLoadWatch(SystemFiles(tmp_path), clock)
    at(1100, 100_000)
    clock.now += 10
    found = watch.read()
    assert (found.others, found.waiting) == (None, pytest.approx(0.01))
    assert not found.is_loaded


def test_without_any_figure_the_load_is_not_known(tmp_path: Path) -> None:
    clock = Clock()
    watch = CpuLoadWatch(SystemFiles(tmp_path), clock)
    clock.now += 10
    found = watch.read()
    assert not found.is_known and not found.is_loaded
    assert "not known" in found.text and "pressure" in found.source


def test_a_load_survives_storage_and_damage_is_no_load() -> None:
    known = CpuLoad(12.5, 4, others=1.25, source="somewhere")
    assert load_of({"cpu_load": msgspec.to_builtins(known)}) == known
    for odd in ({}, {"cpu_load": 7}, {"cpu_load": {"seconds": "x"}}, {"load": [9.0, 9.0, 9.0]}):
        assert load_of(odd) is None


BUSY = """
import time
print(flush=True)
end = time.monotonic() + 60
while time.monotonic() < end:
    pass
"""
"""It ends by itself, if a test that is killed leaves it."""


def test_a_real_load_is_seen() -> None:
    """Busy loops of a process that is not ours, as its parent has ended, one for each CPU."""
    cpus = len(os.sched_getaffinity(0))
    start = (
        "import subprocess, sys\n"
        f"for _ in range({cpus}):\n"
        "    run = [sys.executable, '-c', sys.argv[1]]\n"
        "    busy = subprocess.Popen(run, stdout=subprocess.DEVNULL)\n"
        "    print(busy.pid, flush=True)\n"
    )
    command = [sys.executable, "-c", start, BUSY]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    numbers = [int(line) for line in done.stdout.split()]
    try:
        watch = CpuLoadWatch()
        time.sleep(2)
        assert watch.read().is_loaded
    finally:
        for number in numbers:
            os.kill(number, 9)
