"""The CPUs of a context's threads, the function that gets its warnings, names of statuses."""

from __future__ import annotations

import gc
import inspect
import logging
import os
import re
import warnings
import weakref
from pathlib import Path
from typing import Any

import fake_gpu
import numpy as np
import pytest
from fake_gpu import GpuArray

from tree import ROOT
from waywiser import transfer

STAGED = 12 << 20


def affinities(name: str) -> list[set[int]]:
    """The affinities of the threads of this process with that name."""
    return [
        os.sched_getaffinity(int(task.name))
        for task in Path("/proc/self/task").iterdir()
        if (task / "comm").read_text().strip() == name
    ]


def damaged_policy(folder: Path, name: str = "damaged.json") -> Path:
    """A policy that gives a warning. A process warns once of one name."""
    file = folder / name
    file.write_text("{")
    return file


class TestCpus:
    def test_threads_run_on_them(self) -> None:
        cpu = max(os.sched_getaffinity(0))
        with transfer.Context(cpus=[cpu], pinned_bytes=8 << 20) as context:
            assert context.usage()["most_threads"] == 1
            context.copy_async(GpuArray(STAGED), np.zeros(STAGED, np.uint8)).result()
            assert {cpu} in affinities("waywiser-copy")
        assert len(os.sched_getaffinity(0)) >= 1

    def test_nodes_have_those_of_the_machine(self) -> None:
        node = next(each for each in transfer.machine()["numa"] if each["cpus"])
        with transfer.Context(numa_nodes=[node["index"]]) as context:
            assert 1 <= context.usage()["most_threads"] <= len(node["cpus"])

    @pytest.mark.parametrize(
        ("options", "text"),
        [
            ({"cpus": [8191]}, "no CPU is left .*cpus are 8191, .*taskset"),
            ({"cpus": [-1]}, "cpus has the entry -1"),
            ({"cpus": "0"}, "not a sequence of numbers"),
            ({"cpus": 0}, "not a sequence of numbers"),
            ({"cpus": [0.5]}, "not a whole number"),
            ({"numa_nodes": [999]}, "numa_nodes has 999, .*pass numbers of these"),
        ],
    )
    def test_others_are_an_error_with_what_to_do(self, options: Any, text: str) -> None:
        with pytest.raises(transfer.TransferError, match=text) as caught:
            transfer.Context(**options)
        assert str(caught.value).startswith("Context: ")
        assert "relays" not in str(caught.value)
        assert caught.value.status == "WAYWISER_INVALID"


class TestLog:
    def test_it_gets_the_warnings_instead_of_python(self, tmp_path: Path) -> None:
        lines: list[str] = []
        policy = damaged_policy(tmp_path)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for count in (1, 2):  # each context has its own
                context = transfer.Context(policy=policy, log=lines.append)
                assert len(lines) == count
        assert "damaged.json is not used" in lines[0]
        assert lines == [lines[0]] * 2
        assert context.warnings() == lines[:1]

    def test_it_gets_those_of_copies_at_their_end(self) -> None:
        lines: list[str] = []
        context = transfer.Context(log=lines.append, pinned_bytes=8 << 20)
        there = GpuArray(STAGED)
        fake_gpu.configure("oom_at=1+")
        context.copy(there, np.zeros(STAGED, np.uint8))
        context.copy(bytearray(1), b"x")
        fake_gpu.configure("")
        assert len(lines) == 1
        assert "could not be pinned" in lines[0]
        context.close()
        assert len(lines) == 1

    def test_it_may_be_of_a_logger(self, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
        policy = damaged_policy(tmp_path, "100%s.json")
        transfer.Context(policy=policy, log=logging.getLogger("copies").warning)
        assert ["100%s.json is not used" in record.getMessage() for record in caplog.records] == [
            True
        ]

    @pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
    def test_what_it_raises_stops_no_call(self, tmp_path: Path) -> None:
        def log(line: str) -> None:
            raise RuntimeError(line)

        context = transfer.Context(policy=damaged_policy(tmp_path), log=log)
        assert len(context.warnings()) == 1

    def test_a_log_that_refers_to_its_context_is_collected(self) -> None:
        kept: list[Any] = []
        kept.append(transfer.Context(log=lambda line, kept=kept: print(kept, line)))
        watched = weakref.ref(kept[0])
        del kept
        gc.collect()
        assert watched() is None

    def test_it_can_be_called(self) -> None:
        with pytest.raises(transfer.InvalidOperand, match="log is 'file', which cannot be called"):
            transfer.Context(log="file")  # type: ignore[arg-type]


def test_each_error_has_the_name_of_its_status() -> None:
    header = (ROOT / "native" / "include" / "waywiser" / "transfer.h").read_text()
    names = set(re.findall(r"^    (WAYWISER_\w+) = \d+", header, re.MULTILINE))
    errors = [
        each
        for each in vars(transfer.errors).values()
        if inspect.isclass(each) and issubclass(each, transfer.TransferError)
    ]
    assert {each.status for each in errors} <= names
    assert len(errors) > 10
    with pytest.raises(transfer.TransferError) as caught:
        transfer.copy(bytearray(2), b"x")
    assert caught.value.status == "WAYWISER_INVALID"
    handle = transfer.copy_async(GpuArray(STAGED), np.zeros(STAGED, np.uint8))
    handle.result()


def test_a_lost_gpu_has_a_status_of_its_own() -> None:
    there = GpuArray(64)
    fake_gpu.configure("sticky=copy@1+")
    with pytest.raises(transfer.GpuError) as caught:
        transfer.copy(there, bytearray(64))
    fake_gpu.configure("")
    assert (caught.value.lost, caught.value.status) == (True, "WAYWISER_GPU_LOST")
