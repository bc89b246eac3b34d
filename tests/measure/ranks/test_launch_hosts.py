"""The files in which launchers read hosts."""

from __future__ import annotations

from pathlib import Path

from waywiser.measure.ranks.launch_hosts import LaunchHosts, write_hostfile

HOSTS = LaunchHosts.of("10.0.0.1", [("n1", 2), ("n2", 1)])


def test_hostfiles_have_the_slots_of_each_host_as_its_launcher_reads_them(tmp_path: Path) -> None:
    assert HOSTS.ranks == 3
    for library, text in (("MPICH", "n1:2\nn2:1\n"), ("Open MPI", "n1 slots=2\nn2 slots=1\n")):
        assert Path(write_hostfile(HOSTS, str(tmp_path), library)).read_text() == text
