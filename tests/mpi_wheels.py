"""The MPI libraries that set-up installs for tests: each in a folder of its own."""

from __future__ import annotations

import os

import pytest

from tree import ROOT

FOLDER = ROOT / ".deps" / "mpi"


def mpicc_of(name: str) -> str:
    """The mpicc of ``mpich`` or ``openmpi``; without it the test is skipped, and fails in CI, where
    set-up installs both."""
    path = FOLDER / name / "bin" / "mpicc"
    if not path.exists():
        why = f"{path} is not there: run scripts/set-up --mpi"
        pytest.fail(why) if os.environ.get("CI") else pytest.skip(why)
    return str(path)
