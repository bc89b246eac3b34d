"""Several operations as one transfer, and plans of them."""

from __future__ import annotations

import dataclasses
import gc
import os
import pathlib
import sys
import weakref
from typing import Any

import fake_gpu
import numpy as np
import pytest
from fake_gpu import DlpackArray, GpuArray, Stream, gate_on, random_array, same_bytes
from test_forked_workers import in_child
from test_handles import behind_a_gate
from test_lifetimes import a_buffer, prune, until

from waywiser import transfer
from waywiser.transfer import Copy, CopyBlocks, Read, Write, many_pieces

SMALL = 4096
LARGE = (3 << 20) + 77
BLOCKS = (16, 3, 256)


def shuffled(seed: int) -> Any:
    return np.random.default_rng(seed).permutation(BLOCKS[0])[:9]


class AllKinds:
    """Operations of every kind, and what they have to do."""

    def __init__(self, folder: pathlib.Path, *, gpu: bool = True, stream: Any = None) -> None:
        self.source, self.cache = random_array(LARGE), random_array(BLOCKS, np.float16, seed=1)
        self.content, self.strided = random_array(LARGE, seed=2), random_array((64, 40), seed=3)
        self.read, self.written = folder / "read", folder / "written"
        self.read.write_bytes(self.content.tobytes())
        self.written.write_bytes(bytes(2 * LARGE))
        self.to_index, self.from_index = shuffled(4), shuffled(5)
        self.host = np.zeros(LARGE, np.uint8)
        self.cropped = np.zeros((64, 20), np.uint8)

        def there(shape: Any, dtype: Any = np.uint8) -> Any:
            number = None if stream is None else stream.handle
            array = GpuArray(shape, dtype, stream=number)
            return array.set(np.zeros(shape, dtype)) if gpu else np.zeros(shape, dtype)

        self.there, self.pool, self.loaded = there(LARGE), there(BLOCKS, np.float16), there(LARGE)
        self.kept = there(LARGE)
        if gpu:
            self.kept.set(self.source)
        else:
            self.kept[:] = self.source
        self.operations: list[transfer.TransferOperation] = [
            Copy(self.there, self.source),
            CopyBlocks(self.pool, self.cache, self.to_index, list(self.from_index)),
            Copy(self.cropped, self.strided[:, 10:30]),
            Read(self.read, self.loaded, offset=5),
            Write(self.written, self.kept, truncate=True, sync=True),
            Copy(self.host[:0], self.source[:0]),
        ]
        blocks = 9 * 3 * 256 * 2
        self.nbytes = LARGE + blocks + 64 * 20 + (LARGE - 5) + LARGE

    def check(self) -> None:
        def got(array: Any) -> Any:
            return array.get() if isinstance(array, GpuArray) else array

        pool = np.zeros(BLOCKS, np.float16)
        pool[self.to_index] = self.cache[self.from_index]
        assert same_bytes(got(self.there), self.source)
        assert same_bytes(got(self.pool), pool)
        assert same_bytes(self.cropped, self.strided[:, 10:30])
        assert same_bytes(got(self.loaded)[: LARGE - 5], self.content[5:])
        assert self.written.read_bytes() == self.source.tobytes()


