"""What can be copied, and what is rejected with which error."""

from __future__ import annotations

import array
import mmap
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fake_gpu import DlpackArray, GpuArray, random_array, same_bytes

from waywiser import transfer


class TestKindsOfArrays:
    @pytest.mark.parametrize("kind", [bytearray, memoryview, mmap.mmap, array.array, np.ndarray])
    def test_buffers_of_python(self, kind: type) -> None:
        source = random_array(100)
        made: Any = {
            bytearray: lambda: bytearray(100),
            memoryview: lambda: memoryview(bytearray(100)),
            mmap.mmap: lambda: mmap.mmap(-1, 100),
            array.array: lambda: array.array("B", bytes(100)),
            np.ndarray: lambda: np.zeros(100, np.uint8),
        }[kind]()
        transfer.copy(made, source)
        assert bytes(memoryview(made)) == source.tobytes()
        back = np.zeros_like(source)
        transfer.copy(back, made)
        assert same_bytes(back, source)

    @pytest.mark.parametrize(
        "dtype", ["?", "f2", ">i4", "c16", "U3", "M8[ms]", "V5", [("a", "i1"), ("b", ">f8")]]
    )
    def test_arrays_of_one_dtype_whatever_it_is(self, dtype: Any) -> None:
        """Also of dtypes that have no format, and of two objects that describe one dtype."""
        bytes_of_rows = 6 * np.dtype(dtype).itemsize
        source = np.frombuffer(random_array(2 * bytes_of_rows).tobytes(), dtype).reshape(2, 6)
        for same in (source.dtype, np.dtype(dtype)):
            made = np.zeros((2, 6), same)
            transfer.copy(made, source)
            assert made.tobytes() == source.tobytes()
            with pytest.raises(transfer.InvalidTransfer, match="shape"):
                transfer.copy(np.zeros((6, 2), same), source)

    def test_arrays_that_have_equal_formats_and_others(self) -> None:
        source = np.arange(12, dtype=np.int32)
        numbers = array.array("i", bytes(48))
        for made in (numbers, memoryview(bytearray(48)).cast("i")):
            transfer.copy(made, source)
            assert bytes(memoryview(made)) == source.tobytes()
        for other in (np.zeros(12, np.uint32), np.zeros(12, ">i4"), memoryview(bytearray(48))):
            with pytest.raises(transfer.TransferError):
                transfer.copy(other, source)

    def test_objects_are_rejected_after_numbers_were_copied(self, tmp_path: Path) -> None:
        numbers, objects = np.ones(4, np.int64), np.array([1, 2, 3, 4], object)
        (tmp_path / "file").write_bytes(bytes(32))
        for _ in range(2):
            transfer.copy(np.zeros_like(numbers), numbers)
            with pytest.raises(transfer.UnsupportedTransfer, match="holds Python objects"):
                transfer.copy(np.empty(4, object), objects)
            with pytest.raises(transfer.UnsupportedTransfer, match="holds Python objects"):
                transfer.read(tmp_path / "file", objects)
            assert objects.tolist() == [1, 2, 3, 4]

    @pytest.mark.parametrize("versioned", [True, False])
    def test_dlpack_on_the_host(self, versioned: bool) -> None:
        source, destination = random_array((3, 5), np.float32), np.zeros((3, 5), np.float32)
        transfer.copy(
            DlpackArray(destination, versioned=versioned),
            DlpackArray(source, versioned=versioned),
        )
        assert same_bytes(destination, source)

    @pytest.mark.parametrize(
        ("number", "index", "expected"),
        [(0, 0, 1), (0, 1, 1), (1, 1, 1), (2, 1, 2), (0x7F0000000200, 1, 0x7F0000000200)],
    )
    def test_a_producer_of_dlpack_gets_the_number_of_a_stream(
        self, number: int, index: int, expected: int
    ) -> None:
        class TorchStream:
            cuda_stream = number
            device_index = index

        class Producer:
            def __dlpack_device__(self) -> tuple[int, int]:
                return (2, 0)

            def __dlpack__(self, *, stream: Any, **_: Any) -> Any:
                raise RuntimeError(f"the stream is {stream}")

        with pytest.raises(RuntimeError, match=f"the stream is {expected}$"):
            transfer.copy(np.zeros(4), Producer(), stream=TorchStream())

    def test_cuda_array_interface(self) -> None:
        source = random_array((3, 5), np.float64)
        there = GpuArray((3, 5), np.float64)
        transfer.copy(there, source)
        assert same_bytes(there.get(), source)

    @pytest.mark.parametrize(
        "dtype",
        [
            "?", "i1", "u2", "i4", "u8", "f2", "f4", "f8", "c8", "c16",
            "M8[ns]", "m8[s]", "S5", "U3", "i4,f8", ">i4", "V3",
        ],
    )  # fmt: skip
    def test_dtypes_of_numpy(self, dtype: str) -> None:
        source = np.zeros(7, dtype)
        source.view(np.uint8)[:] = np.arange(source.nbytes) % 2
        destination = np.zeros(7, dtype)
        transfer.copy(destination, source)
        assert destination.tobytes() == source.tobytes()

    @pytest.mark.parametrize(
        "dtype",
        [
            [("Offset", "i4"), ("TO", "f8")],
            [("O", "M8[s]")],
            [("inner", [("Own", "i2")]), ("b", "3i4")],
        ],
    )
    def test_fields_may_have_any_name(self, dtype: Any) -> None:
        source = np.zeros(3, dtype)
        source.view(np.uint8)[:] = np.arange(source.nbytes) % 2
        destination = np.zeros(3, dtype)
        transfer.copy(destination, source)
        assert destination.tobytes() == source.tobytes()

    def test_arrays_without_dimensions(self) -> None:
        destination = np.zeros((), np.int64)
        transfer.copy(destination, np.array(7))
        assert destination == 7

    @pytest.mark.parametrize("shape", [(0,), (0, 4), (3, 0, 2)])
    def test_arrays_without_elements(self, shape: tuple[int, ...]) -> None:
        transfer.copy(np.zeros(shape), np.zeros(shape))
        assert transfer.copy_async(np.zeros(shape), np.zeros(shape)).result() == 0

    def test_an_array_to_itself_is_nothing_to_do(self) -> None:
        same = random_array(100)
        before = same.copy()
        transfer.copy(same, same)
        transfer.copy(same[::2], same[::2])
        assert same_bytes(same, before)


