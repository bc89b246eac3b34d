"""Which files of a checkpoint are opened, and which tensors are taken from which."""

from __future__ import annotations

import difflib
import errno
import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from transfer.safetensors_files import write_bytes
from waywiser.transfer.checkpoint import (
    INDEX_NAME,
    MATCHED_LENGTH,
    MATCHED_NAMES,
    TensorNotFoundError,
    open_checkpoint,
)
from waywiser.transfer.safetensors_header import SafetensorsError

SHARDS = ("model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors")


def write(path: Path, *names: str) -> Path:
    write_bytes(path, {name: ("U8", [3], name.encode().ljust(3)[:3]) for name in names})
    return path


def write_index(folder: Path, listed: object, name: str = INDEX_NAME) -> Path:
    index = folder / name
    index.write_text(json.dumps({"metadata": {"total_size": 1.5e3}, "weight_map": listed}))
    return index


def sharded(folder: Path) -> Path:
    write(folder / SHARDS[0], "embed", "layer.0", "layer.1")
    write(folder / SHARDS[1], "layer.2", "head")
    names = {"head": 1, "embed": 0, "layer.0": 0, "layer.1": 0, "layer.2": 1}
    return write_index(folder, {name: SHARDS[shard] for name, shard in names.items()})


def selected(
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    keys: Iterable[str] | None = None,
) -> dict[str, list[str]]:
    """The names of the tensors that are selected from each file."""
    with open_checkpoint(paths, keys) as selections:
        for file, _ in selections:
            assert not os.get_inheritable(file.descriptor)
            assert os.get_blocking(file.descriptor)
        return {file.path.name: [entry.name for entry in entries] for file, entries in selections}


def error_text(
    kind: type[Exception],
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    keys: Iterable[str] | None = None,
) -> str:
    before = os.listdir("/proc/self/fd")
    with pytest.raises(kind) as caught:
        selected(paths, keys)
    assert len(os.listdir("/proc/self/fd")) == len(before), "no descriptor is left open"
    assert str(caught.value).isprintable()
    return str(caught.value)


WHOLE = {SHARDS[0]: ["embed", "layer.0", "layer.1"], SHARDS[1]: ["layer.2", "head"]}


def test_an_index_its_folder_and_its_shards_are_the_same_checkpoint(tmp_path: Path) -> None:
    index = sharded(tmp_path)
    assert selected(index) == WHOLE
    assert selected(str(index)) == WHOLE
    assert selected(tmp_path) == WHOLE
    assert selected([tmp_path / name for name in SHARDS]) == WHOLE


def test_a_folder_with_one_file_needs_no_index(tmp_path: Path) -> None:
    write(tmp_path / "model.safetensors", "a")
    (tmp_path / "config.json").write_text("{}")
    assert selected(tmp_path) == {"model.safetensors": ["a"]}


def test_the_usual_index_is_taken_among_several(tmp_path: Path) -> None:
    sharded(tmp_path)
    write_index(tmp_path, {"a": "other"}, "model.fp32.safetensors.index.json")
    assert selected(tmp_path) == WHOLE


def test_a_folder_that_does_not_say_what_to_load_is_an_error(tmp_path: Path) -> None:
    assert "the folder has no index and 0 safetensors files" in error_text(
        SafetensorsError, tmp_path
    )
    for name in SHARDS:
        write(tmp_path / name, name)
    assert "the folder has no index and 2 safetensors files" in error_text(
        SafetensorsError, tmp_path
    )
    for name in ("a.safetensors.index.json", "b.safetensors.index.json"):
        write_index(tmp_path, {}, name)
    assert "the folder has 2 indices" in error_text(SafetensorsError, tmp_path)


@pytest.mark.parametrize("stem", ["model", "diffusion_pytorch_model", "model.fp16"])
def test_a_single_file_beside_the_index_of_its_shards_is_an_error(
    tmp_path: Path, stem: str
) -> None:
    sharded(tmp_path)
    index = (tmp_path / INDEX_NAME).rename(tmp_path / f"{stem}.safetensors.index.json")
    single = write(tmp_path / f"{stem}.safetensors", "embed")
    text = error_text(SafetensorsError, tmp_path)
    assert f"has {single.name} and {index.name}, which lists other files" in text
    assert f"pass {str(single)!r} or {str(index)!r} as paths" in text
    assert "has " in error_text(SafetensorsError, [tmp_path], ["embed"])
    assert selected(index) == WHOLE
    assert selected(single) == {single.name: ["embed"]}
    single.unlink()
    single.symlink_to("nowhere")
    assert "one of the two is older" in error_text(SafetensorsError, tmp_path)


def test_other_files_beside_shards_change_nothing(tmp_path: Path) -> None:
    sharded(tmp_path)
    for name in ("consolidated.safetensors", "adapter_model.safetensors", ".model.safetensors"):
        write(tmp_path / name, "embed", "other")
    assert selected(tmp_path) == WHOLE


