"""Processes that are forked from one that has copied: what they can do, and what the error says."""

from __future__ import annotations

import importlib.util
import multiprocessing
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fake_gpu import GpuArray

from tree import ROOT
from waywiser import transfer

SCRIPT = ROOT / "tests" / "gpu" / "forked_workers.py"
BYTES = 9 << 20  # copied by several threads


def in_child(call: Callable[[], Any]) -> str:
    """What the call returns in a forked child, or its error, as text."""

    def run(answers: Any) -> None:
        try:
            answers.send(str(call()))
        except Exception as error:
            answers.send(f"{type(error).__name__}: {error}")

    context = multiprocessing.get_context("fork")
    mine, theirs = context.Pipe()
    child = context.Process(target=run, args=(theirs,))
    child.start()
    theirs.close()
    answer: str = mine.recv()
    child.join()
    assert child.exitcode == 0
    return answer


def copied(calls: Any, path: Path) -> bool:
    source = np.arange(BYTES, dtype=np.uint8)
    target, read = np.zeros_like(source), np.zeros_like(source)
    calls.copy(target, source)
    calls.write(str(path), source)
    return bool(
        calls.read(str(path), read) == BYTES
        and np.array_equal(target, source)
        and np.array_equal(read, source)
    )


def test_a_worker_copies_and_reads_with_a_context_of_its_own(tmp_path: Path) -> None:
    transfer.copy(bytearray(1), b"x")

    def work() -> bool:
        with transfer.Context() as context:
            return copied(context, tmp_path / "file")

    assert in_child(work) == "True"


def test_a_worker_gets_one_line_from_a_context_of_its_parent(tmp_path: Path) -> None:
    transfer.copy(bytearray(1), b"x")
    answer = in_child(lambda: copied(transfer, tmp_path / "file"))
    assert answer.startswith("ForkedContextError: ")
    assert "\n" not in answer
    assert "spawn" in answer


def test_a_worker_of_a_parent_with_a_gpu_says_why_it_has_none() -> None:
    """It does not say that the machine has no GPU."""
    there = GpuArray(8)
    calls: dict[str, Callable[[], Any]] = {
        "pinned_empty": lambda: transfer.pinned_empty(8, np.uint8),
        "copy": lambda: transfer.Context().copy(bytearray(8), there),
        "read": lambda: transfer.Context().read(__file__, there),
        "relays": lambda: transfer.Context(relays=[1]),
    }

    def work() -> list[str]:
        reasons = [transfer.machine()["gpu_unavailable"]]
        for name, call in calls.items():
            with pytest.raises(transfer.TransferError) as caught:
                call()
            reasons.append(f"{name}: {caught.value}")
        return [reason for reason in reasons if "forked" not in reason or "spawn" not in reason]

    assert in_child(work) == "[]"
    assert transfer.machine()["gpu_unavailable"] == ""
    assert transfer.pinned_empty(8, np.uint8).nbytes == 8, "the parent goes on"


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")
def test_workers_of_a_data_loader(tmp_path: Path) -> None:
    environment = {k: v for k, v in os.environ.items() if k != "WAYWISER_TRANSFER_NATIVE"}
    environment["PYTHONPATH"] = os.pathsep.join(sys.path)
    answer = subprocess.run(
        [sys.executable, SCRIPT, str(tmp_path)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert answer.stdout.count(": works") >= 3
