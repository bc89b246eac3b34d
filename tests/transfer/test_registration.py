"""Host arrays whose memory is page-locked: how long, and what cannot be."""

from __future__ import annotations

import gc
import mmap
import weakref
from pathlib import Path
from typing import Any

import fake_gpu
import numpy as np
import pytest
from fake_gpu import DlpackArray, GpuArray, Stream, gate_on, random_array, same_bytes
from test_forked_workers import in_child

from waywiser import transfer

STAGED = 12 << 20


def registrations() -> int:
    """Also those of staging memory."""
    return int(fake_gpu.live()["registrations"])


class Buffer(np.ndarray[Any, Any]):
    """An array that can be watched."""


def test_a_copy_of_a_registered_array_is_a_pinned_copy() -> None:
    source, there = random_array(STAGED), GpuArray(STAGED)
    assert transfer.copy_method(there, source) == "chunked"
    with transfer.register(source) as registration:
        assert isinstance(registration, transfer.PinnedRegistration)
        assert registration.nbytes == STAGED
        assert transfer.copy_method(there, source) == "plain"
        transfer.copy(there, source)
        assert same_bytes(there.get(), source)
    assert registration.nbytes == 0
    assert transfer.copy_method(there, source) == "chunked"
    registration.close()


@pytest.mark.parametrize("kind", [bytearray, memoryview, mmap.mmap, DlpackArray])
def test_any_array_of_the_host_is_registered(kind: Any) -> None:
    made: dict[Any, Any] = {
        bytearray: lambda: bytearray(STAGED),
        memoryview: lambda: memoryview(bytearray(STAGED)),
        mmap.mmap: lambda: mmap.mmap(-1, STAGED),
        DlpackArray: lambda: DlpackArray(np.zeros(STAGED, np.uint8)),
    }
    with transfer.register(made[kind]()) as registration:
        assert registration.nbytes == STAGED


def test_a_registered_array_is_kept_and_released() -> None:
    array: Any = np.zeros(STAGED, np.uint8).view(Buffer)
    watched = weakref.ref(array)
    registration = transfer.register(array)
    del array
    gc.collect()
    assert watched() is not None
    registration.close()
    gc.collect()
    assert watched() is None


def test_the_end_of_a_registration_unlocks_the_memory() -> None:
    buffer, before = bytearray(4096), registrations()
    registration = transfer.register(buffer)
    assert registrations() == before + 1
    with pytest.raises(BufferError):
        buffer.append(1)
    del registration
    gc.collect()
    assert registrations() == before
    buffer.append(1)


def test_closing_waits_for_the_gpu() -> None:
    stream, source, there = Stream(0), random_array(4096), GpuArray(4096)
    registration = transfer.register(source)
    gate = gate_on(stream)
    handle = transfer.copy_async(there, source, stream=stream.handle)
    gate.open()
    registration.close()
    assert handle.done()
    assert same_bytes(there.get(), source)


def test_what_cannot_be_registered_is_an_error_with_what_to_do() -> None:
    array, pinned, before = (
        np.zeros((64, 64), np.uint8),
        transfer.pinned_empty(8, "u1"),
        registrations(),
    )
    errors: list[tuple[Any, type[transfer.TransferError], str]] = [
        (3, transfer.InvalidOperand, "not an array"),
        (None, transfer.InvalidOperand, "not an array"),
        (GpuArray(8), transfer.InvalidTransfer, "not in host memory"),
        (array[:, ::2], transfer.InvalidTransfer, "not contiguous"),
        (np.zeros(0), transfer.InvalidTransfer, "0 bytes"),
        (pinned, transfer.InvalidTransfer, "pinned already"),
    ]
    for what, kind, text in errors:
        with pytest.raises(kind, match=text) as caught:
            transfer.register(what)
        assert str(caught.value).startswith("register: ")
        assert "\n" not in str(caught.value)
    with (
        transfer.register(array),
        pytest.raises(transfer.InvalidTransfer, match="overlap the 4096 bytes"),
    ):
        transfer.register(array[3])
    assert registrations() == before


def test_no_gpu_and_too_much_memory_are_errors() -> None:
    fake_gpu.configure("unavailable=no driver here")
    with pytest.raises(transfer.UnsupportedTransfer, match="no driver here"):
        transfer.register(bytearray(8))
    fake_gpu.configure("oom_at=1+")
    with pytest.raises(transfer.TransferMemoryError, match="ulimit -l") as caught:
        transfer.register(bytearray(8))
    assert caught.value.status == "WAYWISER_OUT_OF_MEMORY"


def test_memory_stays_locked_while_it_is_unknown_whether_a_gpu_uses_it() -> None:
    array = bytearray(8)
    registration = transfer.register(array)
    fake_gpu.configure("fail=sync@1+")
    there = GpuArray(8)  # uses the GPU since configure()
    with pytest.raises(transfer.GpuError, match="stay registered"):
        registration.close()
    assert (registration.nbytes, there.shape) == (8, (8,))
    fake_gpu.configure("")
    registration.close()


def test_a_worker_leaves_what_its_parent_has_registered() -> None:
    before, registration = registrations(), transfer.register(bytearray(8))

    def work() -> str:
        registration.close()
        with pytest.raises(transfer.UnsupportedTransfer, match="spawn"):
            transfer.register(bytearray(8))
        return "left"

    assert in_child(work) == "left"
    assert registrations() == before + 1
    registration.close()


def test_a_file_in_memory_is_registered(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"x" * STAGED)
    with file.open("r+b") as opened, mmap.mmap(opened.fileno(), 0) as mapped:
        there = GpuArray(STAGED)
        with transfer.register(mapped):
            transfer.copy(there, mapped)
        assert same_bytes(there.get(), np.frombuffer(b"x" * STAGED, np.uint8))
