"""copy_batch, copy_blocks, read and write."""

from __future__ import annotations

import errno
import os
import pathlib
import socket
import threading
from typing import Any

import numpy as np
import pytest
from fake_gpu import DlpackArray, GpuArray, Stream, gate_on, random_array, same_bytes

from waywiser import transfer

LARGE = (3 << 20) + 77


class TestBatch:
    @pytest.mark.parametrize("asynchronous", [False, True])
    @pytest.mark.parametrize("places", ["host", "to", "from", "between"])
    def test_every_pair_is_copied(self, asynchronous: bool, places: str) -> None:
        sent = [random_array(size, seed=size) for size in (1, 100, 70000, 0, 5)]
        received = [np.zeros_like(array) for array in sent]
        sources: list[Any] = sent
        destinations: list[Any] = received
        if places in ("from", "between"):
            sources = [GpuArray(array.shape, gpu=1).set(array) for array in sent]
        if places in ("to", "between"):
            destinations = [GpuArray(array.shape, gpu=0) for array in sent]
        if asynchronous:
            handle = transfer.copy_batch_async(dsts=destinations, srcs=sources)
            assert handle.result() == sum(array.nbytes for array in sent)
        else:
            transfer.copy_batch(dsts=destinations, srcs=sources)
        for got, want in zip(destinations, sent, strict=True):
            assert same_bytes(got.get() if isinstance(got, GpuArray) else got, want)

    def test_nothing_is_nothing_to_do(self) -> None:
        transfer.copy_batch(dsts=[], srcs=[])
        assert transfer.copy_batch_async(dsts=(), srcs=()).result() == 0

    def test_each_pair_may_have_another_dtype(self) -> None:
        sent = [random_array(10, np.float32), random_array((2, 3), np.int64)]
        received = [np.zeros_like(array) for array in sent]
        transfer.copy_batch(dsts=tuple(received), srcs=iter(sent))
        assert all(map(same_bytes, received, sent))

    def test_an_operand_may_shorten_the_list(self) -> None:
        class Shortening(GpuArray):
            @property
            def __cuda_array_interface__(self) -> dict[str, Any]:
                destinations.clear()
                sources.clear()
                return super().__cuda_array_interface__

        sent = [random_array(1000, seed=i) for i in range(4)]
        sources: list[Any] = [array.copy() for array in sent]
        arrays = [Shortening(1000), *(GpuArray(1000) for _ in range(3))]
        destinations: list[Any] = arrays.copy()
        transfer.copy_batch(dsts=destinations, srcs=sources)
        assert all(same_bytes(got.get(), want) for got, want in zip(arrays, sent, strict=True))

    def test_an_error_of_a_sequence_comes_through(self) -> None:
        def failing() -> Any:
            yield np.zeros(4)
            raise RuntimeError("no more arrays")

        with pytest.raises(RuntimeError, match="no more arrays"):
            transfer.copy_batch(dsts=failing(), srcs=[np.zeros(4)])

    def test_what_is_an_error(self) -> None:
        one, other = np.zeros(4), np.ones(4)
        with pytest.raises(ValueError, match="dsts has 2 arrays and srcs has 1"):
            transfer.copy_batch(dsts=[one, other], srcs=[one])
        with pytest.raises(TypeError, match="not a sequence"):
            transfer.copy_batch(dsts=3, srcs=[one])  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="two destinations share memory"):
            transfer.copy_batch(dsts=[one, one], srcs=[other, other])
        with pytest.raises(ValueError, match="share memory"):
            transfer.copy_batch(dsts=[one[:2], other], srcs=[other[:2], one])
        with pytest.raises(transfer.UnsupportedTransfer, match="destination 1 is on"):
            transfer.copy_batch(dsts=[one, GpuArray(4, np.float64)], srcs=[other, other])
        with pytest.raises(transfer.UnsupportedTransfer, match="source 1 is on gpu:1, 0 is on"):
            transfer.copy_batch(
                dsts=[one, other], srcs=[GpuArray(4, np.float64, gpu=gpu) for gpu in (0, 1)]
            )
        assert not one.any()

    def test_arrays_that_are_used_in_several_streams(self) -> None:
        streams = [Stream(0), Stream(0)]
        sources = [GpuArray(4, stream=stream.handle) for stream in streams]
        received = [np.zeros(4, np.uint8) for _ in sources]
        gate = gate_on(streams[1])
        streams[1].fill(sources[1].buffer.address, 4, 9)
        with pytest.raises(transfer.UnsupportedTransfer, match="pair 1 are used in another stream"):
            transfer.copy_batch(dsts=received, srcs=sources)
        gate.open()
        transfer.copy_batch(dsts=received, srcs=sources, stream=streams[1].handle)
        assert (received[1] == 9).all()


