"""Handles of transfers: what is known of them, cancelling, and the wait for any of several."""

from __future__ import annotations

import os
import signal
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from fake_gpu import GpuArray, Stream, gate_on, random_array, same_bytes
from test_forked_workers import in_child
from test_lifetimes import STAGED, a_buffer

from waywiser import transfer

SMALL = 4096


@contextmanager
def behind_a_gate() -> Iterator[tuple[Any, Any]]:
    """A stream with a closed gate, which is opened at the end. To free device memory meanwhile,
    also that of a transfer which another test has left behind, would wait for ever."""
    stream = Stream(0)
    gate = gate_on(stream)
    yield stream, gate
    gate.open()


class TestQuery:
    def test_before_and_after_the_end(self) -> None:
        there, source = GpuArray(STAGED), random_array(STAGED)
        with behind_a_gate() as (stream, _):
            handle = transfer.copy_async(there, source, stream=stream.handle)
            info = handle.query()
            assert (info.ended, info.moved, info.bytes) == (False, 0, STAGED)
            assert info.error is None
        assert handle.result() == STAGED
        info = handle.query()
        assert (info.ended, info.moved, info.bytes) == (True, STAGED, STAGED)
        assert info.error is None

    def test_of_nothing(self) -> None:
        info = transfer.copy_async(bytearray(0), b"").query()
        assert info == transfer.TransferInfo(ended=True, moved=0, bytes=0, error=None)

    def test_of_a_failure(self, tmp_path: Any) -> None:
        with (tmp_path / "file").open("wb") as file:
            handle = transfer.read_async(file.fileno(), np.zeros(8, np.uint8))
        assert transfer.wait_any([handle]) == 0
        info = handle.query()
        assert info.ended
        assert isinstance(info.error, transfer.TransferFileError)
        with pytest.raises(transfer.TransferFileError) as caught:
            handle.result()
        assert str(info.error) == str(caught.value)
        assert info.error.errno == caught.value.errno

    def test_lets_go_of_the_arrays(self) -> None:
        source = a_buffer(STAGED)
        handle = transfer.copy_async(GpuArray(STAGED), source)
        watched = weakref.ref(source)
        del source
        while not handle.query().ended:
            time.sleep(0.001)
        assert watched() is None


class TestCancel:
    def test_behind_a_gate(self) -> None:
        there, source = GpuArray(STAGED), a_buffer(STAGED)
        with behind_a_gate() as (stream, _):
            handle = transfer.copy_async(there, source, stream=stream.handle)
            watched = weakref.ref(source)
            del source
            assert not handle.done()
            handle.cancel()
            with pytest.raises(transfer.TransferCancelled) as caught:
                handle.result(60)
            assert caught.value.moved == 0
            assert watched() is None
            assert handle.done()
            assert isinstance(handle.query().error, transfer.TransferCancelled)
            handle.cancel()

    def test_what_has_ended_stays(self) -> None:
        for size in (0, SMALL, STAGED):
            handle = transfer.copy_async(GpuArray(size), random_array(size))
            handle.result()
            handle.cancel()
            assert handle.result() == size

    def test_copies_in_a_stream_are_made_all_the_same(self) -> None:
        host, there = transfer.pinned_empty(SMALL, np.uint8), GpuArray(SMALL)
        host[:] = 7
        with behind_a_gate() as (stream, _):
            handle = transfer.copy_async(there, host, stream=stream.handle)
            handle.cancel()
            assert not handle.done()
        assert handle.result() == SMALL
        assert (there.get() == 7).all()

    def test_from_another_thread(self) -> None:
        there, source = GpuArray(STAGED), np.zeros(STAGED, np.uint8)
        with behind_a_gate() as (stream, _):
            handle = transfer.copy_async(there, source, stream=stream.handle)
            threading.Timer(0.05, handle.cancel).start()
            with pytest.raises(transfer.TransferCancelled):
                handle.result(60)


