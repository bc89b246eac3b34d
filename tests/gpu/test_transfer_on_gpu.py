"""The transfer calls on a real GPU, with torch: each in a process of its own, since tests beside
these may have loaded the library over the fake GPU."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed"),
]


def run(name: str, *arguments: str) -> None:
    environment = {
        name: value for name, value in os.environ.items() if name != "WAYWISER_TRANSFER_NATIVE"
    }
    environment["PYTHONPATH"] = os.pathsep.join(sys.path)
    answer = subprocess.run(
        [sys.executable, Path(__file__).with_name(name), *arguments],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert answer.returncode == 0, answer.stdout + answer.stderr


def test_a_checkpoint_is_loaded_to_the_gpu(tmp_path: Path) -> None:
    run("loading.py", str(tmp_path / "model.safetensors"))


def test_a_checkpoint_of_torch_distributed_is_saved_while_the_gpu_goes_on(tmp_path: Path) -> None:
    run("checkpoints.py", str(tmp_path / "checkpoint"))


def test_graphs_are_captured_while_eight_threads_copy() -> None:
    run("capturing.py")


def test_patched_calls_give_the_results_and_errors_of_pytorch() -> None:
    run("patched_calls.py")


def test_what_forked_workers_of_a_data_loader_can_do(tmp_path: Path) -> None:
    run("forked_workers.py", str(tmp_path))


@pytest.mark.skipif(
    importlib.util.find_spec("transformers") is None, reason="transformers is not installed"
)
def test_a_model_of_transformers_is_loaded(tmp_path: Path) -> None:
    run("loading_transformers.py", str(tmp_path))
