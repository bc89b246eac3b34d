"""What works in the forked workers of a DataLoader, and what says why it does not. Needs torch. A
parent with a GPU uses it before the fork. Takes an empty folder. Run by its tests.

    python forked_workers.py FOLDER
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

from waywiser import transfer
from waywiser.transfer.torch import patch

SAMPLE = 9 << 20  # copied by several threads
COUNT = 6
HAS_GPU = torch.cuda.is_available()


class Samples(Dataset):  # type: ignore[type-arg]
    """Samples that a function makes in the workers."""

    def __init__(self, make: Callable[[int], Any]) -> None:
        self.make = make

    def __len__(self) -> int:
        return COUNT

    def __getitem__(self, index: int) -> Any:
        return self.make(index)


class FromFile:
    """Reads a sample with the default context, or with one of the worker's own."""

    def __init__(self, path: Path, *, own: bool = False) -> None:
        self.path = path
        self.own = own
        self.context: transfer.Context | None = None

    def __call__(self, index: int) -> torch.Tensor:
        if self.own and self.context is None:
            self.context = transfer.Context(threads=2)
        calls: Any = self.context or transfer
        sample = torch.empty(SAMPLE, dtype=torch.uint8)
        assert calls.read(str(self.path), sample, offset=index * SAMPLE) == SAMPLE
        again = torch.empty_like(sample)
        calls.copy(again, sample)
        return again


def batches(make: Callable[[int], Any], **options: Any) -> list[Any]:
    # An error of a worker keeps its loader in a cycle, which a forked process must not delete.
    gc.collect()
    options = {"multiprocessing_context": "fork", **options}
    return list(DataLoader(Samples(make), num_workers=2, batch_size=None, **options))


def check_samples(path: Path, made: list[Any]) -> None:
    expected = np.fromfile(path, np.uint8).reshape(COUNT, SAMPLE)
    assert len(made) == COUNT
    for sample, value in zip(made, expected, strict=True):
        assert np.array_equal(sample.numpy(), value)


def message(call: Callable[[], Any]) -> str:
    """What a call in a worker raises: its type and its text."""
    try:
        call()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "no error"


def in_worker(call: Callable[[], Any]) -> str:
    """What the call raises in a forked worker. All samples are equal."""
    found = set(batches(lambda index: message(call)))
    assert len(found) == 1, found
    return str(found.pop())


def check_lines(what: str, line: str, kind: str, *words: str) -> None:
    print(f"{what}: {line}")
    assert line.startswith(f"{kind}: "), line
    assert "\n" not in line
    assert all(word in line for word in words), line


def main(folder: Path) -> None:
    path = folder / "samples"
    np.random.default_rng(1).integers(0, 256, COUNT * SAMPLE, np.uint8).tofile(path)
    if HAS_GPU:
        torch.ones(1).cuda()
    check_samples(path, batches(FromFile(path)))
    print("the workers make the first call: works")
    transfer.copy(bytearray(1), b"x")
    check_lines(
        "the parent has made a call before",
        in_worker(lambda: FromFile(path)(0)),
        "ForkedContextError",
        "spawn",
        "after the fork",
    )
    raised = message(lambda: batches(FromFile(path)))
    print(f"the same, as the DataLoader shows it: {raised.splitlines()[0]} ...")
    assert "ForkedContextError" in raised
    assert "spawn" in raised
    check_samples(path, batches(FromFile(path, own=True)))
    print("a context of the worker's own: works")
    check_samples(path, batches(FromFile(path), multiprocessing_context="spawn"))
    print("spawn: works")
    if HAS_GPU:
        with_gpu(path)


def with_gpu(path: Path) -> None:
    own = transfer.Context
    check_lines(
        "pinned memory made in a worker",
        in_worker(lambda: transfer.pinned_empty(SAMPLE, np.uint8)),
        "UnsupportedTransfer",
        "fork",
    )
    there = torch.ones(SAMPLE, dtype=torch.uint8, device="cuda")
    check_lines(
        "a tensor on the GPU of the parent",
        in_worker(lambda: own().copy(bytearray(SAMPLE), there)),
        "UnsupportedTransfer",
        "fork",
    )
    pinned = transfer.pinned_empty((COUNT, SAMPLE), torch.uint8)
    transfer.read(str(path), pinned)
    check_samples(path, batches(lambda index: pinned[index].clone()))
    print("pinned memory of the parent, read in workers: works")
    loader = iter(DataLoader(Samples(lambda index: pinned[index].clone()), num_workers=2))
    pinned.fill_(7)  # the pages of the parent, not copies of them, are those that the GPU reads
    transfer.copy(there, pinned[0])
    assert bool((there == 7).all())
    del loader
    print("pinned memory of the parent, changed after a fork: the GPU gets the change")
    with patch():
        made = batches(FromFile(path, own=True), pin_memory=True)
        assert all(sample.is_pinned() for sample in made)
        check_samples(path, [sample.to("cuda").cpu() for sample in made])
        made = batches(FromFile(path, own=True))
        check_samples(path, [sample.to("cuda").cpu() for sample in made])
    print("pin_memory=True, and patch() in the parent: works")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
