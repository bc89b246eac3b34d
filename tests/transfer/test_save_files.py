"""Files that are saved have the bytes of the safetensors library, and are whole or not there.

With torch where it is installed, and always with a stand-in for it.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import random
import signal
import subprocess
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from transfer import torch_stand_in
from transfer.test_load_files import NO_TORCH, load_module
from waywiser.transfer import durable_output
from waywiser.transfer.errors import (
    InvalidOperand,
    InvalidTransfer,
    TransferFileError,
    UnsupportedTransfer,
)
from waywiser.transfer.read_plan import SMALL_BYTES
from waywiser.transfer.safetensors_header import DTYPE_BITS, read_header
from waywiser.transfer.safetensors_layout import SizedTensor, lay_out, split_into_shards

TORCH_NAMES = torch_stand_in.FORMAT_NAMES


@pytest.fixture(params=["stand-in", "torch"])
def saving(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module under test, over the stand-in for torch and over torch."""
    if request.param == "stand-in":
        return load_module(monkeypatch, torch_stand_in)
    pytest.importorskip("torch", reason=NO_TORCH)
    return load_module(monkeypatch, None)


def tensor_of(torch: Any, dtype: str, shape: tuple[int, ...], seed: int = 0) -> Any:
    """A tensor of random bytes; ``dtype`` is a name of the format."""
    itemsize = DTYPE_BITS[dtype] // 8
    count = int(np.prod(shape, dtype=np.int64))
    data = bytearray(random.Random(seed).randbytes(count * itemsize))
    if dtype == "BOOL":
        data = bytearray(byte & 1 for byte in data)
    raw = torch.empty(count * itemsize, dtype=torch.uint8, device=torch.device("cpu"))
    if data:
        ctypes.memmove(raw.data_ptr(), bytes(data), len(data))
    return raw.view(getattr(torch, TORCH_NAMES[dtype])).view(shape)


def bytes_of(tensor: Any) -> bytes:
    return ctypes.string_at(tensor.data_ptr(), tensor.nbytes) if tensor.nbytes else b""


