"""Slurm's own ``scontrol`` and this package read and write the same host lists."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable

import pytest

from tree import ROOT
from waywiser.words.host_list import compress_hosts, expand_hosts

FOLDER = ROOT / ".deps" / "slurm"
"""Where ``scripts/set-up --slurm`` unpacks it."""

SETTINGS = """\
ClusterName=lists
SlurmctldHost=localhost
AuthType=auth/none
CredType=cred/none
PluginDir={plugins}
NodeName=n1 CPUs=1
PartitionName=all Nodes=ALL
"""

Show = Callable[[str, str], list[str]]


@pytest.fixture(scope="module")
def show(tmp_path_factory: pytest.TempPathFactory) -> Show:
    """Runs ``scontrol show``, which needs no daemon for host lists."""
    libraries = next(FOLDER.glob("usr/lib/*/slurm-wlm"), None)
    if libraries is None:
        pytest.skip("Slurm is not unpacked: run scripts/set-up --slurm")
    settings = tmp_path_factory.mktemp("slurm") / "slurm.conf"
    settings.write_text(SETTINGS.format(plugins=libraries))
    environment = {
        **os.environ,
        "SLURM_CONF": str(settings),
        "LD_LIBRARY_PATH": f"{libraries.parent}:{libraries}",
    }

    def run(what: str, text: str) -> list[str]:
        answer = subprocess.run(
            [FOLDER / "usr" / "bin" / "scontrol", "show", what, text],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        assert not answer.stderr, answer.stderr
        return answer.stdout.split()

    return run


@pytest.mark.parametrize(
    "text",
    [
        "n[001-003,7],gpu-a[1-2]-b[0-1]",
        "x[08-11],x[98-101]",
        "n1,n1,login",
        "n[8-11,1,03]",
        "rack[0-1]_blade[09-10]",
    ],
)
def test_slurm_expands_a_list_to_the_same_hosts(show: Show, text: str) -> None:
    assert tuple(show("hostnames", text)) == expand_hosts(text)


@pytest.mark.parametrize(
    "hosts",
    [
        "n1 n2 n3 n01 n02 n10 n010 gpu-a1-b0 gpu-a1-b1 a n1.example",
        "n08 n09 n10 n11 n100 n99 n098",
        "0 1 2 007 10.0.0.1 10.0.0.2",
        " ".join(f"node{n:04d}" for n in range(0, 3000, 7)),
    ],
)
def test_slurm_reads_what_is_compressed(show: Show, hosts: str) -> None:
    assert sorted(show("hostnames", compress_hosts(hosts.split()))) == sorted(hosts.split())


def test_what_slurm_compresses_is_expanded(show: Show) -> None:
    hosts = ["n1", "n2", "n3", "n01", "n02", "n10", "n010", "gpu-a1-b0", "gpu-a1-b1", "a"]
    (text,) = show("hostlist", ",".join(hosts))
    assert sorted(expand_hosts(text)) == sorted(hosts)
