"""What explain() says of a list is what its copy does next: counted copies and kernels of the fake
GPU. Nothing is copied by explain() itself."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import fake_gpu
import numpy as np
import pytest
from fake_gpu import GpuArray, random_array

from waywiser import transfer


def counted() -> tuple[int, int]:
    """Copies and kernels since configure()."""
    return fake_gpu.copies(), fake_gpu.launches()


def pinned(shape: tuple[int, ...]) -> Any:
    return transfer.pinned_empty(shape, np.uint8)


def on_gpu(shape: tuple[int, ...]) -> Any:
    return GpuArray(shape)


def on_other_gpu(shape: tuple[int, ...]) -> Any:
    return GpuArray(shape, gpu=1)


def pageable(shape: tuple[int, ...]) -> Any:
    return np.zeros(shape, np.uint8)


@dataclass
class Case:
    """Blocks between two kinds of memory, what is said, and least and most copies and kernels."""

    to: Any
    of: Any
    count: int
    block: int
    said: str
    copies: tuple[int, int]
    kernels: tuple[int, int] = (0, 0)
    step: int = 2  # from block to block of the source
    shuffled: str = "to"  # the side whose blocks are in a random order
    configuration: str = ""
    options: dict[str, Any] = field(default_factory=dict)


MANY = 10**6
PIPELINE: dict[str, Any] = {
    "count": 300, "block": 64 << 10, "step": 1, "copies": (4, MANY), "kernels": (3, MANY),
}  # fmt: skip
STAGED = "threads copy through pinned slots of 256 KiB: the memory is pageable; up to 2 threads"
CASES = {
    "batch": Case(
        on_gpu, on_other_gpu, 600, 1024, "; 3 calls of the runtime, of up to 256 copies", (3, 3)
    ),
    "one batch": Case(on_gpu, on_other_gpu, 200, 512, "; one call of the runtime", (1, 1)),
    "no batches": Case(
        on_gpu, on_other_gpu, 70, 512, "; one copy for each piece", (70, 70),
        configuration="without=batch",
    ),
    "kernel": Case(
        pinned, on_gpu, 600, 1024, "; moved by up to 2 multiprocessors of gpu:0", (0, 1), (1, 1)
    ),
    "kernel within": Case(
        on_gpu, on_gpu, 601, 1024, "; moved by up to 5 multiprocessors of gpu:0", (0, 1), (1, 1)
    ),
    "gathered": Case(
        pinned, on_gpu, said="; gathered in staging memory of gpu:0 by up to 8 multiprocessors, "
        "then copied in chunks of up to 8 MiB: the pieces are contiguous in host memory",
        shuffled="from", **PIPELINE,
    ),
    "scattered": Case(
        on_gpu, pinned, said="; copied in chunks of up to 8 MiB to staging memory of gpu:0 and "
        "scattered there by up to 8 multiprocessors: the pieces are contiguous", **PIPELINE,
    ),
    "few": Case(on_gpu, pinned, 3, 2048, "; one copy for each piece", (3, 3)),
    "plain": Case(
        on_gpu, pinned, 40, 2048, "; one copy for each piece: plain copies were asked for",
        (40, 40), options={"plain": True},
    ),
    "neighbours": Case(
        on_gpu, pinned, 90, 96, "; one copy (the pieces are neighbours)", (1, 1), step=1,
        shuffled="", options={"plain": True},
    ),
    "staged": Case(on_gpu, pageable, 500, 1000, STAGED, (0, MANY), (0, MANY)),
    "staged back": Case(pageable, on_gpu, 500, 1000, STAGED, (0, MANY), (0, MANY)),
    "few pageable": Case(
        pageable, on_gpu, 5, 3000, "; one copy for each piece: too small for staging", (5, 5)
    ),
    "no peers": Case(
        on_gpu, on_other_gpu, 99, 4096, "; staged through pinned slots of 256 KiB: the GPUs have "
        "no peer access; up to 2 threads", (0, MANY), (0, MANY), configuration="no_peers=all",
    ),
    "host": Case(
        pageable, pageable, 50, 512, "list of 50 pieces, 25600 bytes in all; copied by the calling "
        "thread", (0, 0),
    ),
    "large in host": Case(
        pageable, pinned, 50, 200 << 10, "; threads copy between host memories; up to 2 threads",
        (0, 0),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_what_is_said_of_blocks_is_done(name: str) -> None:
    case = CASES[name]
    source = case.of((case.step * case.count, case.block))
    values = random_array((case.step * case.count, case.block), seed=case.count)
    if isinstance(source, GpuArray):
        source.set(values)
    else:
        source[...] = values
    destination = case.to((case.count, case.block))
    order = np.random.default_rng(3).permutation(case.count)
    to_index = order if case.shuffled == "to" else np.arange(case.count)
    from_index = case.step * (order if case.shuffled == "from" else np.arange(case.count))
    fake_gpu.configure(case.configuration)
    with transfer.Context(threads=2, policy="off", **case.options) as context:
        said = context.explain(destination, source, to_index, from_index)
        assert case.said in said
        assert f"list of {case.count} pieces" in said and "\n" not in said
        assert counted() == (0, 0), "explain() copies nothing"
        context.copy_blocks(destination, source, to_index, from_index)
        copies, kernels = counted()
    assert case.copies[0] <= copies <= case.copies[1]
    assert case.kernels[0] <= kernels <= case.kernels[1]
    got = destination.get() if isinstance(destination, GpuArray) else destination
    np.testing.assert_array_equal(got[to_index], values[from_index])


def test_each_kind_of_memory_of_a_batch_has_its_line() -> None:
    sizes = [1000, 3, 70000, 64000] * 30
    destinations = [GpuArray(size) for size in sizes]
    sources: list[Any] = [random_array(size, seed=size) for size in sizes]
    for i in range(0, len(sizes), 4):
        sources[i] = transfer.pinned_empty(1000, np.uint8)
    fake_gpu.configure("")
    with transfer.Context(threads=2, policy="off") as context:
        lines = context.explain(dsts=destinations, srcs=sources).split("\n")
        assert counted() == (0, 0)
    assert len(lines) == 2
    assert lines[0].startswith("list of 30 pieces of 1000 B, pinned memory to gpu:0; ")
    assert lines[1].startswith("list of 90 pieces of 3 B to 68.36 KiB, pageable memory to gpu:0; ")
    assert "threads copy through pinned slots" in lines[1]


def test_strided_arrays_are_lists_too() -> None:
    source, destination = pinned((40, 96)), GpuArray((40, 96))
    fake_gpu.configure("")
    with transfer.Context(policy="off", plain=True) as context:
        said = context.explain(destination.view((40, 48), (96, 1)), source[:, :48])
        assert said == (
            "list of 40 pieces of 48 B, pinned memory to gpu:0; one copy for each piece: plain "
            "copies were asked for"
        )
        context.copy(destination.view((40, 48), (96, 1)), source[:, :48])
    assert fake_gpu.copies() == 40


def test_a_policy_of_lists_is_named_with_its_time(tmp_path: Path) -> None:
    row = {
        "from_bytes": 512, "bytes": 4096, "count": 16, "threads": 1, "executor": "batch",
        "settings": {}, "seconds": 2e-5, "low": 1.9e-5, "high": 2.1e-5, "next": None,
        "costs": {"threads": 1, "small_copy": None, "matrix_product": None},
    }  # fmt: skip
    kinds = {"from": "device", "to": "pinned", "relation": "", "peers_idle": False}
    policy = {
        "format": "waywiser-policy", "version": 1, "program": "0.1.0", "measured": "2026-11-23",
        "machine": {}, "classes": [{**kinds, "rows": [row]}],
    }  # fmt: skip
    file = tmp_path / "lists.json"
    file.write_text(json.dumps(policy))
    file.chmod(0o600)
    source, destination = GpuArray((900, 1024)), pinned((450, 1024))
    index = np.random.default_rng(4).permutation(450)
    with transfer.Context(policy=file) as context:
        fake_gpu.configure("")
        said = context.explain(destination, source, np.arange(450), 2 * index)
        assert said.endswith(
            "; 2 calls of the runtime, of up to 256 copies each: by the policy; policy "
            f"{file}: batch took 20 us (95 %: 19 us to 21 us) for 16 pieces of 4 KiB"
        )
        context.copy_blocks(destination, source, np.arange(450), 2 * index)
        assert counted() == (2, 0)


METHODS_OF_ROWS = {
    "gather-scatter": ({"chunk": "1048576", "slots": "2", "blocks": "6"}, (20, 60)),
    "sm": ({"blocks": "3"}, (0, 8)),
    "batch": ({}, (20, 24)),
    "copy-engine": ({}, (5200, 5200)),
}


@pytest.mark.parametrize("to_host", [True, False])
@pytest.mark.parametrize("executor", METHODS_OF_ROWS)
def test_rows_of_lists_that_are_contiguous_in_host_memory_are_followed(
    executor: str, to_host: bool, tmp_path: Path
) -> None:
    settings, (least, most) = METHODS_OF_ROWS[executor]
    times = {"seconds": 3e-3, "low": 2e-3, "high": 4e-3, "next": None, "costs": {}}
    row = {
        "from_bytes": 1, "bytes": 4096, "count": 1024, "pieces": 4096, "threads": 1,
        "executor": executor, "settings": settings, **times,
    }  # fmt: skip
    scattered = {**row, "count": 2, "executor": "batch", "settings": {}}
    kinds = {"from": "device", "to": "pinned"} if to_host else {"from": "pinned", "to": "device"}
    policy = {
        "format": "waywiser-policy", "version": 1, "machine": {},
        "classes": [{**kinds, "rows": [scattered], "host_contiguous": [row]}],
    }  # fmt: skip
    file = tmp_path / "machine.json"
    file.write_text(json.dumps(policy))
    file.chmod(0o600)
    count, block = 5200, 4096  # several parts of a list
    cache, pool = GpuArray((2 * count, block)), pinned((count, block))
    on_gpu_at = 2 * np.random.default_rng(6).permutation(count)
    values = random_array((2 * count, block), seed=7)
    cache.set(values)
    pool[...] = values[:count]
    to, of, to_at, of_at = (
        (pool, cache, np.arange(count), on_gpu_at) if to_host else
        (cache, pool, on_gpu_at, np.arange(count))
    )  # fmt: skip
    with transfer.Context(policy=file) as context:
        fake_gpu.configure("")
        said = context.explain(to, of, to_at, of_at)
        assert said.endswith(
            f": by the policy; policy {file}: {executor} took 3 ms (95 %: 2 ms to 4 ms) for 4096 "
            "pieces of 4 KiB that are contiguous in host memory"
        )
        assert f"list of {count} pieces" in said and "\n" not in said, "one method for all parts"
        if executor == "gather-scatter":
            assert "chunks of up to 1 MiB" in said and "up to 6 multiprocessors" in said
        context.copy_blocks(to, of, to_at, of_at)
        copies, kernels = counted()
        assert least <= copies <= most and (kernels > 0) == ("blocks" in settings)
        if to_host:
            np.testing.assert_array_equal(pool, values[on_gpu_at])
        else:
            np.testing.assert_array_equal(cache.get()[on_gpu_at], values[:count])
        backwards = np.arange(count)[::-1]
        said = context.explain(to, of, *((backwards, of_at) if to_host else (to_at, backwards)))
        assert said.endswith("batch took 3 ms (95 %: 2 ms to 4 ms) for 4096 pieces of 4 KiB")


@pytest.mark.parametrize("place", [on_gpu, pageable])
def test_errors_are_those_of_the_copy(place: Any) -> None:
    blocks, other = place((8, 64)), pinned((8, 64))
    for to_index, from_index in (
        ([0, 8], [0, 1]), ([0, 1], [-1, 1]), ([3, 3], [0, 1]), ([0, 1, 2], [0, 1]),
    ):  # fmt: skip
        with pytest.raises(transfer.TransferError) as expected:
            transfer.copy_blocks(blocks, other, to_index, from_index)
        with pytest.raises(type(expected.value)) as found:
            transfer.explain(blocks, other, to_index, from_index)
        assert str(found.value) == str(expected.value)
    for destinations, sources in (
        ([blocks, blocks], [other, pinned((8, 64))]), ([blocks], []),
        ([blocks, other], [other, other]),
    ):  # fmt: skip
        with pytest.raises(transfer.TransferError) as expected:
            transfer.copy_batch(dsts=destinations, srcs=sources)
        with pytest.raises(type(expected.value)) as found:
            transfer.explain(dsts=destinations, srcs=sources)
        assert str(found.value) == str(expected.value)


def test_one_form_of_a_copy_is_given() -> None:
    one, other = np.zeros(4), np.ones(4)
    for given, named in (
        ((one, other), {"dsts": [one], "srcs": [other]}), ((one,), {"srcs": [other]}),
        ((), {"dst_index": [0], "dsts": [one], "srcs": [other]}),
    ):  # fmt: skip
        with pytest.raises(transfer.InvalidOperand, match="pass dst and src, or dsts and srcs"):
            transfer.explain(*given, **named)
    with pytest.raises(transfer.InvalidOperand, match="srcs is None"):
        transfer.explain(dsts=[one])
    with pytest.raises(transfer.InvalidOperand, match="the source is None"):
        transfer.explain(one)
    assert transfer.explain(dsts=[], srcs=[]) == "nothing to copy"
    assert transfer.explain(one, one, [], []) == "nothing to copy"
    assert "one list" not in transfer.explain(dsts=[one], srcs=[other])


@pytest.mark.parametrize("place", [on_gpu, pageable])
def test_a_closed_context_explains_no_list(place: Any) -> None:
    context = transfer.Context(policy="off")
    context.close()
    with pytest.raises(transfer.InvalidTransfer, match="closed"):
        context.explain(place((4, 9)), pinned((4, 9)), [3, 0], [0, 1])
