"""The time by which something is to be done."""

from __future__ import annotations

import time
from collections.abc import Callable
from math import inf

_LOOK_SECONDS = 0.005
"""Seconds between two looks at what is not announced."""


class Deadline:
    """So many seconds from now on: made where the time is known, and passed on. Infinite ones are
    never over."""

    __slots__ = ("_began", "_clock", "seconds")

    def __init__(self, seconds: float = inf, clock: Callable[[], float] = time.monotonic) -> None:
        self.seconds = seconds
        self._clock = clock
        self._began = clock()

    @property
    def elapsed(self) -> float:
        """Seconds since it was made."""
        return self._clock() - self._began

    @property
    def left(self) -> float:
        """Seconds; 0 if it is over."""
        return max(self.seconds - self.elapsed, 0.0)

    @property
    def is_over(self) -> bool:
        return self.left == 0.0

    def within(self, seconds: float) -> Deadline:
        """Returns one in so many seconds, but not after this one."""
        return Deadline(min(self.left, seconds), self._clock)

    def wait_until(self, holds: Callable[[], bool], look_seconds: float = _LOOK_SECONDS) -> bool:
        """Whether something holds by then; looks at least once."""
        while not holds():
            if self.is_over:
                return False
            time.sleep(min(look_seconds, self.left))
        return True


NEVER = Deadline()