def test_an_index_may_list_the_file_of_its_own_name(tmp_path: Path) -> None:
    write(tmp_path / "model.safetensors", "a", "b")
    write_index(tmp_path, {"a": "model.safetensors", "b": "model.safetensors"})
    assert selected(tmp_path) == {"model.safetensors": ["a", "b"]}


def test_one_of_several_shards_without_an_index_is_no_checkpoint(tmp_path: Path) -> None:
    path = write(tmp_path / SHARDS[0], "embed")
    text = error_text(SafetensorsError, tmp_path)
    assert f"no index, and {SHARDS[0]} is one of 2 shards" in text and repr(str(path)) in text
    assert selected(path) == {SHARDS[0]: ["embed"]}
    path.rename(tmp_path / "model-00001-of-00001.safetensors")
    assert list(selected(tmp_path).values()) == [["embed"]]


def test_hidden_files_are_of_saves_that_have_not_ended(tmp_path: Path) -> None:
    write(tmp_path / "x.safetensors", "a")
    write(tmp_path / ".saving-1-y.safetensors", "b")
    (tmp_path / f".saving-1-{INDEX_NAME}").write_text("{")
    assert selected(tmp_path) == {"x.safetensors": ["a"]}


def test_keys_select_tensors_in_the_order_of_the_file(tmp_path: Path) -> None:
    path = write(tmp_path / "x.safetensors", "b", "a", "d", "c")
    assert selected(path, ["c", "a", "b", "a"]) == {"x.safetensors": ["b", "a", "c"]}
    assert selected(path, (key for key in ["d"])) == {"x.safetensors": ["d"]}
    assert selected(path, []) == {"x.safetensors": []}


def test_only_shards_that_hold_a_key_are_opened(tmp_path: Path) -> None:
    index = sharded(tmp_path)
    (tmp_path / SHARDS[1]).unlink()
    assert selected(index, ["layer.1"]) == {SHARDS[0]: ["layer.1"]}
    assert SHARDS[1] in error_text(FileNotFoundError, index, ["layer.1", "head"])


def test_a_missing_key_is_reported_with_names_like_it(tmp_path: Path) -> None:
    index = sharded(tmp_path)
    message = error_text(TensorNotFoundError, index, ["layer.9", "embed", "lm_head"])
    assert "there is no tensor 'layer.9' and 1 more in" in message
    assert "did you mean" in message
    assert "'layer.0'" in message
    message = error_text(TensorNotFoundError, index, ["x" * 10_000])
    assert "check keys" in message
    assert len(message) < 400


def test_the_search_for_like_names_is_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    searched: list[str] = []

    def record(key: str, names: list[str], n: int) -> list[str]:
        searched.extend(names)
        return []

    monkeypatch.setattr(difflib, "get_close_matches", record)
    tensors = {f"{number:05}": ("U8", [0], b"") for number in range(MATCHED_NAMES + 10)}
    tensors["x" * (MATCHED_LENGTH + 1)] = ("U8", [0], b"")
    write_bytes(tmp_path / "x.safetensors", tensors)
    error_text(TensorNotFoundError, tmp_path / "x.safetensors", ["x" * MATCHED_LENGTH])
    assert len(searched) == MATCHED_NAMES
    assert max(map(len, searched)) <= MATCHED_LENGTH
    searched.clear()
    error_text(TensorNotFoundError, tmp_path / "x.safetensors", ["x" * (MATCHED_LENGTH + 2)])
    assert searched == []


@pytest.mark.parametrize("keys", ["embed", [1], [b"embed"], [None]])
def test_keys_that_are_no_names_are_errors(tmp_path: Path, keys: object) -> None:
    path = write(tmp_path / "x.safetensors", "embed")
    with pytest.raises(TypeError, match="keys"):
        selected(path, keys)  # type: ignore[arg-type]


def test_a_tensor_that_the_index_lists_in_vain_is_reported(tmp_path: Path) -> None:
    index = sharded(tmp_path)
    write(tmp_path / SHARDS[1], "layer.2")
    message = error_text(TensorNotFoundError, index)
    assert f"it has no tensor 'head', which {index} lists there" in message
    assert selected(index, ["layer.2"]) == {SHARDS[1]: ["layer.2"]}


def test_a_tensor_that_the_index_does_not_list_is_loaded(tmp_path: Path) -> None:
    index = sharded(tmp_path)
    write(tmp_path / SHARDS[1], "layer.2", "head", "more")
    assert selected(index)[SHARDS[1]] == ["layer.2", "head", "more"]
    assert selected(index, ["more"]) == {SHARDS[0]: [], SHARDS[1]: ["more"]}


def test_the_index_decides_between_two_copies(tmp_path: Path) -> None:
    index = sharded(tmp_path)
    write(tmp_path / SHARDS[1], "layer.2", "head", "embed")
    assert selected(index) == WHOLE


