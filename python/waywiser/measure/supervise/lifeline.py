"""Ties a process to its supervisor: when that is gone, however it went, so is the process.

Two ways, since each has a hole. The kernel's parent-death signal reaches a worker that hangs in a
driver call with the interpreter lock held, but is lost when the parent dies before it is asked
for. The end of the channel (`LineChannel`) is seen in that case, and also where something stands
between supervisor and worker.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path

_PR_SET_PDEATHSIG = 1  # from <sys/prctl.h>
_PR_SET_CHILD_SUBREAPER = 36

_FIRST_TO_KILL = 1000
"""The highest score: the kernel kills such a process first."""


def die_with(parent: int) -> None:
    """Asks the kernel to kill this process when its parent dies; ends at once if it has.

    ``parent`` is the process id that the supervisor knows itself by, or 0 if the parent is a
    launcher. Must be called before the process does anything worth losing.
    """
    if parent and not signal_at_end_of(parent, signal.SIGKILL):
        end_now()


def signal_at_end_of(parent: int, number: int) -> bool:
    """Asks the kernel for a signal when the parent dies, which has this number; False if it has
    died."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, number, 0, 0, 0)
    # The signal is for a death from now on; one that came earlier shows in the parent's id.
    return os.getppid() == parent


def adopt_orphans() -> None:
    """Makes this process the parent of what its children leave behind, so that
    `waywiser.measure.supervise.process.kill_descendants` finds that too."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def end_first_without_memory() -> None:
    """Has the kernel kill this process before any other if memory is exhausted: that costs one
    workload, and no program of others."""
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(f"{_FIRST_TO_KILL}\n")


def end_now() -> None:
    """Ends this process and what it started, without a word: no reader is left."""
    if os.getpgrp() == os.getpid():
        with contextlib.suppress(OSError):
            os.killpg(0, signal.SIGKILL)
    os._exit(1)


def start_thread(run: Callable[[], None], name: str) -> None:
    """Runs a function in a thread that does not keep the process alive. Ends the process with one
    line if the system starts none."""
    try:
        threading.Thread(target=run, name=name, daemon=True).start()
    except RuntimeError as error:  # "can't start new thread"
        sys.exit(f"a thread cannot be started: {error} (raise the limit of processes: {LIMITS})")


LIMITS = "docker --pids-limit, podPidsLimit, ulimit -u"