def model(torch: Any, seed: int = 0) -> dict[str, Any]:
    """Tensors of many types, small and large, of odd sizes, in no order."""
    made = {
        "layers.1.weight": tensor_of(torch, "BF16", (700, 601), seed),
        "layers.0.weight": tensor_of(torch, "BF16", (3, SMALL_BYTES // 2 + 1), seed + 1),
        "norm": tensor_of(torch, "F32", (17,), seed + 2),
        "mask": tensor_of(torch, "BOOL", (13,), seed + 3),
        "step": tensor_of(torch, "I64", (), seed + 4),
        "nothing": tensor_of(torch, "F16", (0, 4), seed + 5),
        'gr\u00fc\u00df "\\\n\x01/\x7f': tensor_of(torch, "U8", (3,), seed + 6),
        "\U0001f600": tensor_of(torch, "I8", (SMALL_BYTES + 7,), seed + 7),
        "large": tensor_of(torch, "F32", (1500, 1201), seed + 8),
    }
    return made


def reference(tensors: dict[str, Any], metadata: dict[str, str] | None) -> bytes:
    """What the safetensors library writes."""
    safetensors = pytest.importorskip("safetensors", reason="safetensors is not installed")
    if not hasattr(safetensors, "TensorSpec"):
        return bytes(
            safetensors.serialize(
                {
                    name: {
                        "dtype": str(each.dtype).removeprefix("torch."),
                        "shape": list(each.shape),
                        "data": bytes_of(each),
                    }
                    for name, each in tensors.items()
                },
                metadata,
            )
        )
    specs = {
        name: safetensors.TensorSpec(
            dtype=str(each.dtype).removeprefix("torch."),
            shape=list(each.shape),
            data_ptr=each.data_ptr(),
            data_len=each.nbytes,
        )
        for name, each in tensors.items()
    }
    return bytes(safetensors.serialize(specs, metadata))


@pytest.mark.parametrize("metadata", [None, {}, {"format": "pt"}, {'k"\n\u00e4': "\x00\u2028"}])
def test_a_file_is_that_of_the_safetensors_library(
    saving: Any, tmp_path: Path, metadata: dict[str, str] | None
) -> None:
    tensors = model(saving.torch)
    path = tmp_path / "model.safetensors"
    saving.save_files(tensors, path, metadata=metadata)
    assert path.read_bytes() == reference(tensors, metadata)
    assert os.listdir(tmp_path) == [path.name]


def test_every_type_is_at_the_place_that_the_library_gives_it(saving: Any, tmp_path: Path) -> None:
    names = [name for name in TORCH_NAMES if hasattr(saving.torch, TORCH_NAMES[name])]
    assert len(names) >= 15
    random.Random(3).shuffle(names)
    tensors = {f"t{i}": tensor_of(saving.torch, name, (3, i), i) for i, name in enumerate(names)}
    saving.save_files(tensors, tmp_path / "a.safetensors")
    assert (tmp_path / "a.safetensors").read_bytes() == reference(tensors, None)


def test_without_tensors_a_file_has_a_header_alone(saving: Any, tmp_path: Path) -> None:
    saving.save_files({}, tmp_path / "a.safetensors")
    assert (tmp_path / "a.safetensors").read_bytes() == reference({}, None)
    saving.save_files({}, tmp_path / "a.safetensors", metadata={"a": "b"})
    assert saving.load_file(tmp_path / "a.safetensors", "cpu") == {}


def test_several_metadata_are_sorted(saving: Any, tmp_path: Path) -> None:
    texts = {"b": "1", "a": "2", "c": "3"}
    tensors = {"x": tensor_of(saving.torch, "F32", (4,))}
    saving.save_files(tensors, tmp_path / "a.safetensors", metadata=texts)
    raw = (tmp_path / "a.safetensors").read_bytes()
    theirs = reference(tensors, texts)
    length = int.from_bytes(raw[:8], "little")
    assert len(raw) == len(theirs)
    assert json.loads(raw[8 : 8 + length]) == json.loads(theirs[8 : 8 + length])
    assert list(json.loads(raw[8 : 8 + length])["__metadata__"]) == ["a", "b", "c"]
    assert raw[8 + length :] == theirs[8 + length :]


def test_what_is_saved_is_loaded(saving: Any, tmp_path: Path) -> None:
    tensors = model(saving.torch)
    for path, shard_bytes in ((tmp_path / "one.safetensors", None), (tmp_path / "many", 2**21)):
        saving.save_files(tensors, path, shard_bytes=shard_bytes)
        loaded = saving.load_files(path, "cpu")
        assert loaded.keys() == tensors.keys()
        for name, tensor in tensors.items():
            assert loaded[name].dtype is tensor.dtype
            assert tuple(loaded[name].shape) == tuple(tensor.shape)
            assert bytes_of(loaded[name]) == bytes_of(tensor)


def test_shards_and_index_are_named_as_by_huggingface_hub(saving: Any, tmp_path: Path) -> None:
    sizes = {"a": 60, "b": 60, "c": 20, "d": 60, "e": 20, "f": 20, "g": 0, "h": 101}
    tensors = {name: tensor_of(saving.torch, "U8", (size,)) for name, size in sizes.items()}
    folder = tmp_path / "model"
    saving.save_files(tensors, folder, shard_bytes=100, metadata={"format": "pt"})
    files = [f"model-0000{n}-of-00004.safetensors" for n in range(1, 5)]
    assert sorted(os.listdir(folder)) == [*files, "model.safetensors.index.json"]
    weight_map = dict(
        zip("abchdefg", [files[0], *files[1:2] * 2, files[2], *files[3:] * 4], strict=False)
    )
    expected = {"metadata": {"total_size": sum(sizes.values())}, "weight_map": weight_map}
    text = (folder / "model.safetensors.index.json").read_text()
    assert json.loads(text)["metadata"] == expected["metadata"]
    for shard in files:
        held = {
            name: tensors[name]
            for name, file in json.loads(text)["weight_map"].items()
            if file == shard
        }
        assert (folder / shard).read_bytes() == reference(held, {"format": "pt"})


def test_the_shards_are_those_of_huggingface_hub() -> None:
    hub = pytest.importorskip("huggingface_hub.serialization", reason="it is not installed")
    for seed in range(200):
        generator = random.Random(seed)
        sizes = {f"t{i}": generator.choice([0, 1, 30, 50, 99, 100, 101]) for i in range(12)}
        theirs = hub.split_state_dict_into_shards_factory(
            sizes,
            get_storage_size=lambda size: size,
            filename_pattern="model{suffix}.safetensors",
            max_shard_size=100,
        )
        ours = split_into_shards(
            [SizedTensor(name, "U8", (size,), size) for name, size in sizes.items()], 100
        )
        named = {file: [each.name for each in shard] for file, shard in ours.items()}
        assert named == theirs.filename_to_tensors


def test_a_single_shard_needs_no_index(saving: Any, tmp_path: Path) -> None:
    tensors = {"a": tensor_of(saving.torch, "U8", (60,))}
    for _ in range(2):
        saving.save_files(tensors, tmp_path / "model", shard_bytes=60)
        assert os.listdir(tmp_path / "model") == ["model.safetensors"]


class TestTensorsThatAreRejected:
    def test_shared_memory(self, saving: Any, tmp_path: Path) -> None:
        whole = tensor_of(saving.torch, "U8", (1000,))
        for name, other in (("the same", whole), ("a part", whole[500:600])):
            with pytest.raises(RuntimeError, match="'a' and 'b' share memory") as raised:
                saving.save_files({"a": whole, "b": other, "c": whole[:0]}, tmp_path / name)
            assert "\n" not in str(raised.value)
        saving.save_files({"a": whole[:500], "b": whole[500:]}, tmp_path / "parts")
        assert os.listdir(tmp_path) == ["parts"]

    def test_a_long_one_is_compared_with_all_that_follow(self, saving: Any, tmp_path: Path) -> None:
        whole = tensor_of(saving.torch, "U8", (1000,))
        inner = {"b": whole[10:20], "c": whole[900:910]}
        for others in (inner, {"c": inner["c"]}):
            with pytest.raises(RuntimeError, match="share memory"):
                saving.save_files({"a": whole, **others}, tmp_path / "file")

    def test_no_contiguous_memory(self, saving: Any, tmp_path: Path) -> None:
        tensor = tensor_of(saving.torch, "F32", (6, 4))
        with pytest.raises(ValueError, match=r"'a' is not contiguous.*pass tensor.contiguous"):
            saving.save_files({"a": tensor[:, 1:3]}, tmp_path / "file")
        with pytest.raises(RuntimeError, match="share memory"):
            saving.save_files({"a": tensor[:, 1:3], "b": tensor}, tmp_path / "file")
        assert os.listdir(tmp_path) == []

    @pytest.mark.parametrize(
        ("tensors", "error", "says"),
        [
            (None, InvalidOperand, "not a dict of tensors"),
            ([1], InvalidOperand, "not a dict of tensors"),
            ({"a": 1}, InvalidOperand, "'a' of type int, not a tensor"),
            ({3: None}, InvalidOperand, "the key 3, which cannot be"),
            ({"__metadata__": None}, InvalidOperand, "which cannot be"),
            ({"\ud800": None}, InvalidOperand, "which cannot be"),
        ],
    )
    def test_no_tensors(
        self, saving: Any, tmp_path: Path, tensors: Any, error: type[Exception], says: str
    ) -> None:
        with pytest.raises(error, match=says) as raised:
            saving.save_files(tensors, tmp_path / "file")
        assert "\n" not in str(raised.value)
        assert os.listdir(tmp_path) == []

    def test_types_of_torch_alone(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        torch = pytest.importorskip("torch", reason=NO_TORCH)
        saving = load_module(monkeypatch, None)
        for tensor, error in (
            (torch.zeros(3, dtype=torch.complex128), UnsupportedTransfer),
            (torch.zeros(3).to_sparse(), UnsupportedTransfer),
            (torch.zeros(3, device="meta"), InvalidTransfer),
        ):
            with pytest.raises(error):
                saving.save_files({"a": tensor}, tmp_path / "file")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"path": 3}, "path is 3, not the path"),
        ({"path": "a\0b"}, "not the path of a file"),
        ({"path": ""}, "not the path of a file"),
        ({"shard_bytes": "5GB"}, "shard_bytes is '5GB', not a whole number"),
        ({"shard_bytes": True}, "not a whole number"),
        ({"shard_bytes": 0}, "shard_bytes is 0"),
        ({"metadata": {"a": 1}}, "metadata holds 1"),
        ({"metadata": "pt"}, "metadata is 'pt', not a dict of texts"),
        ({"metadata": {"a": "\ud800"}}, "no Unicode text"),
    ],
)
def test_arguments_that_make_no_sense(
    saving: Any, tmp_path: Path, arguments: dict[str, Any], says: str
) -> None:
    tensors = {"a": tensor_of(saving.torch, "U8", (4,))}
    with pytest.raises((InvalidOperand, InvalidTransfer), match=says):
        saving.save_files(tensors, **{"path": tmp_path / "file", **arguments})
    assert os.listdir(tmp_path) == []


