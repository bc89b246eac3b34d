"""Lines between processes: a JSON value each, version first.

    {"v":1,"type":"prepare","id":7,"order":{...}}\\n

Messages are strict: a field that this version does not know is an error, not a surprise later.
"""

from __future__ import annotations

from typing import Any, Generic, TypeVar

import msgspec

from waywiser.words import WaywiserError
from waywiser.words.visible import with_short_quotes

LONGEST_LINE_BYTES = 64 << 20
"""No honest line is longer: 5,000 samples of 200 transfers are 25 MB. Beyond it a process babbles,
and its supervisor must not collect that in memory."""

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
