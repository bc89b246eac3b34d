"""The calls of the default context, and contexts with limits of their own."""

from __future__ import annotations

import json
import operator
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

from waywiser.transfer.arrays import to_host
from waywiser.transfer.errors import InvalidOperand, InvalidTransfer
from waywiser.transfer.module import native

_InvalidOperand = partial(InvalidOperand, where="Context")
_InvalidTransfer = partial(InvalidTransfer, where="Context")

MOST_GPUS = 255
"""The largest number that a GPU has in the C interface."""

MOST_PLACES = 8191
"""The largest number that a CPU or a NUMA node has on Linux."""

MOST_SPIN_SECONDS = 1
"""The longest time in seconds for which threads may spin after a copy."""


class Context(native.Context):
    """Threads and staging memory that the copies of this context share, within its limits.

    Its methods are the functions of this package. Thread safe. All arguments are keywords:

    - ``threads``: most copying threads; None: what affinity, cgroup and ranks of the node allow.
    - ``pinned_bytes``: most pinned staging memory; None: 16 MiB a thread.
    - ``relays``: GPUs whose links may help copies of other GPUs.
    - ``relay_bytes``: most staging memory on each relay; None: 64 MiB.
    - ``max_queued_bytes``: most bytes queued at once on a copy engine in one direction; None: no
      bound.
    - ``plain``: only plain copies of the GPU runtime; one thread reads or writes a file.
    - ``peer_access``: whether peer access between the GPUs of a copy may be enabled.
    - ``list_multiprocessors``: most multiprocessors of a GPU that move a list of short pieces over
      its link; None: what the policy says, or two; if the pieces are contiguous in host memory
      one, or, of long lists, eight for a part of the time. Two that access host memory fill a PCIe
      5.0 link; one leaves more to other kernels.
    - ``spin_seconds``: for how long the copying threads spin after a copy before they sleep, up to
      1; None: not at all. Each of them uses a CPU meanwhile. Copies of 1 to 64 MiB between
      pageable memory and a GPU that follow each other are faster then.
    - ``policy``: the file of a policy, or "off"; None: the one of ``WAYWISER_POLICY`` or of the
      configuration folders (docs/policy.md).
    - ``cpus``, ``numa_nodes``: numbers of CPUs and of NUMA nodes on which the copying threads run;
      both: CPUs that are in both. Of these, those that the calling thread may use. Staging memory
      on the host is at nodes that have one of the CPUs.
    - ``log``: a function that gets each warning of this context as a text of one line, instead of a
      UserWarning: ``log=logging.getLogger("copies").warning``, say. It is called in the thread that
      calls the context, at the end of the call in or before which the warning came up, and of
      `close`. What it raises is reported as unraisable, and the call goes on.

    Nothing is allocated before the first copy that needs it. `close`, or the end of a ``with``
    block, cancels transfers whose threads wait for the stream and waits for those that have
    started. Copies that the GPU runtime makes are in their stream already and go on.

    Raises `InvalidOperand` for a value of a wrong type, and `InvalidTransfer` for numbers out of
    range and for relays that this machine does not have.
    """

    def __init__(
        self,
        *,
        threads: int | None = None,
        pinned_bytes: int | None = None,
        relays: Sequence[int] = (),
        relay_bytes: int | None = None,
        max_queued_bytes: int | None = None,
        plain: bool = False,
        peer_access: bool = True,
        list_multiprocessors: int | None = None,
        spin_seconds: float | None = None,
        policy: str | os.PathLike[str] | None = None,
        cpus: Sequence[int] = (),
        numa_nodes: Sequence[int] = (),
        log: Callable[[str], object] | None = None,
    ) -> None:
        if log is not None and not callable(log):
            raise _InvalidOperand(
                f"log is {log!r}, which cannot be called",
                remedy='pass a function of one text: log=logging.getLogger("copies").warning, say',
            )
        self._log = log
        super().__init__(
            threads=_limit("threads", threads),
            pinned_bytes=_limit("pinned_bytes", pinned_bytes),
            relays=_gpus("relays", relays),
            relay_bytes=_limit("relay_bytes", relay_bytes),
            max_queued_bytes=_limit("max_queued_bytes", max_queued_bytes),
            plain=_switch("plain", plain),
            peer_access=_switch("peer_access", peer_access),
            list_multiprocessors=_limit("list_multiprocessors", list_multiprocessors),
            spin_seconds=_seconds("spin_seconds", spin_seconds),
            policy=_path("policy", policy),
            cpus=_places("cpus", cpus),
            numa_nodes=_places("numa_nodes", numa_nodes),
        )
        self._report_warnings()

    def to_host(self, tensor: Any, *, stream: Any = None) -> Any:
        """As `waywiser.transfer.to_host`, by this context."""
        return to_host(tensor, stream=stream, copy=self.copy)


