"""What machines are known by in policies: the transfer library reads the same files with the same
result (``native/tests/transfer/policy_file_test.cpp``)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tree import ROOT
from waywiser.machine.hypervisor import hypervisor
from waywiser.machine.system import cpu_model
from waywiser.machine.system_files import SystemFiles

CASES = json.loads((ROOT / "tests" / "machine" / "fingerprints.json").read_text())


@pytest.mark.parametrize("case", CASES, ids=[case["about"] for case in CASES])
def test_hypervisor_and_cpu_are_those_of_the_transfer_library(
    tmp_path: Path, case: dict[str, Any]
) -> None:
    for name, text in case["files"].items():
        file = tmp_path / name.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    files = SystemFiles(tmp_path)
    assert (hypervisor(files) or "none") == case["hypervisor"]
    assert cpu_model(files) == case["cpu"]
