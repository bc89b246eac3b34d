"""Safetensors with numpy alone: the same bytes as the safetensors library, without torch."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from waywiser.transfer.errors import InvalidOperand, InvalidTransfer, UnsupportedTransfer
from waywiser.transfer.numpy import (
    SafetensorsError,
    SharedTensorsError,
    TensorNotFoundError,
    load_file,
    load_files,
    save_files,
)
from waywiser.transfer.read_plan import SMALL_BYTES

reference = pytest.importorskip("safetensors.numpy")

TYPES = ("bool", "u1", "i1", "f2", "u2", "i2", "f4", "u4", "i4", "f8", "i8", "u8", "c8")
SHAPES = st.lists(st.integers(0, 5), max_size=3).map(tuple)


def array(shape: tuple[int, ...], dtype: str, seed: int = 1) -> np.ndarray:
    rng = np.random.default_rng(seed)
    nbytes = int(np.prod(shape)) * np.dtype(dtype).itemsize
    top = 2 if dtype == "bool" else 256
    return rng.integers(0, top, nbytes, dtype=np.uint8).view(dtype).reshape(shape)


def same(one: dict[str, np.ndarray], other: dict[str, np.ndarray]) -> bool:
    return one.keys() == other.keys() and all(
        (one[name].dtype, one[name].shape, one[name].tobytes())
        == (each.dtype, each.shape, each.tobytes())
        for name, each in other.items()
    )


@settings(max_examples=40, deadline=None)
@given(st.dictionaries(st.text("abé.", min_size=1), st.tuples(SHAPES, st.sampled_from(TYPES))))
def test_files_are_those_of_the_safetensors_library(
    tmp_path_factory: pytest.TempPathFactory, made_of: dict[str, tuple[tuple[int, ...], str]]
) -> None:
    arrays = {name: array(*each, seed=n) for n, (name, each) in enumerate(made_of.items())}
    folder = tmp_path_factory.mktemp("numpy")
    ours, theirs = folder / "ours.safetensors", folder / "theirs.safetensors"
    save_files(arrays, ours, metadata={"format": "np"})
    reference.save_file(arrays, theirs, metadata={"format": "np"})
    assert ours.read_bytes() == theirs.read_bytes()
    assert same(load_files(theirs), arrays)


@pytest.mark.parametrize("count", [1, SMALL_BYTES // 4 - 1, SMALL_BYTES, 3 * SMALL_BYTES])
def test_large_and_small_arrays_are_read_alike(count: int, tmp_path: Path) -> None:
    arrays = {f"w{n}": array((count + n,), "f4", n) for n in range(5)}
    file = tmp_path / "model.safetensors"
    save_files(arrays, file)
    loaded = load_file(file)
    assert same(loaded, arrays)
    assert all(each.flags.owndata or each.base is None for each in loaded.values())
    loaded["w0"][:] = 0
    assert same(load_file(file, keys=["w3", "w1"]), {name: arrays[name] for name in ("w1", "w3")})


def test_shards_have_an_index_and_are_loaded_as_a_folder(tmp_path: Path) -> None:
    arrays = {f"layer.{n}": array((64, 32), "f2", n) for n in range(6)}
    folder = tmp_path / "model"
    save_files(arrays, folder, shard_bytes=9000)
    index = json.loads((folder / "model.safetensors.index.json").read_text())
    assert set(index["weight_map"]) == set(arrays) and len(set(index["weight_map"].values())) > 1
    assert same(load_files(folder), arrays)


def test_types_that_numpy_lacks_are_named(tmp_path: Path) -> None:
    header = {"x": {"dtype": "BF16", "shape": [2], "data_offsets": [0, 4]}}
    text = json.dumps(header).encode()
    file = tmp_path / "a.safetensors"
    file.write_bytes(len(text).to_bytes(8, "little") + text + b"abcd")
    with pytest.raises(SafetensorsError, match=r"type BF16, which numpy does not have .*ml_dtypes"):
        load_file(file)
    assert load_file(file, keys=[]) == {}


@pytest.mark.parametrize(
    ("arrays", "error", "says"),
    [
        ([np.zeros(2)], InvalidOperand, "not a dict of arrays"),
        ({"a": [1, 2]}, InvalidOperand, "of type list, not an array"),
        ({3: np.zeros(2)}, InvalidOperand, "cannot be the name"),
        ({"a": np.zeros(2, object)}, UnsupportedTransfer, "object"),
        ({"a": np.zeros(2, ">f4")}, UnsupportedTransfer, ">f4"),
        ({"a": np.zeros((4, 4))[:, 1]}, InvalidTransfer, "is not contiguous"),
    ],
)
def test_what_cannot_be_saved_is_an_error(
    arrays: Any, error: type[Exception], says: str, tmp_path: Path
) -> None:
    with pytest.raises(error, match=says):
        save_files(arrays, tmp_path / "a.safetensors")
    assert list(tmp_path.iterdir()) == []


def test_arrays_that_share_memory_are_an_error(tmp_path: Path) -> None:
    whole = np.arange(10)
    with pytest.raises(SharedTensorsError, match=r"'a' and 'b' share memory.*array\.copy\(\)"):
        save_files({"a": whole[:6], "b": whole[5:]}, tmp_path / "a.safetensors")
    save_files({"a": whole[:5], "b": whole[5:]}, tmp_path / "a.safetensors")


def test_a_key_that_no_file_has_is_an_error(tmp_path: Path) -> None:
    save_files({"weight": np.zeros(3)}, tmp_path / "a.safetensors")
    with pytest.raises(TensorNotFoundError, match=r"did you mean .*weight"):
        load_file(tmp_path / "a.safetensors", keys=["wieght"])


def test_threads_load_at_once(tmp_path: Path) -> None:
    arrays = {f"w{n}": array((1000 * n + 1,), "i4", n) for n in range(20)}
    save_files(arrays, tmp_path / "a.safetensors")
    found: list[bool] = []

    def work() -> None:
        found.append(same(load_file(tmp_path / "a.safetensors"), arrays))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert found == [True] * 4


def test_torch_is_not_imported(tmp_path: Path) -> None:
    code = f"""
import sys
import numpy
from waywiser.transfer.numpy import load_file, save_files
save_files({{"a": numpy.arange(5)}}, {str(tmp_path / "a.safetensors")!r})
print(load_file({str(tmp_path / "a.safetensors")!r})["a"].sum())
print("torch" in sys.modules)
"""
    environment = {k: v for k, v in os.environ.items() if k != "WAYWISER_TRANSFER_NATIVE"}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
    )
    assert done.stdout == "10\nFalse\n"
