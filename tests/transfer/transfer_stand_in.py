"""Reads and copies as waywiser.transfer does them, by Python threads, with failures and delays."""

from __future__ import annotations

import ctypes
import os
import random
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any


class Handle:
    """A read that runs."""

    def __init__(self, future: Future[int], dst: Any) -> None:
        self._future = future
        self._dst = dst

    def result(self, timeout: float | None = None) -> int:
        return self._future.result(timeout)


class StandInTransfers:
    """Counts the reads that run and the bytes that were asked for."""

    def __init__(self, threads: int = 4) -> None:
        self.requests: list[tuple[int, int]] = []
        self.batches = 0
        self.running = 0
        self.most_running = 0
        self.before_read: Callable[[int], None] = lambda number: None
        """Is called by a thread with the number of its read, before it."""
        self.before_call: Callable[[int], None] = lambda number: None
        """Is called by the caller with the number of the read, before it starts."""
        self._lock = threading.Lock()
        self._threads = ThreadPoolExecutor(threads)
        self._random = random.Random(1)

    def close(self) -> None:
        self._threads.shutdown()

    def read_async(
        self,
        path_or_fd: int,
        dst: Any,
        *,
        offset: int = 0,
        nbytes: int | None = None,
        stream: Any = None,
    ) -> Handle:
        number = len(self.requests)
        self.before_call(number)
        size = dst.nbytes if nbytes is None else nbytes
        assert size == dst.nbytes
        self.requests.append((offset, size))
        with self._lock:
            self.running += 1
            self.most_running = max(self.most_running, self.running)
        delay = self._random.choice([0, 0, 0.001])
        return Handle(
            self._threads.submit(self._read, number, path_or_fd, dst, offset, size, delay), dst
        )

    def _read(
        self, number: int, descriptor: int, dst: Any, offset: int, nbytes: int, delay: float
    ) -> int:
        try:
            time.sleep(delay)
            self.before_read(number)
            memory = memoryview((ctypes.c_char * nbytes).from_address(dst.data_ptr())).cast("B")
            moved = 0
            while moved < nbytes:
                part = os.preadv(descriptor, [memory[moved:]], offset + moved)
                if not part:
                    break
                moved += part
            return moved
        finally:
            with self._lock:
                self.running -= 1

    def copy_batch(self, *, dsts: Sequence[Any], srcs: Sequence[Any], stream: Any = None) -> None:
        self.batches += 1
        for dst, src in zip(dsts, srcs, strict=True):
            assert dst.nbytes == src.nbytes
            assert dst.dtype is src.dtype
            ctypes.memmove(dst.data_ptr(), src.data_ptr(), dst.nbytes)
