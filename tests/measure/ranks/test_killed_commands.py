"""Commands that start ranks leave nothing when they are killed. `benchmarks/early_kills.py` kills
a hundred of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.measure.ranks.killed_commands import kill_commands

from mpi_wheels import mpicc_of

KILLS = 4
"""Each command by each signal."""


@pytest.mark.slow
def test_kills_at_random_moments(tmp_path: Path, fake_native_environment: dict[str, str]) -> None:
    environment = {**fake_native_environment, "XDG_CACHE_HOME": str(tmp_path / "cache")}
    assert kill_commands(KILLS, mpicc_of("mpich"), environment, seed=3, most_seconds=2.0) == []
