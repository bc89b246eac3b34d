"""How long operands live, awaiting, interruption, contexts, forks and the end of the process."""

from __future__ import annotations

import asyncio
import gc
import mmap
import os
import select
import subprocess
import sys
import textwrap
import threading
import time
import weakref
from pathlib import Path
from typing import Any

import fake_gpu
import numpy as np
import pytest
from fake_gpu import DlpackArray, GpuArray, Stream, gate_on, random_array, same_bytes

from waywiser import transfer

INLINE = 4096
STAGED = 12 << 20
SLICE = 0.1  # seconds for which the library waits at once


class Buffer(np.ndarray[Any, Any]):
    """An array that can be watched."""


def a_buffer(nbytes: int) -> Any:
    return np.zeros(nbytes, np.uint8).view(Buffer)


def prune() -> None:
    """Any call looks at the transfers under way."""
    transfer.copy(bytearray(1), b"x")


def until(holds: Any, seconds: float = 30) -> bool:
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            return False
        time.sleep(0.001)
    return True


@pytest.mark.parametrize("nbytes", [INLINE, STAGED])
class TestOperandsLive:
    def test_while_the_handle_is_held(self, nbytes: int) -> None:
        stream, gate_and_all = Stream(0), a_buffer(nbytes)
        gate = gate_on(stream)
        there = GpuArray(nbytes)
        handle = transfer.copy_async(there, gate_and_all, stream=stream.handle)
        watched = weakref.ref(gate_and_all), weakref.ref(there.buffer)
        del gate_and_all, there
        gc.collect()
        assert all(ref() is not None for ref in watched)
        gate.open()
        handle.result()
        gc.collect()
        assert all(ref() is None for ref in watched)

    def test_after_the_handle_is_dropped(self, nbytes: int) -> None:
        stream, source, there = Stream(0), a_buffer(nbytes), GpuArray(nbytes)
        gate = gate_on(stream)
        source[:] = 9
        transfer.copy_async(there, source, stream=stream.handle)
        watched = weakref.ref(source), weakref.ref(there)
        buffer = there.buffer
        del source, there
        gc.collect()
        prune()
        assert all(ref() is not None for ref in watched)
        gate.open()

        def gone() -> bool:
            prune()
            return all(ref() is None for ref in watched)

        assert until(gone)
        assert set(buffer.read()) == {9}

    def test_after_a_copy_between_gpus_returned(self, nbytes: int) -> None:
        stream = Stream(0)
        source, there = GpuArray(nbytes), GpuArray(nbytes)
        gate = gate_on(stream)
        transfer.copy(there, source, stream=stream.handle)
        watched = weakref.ref(source), weakref.ref(there)
        del source, there
        prune()
        assert all(ref() is not None for ref in watched)
        gate.open()
        stream.synchronize()
        prune()
        prune()
        assert all(ref() is None for ref in watched)

    def test_after_an_interruption(self, nbytes: int) -> None:
        stream, host, there = Stream(0), a_buffer(nbytes), GpuArray(nbytes)
        gate = gate_on(stream)
        stream.fill(there.buffer.address, nbytes, 4)
        handle = transfer.copy_async(host, there, stream=stream.handle)
        with pytest.raises(TimeoutError):
            handle.result(0.01)
        watched = weakref.ref(host)
        del host, handle
        prune()
        assert watched() is not None
        gate.open()
        assert until(lambda: prune() or watched() is None)


def test_a_buffer_cannot_be_resized_while_it_is_copied() -> None:
    stream, source, there = Stream(0), bytearray(INLINE), GpuArray(INLINE)
    gate = gate_on(stream)
    handle = transfer.copy_async(there, source, stream=stream.handle)
    with pytest.raises(BufferError):
        source.append(1)
    gate.open()
    handle.result()
    source.append(1)


