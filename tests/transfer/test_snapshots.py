"""Snapshots have the tensors as they were, whatever the GPU does next; over the fake GPU."""

from __future__ import annotations

import gc
import threading
from typing import Any

import numpy as np
import pytest
from fake_gpu import GpuArray, Stream, configure, default_stream, gate_on, random_array, same_bytes

from transfer import torch_stand_in
from transfer.test_load_files import NO_TORCH, load_module
from waywiser import transfer
from waywiser.transfer.errors import (
    InvalidOperand,
    InvalidTransfer,
    TransferTimeout,
    UnsupportedTransfer,
)

LARGE = (5 << 20) + 77


@pytest.fixture
def snapshots(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module under test, over the stand-in for torch."""
    return load_module(monkeypatch, torch_stand_in)


class GpuTensor(torch_stand_in.Tensor):
    """A tensor of the stand-in with memory on a fake GPU."""

    def __init__(self, values: np.ndarray[Any, Any], gpu: int = 0) -> None:
        kind = getattr(torch_stand_in, str(values.dtype))
        super().__init__(values, kind)
        self.device = torch_stand_in.device("cuda", gpu)
        self.there = GpuArray(values.shape, values.dtype, gpu=gpu).set(values)
        self.__cuda_array_interface__ = self.there.__cuda_array_interface__

    __dlpack__ = None  # type: ignore[assignment]

    def change(self) -> None:
        """Puts a copy of other bytes into the default stream, from memory that is pinned."""
        other = transfer.pinned_empty(self.array.shape, self.array.dtype)
        other[...] = 7
        transfer.copy_async(self.there, other)


def tensors(gpu: int = 0) -> dict[str, Any]:
    return {
        "large": GpuTensor(random_array(LARGE, seed=1), gpu),
        "small": GpuTensor(random_array((3, 5), np.float32, seed=2), gpu),
        "empty": GpuTensor(np.zeros((0, 4), np.int64), gpu),
    }


def expect_equal(found: dict[str, Any], expected: dict[str, Any]) -> None:
    assert list(found) == list(expected)
    for name, tensor in expected.items():
        assert tuple(found[name].shape) == tuple(tensor.shape)
        assert found[name].dtype is tensor.dtype
        assert same_bytes(found[name].array, tensor.array), name


@pytest.mark.parametrize("pinned", [False, True])
def test_a_change_that_is_queued_at_once_is_not_in_it(snapshots: Any, pinned: bool) -> None:
    configure("d2h=0.5")
    known = tensors()
    made = snapshots.snapshot(known, pinned=pinned)
    made.wait_source_read()
    assert not made.source_read_pending
    for tensor in known.values():
        if tensor.nbytes:
            tensor.change()
    expect_equal(made.result(), known)
    assert made.done()
    assert (known["large"].there.get() == 7).all()


def test_it_says_that_it_would_block(snapshots: Any) -> None:
    known = tensors()
    gate = gate_on(default_stream(0))
    pageable = snapshots.snapshot(known)
    pinned = snapshots.snapshot(known, pinned=True)
    assert pageable.source_read_pending
    assert not pinned.source_read_pending
    pinned.wait_source_read()
    with pytest.raises(TransferTimeout):
        pageable.result(timeout=0.01)
    ordered = threading.Thread(target=pageable.wait_source_read)
    ordered.start()
    ordered.join(0.05)
    assert ordered.is_alive()
    assert not pageable.done()
    gate.open()
    ordered.join()
    assert not pageable.source_read_pending
    for made in (pageable, pinned):
        expect_equal(made.result(), known)


def test_another_stream_can_be_ordered(snapshots: Any) -> None:
    known = tensors()
    gate = gate_on(default_stream(0))
    made = snapshots.snapshot(known, pinned=True)
    other = Stream(0)
    made.wait(other.handle)
    made.wait_source_read(other.handle)
    assert not made.done()
    gate.open()
    other.synchronize()
    assert made.done()
    expect_equal(made.result(), known)


def test_memory_is_used_again(snapshots: Any) -> None:
    known = tensors()
    first = snapshots.snapshot(known).result()
    for tensor in known.values():
        tensor.array = random_array(tensor.shape, tensor.array.dtype, seed=5)
        if tensor.nbytes:
            tensor.there.set(tensor.array)
    second = snapshots.snapshot(known, into=first).result()
    assert all(second[name] is first[name] for name in known)
    expect_equal(second, known)


def test_several_gpus_and_the_host(snapshots: Any) -> None:
    known = {
        "a": tensors(0)["large"],
        "b": tensors(1)["small"],
        "c": torch_stand_in.Tensor(random_array(9), torch_stand_in.uint8),
    }
    made = snapshots.snapshot(known)
    known["c"] = torch_stand_in.Tensor(known["c"].array.copy(), torch_stand_in.uint8)
    expect_equal(made.result(), known)


def test_nothing_has_ended(snapshots: Any) -> None:
    made = snapshots.snapshot({})
    assert made.done() and not made.source_read_pending
    made.wait_source_read()
    made.wait()
    assert made.result() == {}


def test_tensors_that_are_dropped_early_are_kept(snapshots: Any) -> None:
    known = tensors()
    del known["empty"]  # to free its memory would wait for the GPU
    values = {name: tensor.array for name, tensor in known.items()}
    gate = gate_on(default_stream(0))
    made = snapshots.snapshot(known)
    del known
    gc.collect()
    gate.open()
    found = made.result()
    assert all(same_bytes(found[name].array, values[name]) for name in values)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"tensors": [1]}, "not a dict of tensors"),
        ({"pinned": 1}, "pinned is 1, which is neither"),
        ({"into": 3}, "not a dict of tensors"),
        ({"into": {}}, "only one of tensors and into has 'x'"),
    ],
)
def test_arguments_that_make_no_sense(snapshots: Any, arguments: Any, says: str) -> None:
    known = {"x": torch_stand_in.Tensor(random_array(9), torch_stand_in.uint8)}
    with pytest.raises((InvalidOperand, InvalidTransfer), match=says) as raised:
        snapshots.snapshot(**{"tensors": known, **arguments})
    assert "\n" not in str(raised.value)


def test_memory_that_does_not_fit(snapshots: Any) -> None:
    known = {"x": torch_stand_in.Tensor(random_array(9), torch_stand_in.uint8)}
    for other, says in (
        (torch_stand_in.Tensor(random_array(8), torch_stand_in.uint8), "and shape"),
        (torch_stand_in.Tensor(random_array(9).view("i1"), torch_stand_in.int8), "torch.int8"),
        (GpuTensor(random_array(9)), "into has tensor 'x' on cuda:0"),
    ):
        with pytest.raises(InvalidTransfer, match=says):
            snapshots.snapshot(known, into={"x": other})


class TestArrays:
    def test_they_are_copied_beside_the_stream(self) -> None:
        sent = random_array(LARGE, seed=3)
        source, target = GpuArray(LARGE).set(sent), np.zeros(LARGE, np.uint8)
        handle = transfer.snapshot_batch(dsts=[target], srcs=[source])
        handle.wait_source_read()
        assert handle.result() == LARGE
        assert same_bytes(target, sent)

    def test_only_from_a_gpu_to_the_host(self) -> None:
        host, there = np.zeros(9, np.uint8), GpuArray(9)
        with pytest.raises(UnsupportedTransfer, match="the sources are on the host"):
            transfer.snapshot_batch(dsts=[host], srcs=[host.copy()])
        with pytest.raises(UnsupportedTransfer, match="the destinations are on a GPU"):
            transfer.snapshot_batch(dsts=[there], srcs=[GpuArray(9)])

    def test_every_handle_orders_a_change_of_its_sources(self) -> None:
        sent = random_array(LARGE, seed=4)
        source, target = GpuArray(LARGE).set(sent), np.zeros(LARGE, np.uint8)
        gate = gate_on(default_stream(0))
        handle = transfer.copy_async(target, source)
        assert handle.source_read_pending
        gate.open()
        handle.wait_source_read()
        assert not handle.source_read_pending
        handle.result()
        assert same_bytes(target, sent)


def test_with_torch_a_tensor_of_the_host_is_copied_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch", reason=NO_TORCH)
    module = load_module(monkeypatch, None)
    tensor = torch.arange(1000, dtype=torch.bfloat16).requires_grad_()
    found = module.snapshot({"x": tensor, "t": tensor.detach()[::2]}).result()
    assert torch.equal(found["x"], tensor) and not found["x"].requires_grad
    assert torch.equal(found["t"], tensor[::2])
