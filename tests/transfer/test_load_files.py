"""Checkpoints come into tensors whole, in order, one allocation each; errors leave nothing behind.

With torch where it is installed, and always with a stand-in for it.
"""

from __future__ import annotations

import ctypes
import functools
import gc
import importlib
import json
import os
import random
import subprocess
import sys
import tempfile
import weakref
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import waywiser.transfer
from transfer import torch_stand_in
from transfer.safetensors_files import write_bytes
from transfer.transfer_stand_in import StandInTransfers
from waywiser.transfer import loading as reading
from waywiser.transfer.errors import TransferError, UnsupportedTransfer
from waywiser.transfer.read_plan import SMALL_BYTES, plan_reads
from waywiser.transfer.safetensors_header import DTYPE_BITS
from waywiser.transfer.safetensors_layout import ARRAY_NAMES

MODULE = "waywiser.transfer.torch"
WHOLE_BYTE_TYPES = sorted(name for name, bits in DTYPE_BITS.items() if bits >= 8)
NO_TORCH = "torch is not installed"


def load_module(monkeypatch: pytest.MonkeyPatch, torch: ModuleType | None) -> Any:
    """The module, over this torch or the installed one."""
    for name in (MODULE, f"{MODULE}_patch"):
        monkeypatch.setitem(sys.modules, name, ModuleType("in between"))  # It is restored later.
        del sys.modules[name]
    with pytest.MonkeyPatch.context() as while_it_is_imported:
        # The library itself must not take the stand-in for torch.
        if torch is not None:
            while_it_is_imported.setitem(sys.modules, "torch", torch)
        return importlib.import_module(MODULE)


