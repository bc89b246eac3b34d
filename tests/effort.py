"""How much work something is, as a number that neither load nor the speed of a machine changes."""

from __future__ import annotations

import cProfile
from collections.abc import Callable
from typing import TypeVar

_Result = TypeVar("_Result")


def result_and_calls(work: Callable[[], _Result]) -> tuple[_Result, int]:
    """What ``work`` gives, and how many functions, written in Python or in C, were called for it.

    Versions of Python and of libraries differ by some calls: let a limit be at least twice what was
    counted.
    """
    profile = cProfile.Profile()
    result = profile.runcall(work)
    return result, sum(entry.callcount for entry in profile.getstats())