def test_a_tensor_of_two_files_is_an_error_if_no_index_decides(tmp_path: Path) -> None:
    index = sharded(tmp_path)
    write(tmp_path / SHARDS[0], "embed", "layer.0", "layer.1", "more")
    write(tmp_path / SHARDS[1], "layer.2", "head", "more")
    assert f"tensor 'more' is in {tmp_path / SHARDS[0]} too" in error_text(SafetensorsError, index)
    one = write(tmp_path / "one.safetensors", "a")
    assert "tensor 'a' is in" in error_text(SafetensorsError, [one, one])


@pytest.mark.parametrize(
    "name",
    ["", ".", "..", "../x", "/etc/passwd", "a/b", "a\\b", "a\0b", 1, None, ["a"], {"a": "b"}],
)
def test_an_index_leads_nowhere_else(tmp_path: Path, name: object) -> None:
    index = write_index(tmp_path, {"a": name})
    assert "weight_map puts tensor 'a' in something" in error_text(SafetensorsError, index)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "does not start with '{'"),
        ("{}", "it has no object weight_map"),
        ('{"weight_map": []}', "it has no object weight_map"),
        ('{"weight_map": {"a": "x", "a": "y"}}', "'a' occurs twice"),
        ('{"weight_map": {}, "metadata": NaN}', "NaN"),
        ('{"weight_map":' * 100_000, "nested too deeply"),
        ('{"weight_map": {"a": "x"}} trailing', "not JSON"),
        ('{"metadata": {"n": ' + "1" * 5000 + "}}", "a number of 5000 digits"),
        ('{"metadata": {"n": -12, "m": -1.5}}', "it has no object weight_map"),
    ],
)
def test_an_index_is_hostile_input_too(tmp_path: Path, text: str, words: str) -> None:
    index = tmp_path / INDEX_NAME
    index.write_text(text)
    message = error_text(SafetensorsError, index)
    assert f"{index}: the index is not valid: " in message
    assert words in message


def test_an_index_that_is_too_large_is_an_error_unread(tmp_path: Path) -> None:
    index = tmp_path / INDEX_NAME
    index.touch()
    os.truncate(index, 10**12)
    assert "1,000,000,000,000 bytes, more than 100,000,000" in error_text(SafetensorsError, index)


def test_what_is_no_regular_file_is_an_error_at_once(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo.safetensors"
    os.mkfifo(fifo)
    assert "not a regular file" in error_text(SafetensorsError, fifo)
    os.mkfifo(tmp_path / INDEX_NAME)
    assert "not a regular file" in error_text(SafetensorsError, tmp_path / INDEX_NAME)
    assert "not a regular file" in error_text(SafetensorsError, "/dev/zero")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    assert "nowhere.safetensors" in error_text(FileNotFoundError, tmp_path / "nowhere.safetensors")
    assert "nowhere.json" in error_text(FileNotFoundError, tmp_path / "nowhere.json")
    assert SHARDS[0] in error_text(FileNotFoundError, write_index(tmp_path, {"a": SHARDS[0]}))


def test_a_file_that_cannot_be_opened_has_its_number_and_what_to_do(tmp_path: Path) -> None:
    missing = tmp_path / "nowhere.safetensors"
    with pytest.raises(FileNotFoundError) as caught, open_checkpoint(missing):
        pass
    assert caught.value.errno == errno.ENOENT
    assert str(caught.value) == f"{missing}: No such file or directory (check the path)"
    index = write_index(tmp_path, {"a": SHARDS[0]})
    assert f"download all files that {index} lists" in error_text(FileNotFoundError, index)
    assert "no folder" in error_text(OSError, index / "model.safetensors")
    assert "null byte" in error_text(OSError, "model\0.safetensors")


def test_no_path_is_an_error() -> None:
    assert "no file is named" in error_text(SafetensorsError, [])


@pytest.mark.parametrize("paths", [3, None, [3], object()])
def test_something_that_is_no_path_is_named(paths: Any) -> None:
    assert "paths is" in error_text(TypeError, paths)


@pytest.mark.parametrize("keys", ["a", 3, [3], [["a"]]])
def test_keys_that_are_no_names_are_named(tmp_path: Path, keys: Any) -> None:
    assert "pass a list of the names" in error_text(TypeError, tmp_path, keys)


def test_a_link_to_a_shard_is_followed(tmp_path: Path) -> None:
    (tmp_path / "blobs").mkdir()
    blob = write(tmp_path / "blobs" / "abc123", "a")
    (tmp_path / "snapshot").mkdir()
    (tmp_path / "snapshot" / SHARDS[0]).symlink_to(blob)
    index = write_index(tmp_path / "snapshot", {"a": SHARDS[0]})
    assert selected(index) == {SHARDS[0]: ["a"]}


def test_a_damaged_shard_is_named(tmp_path: Path) -> None:
    index = sharded(tmp_path)
    os.truncate(tmp_path / SHARDS[1], os.path.getsize(tmp_path / SHARDS[1]) - 1)
    message = error_text(SafetensorsError, index)
    assert message.startswith(f"{tmp_path / SHARDS[1]}: its header is not valid: its tensors have")
