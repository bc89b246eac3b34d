"""Runs something in a thread, so that a signal ends it in a bounded time."""

from __future__ import annotations

import threading
from collections.abc import Callable

_LOOK_SECONDS = 0.2
"""A signal is answered between two waits."""

END_SECONDS = 4.0
"""Seconds for a run to end after a signal. What it has started ends with this process in any
case."""


def run_interruptibly(run: Callable[[], None], end: Callable[[], None]) -> None:
    """Runs it, and raises what it raises. If this thread is interrupted meanwhile, as signals do,
    calls ``end``, which lets it end early, and waits a little."""
    errors: list[BaseException] = []
    has_ended = threading.Event()  # a `join` that a signal interrupts takes the thread for ended

    def work() -> None:
        try:
            run()
        except BaseException as error:
            errors.append(error)
        finally:
            has_ended.set()

    thread = threading.Thread(target=work, name="tests", daemon=True)
    try:
        thread.start()
        while not has_ended.wait(_LOOK_SECONDS):
            pass
    except BaseException:
        end()
        if thread.ident is not None:  # it was started
            has_ended.wait(END_SECONDS)
        raise
    if errors:
        raise errors[0]
