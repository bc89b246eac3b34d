"""What an exception of the native library means for an order, and for the worker itself."""

from __future__ import annotations

from types import ModuleType

from waywiser.measure.probe.serve import OrderFailed

_GPU_KINDS = {
    "out_of_memory": "out-of-memory",
    "sticky": "sticky",
    "unavailable": "gpu",
    "other": "gpu",
}
"""Kinds of native GPU errors as kinds of `waywiser.words.records.Failure`."""


def order_failed(error: Exception, library: ModuleType) -> OrderFailed:
    """The failure that an exception raised while preparing or measuring amounts to.

    The worker is lost after a sticky error or without a driver. It is also given up after running
    out of memory, which can leave half-made allocations, and after anything nobody foresaw.
    """
    if isinstance(error, OrderFailed):
        return error
    if isinstance(error, library.NotSupported):
        return OrderFailed("not-supported", str(error))
    if isinstance(error, library.WrongBytes):
        return OrderFailed("wrong-bytes", str(error))
    if isinstance(error, library.GpuError):
        message, kind = error.args[0], error.args[1]
        why = library.gpu_unavailable_reason() if kind == "unavailable" else ""
        reason = f"{why} ({message})" if why else str(message)
        return OrderFailed(_GPU_KINDS[kind], reason, fatal=kind != "other")
    if isinstance(error, MemoryError):
        return OrderFailed("out-of-memory", f"host memory: {str(error) or 'none left'}", fatal=True)
    return OrderFailed("crash", f"{type(error).__name__}: {error}", fatal=True)
