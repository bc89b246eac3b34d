"""Starts a launcher, and cleans up after it if the process that launched it is gone.

    python -I -S keeper.py PARENT TEMPORARY SHARED COMMAND...

It ends as the launcher ends. SIGTERM, which also comes when the parent dies, ends the launcher. It
runs as a file and needs nothing of the package, so that it starts at once.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import sys
import time

PR_SET_PDEATHSIG = 1  # from <sys/prctl.h>

KILL_SECONDS = 2.0
"""Seconds in which a launcher ends by SIGTERM, before it is killed."""

CLEAN_SECONDS = 2.0
"""Seconds in which ranks end that the launcher has left, and may still make files."""

SIGNALS = {signal.SIGTERM, signal.SIGCHLD}


def end_with_parent() -> None:
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)


def start(command: list[str]) -> int:
    """The process id of the launcher."""
    launcher = os.fork()
    if launcher:
        return launcher
    try:
        end_with_parent()
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        for number in (signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)  # which Python ignores
        os.execvp(command[0], command)
    finally:
        os._exit(127)


def wait(launcher: int) -> int:
    """The status of the launcher when it has ended."""
    kill_at = float("inf")
    while True:
        seconds = max(min(kill_at - time.monotonic(), 3600.0), 0.0)
        came = signal.sigtimedwait(SIGNALS, seconds)
        ended, status = os.waitpid(launcher, os.WNOHANG)
        if ended:
            return status
        if came and came.si_signo == signal.SIGTERM:
            os.kill(launcher, signal.SIGTERM)
            kill_at = min(kill_at, time.monotonic() + KILL_SECONDS)
        elif time.monotonic() >= kill_at:
            os.kill(launcher, signal.SIGKILL)
            kill_at = float("inf")


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
    end_with_parent()
    status = wait(start(command)) if os.getppid() == parent else 0
    if os.getppid() != parent:
        clean(folders)
    code = os.waitstatus_to_exitcode(status)
    if code < 0:
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        if -code != signal.SIGKILL:
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    sys.exit(code)


if __name__ == "__main__":
    main(sys.argv[1:])
