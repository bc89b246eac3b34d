"""Checkpoints of torch.distributed: what is loaded is what was staged, as with PyTorch's own."""

from __future__ import annotations

import io
import json
import os
import pickle
import random
import re
import subprocess
import sys
import time
from collections import UserDict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from transfer.test_load_files import NO_TORCH
from tree import ROOT

torch = pytest.importorskip("torch", reason=NO_TORCH)
checkpoint = pytest.importorskip("torch.distributed.checkpoint", reason=NO_TORCH)

from safetensors import safe_open  # noqa: E402 - after the skip above
from torch.distributed.checkpoint.api import CheckpointException  # noqa: E402

from waywiser.transfer.dcp import (  # noqa: E402
    SafetensorsReader,
    SafetensorsWriter,
    SnapshotStager,
)
from waywiser.transfer.errors import (  # noqa: E402
    InvalidTransfer,
    TransferFileError,
    TransferFileNotFound,
    UnsupportedTransfer,
)
from waywiser.transfer.safetensors_header import SafetensorsError  # noqa: E402
from waywiser.transfer.torch import load_files  # noqa: E402

# That one process saves alone, and that a folder has a checkpoint already, are warnings of PyTorch.
pytestmark = pytest.mark.filterwarnings("ignore")

PAGE = ROOT / "docs" / "how-to" / "checkpoint-while-training.md"
PYTHON = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
FILE_OF_RANK = re.compile(r"\d{5}-[0-9a-f]{16}\.safetensors")


def trained() -> dict[str, Any]:
    """The state of a model and of its optimizer, with other values of every kind."""
    model = torch.nn.Sequential(torch.nn.Linear(300, 700), torch.nn.Linear(700, 3))
    adam = torch.optim.Adam(model.parameters())
    model(torch.randn(5, 300)).sum().backward()
    adam.step()
    weights = model.state_dict()
    return {
        "model": weights,
        "optimizer": adam.state_dict(),
        "tied": weights["0.weight"],
        "transposed": torch.randn(4, 6).t(),
        "part": weights["0.weight"][3:7, 5:],
        "scalar": torch.tensor(2.5, dtype=torch.bfloat16),
        "empty": torch.empty(0, 3),
        "complex": torch.randn(3, 4, dtype=torch.complex128),
        "conjugate": torch.randn(3, dtype=torch.complex64).conj(),
        "text": "step 7",
        "pair": (1, torch.arange(5)),
    }