@pytest.fixture(params=["stand-in", "torch"])
def loading(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module under test, over the stand-in for torch and over torch."""
    if request.param == "stand-in":
        return load_module(monkeypatch, torch_stand_in)
    pytest.importorskip("torch", reason=NO_TORCH)
    return load_module(monkeypatch, None)


@pytest.fixture
def transfers(monkeypatch: pytest.MonkeyPatch) -> Iterator[StandInTransfers]:
    made = StandInTransfers()
    monkeypatch.setattr(waywiser.transfer.native, "read_async", made.read_async)
    monkeypatch.setattr(waywiser.transfer.native, "copy_batch", made.copy_batch)
    yield made
    made.close()


@pytest.fixture(params=["stand-in transfers", "library"])
def moved(request: pytest.FixtureRequest) -> None:
    """Has the stand-in transfer the bytes, or the library."""
    if request.param != "library":
        request.getfixturevalue("transfers")


def bytes_of(tensor: Any) -> bytes:
    return ctypes.string_at(tensor.data_ptr(), tensor.nbytes) if tensor.nbytes else b""


def some_bytes(count: int, seed: int = 0) -> bytes:
    return random.Random(seed).randbytes(count)


def write_model(path: Path, large: int = 3, small: int = 5) -> dict[str, bytes]:
    """A file in which large and small tensors take turns; returns their bytes."""
    tensors: dict[str, tuple[str, list[int], bytes]] = {}
    for layer in range(large):
        data = some_bytes(SMALL_BYTES + 2 + 2 * layer, layer)
        tensors[f"{path.stem}.{layer}.weight"] = ("BF16", [len(data) // 2], data)
        for number in range(small):
            data = some_bytes(100 + number, number)
            tensors[f"{path.stem}.{layer}.norm.{number}"] = ("U8", [len(data)], data)
    write_bytes(path, tensors)
    return {name: data for name, (_, _, data) in tensors.items()}


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_all_types_and_shapes_come_whole(loading: Any, moved: None, tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    shapes = [[], [3], [2, 0, 5], [2, 3, 4], [1] * 5]
    tensors = {}
    for dtype in WHOLE_BYTE_TYPES:
        for shape in shapes:
            nbytes = DTYPE_BITS[dtype] // 8
            for size in shape:
                nbytes *= size
            data = some_bytes(nbytes, len(tensors))
            if dtype == "BOOL":
                data = bytes(byte & 1 for byte in data)
            tensors[f"{dtype}{shape}"] = (dtype, shape, data)
    write_bytes(path, tensors)
    loaded = loading.load_file(path, "cpu")
    assert list(loaded) == list(tensors)
    for name, (dtype, shape, data) in tensors.items():
        assert tuple(loaded[name].shape) == tuple(shape)
        assert loaded[name].dtype is getattr(loading.torch, ARRAY_NAMES[dtype])
        assert bytes_of(loaded[name]) == data


def test_it_loads_what_safetensors_saves(
    moved: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch = pytest.importorskip("torch", reason=NO_TORCH)
    safetensors = pytest.importorskip("safetensors.torch", reason="safetensors is not installed")
    path = tmp_path / "model.safetensors"
    torch.manual_seed(1)
    saved = {
        "weight": torch.randn(300, 400),
        "half": torch.randn(7, 3).to(torch.bfloat16),
        "mask": torch.rand(11) > 0.5,
        "step": torch.tensor(3),
        "eighth": torch.randn(5).to(torch.float8_e4m3fn),
        "complex": torch.randn(2, dtype=torch.complex64),
        "large": torch.randn(SMALL_BYTES),
    }
    safetensors.save_file(saved, path, metadata={"format": "pt"})
    loaded, theirs = (
        load_module(monkeypatch, None).load_file(path, "cpu"),
        safetensors.load_file(path),
    )
    assert loaded.keys() == theirs.keys()
    for name, tensor in loaded.items():
        assert tensor.dtype is theirs[name].dtype
        assert tensor.shape == theirs[name].shape
        assert torch.equal(
            tensor.view(-1).view(torch.uint8), theirs[name].view(-1).view(torch.uint8)
        )
        assert tensor.is_contiguous()
        assert tensor._base is None
        assert not tensor.requires_grad


def test_tensors_have_memory_of_their_own(loading: Any, moved: None, tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    write_model(path)
    loaded = loading.load_file(path, "cpu")
    ranges = sorted((tensor.data_ptr(), tensor.nbytes) for tensor in loaded.values())
    for (begin, nbytes), (after, _) in pairwise(ranges):
        assert begin + nbytes <= after
    if loading.torch is torch_stand_in:
        references = {name: weakref.ref(tensor.array) for name, tensor in loaded.items()}
    else:
        assert all(tensor.untyped_storage().nbytes() == tensor.nbytes for tensor in loaded.values())
        references = {name: weakref.ref(tensor) for name, tensor in loaded.items()}
    for name in list(loaded):
        del loaded[name]
        assert references[name]() is None, "nothing else holds it"
        assert all(references[other]() is not None for other in loaded)


def test_small_neighbours_are_read_together_and_large_tensors_in_place(
    loading: Any, transfers: StandInTransfers, tmp_path: Path
) -> None:
    path = tmp_path / "model.safetensors"
    model = write_model(path, large=3, small=500)
    loaded = loading.load_file(path, "cpu")
    assert {name: bytes_of(tensor) for name, tensor in loaded.items()} == model
    assert len(transfers.requests) == 6
    assert transfers.batches == 3


def test_shards_are_read_at_the_same_time(
    loading: Any, transfers: StandInTransfers, tmp_path: Path
) -> None:
    expected: dict[str, bytes] = {}
    for number in range(4):
        expected |= write_model(tmp_path / f"shard{number}.safetensors", large=1, small=2)
    listed = {name: f"{name.split('.')[0]}.safetensors" for name in reversed(expected)}
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": listed}))
    for paths in (index, tmp_path, sorted(tmp_path.glob("*.safetensors"))):
        loaded = loading.load_files(paths, "cpu")
        assert {name: bytes_of(tensor) for name, tensor in loaded.items()} == expected
        assert list(loaded) == list(expected)
    assert transfers.most_running > 2


def test_several_threads_load_at_once(loading: Any, moved: None, tmp_path: Path) -> None:
    models = [write_model(tmp_path / f"{number}.safetensors") for number in range(4)]

    def load(number: int) -> list[dict[str, Any]]:
        return [loading.load_file(tmp_path / f"{number}.safetensors", "cpu") for _ in range(3)]

    with ThreadPoolExecutor(4) as threads:
        for model, loads in zip(models, threads.map(load, range(4)), strict=True):
            for loaded in loads:
                assert {name: bytes_of(tensor) for name, tensor in loaded.items()} == model


def test_only_what_keys_name_is_read(
    loading: Any, transfers: StandInTransfers, tmp_path: Path
) -> None:
    path = tmp_path / "model.safetensors"
    model = write_model(path)
    selected = ["model.2.weight", "model.0.norm.3", "model.0.norm.1"]
    loaded = loading.load_file(path, "cpu", keys=selected)
    assert list(loaded) == ["model.0.norm.1", "model.0.norm.3", "model.2.weight"]
    assert all(bytes_of(tensor) == model[name] for name, tensor in loaded.items())
    assert sum(nbytes for _, nbytes in transfers.requests) < len(model["model.2.weight"]) + 1000
    assert loading.load_file(path, "cpu", keys=[]) == {}
    with pytest.raises(loading.TensorNotFoundError, match=r"did you mean 'model\.2\.weight'"):
        loading.load_file(path, "cpu", keys=["model.2.wieght"])


@given(
    st.lists(
        st.tuples(st.sampled_from(["U8", "F16", "F32", "F64"]), st.integers(0, 40)), max_size=25
    ),
    st.integers(1, 3),
    st.sampled_from([(0, 1, 0), (64, 200, 0), (64, 200, 32), (1000, 10_000, 1000)]),
    st.randoms(use_true_random=False),
)
@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_any_checkpoint_comes_whole(
    moved: None,
    sizes: list[tuple[str, int]],
    files: int,
    limits: tuple[int, int, int],
    random_: random.Random,
) -> None:
    with pytest.MonkeyPatch.context() as monkeypatch, tempfile.TemporaryDirectory() as name:
        loading = load_module(monkeypatch, torch_stand_in)
        small, span, gap = limits
        planner = functools.partial(plan_reads, small=small, span=span, gap=gap)
        monkeypatch.setattr(reading, "plan_reads", planner)
        monkeypatch.setattr(reading, "MOST_TRANSFERS", 1 + random_.randrange(4))
        shards: list[dict[str, tuple[str, list[int], bytes]]] = [{} for _ in range(files)]
        for number, (dtype, count) in enumerate(sizes):
            data = random_.randbytes(count * DTYPE_BITS[dtype] // 8)
            shards[number * files // max(1, len(sizes))][str(number)] = (dtype, [count], data)
        paths = []
        for number, tensors in enumerate(shards):
            paths.append(Path(name) / f"{number}.safetensors")
            write_bytes(paths[-1], tensors)
        expected = {name: data for tensors in shards for name, (_, _, data) in tensors.items()}
        keys = None
        if random_.random() < 0.5:
            keys = [name for name in expected if random_.random() < 0.5]
            expected = {name: expected[name] for name in keys}
        loaded = loading.load_files(paths, "cpu", keys=keys)
        assert {name: bytes_of(tensor) for name, tensor in loaded.items()} == expected
        assert list(loaded) == list(expected)


def made_tensors(loading: Any, monkeypatch: pytest.MonkeyPatch) -> list[weakref.ref[Any]]:
    """References to all tensors that are allocated from now on."""
    made: list[weakref.ref[Any]] = []
    empty = loading.torch.empty

    def record(*arguments: Any, **options: Any) -> Any:
        tensor = empty(*arguments, **options)
        made.append(weakref.ref(tensor))
        return tensor

    monkeypatch.setattr(loading.torch, "empty", record)
    return made


READS = 6
"""Tensors of `write_model`: for each of 3 layers one of the large tensor and one of the small
ones."""


@pytest.mark.parametrize("failing", range(READS))
@pytest.mark.parametrize("where", ["in the call", "while it runs"])
def test_a_failing_read_leaves_nothing_behind(
    loading: Any,
    transfers: StandInTransfers,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    failing: int,
    where: str,
) -> None:
    path = tmp_path / "model.safetensors"
    write_model(path)
    made = made_tensors(loading, monkeypatch)

    def fail(number: int) -> None:
        if number == failing:
            raise OSError(5, "Input/output error")

    if where == "in the call":
        transfers.before_call = fail
    else:
        transfers.before_read = fail
    before = descriptors()
    with pytest.raises(OSError, match="Input/output error") as caught:
        loading.load_file(path, "cpu")
    assert transfers.running == 0
    assert descriptors() == before
    (note,) = caught.value.__notes__
    assert f"of {path} was loaded" in note
    assert f"'model.{failing // 2}." in note
    assert len(made) > failing
    caught.value.__traceback__ = None
    del caught
    gc.collect()
    assert [reference for reference in made if reference() is not None] == []


def test_a_file_that_is_cut_while_it_is_read_is_an_error(
    loading: Any, transfers: StandInTransfers, tmp_path: Path
) -> None:
    path = tmp_path / "model.safetensors"
    write_model(path)
    whole = path.stat().st_size
    last = READS - 1
    transfers.before_read = lambda number: os.truncate(path, whole - 3) if number == last else None
    before = descriptors()
    with pytest.raises(loading.SafetensorsError) as caught:
        loading.load_file(path, "cpu")
    assert f"{path}: the file ended at byte {whole - 3:,} while it was read" in str(caught.value)
    assert transfers.running == 0
    assert descriptors() == before


def test_short_memory_is_reported_as_torch_does(
    loading: Any,
    transfers: StandInTransfers,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = tmp_path / "model.safetensors"
    write_model(path)
    empty, count = loading.torch.empty, 0

    def fail(*arguments: Any, **options: Any) -> Any:
        nonlocal count
        count += 1
        if count == 8:
            raise MemoryError("no memory")
        return empty(*arguments, **options)

    monkeypatch.setattr(loading.torch, "empty", fail)
    with pytest.raises(MemoryError, match="no memory"):
        loading.load_file(path, "cpu")
    assert transfers.running == 0


def test_a_type_that_torch_does_not_have_is_an_error_before_any_read(
    loading: Any, transfers: StandInTransfers, tmp_path: Path
) -> None:
    path = tmp_path / "model.safetensors"
    write_bytes(path, {"a": ("U8", [2], b"ab"), "b": ("F4", [4], b"cd")})
    with pytest.raises(loading.SafetensorsError, match="tensor 'b' has type F4, for which torch"):
        loading.load_file(path, "cpu")
    assert transfers.requests == []
    assert list(loading.load_file(path, "cpu", keys=["a"])) == ["a"]


def test_a_type_of_a_newer_torch_is_named(
    transfers: StandInTransfers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loading = load_module(monkeypatch, torch_stand_in.without("float8_e8m0fnu"))
    path = tmp_path / "model.safetensors"
    write_bytes(path, {"a": ("F8_E8M0", [2], b"ab")})
    with pytest.raises(loading.SafetensorsError, match="or use a newer torch"):
        loading.load_file(path, "cpu")


@pytest.mark.parametrize("device", [True, "meta", None])
def test_a_device_that_cannot_be_loaded_to_is_an_error(
    loading: Any, transfers: StandInTransfers, tmp_path: Path, device: Any
) -> None:
    path = tmp_path / "model.safetensors"
    write_model(path)
    with pytest.raises(TransferError, match=rf"^load_files: device is {device!r}, .*\(.+\)$"):
        loading.load_file(path, device)
    assert transfers.requests == []


@pytest.mark.parametrize(
    ("device", "gpus", "built_with", "kind", "words"),
    [
        ("cuda", 0, "12.4", UnsupportedTransfer, ["'cuda'", "no GPU", "nvidia-smi"]),
        ("cuda:1", 0, None, UnsupportedTransfer, ["'cuda:1'", "no CUDA", "load to 'cpu'"]),
        (0, 0, "12.4", UnsupportedTransfer, ["device is 0", "load to 'cpu'"]),
        ("cuda:2", 2, "12.4", ValueError, ["'cuda:2'", "2 GPUs", "'cuda:0' up to 'cuda:1'"]),
        (1, 1, "12.4", ValueError, ["device is 1", "1 GPU (load to 'cuda:0')"]),
        (-1, 1, "12.4", ValueError, ["device is -1", "'cuda:0'"]),
        ("gpu", 1, "12.4", ValueError, ["device is 'gpu'", "pass 'cpu'"]),
        (1.5, 1, "12.4", TypeError, ["device is 1.5", "pass 'cpu'"]),
    ],
)
def test_a_device_that_is_not_there_is_named_with_what_to_do(
    monkeypatch: pytest.MonkeyPatch,
    transfers: StandInTransfers,
    tmp_path: Path,
    device: Any,
    gpus: int,
    built_with: str | None,
    kind: type[Exception],
    words: list[str],
) -> None:
    monkeypatch.setattr(torch_stand_in.cuda, "is_available", lambda: gpus > 0)
    monkeypatch.setattr(torch_stand_in.cuda, "device_count", lambda: gpus)
    monkeypatch.setattr(torch_stand_in.version, "cuda", built_with)
    loading = load_module(monkeypatch, torch_stand_in)
    with pytest.raises(kind) as caught:
        loading.load_file(tmp_path / "it-is-not-opened.safetensors", device)
    assert isinstance(caught.value, TransferError)
    assert all(each in str(caught.value) for each in words), caught.value
    assert str(caught.value).isprintable()
    assert transfers.requests == []


def test_a_forked_worker_that_has_no_gpu_names_the_fork(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """torch still counts the GPUs of the parent there."""
    monkeypatch.setattr(torch_stand_in.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch_stand_in.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(torch_stand_in.cuda, "_is_in_bad_fork", lambda: True, raising=False)
    monkeypatch.setattr(torch_stand_in.version, "cuda", "12.4")
    loading = load_module(monkeypatch, torch_stand_in)
    reason = "CUDA does not start in a process that was forked: spawn it"
    monkeypatch.setattr(loading.transfer, "machine", lambda: {"gpu_unavailable": reason})
    with pytest.raises(UnsupportedTransfer) as caught:
        loading.load_file(tmp_path / "it-is-not-opened.safetensors", "cuda")
    assert reason in str(caught.value)
    assert "load to 'cpu'" in str(caught.value)


def test_without_torch_the_import_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, MODULE, ModuleType("in between"))
    del sys.modules[MODULE]
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ImportError, match=r"PyTorch is not installed \(install torch;"):
        importlib.import_module(MODULE)
    assert MODULE not in sys.modules


@pytest.mark.parametrize("version", ["1.13.1", "2.0.1+cu117"])
def test_with_an_old_torch_the_import_says_which_is_needed(
    monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    monkeypatch.setattr(torch_stand_in, "__version__", version)
    with pytest.raises(ImportError) as caught:
        load_module(monkeypatch, torch_stand_in)
    assert str(caught.value) == (
        f"waywiser.transfer.torch: PyTorch {version} is installed, and 2.1 or later is needed "
        "(python -m pip install 'torch>=2.1')"
    )


@pytest.mark.parametrize("version", ["2.1.0", "2.15.0a0+git1", "10.0", "stand-in"])
def test_later_versions_and_unknown_ones_are_used(
    monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    monkeypatch.setattr(torch_stand_in, "__version__", version)
    load_module(monkeypatch, torch_stand_in)


def test_new_arrays_of_an_old_torch_are_an_error_of_one_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(torch_stand_in, "__version__", "1.13.1")
    monkeypatch.setitem(sys.modules, "torch", torch_stand_in)
    tensor = torch_stand_in.empty(
        4, dtype=torch_stand_in.uint8, device=torch_stand_in.device("cpu")
    )
    for call in (
        lambda: waywiser.transfer.to_host(tensor),
        lambda: waywiser.transfer.pinned_empty(4, torch_stand_in.float32),
    ):
        with pytest.raises(UnsupportedTransfer, match=r"1\.13\.1 is installed, and 2\.1 or later"):
            call()


def test_nothing_else_imports_torch() -> None:
    program = "import sys, waywiser.transfer.checkpoint; sys.exit('torch' in sys.modules)"
    paths = {"PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", program], check=True, env={**os.environ, **paths})
