"""The calls of the default context, and contexts with limits of their own."""

from __future__ import annotations

import json
from typing import Any

from waywiser.transfer.arrays import to_host
from waywiser.transfer.module import native

copy = native.copy
copy_async = native.copy_async
copy_batch = native.copy_batch
copy_batch_async = native.copy_batch_async
copy_blocks = native.copy_blocks
copy_blocks_async = native.copy_blocks_async
read = native.read
read_async = native.read_async
write = native.write
write_async = native.write_async
explain = native.explain
usage = native.usage
TransferHandle = native.TransferHandle


class Context(native.Context):
    """Threads and staging memory that the copies of this context share, within its limits.

    Its methods are the functions of this package. Thread safe. All arguments are keywords:

    - ``threads``: most copying threads; None: what affinity, cgroup and ranks of the node allow.
    - ``pinned_bytes``: most pinned staging memory; None: 16 MiB a thread.
    - ``relays``: GPUs whose links may help copies of other GPUs.
    - ``relay_bytes``: most staging memory on each relay; None: 64 MiB.
    - ``polite_bytes``: most bytes queued at once on a copy engine in one direction; None: no bound.
    - ``plain``: only plain copies of the GPU runtime, no threads.
    - ``peer_access``: whether peer access between the GPUs of a copy may be enabled.

    Nothing is allocated before the first copy that needs it. `close`, or the end of a ``with``
    block, cancels transfers that wait for their stream and waits for those that have started.
    """

    def to_host(self, tensor: Any, *, stream: Any = None) -> Any:
        """As `waywiser.transfer.to_host`, by this context."""
        return to_host(tensor, stream=stream, copy=self.copy)


def machine() -> dict[str, Any]:
    """The machine as this process may use it: ``numa`` nodes, ``gpus`` with their peers, most
    copying ``threads``, ``local_ranks``, and why no GPU is there if none is."""
    found: dict[str, Any] = json.loads(native.machine_json())
    return found
