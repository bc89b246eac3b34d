"""Memory limits as control groups write them, in trees made of files."""

from __future__ import annotations

from pathlib import Path

import pytest

from waywiser.machine.limits import MemoryKills, available_bytes, killed_for_memory
from waywiser.machine.system_files import SystemFiles


def write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


def test_the_tightest_limit_on_the_way_up_counts(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "proc/self/cgroup": "0::/slice/job\n",
            "sys/fs/cgroup/slice/job/memory.max": "max\n",
            "sys/fs/cgroup/slice/memory.max": "1000\n",
            "sys/fs/cgroup/slice/memory.current": "700\n",
            "sys/fs/cgroup/slice/memory.stat": "anon 500\ninactive_file 150\n",
            "sys/fs/cgroup/memory.max": "5000\n",
            "sys/fs/cgroup/memory.current": "100\n",
        },
    )
    assert available_bytes(SystemFiles(tmp_path)) == 1000 - (700 - 150)


def test_the_first_version_has_other_names_and_a_huge_number_for_no_limit(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "proc/self/cgroup": "5:cpu,cpuacct:/job\n4:memory:/job\n0::/\n",
            "sys/fs/cgroup/memory/job/memory.limit_in_bytes": "1000\n",
            "sys/fs/cgroup/memory/job/memory.usage_in_bytes": "400\n",
            "sys/fs/cgroup/memory/job/memory.stat": "total_inactive_file 100\n",
            "sys/fs/cgroup/memory/job/memory.oom_control": "under_oom 0\noom_kill 2\n",
            "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
        },
    )
    assert available_bytes(SystemFiles(tmp_path)) == 700
    assert killed_for_memory(SystemFiles(tmp_path)) == MemoryKills(2, 2, 0)


def test_a_full_group_has_nothing_available(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "proc/self/cgroup": "0::/\n",
            "sys/fs/cgroup/memory.max": "1000\n",
            "sys/fs/cgroup/memory.current": "1200\n",
            "sys/fs/cgroup/memory.events": "oom 1\noom_kill 3\n",
        },
    )
    assert available_bytes(SystemFiles(tmp_path)) == 0
    assert killed_for_memory(SystemFiles(tmp_path)) == MemoryKills(3, 1, 0)


@pytest.mark.parametrize("text", ["", "0::/\n", "nonsense\n", "::\n"])
def test_without_a_limit_or_without_control_groups_there_is_none(tmp_path: Path, text: str) -> None:
    write(tmp_path, {"proc/self/cgroup": text})
    assert available_bytes(SystemFiles(tmp_path)) is None
    assert killed_for_memory(SystemFiles(tmp_path)) == MemoryKills()


GROUP = "proc/self/cgroup", "0::/outer/own\n"
FULL = "a NUMA node that buffers are bound to, was full"


@pytest.mark.parametrize(
    ("events", "vmstat", "cause"),
    [
        # The limit of the outer group was reached, which its own file states.
        ({"outer": "oom 5\noom_kill 1\n", "outer/own": "oom 0\noom_kill 1\n"}, 1, "limit was"),
        ({"outer/own": "oom 0\noom_kill 1\n"}, 1, FULL),
        ({"outer/own": "oom 0\noom_kill 0\n"}, 8, FULL),
        ({}, 1, FULL),  # no control groups
        ({"outer/own": "oom 0\noom_kill 0\n"}, 0, ""),
        ({"outer": "oom 4\noom_kill 0\n"}, 0, ""),  # the limit was reached, and nothing killed
    ],
)
def test_why_the_kernel_killed_a_process(
    tmp_path: Path, events: dict[str, str], vmstat: int, cause: str
) -> None:
    files = SystemFiles(tmp_path)
    before = killed_for_memory(files)
    paths = {f"sys/fs/cgroup/{name}/memory.events": text for name, text in events.items()}
    text = f"nr_free_pages 12\noom_kill {vmstat}\n"
    write(tmp_path, {**dict([GROUP]), **paths, "proc/vmstat": text})
    why = before.why(files)
    assert why.endswith(cause) if why.endswith(FULL) else cause in why
    assert bool(why) == bool(cause)


def test_a_kill_elsewhere_on_the_machine_is_none_of_the_group(tmp_path: Path) -> None:
    files = SystemFiles(tmp_path)
    write(tmp_path, {"proc/vmstat": "oom_kill 3\n"})
    before = killed_for_memory(files)
    write(tmp_path, {"proc/vmstat": "oom_kill 4\n"})
    assert before.why(files)
    assert before.why(files, of_group=True) == ""


def test_this_system_can_be_asked() -> None:
    room = available_bytes()
    assert room is None or room >= 0
