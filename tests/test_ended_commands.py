"""A few commands that are ended at random moments: benchmarks/kill.py ends as many as one likes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys

import pytest

from tree import FAKE_FOLDER, ROOT

COUNTS = {"survey": 3, "check": 3}


@pytest.mark.parametrize("what", COUNTS)
def test_nothing_is_lost_and_nothing_is_left(
    what: str, fake_native_environment: dict[str, str]
) -> None:
    namespace = ["unshare", "-rn"]  # where no other survey has the lock of the host
    if shutil.which("unshare") is None or subprocess.run([*namespace, "true"]).returncode != 0:
        pytest.skip("no network namespace for the lock of surveys: unshare -rn fails")
    script = (str(ROOT / "benchmarks" / "kill.py"), what, "--count", str(COUNTS[what]))
    done = subprocess.run(
        [*namespace, sys.executable, *script, "--fake", str(FAKE_FOLDER)],
        env={**fake_native_environment, "TMPDIR": os.environ.get("TMPDIR", "/tmp")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert sum(json.loads(done.stdout)["ends"].values()) == COUNTS[what]
