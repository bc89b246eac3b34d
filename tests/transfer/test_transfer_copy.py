"""copy and copy_async: every pair of places, streams, capture, errors."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import fake_gpu
import numpy as np
import pytest
from fake_gpu import GpuArray, Stream, gate_on, random_array, same_bytes

from waywiser import transfer

SIZES = [0, 1, 4097, 1 << 20, (5 << 20) + 13, (12 << 20) + 13]
INLINE = 4096
STAGED = 12 << 20


@pytest.mark.parametrize("nbytes", SIZES)
@pytest.mark.parametrize("asynchronous", [False, True])
class TestEveryByteArrives:
    def move(self, dst: Any, src: Any, asynchronous: bool, nbytes: int) -> None:
        if asynchronous:
            assert transfer.copy_async(dst, src).result(60) == nbytes
        else:
            transfer.copy(dst, src)

    def test_host_to_gpu_and_back(self, nbytes: int, asynchronous: bool) -> None:
        sent, received = random_array(nbytes), np.zeros(nbytes, np.uint8)
        there = GpuArray(nbytes, gpu=1)
        self.move(there, sent, asynchronous, nbytes)
        assert same_bytes(there.get(), sent)
        self.move(received, there, asynchronous, nbytes)
        assert same_bytes(received, sent)

    def test_pinned_to_gpu_and_back(self, nbytes: int, asynchronous: bool) -> None:
        sent = transfer.pinned_empty(nbytes, np.uint8)
        sent[:] = random_array(nbytes)
        received = transfer.pinned_empty(nbytes, np.uint8)
        there = GpuArray(nbytes)
        self.move(there, sent, asynchronous, nbytes)
        self.move(received, there, asynchronous, nbytes)
        assert same_bytes(received, sent)

    def test_gpu_to_gpu(self, nbytes: int, asynchronous: bool) -> None:
        sent = random_array(nbytes)
        one, other = GpuArray(nbytes, gpu=0).set(sent), GpuArray(nbytes, gpu=1)
        self.move(other, one, asynchronous, nbytes)
        assert same_bytes(other.get(), sent)

    def test_host_to_host(self, nbytes: int, asynchronous: bool) -> None:
        sent, received = random_array(nbytes), np.zeros(nbytes, np.uint8)
        self.move(received, sent, asynchronous, nbytes)
        assert same_bytes(received, sent)


@pytest.mark.parametrize("nbytes", [INLINE, STAGED])
@pytest.mark.parametrize("pinned", [False, True])
class TestStreams:
    def host(self, nbytes: int, pinned: bool) -> Any:
        return transfer.pinned_empty(nbytes, np.uint8) if pinned else np.zeros(nbytes, np.uint8)

    def test_a_copy_from_a_gpu_waits_for_the_stream(self, nbytes: int, pinned: bool) -> None:
        stream, array, host = Stream(0), GpuArray(nbytes), self.host(nbytes, pinned)
        gate = gate_on(stream)
        stream.fill(array.buffer.address, nbytes, 7)
        opener = threading.Timer(0.05, gate.open)
        opener.start()
        transfer.copy(host, array, stream=stream.handle)
        assert (host == 7).all()
        opener.join()

    def test_a_copy_to_a_gpu_comes_before_later_work(self, nbytes: int, pinned: bool) -> None:
        stream, array, host = Stream(0), GpuArray(nbytes), self.host(nbytes, pinned)
        back = np.zeros(nbytes, np.uint8)
        host[:] = 5
        transfer.copy(array, host, stream=stream.handle)
        host[:] = 6  # it can be reused
        transfer.copy(back, array, stream=stream.handle)
        stream.fill(array.buffer.address, nbytes, 9)
        assert (back == 5).all()
        stream.synchronize()
        assert (array.get() == 9).all()

    def test_an_asynchronous_copy_starts_after_the_stream(self, nbytes: int, pinned: bool) -> None:
        stream, array, host = Stream(0), GpuArray(nbytes), self.host(nbytes, pinned)
        gate = gate_on(stream)
        stream.fill(array.buffer.address, nbytes, 3)
        handle = transfer.copy_async(host, array, stream=stream.handle)
        assert not handle.done()
        assert not host.any()
        gate.open()
        assert handle.result(60) == nbytes
        assert (host == 3).all()

    def test_wait_orders_another_stream(self, nbytes: int, pinned: bool) -> None:
        first, second = Stream(0), Stream(0)
        array, host = GpuArray(nbytes), self.host(nbytes, pinned)
        host[:] = 4
        handle = transfer.copy_async(array, host, stream=first.handle)
        handle.wait(second.handle)
        second.fill(array.buffer.address, nbytes, 8)
        second.synchronize()
        handle.result()
        assert (array.get() == 8).all()


@pytest.mark.parametrize("number", [0, 1, 2])
@pytest.mark.parametrize("to_host", [False, True])
def test_numbers_of_default_streams_mean_the_gpu_of_the_operand(number: int, to_host: bool) -> None:
    stream, host = Stream(1), transfer.pinned_empty(INLINE, np.uint8)
    array = GpuArray(INLINE, gpu=1)
    gate = gate_on(stream, 1)
    fake_gpu.set_current_gpu(0)
    try:
        pair = (host, array) if to_host else (array, host)
        handle = transfer.copy_async(*pair, stream=stream.handle)
        handle.wait(number)
        assert fake_gpu.default_stream(0).done()
        if number < 2:
            assert not fake_gpu.default_stream(1).done()
    finally:
        gate.open()
        handle.result()
        fake_gpu.set_current_gpu(-1)


@pytest.mark.parametrize("current", [-1, 0, 1])
@pytest.mark.parametrize("own_stream", [False, True])
def test_whatever_gpu_is_current(current: int, own_stream: bool) -> None:
    stream = Stream(1) if own_stream else fake_gpu.default_stream(1)
    handle = stream.handle if own_stream else None
    array, host = GpuArray(INLINE, gpu=1), transfer.pinned_empty(INLINE, np.uint8)
    fake_gpu.set_current_gpu(current)
    try:
        gate = gate_on(stream, 1)
        stream.fill(array.buffer.address, INLINE, 7)
        fake_gpu.set_current_gpu(current)
        opener = threading.Timer(0.02, gate.open)
        opener.start()
        transfer.copy(host, array, stream=handle)
        assert (host == 7).all()
        assert fake_gpu.current_gpu() == current
        host[:] = 8
        transfer.copy(array, host, stream=handle)
        host[:] = 9
        stream.synchronize()
        assert (array.get() == 8).all()
        opener.join()
    finally:
        fake_gpu.set_current_gpu(-1)


def test_the_interface_names_the_stream_of_an_array() -> None:
    stream = Stream(0)
    array = GpuArray(STAGED, stream=stream.handle)
    gate = gate_on(stream)
    stream.fill(array.buffer.address, STAGED, 2)
    host = np.zeros(STAGED, np.uint8)
    handle = transfer.copy_async(host, array)
    assert not handle.done()
    gate.open()
    handle.result()
    assert (host == 2).all()


@pytest.mark.parametrize("nbytes", [INLINE, STAGED])
@pytest.mark.parametrize("gpus", [(0, 1), (0, 0)])
@pytest.mark.parametrize("peers", ["", "no_peers=all"])
def test_between_gpus_both_streams_are_ordered(
    nbytes: int, gpus: tuple[int, int], peers: str
) -> None:
    fake_gpu.configure(peers)
    streams = [Stream(gpu) for gpu in gpus]
    source, destination = (
        GpuArray(nbytes, gpu=gpu, stream=stream.handle)
        for gpu, stream in zip(gpus, streams, strict=True)
    )
    gates = [gate_on(stream, gpu) for gpu, stream in zip(gpus, streams, strict=True)]
    streams[0].fill(source.buffer.address, nbytes, 1)
    streams[1].fill(destination.buffer.address, nbytes, 2)
    copies = threading.Thread(target=transfer.copy, args=(destination, source))
    copies.start()  # staged copies block until they are submitted
    gates[0].open()
    gates[1].open()
    copies.join()
    again = GpuArray(nbytes, gpu=gpus[1])
    transfer.copy(again, destination, stream=streams[1].handle)
    streams[0].fill(source.buffer.address, nbytes, 3)
    for stream in streams:
        stream.synchronize()
    assert (again.get() == 1).all()


def test_a_copy_between_gpus_returns_at_once() -> None:
    stream = Stream(0)
    source, destination = GpuArray(STAGED, gpu=0), GpuArray(STAGED, gpu=1)
    gate = gate_on(stream)
    transfer.copy(destination, source, stream=stream.handle)
    assert not stream.done()
    gate.open()
    stream.synchronize()


def test_a_default_stream_belongs_to_the_gpu_of_the_array() -> None:
    stream = fake_gpu.default_stream(1)
    array, host = GpuArray(INLINE, gpu=1), np.zeros(INLINE, np.uint8)
    gate = gate_on(stream, 1)
    stream.fill(array.buffer.address, INLINE, 6)
    handle = transfer.copy_async(host, array)
    assert not handle.done()
    gate.open()
    handle.result()
    assert (host == 6).all()


class TestStreamObjects:
    class Torch:
        def __init__(self, handle: int) -> None:
            self.cuda_stream = handle

    class Cupy:
        def __init__(self, handle: int) -> None:
            self.ptr = handle

    class Protocol:
        def __init__(self, handle: int) -> None:
            self.handle = handle

        def __cuda_stream__(self) -> tuple[int, int]:
            return (0, self.handle)

    class OldProtocol:
        def __init__(self, handle: int) -> None:
            self.__cuda_stream__ = (0, handle)

    @pytest.mark.parametrize("kind", [int, Torch, Cupy, Protocol, OldProtocol])
    def test_is_followed(self, kind: Any) -> None:
        stream, array, host = Stream(0), GpuArray(INLINE), np.zeros(INLINE, np.uint8)
        gate = gate_on(stream)
        stream.fill(array.buffer.address, INLINE, 7)
        handle = transfer.copy_async(host, array, stream=kind(stream.handle))
        assert not handle.done()
        gate.open()
        handle.result()
        assert (host == 7).all()

    @pytest.mark.parametrize("stream", ["default", 1.5, True, object(), -1])
    def test_what_is_no_stream_is_an_error(self, stream: Any) -> None:
        with pytest.raises(transfer.InvalidOperand, match="not a CUDA stream"):
            transfer.copy(GpuArray(4), np.zeros(4, np.uint8), stream=stream)


class TestCapture:
    def test_a_copy_of_pinned_memory_is_recorded(self) -> None:
        stream, array = Stream(0), GpuArray(STAGED)
        host = transfer.pinned_empty(STAGED, np.uint8)
        host[:] = 1
        graph = fake_gpu.Graph(stream, lambda: transfer.copy(array, host, stream=stream.handle))
        assert not (array.get() == 1).all()
        host[:] = 2
        graph.launch(stream)
        stream.synchronize()
        assert (array.get() == 2).all()

    def test_a_small_copy_is_recorded_too(self) -> None:
        stream, array = Stream(0), GpuArray(64)
        host = transfer.pinned_empty(64, np.uint8)
        host[:] = 3
        graph = fake_gpu.Graph(stream, lambda: transfer.copy(array, host, stream=stream.handle))
        graph.launch(stream)
        stream.synchronize()
        assert (array.get() == 3).all()

    @pytest.mark.parametrize("nbytes", [INLINE, STAGED])
    def test_pageable_memory_is_an_error(self, nbytes: int) -> None:
        stream, array = Stream(0), GpuArray(nbytes)

        def record() -> None:
            with pytest.raises(transfer.UnsupportedTransfer, match="captured"):
                transfer.copy(array, np.zeros(nbytes, np.uint8), stream=stream.handle)

        fake_gpu.Graph(stream, record)

    @pytest.mark.parametrize("asynchronous", [False, True])
    def test_between_gpus_a_captured_destination_is_an_error(self, asynchronous: bool) -> None:
        streams = Stream(0), Stream(1)
        source = GpuArray(INLINE, gpu=0, stream=streams[0].handle)
        destination = GpuArray(INLINE, gpu=1, stream=streams[1].handle).set(np.zeros(INLINE))
        source.set(np.ones(INLINE))
        call = transfer.copy_async if asynchronous else transfer.copy

        def record() -> None:
            with pytest.raises(transfer.UnsupportedTransfer, match="captured") as caught:
                call(destination, source)
            assert "stream=" in caught.value.remedy

        before = fake_gpu.copies()
        fake_gpu.Graph(streams[1], record)
        for stream in streams:
            stream.synchronize()
        assert fake_gpu.copies() == before
        assert not destination.get().any()

    def test_between_gpus_a_captured_source_is_recorded(self) -> None:
        streams = Stream(0), Stream(1)
        source = GpuArray(INLINE, gpu=0, stream=streams[0].handle).set(np.ones(INLINE))
        destination = GpuArray(INLINE, gpu=1, stream=streams[1].handle).set(np.zeros(INLINE))

        def record() -> None:
            with pytest.raises(transfer.UnsupportedTransfer, match="captured"):
                transfer.copy_async(destination, source)
            transfer.copy(destination, source)

        graph = fake_gpu.Graph(streams[0], record)
        assert not destination.get().any()
        graph.launch(streams[0])
        streams[0].synchronize()
        assert (destination.get() == 1).all()

    def test_handles_and_files_are_errors(self, tmp_path: Any) -> None:
        stream, array = Stream(0), GpuArray(64)
        host = transfer.pinned_empty(64, np.uint8)
        (tmp_path / "file").write_bytes(bytes(64))

        def record() -> None:
            with pytest.raises(transfer.UnsupportedTransfer, match="captured"):
                transfer.copy_async(array, host, stream=stream.handle)
            with pytest.raises(transfer.UnsupportedTransfer, match="captured"):
                transfer.read(tmp_path / "file", array, stream=stream.handle)

        fake_gpu.Graph(stream, record)


class TestHandles:
    def test_a_timeout_leaves_the_transfer_running(self) -> None:
        stream, array, host = Stream(0), GpuArray(INLINE), np.ones(INLINE, np.uint8)
        gate = gate_on(stream)
        handle = transfer.copy_async(array, host, stream=stream.handle)
        with pytest.raises(TimeoutError, match="goes on") as caught:
            handle.result(0.01)
        assert isinstance(caught.value, transfer.TransferTimeout)
        assert caught.value.moved == 0
        gate.open()
        assert handle.result() == INLINE
        assert handle.result(0) == INLINE
        assert handle.done()

    @pytest.mark.parametrize("timeout", [-1, float("nan")])
    def test_a_timeout_is_a_time(self, timeout: float) -> None:
        stream = Stream(0)
        gate = gate_on(stream)
        handle = transfer.copy_async(GpuArray(4), np.zeros(4, np.uint8), stream=stream.handle)
        with pytest.raises(ValueError, match="timeout"):
            handle.result(timeout)
        gate.open()
        assert handle.result(float("inf")) == 4

    def test_a_failure_is_reported_every_time(self) -> None:
        array, host = GpuArray(STAGED), np.zeros(STAGED, np.uint8)
        fake_gpu.configure("fail=copy@1+")
        handle = transfer.copy_async(host, array)
        for _ in range(2):
            with pytest.raises(transfer.GpuError, match="failed") as caught:
                handle.result()
            assert caught.value.moved < STAGED
        assert handle.done()

    def test_a_lost_gpu_is_said_to_be_lost(self) -> None:
        array = GpuArray(INLINE)
        fake_gpu.configure("sticky=copy@1")
        with pytest.raises(transfer.GpuError) as caught:
            transfer.copy(array, np.zeros(INLINE, np.uint8))
        assert caught.value.lost

    def test_many_threads_share_the_default_context(self) -> None:
        arrays = [GpuArray(STAGED, gpu=i % 2) for i in range(8)]
        sent = [random_array(STAGED, seed=i) for i in range(8)]
        wrong = []

        def one(i: int) -> None:
            back = np.zeros(STAGED, np.uint8)
            transfer.copy(arrays[i], sent[i])
            transfer.copy(back, arrays[i])
            if not same_bytes(back, sent[i]):
                wrong.append(i)

        threads = [threading.Thread(target=one, args=(i,)) for i in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert wrong == []


def test_the_method_of_a_copy_is_a_value() -> None:
    there = GpuArray(STAGED)
    host = np.zeros(STAGED, np.uint8)
    assert transfer.copy_method(there, host) == "chunked"
    assert transfer.copy_method(there.view((64,), None), host[:64]) == "plain"
    assert transfer.copy_method(host[:8:2], host[8:16:2]) == "list"
    assert transfer.copy_method(host[:0], host[:0]) == "none"
    with pytest.raises(transfer.InvalidTransfer):
        transfer.copy_method(host[:8], host[:4])


def test_one_other_thread_does_not_help_with_a_few_bytes() -> None:
    destination, source = np.zeros(STAGED, np.uint8), random_array(STAGED)
    with transfer.Context(threads=2) as context:
        context.copy(destination, source)
        assert context.usage()["threads"] == 0
        assert context.explain(destination, source).startswith("plain copy: too small")
    assert same_bytes(destination, source)
    with transfer.Context() as context:
        if context.usage()["most_threads"] > 2:
            assert context.explain(destination, source).startswith("chunked copy: ")


@pytest.mark.parametrize("nbytes", [INLINE, (5 << 20) + 3, STAGED])
@pytest.mark.parametrize("pinned", [False, True])
class TestHostToHost:
    def arrays(self, nbytes: int, pinned: bool) -> tuple[Any, Any]:
        if not pinned:
            return np.zeros(nbytes, np.uint8), random_array(nbytes)
        source = transfer.pinned_empty(nbytes, np.uint8)
        source[:] = random_array(nbytes)
        destination = transfer.pinned_empty(nbytes, np.uint8)
        destination[:] = 0
        return destination, source

    def test_is_in_no_stream_of_a_gpu(self, nbytes: int, pinned: bool) -> None:
        destination, source = self.arrays(nbytes, pinned)
        stream = fake_gpu.default_stream(0)
        fake_gpu.set_current_gpu(0)
        before = fake_gpu.copies()
        gate = gate_on(stream)
        opener = threading.Timer(10, gate.open)  # for a copy that waits for the stream
        opener.start()
        try:
            transfer.copy(destination, source)
            half = nbytes // 2
            transfer.copy_batch(
                dsts=[destination[half:], destination[:half]], srcs=[source[half:], source[:half]]
            )
            assert fake_gpu.copies() == before
            assert not stream.done()
        finally:
            opener.cancel()
            gate.open()
            fake_gpu.set_current_gpu(-1)
        assert same_bytes(destination, source)

    def test_waits_for_a_stream_that_is_named(self, nbytes: int, pinned: bool) -> None:
        destination, source = self.arrays(nbytes, pinned)
        stream = Stream(0)
        gate = gate_on(stream)
        opened = []

        def open_gate() -> None:
            opened.append(1)
            gate.open()

        opener = threading.Timer(0.05, open_gate)
        opener.start()
        transfer.copy(destination, source, stream=stream.handle)
        assert opened
        assert same_bytes(destination, source)
        opener.join()


def test_memory_that_is_pinned_in_part() -> None:
    nbytes = 6 << 20
    for pinned in (slice(0, nbytes // 2), slice(nbytes // 2, nbytes)):
        host, there = np.ones(nbytes, np.uint8), GpuArray(nbytes)
        part = host[pinned]
        registration = fake_gpu.Registration(part.ctypes.data, part.nbytes)
        stream = Stream(0)
        fake_gpu.configure("delay=0.1@1+")
        transfer.copy(there, host, stream=stream.handle)
        host[:] = 2  # it can be reused
        stream.synchronize()
        assert (there.get() == 1).all()
        stream.fill(there.buffer.address, nbytes, 3)
        transfer.copy(host, there, stream=stream.handle)
        assert (host == 3).all()
        fake_gpu.configure("")
        del registration


def test_the_interpreter_runs_while_a_copy_waits() -> None:
    stream, array = Stream(0), GpuArray(INLINE)
    gate = gate_on(stream)
    host = transfer.pinned_empty(INLINE, np.uint8)
    waits = threading.Thread(
        target=transfer.copy, args=(host, array), kwargs={"stream": stream.handle}
    )
    waits.start()
    time.sleep(0.01)  # this line is reached although the other thread waits
    assert waits.is_alive()
    gate.open()
    waits.join()


@pytest.mark.parametrize("stream", [0, 1])
@pytest.mark.parametrize("nbytes", [INLINE, STAGED])
class TestHostArraysWithADefaultStream:
    """The stream is that of the current GPU, whatever the call."""

    @pytest.mark.parametrize("call", ["copy", "copy_async", "write"])
    def test_is_waited_for(self, stream: int, nbytes: int, call: str, tmp_path: Path) -> None:
        pinned, there = transfer.pinned_empty(nbytes, np.uint8), GpuArray(nbytes)
        pinned[:] = 1
        there.set(np.full(nbytes, 7, np.uint8))
        received = np.zeros(nbytes, np.uint8)
        fake_gpu.set_current_gpu(0)
        default = fake_gpu.default_stream(0)
        gate = gate_on(default)
        transfer.copy_async(pinned, there)
        opener = threading.Timer(0.05, gate.open)
        opener.start()
        if call == "copy":
            transfer.copy(received, pinned, stream=stream)
        elif call == "copy_async":
            transfer.copy_async(received, pinned, stream=stream).result(60)
        else:
            transfer.write(tmp_path / "file", pinned, stream=stream)
            transfer.read(tmp_path / "file", received)
        opener.join()
        assert (received == 7).all()

    def test_is_not_waited_for_without_one(self, stream: int, nbytes: int, tmp_path: Path) -> None:
        fake_gpu.set_current_gpu(0)
        gate = gate_on(fake_gpu.default_stream(0))
        sent, received = random_array(nbytes), np.zeros(nbytes, np.uint8)
        transfer.copy(received, sent)
        transfer.copy_async(received, sent).wait()
        assert transfer.write(tmp_path / "file", sent) == nbytes
        assert transfer.read(tmp_path / "file", received) == nbytes
        assert same_bytes(received, sent)
        gate.open()
