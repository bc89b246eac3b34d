"""Programs that see other file systems: mounts of their own, or what network mounts answer."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import pytest

SOURCE = Path(__file__).with_name("other_file_system.c")


def run_program(
    program: str,
    *arguments: object,
    prefix: tuple[str, ...] = (),
    more: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    """What a program in Python does with these arguments."""
    paths = [*sys.path, str(Path(__file__).resolve().parents[1])]
    return subprocess.run(
        [*prefix, sys.executable, "-c", program, *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths)), **(more or {})},
        capture_output=True,
        text=True,
        check=False,
    )


def output_of(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@cache
def _mounting() -> tuple[str, ...]:
    """The command whose program may mount; empty if there is none."""
    ways: list[tuple[str, ...]] = [("unshare", "--user", "--map-root-user", "--mount")]
    if os.geteuid() == 0:
        ways.insert(0, ("unshare", "--mount"))
    for way in ways if shutil.which("unshare") else ():
        trial = [*way, "sh", "-c", "mount -t tmpfs none /mnt"]
        if subprocess.run(trial, capture_output=True, check=False).returncode == 0:
            return way
    return ()


def mounted(commands: str) -> tuple[str, ...]:
    """A prefix for `run_program`: these commands of a shell mount first, for the program alone.
    Skips the test if that is not possible here."""
    way = _mounting()
    if not way:
        pytest.skip("mounts need namespaces (unshare), which are not allowed here")
    trial = subprocess.run([*way, "sh", "-ec", commands], capture_output=True, text=True)
    if trial.returncode:
        pytest.skip(f"it cannot be mounted here: {trial.stderr.strip()}")
    return (*way, "sh", "-ec", f'{commands}\nexec "$@"', "sh")


@pytest.fixture(scope="session")
def preloaded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library that answers as other file systems do."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no compiler of C here")
    library = tmp_path_factory.mktemp("preloaded") / "other.so"
    command = [compiler, "-shared", "-fPIC", "-o", str(library), str(SOURCE), "-ldl"]
    subprocess.run(command, check=True)
    return library


def answers(library: Path, path: Path, **numbers: int) -> dict[str, str]:
    """The environment in which calls for paths below ``path`` end with these errors."""
    faults = {f"OTHER_{name.upper()}": str(number) for name, number in numbers.items()}
    return {"LD_PRELOAD": str(library), "OTHER_PATH": str(path), **faults}
