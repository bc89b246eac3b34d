"""Ties a worker to its supervisor: when the supervisor is gone, however it went, so is the worker.

Two ways, since each has a hole. The kernel's parent-death signal reaches a worker that hangs in a
driver call with the interpreter lock held, but is lost when the parent dies before it is asked
for. The end of the protocol's descriptor is seen in that case, and also where something stands
between supervisor and worker.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import queue
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path

from waywiser.measure.probe.protocol import (
    Abort,
    End,
    Lines,
    Ping,
    ProtocolError,
    ToWorker,
    decode_to_worker,
)

_PR_SET_PDEATHSIG = 1  # from <sys/prctl.h>

_READ_BYTES = 1 << 16

_FIRST_TO_KILL = 1000
"""The highest score: the kernel kills such a process first."""


def die_with(parent: int) -> None:
    """Asks the kernel to kill this process when its parent dies; ends at once if it has.

    ``parent`` is the process id that the supervisor knows itself by, or 0 if the parent is a
    launcher. Must be called before the process does anything worth losing.
    """
    if parent == 0:
        return
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    # The signal is for a death from now on; one that came earlier shows in the parent's id.
    if os.getppid() != parent:
        end_now()


def end_first_without_memory() -> None:
    """Has the kernel kill this process before any other if memory is exhausted: that costs one
    workload, and no program of others."""
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(f"{_FIRST_TO_KILL}\n")


def end_now() -> None:
    """Ends this process and what it started, without a word: nobody is left to listen."""
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


class Inbox:
    """What the supervisor says, read by a thread that also sees when it stops being there. The
    thread passes on to ``heed`` what cannot wait for the end of a measurement.

    The thread sleeps in ``read`` while a measurement runs and wakes for nothing else.
    """

    def __init__(
        self,
        descriptor: int,
        heed: Callable[[Ping | Abort], None],
        end: Callable[[], None] = end_now,
    ) -> None:
        self._descriptor = descriptor
        self._heed = heed
        self._end = end
        self._messages: queue.SimpleQueue[ToWorker | ProtocolError] = queue.SimpleQueue()
        start_thread(self._read, "inbox")

    def get(self) -> ToWorker:
        """The next message; waits for it. Raises `ProtocolError` for what is none."""
        message = self._messages.get()
        if isinstance(message, ProtocolError):
            raise message
        return message

    def _read(self) -> None:
        lines = Lines()
        while data := self._read_some():
            try:
                for message in map(decode_to_worker, lines.feed(data)):
                    if isinstance(message, Ping | Abort):
                        self._heed(message)
                        continue
                    self._messages.put(message)
                    if isinstance(message, End):
                        return  # what follows is the end that was announced
            except ProtocolError as error:
                self._messages.put(error)
        self._end()

    def _read_some(self) -> bytes:
        """Nothing when the supervisor is gone: a socket may be reset, or its network be lost."""
        try:
            return os.read(self._descriptor, _READ_BYTES)
        except (ConnectionError, TimeoutError):
            return b""
