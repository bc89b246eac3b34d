"""One end of a conversation in lines: over two pipes, over a socket, or in TLS over a socket.

A channel knows lines, and nothing of the process at the other end. It never blocks unless it is
told to, or its descriptors do.
"""

from __future__ import annotations

import os
import select
import socket
import threading
from collections import deque
from contextlib import ExitStack, suppress
from typing import Protocol

from waywiser.measure.supervise.deadline import Deadline
from waywiser.measure.supervise.lines import LONGEST_LINE_BYTES, Lines
from waywiser.words.closeable import Closeable

READ_BYTES = 1 << 20
"""All that a pipe holds, unless an administrator has allowed larger pipes."""

LOOK_SECONDS = 1.0
"""A wait is divided: Python sees a signal that came just before a system call only after it."""


class ChannelClosed(ConnectionError):
    """The other end is closed: nothing more comes, or nothing more is read."""


class Cipher(Protocol):
    """What encrypts a channel: `waywiser.cluster.secure_channel.SecureChannel`."""

    def receive(self, data: bytes) -> bytes: ...

    def send(self, data: bytes) -> bytes: ...


class LineChannel(Closeable):
    """Takes over the descriptors that it reads from and writes to, or a socket. One thread
    receives, any may `send` and `offer`. ``peer`` is what errors call the other end."""

    def __init__(
        self,
        reads: int | socket.socket,
        writes: int = -1,
        *,
        longest_bytes: int = LONGEST_LINE_BYTES,
        cipher: Cipher | None = None,
        peer: str = "the other end",
    ) -> None:
        self.socket = None if isinstance(reads, int) else reads
        self.reads = reads if isinstance(reads, int) else reads.fileno()
        self.writes = writes if isinstance(reads, int) else self.reads
        self.heard: deque[bytes] = deque()
        """Whole lines that have arrived and nobody has taken."""
        self.sending = threading.Lock()
        """Held by who sends: lines are sent one after the other."""
        self._lines = Lines(longest_bytes)
        self._unsent: deque[memoryview] = deque()
        self._cipher, self._using = cipher, threading.Lock()
        self._peer = peer

    def receive(self, most_bytes: int = READ_BYTES) -> None:
        """Takes in what has arrived; call when ``reads`` is readable. Raises `ChannelClosed` when
        nothing more can come, `BlockingIOError` when nothing has come, `ProtocolError` for a line
        that is too long, and what the cipher raises."""
        try:
            data = os.read(self.reads, most_bytes)
        except BlockingIOError:
            raise
        except OSError as error:
            raise ChannelClosed(*error.args) from error
        if not data:
            raise ChannelClosed(f"{self._peer} closed the connection")
        if self._cipher is not None:
            with self._using:
                data = self._cipher.receive(data)
        self.heard.extend(self._lines.feed(data))

    def next(self, deadline: Deadline) -> bytes:
        """The next line; waits for it. Raises as `receive`, and `TimeoutError`."""
        while not self.heard:
            self.wait(select.POLLIN, deadline)
            with suppress(BlockingIOError):
                self.receive()
        return self.heard.popleft()

    def taken(self) -> list[bytes]:
        """The lines that have arrived, which are taken."""
        lines = list(self.heard)
        self.heard.clear()
        return lines

    def allow_lines(self, longest_bytes: int) -> None:
        """Lines may be so long from now on."""
        self._lines.maximum_bytes = longest_bytes

    @property
    def is_torn(self) -> bool:
        """Whether the last that came is a line without its end."""
        return bool(self._lines.unfinished)

    def put(self, line: bytes) -> None:
        """Makes a line the last of what is unsent."""
        if self._cipher is not None:
            with self._using:
                line = self._cipher.send(line)
        if line:
            self._unsent.append(memoryview(line))

    def flush(self) -> bool:
        """Sends what can be sent at once; whether nothing is unsent. Raises `ChannelClosed`."""
        try:
            while self._unsent:
                sent = os.write(self.writes, self._unsent[0])
                self._unsent[0] = self._unsent[0][sent:]
                if not self._unsent[0]:
                    self._unsent.popleft()
        except BlockingIOError:
            return False
        except OSError as error:
            self._unsent.clear()
            raise ChannelClosed(*error.args) from error
        return True

    @property
    def is_pending(self) -> bool:
        """Whether something is unsent."""
        return bool(self._unsent)

    def send(self, line: bytes, deadline: Deadline) -> None:
        """Sends a line; waits until it is taken. Raises `ChannelClosed`, `TimeoutError`, and what
        the cipher raises."""
        with self.sending:
            self.put(line)
            while not self.flush():
                self.wait(select.POLLOUT, deadline)

    def offer(self, line: bytes) -> None:
        """Sends a line that need not arrive: not to a channel that is full or closed."""
        with self.sending, suppress(ChannelClosed):
            if self._unsent:
                return
            self.put(line)
            before = list(self._unsent)
            if not self.flush() and list(self._unsent) == before:
                self._unsent.clear()

    def wait(self, event: int, deadline: Deadline) -> None:
        """Waits until the descriptor can be read (``POLLIN``) or written to (``POLLOUT``). Raises
        `TimeoutError`, and `ChannelClosed` if another thread closes the channel."""
        while True:
            descriptor = self.reads if event == select.POLLIN else self.writes
            if descriptor < 0:  # its number may be that of another file now
                raise ChannelClosed("the connection was closed")
            if deadline.is_over:
                raise TimeoutError(f"{self._peer} does not answer in time")
            poll = select.poll()
            poll.register(descriptor, event)
            if poll.poll(1000 * min(deadline.left, LOOK_SECONDS)):
                return

    def hang_up(self, how: int = socket.SHUT_RDWR) -> None:
        """Ends the connection of a socket, which stays open here. Any thread may call it."""
        if self.socket is not None:
            with suppress(OSError):
                self.socket.shutdown(how)

    @property
    def is_closed(self) -> bool:
        return self.reads < 0

    def close(self) -> None:
        with ExitStack() as stack:
            if self.socket is not None:
                stack.callback(self.socket.close)
            elif not self.is_closed:
                stack.callback(os.close, self.reads)
                stack.callback(os.close, self.writes)
            self.reads = self.writes = -1
