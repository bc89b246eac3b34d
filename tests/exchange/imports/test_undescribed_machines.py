"""What is said of a machine that only results describe: nothing that its files do not say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from waywiser.cli import run

DATA = Path(__file__).parent / "data"

INVENTED = r"NVLink|NVSwitch|PCIe|no peer access|system shows|\d+ NUMA"


@pytest.mark.parametrize("file", ["nvbandwidth.json", "microbench.json", "commscope.json"])
def test_a_machine_without_topology_gets_no_links_and_no_nodes(
    file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = str(tmp_path / "a.wwp")
    assert run(["import", str(DATA / file), "-o", target]) == 0
    capsys.readouterr()
    for verb in (["show", target], ["report", target, "--format", "md", "-o", "-"]):
        assert run(verb) == 0
        out = capsys.readouterr().out
        assert re.findall(INVENTED, out) == []
    assert run(["topology", target]) == 0
    assert " over PCIe" not in capsys.readouterr().out
