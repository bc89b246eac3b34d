"""Texts without titles of runs are cut at the commands and headings between results."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from exchange.imports.test_made_texts import read

DATA = Path(__file__).parent / "data"
FILES = {
    "gpu_copy.log": "gpu_copy --size 67108864",
    "commscope.txt": "./comm_scope --benchmark_repetitions=3",
    "commscope.csv": "./comm_scope --benchmark_format=csv",
    "benchpress_maxrate.out": "jsrun -n 8 ./time_max_rate",
    "benchpress_memcpy.out": "jsrun -n 8 ./time_memcpy",
    "transferbench_tests.csv": "./TransferBench tests.cfg",
}


def blocks(text: str, folder: Path) -> dict[str, int]:
    path = folder / "a.txt"
    path.write_text(text)
    return Counter(str(each.workload) for file in read(path) for each in file.measured)


@pytest.mark.parametrize("name", FILES)
def test_runs_of_two_commands_are_apart(name: str, tmp_path: Path) -> None:
    own, command = (DATA / name).read_text().rstrip("\n") + "\n", FILES[name]
    usual = blocks(own, tmp_path)
    apart = blocks(f"$ A_MODE=1 {command}\n{own}\n$ A_MODE=2 {command}\n{own}", tmp_path)
    assert len(apart) == 2 * len(usual)
    assert sorted(apart.values()) == sorted([*usual.values()] * 2)
    same = blocks(f"$ {command}\n{own}\n$ date\n$ {command}\n{own}", tmp_path)
    assert same == Counter({text: 2 * count for text, count in usual.items()})


@pytest.mark.parametrize("name", ["gpu_copy.log", "commscope.txt"])
def test_headings_keep_runs_apart(name: str, tmp_path: Path) -> None:
    own = (DATA / name).read_text().rstrip("\n") + "\n"
    usual = blocks(own, tmp_path)
    assert len(blocks(f"=== IOMMU on ===\n{own}\n=== IOMMU off ===\n{own}", tmp_path)) == (
        2 * len(usual)
    )
    assert len(blocks(f"=== run 1 ===\n{own}\n=== run 2 ===\n{own}", tmp_path)) == len(usual)


def test_a_command_chooses_the_gpus_of_what_stands_below_it(tmp_path: Path) -> None:
    own = (DATA / "gpu_copy.log").read_text()
    found = blocks(f"$ HIP_VISIBLE_DEVICES=5,3 gpu_copy\n{own}", tmp_path)
    assert any("device@gpu:5" in text for text in found)
    assert not any("@gpu:0" in text for text in found)
