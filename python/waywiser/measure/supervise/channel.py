"""Conversations in lines, of which each is a JSON value, version first:

    {"v":1,"type":"prepare","id":7,"order":{...}}\n

Messages are strict: a field that this version does not know is an error, not a surprise later. A
channel is one end of a conversation, over two pipes, over a socket, or in TLS over a socket. It
knows lines, and nothing of the process at the other end. Over descriptors that do not block, it
waits only up to a deadline.
"""

from __future__ import annotations

import os
import select
import threading
from collections import deque
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

import msgspec

from waywiser.measure.supervise.deadline import Deadline
from waywiser.words import Closeable, WaywiserError, with_short_quotes

if TYPE_CHECKING:  # workers over pipes start sooner without it
    import socket

LONGEST_LINE_BYTES = 64 << 20
"""No honest line is longer: 5,000 samples of 200 transfers are 25 MB. Beyond it a process is
faulty, and its supervisor must not collect what it prints in memory."""

_To = TypeVar("_To")
_From = TypeVar("_From")
_Kind = TypeVar("_Kind")

_encoder = msgspec.json.Encoder()


class ProtocolError(WaywiserError):
    """A line that is not in the protocol, or not in this version of it."""


class _Versioned(msgspec.Struct):
    v: int


class LineProtocol(Generic[_To, _From]):
    """What a supervisor may say and what it may hear, as unions of tagged messages."""

    def __init__(self, version: int, said: Any, heard: Any) -> None:
        self.version = version
        self._prefix = b'{"v":%d,' % version
        self._said: msgspec.json.Decoder[_To] = msgspec.json.Decoder(said)
        self._heard: msgspec.json.Decoder[_From] = msgspec.json.Decoder(heard)

    def encode(self, message: _To | _From) -> bytes:
        """The message as one line, newline included."""
        return self._prefix + _encoder.encode(message)[1:] + b"\n"

    def decode_said(self, line: bytes) -> _To:
        """What a supervisor said. Raises `ProtocolError`."""
        return self._decode(line, self._said)

    def decode_heard(self, line: bytes) -> _From:
        """What a supervisor hears. Raises `ProtocolError`."""
        return self._decode(line, self._heard)

    def _decode(self, line: bytes, decoder: msgspec.json.Decoder[_Kind]) -> _Kind:
        if not line.startswith(self._prefix):
            raise self._not_this_version(line)
        try:
            return decoder.decode(b"{" + line[len(self._prefix) :])
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            why = with_short_quotes(str(error))
            raise ProtocolError(f"a line outside the protocol ({why}): {excerpt(line)}") from error

    def _not_this_version(self, line: bytes) -> ProtocolError:
        found = decode_any(line, _Versioned)
        if found is None:
            return ProtocolError(f"a line outside the protocol: {excerpt(line)}")
        if found.v == self.version:
            return ProtocolError(f"a line that does not begin with its version: {excerpt(line)}")
        return ProtocolError(
            f"a line of protocol version {found.v}, this is version {self.version}",
            remedy="both ends come from different installations; use one",
        )


def decode_any(line: bytes, kind: type[_Kind]) -> _Kind | None:
    """The fields of a line of any version; None for a line that does not have them."""
    try:
        return msgspec.json.decode(line, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def excerpt(line: bytes, characters: int = 80) -> str:
    """The head of a line for an error message, with what cannot be printed escaped."""
    text = line[: characters * 4].decode("utf-8", "backslashreplace")
    return repr(text[:characters] + ("…" if len(text) > characters else ""))


class Lines:
    """Cuts a stream of bytes into lines; keeps the unfinished one."""

    def __init__(self, maximum_bytes: int = LONGEST_LINE_BYTES) -> None:
        self.maximum_bytes = maximum_bytes
        self._pieces: list[bytes] = []
        self._pending_bytes = 0

    def feed(self, data: bytes) -> list[bytes]:
        """The lines that `data` completes, without newlines. Raises `ProtocolError` beyond the
        longest line allowed."""
        *complete, rest = data.split(b"\n")
        lines = []
        for piece in complete:
            lines.append(b"".join((*self._pieces, piece)))
            self._pieces.clear()
            self._pending_bytes = 0
        if rest:
            self._pieces.append(rest)
            self._pending_bytes += len(rest)
        longest = max([self._pending_bytes, *map(len, lines)])
        if longest > self.maximum_bytes:
            head = excerpt(self._pieces[0] if self._pieces else lines[0])
            raise ProtocolError(f"a line of more than {self.maximum_bytes} bytes: {head}")
        return lines

    @property
    def unfinished(self) -> bytes:
        """What came after the last newline."""
        return b"".join(self._pieces)


READ_BYTES = 1 << 20
"""All that a pipe holds, unless an administrator has allowed larger pipes."""

_SHUT_RDWR = 2  # from <sys/socket.h>

LOOK_SECONDS = 1.0
"""A wait is divided: Python sees a signal that came just before a system call only after it."""


class ChannelClosed(ConnectionError):
    """The other end is closed: nothing more comes, or nothing more is read."""


class Cipher(Protocol):
    """What encrypts a channel: `waywiser.cluster.connection.secure_channel.SecureChannel`."""

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
        """Whole lines that have arrived and were not taken."""
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
        """Sends a line that need not arrive: not to a channel that is full or closed. What cannot
        be sent at once comes before the next line."""
        with self.sending, suppress(ChannelClosed):
            if not self.is_pending:
                self.put(line)
                self.flush()

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

    def hang_up(self, how: int = _SHUT_RDWR) -> None:
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
