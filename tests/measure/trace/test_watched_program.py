"""A program that runs: its GPUs, pages and threads, by files of /proc."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest

from waywiser.machine.machine import Gpu, Machine, NumaNode
from waywiser.measure.trace.watch import watch
from waywiser.profile.trace_file import TraceError


def machine(gpus: int = 0) -> Machine:
    found = Machine("n", "x86_64", "cpu", (), (), (), ())
    return msgspec.structs.replace(
        found,
        numa=tuple(NumaNode(n, (2 * n, 2 * n + 1), 1 << 30, 0) for n in (0, 1)),
        gpus=tuple(Gpu(n, f"GPU-{n}", "H200", f"0000:{n:02x}:00.0", numa=1) for n in range(gpus)),
    )


def proc(root: Path, cpus: tuple[int, ...] = (0, 2, 3), gpus: tuple[int, ...] = ()) -> Path:
    folder = root / "42"
    (folder / "fd").mkdir(parents=True)
    for n, gpu in enumerate(gpus):
        (folder / "fd" / str(n)).symlink_to(f"/dev/nvidia{gpu}")
    (folder / "fd" / "99").symlink_to("/dev/nvidiactl")
    (folder / "cmdline").write_bytes(b"python\0train.py\0")
    (folder / "numa_maps").write_text(
        "55d0 default file=/usr/bin/python mapped=10 N0=6 N1=4 kernelpagesize_kB=4\n"
        "7f00 default anon=512 dirty=512 N1=512 kernelpagesize_kB=2048\n"
        "7fff default stack anon=3\n"
    )
    for n, cpu in enumerate(cpus):
        task = folder / "task" / str(42 + n)
        task.mkdir(parents=True)
        fields = ["S"] + ["0"] * 35 + [str(cpu)] + ["0"] * 10
        (task / "stat").write_text(f"{42 + n} (a (odd) name) {' '.join(fields)}\n")
    return folder


def test_pages_and_threads_are_by_node(tmp_path: Path) -> None:
    proc(tmp_path)
    found = watch(42, 0.01, machine(), tmp_path)
    assert found.command == "python train.py"
    assert found.pages == {0: 6 * 4096, 1: 4 * 4096 + (1 << 30)}
    assert found.threads == {0: 1, 1: 2}
    assert any("no GPU open" in note for note in found.notes)


def test_gpus_are_those_whose_files_are_open(tmp_path: Path) -> None:
    proc(tmp_path, gpus=(1, 1))
    found = watch(42, 0.05, machine(gpus=2), tmp_path)
    (gpu,) = found.gpus
    assert gpu.gpu == 1 and gpu.numa == 1
    assert gpu.pcie_to is None and gpu.why_not, "no driver here: unknown, and not 0"


def test_a_process_that_ends_or_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="no process 42"):
        watch(42, 0.01, machine(), tmp_path)
    (proc(tmp_path) / "numa_maps").unlink()
    found = watch(42, 0.01, machine(), tmp_path)
    assert found.pages == {} and any("numa_maps" in note for note in found.notes)


def test_this_process_can_be_watched() -> None:
    found = watch(os.getpid(), 0.01, machine())
    assert found.threads and sum(found.threads.values()) >= 1
