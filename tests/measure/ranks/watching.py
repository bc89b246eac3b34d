"""What launches of tests are watched for: processes that end, and what they leave."""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

import pytest
from tests.measure.probe.scripted_orders import wait_until as wait_for

from waywiser.measure.ranks.launch import Launch
from waywiser.measure.ranks.leftovers import mapped_files, shared_folder

PATIENCE_SECONDS = 120.0

LOOK_SECONDS = 0.05

wait_until = partial(wait_for, seconds=PATIENCE_SECONDS)
"""Whether something comes true within this time."""


class OwnFiles:
    """What the processes that come from this one make: temporary files in a folder of their own,
    and shared memory that they were seen to use. Tests that run beside have theirs."""

    def __init__(self) -> None:
        # Sockets of launchers are there: their paths may have 107 bytes.
        self.folder = Path(tempfile.mkdtemp(prefix="waywiser-test-", dir="/tmp"))
        self.environment = {"TMPDIR": str(self.folder)}
        """Variables of the processes."""
        self._seen: set[str] = set()
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._look_on, name="look at files", daemon=True)
        self._thread.start()

    @property
    def seen(self) -> set[str]:
        """All that was there when somebody looked."""
        self._look()
        return set(self._seen)

    def left(self) -> set[str]:
        """What is there now."""
        return {file for file in self.seen if os.path.lexists(file)}

    def close(self) -> None:
        self._ends.set()
        self._thread.join()
        shutil.rmtree(self.folder)

    def _look_on(self) -> None:
        while not self._ends.wait(LOOK_SECONDS):
            self._look()

    def _look(self) -> None:
        names = os.listdir(self.folder)
        own = {str(self.folder / name) for name in names}
        shared = {shared_folder(name) for name in names}
        mapped = {file for pid in descendants(os.getpid()) for file in mapped_files(pid)}
        self._seen |= own | {file for file in shared if os.path.lexists(file)} | mapped


@contextmanager
def own_files() -> Iterator[OwnFiles]:
    """Files of processes, of which none may be left in the end."""
    files = OwnFiles()
    try:
        yield files
        assert wait_until(lambda: not files.left()), files.left()
    finally:
        files.close()


@contextmanager
def own_files_here() -> Iterator[OwnFiles]:
    """The same, for processes that this one starts with its own environment."""
    with pytest.MonkeyPatch.context() as patched, own_files() as files:
        patched.setenv("TMPDIR", str(files.folder))
        patched.setattr(tempfile, "tempdir", str(files.folder))
        yield files


def launcher_of(launch: Launch) -> int:
    """The launcher itself, which is the child of its guard."""
    guard = launch.launcher.pid
    return int(Path(f"/proc/{guard}/task/{guard}/children").read_text().split()[0])


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"


def descendants(pid: int) -> list[int]:
    """The children of a process, of each of its threads, and theirs; none of one that has ended."""
    children: list[int] = []
    with suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            text = Path(f"/proc/{pid}/task/{thread}/children").read_text()
            children += map(int, text.split())
    return [each for child in children for each in (child, *descendants(child))]
