"""The end of a rank after that of MPI."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

ENDS = """
import atexit, sys
from waywiser.measure.ranks.rank import exit_after_mpi
class Kept:
    def __del__(self):
        print("was taken apart", flush=True)
kept = Kept()
kept.kept = kept
atexit.register(print, "registered")
sys.stdout.write("said, ")
exit_after_mpi()
"""


def start() -> subprocess.Popen[Any]:
    """Starts a process whose output is kept until it is flushed."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONUNBUFFERED"}
    command = [sys.executable, "-c", ENDS]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)


def test_a_rank_does_what_is_registered_for_its_end_and_takes_nothing_apart() -> None:
    with start() as process:
        said, _ = process.communicate()
    assert (process.returncode, said) == (0, "said, registered\n")


def test_an_output_that_nobody_reads_is_no_failure() -> None:
    with start() as process:
        assert process.stdout is not None
        process.stdout.close()
    assert process.returncode == 0
