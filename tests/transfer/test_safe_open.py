"""`transfer.safe_open` and slices of ``load_files`` beside what safetensors and numpy return."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors import safe_open as safetensors_open
from safetensors.numpy import save_file

from waywiser import transfer
from waywiser.transfer.checkpoint import TensorNotFoundError
from waywiser.transfer.errors import InvalidOperand, InvalidTransfer, UnsupportedTransfer
from waywiser.transfer.numpy import load_files
from waywiser.transfer.read_plan import GAP_BYTES, SPAN_BYTES
from waywiser.transfer.safetensors_header import SafetensorsError, TensorEntry
from waywiser.transfer.tensor_slices import parts_of, tensor_slice


def numbers(*shape: int, dtype: str = "int32") -> np.ndarray:
    return np.arange(np.prod(shape, dtype=int), dtype=dtype).reshape(shape)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, np.ndarray]]:
    """Small tensors, one with rows that are longer than what is read and dropped, one with long
    rows of many MiB, and empty ones."""
    tensors = {
        "vector": numbers(7),
        "matrix": numbers(12, 10, dtype="int16"),
        "cube": numbers(4, 5, 6, dtype="uint8"),
        "deep": numbers(2, 3, 2, 3, 2),
        "wide": numbers(6, 3 * GAP_BYTES // 4),
        "large": numbers(96, SPAN_BYTES // 64, dtype="int16"),
        "scalar": np.array(3.5),
        "empty": np.zeros((3, 0, 2), dtype="int8"),
    }
    path = tmp_path_factory.mktemp("model") / "model.safetensors"
    save_file(tensors, path, metadata={"made by": "a test"})
    return path, tensors


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """The bytes of each read."""
    found: list[int] = []
    read_async = transfer.native.read_async

    def counted(file: Any, into: Any, *, offset: int, nbytes: int) -> Any:
        found.append(nbytes)
        return read_async(file, into, offset=offset, nbytes=nbytes)

    monkeypatch.setattr(transfer.native, "read_async", counted)
    yield found


@st.composite
def indexed(draw: st.DrawFn) -> tuple[str, Any]:
    """A tensor of the model and an index of it."""
    shapes = {"vector": (7,), "matrix": (12, 10), "cube": (4, 5, 6), "deep": (2, 3, 2, 3, 2),
              "wide": (6, 3 * GAP_BYTES // 4), "empty": (3, 0, 2), "scalar": ()}  # fmt: skip
    name = draw(st.sampled_from(sorted(shapes)))
    shape = shapes[name][: draw(st.integers(0, len(shapes[name])))]
    index: list[Any] = []
    for size in shape:
        bound = st.none() | st.integers(-size - 2, size + 2)
        one = st.integers(-size, size - 1) if size else st.nothing()
        step = st.none() | st.integers(1, 4)
        index.append(draw(one | st.builds(slice, bound, bound, step)))
    missing = len(shapes[name]) - len(index)
    if draw(st.booleans()):
        index.insert(len(index) if missing else draw(st.integers(0, len(index))), Ellipsis)
    return name, index[0] if len(index) == 1 and draw(st.booleans()) else tuple(index)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(indexed())
def test_any_slice_is_that_of_numpy(
    model: tuple[Path, dict[str, np.ndarray]], drawn: tuple[str, Any]
) -> None:
    path, tensors = model
    name, index = drawn
    with transfer.safe_open(path, framework="np") as file:
        found = file.get_slice(name)[index]
    expected = tensors[name][index]
    assert found.dtype == expected.dtype and found.shape == np.shape(expected)
    assert np.array_equal(found, expected)
    assert np.array_equal(load_files(path, [name], {name: index})[name], expected)


def test_it_is_what_safetensors_returns(model: tuple[Path, dict[str, np.ndarray]]) -> None:
    path, tensors = model
    with safetensors_open(path, "np") as theirs, transfer.safe_open(path, "np") as ours:
        assert ours.keys() == sorted(theirs.keys())
        assert ours.offset_keys() == theirs.offset_keys()
        assert ours.metadata() == theirs.metadata() == {"made by": "a test"}
        for name in tensors:
            one, other = ours.get_tensor(name), theirs.get_tensor(name)
            assert one.dtype == other.dtype and np.array_equal(one, other)
            mine, its = ours.get_slice(name), theirs.get_slice(name)
            assert (mine.get_shape(), mine.get_dtype()) == (its.get_shape(), its.get_dtype())
        for name, index in (("matrix", np.s_[2:5]), ("cube", np.s_[:, 1:3]), ("deep", np.s_[1])):
            assert np.array_equal(ours.get_slice(name)[index], theirs.get_slice(name)[index])
        all_of_them = ours.get_tensors()
    assert list(all_of_them) == ours_in_order(path)
    assert all(np.array_equal(all_of_them[name], tensors[name]) for name in tensors)


def ours_in_order(path: Path) -> list[str]:
    with transfer.safe_open(path, "np") as file:
        return file.offset_keys()


def test_the_ranks_of_a_parallel_model_read_each_byte_once(
    model: tuple[Path, dict[str, np.ndarray]], reads: list[int]
) -> None:
    """Rows of one tensor, and long columns of another, for four and three ranks."""
    path, tensors = model
    large, wide = tensors["large"], tensors["wide"]
    parts = [
        load_files(path, ["large"], {"large": np.s_[24 * rank : 24 * rank + 24]})["large"]
        for rank in range(4)
    ]
    assert np.array_equal(np.concatenate(parts), large)
    assert sum(reads) == large.nbytes
    reads.clear()
    third = wide.shape[1] // 3
    columns = [
        load_files(path, ["wide"], {"wide": np.s_[:, third * rank : third * (rank + 1)]})["wide"]
        for rank in range(3)
    ]
    assert np.array_equal(np.concatenate(columns, axis=1), wide)
    assert sum(reads) == wide.nbytes


def test_short_gaps_are_read_and_long_ones_are_not(
    model: tuple[Path, dict[str, np.ndarray]], reads: list[int]
) -> None:
    path, tensors = model
    load_files(path, ["wide"], {"wide": np.s_[:, :10]})
    assert sum(reads) == 6 * 40  # rows are 192 KiB apart
    reads.clear()
    load_files(path, ["matrix"], {"matrix": np.s_[:, 2:4]})
    assert reads == [tensors["matrix"].nbytes - 16]
    reads.clear()
    load_files(path, ["large"], {"large": np.s_[::2, :5]})  # the rows are 256 KiB long
    assert len(reads) == 95 and sum(reads) == 95 * 10


@given(st.lists(st.integers(1, 9), min_size=1, max_size=4), st.data())
def test_parts_have_each_byte_of_the_box_once(shape: list[int], data: st.DataObject) -> None:
    """Whatever may be read and dropped: each byte of the box has one place, in order."""
    entry = TensorEntry("t", "U8", tuple(shape), 100, int(np.prod(shape)))
    bounds = [sorted(data.draw(st.tuples(st.integers(0, n), st.integers(0, n)))) for n in shape]
    part = tensor_slice(tuple(slice(*each) for each in bounds), entry)
    whole = np.arange(100, 100 + entry.nbytes).reshape(shape)
    box = whole[tuple(slice(*each) for each in bounds)].reshape(-1)
    places = np.full(box.size, -1)
    reached = 0
    for each in parts_of(entry, part):
        assert each.offset >= reached
        reached = each.offset + each.nbytes
        for row in range(each.rows if each.nbytes else 0):
            begin = each.at + row * each.row_bytes
            assert (places[begin : begin + each.row_bytes] == -1).all()
            first = each.offset + row * each.stride
            places[begin : begin + each.row_bytes] = np.arange(first, first + each.row_bytes)
    assert np.array_equal(places, box)


def test_several_files_are_one(tmp_path: Path) -> None:
    save_file({"a": numbers(3)}, tmp_path / "1.safetensors", metadata={"x": "1", "y": "1"})
    save_file({"b": numbers(2, 2)}, tmp_path / "2.safetensors", metadata={"x": "2"})
    files = [tmp_path / "1.safetensors", tmp_path / "2.safetensors"]
    with transfer.safe_open(files, "numpy") as opened:
        assert opened.keys() == ["a", "b"]
        assert opened.metadata() == {"x": "1", "y": "1"}
        assert opened.get_slice("b")[:, 1].tolist() == [1, 3]
        assert opened.get_tensor_meta("b") == ("I32", [2, 2], (0, 16))


@pytest.mark.parametrize(
    ("index", "kind"),
    [
        (7, InvalidTransfer),
        ((0, 0), InvalidTransfer),
        ((..., ...), InvalidTransfer),
        (slice(None, None, -1), InvalidTransfer),
        ([0, 1], InvalidOperand),
        (None, InvalidOperand),
        (True, InvalidOperand),
        (slice(0, 1, 0), InvalidOperand),
        (slice("a", 3), InvalidOperand),
        (1.5, InvalidOperand),
        (np.array(1.7), InvalidOperand),
        (np.array([1, 2]), InvalidOperand),
        (np.array([True] * 7), InvalidOperand),
    ],
)
def test_what_is_no_slice_is_named(
    model: tuple[Path, dict[str, np.ndarray]], index: Any, kind: type[Exception]
) -> None:
    with transfer.safe_open(model[0], "np") as file, pytest.raises(kind):
        file.get_slice("vector")[index]


def test_wrong_calls_are_named(model: tuple[Path, dict[str, np.ndarray]]) -> None:
    path, _ = model
    with pytest.raises(InvalidOperand, match="'tf'"):
        transfer.safe_open(path, "tf")
    with pytest.raises(UnsupportedTransfer, match="'cuda:0'"):
        transfer.safe_open(path, "np", "cuda:0")
    with transfer.safe_open(path, "np") as file:
        with pytest.raises(TensorNotFoundError, match="nothing"):
            file.get_slice("nothing")
        later = file.get_slice("vector")
    for use in (lambda: later[0], file.keys, file.offset_keys, file.metadata, file.get_tensors):
        with pytest.raises(InvalidTransfer, match="closed"):
            use()
    with pytest.raises(InvalidOperand, match="framework"):
        transfer.safe_open(path, ["np"])  # type: ignore[arg-type]
    with pytest.raises(TensorNotFoundError, match="cube"):
        load_files(path, ["vector"], {"cube": 0})
    with pytest.raises(InvalidOperand, match="not a dict"):
        load_files(path, slices=[0])  # type: ignore[arg-type]


def test_tensors_of_torch_are_those_of_safetensors(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    from safetensors.torch import save_file as save_tensors

    path = tmp_path / "model.safetensors"
    torch.manual_seed(1)
    saved = {
        "weight": torch.randn(64, 48).to(torch.bfloat16),
        "experts": torch.randn(4, 6, 40),
        "eighth": torch.randn(9, 8).to(torch.float8_e4m3fn),
        "mask": torch.rand(5) > 0.5,
    }
    save_tensors(saved, path)
    indices = [np.s_[1:3], np.s_[..., 2:5], np.s_[-1], np.s_[2], np.s_[::2], np.s_[:]]
    with safetensors_open(path, "pt") as theirs, transfer.safe_open(path, "pt", "cpu") as ours:
        for name in saved:
            for index in indices:
                one, other = ours.get_slice(name)[index], theirs.get_slice(name)[index]
                assert one.dtype == other.dtype and one.shape == other.shape
                assert torch.equal(one.reshape(-1).view(torch.uint8),
                                   other.contiguous().reshape(-1).view(torch.uint8))  # fmt: skip
        assert torch.equal(ours.get_slice("mask").to("cpu", np.s_[1:]), saved["mask"][1:])


def test_each_tensor_has_the_device_that_is_named_for_it(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    from safetensors.torch import save_file as save_tensors

    from waywiser.transfer.torch import load_files as load_tensors

    path = tmp_path / "model.safetensors"
    saved = {name: torch.arange(6).reshape(2, 3) + n for n, name in enumerate("abc")}
    save_tensors(saved, path)
    loaded = load_tensors(path, "cpu", devices={"b": "cpu"}, slices={"b": 1, "c": np.s_[:, ::2]})
    assert list(loaded) == ["a", "b", "c"]
    assert torch.equal(loaded["a"], saved["a"]) and torch.equal(loaded["b"], saved["b"][1])
    assert torch.equal(loaded["c"], saved["c"][:, ::2])
    with pytest.raises(TensorNotFoundError, match="devices has 'd'"):
        load_tensors(path, "cpu", devices={"d": "cpu"})


class TestPrefetch:
    """The loader of safetensors 0.9, which itself needs a GPU."""

    def test_all_tensors_are_handed_out_once(
        self, model: tuple[Path, dict[str, np.ndarray]]
    ) -> None:
        path, tensors = model
        with transfer.safe_open(path, "np") as files, files.prefetch(threads=2) as loader:
            assert loader.names() == files.offset_keys() and len(loader) == len(tensors)
            assert np.array_equal(loader.take("matrix"), tensors["matrix"])
            found = dict(loader)
            assert found.keys() == tensors.keys() - {"matrix"}
            for name, each in found.items():
                assert each.dtype == tensors[name].dtype
                assert np.array_equal(each, tensors[name]), name
            assert list(loader) == []
            with pytest.raises(InvalidTransfer, match="tensor 'cube' was taken before"):
                loader.take("cube")
            assert np.array_equal(files.get_tensor("cube"), tensors["cube"])

    def test_a_plan_says_what_is_loaded(
        self, model: tuple[Path, dict[str, np.ndarray]], reads: list[int]
    ) -> None:
        path, tensors = model
        plan = {"large": slice(8, 16), "vector": None, "deep": (..., 1), "matrix": slice(1, 9, 3)}
        with transfer.safe_open(path, "np") as files, files.prefetch(plan) as loader:
            assert sorted(loader.names()) == sorted(plan)
            for name, index in plan.items():
                expected = tensors[name] if index is None else tensors[name][index]
                assert np.array_equal(loader.take(name), expected), name
            with pytest.raises(TensorNotFoundError, match="'cube' is not loaded here"):
                loader.take("cube")
        assert sum(reads) < tensors["large"].nbytes // 2

    @pytest.mark.parametrize(
        ("plan", "error", "says"),
        [
            (["vector"], InvalidOperand, "plan is of type list"),
            ({"none": None}, TensorNotFoundError, "plan has 'none'"),
            ({"scalar": slice(0, 1)}, InvalidTransfer, "1 indices are too many"),
            ({"vector": slice(None, None, -1)}, InvalidTransfer, "step below 1"),
        ],
    )
    def test_plans_that_make_no_sense(
        self, model: tuple[Path, Any], plan: Any, error: type[Exception], says: str
    ) -> None:
        with transfer.safe_open(model[0], "np") as files, pytest.raises(error, match=says):
            files.prefetch(plan)

    def test_a_closed_loader_hands_out_nothing(self, model: tuple[Path, Any]) -> None:
        with transfer.safe_open(model[0], "np") as files:
            loader = files.prefetch()
            kept = loader.take("vector")
        with pytest.raises(InvalidTransfer, match="it is closed"):
            loader.take("matrix")
        with pytest.raises(InvalidTransfer, match="it is closed"):
            next(iter(loader))
        assert np.array_equal(kept, numbers(7))

    def test_open_files_do_not_keep_a_closed_loader(self, model: tuple[Path, Any]) -> None:
        with transfer.safe_open(model[0], "np") as files:
            with files.prefetch() as loader:
                kept = weakref.ref(loader)
            del loader
            gc.collect()
            assert kept() is None

    def test_a_tensor_that_was_taken_is_freed_alone(self, model: tuple[Path, Any]) -> None:
        with transfer.safe_open(model[0], "np") as files, files.prefetch() as loader:
            taken = weakref.ref(loader.take("large"))
            rest = dict(loader)
            assert taken() is None and len(rest) == len(loader) - 1

    def test_a_file_that_was_cut(self, model: tuple[Path, Any], tmp_path: Path) -> None:
        path = tmp_path / "cut.safetensors"
        path.write_bytes(model[0].read_bytes())
        with transfer.safe_open(path, "np") as files:
            last = files.offset_keys()[-1]
            path.write_bytes(path.read_bytes()[:-1])
            with files.prefetch({last: None}) as loader:
                with pytest.raises(SafetensorsError, match="the file ended at byte"):
                    loader.take(last)
                with pytest.raises(SafetensorsError, match="the file ended at byte"):
                    list(loader)
