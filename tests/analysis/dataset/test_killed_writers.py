"""Writers of a data set that are killed at random moments lose no run and double none."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from kept import RESULTS, unpacked
from waywiser.analysis.dataset.files import files_in, pack
from waywiser.analysis.dataset.profiles import record
from waywiser.analysis.dataset.scan import Scan

KILLS = int(os.environ.get("WAYWISER_KILLS", "6"))
"""Kills of each writer; `docs/results/2026-11-29-fleet-data-set` has 50."""

LONGEST = 0.4
"""Seconds after which a writer that has begun is killed at most: it has all to do within less."""

WRITER = """
import sys
from pathlib import Path
from waywiser.analysis.dataset.files import pack
from waywiser.analysis.dataset.profiles import record
what, dataset, *files = sys.argv[1:]
print("ready", flush=True)
while True:
    if what == "record":
        for file in files:
            print(record(file, Path(dataset)).name, flush=True)
    else:
        pack(Path(dataset))
        record(files[0], Path(dataset))
"""


@pytest.fixture(scope="module")
def profiles(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Five profiles of one machine, under names of their own."""
    folder = tmp_path_factory.mktemp("profiles")
    kept = RESULTS / "2026-11-22-check-two-gpus"
    return [unpacked(kept / f"check-{n}.wwp.xz", folder / f"{n}.wwp") for n in range(1, 6)]


def killed(what: str, dataset: Path, profiles: list[Path], delay: float) -> list[str]:
    """Kills a writer some seconds after it has begun, and returns what it said it wrote."""
    command = [sys.executable, "-c", WRITER, what, str(dataset), *map(str, profiles)]
    environment = {**os.environ, "PYTHONPATH": "python"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, text=True) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
        time.sleep(delay)
        writer.kill()
        said = writer.stdout.read().splitlines()
    return said


def require_each_once(dataset: Path, expected: set[str]) -> None:
    """All runs are there, each row once, and every file can be read."""
    whole = Scan(dataset)
    assert whole.unreadable == {}
    assert {str(run.file) for run in whole.runs} >= expected
    twice = whole.relation.query("d", "SELECT run, number FROM d GROUP BY ALL HAVING count(*) > 1")
    assert twice.fetchall() == []


@pytest.mark.slow
def test_nightly_writers(profiles: list[Path], tmp_path: Path) -> None:
    rng = random.Random(1)
    named = {f"{profile.stem}": profile.name for profile in profiles}
    for n in range(KILLS):
        dataset = tmp_path / f"{n}"
        said = killed("record", dataset, profiles, rng.uniform(0, LONGEST))
        whole = set(list(named.values())[: len(said)])
        if not dataset.exists():
            continue
        require_each_once(dataset, whole)
        for profile in profiles:
            record(str(profile), dataset)
        require_each_once(dataset, set(named.values()))
        left = [path.name for path in dataset.rglob("*") if path.is_file()]
        assert len(left) == len(profiles), "what a kill left is removed by the next writer"
        shutil.rmtree(dataset)


@pytest.mark.slow
def test_packing(profiles: list[Path], tmp_path: Path) -> None:
    rng = random.Random(2)
    everything = {profile.name for profile in profiles}
    for profile in profiles:
        record(str(profile), tmp_path)
    rows = len(Scan(tmp_path).relation)
    for _ in range(KILLS):
        killed("pack", tmp_path, profiles, rng.uniform(0, LONGEST))
        require_each_once(tmp_path, everything)
        assert len(Scan(tmp_path).relation) == rows
        for profile in rng.sample(profiles, 2):
            record(str(profile), tmp_path)
        require_each_once(tmp_path, everything)
    pack(tmp_path)
    assert len(files_in(tmp_path)) == 1
    require_each_once(tmp_path, everything)


@pytest.mark.slow
def test_two_packers_beside_writers(profiles: list[Path], tmp_path: Path) -> None:
    """Two that pack at once, while runs are written, lose none: each finds files gone that the
    other has packed."""
    for profile in profiles:
        record(str(profile), tmp_path)
    with ThreadPoolExecutor(2) as pool:
        for n in range(KILLS):
            delay = 0.2 + n / 100
            both = [pool.submit(killed, "pack", tmp_path, profiles, delay) for _ in range(2)]
            record(str(profiles[1]), tmp_path)
            for each in both:
                each.result()
            require_each_once(tmp_path, {profile.name for profile in profiles})
