"""What a context counts, in Python."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fake_gpu import GpuArray

from waywiser import transfer

FIELDS = ("transfers", "bytes", "failures", "cancellations")
CHUNKED = 9 << 20


def used(stats: dict[str, Any]) -> dict[str, tuple[int, int]]:
    """Method -> its transfers and bytes, if there are any."""
    return {
        name: (one["transfers"], one["bytes"])
        for name, one in stats["methods"].items()
        if one["transfers"]
    }


def test_each_transfer_is_counted_once(tmp_path: Path) -> None:
    host, there = np.zeros(CHUNKED, np.uint8), GpuArray(CHUNKED)
    pinned = transfer.pinned_empty(CHUNKED, np.uint8)
    path = tmp_path / "bytes"
    with transfer.Context(threads=4) as context:
        assert used(context.stats()) == {}
        context.copy(pinned, there)
        context.copy(host, there)
        context.copy_async(host[:100], there.view((100,), None)).result()
        context.snapshot_batch(dsts=[pinned], srcs=[there]).result()
        context.write(path, host)
        context.read(path, host)
        stats = context.stats()
    methods = stats["methods"]
    assert used(stats).pop("read") == used(stats).pop("write") == (1, CHUNKED)
    assert used(stats)["snapshot"] == (1, CHUNKED)
    assert stats["transfers"] == 6
    assert stats["bytes"] == 5 * CHUNKED + 100
    for field in FIELDS:
        assert stats[field] == sum(one[field] for one in methods.values())
    assert all(one["seconds"] > 0 for one in methods.values() if one["transfers"])
    assert stats["failures"] == stats["cancellations"] == 0
    assert stats["peak_pinned_bytes"] > 0
    assert stats["staging_wait_seconds"] >= 0
    assert stats["staging_waits"] >= 0
    assert stats["wake_ups"] >= 0


@pytest.mark.parametrize("nbytes", [16, 64 << 10])
def test_copies_without_the_library_are_counted_too(nbytes: int) -> None:
    target, source = np.zeros(2 * nbytes, np.uint8), np.ones(2 * nbytes, np.uint8)
    with transfer.Context(threads=2) as context:
        context.copy(target, source)
        context.copy_batch(dsts=[target[:8], target[16:24]], srcs=[source[:8], source[16:24]])
        stats = context.stats()
    assert used(stats) == {"plain": (2, 2 * nbytes + 16)}
    assert (stats["transfers"], stats["bytes"]) == (2, 2 * nbytes + 16)
    assert stats["methods"]["plain"]["seconds"] > 0


def test_a_closed_context_has_no_counters() -> None:
    context = transfer.Context(threads=1)
    context.close()
    with pytest.raises(transfer.InvalidTransfer):
        context.stats()


def test_the_default_context_has_counters() -> None:
    before = transfer.stats()["bytes"]
    transfer.copy(bytearray(10), b"0123456789")
    assert transfer.stats()["bytes"] == before + 10
