"""A program of the user's that runs in the foreground: with the standard streams, the terminal and
the process group of this one."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import FrameType


def run_in_foreground(command: Sequence[str], environment: Mapping[str, str]) -> int:
    """Runs a program to its end and returns its exit code as shells have it: 128 and the number of
    the signal that ended it. Raises `OSError` if it cannot be started."""
    program = subprocess.Popen(command, env=environment)
    with _signals_passed_on(program):
        code = program.wait()
    return 128 - code if code < 0 else code


@contextmanager
def _signals_passed_on(program: subprocess.Popen[bytes]) -> Iterator[None]:
    """Signals to this process end the program and not this process, which goes on when the program
    has ended. Ctrl-C reaches both: the terminal sends it to the whole group."""

    def pass_on(number: int, frame: FrameType | None) -> None:
        program.send_signal(number)

    def stay(number: int, frame: FrameType | None) -> None:
        """The program has it too."""

    of_terminal = stay if _is_in_foreground() else pass_on
    handlers = {
        signal.SIGINT: of_terminal,
        signal.SIGQUIT: of_terminal,
        signal.SIGTERM: pass_on,
        signal.SIGHUP: pass_on,
        signal.SIGUSR1: pass_on,
        signal.SIGUSR2: pass_on,
    }
    former = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)


def _is_in_foreground() -> bool:
    """Whether a terminal sends its signals to the process group of this process."""
    try:
        terminal = os.open("/dev/tty", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return False
    finally:
        os.close(terminal)
