"""Processes of this machine that call functions for this one, so that many profiles and the parts
of a large fleet use all CPUs.

A library must not start processes by `multiprocessing`: each would run the caller's script again.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection, Pipe
from threading import Lock, Thread
from typing import Any

from waywiser.words import Closeable

MOST_PROCESSES = 8

COMMAND = (sys.executable, "-m", "waywiser.analysis.dataset.worker_process")
"""Calls functions for the process at the other end of a socket: see `call_for_another`."""

LOST = (OSError, EOFError)
"""What a connection raises whose other process has ended."""


def usable_processes(most: int = MOST_PROCESSES) -> int:
    """How many processes should work at once."""
    return max(1, min(most, MOST_PROCESSES, len(os.sched_getaffinity(0))))


class Workers(Closeable):
    """This process and some others, which call functions of Waywiser. A call whose process ends, or
    in which it fails, is made here. No thread-safety."""

    def __init__(self, processes: int) -> None:
        """Raises nothing: processes that cannot be started do nothing."""
        self._others = [_OtherProcess() for _ in range(processes - 1)]
        self._owners: dict[int, _OtherProcess | None] = {}
        """Who made the call of each place before: None is this process."""

    def each(
        self, function: Callable[..., Any], arguments: Sequence[tuple[Any, ...]]
    ) -> list[Any]:
        """Returns what a function returns for each of some arguments. A process gets those of the
        places that it had in former calls, whose data it may have kept, and else any that no other
        process has begun with. Raises what the function raises here."""
        found: dict[int, Any] = {}
        waiting = [*range(len(arguments))]
        lock = Lock()

        def take(worker: _OtherProcess | None) -> int | None:
            with lock:
                own = (n for n in waiting if self._owners.setdefault(n, worker) is worker)
                if (place := next(own, None)) is not None:
                    waiting.remove(place)
                return place

        def work(other: _OtherProcess) -> None:
            while (place := take(other)) is not None:
                try:
                    found[place] = other.call(function, arguments[place])
                except Exception:  # whatever it is: the call is made here, and raises it
                    return

        threads = [Thread(target=work, args=(other,), daemon=True) for other in self._others]
        for thread in threads:
            thread.start()
        while (place := take(None)) is not None:
            found[place] = function(*arguments[place])
        for thread in threads:
            thread.join()
        for place in range(len(arguments)):
            if place not in found:  # its process is lost
                self._owners[place] = None
                found[place] = function(*arguments[place])
        return [found[place] for place in range(len(arguments))]

    def close(self) -> None:
        for other in self._others:
            other.close()


class _OtherProcess(Closeable):
    """Another process of this Python, which ends when its connection does."""

    def __init__(self) -> None:
        self._connection, theirs = Pipe()
        self._thread = Thread(target=self._run, args=(theirs,), daemon=True)
        self._thread.start()

    @staticmethod
    def _run(theirs: Connection) -> None:
        with suppress(OSError), theirs:  # closed when it ends, so that no answer is waited for
            number = theirs.fileno()
            subprocess.run((*COMMAND, str(number)), pass_fds=[number], check=False)

    def call(self, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
        """Raises `LOST` if the process has ended, or if the function raises something there."""
        self._connection.send((function, arguments))
        return self._connection.recv()

    def close(self) -> None:
        self._connection.close()
        self._thread.join()


def call_for_another(number: int) -> None:
    """Calls functions for the process at the other end of a connection, which has this number here,
    until it closes it. What fails here the other process does itself, and sees why."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    with suppress(*LOST), Connection(number) as connection:
        while True:
            function, arguments = connection.recv()
            try:
                answer = function(*arguments)
            except Exception:
                return
            connection.send(answer)