class TestSubmit:
    @pytest.mark.parametrize("gpu", [True, False])
    @pytest.mark.parametrize("own_context", [True, False])
    def test_operations_of_all_kinds(
        self, tmp_path: pathlib.Path, gpu: bool, own_context: bool
    ) -> None:
        case = AllKinds(tmp_path, gpu=gpu)
        owner = transfer.Context(threads=2) if own_context else transfer
        handle = owner.submit(case.operations)
        assert handle.result() == case.nbytes
        case.check()

    def test_starts_after_the_stream_and_returns_at_once(self, tmp_path: pathlib.Path) -> None:
        stream = Stream(0)
        case = AllKinds(tmp_path, stream=stream)
        gate = gate_on(stream)
        stream.fill(case.kept.buffer.address, LARGE, 8)
        handle = transfer.submit(case.operations)
        info = handle.query()
        assert not info.ended
        assert info.bytes == case.nbytes + 5  # the read does not know the end of its file
        gate.open()
        assert handle.result() == case.nbytes
        assert case.written.read_bytes() == bytes([8]) * LARGE

    def test_nothing_is_nothing_to_do(self) -> None:
        same = np.zeros(4)
        cases: list[Any] = [[], iter(()), [Copy(same, same)], [Copy(same[:0], same[:0])]]
        for operations in cases:
            handle = transfer.submit(operations)
            assert handle.done()
            assert handle.result() == 0

    def test_a_write_of_no_bytes_may_cut_the_file(self, tmp_path: pathlib.Path) -> None:
        path = tmp_path / "file"
        path.write_bytes(b"0123456789")
        one, other = bytearray(1), b"x"
        handle = transfer.submit([Write(path, b"", offset=4, truncate=True), Copy(one, other)])
        assert handle.result() == 1
        assert path.read_bytes() == b"0123"

    def test_many_arrays_of_several_places(self) -> None:
        sent = [random_array(1000 + i, seed=i) for i in range(30)]
        there = [GpuArray(array.shape, gpu=i % 2, stream=1) for i, array in enumerate(sent)]
        back = [np.zeros_like(array) for array in sent]
        stream = Stream(0)
        operations = [Copy(to, of) for to, of in zip(there, sent, strict=True)]
        assert transfer.submit(operations, stream=stream.handle).result() == sum(map(len, sent))
        transfer.submit(
            [Copy(to, of) for to, of in zip(back, there, strict=True)], stream=stream.handle
        ).result()
        assert all(map(same_bytes, back, sent))

    def test_blocks_that_take_turns_in_one_array(self) -> None:
        there, source = GpuArray((8, 2, 64)), random_array((8, 2, 64))
        index = [3, 1, 0]
        halves = [there.view((8, 64), (128, 1), offset=64 * i) for i in range(2)]
        transfer.submit(
            [CopyBlocks(half, source[:, i], index, index) for i, half in enumerate(halves)]
        ).result()
        assert same_bytes(there.get()[index], source[index])

    def test_operations_do_not_change(self) -> None:
        one = Copy(bytearray(1), b"x")
        with pytest.raises(dataclasses.FrozenInstanceError):
            one.dst = bytearray(2)  # type: ignore[misc]
        assert one == one
        assert one != Copy(one.dst, one.src), "arrays are not compared"
        with pytest.raises(TypeError):
            Read("file", bytearray(3), 4)  # type: ignore[call-arg]

    def test_cancelling_ends_what_has_not_begun(self, tmp_path: pathlib.Path) -> None:
        case = AllKinds(tmp_path)
        with behind_a_gate() as (stream, _):
            handle = transfer.submit(case.operations, stream=stream.handle)
            handle.cancel()
            blocks_are_plain = transfer.copy_async(case.host, case.source)
            assert blocks_are_plain.result() == LARGE
        with pytest.raises(transfer.TransferCancelled):
            handle.result(60)
        assert not case.there.get().any()

    def test_waits_by_stream(self) -> None:
        stream, later = Stream(0), Stream(0)
        there, back, source = GpuArray(SMALL), np.zeros(SMALL, np.uint8), random_array(SMALL)
        handle = transfer.submit([Copy(there, source)], stream=stream.handle)
        handle.wait(later.handle)
        handle.wait_source_read()
        transfer.copy(back, there, stream=later.handle)
        assert same_bytes(back, source)