@pytest.mark.parametrize("kind", [bytearray, mmap.mmap])
@pytest.mark.parametrize("listed", [False, True])
def test_a_source_on_the_host_is_free_after_a_copy(kind: Any, listed: bool) -> None:
    source: Any = bytearray(STAGED) if kind is bytearray else mmap.mmap(-1, STAGED)
    there = GpuArray(STAGED)
    if listed:
        shape = (STAGED // 128, 128)
        values = np.frombuffer(source, np.uint8).reshape(shape)[:, :64]
        transfer.copy(there.view(shape, None).view((STAGED // 128, 64), (128, 1)), values)
        del values
    else:
        transfer.copy(there, source)
    if kind is bytearray:
        source.append(1)
    else:
        source.close()


@pytest.mark.slow
def test_the_destination_of_a_part_lives_after_a_failure(tmp_path: Path) -> None:
    nbytes = (1 << 30) + (16 << 20)
    path = tmp_path / "file"
    with path.open("wb") as file:
        file.truncate(nbytes)
    source = np.zeros(nbytes, np.uint8)
    calls: list[Any] = [
        transfer.copy,
        lambda to, from_: transfer.read(path, to, nbytes=from_.nbytes),
    ]
    for call in calls:
        there: Any = GpuArray(nbytes)
        fake_gpu.configure("without=batch")  # then both calls make as many copies for one part
        call(there.view((1 << 30,), None), source[: 1 << 30])
        of_the_first_part = fake_gpu.copies()
        fake_gpu.configure(f"without=batch;fail=copy@{of_the_first_part + 1}+")
        watched = weakref.ref(there.buffer)
        start = time.monotonic()
        with pytest.raises(transfer.GpuError) as caught:
            call(there, source)
        seconds = time.monotonic() - start
        fake_gpu.configure("")
        # On a busy machine the first part may make more copies than the time before.
        assert caught.value.moved >= (1 << 30) - (16 << 20)
        there = caught = None  # the traceback has the arguments
        gc.collect()
        # A part that takes longer than the calls wait at once has ended on the GPU too.
        assert watched() is not None or seconds > SLICE
        assert until(lambda w=watched: prune() or w() is None)


def test_a_dlpack_capsule_lives_as_long_as_the_transfer() -> None:
    stream, there = Stream(0), GpuArray(INLINE)
    gate = gate_on(stream)
    array = a_buffer(INLINE)
    watched = weakref.ref(array)
    handle = transfer.copy_async(there, DlpackArray(array), stream=stream.handle)
    del array
    gc.collect()
    assert watched() is not None
    gate.open()
    handle.result()
    gc.collect()
    assert watched() is None


def test_a_callback_of_an_operand_may_call_the_library() -> None:
    called = []

    def back(_: Any) -> None:
        prune()
        called.append(1)

    stream, source = Stream(0), a_buffer(INLINE)
    gate = gate_on(stream)
    handles = [
        transfer.copy_async(GpuArray(INLINE), source, stream=stream.handle) for _ in range(10)
    ]
    watched = weakref.ref(source, back)
    del source
    gate.open()
    stream.synchronize()
    del handles
    assert until(lambda: prune() or bool(called))
    assert watched() is None


class TestAwaiting:
    def test_gives_the_result(self) -> None:
        async def both() -> list[int]:
            arrays = [GpuArray(size) for size in (INLINE, STAGED)]
            return await asyncio.gather(
                *(self.one(transfer.copy_async(a, random_array(a.shape))) for a in arrays)
            )

        assert asyncio.run(both()) == [INLINE, STAGED]

    async def one(self, handle: transfer.TransferHandle) -> int:
        return await handle

    @pytest.mark.parametrize("nbytes", [INLINE, STAGED])
    def test_the_loop_runs_meanwhile(self, nbytes: int) -> None:
        stream, host, there = Stream(0), np.zeros(nbytes, np.uint8), GpuArray(nbytes)
        gate = gate_on(stream)
        stream.fill(there.buffer.address, nbytes, 6)

        async def main() -> int:
            handle = transfer.copy_async(host, there, stream=stream.handle)
            waiting = [asyncio.ensure_future(self.one(handle)) for _ in range(3)]
            for _ in range(5):
                await asyncio.sleep(0)
            assert not any(task.done() for task in waiting)
            gate.open()
            assert await asyncio.gather(*waiting) == [nbytes] * 3
            return await handle

        assert asyncio.run(main()) == nbytes
        assert (host == 6).all()

    def test_a_plain_copy_of_pinned_memory(self) -> None:
        stream, there = Stream(0), GpuArray(INLINE)
        gate = gate_on(stream)

        async def main() -> int:
            host = transfer.pinned_empty(INLINE, np.uint8)
            handle = transfer.copy_async(there, host, stream=stream.handle)
            with pytest.raises(TimeoutError) as caught:
                handle.result(0)
            assert caught.value.moved == 0
            asyncio.get_running_loop().call_soon(gate.open)
            return await handle

        assert asyncio.run(main()) == INLINE

    def test_a_failure_is_raised(self) -> None:
        there = GpuArray(STAGED)
        fake_gpu.configure("fail=copy@1+")

        async def main() -> None:
            with pytest.raises(transfer.GpuError):
                await transfer.copy_async(np.zeros(STAGED, np.uint8), there)

        asyncio.run(main())

    def test_cancelling_leaves_the_transfer_running(self) -> None:
        stream, host, there = Stream(0), np.zeros(INLINE, np.uint8), GpuArray(INLINE)
        gate = gate_on(stream)
        stream.fill(there.buffer.address, INLINE, 6)
        before = len(os.listdir("/proc/self/fd"))
        handle = transfer.copy_async(host, there, stream=stream.handle)

        async def main() -> None:
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(self.one(handle), 0.01)

        asyncio.run(main())
        gate.open()
        assert handle.result() == INLINE
        assert (host == 6).all()
        assert len(os.listdir("/proc/self/fd")) == before

    def test_descriptors_while_other_threads_look_at_the_transfers(self) -> None:
        ends = threading.Event()

        def look() -> None:
            while not ends.is_set():
                prune()

        there, host = GpuArray(8), transfer.pinned_empty(8, np.uint8)
        before = len(os.listdir("/proc/self/fd"))
        threads = [threading.Thread(target=look) for _ in range(3)]
        for thread in threads:
            thread.start()
        try:
            for _ in range(300):
                descriptor = transfer.copy_async(there, host)._descriptor()
                assert select.select([descriptor], [], [], 30)[0]
                os.close(descriptor)
        finally:
            ends.set()
            for thread in threads:
                thread.join()
        assert until(lambda: prune() or len(os.listdir("/proc/self/fd")) == before)

    def test_a_copy_that_outlives_its_context(self) -> None:
        """The stream has it: closing the context neither ends nor cancels it."""
        stream, there = Stream(0), GpuArray(INLINE)
        source = transfer.pinned_empty(INLINE, np.uint8)
        gate = gate_on(stream)
        context = transfer.Context()
        handle = context.copy_async(there, source, stream=stream.handle)

        async def main() -> int:
            waiting = asyncio.ensure_future(handle)
            await asyncio.sleep(0)
            context.close()
            asyncio.get_running_loop().call_later(0.05, gate.open)
            return await waiting

        assert asyncio.run(main()) == INLINE

    def test_outside_of_asyncio(self) -> None:
        stream, there = Stream(0), GpuArray(INLINE)
        gate = gate_on(stream)
        handle = transfer.copy_async(there, np.zeros(INLINE, np.uint8), stream=stream.handle)
        before = len(os.listdir("/proc/self/fd"))
        with pytest.raises(RuntimeError, match="no running event loop"):
            handle.__await__().send(None)
        assert len(os.listdir("/proc/self/fd")) == before
        gate.open()
        handle.result()

    def test_leaves_no_descriptor(self) -> None:
        async def main() -> None:
            for _ in range(20):
                await transfer.copy_async(GpuArray(STAGED), np.zeros(STAGED, np.uint8))

        asyncio.run(main())
        before = len(os.listdir("/proc/self/fd"))
        asyncio.run(main())
        assert len(os.listdir("/proc/self/fd")) == before


class TestContexts:
    def test_has_the_calls_as_methods(self, tmp_path: Any) -> None:
        source, there, back = random_array(STAGED), GpuArray(STAGED), np.zeros(STAGED, np.uint8)
        with transfer.Context(threads=2, pinned_bytes=8 << 20, max_queued_bytes=1 << 20) as context:
            context.copy(there, source)
            context.copy_async(back, there).result()
            assert same_bytes(back, source)
            assert same_bytes(context.to_host(there), source)
            context.copy_batch(dsts=[back], srcs=[source])
            context.copy_batch_async(dsts=[back], srcs=[source]).result()
            context.copy_blocks(back[None], source[None], [0], [0])
            context.copy_blocks_async(back[None], source[None], [0], [0]).result()
            assert context.write(tmp_path / "file", there) == STAGED
            assert context.write_async(tmp_path / "file", there).result() == STAGED
            assert context.read(tmp_path / "file", there) == STAGED
            assert context.read_async(tmp_path / "file", there).result() == STAGED
            assert context.explain(there, source)
            assert context.copy_method(there, source) == "chunked"
            usage = context.usage()
            assert usage["threads"] <= usage["most_threads"] <= 2
            assert usage["pinned_bytes"] <= usage["most_pinned_bytes"] == 8 << 20
            assert usage["gpu_bytes"] <= usage["most_gpu_bytes"]
            assert usage["streams"] > 0

    def test_is_closed_once_and_says_so(self) -> None:
        context = transfer.Context()
        context.close()
        context.close()
        for call in (
            lambda: context.copy(GpuArray(4), bytes(4)),
            lambda: context.copy_async(bytearray(4), bytes(4)),
            context.usage,
        ):
            with pytest.raises(ValueError, match="closed"):
                call()

    def test_closing_cancels_what_waits_for_its_stream(self) -> None:
        stream, source, there = Stream(0), a_buffer(STAGED), GpuArray(STAGED)
        gate = gate_on(stream)
        context = transfer.Context()
        handle = context.copy_async(there, source, stream=stream.handle)
        watched = weakref.ref(source)
        del source
        context.close()
        with pytest.raises(transfer.TransferCancelled):
            handle.result()
        assert watched() is None
        gate.open()

    def test_closing_waits_for_what_has_started(self) -> None:
        there, source = GpuArray(STAGED), random_array(STAGED)
        with transfer.Context() as context:
            handle = context.copy_async(there, source)
            assert until(lambda: context.usage()["transfers"] == 0 or handle.done())
        assert handle.result() == STAGED

    def test_relays_have_to_be_there(self) -> None:
        with pytest.raises(transfer.InvalidTransfer, match="GPU 9"):
            transfer.Context(relays=[9])
        with pytest.raises(TypeError):
            transfer.Context(2)  # type: ignore[misc]

        for there in (9, 255):
            with pytest.raises(transfer.InvalidTransfer) as caught:
                transfer.Context(relays=(there,))
            assert "machine()" in caught.value.remedy

    @pytest.mark.parametrize(
        ("options", "error", "said"),
        [
            ({"threads": -1}, ValueError, "threads is -1"),
            ({"threads": 0}, ValueError, "threads is 0"),
            ({"threads": 1.5}, TypeError, "threads is 1.5"),
            ({"pinned_bytes": "1G"}, TypeError, "pinned_bytes is '1G'"),
            ({"pinned_bytes": 1 << 64}, ValueError, "pinned_bytes is 18446744073709551616"),
            ({"relay_bytes": -5}, ValueError, "relay_bytes is -5"),
            ({"max_queued_bytes": -5}, ValueError, "max_queued_bytes is -5"),
            ({"relays": 1}, TypeError, "relays is 1, not a sequence"),
            ({"relays": "1"}, TypeError, "relays is '1', not a sequence"),
            ({"relays": [None]}, TypeError, "an entry of relays is None"),
            ({"relays": [-1]}, ValueError, "entry -1"),
            ({"relays": [1 << 40]}, ValueError, "entry 1099511627776"),
        ],
    )
    def test_limits_that_make_no_sense(
        self, options: Any, error: type[Exception], said: str
    ) -> None:
        with pytest.raises(error, match=said) as caught:
            transfer.Context(**options)
        assert isinstance(caught.value, transfer.TransferError)
        assert "\n" not in str(caught.value)

    def test_relays_are_any_sequence_of_numbers(self) -> None:
        for relays in ([1], (1,), range(1, 2), np.array([1])):
            transfer.Context(relays=relays, threads=np.int64(2)).close()  # type: ignore[arg-type]

    def test_plain_uses_no_threads(self) -> None:
        there, source = GpuArray(STAGED), random_array(STAGED)
        with transfer.Context(plain=True) as context:
            context.copy(there, source)
            assert context.usage()["threads"] == 0
            assert "plain" in context.explain(there, source)
        assert same_bytes(there.get(), source)

    def test_dropping_closes(self) -> None:
        context = transfer.Context()
        handle = context.copy_async(GpuArray(STAGED), np.zeros(STAGED, np.uint8))
        watched = weakref.ref(context)
        del context
        gc.collect()
        assert watched() is None
        assert handle.done()


class TestPinned:
    @pytest.mark.parametrize("shape", [7, (3, 4), [2, 3, 5], (), (0,), (0, 4)])
    @pytest.mark.parametrize("dtype", [np.uint8, "f4", float, np.dtype("c16"), "i4,f8"])
    def test_arrays_of_any_shape_and_dtype(self, shape: Any, dtype: Any) -> None:
        made = transfer.pinned_empty(shape, dtype)
        like = np.empty(shape, dtype)
        assert (made.shape, made.dtype) == (like.shape, like.dtype)
        made[...] = np.ones(like.shape).astype(like.dtype)
        if made.nbytes:
            assert "copy engine" in transfer.explain(
                GpuArray(made.nbytes), made.reshape(-1).view(np.uint8)
            )

    def test_is_freed_with_the_last_view(self) -> None:
        def pinned() -> int:
            now = fake_gpu.live()
            return now["registrations"] + now["host_buffers"]

        before = pinned()
        made = transfer.pinned_empty(STAGED, np.uint8)
        view = made[5:10]
        during = pinned()
        assert during > before
        del made
        gc.collect()
        assert pinned() == during
        del view
        gc.collect()
        assert pinned() == before

    def test_outlives_contexts(self) -> None:
        with transfer.Context() as context:
            made = transfer.pinned_empty(INLINE, np.uint8)
            context.copy(GpuArray(INLINE), made)
        made[:] = 1
        assert made.sum() == INLINE

    @pytest.mark.parametrize(
        ("arguments", "error"),
        [
            (((-1,), "f4"), ValueError),
            (("3", "f4"), TypeError),
            ((1.5, "f4"), TypeError),
            ((3, object), TypeError),
            ((3, "nonsense"), TypeError),
            ((1 << 60, "u1"), MemoryError),
            (((1 << 63) - 1, "u1"), MemoryError),
            ((1 << 63, "u1"), MemoryError),
            (((1 << 40, 1 << 40), "f8"), MemoryError),
        ],
    )
    def test_what_is_an_error(self, arguments: Any, error: type[Exception]) -> None:
        with pytest.raises(error) as caught:
            transfer.pinned_empty(*arguments)
        assert isinstance(caught.value, transfer.TransferError)

    def test_a_numa_node_is_an_index(self) -> None:
        assert transfer.pinned_empty(5, "u1", numa=0).shape == (5,)
        with pytest.raises(ValueError, match="numa is -1"):
            transfer.pinned_empty(5, "u1", numa=-1)
        with pytest.raises(transfer.InvalidOperand, match="numa is '0'"):
            transfer.pinned_empty(5, "u1", numa="0")  # type: ignore[arg-type]

    def test_failing_to_pin_is_an_error(self) -> None:
        fake_gpu.configure("oom_at=1+")
        with pytest.raises(MemoryError) as caught:
            transfer.pinned_empty(STAGED, "u1")
        assert isinstance(caught.value, transfer.TransferMemoryError)


class TestToHost:
    @pytest.mark.parametrize("count", [0, 1, 1000, 3 << 20])
    def test_a_new_array_like_the_one_on_the_gpu(self, count: int) -> None:
        values = random_array((count, 1), np.float32)
        made = transfer.to_host(GpuArray((count, 1), np.float32).set(values))
        assert type(made) is np.ndarray
        assert (made.shape, made.dtype) == (values.shape, values.dtype)
        assert same_bytes(made, values)
        made[...] = 0

    def test_follows_the_stream(self) -> None:
        stream, there = Stream(0), GpuArray(STAGED)
        gate = gate_on(stream)
        stream.fill(there.buffer.address, STAGED, 5)
        threading.Timer(0.05, gate.open).start()
        assert (transfer.to_host(there, stream=stream.handle) == 5).all()

    def test_of_the_host_too(self) -> None:
        source = random_array((20, 30), np.int16)
        assert same_bytes(transfer.to_host(source[:, ::2]), source[:, ::2])
        assert same_bytes(transfer.to_host(memoryview(source)), source)
        with pytest.raises(TypeError, match="is not an array"):
            transfer.to_host(3)

    def test_large_memory_goes_with_the_array(self) -> None:
        def mapped() -> int:
            return int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGESIZE")

        source = np.zeros(64 << 20, np.uint8)
        transfer.to_host(source)  # starts the threads that copy
        before = mapped()
        for _ in range(16):
            transfer.to_host(source)
        assert mapped() - before < 512 << 20


def run(code: str, environment: dict[str, str], **more: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        **more,
    )


FIRST = """
import os, signal, sys, threading, time
import numpy as np
from waywiser import transfer
from fake_gpu import GpuArray, Gate, Stream

stream, there = Stream(0), GpuArray(12 << 20)
gate = Gate(0)
"""


class TestProcesses:
    def test_the_import_is_light(self, fake_transfer_environment: dict[str, str]) -> None:
        answer = run(
            """
            import sys
            import waywiser.transfer
            heavy = {"numpy", "scipy", "matplotlib", "msgspec", "torch", "cupy", "asyncio"}
            print(sorted(heavy & set(sys.modules)))
            waywiser.transfer.copy(bytearray(3), b"abc")
            print(sorted(heavy & set(sys.modules)))
            """,
            fake_transfer_environment,
        )
        assert answer.stdout == "[]\n[]\n", answer.stderr

    def test_a_missing_module_is_said_to_be_missing(
        self, fake_transfer_environment: dict[str, str]
    ) -> None:
        environment = {**fake_transfer_environment, "WAYWISER_TRANSFER_NATIVE": "nowhere._transfer"}
        answer = run(
            """
            try:
                import waywiser.transfer
            except ImportError as error:
                print(error)
            """,
            environment,
        )
        assert "nowhere._transfer: the transfer library does not load" in answer.stdout

    @pytest.mark.parametrize("nbytes", [INLINE, STAGED])
    def test_an_interruption_ends_a_wait(
        self, fake_transfer_environment: dict[str, str], nbytes: int
    ) -> None:
        answer = run(
            FIRST
            + f"""
host, there = np.zeros({nbytes}, np.uint8), GpuArray({nbytes})
null = os.open("/dev/null", os.O_WRONLY)
def interrupt():
    time.sleep(0.1)
    os.kill(os.getpid(), signal.SIGINT)
for wait in ("result", "wait", "write", "pinned", "pageable"):
    stream, gate = Stream(0), Gate(0)
    gate.close(stream)
    source = transfer.pinned_empty({nbytes}, np.uint8) if wait == "pinned" else host
    if wait in ("result", "wait"):
        handle = transfer.copy_async(there, source, stream=stream.handle)
    thread = threading.Thread(target=interrupt)
    try:
        thread.start()
        if wait == "result":
            handle.result()
        elif wait == "wait":
            handle.wait()
        elif wait == "write":
            transfer.write(null, host, stream=stream.handle)
        else:
            transfer.copy(there, source, stream=stream.handle)
    except KeyboardInterrupt:
        print(wait, "interrupted")
    thread.join()
    gate.open()
    stream.synchronize()
    source = None
    transfer.copy(bytearray(1), b"x")  # to free pinned memory waits for the GPU: not behind a gate
""",
            fake_transfer_environment,
        )
        waits = ["result", "wait", "write", "pinned", "pageable"]
        expected = [f"{wait} interrupted" for wait in waits]
        assert answer.stdout.splitlines() == expected, answer.stderr
        assert answer.returncode == 0

    def test_a_gpu_that_hangs_neither_holds_up_the_program_nor_gets_freed_memory(
        self, fake_transfer_environment: dict[str, str]
    ) -> None:
        answer = run(
            FIRST
            + f"""
import ctypes, fake_gpu, gc, weakref
for thing in (there.buffer, stream, gate):  # to free them waits for the GPU
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))
host, there = np.zeros({STAGED}, np.uint8), GpuArray({STAGED})
lines = []
context = transfer.Context(threads=2, spin_seconds=1e-3, log=lines.append)
fake_gpu.configure("devices=1;hang=copy@1")
def interrupt():
    time.sleep(0.3)
    os.kill(os.getpid(), signal.SIGINT)
thread = threading.Thread(target=interrupt)
try:
    thread.start()
    context.copy(host, there)
except KeyboardInterrupt:
    print("interrupted")
thread.join()
handle = context.copy_async(np.zeros({STAGED}, np.uint8), there)
try:
    handle.result(0.1)
except transfer.TransferTimeout:
    print("goes on")
watched = weakref.ref(there.buffer)
context.close()
print("warned" if "must not be freed" in lines[-1] else lines)
try:
    handle.result()
except transfer.TransferInUse as error:
    print("in use" if "do not free" in str(error) else error)
del there, handle
gc.collect()
print("kept" if watched() is not None else "freed")
""",
            fake_transfer_environment,
        )
        expected = ["interrupted", "goes on", "warned", "in use", "kept"]
        assert answer.stdout.splitlines() == expected, answer.stderr
        assert answer.returncode == 0

    @pytest.mark.parametrize("call", ["transfer.copy(there, source)", "transfer.read(path, there)"])
    def test_the_destination_of_a_part_lives_after_an_interruption(
        self, fake_transfer_environment: dict[str, str], tmp_path: Path, call: str
    ) -> None:
        """In a process of its own: a signal that came before or after the call would end all tests.
        That process has no other transfer, so one that it counts is that of the call."""
        path = tmp_path / "file"
        with path.open("wb") as file:
            file.truncate((1 << 30) + 1)
        answer = run(
            FIRST
            + f"""
import fake_gpu, gc, weakref
path, nbytes = {str(path)!r}, (1 << 30) + 1
source, there = np.zeros(nbytes, np.uint8), GpuArray(nbytes)
watched = weakref.ref(there.buffer)
fake_gpu.configure("devices=1;h2d=1")  # the copy goes on for a second
ended = threading.Event()
def interrupt():
    while not ended.wait(0.001):
        if transfer.usage()["transfers"]:
            os.kill(os.getpid(), signal.SIGINT)
            break
thread = threading.Thread(target=interrupt)
try:
    thread.start()
    {call}
    print("not interrupted")
except KeyboardInterrupt:
    del there
    gc.collect()
    lives = watched() is not None
    # On a busy machine the copy may have ended.
    print("interrupted" if lives or not transfer.usage()["transfers"] else "freed early")
ended.set()
thread.join()
while watched() is not None:
    transfer.copy(bytearray(1), b"x")
    time.sleep(0.001)
print("freed")
""",
            fake_transfer_environment,
        )
        assert answer.stdout.splitlines() == ["interrupted", "freed"], answer.stderr
        assert answer.returncode == 0

    def test_a_forked_child_is_reported(self, fake_transfer_environment: dict[str, str]) -> None:
        answer = run(
            FIRST
            + """
import ctypes
for thing in (there.buffer, stream, gate):  # the fake waits for its threads to free them
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))
gate.close(stream)
context = transfer.Context()
pinned = transfer.pinned_empty(4096, np.uint8)
handle = transfer.copy_async(there, np.zeros(12 << 20, np.uint8), stream=stream.handle)
context.copy(bytearray(4), bytes(4))
child = os.fork()
if child == 0:
    for call in (
        lambda: transfer.copy(bytearray(1), b"x"),
        lambda: transfer.copy_async(there, np.zeros(12 << 20, np.uint8)),
        lambda: context.copy(bytearray(1), b"x"),
        context.usage,
        handle.result,
        handle.done,
        handle.wait,
    ):
        try:
            call()
            print("no error")
        except transfer.ForkedContextError as error:
            assert "spawn" in str(error)
        except BaseException as error:
            print("wrong", error)
    context.close()
    del handle, context, pinned
    print("child ends", flush=True)
    sys.exit(0)
assert os.waitpid(child, 0)[1] == 0
gate.open()
print(handle.result())
""",
            fake_transfer_environment,
        )
        assert answer.stdout.splitlines() == ["child ends", str(STAGED)], answer.stderr

    def test_a_child_may_be_the_first_to_call(
        self, fake_transfer_environment: dict[str, str]
    ) -> None:
        answer = run(
            """
            import os
            from waywiser import transfer
            child = os.fork()
            if child:
                os.waitpid(child, 0)
            received = bytearray(3)
            transfer.copy(received, b"abc")
            print(bytes(received), flush=True)
            """,
            fake_transfer_environment,
        )
        assert answer.stdout.splitlines() == ["b'abc'"] * 2, answer.stderr

    @pytest.mark.parametrize("gate", ["closed", "open"])
    @pytest.mark.parametrize("dropped", [True, False])
    def test_the_process_ends_with_transfers_under_way(
        self, fake_transfer_environment: dict[str, str], gate: str, dropped: bool
    ) -> None:
        answer = run(
            FIRST
            + f"""
if {gate == "closed"}:
    gate.close(stream)
arrays = [np.zeros(12 << 20, np.uint8) for _ in range(4)]
handles = [transfer.copy_async(there, a, stream=stream.handle) for a in arrays]
if {dropped}:
    del handles, arrays
threading.Timer(0.3, gate.open).start()  # the fake's own streams end with their work
print("end", flush=True)
""",
            fake_transfer_environment,
        )
        assert (answer.returncode, answer.stdout, answer.stderr) == (0, "end\n", "")

    def test_the_last_handle_of_a_closed_context_waits_without_the_interpreter(
        self, fake_transfer_environment: dict[str, str]
    ) -> None:
        answer = run(
            FIRST
            + """
context = transfer.Context()
handle = context.copy_async(there, np.zeros(12 << 20, np.uint8))
handle.result()
context.close()
gate.close(stream)  # to free pinned memory waits for the GPU
opened = []
def later():
    time.sleep(0.2)
    opened.append(1)
    gate.open()
threading.Thread(target=later).start()
del handle
print(bool(opened), flush=True)
""",
            fake_transfer_environment,
        )
        assert (answer.returncode, answer.stdout) == (0, "True\n"), answer.stderr

    def test_the_process_ends_while_a_daemon_waits(
        self, fake_transfer_environment: dict[str, str]
    ) -> None:
        answer = run(
            FIRST
            + """
gate.close(stream)
handle = transfer.copy_async(there, np.zeros(12 << 20, np.uint8), stream=stream.handle)
def wait():
    try:
        handle.result()
    except transfer.TransferCancelled:
        pass
threading.Thread(target=wait, daemon=True).start()
time.sleep(0.05)
print("end", flush=True)
import atexit
atexit.register(gate.open)
""",
            fake_transfer_environment,
        )
        assert (answer.returncode, answer.stdout, answer.stderr) == (0, "end\n", "")

    def test_without_a_gpu_host_and_file_copies_work(
        self, fake_transfer_environment: dict[str, str], tmp_path: Any
    ) -> None:
        answer = run(
            f"""
            import numpy as np
            from waywiser import transfer
            source = np.arange(5 << 20, dtype=np.uint8)
            received = np.zeros_like(source)
            transfer.copy(received, source)
            assert (received == source).all()
            assert transfer.copy_async(received, source[::-1]).result() == source.nbytes
            assert (received == source[::-1]).all()
            path = {str(tmp_path / "file")!r}
            assert transfer.write(path, source) == transfer.read(path, received) == source.nbytes
            assert (received == source).all()
            for made in (transfer.pinned_empty((3, 5), "f4"), transfer.pinned_empty(9 << 20, "u1")):
                made[...] = 7
                row = made.ravel().view("u1")
                taken = min(row.nbytes, received.nbytes)
                transfer.copy(received[:taken], row[:taken])
                assert (received[:taken] == row[:taken]).all()
            del made, row
            class There:  # what another library has on a GPU
                __cuda_array_interface__ = {{
                    "data": (1 << 40, False), "shape": (4,), "typestr": "|u1", "version": 3
                }}
            for call in (
                lambda: transfer.copy(source[:4], There()),
                lambda: transfer.copy_async(There(), source[:4]),
                lambda: transfer.copy_batch(dsts=[There()], srcs=[source[:4]]),
                lambda: transfer.copy_blocks(There(), source[:4], [0], [1]),
                lambda: transfer.write(path, There()),
                lambda: transfer.explain(source[:4], There()),
            ):
                try:
                    call()
                    print("no error")
                except transfer.UnsupportedTransfer as error:
                    assert "cannot be copied: no driver here" in str(error), error
            print(transfer.machine()["gpus"], transfer.machine()["gpu_unavailable"])
            """.replace("source[::-1]", "np.ascontiguousarray(source[::-1])"),
            {**fake_transfer_environment, "WAYWISER_FAKE": "unavailable=no driver here"},
        )
        assert answer.stdout.splitlines() == ["[] no driver here"], answer.stderr

    def test_plain_copies_by_the_environment(
        self, fake_transfer_environment: dict[str, str]
    ) -> None:
        answer = run(
            FIRST
            + """
transfer.copy(there, np.ones(12 << 20, np.uint8))
assert (there.get() == 1).all()
print(transfer.usage()["threads"], transfer.explain(there, np.ones(12 << 20, np.uint8)))
""",
            {**fake_transfer_environment, "WAYWISER_TRANSFER": "plain"},
        )
        assert answer.stdout.startswith("0 plain copy"), answer.stderr
        other = run(
            """
import numpy as np
from waywiser import transfer
try:
    transfer.copy(np.zeros(4), np.ones(4))
except transfer.TransferError as error:
    print(error)
""",
            {**fake_transfer_environment, "WAYWISER_TRANSFER": "Plain"},
        )
        assert 'WAYWISER_TRANSFER is "Plain": set it to plain' in other.stdout, other.stderr
