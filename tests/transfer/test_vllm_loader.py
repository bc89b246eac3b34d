"""The load format of vLLM, over a stand-in for its loader, and in vLLM where it is installed."""

from __future__ import annotations

import dataclasses
import importlib.util
import inspect
import os
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import EntryPoint
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from transfer import torch_stand_in
from transfer.test_load_files import load_module
from tree import ROOT

GROUP = "vllm.general_plugins"
POINTS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]


@dataclass(frozen=True)
class LoadConfig:
    load_format: str = "waywiser"
    safetensors_load_strategy: str | None = None


class DefaultModelLoader:
    """What the load format needs of that of vLLM 0.33, with its signatures."""

    @dataclass
    class Source:
        model_or_path: str
        revision: str | None
        subfolder: str | None = None
        prefix: str = ""
        fall_back_to_pt: bool = True
        allow_patterns_overrides: list[str] | None = None
        is_unused_weight: Callable[[str], bool] | None = None

    counter_before_loading_weights = 0.0

    def __init__(self, load_config: Any) -> None:
        self.load_config = load_config

    def _prepare_weights(
        self,
        model_name_or_path: str,
        subfolder: str | None,
        revision: str | None,
        fall_back_to_pt: bool,
        allow_patterns_overrides: list[str] | None,
    ) -> tuple[str, list[str], bool, str]:
        assert (subfolder, revision, fall_back_to_pt) == ("part", "main", True)
        folder = Path(model_name_or_path)
        (pattern,) = allow_patterns_overrides or ["*.safetensors"]
        files = sorted(map(str, folder.glob(pattern)), reverse=True)
        return str(folder), files, pattern == "*.safetensors", "model.safetensors.index.json"

    def _get_weights_iterator(self, source: Any) -> Iterator[tuple[str, Any]]:
        files = self._prepare_weights(
            source.model_or_path,
            source.subfolder,
            source.revision,
            source.fall_back_to_pt,
            source.allow_patterns_overrides,
        )[1]
        return ((f"{source.prefix}of vLLM", file) for file in files)


class TestRegistered:
    @pytest.fixture
    def loader(self, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
        """The class that the function of the entry point registers."""
        registered: dict[str, Any] = {}

        def register_model_loader(load_format: str) -> Any:
            return lambda made: registered.setdefault(load_format, made)

        vllm, executor, loaders = (
            ModuleType(f"vllm{each}")
            for each in ("", ".model_executor", ".model_executor.model_loader")
        )
        vars(executor)["model_loader"] = loaders
        vars(loaders).update(
            DefaultModelLoader=DefaultModelLoader, register_model_loader=register_model_loader
        )
        load_module(monkeypatch, torch_stand_in)
        with pytest.MonkeyPatch.context() as while_it_registers:
            for each in (vllm, executor, loaders):
                while_it_registers.setitem(sys.modules, each.__name__, each)
            while_it_registers.setitem(sys.modules, "torch", torch_stand_in)
            (point,) = (EntryPoint(name, to, GROUP) for name, to in POINTS[GROUP].items())
            point.load()()
        assert list(registered) == ["waywiser"]
        made: Callable[..., Any] = registered["waywiser"]
        return made

    @pytest.fixture
    def source(self, tmp_path: Path) -> DefaultModelLoader.Source:
        """Two files, and one of another format."""
        for number in range(2):
            save_file({f"w{number}": np.full(5, number)}, tmp_path / f"{number}.safetensors")
        (tmp_path / "0.bin").touch()
        return DefaultModelLoader.Source(str(tmp_path), "main", "part", prefix="model.")

    def test_it_loads_all_files(
        self, loader: Callable[..., Any], source: DefaultModelLoader.Source
    ) -> None:
        made = loader(LoadConfig())
        assert isinstance(made, DefaultModelLoader)
        assert made.load_config.load_format == "safetensors"
        found = [(name, each.array.tolist()) for name, each in made._get_weights_iterator(source)]
        assert found == [("model.w0", [0] * 5), ("model.w1", [1] * 5)]
        assert made.counter_before_loading_weights > 0

    def test_files_of_another_format_are_loaded_by_vllm(
        self, loader: Callable[..., Any], source: DefaultModelLoader.Source, tmp_path: Path
    ) -> None:
        source.allow_patterns_overrides = ["*.bin"]
        found = list(loader(LoadConfig())._get_weights_iterator(source))
        assert found == [("model.of vLLM", str(tmp_path / "0.bin"))]

    def test_torchao_is_loaded_by_vllm(
        self, loader: Callable[..., Any], source: DefaultModelLoader.Source
    ) -> None:
        config = LoadConfig(safetensors_load_strategy="torchao")
        found = [name for name, _ in loader(config)._get_weights_iterator(source)]
        assert found == ["model.of vLLM"] * 2


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("vllm") is None, reason="vLLM is not installed")
def test_the_loader_of_vllm_has_the_same_signatures() -> None:
    from vllm.model_executor.model_loader import DefaultModelLoader as Real

    for name in ("__init__", "_prepare_weights", "_get_weights_iterator"):
        own, real = (inspect.signature(getattr(each, name)) for each in (DefaultModelLoader, Real))
        assert list(own.parameters) == list(real.parameters), name
    fields = [[each.name for each in dataclasses.fields(of.Source)]
              for of in (DefaultModelLoader, Real)]  # fmt: skip
    assert fields[0] == fields[1]


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("vllm") is None, reason="vLLM is not installed")
def test_a_model_of_vllm_has_the_parameters_of_its_own_loader(tmp_path: Path) -> None:
    plugins, model = tmp_path / "plugins", tmp_path / "model"
    about = plugins / "waywiser_plugins-0.dist-info"
    about.mkdir(parents=True)
    model.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: waywiser-plugins\nVersion: 0\n")
    (about / "entry_points.txt").write_text(
        f"[{GROUP}]\n"
        + "".join(f"{name} = {target}\n" for name, target in POINTS[GROUP].items())
        + "[vllm.platform_plugins]\nhost = on_host:platform\n"
    )
    (plugins / "on_host.py").write_text('platform = lambda: "vllm.platforms.cpu.CpuPlatform"\n')
    done = subprocess.run(
        [sys.executable, Path(__file__).with_name("vllm_model.py"), model],
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(plugins), *filter(None, sys.path)]),
            "GLOO_SOCKET_IFNAME": "lo",
            "HF_HUB_OFFLINE": "1",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith("43 tensors are equal\n")
