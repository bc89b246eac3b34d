"""A rank's own side of a launch: it connects back, and leaves nothing behind however it ends.

It ends when the launching process closes its socket, when its parent (the launcher) dies, and by
SIGTERM. A thread sees each of these even while MPI blocks, and removes the shared memory that MPI
has made before the process ends.
"""

from __future__ import annotations

import atexit
import fcntl
import os
import resource
import select
import signal
import socket
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, NoReturn

from waywiser.machine import TASKS_REMEDY
from waywiser.measure.probe.environment import NODE_VARIABLE, RANKS_VARIABLE
from waywiser.measure.probe.protocol import (
    Greeting,
    Joined,
    Ping,
    Pong,
    decode_to_worker,
    encode,
)
from waywiser.measure.ranks.leftovers import (
    enter_folders,
    folder_of,
    mapped_files,
    remove,
    remove_folders,
)
from waywiser.measure.supervise import NEVER, LineChannel, ProtocolError, start_thread
from waywiser.measure.supervise.lifeline import signal_at_end_of
from waywiser.words import WaywiserError

_ALIVE = (
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 5),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 2),
    (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 5),
)
"""A rank whose node has lost its network ends after 15 seconds: no end of a connection arrives
there."""

_STATED = ("PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID", "PALS_RANKID")
"""Variables in which launchers state the number of a rank."""


_FIRST_TO_CLOSE = 1023
"""The descriptor of the connection. Of a killed process the kernel closes the highest descriptors
first: so its connection ends before those of MPI, by which others notice its end and end too."""


class RankError(WaywiserError):
    """This process was not started by a launch of Waywiser."""


def stated_rank(environment: Mapping[str, str] = os.environ) -> int:
    """The number of this rank before MPI has started; -1 if the launcher does not state it."""
    stated = (environment[name] for name in _STATED if environment.get(name, "").isdigit())
    return int(next(stated, -1))


def connect_back(environment: Mapping[str, str] = os.environ) -> LineChannel:
    """The channel to the process that launched this one, which knows it from now on. The first
    thing that a rank does. Raises `RankError`."""
    try:
        _end_by_signals()
    except RuntimeError as error:
        raise RankError(str(error), remedy=TASKS_REMEDY) from error
    address, _, secret = environment.get(RANKS_VARIABLE, "").rpartition(":")
    host, _, port = address.rpartition(":")
    if not port.isdigit() or not secret:
        raise RankError(f"{RANKS_VARIABLE} is not set", remedy="ranks are started by waywiser")
    try:
        connection = socket.create_connection((host, int(port)))
    except OSError as error:
        raise RankError(f"the process that launched this rank is gone: {error}") from error
    connection = _closed_first(connection)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for level, name, value in _ALIVE:
        connection.setsockopt(level, name, value)
    os.environ["TMPDIR"] = temporary = folder_of(secret)
    if enter_folders(temporary):  # on another node than that of the launch
        atexit.register(remove_folders, temporary)
    greeting = Greeting(secret, os.getpid(), stated_rank(environment), own_host(environment))
    channel = LineChannel(connection, peer="the process that launched this rank")
    channel.send(encode(greeting), NEVER)
    return channel


def _closed_first(connection: socket.socket) -> socket.socket:
    """Returns the same connection with a high descriptor, below the limit of the process."""
    highest = min(resource.getrlimit(resource.RLIMIT_NOFILE)[0] - 1, _FIRST_TO_CLOSE)
    try:
        descriptor = fcntl.fcntl(connection, fcntl.F_DUPFD_CLOEXEC, highest)
    except OSError:  # all up to the limit are in use
        return connection
    connection.close()
    return socket.socket(fileno=descriptor)


def own_host(environment: Mapping[str, str] = os.environ) -> str:
    """The node that this process runs on: as the user or Slurm names it, else its host's name."""
    named = (environment.get(name) for name in (NODE_VARIABLE, "SLURMD_NODENAME"))
    return next(filter(None, named), socket.gethostname())


def say_joined(channel: LineChannel, bridge: Any, messenger: Any) -> None:
    """States the world that MPI made; ``bridge`` and ``messenger`` are those of the native
    library."""
    joined = Joined(
        messenger.rank,
        messenger.size,
        bridge.library,
        bridge.threads,
        bridge.cuda_stated,
        tuple(sorted(mapped_files())),
    )
    channel.send(encode(joined), NEVER)


def end_with(channel: LineChannel, stage: Callable[[], str] = str) -> None:
    """Ends this process when the channel is closed at its other end. For a rank that is sent
    nothing but questions about its ``stage``, the call that it is in; they are answered even while
    MPI blocks."""

    def wait() -> None:
        with suppress(OSError, ProtocolError):
            while True:
                for message in map(decode_to_worker, channel.taken()):
                    if isinstance(message, Ping):
                        channel.send(encode(Pong(message.id, stage())), NEVER)
                channel.receive()
        end_now()

    start_thread(wait, "end with the launch")


def end_now() -> NoReturn:
    """Ends this process at once, from any thread, and leaves nothing of MPI."""
    remove(mapped_files())
    remove_folders(os.environ.get("TMPDIR", ""))
    os._exit(1)


def _end_by_signals() -> None:
    """Ends by SIGTERM, which also comes when the parent dies."""
    woken, wakes = os.pipe()
    os.set_blocking(wakes, False)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that launched
    signal.signal(signal.SIGTERM, lambda *_: None)
    signal.set_wakeup_fd(wakes, warn_on_full_buffer=False)

    def wait() -> None:
        while select.select([woken], [], [])[0]:
            if signal.SIGTERM in os.read(woken, 64):
                end_now()

    start_thread(wait, "end by a signal")
    if not signal_at_end_of(os.getppid(), signal.SIGTERM):
        end_now()
