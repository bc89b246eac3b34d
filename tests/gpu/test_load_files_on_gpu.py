"""Checkpoints come into the memory of a real GPU, each tensor into memory of its own."""

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


def test_a_checkpoint_is_loaded_to_the_gpu(tmp_path: Path) -> None:
    # A process of its own: tests beside this one may have loaded the library over the fake GPU.
    environment = {
        name: value for name, value in os.environ.items() if name != "WAYWISER_TRANSFER_NATIVE"
    }
    environment["PYTHONPATH"] = os.pathsep.join(sys.path)
    program = Path(__file__).with_name("loading.py")
    answer = subprocess.run(
        [sys.executable, program, tmp_path / "model.safetensors"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode == 0, answer.stdout + answer.stderr