class TestLifetimes:
    def test_arrays_and_descriptors_live_until_the_end(self, tmp_path: pathlib.Path) -> None:
        (tmp_path / "a").write_bytes(random_array(SMALL).tobytes())
        there = [GpuArray(SMALL), GpuArray((1, SMALL)), GpuArray(SMALL), GpuArray(SMALL)]
        buffers = [array.buffer for array in there]
        sources = [a_buffer(SMALL) for _ in range(2)]
        sources[0][:] = 7
        sources[1][:] = 8
        index = np.array([0])
        before = len(os.listdir("/proc/self/fd"))
        with behind_a_gate() as (stream, gate):
            files = [(tmp_path / name).open(mode) for name, mode in (("a", "rb"), ("b", "wb"))]
            there[3].buffer.write(bytes([5]) * SMALL)
            transfer.submit(
                [
                    Copy(there[0], sources[0]),
                    CopyBlocks(there[1], sources[1][None], index, [0]),
                    Read(files[0], there[2]),
                    Write(files[1], there[3]),
                ],
                stream=stream.handle,
            )
            watched = [weakref.ref(array) for array in (*sources, *there)]
            for file in files:
                file.close()
            index[0] = 77
            del sources, there, index, files, file
            gc.collect()
            prune()
            assert [ref() is not None for ref in watched] == [True] * 6
            assert len(os.listdir("/proc/self/fd")) > before
            gate.open()

            def gone() -> bool:
                prune()
                return all(ref() is None for ref in watched)

            assert until(gone)
        expected = [bytes([7]) * SMALL, bytes([8]) * SMALL, random_array(SMALL).tobytes()]
        assert [buffer.read() for buffer in buffers[:3]] == expected
        assert (tmp_path / "b").read_bytes() == bytes([5]) * SMALL
        assert until(lambda: prune() or len(os.listdir("/proc/self/fd")) == before)

    def test_after_an_error_nothing_is_kept(self, tmp_path: pathlib.Path) -> None:
        source, there = a_buffer(SMALL), GpuArray(SMALL)
        watched = weakref.ref(source), weakref.ref(there)
        before = len(os.listdir("/proc/self/fd"))
        last: Any = None
        for last in (3, Copy(there, source), Read(tmp_path / "none", bytearray(3))):
            with pytest.raises(transfer.TransferError):
                transfer.submit([Copy(there, source), Write(tmp_path / "new", b"abc"), last])
        del source, there, last
        gc.collect()
        assert all(ref() is None for ref in watched)
        assert len(os.listdir("/proc/self/fd")) == before

    def test_nothing_is_moved_or_opened_after_an_error(self, tmp_path: pathlib.Path) -> None:
        target = np.zeros(4, np.uint8)
        with pytest.raises(transfer.InvalidOperand, match="operation 2"):
            transfer.submit(
                [Copy(target, b"abcd"), Write(tmp_path / "new", b"abc"), Copy(target, 3)]
            )
        assert not target.any()
        assert not (tmp_path / "new").exists()


HERE = np.zeros((4, 8), np.uint8)


