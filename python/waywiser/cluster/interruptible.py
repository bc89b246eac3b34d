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

    def work() -> None:
        try:
            run()
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=work, name="tests", daemon=True)
    try:
        thread.start()
        while thread.is_alive():
            thread.join(_LOOK_SECONDS)
    except BaseException:
        end()
        if thread.is_alive():
            thread.join(END_SECONDS)
        raise
    if errors:
        raise errors[0]
