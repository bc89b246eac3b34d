"""Which options `scripts/build` gives to CMake: a script in its place notes them."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tree import ROOT

CMAKE = """\
#!/bin/sh
echo "$*" >>calls
[ "$1" = --build ] || mkdir -p build/dev
"""

JOINED = "-DCMAKE_UNITY_BUILD=ON"


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    for part in ("scripts", ".venv/bin"):
        (tmp_path / part).mkdir(parents=True)
    shutil.copy2(ROOT / "scripts" / "build", tmp_path / "scripts")
    (tmp_path / "CMakePresets.json").touch()
    cmake = tmp_path / ".venv" / "bin" / "cmake"
    cmake.write_text(CMAKE)
    cmake.chmod(0o755)
    return tmp_path


def build(clone: Path, *words: str, cuda: str = "OFF") -> list[str]:
    """The new calls of CMake."""
    calls = clone / "calls"
    calls.write_text("")
    environment = {name: value for name, value in os.environ.items() if name != "CI"}
    subprocess.run(
        [clone / "scripts" / "build", *words],
        env={**environment, "WAYWISER_CUDA": cuda},
        check=True,
    )
    return calls.read_text().splitlines()


def test_a_first_survey_compiles_several_files_as_one_and_later_builds_keep_it(
    clone: Path,
) -> None:
    configured, built = build(clone, "dev", "product")
    assert JOINED in configured.split()
    assert built.split()[-2:] == ["--target", "product"]
    assert len(build(clone, "dev")) == 1  # nothing is configured, and so compiled, again
    again, _ = build(clone, "dev", cuda="ON")
    assert JOINED in again.split()


def test_a_folder_that_is_built_as_a_whole_first_compiles_each_file_alone(clone: Path) -> None:
    configured, _ = build(clone, "dev")
    assert JOINED not in configured
    assert len(build(clone, "dev", "product")) == 1
    again, _ = build(clone, "dev", "product", cuda="ON")
    assert JOINED not in again
