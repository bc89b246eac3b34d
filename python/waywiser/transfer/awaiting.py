"""Waits for a transfer in an event loop: by a descriptor that becomes readable, without polling."""

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


async def _result(handle: TransferHandle) -> int:
    if not handle.done():
        await _readable(handle._descriptor())
    return handle.result()


async def _readable(descriptor: int) -> None:
    loop = asyncio.get_running_loop()
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
