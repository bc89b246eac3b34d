"""What launches of tests are watched for: processes that end, and what they leave."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from functools import partial
from pathlib import Path

from tests.measure.probe.scripted_orders import wait_until as wait_for

from waywiser.measure.ranks.launch import Launch

PATIENCE_SECONDS = 120.0

wait_until = partial(wait_for, seconds=PATIENCE_SECONDS)
"""Whether something comes true within this time."""


def left_behind() -> set[str]:
    """What launches have left in folders that all processes share. The launches of other tests,
    which run beside this one, use theirs."""
    found = shared_files()
    return found - _used(found) if found else found


def _used(files: set[str]) -> set[str]:
    """Those that a running process names or maps."""
    found = []
    for process in filter(str.isdigit, os.listdir("/proc")):
        for name in ("cmdline", "environ", "maps"):
            with suppress(OSError):
                found.append(Path(f"/proc/{process}/{name}").read_bytes())
    said = b"".join(found)
    return {file for file in files if os.fsencode(os.path.basename(file)) in said}


def shared_files() -> set[str]:
    """What launches have made in folders that all processes share."""
    names = {f"/dev/shm/{name}" for name in os.listdir("/dev/shm")}
    temporary = os.listdir("/tmp")
    return {name for name in names if re.search("mpi|sm_segment|ucx|waywiser-ranks", name)} | {
        f"/tmp/{name}"
        for name in temporary
        if name.startswith(("waywiser-ranks-", "ompi.", "prte"))
    }


def launcher_of(launch: Launch) -> int:
    """The launcher itself, which is the child of its keeper."""
    keeper = launch.launcher.pid
    return int(Path(f"/proc/{keeper}/task/{keeper}/children").read_text().split()[0])


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"


def descendants(pid: int) -> list[int]:
    """The children of a process, and theirs; none of one that has ended."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return []
    return [each for child in map(int, children) for each in (child, *descendants(child))]