class TestBlocks:
    @pytest.mark.parametrize("places", ["host", "to", "from", "between"])
    @pytest.mark.parametrize("asynchronous", [False, True])
    def test_blocks_go_to_their_places(self, places: str, asynchronous: bool) -> None:
        cache = random_array((20, 4, 16), np.float16)
        pool = random_array((8, 4, 16), np.float16, seed=1)
        expected = pool.copy()
        to_index, from_index = [7, 0, 3], [19, 4, 4]
        expected[to_index] = cache[from_index]
        source: Any = cache
        destination: Any = pool
        if places in ("from", "between"):
            source = GpuArray(cache.shape, np.float16, gpu=1).set(cache)
        if places in ("to", "between"):
            destination = GpuArray(pool.shape, np.float16, gpu=0).set(pool)
        if asynchronous:
            handle = transfer.copy_blocks_async(destination, source, to_index, from_index)
            assert handle.result() == 3 * 128
        else:
            transfer.copy_blocks(destination, source, to_index, from_index)
        assert same_bytes(pool if destination is pool else destination.get(), expected)

    @pytest.mark.parametrize(
        "index",
        [
            (2, 0),
            range(2, -1, -2),
            np.array([2, 0]),
            np.array([2, 9, 0, 9], np.int16)[::2],
            np.array([2, 0], np.uint32),
            DlpackArray(np.array([2, 0], np.int8)),
        ],
    )
    def test_an_index_is_any_array_of_integers(self, index: Any) -> None:
        source, destination = random_array((3, 5)), np.zeros((3, 5), np.uint8)
        transfer.copy_blocks(destination, source, [0, 1], index)
        assert same_bytes(destination[:2], source[[2, 0]])

    def test_blocks_of_one_array_move_within_it(self) -> None:
        pool = random_array((6, 100))
        expected = pool.copy()
        expected[[0, 1]] = pool[[4, 5]]
        transfer.copy_blocks(pool, pool, [0, 1], [4, 5])
        assert same_bytes(pool, expected)

    def test_blocks_may_have_gaps_between_them(self) -> None:
        source, destination = random_array((6, 10)), np.zeros((6, 7), np.uint8)
        transfer.copy_blocks(destination, source[:, 2:9], [5], [1])
        assert same_bytes(destination[5], source[1, 2:9])
        assert not destination[:5].any()

    @pytest.mark.parametrize(
        ("to_index", "from_index", "error", "said"),
        [
            ([3], [0], ValueError, "out of range"),
            ([-1], [0], ValueError, "out of range"),
            ([0], [1 << 70], ValueError, "no index of any array"),
            ([0, 1], [0], ValueError, "dst_index has 2 entries, src_index 1"),
            ([1, 1], [0, 2], ValueError, "two destinations"),
            ([0, 0.5], [0, 1], TypeError, r"dst_index\[1\] is of type float, not an integer"),
            ([True], [0], TypeError, "not an integer"),
            (np.zeros(1), [0], TypeError, "float64, not integers"),
            (np.zeros((1, 1), int), [0], ValueError, "dimensions"),
            (3, [0], TypeError, "one number, not a list"),
            (GpuArray(1, np.int64), [0], transfer.UnsupportedTransfer, "on a GPU"),
        ],
    )
    def test_an_index_that_is_wrong(
        self, to_index: Any, from_index: Any, error: type[Exception], said: str
    ) -> None:
        with pytest.raises(error, match=said):
            transfer.copy_blocks(np.zeros((3, 4)), np.ones((3, 4)), to_index, from_index)

    def test_blocks_that_do_not_fit(self) -> None:
        with pytest.raises(ValueError, match="blocks differ"):
            transfer.copy_blocks(np.zeros((3, 4)), np.zeros((3, 5)), [0], [0])
        with pytest.raises(TypeError, match="dtypes differ"):
            transfer.copy_blocks(np.zeros((3, 4)), np.zeros((3, 4), "f4"), [0], [0])
        with pytest.raises(transfer.UnsupportedTransfer, match="do not lie together"):
            transfer.copy_blocks(np.zeros((3, 4)), np.zeros((4, 3)).T, [0], [0])
        with pytest.raises(ValueError, match="no dimension of blocks"):
            transfer.copy_blocks(np.zeros(()), np.zeros(()), [0], [0])


