"""A process of benchmarks/loading.py on one fake GPU; the arguments name the methods that fail."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import loading
import numpy as np
from fake_gpu import GpuArray

from waywiser import transfer


class FakeMethods:
    """The library's methods on the fake GPU; all others are as if they were not installed."""

    def __init__(self) -> None:
        self.nbytes = 0

    def prepare(self, group: str, nbytes: int, file: str | None) -> None:
        self.nbytes = nbytes
        if "prepare" in sys.argv:
            raise MemoryError("no memory")
        if file is not None:
            Path(file).write_bytes(bytes(nbytes))

    def find(self, name: str, file: str | None) -> Callable[[], object]:
        if not name.startswith(loading.OURS):
            raise loading.NotAvailable("not installed: python -m pip install it")
        device: Any = GpuArray(self.nbytes)
        host = np.ones(self.nbytes, np.uint8)
        print("libraries print what they like")

        def run() -> object:
            if "run" in sys.argv:
                raise OSError("a bad disk")
            if "exit" in sys.argv:
                sys.exit(3)
            return transfer.read(file, device) if file else transfer.copy(device, host)

        return run

    def clean(self) -> None:
        pass


if __name__ == "__main__":
    loading.work(FakeMethods())
