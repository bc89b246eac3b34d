"""The campaign of kills at random moments, with a few of them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tree import ROOT


def test_a_few_random_kills_lose_nothing(
    tmp_path: Path, fake_transfer_environment: dict[str, str]
) -> None:
    done = subprocess.run(
        [
            sys.executable,
            ROOT / "benchmarks" / "save_kills.py",
            "--kills",
            "3",
            "--folder",
            tmp_path,
        ],
        env=fake_transfer_environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("3 kills") >= 3 and " 0 wrong" in done.stdout
    assert os.listdir(tmp_path) == []
