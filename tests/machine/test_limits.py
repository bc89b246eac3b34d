from __future__ import annotations

from pathlib import Path

from machine.fake_system import system_of
from waywiser.machine.limits import cgroup_folders, cpu_quota, memlock, memory_limit


def test_limits_of_all_levels_of_cgroups_2_hold(tmp_path: Path) -> None:
    files = system_of(
        tmp_path,
        {
            "proc/self/cgroup": "0::/job/step",
            "sys/fs/cgroup/job/step/cpu.max": "max 100000",
            "sys/fs/cgroup/job/cpu.max": "150000 100000",
            "sys/fs/cgroup/job/memory.max": "2147483648",
            "sys/fs/cgroup/memory.max": "max",
        },
    )
    assert cpu_quota(files) == 1.5
    assert memory_limit(files) == 2 << 30


def test_limits_of_cgroups_1(tmp_path: Path) -> None:
    files = system_of(
        tmp_path,
        {
            "proc/self/cgroup": "4:memory:/job\n2:cpu,cpuacct:/job",
            "sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us": "-1",
            "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "400000",
            "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000",
            "sys/fs/cgroup/memory/job/memory.limit_in_bytes": "9223372036854771712",
        },
    )
    assert cpu_quota(files) == 4
    assert memory_limit(files) is None


def test_a_containers_mount_counts_where_the_hosts_path_is_not_there(tmp_path: Path) -> None:
    files = system_of(
        tmp_path,
        {"proc/self/cgroup": "0::/docker/abc", "sys/fs/cgroup/memory.max": "1073741824"},
    )
    assert cgroup_folders(files, "memory")[0] == "/sys/fs/cgroup/docker/abc"
    assert memory_limit(files) == 1 << 30


def test_no_cgroups_no_limits(tmp_path: Path) -> None:
    files = system_of(tmp_path, {})
    assert (cpu_quota(files), memory_limit(files), memlock(files)) == (None, None, None)


def test_the_lock_limit_is_the_soft_one(tmp_path: Path) -> None:
    line = "Max locked memory         8388608              unlimited            bytes"
    assert memlock(system_of(tmp_path, {"proc/self/limits": "Limit\n" + line})) == 8388608
    line = "Max locked memory         unlimited            unlimited            bytes"
    assert memlock(system_of(tmp_path, {"proc/self/limits": line})) == "unlimited"
