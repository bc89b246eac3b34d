"""Loads a checkpoint to the first GPU and checks every tensor. Takes the name of a file."""

from __future__ import annotations

import os
import random
import sys
from pathlib import Path

import torch

from transfer.safetensors_files import write_bytes
from waywiser import transfer
from waywiser.transfer.torch import SafetensorsError, load_file, load_files

MIB = 2**20
ALIGNMENT = 512
"""The alignment of torch's allocator; kernels and copy engines rely on less."""


def write_model(path: Path) -> dict[str, bytes]:
    """Large tensors, runs of small ones, single small ones, empty ones, at odd offsets."""
    source = random.Random(1)
    tensors: dict[str, tuple[str, list[int], bytes]] = {}
    for layer, nbytes in enumerate([64 * MIB + 2, 3 * MIB + 1, 600 * 1024, 9 * MIB + 6]):
        data = source.randbytes(nbytes)
        tensors[f"{layer}.weight"] = ("U8", [nbytes], data)
        for number in range([0, 1, 300, 2000][layer]):
            data = source.randbytes(2 * source.randrange(5000))
            tensors[f"{layer}.{number}"] = ("BF16", [len(data) // 2], data)
    tensors["scalar"] = ("F32", [], source.randbytes(4))
    tensors["empty"] = ("F64", [0, 3], b"")
    write_bytes(path, tensors)
    return {name: data for name, (_, _, data) in tensors.items()}


def bytes_of(tensor: torch.Tensor) -> bytes:
    return tensor.view(-1).view(torch.uint8).cpu().numpy().tobytes()


def check(path: Path) -> None:
    model = write_model(path)
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for keys in (None, list(model)[::3]):
            loaded = load_file(path, 0, keys=keys)
            assert list(loaded) == [name for name in model if keys is None or name in keys]
            for name, tensor in loaded.items():
                assert tensor.device == torch.device("cuda", 0)
                assert bytes_of(tensor) == model[name], name
    check_prefetch(path, model)
    check_memory(path)
    check_a_cut_file(path)


def check_prefetch(path: Path, model: dict[str, bytes]) -> None:
    """Each tensor is complete on any stream when it is taken."""
    other = torch.cuda.Stream()
    with transfer.safe_open(path, "pt", "cuda") as files, files.prefetch() as loader:
        torch.cuda._sleep(10**8)  # the default stream is busy
        with torch.cuda.stream(other):
            for name, tensor in loader:
                assert bytes_of(tensor) == model[name], name


def check_memory(path: Path) -> None:
    loaded = load_files([path], "cuda")
    starts = [tensor.data_ptr() for tensor in loaded.values() if tensor.nbytes]
    assert len(set(starts)) == len(starts)
    assert all(start % ALIGNMENT == 0 for start in starts)
    for name in list(loaded):
        nbytes = loaded[name].nbytes
        before = torch.cuda.memory_allocated()
        del loaded[name]
        assert before - torch.cuda.memory_allocated() >= nbytes, "it is freed alone"
    assert loaded == {}


def check_a_cut_file(path: Path) -> None:
    before = torch.cuda.memory_allocated()
    os.truncate(path, path.stat().st_size - 1)
    try:
        load_file(path, "cuda:0")
    except SafetensorsError:
        assert torch.cuda.memory_allocated() == before
    else:
        raise AssertionError("a file that was cut was loaded")


if __name__ == "__main__":
    check(Path(sys.argv[1]))