class TestWaitAny:
    def test_gives_the_first_in_the_order_of_the_list(self) -> None:
        count = 6
        streams = [Stream(0) for _ in range(count)]
        gates = [gate_on(stream) for stream in streams]
        arrays = [GpuArray(SMALL) for _ in streams]
        handles = [
            transfer.copy_async(there, np.zeros(SMALL, np.uint8), stream=stream.handle)
            for there, stream in zip(arrays, streams, strict=True)
        ]
        with pytest.raises(transfer.TransferTimeout, match="none of the 6 transfers has ended"):
            transfer.wait_any(handles, 0.01)
        with pytest.raises(TimeoutError):
            transfer.wait_any(handles, timeout=0)
        for next_one in (3, 0, 5, 4, 1, 2):
            left = [i for i in range(count) if not handles[i].done()]
            threading.Timer(0.01, gates[next_one].open).start()
            assert left[transfer.wait_any([handles[i] for i in left])] == next_one
            assert handles[next_one].result() == SMALL
        assert transfer.wait_any(handles[2:]) == 0
        assert transfer.wait_any(iter(handles), 0) == 0

    def test_of_a_failure_and_of_nothing(self) -> None:
        arrays, source = [GpuArray(STAGED) for _ in range(2)], np.zeros(STAGED, np.uint8)
        with behind_a_gate() as (stream, _):
            waiting, cancelled = (
                transfer.copy_async(there, source, stream=stream.handle) for there in arrays
            )
            cancelled.cancel()
            assert transfer.wait_any((waiting, cancelled), 60) == 1
            nothing = transfer.copy_async(bytearray(0), b"")
            assert transfer.wait_any([waiting, nothing, cancelled]) == 1
        assert waiting.result() == STAGED

    def test_lets_other_threads_run(self) -> None:
        there, source = GpuArray(STAGED), np.zeros(STAGED, np.uint8)
        with behind_a_gate() as (stream, gate):
            handle = transfer.copy_async(there, source, stream=stream.handle)
            opener = threading.Thread(target=gate.open)
            opener.start()
            assert transfer.wait_any([handle]) == 0
            opener.join()

    def test_an_interruption_ends_the_wait(self) -> None:
        there, source = GpuArray(STAGED), np.zeros(STAGED, np.uint8)
        with behind_a_gate() as (stream, _):
            handle = transfer.copy_async(there, source, stream=stream.handle)
            with pytest.raises(KeyboardInterrupt):
                threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)).start()
                transfer.wait_any([handle], 60)
            assert not handle.done()
        assert handle.result() == STAGED

    @pytest.mark.parametrize(
        ("handles", "timeout", "error", "said"),
        [
            ([], None, transfer.InvalidTransfer, "wait_any: there are no handles"),
            (3, None, transfer.InvalidOperand, "handles is of type int, not a sequence"),
            ([None], None, transfer.InvalidOperand, r"handles\[0\] is None, not a TransferHandle"),
            (["x"], None, transfer.InvalidOperand, r"handles\[0\] is of type str"),
        ],
    )
    def test_what_is_an_error(
        self, handles: Any, timeout: Any, error: type[Exception], said: str
    ) -> None:
        with pytest.raises(error, match=said):
            transfer.wait_any(handles, timeout)

    def test_a_timeout_is_a_number_of_seconds(self) -> None:
        handles = [transfer.copy_async(bytearray(4), b"abcd")]
        with pytest.raises(transfer.InvalidOperand, match="wait_any: the timeout is of type str"):
            transfer.wait_any(handles, "soon")  # type: ignore[arg-type]
        for seconds in (-1, float("nan")):
            with pytest.raises(transfer.InvalidTransfer, match="wait_any: the timeout is"):
                transfer.wait_any(handles, seconds)
        assert transfer.wait_any(handles, float("inf")) == 0


def test_a_forked_child_has_no_handles_of_its_parent() -> None:
    there, source = GpuArray(STAGED), random_array(STAGED)
    with behind_a_gate() as (stream, _):
        handle = transfer.copy_async(there, source, stream=stream.handle)
        for call in (handle.cancel, handle.query, lambda: transfer.wait_any([handle])):
            assert in_child(call).startswith("ForkedContextError: ")
    assert handle.result() == STAGED
    assert same_bytes(there.get(), source)
