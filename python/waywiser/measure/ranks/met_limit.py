"""Which limit of the system ended ranks, by what their launcher printed."""

from __future__ import annotations

import errno
import os
import re

from waywiser.machine import TASKS_REMEDY
from waywiser.machine.rank_limits import SHARED_MEMORY, SHARED_REMEDY
from waywiser.words import size_text

_OF_SHARED_MEMORY = re.compile(
    r"Bus error|SIGBUS|signal 7\b|Shared memory error|/dev/shm|" + os.strerror(errno.ENOSPC)
)
_OF_TASKS = re.compile(r"can't start new thread|" + os.strerror(errno.EAGAIN))


def met_limit(printed: str) -> str:
    """The remedy, with the number that shows the limit; empty if no limit is named or likely."""
    if _OF_TASKS.search(printed):
        return f"no process or thread can be started: {TASKS_REMEDY}"
    if _OF_SHARED_MEMORY.search(printed):
        try:
            status = os.statvfs(SHARED_MEMORY)
        except OSError:
            return ""
        size, free = (n * status.f_frsize for n in (status.f_blocks, status.f_bavail))
        return (
            f"{SHARED_MEMORY} has {size_text(size)}, of which {size_text(free)} are free; "
            f"if ranks had too little of it, {SHARED_REMEDY}"
        )
    return ""
