"""The table of NVLink's counters around copies from each GPU to each other one."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from script_module import script_module

FILE = Path(__file__).parents[1] / "benchmarks" / "evidence.py"


@pytest.fixture
def evidence() -> ModuleType:
    return script_module(FILE)


def counted(evidence: ModuleType, source: int, target: int, sent: float, received: float) -> Any:
    curve = f"device@gpu:{source} -> device@gpu:{target} by copy-engine"
    for gpu, direction, ratio in ((source, "sent", sent), (target, "received", received)):
        yield evidence.Row("a.wwp", curve, gpu, "NVLink", direction, 18, ratio)
    yield evidence.Row("a.wwp", curve, source, "PCIe", "sent", 1, 3.0)


def test_each_pair_has_its_worst_ratio(evidence: ModuleType) -> None:
    rows = [
        *counted(evidence, 0, 1, 1.0, 1.0),
        *counted(evidence, 1, 0, 1.001, 0.98),
        *counted(evidence, 7, 0, 1.04, 0.99),
        evidence.Row("a.wwp", "device@gpu:0 -> device@gpu:7 by sm", 0, "NVLink", "sent", 18, 9.0),
    ]
    assert list(evidence.peer_matrix(rows)) == [
        "| from, to | gpu:0 | gpu:1 | gpu:7 |",
        "|---|---|---|---|",
        "| gpu:0 |  | 1.000 x 18 |  |",
        "| gpu:1 | 0.980 x 18 |  |  |",
        "| gpu:7 | 1.040 x 18 |  |  |",
    ]


def test_without_copies_between_gpus_there_is_no_table(evidence: ModuleType) -> None:
    assert list(evidence.peer_matrix([])) == []
