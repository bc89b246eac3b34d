"""A rank of the fake NCCL in a process of its own: each line that it reads is a call, each line
that it prints is what the call returned.

    id | join ID SIZE RANK BLOCKING | error | abort | destroy
    allreduce COUNT | allgather COUNT | reduce-scatter COUNT | broadcast COUNT | turn COUNT
    done | result

``turn`` sends to the next rank what it receives from the one before. Numbers are integers of 32
bits: number *n* of rank *r* is 1000 r + n.
"""

from __future__ import annotations

import ctypes
import sys
from array import array

from waywiser_fake import _testing

LIBRARY = ctypes.CDLL(sys.argv[1])
INT32, SUM = 2, 0
NUMBERS = "i"


class UniqueId(ctypes.Structure):
    _fields_ = (("internal", ctypes.c_char * 128),)


class Config(ctypes.Structure):
    """The first fields of ncclConfig_t."""

    _fields_ = (
        ("size", ctypes.c_size_t),
        ("magic", ctypes.c_uint),
        ("version", ctypes.c_uint),
        ("blocking", ctypes.c_int),
    )


class Rank:
    def __init__(self) -> None:
        self.comm = ctypes.c_void_p()
        self.rank = self.size = 0
        self.stream = _testing.Stream(0)
        self.received = _testing.DeviceBuffer(0, 4)

    def id(self) -> str:
        made = UniqueId()
        assert LIBRARY.ncclGetUniqueId(ctypes.byref(made)) == 0
        return bytes(made).hex()

    def join(self, name: str, size: str, rank: str, blocking: str) -> int:
        self.size, self.rank = int(size), int(rank)
        self.stream = _testing.Stream(0)  # what hung on the last one was aborted
        unique = UniqueId.from_buffer_copy(bytes.fromhex(name))
        config = Config(ctypes.sizeof(Config), 0xCAFEBEEF, 22703, int(blocking))
        own = (ctypes.byref(self.comm), self.size, unique, self.rank)
        if blocking == "1":
            return int(LIBRARY.ncclCommInitRank(*own))
        return int(LIBRARY.ncclCommInitRankConfig(*own, ctypes.byref(config)))

    def error(self) -> int:
        found = ctypes.c_int(-1)
        assert LIBRARY.ncclCommGetAsyncError(self.comm, ctypes.byref(found)) == 0
        return found.value

    def abort(self) -> int:
        return int(LIBRARY.ncclCommAbort(self.comm))

    def destroy(self) -> int:
        return int(LIBRARY.ncclCommDestroy(self.comm))

    def start(self, operation: str, count: int) -> int:
        """Enqueues an operation, and returns the result of its calls."""
        parts = self.size if operation == "reduce-scatter" else 1
        numbers = array(NUMBERS, (1000 * self.rank + n for n in range(count * parts)))
        self.sent = _testing.DeviceBuffer(0, 4 * len(numbers) + 4)
        self.sent.write(numbers.tobytes())
        whole = count * (self.size if operation == "allgather" else 1)
        self.received = _testing.DeviceBuffer(0, 4 * whole + 4)
        self.whole = whole
        source, target = (ctypes.c_void_p(buffer.address) for buffer in (self.sent, self.received))
        number = ctypes.c_size_t(count)
        last = (self.comm, ctypes.c_void_p(self.stream.handle))
        if operation == "allreduce":
            return int(LIBRARY.ncclAllReduce(source, target, number, INT32, SUM, *last))
        if operation == "allgather":
            return int(LIBRARY.ncclAllGather(source, target, number, INT32, *last))
        if operation == "reduce-scatter":
            return int(LIBRARY.ncclReduceScatter(source, target, number, INT32, SUM, *last))
        if operation == "broadcast":
            return int(LIBRARY.ncclBroadcast(source, target, number, INT32, self.size - 1, *last))
        to, from_ = (self.rank + 1) % self.size, (self.rank - 1) % self.size
        LIBRARY.ncclGroupStart()
        LIBRARY.ncclSend(source, number, INT32, to, *last)
        LIBRARY.ncclRecv(target, number, INT32, from_, *last)
        return int(LIBRARY.ncclGroupEnd())

    def done(self) -> int:
        return int(self.stream.done())

    def result(self) -> str:
        """Waits for the operation, and returns the received numbers."""
        self.stream.synchronize()
        return bytes(self.received.read())[: 4 * self.whole].hex()


def main() -> None:
    rank = Rank()
    for line in sys.stdin:
        name, *words = line.split()
        own = getattr(rank, name, None)
        print(own(*words) if own else rank.start(name, *map(int, words)), flush=True)


if __name__ == "__main__":
    main()