def test_a_header_longer_than_the_format_allows() -> None:
    with pytest.raises(InvalidTransfer, match="the header has 100,0"):
        lay_out([], {"a": "x" * 100_000_000})


class TestPaths:
    def test_a_file_replaces_another_one_as_a_whole(self, saving: Any, tmp_path: Path) -> None:
        path = tmp_path / "model.safetensors"
        path.write_bytes(b"old")
        with path.open("rb") as reader:
            saving.save_files({"a": tensor_of(saving.torch, "U8", (4,))}, path)
            assert reader.read() == b"old"  # who has it open goes on
        assert saving.load_file(path, "cpu").keys() == {"a"}

    def test_a_link_leads_to_the_file_that_is_replaced(self, saving: Any, tmp_path: Path) -> None:
        (tmp_path / "real").mkdir()
        (tmp_path / "link").symlink_to("real/model.safetensors")
        saving.save_files({"a": tensor_of(saving.torch, "U8", (4,))}, tmp_path / "link")
        assert (tmp_path / "link").is_symlink()
        assert os.listdir(tmp_path / "real") == ["model.safetensors"]

    def test_long_names(self, saving: Any, tmp_path: Path) -> None:
        name = "\u00e4" * 120 + ".safetensors"
        for _ in range(2):
            saving.save_files({"a": tensor_of(saving.torch, "U8", (4,))}, tmp_path / name)
        assert os.listdir(tmp_path) == [name]

    def test_a_folder_with_other_files_is_not_replaced(self, saving: Any, tmp_path: Path) -> None:
        tensors = {"a": tensor_of(saving.torch, "U8", (4,))}
        folder = tmp_path / "model"
        saving.save_files(tensors, folder, shard_bytes=2)
        (folder / "config.json").write_text("{}")
        with pytest.raises(InvalidTransfer, match=r"'config.json', which is no part.*be lost"):
            saving.save_files(tensors, folder, shard_bytes=3)
        assert (folder / "config.json").read_text() == "{}"
        assert os.listdir(tmp_path) == ["model"]

    def test_a_file_is_no_folder_and_a_folder_no_file(self, saving: Any, tmp_path: Path) -> None:
        tensors = {"a": tensor_of(saving.torch, "U8", (4,))}
        (tmp_path / "file").write_bytes(b"x")
        (tmp_path / "folder").mkdir()
        with pytest.raises(InvalidTransfer, match="it is a file, and shards go into a folder"):
            saving.save_files(tensors, tmp_path / "file", shard_bytes=2)
        with pytest.raises(TransferFileError, match="pass the path of a file in the folder"):
            saving.save_files(tensors, tmp_path / "folder")
        with pytest.raises(FileNotFoundError, match="folders above it are not created"):
            saving.save_files(tensors, tmp_path / "missing" / "file")
        assert sorted(os.listdir(tmp_path)) == ["file", "folder"]
        saving.save_files(tensors, tmp_path / "folder", shard_bytes=2)  # it is empty

    def test_files_are_synced_before_they_have_their_name_and_folders_after(
        self, saving: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        done: list[str] = []

        def noted(name: str, shown: Any) -> None:
            call = getattr(os, name)

            def wrapper(*arguments: Any, **more: Any) -> Any:
                done.append(f"{name} {shown(*arguments)}")
                return call(*arguments, **more)

            monkeypatch.setattr(durable_output.os, name, wrapper)

        noted(
            "fsync", lambda descriptor: _kind(os.readlink(f"/proc/self/fd/{descriptor}"), tmp_path)
        )
        noted("rename", lambda one, other: "a trial" if one.name == "model" else other.name)
        exchange = durable_output.exchange

        def noted_exchange(one: Path, other: Path) -> None:
            done.append("exchange")
            exchange(one, other)

        monkeypatch.setattr(durable_output, "exchange", noted_exchange)
        tensors = {name: tensor_of(saving.torch, "U8", (4,)) for name in "ab"}
        saving.save_files(tensors, tmp_path / "f")
        assert done == ["fsync unfinished", "rename f", "fsync parent"]
        written = ["fsync file"] * 3 + ["fsync unfinished", "fsync parent"]
        for trial, put in (
            ([], ["rename model"]),
            (["rename a trial"], ["rename model", "exchange"]),
        ):
            done.clear()
            saving.save_files(tensors, tmp_path / "model", shard_bytes=4)
            assert done == [*trial, *written, *put, "fsync parent"]


def _kind(path: str, parent: Path) -> str:
    inner = Path(path).relative_to(parent)
    if not inner.parts:
        return "parent"
    return "unfinished" if len(inner.parts) == 1 else "file"


@contextmanager
def limited_files(nbytes: int) -> Iterator[None]:
    """Files can have so many bytes only, as on a disk that is full."""
    import resource

    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (nbytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


class TestFailures:
    @pytest.mark.parametrize("shard_bytes", [None, 2**21])
    def test_no_space(
        self, saving: Any, tmp_path: Path, shard_bytes: int | None, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path = tmp_path / "model"
        saving.save_files(model(saving.torch), path, shard_bytes=shard_bytes)
        before = saving.load_files(path, "cpu")

        def full(descriptor: int, nbytes: int) -> None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        with monkeypatch.context() as while_full:
            while_full.setattr(durable_output, "_reserve", full)
            with pytest.raises(TransferFileError, match=r"No space left.*free space") as raised:
                saving.save_files(model(saving.torch, 9), path, shard_bytes=shard_bytes)
        assert raised.value.errno == errno.ENOSPC
        assert str(path) in str(raised.value) and "\n" not in str(raised.value)
        # The same if the space is used up while the tensors are written.
        with monkeypatch.context() as while_full, limited_files(2**19):
            while_full.setattr(durable_output, "_reserve", lambda descriptor, nbytes: None)
            with pytest.raises(TransferFileError) as raised:
                saving.save_files(model(saving.torch, 9), path, shard_bytes=shard_bytes)
        assert raised.value.errno == errno.EFBIG
        assert "\n" not in str(raised.value)
        assert os.listdir(tmp_path) == ["model"]
        after = saving.load_files(path, "cpu")
        assert {name: bytes_of(each) for name, each in after.items()} == {
            name: bytes_of(each) for name, each in before.items()
        }

    @pytest.mark.parametrize("shard_bytes", [None, 3])
    @pytest.mark.parametrize("number", [errno.EROFS, errno.EACCES, errno.EDQUOT])
    def test_a_place_that_cannot_be_written(
        self,
        saving: Any,
        tmp_path: Path,
        shard_bytes: int | None,
        number: int,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        def reject(*arguments: Any) -> Any:
            raise OSError(number, os.strerror(number))

        monkeypatch.setattr(durable_output, "_create", reject)
        with pytest.raises(TransferFileError) as raised:
            saving.save_files(
                {"a": tensor_of(saving.torch, "U8", (4,))}, tmp_path / "x", shard_bytes=shard_bytes
            )
        assert raised.value.errno == number
        assert durable_output.REMEDIES[number] in str(raised.value)
        assert os.listdir(tmp_path) == []

    def test_an_interrupt_leaves_nothing(
        self, saving: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def interrupt(descriptor: int, nbytes: int) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr(durable_output, "_reserve", interrupt)
        for shard_bytes in (None, 3):
            with pytest.raises(KeyboardInterrupt):
                saving.save_files(
                    {"a": tensor_of(saving.torch, "U8", (4,))},
                    tmp_path / "x",
                    shard_bytes=shard_bytes,
                )
        assert os.listdir(tmp_path) == []

    @pytest.mark.parametrize("shard_bytes", [None, 2**17])
    def test_killed_at_every_step_it_is_the_old_one_or_the_new_one(
        self, tmp_path: Path, shard_bytes: int | None
    ) -> None:
        """A child for each line of the modules that write is killed there; a save after it is
        whole, and has removed what the killed one left."""
        program = Path(__file__).with_name("saving_killed.py")
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        done = subprocess.run(
            [sys.executable, program, tmp_path, str(shard_bytes or 0)],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        old, new = (int(word) for word in done.stdout.split())
        assert old > 20 and new >= 2

    def test_two_saves_at_once_leave_one_of_them(self, saving: Any, tmp_path: Path) -> None:
        from concurrent.futures import ThreadPoolExecutor

        def save(seed: int) -> None:
            for _ in range(5):
                tensors = {name: tensor_of(saving.torch, "U8", (70000,), seed) for name in "ab"}
                saving.save_files(tensors, tmp_path / "model", shard_bytes=70000)

        with ThreadPoolExecutor(3) as threads:
            for future in [threads.submit(save, seed) for seed in range(3)]:
                future.result()
        loaded = saving.load_files(tmp_path / "model", "cpu")
        assert bytes_of(loaded["a"]) == bytes_of(loaded["b"])
        assert os.listdir(tmp_path) == ["model"]


@pytest.mark.filterwarnings("ignore:staging memory could not be pinned:UserWarning")
@pytest.mark.parametrize("fault", ["", "oom_at=1+"])
def test_tensors_of_gpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    from fake_gpu import configure, random_array

    from transfer.test_snapshots import GpuTensor
    from waywiser import transfer

    saving = load_module(monkeypatch, torch_stand_in)
    tensors = {
        "a": GpuTensor(random_array(5 * 2**20 + 3, seed=1)),
        "b": GpuTensor(random_array((700, 1000), np.float32, seed=2), gpu=1),
        "c": tensor_of(torch_stand_in, "BF16", (3, SMALL_BYTES), 3),
        "d": GpuTensor(random_array(9, seed=4)),
    }
    configure(fault)
    with transfer.Context(threads=2, pinned_bytes=2**20) as context, monkeypatch.context() as here:
        here.setattr(transfer, "write_async", context.write_async)  # through a ring of two chunks
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # no memory can be pinned
            saving.save_files(tensors, tmp_path / "a")
    on_host = {
        name: torch_stand_in.Tensor(each.array, each.dtype) for name, each in tensors.items()
    }
    assert (tmp_path / "a").read_bytes() == reference(on_host, None)


def test_headers_are_valid(saving: Any, tmp_path: Path) -> None:
    tensors = model(saving.torch)
    path = tmp_path / "a.safetensors"
    saving.save_files(tensors, path, metadata={"b": "c", "a": "d"})
    with path.open("rb") as file:
        header = read_header(file.fileno(), path.stat().st_size, "here")
    assert header.metadata == {"a": "d", "b": "c"}
    assert header.tensors.keys() == tensors.keys()
