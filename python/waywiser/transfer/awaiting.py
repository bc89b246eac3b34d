"""Waits for a transfer in an asyncio event loop, by a descriptor that becomes readable."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Generator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from waywiser._transfer import TransferHandle


def await_transfer(handle: TransferHandle) -> Generator[Any, None, int]:
    """What ``await handle`` runs. If the waiting task is cancelled, the transfer goes on."""
    return _result(handle).__await__()


SHORTEST_PAUSE, LONGEST_PAUSE = 0.0005, 0.02
"""Seconds between two looks at a copy that goes on after its context was closed."""


async def _result(handle: TransferHandle) -> int:
    loop = asyncio.get_running_loop()
    if not handle.done():
        await _readable(loop, handle._descriptor())
    pause = SHORTEST_PAUSE
    while not handle.done():  # its context was closed: no thread looks at the copy any more
        await asyncio.sleep(pause)
        pause = min(2 * pause, LONGEST_PAUSE)
    return handle.result()


async def _readable(loop: asyncio.AbstractEventLoop, descriptor: int) -> None:
    readable: asyncio.Future[None] = loop.create_future()

    def ended() -> None:
        if not readable.done():
            readable.set_result(None)

    try:
        loop.add_reader(descriptor, ended)
        try:
            await readable
        finally:
            loop.remove_reader(descriptor)
    finally:
        os.close(descriptor)
