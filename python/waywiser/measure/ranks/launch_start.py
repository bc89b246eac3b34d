"""The start of a launch: where its ranks connect, and the process that starts the launcher."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from waywiser.measure.ranks.leftovers import shared_folder
from waywiser.measure.ranks.mpi_library import MpiError

_KEEPER = Path(__file__).with_name("keeper.py")
"""The program that starts the launcher and outlives this process."""

_BACKLOG = 4096
"""Connections that wait: all ranks come at once."""


def open_listener(host: str) -> socket.socket:
    """Returns the socket to which ranks connect, those of many nodes all at once; an empty host is
    all addresses of this machine. Raises `MpiError`."""
    try:
        if not host and socket.has_dualstack_ipv6():
            with suppress(OSError):  # IPv6 may be switched off all the same
                return socket.create_server(
                    ("", 0), family=socket.AF_INET6, backlog=_BACKLOG, dualstack_ipv6=True
                )
        found = socket.getaddrinfo(
            host or "0.0.0.0", 0, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        family, *_, address = found[0]
        return socket.create_server(address[:2], family=family, backlog=_BACKLOG)
    except OSError as error:
        raise MpiError(
            f"ranks cannot connect to this address: {error}",
            where=host,
            remedy="name an address of this machine that all nodes reach: --address",
        ) from error


def start_launcher(
    words: list[str], environment: Mapping[str, str], temporary: str
) -> subprocess.Popen[bytes]:
    """The launcher, in a session of its own, as the keeper's process that ends as it does."""
    program = shutil.which(words[0], path=environment.get("PATH"))
    if program is None:
        raise MpiError(
            "the launcher is no program that can be run",
            where=words[0],
            remedy="name another: --launcher 'mpiexec -n {ranks} {command}'",
        )
    folders = (temporary, shared_folder(temporary))
    keeper = [sys.executable, "-I", "-S", str(_KEEPER), str(os.getpid()), *folders]
    return subprocess.Popen(
        [*keeper, program, *words[1:]],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        env=environment,
    )