class TestErrors:
    @pytest.mark.parametrize(
        ("operation", "error", "said"),
        [
            (3, TypeError, "submit: operation 1 is of type int, not an operation"),
            (Copy, TypeError, "submit: operation 1 is of type type, not an operation"),
            (Copy(HERE, 3), TypeError, "operation 1: copy: the source is of type int"),
            (Copy(HERE, HERE[1:].copy()), ValueError, "operation 1: copy: the shapes differ"),
            (Copy(HERE[:2], HERE[1:3]), ValueError, "operation 1: copy: source and destination"),
            (
                CopyBlocks(HERE, HERE.copy(), [9], [0]),
                ValueError,
                r"operation 1: copy_blocks: dst_index\[0\] is 9, out of range for 4 blocks",
            ),
            (
                CopyBlocks(GpuArray((4, 8)), HERE, [0, 4], [0, 1]),
                ValueError,
                r"operation 1: copy_blocks: dst_index\[1\] is 4, out of range",
            ),
            (
                CopyBlocks(GpuArray((4, 8)), HERE, [0, 0], [0, 1]),
                ValueError,
                "submit: operation 1 writes memory twice",
            ),
            (Read(__file__, HERE.T), transfer.UnsupportedTransfer, "operation 1: read: the array"),
            (Read("/no/where", HERE), FileNotFoundError, "operation 1: read '/no/where': No such"),
            (Read(__file__, HERE, offset=-1), ValueError, "operation 1: read: offset is -1"),
            (Write("/tmp/x", HERE, sync=None), TypeError, "operation 1: write: sync is None"),  # type: ignore[arg-type]
            (Write("/tmp/x", HERE, nbytes=99), ValueError, "operation 1: write: nbytes is 99"),
        ],
    )  # fmt: skip
    def test_names_the_operation(self, operation: Any, error: type[Exception], said: str) -> None:
        first = Copy(bytearray(4), b"abcd")
        with pytest.raises(error, match=said) as caught:
            transfer.submit([first, operation])
        assert isinstance(caught.value, transfer.TransferError)
        assert "\n" not in str(caught.value)

    def test_operations_are_a_sequence(self) -> None:
        calls: list[Any] = [transfer.submit, transfer.plan]
        for call in calls:
            name = call.__name__
            with pytest.raises(transfer.InvalidOperand, match=f"{name}: operations is of type int"):
                call(3)
            with pytest.raises(RuntimeError, match="no more"):
                call(failing())

    @pytest.mark.parametrize("plans", [False, True])
    def test_operations_that_are_not_apart(self, plans: bool, tmp_path: pathlib.Path) -> None:
        path = tmp_path / "file"
        path.touch()
        call: Any = transfer.plan if plans else transfer.submit
        one, other = np.zeros(100, np.uint8), np.ones(100, np.uint8)
        there = GpuArray((4, 25))
        apart = Copy(bytearray(4), b"abcd")
        pairs: list[tuple[Any, Any]] = [
            (Copy(one, other), Copy(one, other)),
            (Copy(one[:50], other[:50]), Copy(one[49:], other[49:])),
            (Copy(one, other), Copy(there.view((100,), None), one)),
            (CopyBlocks(there, one.reshape(4, 25), [0, 2], [0, 1]), Copy(there, HERE_100)),
            (Copy(one, other), Write(path, one)),
            (Copy(other, one), Read(path, one)),
        ]
        for first, second in pairs:
            with pytest.raises(
                transfer.InvalidTransfer, match="operations 0 and 2 share memory that one of them"
            ):
                call([first, apart, second])

    def test_arrays_in_several_streams(self) -> None:
        streams = [Stream(0), Stream(0)]
        there = [GpuArray(SMALL, stream=stream.handle) for stream in streams]
        host = [np.ones(SMALL, np.uint8) for _ in there]
        operations = [Copy(bytearray(1), b"x"), *map(Copy, there, host)]
        with pytest.raises(
            transfer.UnsupportedTransfer,
            match="operation 2: copy: its arrays are used in another stream than those of operat",
        ):
            transfer.submit(operations)
        assert transfer.submit(operations, stream=streams[1].handle).result() == 2 * SMALL + 1
        with pytest.raises(transfer.InvalidOperand, match="submit: the stream is of type str"):
            transfer.submit(operations, stream="x")
        plan = transfer.plan(operations)
        with pytest.raises(transfer.UnsupportedTransfer, match=r"operation 2: .*another stream"):
            plan.submit()
        assert plan.submit(stream=streams[1].handle).result() == 2 * SMALL + 1

    def test_a_file_that_is_not_open_for_this(self, tmp_path: pathlib.Path) -> None:
        path = tmp_path / "file"
        path.write_bytes(b"abc")
        target = bytearray(3)
        with path.open("rb") as reads, path.open("r+b") as both, path.open("ab") as appends:
            for file, said in ((reads, "not open for this"), (appends, "appending")):
                with pytest.raises(transfer.TransferError, match=f"operation 1: write .*{said}"):
                    transfer.submit([Read(both, target), Write(file, b"xyz")])

    def test_a_failure_during_the_transfer_names_the_only_file(
        self, tmp_path: pathlib.Path
    ) -> None:
        folder = os.open(tmp_path, os.O_RDONLY)
        handle = transfer.submit([Copy(bytearray(4), b"abcd"), Read(folder, bytearray(8))])
        os.close(folder)
        with pytest.raises(transfer.TransferFileError, match="operation 1: read descriptor "):
            handle.result()

    def test_a_closed_context(self) -> None:
        context = transfer.Context()
        operations = [Copy(bytearray(4), b"abcd")]
        plan = context.plan(operations)
        context.close()
        for call in (lambda: context.submit(operations), plan.submit):
            with pytest.raises(transfer.InvalidTransfer, match="the context is closed"):
                call()
        plan.close()

    def test_a_forked_child(self) -> None:
        operations = [Copy(bytearray(4), b"abcd")]
        context = transfer.Context()
        plan = context.plan(operations)
        for call in (lambda: context.submit(operations), plan.submit):
            assert in_child(call).startswith("ForkedContextError: ")
        assert in_child(lambda: transfer.Context().submit(operations).result()) == "4"
        assert plan.submit().result() == 4


HERE_100 = np.zeros((4, 25), np.uint8)


def failing() -> Any:
    yield Copy(bytearray(1), b"x")
    raise RuntimeError("no more")


