"""What exceptions of the native library amount to."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from waywiser.measure.probe.protocol import OTHER_MEMBER
from waywiser.measure.probe.serve import OrderFailed
from waywiser.measure.probe.worker import order_failed
from waywiser.words.records import MESSAGES


class GpuError(RuntimeError):
    pass


class NotSupported(RuntimeError):
    pass


class NodeFull(MemoryError):
    pass


class WrongBytes(RuntimeError):
    pass


class OtherRankFailed(RuntimeError):
    pass


class MessengerError(RuntimeError):
    pass


class NcclError(RuntimeError):
    pass


LIBRARY = SimpleNamespace(
    GpuError=GpuError,
    NotSupported=NotSupported,
    NodeFull=NodeFull,
    WrongBytes=WrongBytes,
    OtherRankFailed=OtherRankFailed,
    MessengerError=MessengerError,
    NcclError=NcclError,
    gpu_unavailable_reason=lambda: "the driver is too old",
)


def gpu_error(kind: str) -> GpuError:
    return GpuError("cudaMalloc failed:\n  why (2)", kind, "cudaMalloc", 2, "why", "cuda.cu:1")


@pytest.mark.parametrize(
    ("error", "kind", "reason", "fatal"),
    [
        (gpu_error("other"), "gpu", "cudaMalloc failed: why (2)", False),
        (gpu_error("sticky"), "sticky", "cudaMalloc failed: why (2)", True),
        (gpu_error("out_of_memory"), "out-of-memory", "cudaMalloc failed: why (2)", True),
        (gpu_error("unavailable"), "gpu", "the driver is too old (cudaMalloc failed", True),
        (NotSupported("no such path"), "not-supported", "no such path", False),
        (WrongBytes("1 of 8"), "wrong-bytes", "1 of 8", False),
        (OtherRankFailed("rank:1"), OTHER_MEMBER, "rank:1 failed", False),
        (MessengerError("lost"), MESSAGES, "messages between ranks: lost", True),
        (NcclError("ncclSend: lost"), "gpu", "ncclSend: lost", True),
        (NodeFull("numa:3 is full"), "out-of-memory", "numa:3 is full", False),
        (MemoryError(), "out-of-memory", "host memory: none left", True),
        (KeyError("span"), "crash", "KeyError: 'span'", True),
        (OrderFailed("not-supported", "as it is"), "not-supported", "as it is", False),
    ],
)
def test_an_exception_becomes_a_failure(
    error: Exception, kind: str, reason: str, fatal: bool
) -> None:
    failed = order_failed(error, LIBRARY)  # type: ignore[arg-type]
    assert failed.failure.kind == kind
    assert failed.failure.reason.startswith(reason)
    assert "\n" not in failed.failure.reason
    assert failed.fatal is fatal
