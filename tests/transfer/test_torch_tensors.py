"""Tensors of torch on the CPU, which the real torch is asked for; skipped where it is not."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from fake_gpu import GpuArray, random_array, same_bytes

from waywiser import transfer

torch = pytest.importorskip("torch", reason="torch is not installed")

DTYPES = [
    "bool",
    "uint8",
    "int8",
    "int16",
    "int32",
    "int64",
    "float16",
    "bfloat16",
    "float32",
    "float64",
    "complex64",
    "complex128",
    "float8_e4m3fn",
    "float8_e5m2",
]


def bits(tensor: Any) -> bytes:
    return bytes(tensor.contiguous().view(-1).view(torch.uint8).numpy().tobytes())


@pytest.mark.parametrize("name", DTYPES)
def test_every_dtype(name: str) -> None:
    dtype = getattr(torch, name)
    source = torch.zeros(12, dtype=dtype)
    source.view(torch.uint8)[:] = torch.arange(source.nbytes) % 2
    destination = torch.zeros(12, dtype=dtype)
    transfer.copy(destination, source)
    assert bits(destination) == bits(source)
    back = transfer.to_host(source)
    assert (back.dtype, back.device.type) == (dtype, "cpu")
    assert bits(back) == bits(source)


@pytest.mark.parametrize("name", ["float32", "int64", "bool", "complex64"])
def test_tensors_and_arrays_of_numpy(name: str) -> None:
    array = random_array((3, 4), np.uint8).view("?" if name == "bool" else np.uint8)
    array = (array % 2).astype(name)
    tensor = torch.zeros((3, 4), dtype=getattr(torch, name))
    transfer.copy(tensor, array)
    assert same_bytes(tensor.numpy(), array)
    back = np.zeros_like(array)
    transfer.copy(back, tensor)
    assert same_bytes(back, array)


def test_strided_tensors() -> None:
    source = torch.arange(60, dtype=torch.float32).view(3, 4, 5)
    destination = torch.zeros(5, 3, 4)
    transfer.copy(destination.permute(1, 2, 0), source)
    assert torch.equal(destination.permute(1, 2, 0), source)


def test_to_and_from_a_gpu_array() -> None:
    source = torch.arange(5 << 20, dtype=torch.uint8)
    there, back = GpuArray(5 << 20), torch.zeros(5 << 20, dtype=torch.uint8)
    transfer.copy(there, source)
    transfer.copy_async(back, there).result()
    assert torch.equal(back, source)


def test_the_version_counter_of_the_destination_is_bumped(tmp_path: Any) -> None:
    source, destination = torch.ones(4), torch.zeros(4)
    (tmp_path / "file").write_bytes(bytes(16))
    calls = [
        lambda: transfer.copy(destination, source),
        lambda: transfer.copy_async(destination, source).result(),
        lambda: transfer.copy_batch(dsts=[destination], srcs=[source]),
        lambda: transfer.copy_blocks(destination, source, [0], [1]),
        lambda: transfer.read(tmp_path / "file", destination),
    ]
    for call in calls:
        before = destination._version
        call()
        assert destination._version > before
    assert source._version == 0
    before = destination._version
    transfer.explain(dsts=[destination], srcs=[source])
    transfer.explain(destination, source, [0], [1])
    assert destination._version == before, "nothing is written"


def test_autograd_notices_the_change() -> None:
    weights = torch.ones(4, requires_grad=True)
    saved = torch.ones(4)
    product = (weights * saved).sum()
    transfer.copy(saved, torch.zeros(4))
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        product.backward()


def test_destinations_that_require_grad() -> None:
    leaf = torch.zeros(4, requires_grad=True)
    for tensor in (leaf, leaf * 2, torch.nn.Parameter(torch.zeros(4))):
        with pytest.raises(ValueError, match="requires grad"):
            transfer.copy(tensor, torch.ones(4))
        with torch.no_grad():
            transfer.copy(tensor, torch.ones(4))
        assert torch.equal(tensor, torch.ones(4))
    transfer.copy(leaf.detach(), torch.zeros(4))
    transfer.copy(torch.zeros(4), leaf)  # a source may require it
    assert torch.equal(transfer.to_host(leaf), torch.zeros(4))


def test_tensors_of_inference_mode() -> None:
    with torch.inference_mode():
        tensor = torch.zeros(4)
        transfer.copy(tensor, torch.ones(4))
    transfer.copy(torch.zeros(4), tensor)


@pytest.mark.filterwarnings("ignore")
def test_tensors_without_plain_memory() -> None:
    fake_tensors = pytest.importorskip("torch._subclasses").FakeTensorMode
    complexes = torch.zeros(4, dtype=torch.complex64)
    with fake_tensors():
        fake = torch.zeros(4)
    for tensor, like in [
        (torch.zeros(4, device="meta"), torch.zeros(4)),
        (torch.zeros(4, 4).to_sparse(), torch.zeros(4, 4)),
        (torch.zeros(4, 4).to_sparse_csr(), torch.zeros(4, 4)),
        (fake, torch.zeros(4)),
        (complexes.conj(), complexes),
        (complexes.conj().imag, torch.zeros(4)),
        (torch.quantize_per_tensor(torch.zeros(4), 1.0, 0, torch.qint8), torch.zeros(4)),
    ]:
        for destination, source in ((like.clone(), tensor), (tensor, like)):
            with pytest.raises(transfer.UnsupportedTransfer):
                transfer.copy(destination, source)


def test_what_torch_and_numpy_call_otherwise() -> None:
    with pytest.raises(TypeError, match="uint16 to bfloat16") as caught:
        transfer.copy(torch.zeros(4, dtype=torch.bfloat16), np.zeros(4, np.uint16))
    assert isinstance(caught.value, transfer.TransferError)
    assert "view" in caught.value.remedy
    transfer.copy(torch.zeros(4, dtype=torch.bfloat16).view(torch.uint16), np.zeros(4, np.uint16))


def test_broadcast_destinations_are_errors() -> None:
    with pytest.raises(ValueError, match="share memory"):
        transfer.copy(torch.zeros(1).expand(4), torch.zeros(4))
    destination = torch.zeros(4)
    transfer.copy(destination, torch.ones(1).expand(4))
    assert torch.equal(destination, torch.ones(4))


def test_pinned_tensors() -> None:
    made = transfer.pinned_empty((3, 5), torch.bfloat16)
    assert (made.shape, made.dtype) == ((3, 5), torch.bfloat16)
    made.fill_(2)
    assert "copy engine" in transfer.explain(GpuArray(30), made.view(-1).view(torch.uint8))
    assert transfer.pinned_empty((0, 2), torch.int8).shape == (0, 2)


def test_large_tensors_come_to_the_host_in_memory_of_their_own() -> None:
    source = torch.arange(3 << 20, dtype=torch.int64).view(3, -1)
    made = transfer.to_host(source)
    assert made.shape == source.shape
    assert torch.equal(made, source)
    made.add_(1)


def test_index_tensors() -> None:
    source, destination = torch.arange(12.0).view(6, 2), torch.zeros(3, 2)
    index = torch.tensor([5, 1], dtype=torch.int32)
    transfer.copy_blocks(destination, source, torch.tensor([0, 2]), index)
    assert torch.equal(destination[[0, 2]], source[[5, 1]])


@pytest.mark.skipif(
    not hasattr(torch.Tensor, "__dlpack_c_exchange_api__"), reason="this torch is such a version"
)
def test_versions_before_2_10_are_asked_attribute_by_attribute(
    fake_transfer_environment: dict[str, str],
) -> None:
    script = f"""
