"""Starts a launcher, and cleans up after it if the process that launched it is gone.

    python -I -S launch_guard.py PARENT TEMPORARY SHARED COMMAND...

It starts before the folders of the launch are made, and starts the launcher when a byte comes by
its standard input. It ends as the launcher ends. SIGTERM ends the launcher, and so does the end of
the thread that has started this process. It runs as a file and needs nothing of the package, so
that it starts at once.
"""

from __future__ import annotations

import ctypes
import os
import select
import shutil
import signal
import sys
import time

PR_SET_PDEATHSIG = 1  # from <sys/prctl.h>

KILL_SECONDS = 2.0
"""Seconds in which a launcher ends by SIGTERM, before it is killed."""

CLEAN_SECONDS = 2.0
"""Seconds in which ranks end that the launcher has left, and may still make files."""

PARENT_SECONDS = 60.0
"""Seconds in which the other threads of a parent end after the thread that has started this
process. If they do not, the parent goes on, and cleans up itself."""

THREAD_ENDED = signal.SIGUSR1
"""Comes when the thread that has started this process ends, and again when the thread of the parent
ends that the kernel takes instead. The parent itself sends SIGTERM."""

SIGNALS = {signal.SIGTERM, signal.SIGCHLD, THREAD_ENDED}


def ask_for_signal_at_end_of_thread(number: int) -> None:
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, number, 0, 0, 0)


LOOK_SECONDS = 0.05
"""Seconds between two looks at a parent that makes the folders."""


def may_start(parent: int) -> bool:
    """Waits for the byte by which the launcher may start. False if the parent does not send it, has
    ended, or has sent a signal instead."""
    poll = select.poll()
    poll.register(0, select.POLLIN)
    while os.getppid() == parent and not SIGNALS & signal.sigpending():
        if poll.poll(1000 * LOOK_SECONDS):  # also when the parent has closed its end
            return bool(os.read(0, 1))
    return False


def start(command: list[str]) -> int:
    """The process id of the launcher."""
    try:
        launcher = os.fork()
    except OSError as error:
        sys.exit(f"the launcher cannot be started: {error.strerror}")
    if launcher:
        return launcher
    try:
        ask_for_signal_at_end_of_thread(signal.SIGTERM)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        for number in (signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)  # which Python ignores
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.execvp(command[0], command)
    finally:
        os._exit(127)


def wait(launcher: int) -> tuple[int, bool]:
    """The status of the launcher when it has ended, and whether the thread that has started this
    process has ended."""
    kill_at = float("inf")
    thread_ended = False
    while True:
        seconds = max(min(kill_at - time.monotonic(), 3600.0), 0.0)
        came = signal.sigtimedwait(SIGNALS, seconds)
        number = came.si_signo if came else 0
        ends = number == signal.SIGTERM or (number == THREAD_ENDED and not thread_ended)
        thread_ended |= number == THREAD_ENDED
        ended, status = os.waitpid(launcher, os.WNOHANG)
        if ended:
            return status, thread_ended or THREAD_ENDED in signal.sigpending()
        if ends:
            os.kill(launcher, signal.SIGTERM)
            kill_at = min(kill_at, time.monotonic() + KILL_SECONDS)
        elif time.monotonic() >= kill_at:
            os.kill(launcher, signal.SIGKILL)
            kill_at = float("inf")


def is_gone(parent: int, seconds: float) -> bool:
    """Whether the parent is gone. Waits for it for at most so many seconds."""
    deadline = time.monotonic() + seconds
    while os.getppid() == parent:
        if time.monotonic() >= deadline:
            return False
        time.sleep(0.01)
    return True


def clean(folders: list[str]) -> None:
    """Removes the folders, and again what ranks make there while they end."""
    deadline = time.monotonic() + CLEAN_SECONDS
    while time.monotonic() < deadline:
        for folder in folders:
            shutil.rmtree(folder, ignore_errors=True)
        time.sleep(0.1)


def main(arguments: list[str]) -> None:
    parent, folders, command = int(arguments[0]), arguments[1:3], arguments[3:]
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    ask_for_signal_at_end_of_thread(THREAD_ENDED)
    status, thread_ended = wait(start(command)) if may_start(parent) else (0, True)
    if is_gone(parent, PARENT_SECONDS if thread_ended else 0):
        clean(folders)
    code = os.waitstatus_to_exitcode(status)
    if code < 0:
        if -code != signal.SIGKILL:
            signal.signal(-code, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {-code})
        os.kill(os.getpid(), -code)
    sys.exit(code)


if __name__ == "__main__":
    main(sys.argv[1:])
