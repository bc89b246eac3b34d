"""Programs that agents meet in the place of their coordinator, and relays between both."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from joined_agents import LONG, connected

from waywiser.cluster.connection.run_certificate import RunCertificate

Serve = Callable[[socket.socket], None]

_READ_BYTES = 1 << 16


@contextmanager
def server(serve: Serve) -> Iterator[str]:
    """The address of a program that serves each connection in a thread, until the end."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threads: list[threading.Thread] = []
        accepted: list[socket.socket] = []

        def accept() -> None:
            with suppress(OSError):
                while True:
                    connection, _ = listener.accept()
                    connection.settimeout(LONG)
                    accepted.append(connection)
                    threads.append(threading.Thread(target=serve_one, args=(connection,)))
                    threads[-1].start()

        def serve_one(connection: socket.socket) -> None:
            with suppress(OSError), connection:
                serve(connection)

        accepting = threading.Thread(target=accept)
        accepting.start()
        try:
            yield f"127.0.0.1:{listener.getsockname()[1]}"
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            accepting.join()
            for connection in accepted:
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
            for thread in threads:
                thread.join()


@contextmanager
def secure_server(serve: Callable[[ssl.SSLSocket], None]) -> Iterator[str]:
    """The same over TLS with a certificate of its own."""
    context = RunCertificate().context

    def serve_plain(connection: socket.socket) -> None:
        with context.wrap_socket(connection, server_side=True) as channel:
            serve(channel)

    with server(serve_plain) as address:
        yield address


@contextmanager
def relay(
    address: str,
    to_coordinator: Callable[[bytes], bytes] = bytes,
    to_agent: Callable[[bytes], bytes] = bytes,
) -> Iterator[str]:
    """Passes on what both say, as the two functions change it, and knows nothing of TLS."""

    def serve(connection: socket.socket) -> None:
        with connected(address) as other:
            back = threading.Thread(target=_pass, args=(other, connection, to_agent))
            back.start()
            _pass(connection, other, to_coordinator)
            back.join()

    with server(serve) as found:
        yield found


def _pass(source: socket.socket, to: socket.socket, change: Callable[[bytes], bytes]) -> None:
    with suppress(OSError):
        while data := source.recv(_READ_BYTES):
            to.sendall(change(data))
    for end in (source, to):
        with suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