@pytest.fixture(params=["path", "str", "bytes", "fd", "object"])
def name(request: pytest.FixtureRequest, tmp_path: pathlib.Path) -> Any:
    """A file of LARGE random bytes as the calls take it."""
    path = tmp_path / "file"
    path.write_bytes(random_array(LARGE).tobytes())
    if request.param == "fd":
        descriptor = os.open(path, os.O_RDWR)
        request.addfinalizer(lambda: os.close(descriptor))
        return descriptor
    if request.param == "object":
        opened = path.open("r+b")
        request.addfinalizer(opened.close)
        return opened
    return {"path": path, "str": str(path), "bytes": os.fsencode(path)}[request.param]


class TestFiles:
    def test_read_and_write(self, name: Any, tmp_path: pathlib.Path) -> None:
        content = random_array(LARGE)
        there = GpuArray(LARGE, gpu=1)
        assert transfer.read(name, there) == LARGE
        assert same_bytes(there.get(), content)
        changed = random_array(LARGE, seed=1)
        assert transfer.write(name, GpuArray(LARGE).set(changed)) == LARGE
        assert (tmp_path / "file").read_bytes() == changed.tobytes()

    def test_asynchronously(self, name: Any, tmp_path: pathlib.Path) -> None:
        host = np.zeros(LARGE, np.uint8)
        assert transfer.read_async(name, host).result() == LARGE
        assert same_bytes(host, random_array(LARGE))
        host[:] = 3
        assert transfer.write_async(name, host, offset=5, nbytes=10).result() == 10
        expected = random_array(LARGE)
        expected[5:15] = 3
        assert (tmp_path / "file").read_bytes() == expected.tobytes()

    @pytest.mark.parametrize("gpu", [False, True])
    @pytest.mark.parametrize(
        ("offset", "nbytes", "moved"),
        [
            (0, 0, 0), (1, 1, 1), (100, 5000, 5000), (LARGE - 10, None, 10),
            (LARGE, 10, 0), (LARGE + 5, None, 0), (4096, None, LARGE - 4096),
        ],
    )  # fmt: skip
    def test_a_read_is_short_only_at_the_end(
        self, tmp_path: pathlib.Path, gpu: bool, offset: int, nbytes: int | None, moved: int
    ) -> None:
        content = random_array(LARGE)
        path = tmp_path / "file"
        path.write_bytes(content.tobytes())
        there: Any = GpuArray(LARGE).set(np.zeros(LARGE, np.uint8))
        if not gpu:
            there = np.zeros(LARGE, np.uint8)
        assert transfer.read(path, there, offset=offset, nbytes=nbytes) == moved
        got = there.get() if gpu else there
        assert same_bytes(got[:moved], content[offset : offset + moved])
        assert not got[moved:].any()

    def test_any_dtype_and_shape(self, tmp_path: pathlib.Path) -> None:
        sent, received = random_array((3, 5), np.float32), np.zeros((3, 5), np.float32)
        assert transfer.write(tmp_path / "new", sent) == 60
        assert transfer.read(tmp_path / "new", received) == 60
        assert same_bytes(received, sent)

    def test_a_few_cached_bytes_are_read_by_the_calling_thread(
        self, tmp_path: pathlib.Path
    ) -> None:
        content = random_array((5 << 20) + 3)
        (tmp_path / "file").write_bytes(bytes(content))
        with transfer.Context() as context, (tmp_path / "file").open("rb") as file:
            for name, made in [
                (tmp_path / "file", bytearray(content.size - 5)),
                (file.fileno(), np.zeros(content.size - 5, np.uint8)),
                (file, memoryview(bytearray(content.size - 5))),
            ]:
                assert context.read(name, made, offset=5) == content.size - 5
                assert bytes(made) == content[5:].tobytes()
            assert context.usage()["threads"] == 0
            (tmp_path / "large").write_bytes(bytes(12 << 20))
            with transfer.Context(threads=2) as with_two:  # one other thread does not help
                assert with_two.read(tmp_path / "large", bytearray(12 << 20)) == 12 << 20
                assert with_two.usage()["threads"] == 0
            for _ in range(8):  # the end is in, before or behind what is looked at
                longer = np.full(7 << 20, 9, np.uint8)
                assert context.read(file.fileno(), longer) == content.size
                assert same_bytes(longer[: content.size], content)
                assert (longer[content.size :] == 9).all()

    @pytest.mark.parametrize("buffering", [0, -1])
    def test_a_file_object_is_read_at_the_offset_and_stays_where_it_is(
        self, tmp_path: pathlib.Path, buffering: int
    ) -> None:
        content = random_array(9000)
        (tmp_path / "file").write_bytes(bytes(content))
        made = np.zeros(100, np.uint8)
        with (tmp_path / "file").open("rb", buffering=buffering) as file:
            file.read(7)
            assert transfer.read(file, made, offset=8890) == 100
            assert same_bytes(made, content[8890:8990])
            assert file.seek(0, os.SEEK_CUR) == 7
        with pytest.raises(ValueError, match="closed file"):
            transfer.read(file, made)

    def test_a_path_is_not_truncated(self, tmp_path: pathlib.Path) -> None:
        path = tmp_path / "file"
        path.write_bytes(b"0123456789")
        transfer.write(path, b"abc", offset=2)
        assert path.read_bytes() == b"01abc56789"

    @pytest.mark.parametrize("sync", [False, True])
    @pytest.mark.parametrize("asynchronous", [False, True])
    def test_a_file_ends_with_what_is_written_if_that_is_asked_for(
        self, tmp_path: pathlib.Path, sync: bool, asynchronous: bool
    ) -> None:
        path = tmp_path / "file"

        def write(source: Any, **options: Any) -> int:
            if asynchronous:
                return transfer.write_async(path, source, sync=sync, **options).result()
            return transfer.write(path, source, sync=sync, **options)

        content = random_array(LARGE)
        for source in (content, GpuArray(LARGE).set(content)):
            path.write_bytes(b"x" * (LARGE + 5000))
            assert write(source, offset=3, truncate=False) == LARGE
            assert path.read_bytes() == b"xxx" + content.tobytes() + b"x" * 4997
            assert write(source, offset=3, truncate=True) == LARGE
            assert path.read_bytes() == b"xxx" + content.tobytes()
        assert write(b"ab", offset=1, truncate=True) == 2
        assert path.read_bytes() == b"xab"
        assert write(b"", offset=2, truncate=True) == 0
        assert path.read_bytes() == b"xa"

    @pytest.mark.parametrize("name", ["truncate", "sync"])
    def test_truncate_and_sync_are_true_or_false(self, tmp_path: pathlib.Path, name: str) -> None:
        for call in (transfer.write, transfer.write_async):
            with pytest.raises(TypeError, match=f"{name} is of type int"):
                call(tmp_path / "file", b"abc", **{name: 1})  # type: ignore[arg-type]
        assert os.listdir(tmp_path) == []

    def test_what_a_file_object_has_buffered_comes_first(self, tmp_path: pathlib.Path) -> None:
        with (tmp_path / "file").open("wb") as file:
            file.write(b"0123456789")
            transfer.write(file, b"ab", offset=4)
        assert (tmp_path / "file").read_bytes() == b"0123ab6789"

    def test_the_descriptor_of_the_caller_may_be_closed(self, tmp_path: pathlib.Path) -> None:
        path = tmp_path / "file"
        path.write_bytes(random_array(LARGE).tobytes())
        stream, there = Stream(0), GpuArray(LARGE)
        gate = gate_on(stream)
        with path.open("rb") as file:
            handle = transfer.read_async(file, there, stream=stream.handle)
        gate.open()
        assert handle.result() == LARGE
        assert same_bytes(there.get(), random_array(LARGE))

    def test_no_descriptor_is_left_open(self, tmp_path: pathlib.Path) -> None:
        path = tmp_path / "file"
        path.write_bytes(bytes(100))
        host = np.zeros(100, np.uint8)
        before = len(os.listdir("/proc/self/fd"))
        for _ in range(5):
            transfer.read(path, host)
            transfer.read_async(path, host).result()
            with pytest.raises(ValueError, match="nbytes"):
                transfer.read(path, host, nbytes=101)
        assert len(os.listdir("/proc/self/fd")) == before

    def test_what_a_file_object_has_buffered_is_read(self, tmp_path: pathlib.Path) -> None:
        received = np.zeros(10, np.uint8)
        with (tmp_path / "file").open("w+b") as file:
            file.write(b"0123456789")
            assert transfer.read(file, received) == 10
        assert received.tobytes() == b"0123456789"

    def test_a_file_for_appending_is_an_error(self, tmp_path: pathlib.Path) -> None:
        path = tmp_path / "file"
        path.write_bytes(b"0123456789")
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND)
        with path.open("ab") as file:
            for name in (file, descriptor, file.fileno()):
                for call in (transfer.write, transfer.write_async):
                    with pytest.raises(transfer.InvalidTransfer, match="appending") as caught:
                        call(name, b"abc", offset=2)
                    assert caught.value.remedy
        os.close(descriptor)
        with path.open("a+b") as file:
            assert transfer.read(file, np.zeros(10, np.uint8)) == 10
        assert path.read_bytes() == b"0123456789"

    def test_names_that_are_no_utf8(self, tmp_path: pathlib.Path) -> None:
        name = os.fsencode(tmp_path) + b"/caf\xe9\nfile"
        with pytest.raises(FileNotFoundError) as caught:
            transfer.read(name, np.zeros(10, np.uint8))
        assert "caf\\udce9\\nfile" in str(caught.value)
        assert transfer.write(name, b"0123456789") == 10
        received = np.zeros(10, np.uint8)
        assert transfer.read(os.fsdecode(name), received) == 10
        assert received.tobytes() == b"0123456789"

    def test_errors_name_the_file_and_the_remedy(self, tmp_path: pathlib.Path) -> None:
        host = np.zeros(10, np.uint8)
        path = tmp_path / "file"
        path.write_bytes(bytes(10))
        for call in (transfer.read, transfer.write):
            with pytest.raises(OSError, match=str(tmp_path)) as caught:
                call(tmp_path, host)
            assert "a file in the folder" in str(caught.value)
            with pytest.raises(OSError, match="folders are not created"):
                call(tmp_path / "missing" / "file", host)
            with pytest.raises(OSError, match="9999: this descriptor is not open"):
                call(9999, host)
        reading, writing = os.pipe()
        for pipe, call in ((reading, transfer.read), (writing, transfer.write)):
            with pytest.raises(OSError, match=f"descriptor {pipe}: .*a regular file") as caught:
                call(pipe, host)
            assert caught.value.errno == errno.ESPIPE
        for pipe, started in (
            (reading, transfer.read_async(reading, host)),
            (writing, transfer.write_async(writing, host)),
        ):
            for _ in range(2):
                with pytest.raises(OSError, match=f"descriptor {pipe}: .*a regular file"):
                    started.result()
            os.close(pipe)
        said = f"{path}': the file is not open for this .open the file for"
        with path.open("rb") as file, pytest.raises(OSError, match=said):
            transfer.write(file, host)
        folder = os.open(tmp_path, os.O_RDONLY)
        with pytest.raises(OSError, match=f"descriptor {folder}: .*a file in the folder"):
            transfer.read(folder, host)
        os.close(folder)

    @pytest.mark.parametrize("call", ["read", "read_async", "write", "write_async"])
    def test_a_path_without_offsets_is_an_error_at_once(
        self, call: str, tmp_path: pathlib.Path
    ) -> None:
        os.mkfifo(tmp_path / "fifo")
        listening = socket.socket(socket.AF_UNIX)
        listening.bind(str(tmp_path / "socket"))
        before = len(os.listdir("/proc/self/fd"))
        for path, kind in (
            (tmp_path / "fifo", "a FIFO"),
            (tmp_path / "socket", "a socket"),
            ("/dev/zero", "a character device"),
        ):
            failures: list[OSError] = []

            def start(path: Any = path, failures: list[OSError] = failures) -> None:
                try:
                    getattr(transfer, call)(path, np.zeros(10, np.uint8))
                except OSError as error:
                    failures.append(error)

            # Nobody opens the other end of the FIFO.
            calling = threading.Thread(target=start, daemon=True)
            calling.start()
            calling.join(60)
            assert not calling.is_alive()
            assert [type(failure) for failure in failures] == [transfer.TransferFileError]
            assert failures[0].errno == errno.ESPIPE
            assert f"{path}': it is {kind} (pass a regular file" in str(failures[0])
        assert len(os.listdir("/proc/self/fd")) == before
        listening.close()

    def test_a_full_disk(self) -> None:
        with (
            open("/dev/full", "wb", buffering=0) as full,
            pytest.raises(OSError, match=r"/dev/full.*free space") as caught,
        ):
            transfer.write(full, np.zeros(10, np.uint8))
        assert caught.value.errno == errno.ENOSPC
        assert str(caught.value).count("free space") == 1

    def test_an_object_whose_descriptor_is_none(self) -> None:
        class Wrong:
            def fileno(self) -> Any:
                return "3"

        with pytest.raises(transfer.InvalidOperand, match="fileno"):
            transfer.read(Wrong(), np.zeros(10, np.uint8))

    def test_errors_of_files(self, tmp_path: pathlib.Path) -> None:
        host = np.zeros(10, np.uint8)
        with pytest.raises(FileNotFoundError, match="missing") as caught:
            transfer.read(tmp_path / "missing", host)
        assert caught.value.errno == errno.ENOENT
        assert isinstance(caught.value, transfer.TransferFileNotFound)
        for call in (transfer.read, transfer.write):
            with pytest.raises(transfer.TransferFileError) as failed:
                call(tmp_path, host)
            assert failed.value.errno == errno.EISDIR
            with pytest.raises(OSError) as bad:
                call(9999, host)
            assert bad.value.errno == errno.EBADF
        (tmp_path / "file").write_bytes(bytes(10))
        with (tmp_path / "file").open("rb") as file, pytest.raises(OSError) as bad:
            transfer.write(file, host)
        assert bad.value.errno == errno.EBADF
        handle = None
        with (tmp_path / "file").open("rb") as file:
            handle = transfer.write_async(file, host)
        with pytest.raises(transfer.TransferFileError):
            handle.result()

    @pytest.mark.parametrize(
        ("arguments", "error", "said"),
        [
            ({"offset": -1}, ValueError, "offset is -1"),
            ({"offset": 1 << 63}, ValueError, "beyond any file"),
            ({"offset": (1 << 63) - 5}, ValueError, "10 bytes from offset 9223372036854775803"),
            ({"nbytes": -1}, ValueError, "nbytes is -1"),
            ({"nbytes": 11}, ValueError, "the array has 10"),
            ({"offset": 1.5}, TypeError, "whole number"),
            ({"nbytes": "3"}, TypeError, "whole number"),
        ],
    )
    def test_ranges_that_make_no_sense(
        self, tmp_path: pathlib.Path, arguments: Any, error: type[Exception], said: str
    ) -> None:
        (tmp_path / "file").write_bytes(bytes(10))
        for call in (transfer.read, transfer.read_async, transfer.write, transfer.write_async):
            with pytest.raises(error, match=said):
                call(tmp_path / "file", np.zeros(10, np.uint8), **arguments)

    def test_operands_that_make_no_sense(self, tmp_path: pathlib.Path) -> None:
        (tmp_path / "file").write_bytes(bytes(10))
        with pytest.raises(ValueError, match="read-only"):
            transfer.read(tmp_path / "file", b"1234")
        with pytest.raises(transfer.UnsupportedTransfer, match="not contiguous"):
            transfer.read(tmp_path / "file", np.zeros(10, np.uint8)[::2])
        with pytest.raises(TypeError, match="pass a path"):
            transfer.read(None, np.zeros(10, np.uint8))  # type: ignore[arg-type]
        assert not (tmp_path / "other").exists()
        with pytest.raises(transfer.UnsupportedTransfer):
            transfer.write(tmp_path / "other", np.zeros(10, np.uint8)[::2])
        assert not (tmp_path / "other").exists()


@pytest.mark.parametrize("index", [0, "0", b"0", None])
def test_an_index_that_is_no_list_is_named(index: Any) -> None:
    blocks, source = np.zeros((2, 4), np.uint8), np.zeros((2, 4), np.uint8)
    with pytest.raises(TypeError, match="dst_index is") as caught:
        transfer.copy_blocks(blocks, source, index, [0])
    assert "source" not in str(caught.value)