import sys, torch, pytest
del torch.Tensor.__dlpack_c_exchange_api__
sys.exit(pytest.main(["-q", "-p", "no:cacheprovider", {__file__!r}]))
"""
    answer = subprocess.run(
        [sys.executable, "-c", script],
        env=fake_transfer_environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode == 0, answer.stdout
    assert "1 skipped" in answer.stdout


def test_a_torch_that_cannot_count_writes_is_an_error_of_one_line(
    fake_transfer_environment: dict[str, str],
) -> None:
    script = """
import torch
if hasattr(torch._C, "_increment_version"):
    del torch._C._increment_version
if hasattr(torch.autograd.graph, "increment_version"):
    del torch.autograd.graph.increment_version
from waywiser import transfer
try:
    transfer.copy(torch.zeros(4), torch.ones(4))
except transfer.UnsupportedTransfer as error:
    print(error)
"""
    answer = subprocess.run(
        [sys.executable, "-c", script],
        env=fake_transfer_environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert len(answer.stdout.splitlines()) == 1, answer.stderr
    assert "before 2.1" in answer.stdout


def test_a_transpose_of_very_many_pieces_is_copied_by_torch() -> None:
    source = torch.arange(1025 * 1030, dtype=torch.int32).reshape(1025, 1030)
    for target in (torch.zeros(1030, 1025, dtype=torch.int32), np.zeros((1030, 1025), np.int32)):
        transfer.copy(target, source.t())
        assert np.array_equal(np.asarray(target), source.numpy().T)
    target = torch.zeros(1030, 1025, dtype=torch.int32)
    before = target._version
    handle = transfer.copy_async(target, source.t())
    assert handle.result() == 4 * source.numel()
    assert torch.equal(target, source.t())
    assert target._version > before


def test_a_tensor_with_a_gradient_is_not_written_by_torch_either() -> None:
    target = torch.zeros(1030, 1025, requires_grad=True)
    with pytest.raises(transfer.TransferError):
        transfer.copy(target, torch.ones(1025, 1030).t())
