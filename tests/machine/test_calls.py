"""The calls with which programs make transfers."""

from __future__ import annotations

import msgspec
import pytest

from waywiser.machine.calls import call_text
from waywiser.machine.traits import DECLARED, Call, ExecutorTraits, Traits, declared_executors
from waywiser.words import Workload


def said(text: str) -> str:
    return call_text(Workload.parse(text).transfers)


def test_every_executor_of_this_version_declares_a_call() -> None:
    declared = [DECLARED.executor(name) for name in declared_executors()]
    missing = {each.name for each in declared if not each.calls}
    assert missing == {each.name for each in declared if each.route == "between ranks"}


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
        (
            "pageable@numa:0 -> file[state=warm]@file:scratch by buffered-io",
            "write(2), pageable host memory to file[state=warm] file:scratch",
        ),
        (
            "pageable@numa:0 -> pageable@numa:0 by cpu[stores=streaming]",
            "copy with streaming stores in 1 thread, pageable host memory",
        ),
        (
            "pageable@numa:0 -> device@gpu:0 by staged[chunk=4194304,threads=4]",
            "waywiser.transfer.copy[chunk=4MiB] in 4 threads, pageable host memory",
        ),
        (
            "pinned@numa:0 -> device@gpu:0 by batch as list[piece=1048576]",
            "cudaMemcpyBatchAsync as list[piece=1MiB], pinned host memory",
        ),
        (
            "pinned@numa:0 -> device@gpu:0 by dma2[chunk=65536,x=1] as list[piece=28672]",
            "dma2[chunk=64KiB,x=1] as list[piece=28KiB], pinned host memory",
        ),
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


def test_the_number_of_threads_is_shown_only_where_it_is_known() -> None:
    """The default of staged copies depends on the machine."""
    assert said("pageable@numa:0 -> device@gpu:0 by staged") == (
        "waywiser.transfer.copy, pageable host memory"
    )


def test_calls_of_a_profile_count_before_those_of_this_version() -> None:
    text = "pinned@numa:0 -> device@gpu:0 by copy-engine[mode=fast]"
    path = Workload.parse(text).transfers
    stored = Call("copyFast", settings={"mode": "fast"})
    assert call_text(path, Traits((ExecutorTraits("copy-engine", calls=(stored,)),))) == (
        "copyFast, pinned host memory"
    )
    other = Workload.parse("pinned@numa:0 -> device@gpu:0 by copy-engine").transfers
    assert call_text(other, Traits((ExecutorTraits("copy-engine", calls=(stored,)),))) == (
        "copy-engine, pinned host memory"
    )


def test_a_profile_without_calls_has_those_of_this_version() -> None:
    earlier = msgspec.json.decode(
        b'{"executors": [{"name": "copy-engine", "family": "copies of the runtime"},'
        b' {"name": "dma2"}]}',
        type=Traits,
    )
    path = Workload.parse("pinned@numa:0 -> device@gpu:0 by copy-engine").transfers
    assert call_text(path, earlier) == "cudaMemcpyAsync, pinned host memory"
    unknown = Workload.parse("pinned@numa:0 -> device@gpu:0 by dma2").transfers
    assert call_text(unknown, earlier) == "dma2, pinned host memory"


def test_a_call_between_two_places_makes_no_local_copy() -> None:
    call = Call("cudaMemcpyPeerAsync", between=("gpu", "gpu"), two_places=True)
    made = {
        text: call.makes(Workload.parse(f"{text} by copy-engine").transfers[0])
        for text in (
            "device@gpu:0 -> device@gpu:1",
            "device@gpu:0 -> device@gpu:0",
            "pinned@numa:0 -> device@gpu:1",
        )
    }
    assert list(made.values()) == [True, False, False]


@pytest.mark.parametrize("kind", ["pinned", "pageable"])
def test_host_memory_of_a_rank_is_host_memory(kind: str) -> None:
    text = said(f"{kind}[node=0]@rank:0 -> {kind}[node=0]@rank:1 by mpi")
    assert text == f"mpi, {kind}[node=0] host memory"
    text = said("device[gpu=1]@rank:0 -> device[gpu=1]@rank:1 by mpi")
    assert text == "mpi, device[gpu=1] GPU memory"