def _number(name: str, value: Any) -> int:
    try:
        return operator.index(value)
    except TypeError:
        raise _InvalidOperand(
            f"{name} is {value!r}, not a whole number", remedy="pass an int"
        ) from None


def _switch(name: str, value: Any) -> bool:
    if isinstance(value, str):  # any text but the empty one would be true
        raise _InvalidOperand(
            f"{name} is {value!r}, which is neither True nor False",
            remedy=f"pass {name}=True or {name}=False",
        )
    return bool(value)


def _limit(name: str, value: Any) -> int | None:
    if value is None:
        return None
    number = _number(name, value)
    if not 1 <= number <= sys.maxsize:
        raise _InvalidTransfer(
            f"{name} is {number}, not a number from 1 on that fits into 63 bits",
            remedy=f"omit {name}, or pass None, for the default",
        )
    return number


def _seconds(name: str, value: Any) -> float | None:
    if value is None:
        return None
    try:
        if isinstance(value, bool | str | bytes):
            raise TypeError
        seconds = float(value)
    except (TypeError, ValueError):
        raise _InvalidOperand(
            f"{name} is {value!r}, not a number of seconds", remedy="pass a float"
        ) from None
    if not 0 <= seconds <= MOST_SPIN_SECONDS:
        raise _InvalidTransfer(
            f"{name} is {seconds:g}, not a number of seconds from 0 to {MOST_SPIN_SECONDS}",
            remedy=f"pass {name}=0.002, say, or omit it",
        )
    return seconds


def _path(name: str, value: Any) -> bytes:
    """The path for the C interface, for which an empty one is none."""
    if value is None:
        return b""
    try:
        path = os.fsencode(value)
    except TypeError:
        path = b""
    if not path or b"\0" in path:
        raise _InvalidOperand(
            f"{name} is {value!r}, not the path of a file",
            remedy=f'pass {name}="machine.json", say, or {name}="off"',
        )
    return path


def _gpus(name: str, values: Any) -> list[int]:
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise _InvalidOperand(
            f"{name} is {values!r}, not a sequence of numbers of GPUs",
            remedy=f"pass {name}=[1], say",
        )
    numbers = [_number(f"an entry of {name}", value) for value in values]
    for number in numbers:
        if not 0 <= number <= MOST_GPUS:
            raise _InvalidTransfer(
                f"{name} has the entry {number}, which is not the number of a GPU",
                remedy='pass numbers of machine()["gpus"]',
            )
    return numbers


def _places(name: str, values: Any) -> list[int]:
    """Numbers of CPUs or of nodes, which the library checks further."""
    if values is None:
        return []
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise _InvalidOperand(
            f"{name} is {values!r}, not a sequence of numbers", remedy=f"pass {name}=[0, 1], say"
        )
    numbers = [_number(f"an entry of {name}", value) for value in values]
    for number in numbers:
        if not 0 <= number <= MOST_PLACES:
            raise _InvalidTransfer(
                f"{name} has the entry {number}, which is out of range",
                remedy='pass numbers of machine()["numa"]',
            )
    return numbers


def machine() -> dict[str, Any]:
    """The machine as this process may use it: ``numa`` nodes, ``gpus`` with their peers, most
    copying ``threads``, ``local_ranks``, and if no GPU is there why, and whether that is so since
    the process was forked from one that has used it."""
    found: dict[str, Any] = json.loads(native.machine_json())
    return found
