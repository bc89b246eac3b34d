"""A profiler sees a range for each call, and for the work of threads (NVTX)."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tree import FAKE_FOLDER

PROFILER = FAKE_FOLDER / "waywiser_fake" / "profiler.so"

COPIES = """
import os
import numpy as np
from fake_gpu import GpuArray, Stream
from waywiser import transfer

context = transfer.Context(threads=4)
own = Stream(0)
stream = own.handle
host, there = np.zeros(16 << 20, np.uint8), GpuArray(16 << 20)
pinned = transfer.pinned_empty(1 << 20, np.uint8)
context.copy(there, host, stream=stream)
context.copy_async(there.view((1 << 20,), None), pinned, stream=stream).result()
context.copy(pinned[:4096], there.view((4096,), None), stream=stream)
pieces = [(there.view((512,), None, offset), pinned[offset:][:512]) for offset in (0, 1024)]
context.copy_batch(dsts=[to for to, _ in pieces], srcs=[of for _, of in pieces], stream=stream)
context.snapshot_batch(dsts=[pinned], srcs=[there.view((1 << 20,), None)], stream=stream).result()
context.write(os.environ["FAKE_PROFILE"] + ".bytes", host[: 1 << 20])
context.close()
"""


def profiled(environment: dict[str, str], file: Path, profiler: Path = PROFILER) -> list[str]:
    environment |= {"NVTX_INJECTION64_PATH": str(profiler), "FAKE_PROFILE": str(file)}
    done = subprocess.run(
        [sys.executable, "-c", COPIES], env=environment, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return file.read_text().splitlines() if file.exists() else []


@pytest.mark.skipif(not PROFILER.exists(), reason=f"{PROFILER} is not built")
def test_a_profiler_sees_calls_and_the_work_of_threads(
    fake_transfer_environment: dict[str, str], tmp_path: Path
) -> None:
    lines = profiled(fake_transfer_environment, tmp_path / "profile")
    open_ranges: dict[str, list[str]] = {}
    names = []
    for line in lines:
        thread, what = line.split(" ", 1)
        if what == "-":
            open_ranges[thread].pop()
        else:
            names.append(what[2:])
            open_ranges.setdefault(thread, []).append(what[2:])
    assert all(not left for left in open_ranges.values()), "each range has an end"
    assert "waywiser copy 16 MiB H2D chunked" in names
    assert "waywiser copy 1 MiB H2D plain" in names
    assert "waywiser copy 4 KiB plain" in names
    assert "waywiser copy 1 KiB in 2 pieces" in names
    assert "waywiser 1 KiB list_copies" in names or "waywiser 1 KiB list_batch" in names
    assert "waywiser snapshot 1 MiB in 1 piece" in names
    assert "waywiser write 1 MiB" in names
    assert any(re.fullmatch(r"waywiser fill \S+ .?iB chunked", name) for name in names)


def test_a_profiler_that_cannot_be_loaded_is_none(
    fake_transfer_environment: dict[str, str], tmp_path: Path
) -> None:
    for profiler in (tmp_path / "none.so", Path(sys.executable)):
        assert profiled(fake_transfer_environment, tmp_path / "profile", profiler) == []