class TestErrors:
    def test_what_is_no_array(self) -> None:
        for thing in (3, None, [1, 2], "text", object()):
            with pytest.raises(TypeError, match="not an array") as caught:
                transfer.copy(np.zeros(3), thing)
            assert isinstance(caught.value, transfer.InvalidOperand)

    @pytest.mark.parametrize(
        ("one", "other", "said"),
        [
            (np.zeros(3, "f4"), np.zeros(3, "f8"), "float64 to float32"),
            (np.zeros(3, "i4"), np.zeros(3, "u4"), "uint32 to int32"),
            (np.zeros(3, "i4"), np.zeros(3, "f4"), "float32 to int32"),
            (np.zeros(3, "?"), np.zeros(3, "u1"), "uint8 to bool"),
            (np.zeros(3, "<i4"), np.zeros(3, ">i4"), "the byte orders differ: convert one side"),
            (np.zeros(3, "M8[s]"), np.zeros(3, "M8[ns]"), "M8"),
            (np.zeros(3, "c8"), np.zeros(3, "f8"), "float64 to complex64"),
        ],
    )
    def test_dtypes_that_differ(self, one: Any, other: Any, said: str) -> None:
        with pytest.raises(TypeError, match="dtypes differ") as caught:
            transfer.copy(one, other)
        assert said in str(caught.value)
        assert caught.value.remedy

    @pytest.mark.parametrize(
        ("one", "other"), [((3,), (4,)), ((3,), (3, 1)), ((2, 3), (3, 2)), ((1,), (3,)), ((), (1,))]
    )
    def test_shapes_that_differ(self, one: tuple[int, ...], other: tuple[int, ...]) -> None:
        with pytest.raises(ValueError, match="shapes differ"):
            transfer.copy(np.zeros(one), np.zeros(other))

    def test_destinations_that_are_read_only(self) -> None:
        frozen = np.zeros(4, np.uint8)
        frozen.flags.writeable = False
        read_only: list[Any] = [
            bytes(4),
            memoryview(bytes(4)),
            memoryview(bytearray(4)).toreadonly(),
            frozen,
            GpuArray(4, read_only=True),
            DlpackArray(frozen),
        ]
        for destination in read_only:
            with pytest.raises(ValueError, match="read-only"):
                transfer.copy(destination, np.zeros(4, np.uint8))
            transfer.copy(np.zeros(4, np.uint8), destination)

    def test_ranges_that_overlap(self) -> None:
        whole = random_array(100)
        before = whole.copy()
        for destination, source in [
            (whole[1:], whole[:-1]),
            (whole[:60], whole[40:]),
            (whole[::2], whole[:50]),
            (whole.reshape(10, 10), whole.reshape(10, 10).T),
        ]:
            with pytest.raises(ValueError, match="share memory"):
                transfer.copy(destination, source)
        assert same_bytes(whole, before)

    def test_parts_of_one_array_that_do_not_overlap(self) -> None:
        whole = random_array(100).reshape(10, 10)
        expected = whole.copy()
        expected[:, 5:] = expected[:, :5]
        transfer.copy(whole[:, 5:], whole[:, :5])
        assert same_bytes(whole, expected)
        transfer.copy(whole[::2], whole[1::2])
        assert same_bytes(whole[::2], whole[1::2])

    def test_a_destination_whose_elements_share_memory(self) -> None:
        for destination in (
            np.lib.stride_tricks.as_strided(np.zeros(4), (3, 4), (0, 8)),
            np.lib.stride_tricks.as_strided(np.zeros(6), (3, 4), (8, 8)),
        ):
            with pytest.raises(ValueError, match="elements of the destination share memory"):
                transfer.copy(destination, np.ones((3, 4)))

    @pytest.mark.parametrize(
        "dtype", [object, [("a", "i4"), ("b", object)], [("t", "M8[s]"), ("b", object)]]
    )
    def test_python_objects(self, dtype: Any) -> None:
        with pytest.raises(transfer.UnsupportedTransfer, match="Python objects"):
            transfer.copy(np.zeros(3, dtype), np.zeros(3, dtype))

    def test_too_many_pieces(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delitem(sys.modules, "torch", raising=False)
        many = np.zeros((1 << 20) + 1, np.uint16)
        with pytest.raises(transfer.UnsupportedTransfer, match="pieces") as caught:
            transfer.copy(many, np.zeros(2 * many.size, np.uint16)[::2])
        assert "contiguous" in caught.value.remedy

    @pytest.mark.parametrize(
        ("changed", "said"),
        [
            ({"stream": 0}, "stream 0"),
            ({"mask": GpuArray(4)}, "mask"),
            ({"shape": (-1,)}, "negative"),
            ({"shape": 4}, "malformed"),
            ({"strides": (1, 1)}, "strides"),
            ({"typestr": "x"}, "typestr"),
            ({"stream": -1}, "stream"),
            ({"stream": "x"}, "stream"),
            ({"stream": 1.5}, "stream"),
        ],
    )
    def test_a_cuda_array_interface_that_is_wrong(self, changed: Any, said: str) -> None:
        class Wrong:
            def __init__(self) -> None:
                right = GpuArray(4).__cuda_array_interface__
                self.__cuda_array_interface__ = {**right, **changed}

        with pytest.raises(transfer.InvalidOperand, match=said):
            transfer.copy(np.zeros(4, np.uint8), Wrong())

    def test_devices_of_others(self) -> None:
        class Metal:
            def __dlpack_device__(self) -> tuple[int, int]:
                return (8, 0)

            def __dlpack__(self, **_: Any) -> Any:
                return np.zeros(4).__dlpack__()

        class Nothing(Metal):
            def __dlpack__(self, **_: Any) -> Any:
                return "no capsule"

        with pytest.raises(transfer.InvalidOperand, match="no DLPack capsule"):
            transfer.copy(np.zeros(4), Nothing())

        class Nowhere(Nothing):
            def __dlpack_device__(self) -> Any:
                return "cpu"

        with pytest.raises(transfer.InvalidOperand, match="no pair of numbers"):
            transfer.copy(np.zeros(4), Nowhere())

    @pytest.mark.parametrize(
        "changed", [{"strides": (8,) * 20_000}, {"strides": ()}, {"shape": 4}, {"data": None}]
    )
    def test_an_array_interface_that_is_wrong(self, changed: Any) -> None:
        class Wrong(np.ndarray[Any, Any]):  # numpy gives no buffer of datetime64
            @property
            def __array_interface__(self) -> Any:
                return {**np.ndarray.__array_interface__.__get__(self), **changed}

        with pytest.raises(transfer.InvalidOperand, match="__array_interface__"):
            transfer.copy(np.zeros(4, "M8[s]"), np.zeros(4, "M8[s]").view(Wrong))

    def test_errors_of_an_operand_come_through(self) -> None:
        class Failing:
            @property
            def __cuda_array_interface__(self) -> Any:
                raise RuntimeError("the array is gone")

        with pytest.raises(RuntimeError, match="the array is gone"):
            transfer.copy(np.zeros(4), Failing())


def test_an_error_says_what_and_the_remedy() -> None:
    with pytest.raises(transfer.TransferError) as caught:
        transfer.copy(np.zeros(3), np.zeros(4))
    error = caught.value
    assert error.moved == 0
    assert error.where == "copy"
    assert error.remedy in str(error)
    assert "\n" not in str(error)
