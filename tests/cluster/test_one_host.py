"""Ranks as those of several nodes of one host."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from waywiser.cluster.node.one_host import nodes_of_ranks
from waywiser.measure.probe.environment import NODE_VARIABLE


@pytest.mark.parametrize("lines", [["n1:2\n", "n2:1\n"], ["n1 slots=2\n", "n2 slots=1\n"]])
def test_ranks_of_a_node_follow_each_other(lines: list[str]) -> None:
    assert nodes_of_ranks(lines) == ["n1", "n1", "n2"]


def test_it_becomes_the_command_of_its_node(tmp_path: Path) -> None:
    (tmp_path / "hosts").write_text("n1:1\nn2:1\n")
    show = f"import os; print(os.getpid(), os.environ[{NODE_VARIABLE!r}])"
    module = [sys.executable, "-m", "waywiser.cluster.node.one_host", str(tmp_path / "hosts")]
    for rank, node in enumerate(("n1", "n2")):
        with subprocess.Popen(
            [*module, sys.executable, "-c", show],
            env={**os.environ, "PMI_RANK": str(rank)},
            stdout=subprocess.PIPE,
            text=True,
        ) as process:
            assert process.communicate()[0].split() == [str(process.pid), node]
