"""Processes of this machine that call functions for this one, so that many profiles and the parts
of a large fleet use all CPUs.

A library must not start processes by `multiprocessing`: each would run the caller's script again.
"""

from __future__ import annotations

import gc
import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from importlib import import_module
from multiprocessing.connection import Connection, Pipe
from socket import SHUT_RDWR, socket
from threading import Thread
from typing import Any

from waywiser.words import Closeable

MOST_PROCESSES = 8

COMMAND = (sys.executable, "-m", "waywiser.analysis.dataset.worker_process")
"""Calls functions for the process at the other end of a socket: see `call_for_another`."""


def usable_processes(most: int = MOST_PROCESSES) -> int:
    """How many processes should work at once."""
    return max(1, min(most, MOST_PROCESSES, len(os.sched_getaffinity(0))))


class WorkerProcesses(Closeable):
    """This process and some others, which call functions of Waywiser. A call whose process ends, or
    in which it fails, is made here. No thread-safety."""

    def __init__(
        self, processes: int, modules: Sequence[str] = (), aside: Sequence[str] = ()
    ) -> None:
        """The others load ``modules`` as soon as they run; one more, for `start_aside`, those of
        ``aside``, if there are any. Raises nothing: processes that cannot be started do nothing."""
        self.count = processes
        """Processes that `each` uses, this one included."""
        self._others: list[_OtherProcess] = []
        self._aside: _OtherProcess | None = None
        with suppress(OSError, RuntimeError):  # too many descriptors or threads
            for _ in range(processes - 1):
                self._others.append(_OtherProcess(modules))
            if aside:
                self._aside = _OtherProcess(aside)

    def each(self, function: Callable[..., Any], arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Returns what a function returns for each of some arguments. Those of one place go to the
        same process each time, which may have kept what it has read. Raises what the function
        raises here."""
        found: dict[int, Any] = {}

        def work(number: int, other: _OtherProcess) -> None:
            for place in range(number, len(arguments), self.count):
                try:
                    found[place] = other.call(function, arguments[place])
                except Exception:  # whatever it is: the call is made here, and raises it
                    return

        threads = [
            Thread(target=work, args=own, daemon=True) for own in enumerate(self._others, start=1)
        ]
        for thread in threads:
            thread.start()
        try:
            for place in range(0, len(arguments), self.count):
                found[place] = function(*arguments[place])
        except BaseException:
            self._stop()
            raise
        finally:
            for thread in threads:
                thread.join()
        return [
            found[place] if place in found else function(*own)
            for place, own in enumerate(arguments)
        ]

    def start_aside(self, function: Callable[..., Any], *arguments: Any) -> Callable[[], Any]:
        """Starts a call in the process aside, which ends with it, and returns what waits for its
        answer. Without such a process, or if it fails, waiting makes the call here, and raises what
        it raises."""
        other, found = self._aside, []
        if other is None:
            return partial(function, *arguments)

        def work() -> None:
            with suppress(Exception):  # whatever it is: the call is made here, and raises it
                found.append(other.call(function, arguments))
                other.stop()  # what it has read is not needed any more

        thread = Thread(target=work, daemon=True)
        thread.start()

        def answer() -> Any:
            thread.join()
            return found[0] if found else function(*arguments)

        return answer

    @property
    def _all(self) -> list[_OtherProcess]:
        return [*self._others, *([] if self._aside is None else [self._aside])]

    def _stop(self) -> None:
        for other in self._all:
            other.stop()

    def close(self) -> None:
        self._stop()
        for other in self._all:
            other.close()


class _OtherProcess(Closeable):
    """Another process of this Python, which ends when its connection does."""

    def __init__(self, modules: Sequence[str]) -> None:
        self._connection, theirs = Pipe()
        self._thread = Thread(target=self._run, args=(theirs, modules), daemon=True)
        self._thread.start()

    @staticmethod
    def _run(theirs: Connection, modules: Sequence[str]) -> None:
        with suppress(OSError), theirs:  # closed when it ends, so that no answer is waited for
            number = theirs.fileno()
            # in a session of its own: Ctrl-C is for the first process, which ends this one
            subprocess.run(
                (*COMMAND, str(number), *modules),
                pass_fds=[number],
                check=False,
                start_new_session=True,
            )

    def call(self, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
        """Raises `OSError` or `EOFError` if the process has ended, as it does if the function
        fails."""
        self._connection.send((function, arguments))
        return self._connection.recv()

    def stop(self) -> None:
        """Ends the process, whatever it does, and `call` in another thread."""
        with suppress(OSError), socket(fileno=os.dup(self._connection.fileno())) as both_ends:
            both_ends.shutdown(SHUT_RDWR)

    def close(self) -> None:
        self.stop()
        self._thread.join()
        self._connection.close()


def call_for_another(number: int, modules: Sequence[str] = ()) -> None:
    """Loads modules, and calls functions for the process at the other end of a connection, which
    has this number here, until that is closed: then this process ends, whatever it does. If a call
    fails it ends too: the other process makes the call itself, and sees why it fails."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    gc.disable()  # what it reads it keeps until it ends
    Thread(target=_exit_with, args=(number,), daemon=True).start()
    with suppress(Exception), Connection(number) as connection:
        for name in modules:
            import_module(name)
        while True:
            function, arguments = connection.recv()
            connection.send(function(*arguments))


def _exit_with(number: int) -> None:
    """Ends this process when the other end of a connection is closed."""
    hangup = select.poll()
    hangup.register(number, 0)
    hangup.poll()
    os._exit(1)
