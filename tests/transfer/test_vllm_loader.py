"""The load format of vLLM, in vLLM itself where it is installed."""

from __future__ import annotations

import ast
import importlib.util
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tree import ROOT

GROUP = "vllm.general_plugins"
POINTS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]


def test_the_entry_point_names_a_function() -> None:
    (target,) = POINTS[GROUP].values()
    module, name = target.split(":")
    source = (ROOT / "python" / f"{module.replace('.', '/')}.py").read_text()
    (found,) = (each for each in ast.parse(source).body if getattr(each, "name", "") == name)
    assert isinstance(found, ast.FunctionDef) and not found.args.args


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
