"""Signals that end a command: each ends it as Ctrl-C does, whatever the verb.

What is finished is stored, what is half made is removed, and the exit code is 130. Signals that
follow soon do not disturb that, and ignored signals stay ignored, as under nohup.
"""

from __future__ import annotations

import _thread
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGXCPU)
"""Ctrl-C, a scheduler, a closed terminal, and ``ulimit -t``."""

UNDISTURBED_SECONDS = 20.0
"""Seconds for a command to end. A worker that is stuck in a driver takes 15 s to be killed. A
signal that comes later interrupts again: the first one may have been lost in a library."""

AGAIN_SECONDS = 0.01
"""Seconds after which a signal comes again that was dropped."""

_last: float | None = None
"""When a signal has interrupted the command."""

_other_hook: Callable[[Any], object] = sys.__unraisablehook__
"""Reports all other exceptions that Python drops."""


def end_by_signals() -> None:
    """From now on a signal interrupts the process. Call it in the main thread."""
    _install()


def ignore_signals() -> None:
    """From now on no signal changes the exit code, with which the process ends."""
    for number in ENDING:
        signal.signal(number, signal.SIG_IGN)
    # Python keeps in mind that an `exec` of a text, as dataclasses have, was interrupted, and ends
    # by the signal whatever the exit code is. The next `exec` clears that.
    exec("")


def was_interrupted() -> bool:
    """Whether a signal has come since `end_by_signals`."""
    return _last is not None


@contextmanager
def stopped_by_signals() -> Iterator[None]:
    """The same for a part of a program that is no command of its own."""
    hook = sys.unraisablehook
    before = _install()
    try:
        yield
    finally:
        sys.unraisablehook = hook
        for number, handler in before.items():
            signal.signal(number, handler)


def _install() -> dict[signal.Signals, Any]:
    global _last, _other_hook
    found = {number: signal.getsignal(number) for number in ENDING}
    replaced = {
        number: handler
        for number, handler in found.items()
        if handler not in (signal.SIG_IGN, _interrupt)
    }
    if replaced:
        _last = None
    for number in replaced:
        signal.signal(number, _interrupt)
    if sys.unraisablehook is not _interrupt_again:
        _other_hook, sys.unraisablehook = sys.unraisablehook, _interrupt_again
    return replaced


def _interrupt(number: int, frame: FrameType | None) -> None:
    global _last
    now = time.monotonic()
    if _last is None or now - _last > UNDISTURBED_SECONDS:
        _last = now
        raise KeyboardInterrupt


def _interrupt_again(dropped: Any) -> None:
    """Python drops what is raised where an object ends, or in a callback, and prints it. A signal
    that was dropped so comes again."""
    global _last
    if dropped.exc_type is KeyboardInterrupt and _last is not None:
        _last = None
        _thread.start_new_thread(_send_soon, (_thread.get_ident(),))
    else:
        _other_hook(dropped)


def _send_soon(thread: int) -> None:
    time.sleep(AGAIN_SECONDS)
    signal.pthread_kill(thread, signal.SIGINT)
