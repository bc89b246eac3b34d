"""kill -9 in the middle of commits: what was acknowledged is there, and the file is valid."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

import profiles
from waywiser.profile import Profile, WritableProfile
from waywiser.words import Workload

KILLS = 24

WRITER = """
import itertools, random, sys
import profiles
from waywiser.profile import WritableProfile

what = profiles.workload(profiles.H2D, 2**20)
taken = profiles.samples(random.Random(1), 1e-3, count=400, transfers=2)
for command in sys.stdin:  # one line: the path; then visits until killed
    import os
    if os.fork() == 0:
        profile = WritableProfile.resume(command.strip(), {})
        first = len(profile.finished())
        for block in itertools.count(first):
            profile.commit_visit(profiles.visit(what, block, taken))
            os.write(1, f"{os.getpid()} {block}\\n".encode())
    os.wait()
    os.write(1, b"gone\\n")
"""


def test_what_was_acknowledged_survives_any_kill(tmp_path: Path) -> None:
    path = tmp_path / "a.wwp"
    WritableProfile.create(path, profiles.machine(), {}).close()
    rng = random.Random(20261120)
    found = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=found
    )
    assert writer.stdin is not None and writer.stdout is not None
    acknowledged = -1
    with writer:
        for _ in range(KILLS):
            writer.stdin.write(f"{path}\n".encode())
            writer.stdin.flush()
            pid, block = writer.stdout.readline().split()
            time.sleep(rng.uniform(0, 0.02))
            os.kill(int(pid), signal.SIGKILL)
            while (line := writer.stdout.readline()) != b"gone\n":
                block = line.split()[1]
            assert int(block) > acknowledged  # each writer went on from where the last was
            acknowledged = int(block)
            check(path, acknowledged)
        writer.stdin.close()


def check(path: Path, acknowledged: int) -> None:
    with Profile.open(path) as profile:
        blocks = {block for _, block in profile.finished()}
        assert blocks in (set(range(acknowledged + 1)), set(range(acknowledged + 2)))
        (what,) = profile.workloads()
        assert isinstance(what, Workload)
        last = list(profile.visits())[-1]
        assert len(last.samples) == 400
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
    connection.close()


def killed_while_it_is_made(path: Path, moment: str) -> None:
    """Kills a process that makes a profile, at one moment."""
    script = f"""
import os, signal, sys
import profiles
import waywiser.words.atomic_write
from waywiser.profile import WritableProfile, writing

def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)

if {moment!r} == "link":
    waywiser.words.atomic_write.os.link = die
elif {moment!r} == "named":
    waywiser.words.atomic_write.sync_folder = die
else:
    writing.count_rows = die
WritableProfile.create({str(path)!r}, profiles.machine(), {{}})
"""
    found = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    ended = subprocess.run([sys.executable, "-c", script], env=found, check=False)
    assert ended.returncode == -signal.SIGKILL


@pytest.mark.parametrize("moment", ["executescript", "link"])
def test_a_kill_while_it_is_made_leaves_no_profile(tmp_path: Path, moment: str) -> None:
    path = tmp_path / "a.wwp"
    killed_while_it_is_made(path, moment)
    assert not path.exists()
    WritableProfile.create(path, profiles.machine(), {}).close()
    assert [each.name for each in tmp_path.iterdir()] == ["a.wwp"]


def test_a_profile_whose_process_is_killed_when_it_has_its_name_is_resumed_without_the_second_name(
    tmp_path: Path,
) -> None:
    path = tmp_path / "a.wwp"
    killed_while_it_is_made(path, "named")
    assert len(list(tmp_path.iterdir())) == 2
    WritableProfile.resume(path, {}).close()
    assert [each.name for each in tmp_path.iterdir()] == ["a.wwp"]
    assert Profile.open(path).runs
