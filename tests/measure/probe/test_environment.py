"""What a worker inherits."""

from __future__ import annotations

import os
import select
import subprocess
import sys
from pathlib import Path

import pytest

import waywiser
from waywiser.measure.probe.environment import worker_environment
from waywiser.measure.probe.worker_process import WorkerProcess


def test_gpus_are_counted_by_the_bus_whatever_the_caller_set() -> None:
    made = worker_environment({"CUDA_DEVICE_ORDER": "FASTEST_FIRST", "HOME": "/h"})
    assert made["CUDA_DEVICE_ORDER"] == "PCI_BUS_ID"
    assert made["HOME"] == "/h"


def test_multicast_stays_off_in_a_worker_whatever_the_caller_set() -> None:
    """NVLink multicast can take the GPUs of a shared host out of service."""
    for base in ({}, {"NCCL_NVLS_ENABLE": "1"}):
        assert worker_environment(base)["NCCL_NVLS_ENABLE"] == "0"


def test_multicast_is_off_in_a_running_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NCCL_NVLS_ENABLE", "1")
    command = ["sh", "-c", "echo NCCL_NVLS_ENABLE=$NCCL_NVLS_ENABLE; exec sleep 600"]
    with WorkerProcess(command, ()) as worker:
        assert select.select([worker.output], [], [], 60)[0]  # it has started
        assert os.read(worker.output, 100) == b"NCCL_NVLS_ENABLE=0\n"


def test_a_worker_runs_this_very_package(tmp_path: Path) -> None:
    other = tmp_path / "waywiser.py"
    other.write_text("raise SystemExit('another one')")
    code = "import waywiser; print(waywiser.__file__)"
    environment = worker_environment({**os.environ, "PYTHONPATH": str(tmp_path)})
    for folder in (tmp_path, Path.cwd()):
        found = subprocess.run(
            [sys.executable, "-c", code],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        assert found == waywiser.__file__


def test_a_path_is_named_once() -> None:
    package = str(Path(waywiser.__file__).parent.parent)
    base = {"PYTHONPATH": os.pathsep.join([package, "/a", "", "/a"])}
    assert worker_environment(base)["PYTHONPATH"] == os.pathsep.join([package, "/a"])
