"""What runs in a thread ends when the main thread is interrupted."""

from __future__ import annotations

import os
import signal
import threading
import time

import pytest

from waywiser.cluster.connection import interruptible
from waywiser.cluster.connection.interruptible import run_interruptibly


def test_it_returns_when_all_is_done() -> None:
    done: list[int] = []
    run_interruptibly(lambda: done.append(1), lambda: done.append(2))
    assert done == [1]


def test_what_it_raises_is_raised_here() -> None:
    def fail() -> None:
        raise KeyError("odd")

    with pytest.raises(KeyError, match="odd"):
        run_interruptibly(fail, lambda: None)


@pytest.mark.parametrize("seconds", [0.0, 0.05])
def test_a_signal_lets_it_end(seconds: float) -> None:
    """Also one that comes while the main thread waits, which takes time to end."""
    ends, has_ended = threading.Event(), threading.Event()
    main = threading.main_thread().ident
    assert main is not None

    def run() -> None:
        time.sleep(seconds)
        signal.pthread_kill(main, signal.SIGINT)
        ends.wait()
        time.sleep(seconds)
        has_ended.set()

    with pytest.raises(KeyboardInterrupt):
        run_interruptibly(run, ends.set)
    assert has_ended.is_set()


def test_nobody_waits_for_what_does_not_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interruptible, "END_SECONDS", 0.01)
    released = threading.Event()

    def run() -> None:
        os.kill(os.getpid(), signal.SIGINT)
        released.wait()

    with pytest.raises(KeyboardInterrupt):
        run_interruptibly(run, lambda: None)
    released.set()
