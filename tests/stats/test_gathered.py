"""What several processes gather is what one does."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import profiles

SCRIPT = """
import sys
from waywiser import children
from waywiser.profile import Profile
from waywiser.stats import gathered
from waywiser.stats.overview import overview

made = []
side_by_side = children.side_by_side

def counted(jobs):
    made.append(len(jobs))
    return {found}

with Profile.open(sys.argv[1]) as profile:
    alone = overview(profile)
    gathered.LEAST_SERIES = 3
    children.useful = lambda: 4
    children.side_by_side = counted
    together = overview(profile)
assert len(alone.series) >= 12 and alone.failures and alone.warnings and alone.unbounded
assert made == [4], made
assert together == alone
"""


@pytest.mark.parametrize("found", ["side_by_side(jobs)", "[None, *side_by_side(jobs[1:])]"])
def test_several_processes_gather_what_one_does(tmp_path: Path, found: str) -> None:
    file = profiles.write(tmp_path / "a.wwp", blocks=3)
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", SCRIPT.format(found=found), str(file)],
        capture_output=True, text=True, timeout=60, check=False,
        env={"PYTHONPATH": ":".join(sys.path), "OPENBLAS_NUM_THREADS": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_a_damaged_part_is_told_as_by_one_process(tmp_path: Path) -> None:
    import sqlite3

    file = profiles.write(tmp_path / "a.wwp")
    connection = sqlite3.connect(file)
    connection.execute(
        "UPDATE visit SET buffers = '{}]' WHERE visit = (SELECT max(visit) FROM visit)"
    )
    connection.commit()
    connection.close()
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT.format(found="side_by_side(jobs)").replace(
            "    alone = overview(profile)\n", "    alone = None\n"), str(file)],
        capture_output=True, text=True, timeout=60, check=False,
        env={"PYTHONPATH": ":".join(sys.path), "OPENBLAS_NUM_THREADS": "1"},
    )  # fmt: skip
    assert done.returncode != 0
    assert "DamagedProfile" in done.stderr.splitlines()[-1]