def mapped(value: Any, of_tensor: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return of_tensor(value)
    if isinstance(value, dict):
        return {key: mapped(each, of_tensor) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(mapped(each, of_tensor) for each in value)
    return value


def require_equal(found: Any, expected: Any) -> int:
    """The number of tensors, which are equal."""
    if isinstance(expected, torch.Tensor):
        assert found.dtype == expected.dtype
        assert torch.equal(found, expected)
        return 1
    if isinstance(expected, dict):
        assert found.keys() == expected.keys()
        return sum(require_equal(found[key], each) for key, each in expected.items())
    if isinstance(expected, list | tuple):
        assert type(found) is type(expected) and len(found) == len(expected)
        return sum(require_equal(*pair) for pair in zip(found, expected, strict=True))
    assert found == expected
    return 0


def loaded(like: Any, reader: Any) -> Any:
    found = mapped(like, torch.zeros_like)
    checkpoint.load(found, storage_reader=reader)
    return found


def files_of(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir())


def test_what_is_loaded_is_what_pytorch_loads(tmp_path: Path) -> None:
    state = trained()
    kept = mapped(state, torch.clone)
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    stager = SnapshotStager()
    saves = [
        checkpoint.async_save(
            state, storage_writer=SafetensorsWriter(ours), async_stager=stager
        ).upload_completion,
        checkpoint.async_save(state, storage_writer=checkpoint.FileSystemWriter(theirs)),
    ]
    stager.synchronize_staging()
    mapped(state, lambda each: each.zero_())
    for each in saves:
        each.result()
    found = loaded(state, SafetensorsReader(ours))
    assert require_equal(found, kept) == 24
    assert require_equal(loaded(state, checkpoint.FileSystemReader(theirs)), found) == 24


def test_the_default_stager_and_writer_go_with_ours(tmp_path: Path) -> None:
    state = trained()
    del state["conjugate"]  # DefaultStager copies its memory as it is
    stager = SnapshotStager()
    checkpoint.async_save(
        state, storage_writer=checkpoint.FileSystemWriter(tmp_path / "a"), async_stager=stager
    ).upload_completion.result()
    checkpoint.async_save(state, storage_writer=SafetensorsWriter(tmp_path / "b")).result()
    require_equal(loaded(state, checkpoint.FileSystemReader(tmp_path / "a")), state)
    require_equal(loaded(state, SafetensorsReader(tmp_path / "b")), state)


def test_the_file_is_one_of_safetensors_with_tied_weights_once(tmp_path: Path) -> None:
    weight = torch.randn(30, 40)
    state = {"a": weight, "b": weight, "__metadata__": torch.ones(3)}
    checkpoint.save(state, storage_writer=SafetensorsWriter(tmp_path))
    name, metadata = files_of(tmp_path)[::-1]
    assert metadata == ".metadata" and FILE_OF_RANK.fullmatch(name)
    with safe_open(tmp_path / name, "pt") as file:
        assert sorted(file.keys()) == ["__metadata___", "a"]
        assert torch.equal(file.get_tensor("a"), weight)
    require_equal(loaded(state, SafetensorsReader(tmp_path)), state)


def test_targets_of_another_type_or_layout(tmp_path: Path) -> None:
    state = {"x": torch.arange(12.0).view(3, 4), "y": torch.arange(6.0), "z": torch.tensor([2j])}
    checkpoint.save(state, storage_writer=SafetensorsWriter(tmp_path))
    conjugate = torch.zeros(1, dtype=torch.complex64).conj()
    found = {"x": torch.zeros(4, 3).t(), "y": torch.zeros(6).double(), "z": conjugate}
    checkpoint.load(found, storage_reader=SafetensorsReader(tmp_path))
    assert torch.equal(found["x"], state["x"])
    assert torch.equal(found["y"], state["y"].double())
    assert torch.equal(found["z"], state["z"])


class TestMemory:
    def staged(self, stager: SnapshotStager, state: Any) -> Any:
        return stager.stage(state).result()

    def test_it_is_used_again_when_no_save_needs_it(self) -> None:
        stager = SnapshotStager()
        state = {"x": torch.ones(1000)}
        first = self.staged(stager, state)
        begin = first["x"].data_ptr()
        second = self.staged(stager, {"x": torch.full((1000,), 2.0)})
        assert second["x"].data_ptr() != begin, "the first is still referred to"
        assert (first["x"] == 1).all() and (second["x"] == 2).all()
        del first
        third = self.staged(stager, state)
        assert third["x"].data_ptr() == begin
        assert (second["x"] == 2).all() and (third["x"] == 1).all()

    def test_another_state_has_other_memory(self) -> None:
        stager = SnapshotStager()
        assert self.staged(stager, {"x": torch.ones(10)})["x"].shape == (10,)
        assert self.staged(stager, {"x": torch.ones(12)})["x"].shape == (12,)

    def test_tied_weights_are_tied(self) -> None:
        weight = torch.randn(5)
        found = self.staged(SnapshotStager(), {"a": weight, "b": [weight], "c": weight[1:]})
        assert found["a"] is found["b"][0]
        assert torch.equal(found["c"], weight[1:])

    def test_tied_conjugates_are_tied(self) -> None:
        weight = torch.randn(3, 4, dtype=torch.complex64).t()
        conjugate, negative = weight.conj(), weight.conj().imag
        state = {
            "a": conjugate, "b": conjugate, "plain": weight, "c": negative, "d": negative,
            "imag": weight.imag,
        }  # fmt: skip
        found = self.staged(SnapshotStager(), state)
        assert found["a"] is found["b"] and found["c"] is found["d"]
        assert len({each.data_ptr() for each in found.values()}) == 4
        assert require_equal(found, state) == 6

    def test_tensors_that_a_state_makes_when_it_is_read(self) -> None:
        class Made(UserDict[str, Any]):
            def __getitem__(self, key: str) -> Any:
                return torch.full((3,), complex(int(key), 1)).conj()

        made = Made.fromkeys(map(str, range(50)))
        found = self.staged(SnapshotStager(), {"made": made})
        assert require_equal(found["made"], dict(made.items())) == 50

    def test_what_is_no_tensor_is_copied_at_once(self) -> None:
        state = {"list": [1, {"n": 2}], "bytes": io.BytesIO(b"abc")}
        staged = SnapshotStager().stage(state)
        state["list"].append(3)
        state["list"][1]["n"] = 9
        assert staged.result()["list"] == [1, {"n": 2}]
        assert staged.result()["bytes"].read() == b"abc"

    def test_a_closed_stager_stages_nothing(self) -> None:
        stager = SnapshotStager()
        held = stager.stage({"x": torch.ones(3)})
        stager.close()
        assert (held.result()["x"] == 1).all()
        with pytest.raises(InvalidTransfer, match="the stager is closed"):
            stager.stage({})


class TestErrors:
    def test_a_state_that_cannot_be_staged(self) -> None:
        sparse = torch.eye(3).to_sparse()
        for tensor in (sparse, torch.empty(3, device="meta")):
            with pytest.raises(UnsupportedTransfer, match=r"tensor 'a\.0' is torch\."):
                SnapshotStager().stage({"a": [tensor]})

    def test_a_tensor_that_cannot_be_written(self, tmp_path: Path) -> None:
        plan = SimpleNamespace(
            items=[SimpleNamespace(index=SimpleNamespace(fqn="x", offset=None), type=None)]
        )
        planner = SimpleNamespace(resolve_data=lambda item: torch.eye(3).to_sparse())
        with pytest.raises(UnsupportedTransfer, match="not dense"):
            SafetensorsWriter(tmp_path).write_data(plan, planner)

    def test_ranks_that_save_alone(self, tmp_path: Path) -> None:
        with pytest.raises(UnsupportedTransfer, match="use_collectives=False"):
            checkpoint.save(
                {"x": torch.ones(3)},
                storage_writer=SafetensorsWriter(tmp_path),
                use_collectives=False,
            )

    def test_a_folder_that_cannot_be_made(self, tmp_path: Path) -> None:
        (tmp_path / "file").touch()
        with pytest.raises(CheckpointException, match="file") as raised:
            checkpoint.save(
                {"x": torch.ones(3)}, storage_writer=SafetensorsWriter(tmp_path / "file" / "x")
            )
        assert any(isinstance(each, TransferFileError) for each in causes(raised.value))

    def test_the_checkpoint_of_another_writer(self, tmp_path: Path) -> None:
        state = {"x": torch.ones(3)}
        checkpoint.save(state, storage_writer=checkpoint.FileSystemWriter(tmp_path))
        with pytest.raises(CheckpointException, match="not from SafetensorsWriter") as raised:
            loaded(state, SafetensorsReader(tmp_path))
        assert any(isinstance(each, SafetensorsError) for each in causes(raised.value))

    @pytest.mark.parametrize("value", [torch.ones(2000), "text"])
    def test_a_file_that_was_cut(self, tmp_path: Path, value: Any) -> None:
        checkpoint.save({"x": value}, storage_writer=SafetensorsWriter(tmp_path))
        file = tmp_path / next(name for name in files_of(tmp_path) if FILE_OF_RANK.match(name))
        os.truncate(file, file.stat().st_size - 1)
        with pytest.raises(CheckpointException, match=r"ended at byte|ends before byte"):
            loaded({"x": value}, SafetensorsReader(tmp_path))

    def test_a_target_of_another_shape(self, tmp_path: Path) -> None:
        checkpoint.save({"x": torch.ones(3, 4)}, storage_writer=SafetensorsWriter(tmp_path))
        reader = SafetensorsReader(tmp_path)
        metadata = reader.read_metadata()
        chunk = metadata.state_dict_metadata["x"].chunks[0]
        chunk.sizes = torch.Size([3, 5])
        reader.set_up_storage_reader(metadata, True)
        item = SimpleNamespace(
            type=None, storage_index=next(iter(metadata.storage_data)),
            storage_offsets=torch.Size([0, 0]), lengths=torch.Size([3, 4]),
        )  # fmt: skip
        planner = SimpleNamespace(resolve_tensor=lambda item: torch.zeros(3, 4))
        with pytest.raises(SafetensorsError, match="does not fit a target"):
            reader.read_data(SimpleNamespace(items=[item]), planner)


def causes(error: BaseException) -> list[BaseException]:
    """An error, and those of ranks that PyTorch has put into it."""
    failures = getattr(error, "failures", {})
    return [error, *(each[0] for each in failures.values())]


class TestReplaced:
    def test_the_new_one_takes_the_place_of_the_old_one(self, tmp_path: Path) -> None:
        for value in (1.0, 2.0):
            (tmp_path / unfinished_of_a_killed_save()).touch()
            (tmp_path / "notes.safetensors").touch()
            state = {"x": torch.full((3,), value)}
            checkpoint.save(state, storage_writer=SafetensorsWriter(tmp_path))
            require_equal(loaded(state, SafetensorsReader(tmp_path)), state)
            metadata, own, other = files_of(tmp_path)
            assert (metadata, other) == (".metadata", "notes.safetensors")
            assert FILE_OF_RANK.fullmatch(own)

    def test_a_save_that_fails_leaves_the_old_one(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        old = {"x": torch.ones(3)}
        checkpoint.save(old, storage_writer=SafetensorsWriter(tmp_path))

        class Failing(SafetensorsWriter):
            def finish(self, metadata: Any, results: Any) -> None:
                raise RuntimeError("the power failed")

        with pytest.raises(CheckpointException, match="the power failed"):
            checkpoint.save({"x": torch.zeros(3)}, storage_writer=Failing(tmp_path))
        require_equal(loaded(old, SafetensorsReader(tmp_path)), old)

    def test_of_saves_that_overlap_the_last_to_end_counts(self, tmp_path: Path) -> None:
        states = [{"x": torch.full((3,), float(value))} for value in range(4)]

        class Overlapped(SafetensorsWriter):
            """Saves the next state before it ends."""

            def finish(self, metadata: Any, results: Any) -> None:
                state = left.pop()
                writer = Overlapped if left else SafetensorsWriter
                checkpoint.save(state, storage_writer=writer(tmp_path))
                require_equal(loaded(state, SafetensorsReader(tmp_path)), state)
                super().finish(metadata, results)

        checkpoint.save(states[0], storage_writer=SafetensorsWriter(tmp_path))
        left = states[2:]
        checkpoint.save(states[1], storage_writer=Overlapped(tmp_path))
        require_equal(loaded(states[1], SafetensorsReader(tmp_path)), states[1])
        assert len(files_of(tmp_path)) == 2

    def test_files_that_no_metadata_names_stay(self, tmp_path: Path) -> None:
        other = f"00000-{'0' * 16}.safetensors"
        (tmp_path / other).touch()
        for value in (1.0, 2.0):
            state = {"x": torch.full((3,), value)}
            checkpoint.save(state, storage_writer=SafetensorsWriter(tmp_path))
        assert len(files_of(tmp_path)) == 3 and (tmp_path / other).exists()

    def test_a_file_of_a_rank_that_is_missing(self, tmp_path: Path) -> None:
        old = {"x": torch.ones(3)}
        checkpoint.save(old, storage_writer=SafetensorsWriter(tmp_path))
        before = files_of(tmp_path)

        class Losing(SafetensorsWriter):
            def finish(self, metadata: Any, results: Any) -> None:
                for each in {*files_of(tmp_path)} - {*before}:
                    (tmp_path / each).unlink()
                super().finish(metadata, results)

        with pytest.raises(CheckpointException, match="No such file") as raised:
            checkpoint.save({"x": torch.zeros(3)}, storage_writer=Losing(tmp_path))
        assert any(isinstance(each, TransferFileNotFound) for each in causes(raised.value))
        assert files_of(tmp_path) == before
        require_equal(loaded(old, SafetensorsReader(tmp_path)), old)

    def test_a_pickle_in_the_folder_is_not_run(self, tmp_path: Path) -> None:
        class Harmful:
            def __reduce__(self) -> Any:
                return os.mkdir, (str(tmp_path / "ran"),)

        (tmp_path / ".metadata").write_bytes(pickle.dumps(Harmful()))
        state = {"x": torch.ones(3)}
        checkpoint.save(state, storage_writer=SafetensorsWriter(tmp_path))
        assert not (tmp_path / "ran").exists()
        require_equal(loaded(state, SafetensorsReader(tmp_path)), state)


def unfinished_of_a_killed_save() -> str:
    """A name of a process that has ended."""
    code = """if True:
        from waywiser.files.unfinished import unfinished_name
        print(unfinished_name(".00003-0123456789abcdef.safetensors.saving-"), end="")
    """
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout


SAVES = """
import sys, warnings
import torch
from torch.distributed import checkpoint
from waywiser.transfer.dcp import SafetensorsWriter
warnings.simplefilter("ignore")
number = int(sys.argv[2])
while True:
    number += 1
    state = {f"t{n}": torch.full((100_000,), number) for n in range(20)}
    checkpoint.save(state, storage_writer=SafetensorsWriter(sys.argv[1]))
    print(number, flush=True)
"""


def test_a_killed_save_leaves_a_whole_checkpoint(tmp_path: Path) -> None:
    folder, saved, times = tmp_path / "new" / "checkpoint", 0, random.Random(5)
    for _ in range(3):
        process = subprocess.Popen(
            [sys.executable, "-c", SAVES, folder, str(saved)],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        first = process.stdout.readline()
        time.sleep(times.uniform(0, 0.1))
        process.kill()
        reported = int([first, *process.stdout.read().splitlines()][-1])
        process.wait()
        found = loaded({f"t{n}": torch.zeros(100_000, dtype=torch.int64) for n in range(20)},
                       SafetensorsReader(folder))  # fmt: skip
        values = {int(value) for each in found.values() for value in each.unique()}
        assert len(values) == 1 and values <= {reported, reported + 1}
        (saved,) = values


def test_the_examples_of_the_page_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From a page of their own: what one of them uses is set before, in it or here."""

    class Model(torch.nn.Linear):
        def forward(self, batch: Any) -> Any:
            return super().forward(batch).sum()

    monkeypatch.chdir(tmp_path)
    (tmp_path / "checkpoints").mkdir()
    model = Model(3, 2)
    names: dict[str, Any] = {
        "model": model,
        "optimizer": torch.optim.Adam(model.parameters()),
        "batches": [torch.ones(3)] * 1001,
    }
    for block in PYTHON.findall(PAGE.read_text()):
        # without a GPU there is no pinned memory
        names["state"] = {"model": model.state_dict()}
        exec(block.replace(", pinned=True", ""), names)
    names["saved"].result()
    assert sorted(load_files("checkpoints/step-1000", "cpu")) == ["bias", "weight"]
    assert files_of(Path("checkpoints/1000"))[0] == ".metadata"


def test_ranks_load_with_other_shards(tmp_path: Path) -> None:
    environment = {**os.environ, "GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"}
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
    ranks = [
        subprocess.Popen(
            [sys.executable, Path(__file__).with_name("dcp_ranks.py"), tmp_path, str(rank), "2"],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    answers = [each.communicate() for each in ranks]
    assert [each.returncode for each in ranks] == [0, 0], answers
    metadata, *files = answers[0][0].split()
    assert metadata == ".metadata"
    assert [name.partition("-")[0] for name in files] == ["00000", "00001"]


def test_the_benchmark_compares_the_methods(tmp_path: Path) -> None:
    found = tmp_path / "found.json"
    done = subprocess.run(
        [
            sys.executable, ROOT / "benchmarks" / "checkpoint.py", "--device", "cpu", "--ranks",
            "2", "--mib", "1", "--rounds", "1", "--folder", tmp_path, "--json", found,
        ],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    measured = json.loads(found.read_text())
    assert list(measured["methods"]) == [
        "FileSystemWriter", "DefaultStager", "SnapshotStager", "waywiser",
    ]  # fmt: skip
    for name, each in measured["methods"].items():
        assert each["equal tensors"] == 2 * 4 * 24, name  # a weight, two moments and a step
        assert each["bytes on disk"] > measured["bytes of a rank"]
        (save,) = each["saves"]
        assert save["to disk"] > 0
        assert f"| {name} | " in done.stdout
    assert os.listdir(tmp_path) == ["found.json"]
