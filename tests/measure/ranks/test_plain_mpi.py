"""Times of messages, compared with those of the same calls in plain C by the same mpicc."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from tests.measure.plan.machines import machine

from mpi_wheels import mpicc_of
from tree import ROOT
from waywiser.machine import native
from waywiser.machine.machine import NumaNode
from waywiser.measure.ranks.launch import Launch
from waywiser.measure.ranks.mpi_library import find_library
from waywiser.measure.ranks.placement import place_ranks

RANK = Path(__file__).with_name("comparing_rank.py")
PLAIN = ROOT / "benchmarks" / "plain_mpi.c"

MOST_SECONDS = 840.0
"""All rounds end before, on however busy a machine."""

SIZES = [65536, 1048576]


@pytest.mark.slow
@pytest.mark.usefixtures("places")
def test_messages_take_as_long_as_in_plain_c(
    nothing_left: Callable[[Launch], None],
    fake_native_environment: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """The shortest samples of both, which are taken in turn in one process until they agree: what
    else runs on the machine disturbs samples, and makes the test longer."""
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) < 2:
        pytest.skip("two ranks need two CPUs")
    monkeypatch.setenv(native.MODULE_VARIABLE, fake_native_environment[native.MODULE_VARIABLE])
    # Naps of a rank that waits would be most of the time of a message (tests/conftest.py).
    monkeypatch.delenv("MPIR_CVAR_ENABLE_HEAVY_YIELD", raising=False)
    library = find_library(mpicc_of("mpich"))
    plain = tmp_path / "plain_mpi.so"
    options = ("-O2", "-fPIC", "-shared", "-Dmain=program")
    subprocess.run([library.mpicc.path, *options, str(PLAIN), "-o", str(plain)], check=True)
    bare = msgspec.structs.replace(machine(), numa=(NumaNode(0, tuple(cpus), 2**30, 0),))
    placed = msgspec.structs.replace(bare, ranks=place_ranks(bare, 2))
    words = (library.bridge, str(plain), msgspec.json.encode(placed).decode(), json.dumps(SIZES))
    with Launch(library, [sys.executable, str(RANK), *words], 2) as launch:
        launch.join()
        nothing_left(launch)
        found = json.loads(launch.answers("comparison", MOST_SECONDS)[0])
    ratios = [own / plain for own, plain in found[1:]]
    assert all(0.95 <= ratio <= 1.05 for ratio in ratios), found
