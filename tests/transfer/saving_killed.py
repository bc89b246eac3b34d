"""Saves over an old checkpoint in children that are killed, each at another line of the modules
that write; checks after each that the old one or the new one is there, and whole, and that the next
save removes what a killed one left. The folder ``model`` may be there already, as a mount point.

Prints how often it was the old one, and how often the new one.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

from transfer import torch_stand_in

sys.modules["torch"] = torch_stand_in  # type: ignore[assignment]
import waywiser.transfer.torch as loading  # noqa: E402
from waywiser.transfer import durable_output, replaced_files, saving  # noqa: E402

del sys.modules["torch"]

WATCHED = {durable_output.__file__, replaced_files.__file__, saving.__file__}


def tensors(value: int) -> dict[str, Any]:
    return {
        name: torch_stand_in.Tensor(np.full(2**17, value, np.uint8), torch_stand_in.uint8)
        for name in "abc"
    }


def killed_at(step: int) -> Any:
    """A trace function that kills the process at this line."""
    left = step
    visits: dict[tuple[str, int], int] = {}

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal left
        if frame.f_code.co_filename not in WATCHED:
            return None
        line = (frame.f_code.co_filename, frame.f_lineno)
        if event == "line" and visits.setdefault(line, 0) < 1:
            visits[line] += 1
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
        return trace

    return trace


def save_and_die(path: Path, value: int, shard_bytes: int | None, step: int) -> bool:
    """Whether the child reached its end before the line."""
    child = os.fork()
    if child == 0:
        sys.settrace(killed_at(step))
        loading.save_files(tensors(value), path, shard_bytes=shard_bytes)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert status == 0 or os.WTERMSIG(status) == signal.SIGKILL, status
    return status == 0


def held(path: Path) -> int:
    """The value that all tensors have: never of two saves, never a part. In a child: a process that
    has used the library cannot fork others that do."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        loaded = loading.load_files(path, "cpu")
        values = {int(value) for each in loaded.values() for value in np.unique(each.array)}
        os.write(writing, " ".join(map(str, (len(loaded), *values))).encode())
        os._exit(0)
    os.waitpid(child, 0)
    os.close(writing)
    with os.fdopen(reading, "rb") as answer:
        count, value = (int(word) for word in answer.read().split())
    assert count == 3
    return value


def unfinished(path: Path) -> set[str]:
    """What is beside the path and, if it is mounted, hidden in it, without what belongs to that."""
    beside = set(os.listdir(path.parent)) - {path.name}
    if not os.path.ismount(path):
        return beside
    assert not beside, beside
    hidden = {name for name in os.listdir(path) if name.startswith(".")}
    return {name for name in hidden if not any(name.startswith(f"{each}-") for each in hidden)}


def main(folder: Path, shard_bytes: int | None) -> None:
    path = folder / "model"
    assert save_and_die(path, 0, shard_bytes, 0)
    before, was_old, was_new = 0, 0, 0
    for step in range(1, 100_000):
        value = step % 200
        whole = save_and_die(path, value, shard_bytes, step)
        now = held(path)
        assert now in (before, value), (before, value, now)
        was_old += now == before
        was_new += now == value
        left = unfinished(path)
        # If it is mounted, what was killed at its end may be the checkpoint.
        assert len(left) <= 1 + os.path.ismount(path), left
        before = now
        if whole:
            assert now == value and not left, left
            break
    print(was_old, was_new)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]) or None)
