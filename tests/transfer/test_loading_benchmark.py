"""The benchmark of processes that load their GPUs at once, each on a fake GPU of its own."""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

import pytest

from script_module import script_module

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "loading.py"
PROCESS = Path(__file__).with_name("loading_on_fake.py")
MIB = 1 << 20


@pytest.fixture
def loading(
    fake_transfer_environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> ModuleType:
    monkeypatch.setenv("PYTHONPATH", fake_transfer_environment["PYTHONPATH"])
    monkeypatch.setenv("WAYWISER_FAKE", "devices=1;h2d=20;staged=10")
    return script_module(BENCHMARK)


def requested(folder: Path, gpus: int, **changed: Any) -> argparse.Namespace:
    usual = {"gpus": gpus, "rounds": 2, "only": "", "folder": str(folder), "within": 1e9}
    return argparse.Namespace(**{**usual, "json": folder / "loading.json", **changed})


def result_of(folder: Path) -> Any:
    return json.loads((folder / "loading.json").read_text())


@pytest.mark.parametrize("gpus", [1, 3])
def test_all_processes_load_at_once(
    loading: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str], gpus: int
) -> None:
    command = [sys.executable, str(PROCESS)]
    assert loading.measure(requested(tmp_path, gpus), command, 9 * MIB) == 0
    found = result_of(tmp_path)
    assert list(found["groups"]) == [loading.MEMORY, loading.TMPFS, loading.CACHED]
    for group, methods in found["groups"].items():
        assert tuple(methods) == loading.GROUPS[group]
        ours, *others = methods.values()
        assert len(ours["rates"]) == 2 and min(ours["rates"]) > 0
        assert {each["missing"] for each in others} == {"not installed: python -m pip install it"}
    shown = capsys.readouterr().out
    assert f"| pageable memory, {gpus} x " in shown
    assert "| InstantTensor | not installed: " in shown and "| cudaMemcpy | not installed" in shown
    assert not list(tmp_path.glob("*.safetensors"))
    assert not list(Path("/dev/shm").glob(f"waywiser-loading-{os.getpid()}-*"))


def test_a_process_is_one_of_the_ranks_of_this_host(
    loading: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    found = loading.environment_of(3, 8)
    assert (found["CUDA_VISIBLE_DEVICES"], found["LOCAL_WORLD_SIZE"]) == ("3", "8")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "5,7")
    assert loading.environment_of(1, 2)["CUDA_VISIBLE_DEVICES"] == "7"


def test_a_rate_is_of_all_bytes_from_the_first_start_to_the_last_end(loading: ModuleType) -> None:
    class Answers:
        running = (0, 1)
        files: ClassVar[list[Path]] = []

        def ask(self, questions: list[dict[str, Any]]) -> list[dict[str, Any]]:
            if "run" not in questions[0]:
                return [{}, {}]
            return [{"start": 10.0, "end": 11.0}, {"start": 10.5, "end": 12.0}]

    found = loading.measure_group(Answers(), loading.MEMORY, 1000, "", 3, float("inf"))
    assert {name: each["rates"] for name, each in found.items()} == {
        name: [1000.0] * 3 for name in loading.COPIES
    }


def test_a_slow_method_is_measured_once(loading: ModuleType) -> None:
    class Slow:
        running = (0,)
        files: ClassVar[list[Path]] = []

        def ask(self, questions: list[dict[str, Any]]) -> list[dict[str, Any]]:
            return [{"start": 0.0, "end": 8.0} if "run" in questions[0] else {}]

    found = loading.measure_group(Slow(), loading.MEMORY, 800, "", 5, float("inf"))
    assert all(each["rates"] == [100.0] for each in found.values())


@pytest.mark.parametrize(("fails", "why"), [("prepare", "no memory"), ("run", "a bad disk")])
def test_what_fails_is_said_and_the_rest_goes_on(
    loading: ModuleType, tmp_path: Path, fails: str, why: str
) -> None:
    command = [sys.executable, str(PROCESS), fails]
    assert loading.measure(requested(tmp_path, 1, only="pageable"), command, MIB) == 0
    assert why in result_of(tmp_path)["groups"][loading.MEMORY][f"{loading.OURS} copy"]["missing"]


def test_a_process_that_ends_is_named_and_leaves_no_file(
    loading: ModuleType, tmp_path: Path
) -> None:
    command = [sys.executable, str(PROCESS), "exit"]
    with pytest.raises(RuntimeError, match="the process of GPU 0 ended with 3"):
        loading.measure(requested(tmp_path, 1, only="cached"), command, MIB)
    assert not list(tmp_path.glob("*.safetensors"))


def test_without_torch_it_says_what_is_missing(
    loading: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["loading.py"])
    monkeypatch.setattr(loading.importlib.util, "find_spec", lambda name: None)
    assert loading.main() == 2
    assert "torch is not installed" in capsys.readouterr().err
