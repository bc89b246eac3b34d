"""What the presets plan with the real registry on captured machines: enough, and in their time."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import msgspec
import pytest

from waywiser.curves.headline import all_cores_group
from waywiser.machine.assemble import machine_from
from waywiser.machine.capture import load_capture
from waywiser.machine.catalogue import list_executors, list_operations
from waywiser.machine.machine import FilePlace, Machine
from waywiser.measure.plan.outlook import outlook
from waywiser.measure.plan.plan import Plan, make_plan
from waywiser.measure.plan.points import PlannedPoint
from waywiser.measure.plan.preset import Request, find_preset
from waywiser.words import Workload

PEER = "device@gpu:0 -> device@gpu:1"
CAPTURES = Path(__file__).resolve().parents[2] / "captures"

FILES = (
    FilePlace("scratch", "/var/tmp", scratch=True, bytes=2**30, filesystem="ext4"),
    FilePlace("tmpfs", "/dev/shm", scratch=True, bytes=2**30, filesystem="tmpfs"),
)


def h200(gpus: int) -> Machine:
    """As captured from a machine of eight, with so many of them visible and places for files."""
    machine = machine_from(load_capture(CAPTURES / "h200-vm-8gpu.json"))
    seen = range(gpus)
    kept = tuple(
        msgspec.structs.replace(gpu, peers=tuple(p for p in gpu.peers if p in seen))
        for gpu in machine.gpus[:gpus]
    )
    return msgspec.structs.replace(machine, gpus=kept, files=FILES)


@cache
def usual(gpus: int) -> Plan:
    return make_plan(h200(gpus), Request())


@pytest.fixture(scope="module")
def one() -> Plan:
    return usual(1)


@pytest.fixture(scope="module")
def eight() -> Plan:
    return usual(8)


def curves(of: Plan) -> set[str]:
    return {point.curve.text for point in of.points if not point.conditional}


@pytest.mark.parametrize(("gpus", "seconds"), [(1, 118), (2, 166), (4, 226), (8, 354)])
def test_everything_is_expected_to_have_its_time(gpus: int, seconds: float) -> None:
    found = usual(gpus)
    expected = outlook(found)
    assert expected.seconds <= found.deadline_seconds <= seconds
    assert not expected.skipped
    assert expected.processes == 4 * (1 + (gpus > 1))


def test_the_plan_is_made_to_fit(one: Plan, eight: Plan) -> None:
    """The cut is for machines that are larger or slower: here every octave is in it."""
    h2d, peer = (f"{ends} by copy-engine" for ends in ("pinned@numa:0 -> device@gpu:0", PEER))
    for plan, text in ((one, h2d), (eight, h2d), (eight, peer)):
        assert [p.size for p in plan.points if p.curve.text == text] == [2**n for n in range(3, 31)]


def test_no_way_is_left_without_a_size(one: Plan) -> None:
    """Whatever has to be cut: of every curve that was to be measured something is."""
    roomy = make_plan(h200(1), Request(sizes="1MiB"))
    laid_out = {text for text in curves(roomy) if " as " in text}
    moved = {text for text in curves(roomy) if " by " in text and "; " not in text}
    assert laid_out < moved
    assert not {text for text in moved if "flushed" not in text and "dirtied" not in text} - curves(
        one
    )


LITERATURE = {
    # as in the table of docs/catalogue.md: what the literature measures -> a series of it here
    "cudaMemcpyAsync, pageable": r"pageable@numa:0 -> device@gpu:0 by copy-engine",
    "and back": r"device@gpu:0 -> pageable@numa:0 by copy-engine",
    "pageable, caches flushed": r"pageable@numa:0 -> device@gpu:0 by copy-engine \(flushed\)",
    "cudaMemcpyAsync, pinned": r"pinned@numa:0 -> device@gpu:0 by copy-engine",
    "pinned and back": r"device@gpu:0 -> pinned@numa:0 by copy-engine",
    "what cudaHostAlloc gives": r"pinned\[from=host-alloc\]@numa:0 -> device@gpu:0 by copy-engine",
    "pinned, caches flushed": r"pinned@numa:0 -> device@gpu:0 by copy-engine \(flushed\)",
    "source dirtied": r"pinned@numa:0 -> device@gpu:0 by copy-engine \(dirtied\)",
    "synchronous cudaMemcpy": r"pinned@numa:0 -> device@gpu:0 by copy-engine\[api=sync\]",
    "write-combined": r"write-combined@numa:0 -> device@gpu:0 by copy-engine",
    "write-combined and back": r"device@gpu:0 -> write-combined@numa:0 by copy-engine",
    "hidden staging copy": r"pageable@numa:0 -> pinned@numa:0 by copy-engine",
    "libc memcpy": r"pageable@numa:0 -> pageable@numa:0 by cpu",
    "by several threads": r"pageable@numa:0 -> pageable@numa:0 by cpu\[threads=\d+\]",
    "memcpy, caches flushed": r"pageable@numa:0 -> pageable@numa:0 by cpu \(flushed\)",
    "huge pages": r"pageable\[pages=huge\]@numa:0 -> .* by cpu",
    "local device copy": r"device@gpu:0 -> device@gpu:0 by copy-engine",
    "local device copy by kernels": r"device@gpu:0 -> device@gpu:0 by sm",
    "duplex, pageable": r"pageable@numa:0 -> device@gpu:0 by copy-engine; device.*",
    "duplex, pinned": r"pinned@numa:0 -> device@gpu:0 by copy-engine; device.*",
    "zero-copy read": r"pinned@numa:0 -> device@gpu:0 by sm",
    "zero-copy write": r"device@gpu:0 -> pinned@numa:0 by sm",
    "zero-copy, the paper's grid": r"pinned@numa:0 -> device@gpu:0 by sm\[grid=paper\]",
    "zero-copy, duplex": r"pinned@numa:0 -> device@gpu:0 by sm; device.*",
    "prefetch": r"managed@numa:0 -> managed@gpu:0 by prefetch",
    "prefetch back": r"managed@gpu:0 -> managed@numa:0 by prefetch",
    "prefetch, duplex": r"managed@numa:0 -> managed@gpu:0 by prefetch; managed@gpu:0 -> .*",
    "advice": r"managed\[advice=preferred\]@numa:0 -> managed@gpu:0 by prefetch",
    "demand migration": r"managed@numa:0 -> managed@gpu:0 by page-fault",
    "demand migration back": r"managed@gpu:0 -> managed@numa:0 by page-fault",
    "demand migration by several threads": r"managed@gpu:0 -> .* by page-fault\[threads=\d+\]",
    "demand migration, duplex": r"managed@numa:0 -> managed@gpu:0 by page-fault; managed.*",
    "sparse chunks": r"managed@numa:0 -> managed@gpu:0 by page-fault\[chunk=65536\]",
    "sparse strides": r"managed@numa:0 -> managed@gpu:0 by page-fault\[stride=65536\]",
    "page-fault latency": r"page-fault-latency@gpu:0",
    "stream-ordered allocation": r"pinned@numa:0 -> device\[from=pool\]@gpu:0 by copy-engine",
    "VMM allocation": r"pinned@numa:0 -> device\[from=vmm\]@gpu:0 by copy-engine",
    "memory of another process": r"pinned@numa:0 -> device\[from=ipc\]@gpu:0 by copy-engine",
    "3-D copies": r"pinned@numa:0 -> device@gpu:0 by copy-engine as box\[.*\]",
    "3-D by a kernel": r"pinned@numa:0 -> device@gpu:0 by sm as box\[.*\]",
    "pack, copy, unpack": r"pinned@numa:0 -> device@gpu:0 by pack as box\[.*\]",
    "a face across the rows": r"device@gpu:0 -> pinned@numa:0 by sm as box\[height=256,width=8\]",
    "scattered pieces, a loop": r"pinned@numa:0 -> device@gpu:0 by copy-engine as list\[.*\]",
    "scattered pieces, batched": r"device@gpu:0 -> pinned@numa:0 by batch as list\[.*\]",
    "scattered pieces, gathered": r"pinned@numa:0 -> device@gpu:0 by sm as list\[piece=4096\]",
    "scattered pieces, packed": r"pinned@numa:0 -> device@gpu:0 by pack as list\[.*\]",
    **{
        f"contiguous in host memory, {path} by {executor}": rf"{path} by {executor} as "
        rf"list\[piece=(4096|28672|131072),scattered={side}\]"
        for path, side in (
            ("pinned@numa:0 -> device@gpu:0", "destination"),
            ("device@gpu:0 -> pinned@numa:0", "source"),
        )
        for executor in ("gather-scatter", "sm", "batch", "copy-engine")
    },
    "O_DIRECT reads": r"file@file:scratch -> (pageable|pinned)@numa:0 by direct-io",
    "O_DIRECT writes": r"(pageable|pinned)@numa:0 -> file@file:scratch by direct-io",
    "queue depth": r"file@file:scratch -> .* by direct-io\[depth=\d+\]",
    "block size": r".* -> file@file:scratch by direct-io\[block=\d+\]",
    "buffered I/O": r"file@file:scratch -> .* by buffered-io",
    "mapped, warm": r"mapped@file:scratch -> pageable@numa:0 by cpu",
    "mapped, cold": r"mapped\[state=cold\]@file:scratch -> pageable@numa:0 by cpu",
    "tmpfs": r"mapped@file:tmpfs -> pageable@numa:0 by cpu",
    "staged by pinned slots": r"pageable@numa:0 -> device@gpu:0 by staged",
    "staged and back": r"device@gpu:0 -> pageable@numa:0 by staged",
    "staged, duplex": r"pageable@numa:0 -> device@gpu:0 by staged; device.*",
    "disk to GPU": r"file@file:scratch -> device@gpu:0 by staged",
    "page cache to GPU": r"file\[state=warm\]@file:scratch -> device@gpu:0 by staged",
    "tmpfs to GPU": r"file\[state=warm\]@file:tmpfs -> device@gpu:0 by staged",
    "GPU to disk": r"device@gpu:0 -> file@file:scratch by staged",
    "the timer itself": r"empty-interval@gpu:0",
    "kernel launch": r"kernel-launch@gpu:0",
    "launch and synchronise": r"launch-synchronize@gpu:0",
    "cudaDeviceSynchronize": r"device-synchronize@gpu:0",
    "cudaStreamSynchronize": r"stream-synchronize@gpu:0",
    "event record": r"event-record@gpu:0",
    "event query": r"event-query@gpu:0",
    "graph instantiate": r"graph-instantiate@gpu:0",
    "graph launch": r"graph-launch@gpu:0",
    "graph of copies": r"graph-launch\[of=copy\]@gpu:0",
    "cudaMalloc": r"device-malloc@gpu:0",
    "cudaMallocAsync": r"device-malloc-async@gpu:0",
    "cudaMallocManaged": r"managed-malloc@gpu:0",
    "cudaHostRegister": r"host-register@numa:0",
    "cudaHostUnregister": r"host-unregister@numa:0",
    "malloc": r"malloc@numa:0",
    "malloc and first touch": r"malloc-touch\[bytes=\d+\]@numa:0",
    "mmap": r"mmap@numa:0",
    "mmap in huge pages": r"mmap-huge-touch@numa:0",
    "system atomics": r"system-atomic@gpu:0",
    "pointer chase, local": r"sm-latency@gpu:0",
    "pointer chase into the host": r"sm-latency\[memory=numa:0\]@gpu:0",
    "pointer chase of a core": r"core-latency@numa:0",
}

BETWEEN_GPUS = {
    "GPUToGPUPeer": r"device@gpu:0 -> device@gpu:1 by copy-engine",
    "GPUToGPU, no peer access": r"device@gpu:0 -> device@gpu:1 by copy-engine\[peer=off\]",
    "duplex": r"device@gpu:0 -> device@gpu:1 by copy-engine; device@gpu:1 -> device@gpu:0.*",
    "peer reads by kernels": r"device@gpu:0 -> device@gpu:1 by sm",
    "peer writes by kernels": r"device@gpu:0 -> device@gpu:1 by sm\[side=push\]",
    "3-D to a peer": r"device@gpu:0 -> device@gpu:1 by copy-engine as box\[.*\]",
    "pointer chase into a peer": r"sm-latency\[memory=gpu:1\]@gpu:0",
    "prefetch to a peer": r"managed@gpu:0 -> managed@gpu:1 by prefetch",
    "demand migration to a peer": r"managed@gpu:0 -> managed@gpu:1 by page-fault",
    "over several links": r"pinned@numa:0 -> device@gpu:0 by relay",
    "over several links, back": r"device@gpu:0 -> pinned@numa:0 by relay",
    "pageable over several links": r"pageable@numa:0 -> device@gpu:7 by relay",
    "over several links, duplex": r"pinned@numa:0 -> device@gpu:0 by relay; device.*",
    "host to all": r"pinned@numa:0 -> device@gpu:0 by copy-engine; .*gpu:7 by copy-engine",
    "the last pair": r"device@gpu:7 -> device@gpu:6 by copy-engine",
}


@pytest.mark.parametrize("row", LITERATURE)
def test_every_row_of_the_literature_is_in_standard(row: str, one: Plan, eight: Plan) -> None:
    for plan in (one, eight):
        assert any(re.fullmatch(LITERATURE[row], text) for text in curves(plan)), row


@pytest.mark.parametrize("row", BETWEEN_GPUS)
def test_every_row_between_gpus_is_in_standard(row: str, eight: Plan) -> None:
    assert any(re.fullmatch(BETWEEN_GPUS[row], text) for text in curves(eight)), row


def test_every_executor_and_operation_has_its_part(one: Plan) -> None:
    texts = curves(one)
    two, full = curves(usual(2)), curves(make_plan(h200(1), Request("full")))
    for executor in list_executors():
        if executor.traits.route == "between ranks":
            assert not any(f" by {executor.name}" in text for text in texts | two | full)
            continue
        found = any(f" by {executor.name}" in text for text in texts | two)
        assert found != executor.survey_only, executor.name
        assert found or any(f" by {executor.name}" in text for text in full), executor.name
    unsupported_paths = {unsupported.path.split("@")[0] for unsupported in one.unsupported_paths}
    for operation in list_operations():
        if operation.places == ("rank",):
            assert not any(text.startswith(operation.name) for text in texts | two | full)
            continue
        starts = (f"{operation.name}@", f"{operation.name}[")
        assert operation.name in unsupported_paths or any(t.startswith(starts) for t in texts)


def test_operations_take_a_small_part_of_the_time(one: Plan) -> None:
    def seconds(point: PlannedPoint) -> float:
        return point.processes * point.unmeasured_seconds

    spent = sum(seconds(point) for point in one.points if point.curve.operation is not None)
    assert spent <= 0.15 * sum(map(seconds, one.points))


def test_quick_has_the_new_ways_by_default_settings() -> None:
    quick = make_plan(h200(1), Request(preset="quick"))
    assert outlook(quick).seconds <= 20
    texts = curves(quick)
    for path in ("pinned@numa:0 -> device@gpu:0 by sm", "device@gpu:0 -> pinned@numa:0 by sm"):
        assert path in texts
    assert not [text for text in texts if "[" in text or " as " in text]


def test_full_goes_to_eight_gibibytes_where_memory_allows() -> None:
    only = ("pinned@numa:0 -> device@gpu:0 by copy-engine",)
    full = make_plan(h200(1), Request(preset="full", only=only, memory_bytes=2**34))
    assert max(point.size for point in full.points) == 2**33
    less = make_plan(h200(1), Request(preset="full", only=only))
    assert max(point.size for point in less.points) == 2**31
    assert [r.reason for r in less.unsupported_paths] == [
        "4 GiB needs 8 GiB of buffers, --memory allows 4 GiB"
    ]


def test_the_seconds_of_a_preset_grow_with_the_gpus_up_to_eight() -> None:
    standard = find_preset("standard")
    assert standard.deadline_seconds(0) == standard.deadline_seconds(1)
    assert standard.deadline_seconds(1) < standard.deadline_seconds(4)
    assert standard.deadline_seconds(8) == standard.deadline_seconds(64)


@pytest.mark.parametrize("preset", ["quick", "standard", "full"])
def test_a_machine_without_gpus_copies_by_all_cores_of_a_node_and_between_nodes(
    preset: str,
) -> None:
    machine = machine_from(load_capture(CAPTURES / "two-socket-4gpu.json"))
    nodes = [node for node in machine.numa if node.cpus]
    alone = msgspec.structs.replace(machine, gpus=(), gpu_reason="no driver")
    planned = curves(make_plan(alone, Request(preset=preset)))
    by_all = [text for text in planned if " by cpu[threads=" in text and ";" not in text]
    by_all = [text for text in by_all if all_cores_group(Workload.parse(text), alone)]
    ends = {text.partition(" by ")[0] for text in by_all}
    first, second = (f"pageable@numa:{node.index}" for node in nodes[:2])
    assert {f"{first} -> {first}", f"{first} -> {second}"} <= ends
    with_gpus = curves(make_plan(machine, Request(preset="quick")))
    assert not any(" by cpu[threads=" in text for text in with_gpus)