class TestManyPieces:
    """Operands with more pieces than a list takes, which PyTorch copies."""

    COUNT = (1 << 20) + 1

    def operations(self) -> list[Any]:
        self.strided = random_array(2 * self.COUNT, np.uint16)
        self.target, self.other = np.zeros(self.COUNT, np.uint16), bytearray(4)
        return [Copy(self.other, b"abcd"), Copy(self.target, self.strided[::2])]

    def test_without_torch(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delitem(sys.modules, "torch", raising=False)
        with pytest.raises(transfer.UnsupportedTransfer, match=r"operation 1: copy: .*pieces"):
            transfer.submit(self.operations())
        assert self.other == bytes(4)

    def test_by_torch(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def copied(dst: Any, src: Any, *more: Any) -> bool:
            assert more[3] is True, "it has ended when the call returns"
            dst[...] = src
            return True

        monkeypatch.setattr(many_pieces, "copy_by_torch", copied)
        operations = self.operations()
        handle = transfer.submit(operations)
        assert handle.result() == 4 + 2 * self.COUNT
        assert handle.query().bytes == 4 + 2 * self.COUNT
        assert self.other == b"abcd"
        assert same_bytes(self.target, self.strided[::2])
        with pytest.raises(transfer.UnsupportedTransfer, match=r"operation 1: copy: .*pieces"):
            transfer.plan(operations)


class TestPlans:
    def test_is_submitted_again_and_again(self, tmp_path: pathlib.Path) -> None:
        case = AllKinds(tmp_path)
        with transfer.plan(case.operations) as plan:
            assert plan.submit().result() == case.nbytes
            case.check()
            case.source[:] = 3
            case.to_index[:] = 999  # the plan has its own
            case.kept.set(case.source)
            case.written.write_bytes(b"")
            for _ in range(3):
                assert plan.submit(stream=Stream(0).handle).result() == case.nbytes
        assert (case.there.get() == 3).all()
        assert case.written.read_bytes() == bytes([3]) * LARGE

    def test_follows_the_streams_of_the_arrays(self) -> None:
        streams = [Stream(0), Stream(0)]
        there, back = GpuArray(SMALL), np.zeros(SMALL, np.uint8)
        context = transfer.Context()
        plan = context.plan([Copy(back, there)])
        for number, stream in enumerate(streams):
            there.stream = stream.handle
            gate = gate_on(stream)
            stream.fill(there.buffer.address, SMALL, number + 1)
            handle = plan.submit()
            assert not handle.done()
            gate.open()
            assert handle.result() == SMALL
            assert (back == number + 1).all()
            assert plan.submit(stream=stream.handle).result() == SMALL

    def test_memory_that_has_changed(self) -> None:
        there, host = GpuArray(SMALL), np.zeros(SMALL, np.uint8)
        plan = transfer.plan([Copy(bytearray(1), b"x"), Copy(there, host)])
        before, there.buffer = there.buffer, fake_gpu.DeviceBuffer(0, SMALL)
        with pytest.raises(
            transfer.InvalidTransfer, match=r"operation 1: .*the memory of the destination is not"
        ):
            plan.submit()
        there.buffer = before
        assert plan.submit().result() == SMALL + 1

    def test_keeps_the_arrays(self) -> None:
        source, there = a_buffer(SMALL), GpuArray(SMALL)
        plan = transfer.plan([Copy(there, source)])
        watched = weakref.ref(source), weakref.ref(there)
        del source, there
        assert plan.submit().result() == SMALL
        with behind_a_gate() as (stream, _):
            handle = plan.submit(stream=stream.handle)
            plan.close()
            plan.close()
            gc.collect()
            assert all(ref() is not None for ref in watched)
            with pytest.raises(transfer.InvalidTransfer, match=r"TransferPlan\.submit: the plan"):
                plan.submit()
        assert handle.result() == SMALL
        assert all(ref() is None for ref in watched)

    def test_dropping_closes(self) -> None:
        source = a_buffer(SMALL)
        plan = transfer.plan([Copy(bytearray(SMALL), source)])
        watched = weakref.ref(source)
        del plan, source
        assert watched() is None

    def test_a_producer_of_dlpack(self) -> None:
        source, there = random_array(SMALL), GpuArray(SMALL)
        plan = transfer.plan([Copy(there, DlpackArray(source))])
        for stream in (None, 1):
            assert plan.submit(stream=stream).result() == SMALL
        assert same_bytes(there.get(), source)

    def test_cancelling(self) -> None:
        there, source = GpuArray(12 << 20), random_array(12 << 20)
        plan = transfer.plan([Copy(there, source)])
        with behind_a_gate() as (stream, _):
            handle = plan.submit(stream=stream.handle)
            handle.cancel()
            with pytest.raises(transfer.TransferCancelled):
                handle.result(60)
        assert plan.submit().result() == 12 << 20
        assert same_bytes(there.get(), source)

    def test_nothing(self) -> None:
        assert transfer.plan([]).submit().result() == 0
