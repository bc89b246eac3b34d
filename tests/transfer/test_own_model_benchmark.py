"""The benchmark of loaders on a model of the user."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from script_module import script_module

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def own_model() -> ModuleType:
    return script_module(BENCHMARKS / "own_model.py")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A model of two files."""
    numbers = np.arange(4096, dtype="f4")
    save_file({"tall": numbers.reshape(128, 32), "norm": numbers[:7]}, tmp_path / "a.safetensors")
    save_file({"wide": numbers.reshape(32, 128)}, tmp_path / "b.safetensors")
    names = {"tall": "a.safetensors", "norm": "a.safetensors", "wide": "b.safetensors"}
    index = {"metadata": {}, "weight_map": names}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    return tmp_path


def requested(**changed: Any) -> argparse.Namespace:
    usual = {"model": None, "generate": None, "device": "cpu", "rounds": 1, "within": 60.0}
    return argparse.Namespace(**{**usual, "folder": "", "json": None, **changed})


def test_slices_are_those_of_one_of_four_ranks(own_model: ModuleType, folder: Path) -> None:
    model = own_model.Model(folder)
    assert model.slices(1) == {
        "tall": (slice(32, 64), slice(None)),
        "wide": (slice(None), slice(32, 64)),
    }
    assert model.nbytes({}) == 4 * (4096 + 4096 + 7)
    assert model.nbytes(model.slices(3)) == 4 * (1024 + 1024 + 7)


def test_all_loaders_are_compared(own_model: ModuleType, folder: Path) -> None:
    found = folder / "found.json"
    assert own_model.run(requested(model=folder, json=found, rounds=2)) == 0
    result = json.loads(found.read_text())
    assert (result["files"], result["tensors"]) == (2, 3)
    for name, each in result["loaders"].items():
        assert "missing" not in each, name
        assert all(len(rates) == 2 for rates in each["rates"].values()) or "not cold" in each
        assert min(each["rates"]["slices, warm"]) > 0


def test_the_page_cache_is_seen(own_model: ModuleType, folder: Path) -> None:
    model = own_model.Model(folder)
    model.read()
    assert model.cached() == 1


def test_a_loader_that_changes_a_tensor_is_not_measured(
    own_model: ModuleType, folder: Path
) -> None:
    model = own_model.Model(folder)

    class Wrong(own_model.Numpy):
        def loaders(self) -> Any:
            for name, package, whole, sliced in super().loaders():

                def changed(load: Any = whole) -> Any:
                    found = load()
                    found["wide"][3, 4] += 1
                    return found

                yield name, package, changed, sliced
            yield "other", "no-such-package", whole, sliced

    found = own_model.measure(model, Wrong(model, "cpu"), 1, float("inf"))
    *changed, other = found.values()
    assert {each["missing"] for each in changed} == {
        "ValueError: tensor 'wide' is not that of the file"
    }
    assert other["missing"] == "not installed: python -m pip install no-such-package"
    assert not any(rates for each in found.values() for rates in each["rates"].values())


def test_a_generated_model_is_removed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(BENCHMARKS)
    loading = script_module(BENCHMARKS / "loading.py")
    command = ["loading.py", "--generate", "0.002", "--folder", str(tmp_path), "--rounds", "1"]
    monkeypatch.setattr(sys, "argv", command)
    assert loading.main() == 0
    shown = capsys.readouterr().out
    assert "| loader | whole, cold | whole, warm | slices, cold | slices, warm |" in shown
    assert "| waywiser load_files" in shown and "| safetensors" in shown
    assert list(tmp_path.iterdir()) == []


def test_what_is_no_model_is_named(
    own_model: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert own_model.run(requested(model=tmp_path)) == 2
    error = capsys.readouterr().err
    assert error.startswith("loading.py: ") and str(tmp_path) in error and error.count("\n") == 1
