"""The calls with which programs make transfers."""

from __future__ import annotations

import msgspec
import pytest

from waywiser.hardware.calls import call_text, calls
from waywiser.hardware.traits import Traits, _declared
from waywiser.words import Workload


def said(text: str) -> str:
    return call_text(Workload.parse(text).transfers)


def test_every_executor_has_a_call_and_every_call_an_executor() -> None:
    known = {each.name for each in _declared().executors if each.route != "between ranks"}
    assert {call.executor for call in calls()} == known


@pytest.mark.parametrize(
    ("text", "call"),
    [
        (
            "pinned@numa:0 -> device@gpu:0 by copy-engine",
            "cudaMemcpyAsync, pinned host memory",
        ),
        (
            "pinned@numa:0 -> device@gpu:0 by copy-engine[api=sync]",
            "cudaMemcpy, pinned host memory",
        ),
        ("device@gpu:0 -> device@gpu:1 by copy-engine", "cudaMemcpyPeerAsync"),
        ("device@gpu:0 -> device@gpu:1 by copy-engine[api=async]", "cudaMemcpyAsync"),
        ("device@gpu:0 -> device@gpu:0 by copy-engine", "cudaMemcpyAsync"),
        (
            "pageable@numa:0 -> pageable@numa:0 by cpu",
            "memcpy in 1 thread, pageable host memory",
        ),
        (
            "pageable@numa:0 -> pinned@numa:1 by cpu[threads=63]",
            "memcpy in 63 threads, pageable host memory to pinned host memory",
        ),
        (
            "pinned@numa:0 -> device@gpu:0 by copy-engine; "
            "device@gpu:0 -> pinned@numa:0 by copy-engine",
            "cudaMemcpyAsync in both directions at once, pinned host memory",
        ),
        (
            "file@file:scratch -> pageable@numa:0 by direct-io[depth=1]",
            "read(2) with O_DIRECT[depth=1], file:scratch to pageable host memory",
        ),
        ("pinned@numa:0 -> device@gpu:0 by dma2[x=1]", "dma2[x=1], pinned host memory"),
    ],
)
def test_a_transfer_is_described_by_its_call_and_its_memory(text: str, call: str) -> None:
    assert said(text) == call


def test_traits_of_a_profile_say_which_memory_needs_no_name() -> None:
    traits = msgspec.convert(
        {"memories": [{"name": "hbm", "places": ["gpu"], "reference": "gpu"}]}, Traits
    )
    path = Workload.parse("pinned@numa:0 -> hbm@gpu:0 by copy-engine").transfers
    assert call_text(path, traits) == "cudaMemcpyAsync, pinned host memory"
    assert call_text(path) == "cudaMemcpyAsync, pinned host memory to hbm GPU memory"
