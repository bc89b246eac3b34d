"""TLS 1.3 between a coordinator and its agents, without a socket: bytes of the network go in and
come out, and the bytes of the peer with them.

No authority signs the certificate of a coordinator: it is made for the run, and each proof
of the token covers its fingerprint (`waywiser.cluster.connection.token_proof`).
"""

from __future__ import annotations

import hashlib
import ssl

from waywiser.words import WaywiserError

_RECORD_BYTES = 1 << 14
"""The plain bytes of one record of TLS. More at once only lets buffers grow, which stay large."""

_HANDSHAKE_BYTES = 1 << 14
"""The most bytes of a handshake, which takes 2,000; what is unfinished stays in memory."""

_ALERT, _HANDSHAKE = 21, 22
"""The first byte of what a peer sends that speaks TLS."""


class ChannelError(WaywiserError):
    """What the peer sent is not TLS, or was changed on its way."""


class SecureChannel:
    """One end of a channel. A server needs a context with a certificate, of
    `waywiser.cluster.connection.run_certificate`. One thread at a time may use it."""

    def __init__(self, context: ssl.SSLContext | None = None) -> None:
        self._server = context
        self._in, self._out = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls: ssl.SSLObject | None = None
        """None in a server until the peer has sent a byte: a silent connection costs little."""
        self._early: list[bytes] = []
        self._failed = False
        self._handshake_bytes = 0
        self.has_begun = False
        """Whether anything was received."""
        self.is_open = False
        """Whether the handshake of TLS is complete. The peer may still be anyone."""
        if context is None:
            self._tls = client_context().wrap_bio(self._in, self._out)
            self._shake_hands(self._tls)

    @property
    def certificate(self) -> str:
        """The fingerprint of the certificate of the server; only a client of an open channel has
        it."""
        given = self._tls.getpeercert(binary_form=True) if self._tls else None
        return fingerprint_of(given or b"")

    def receive(self, data: bytes) -> bytes:
        """Takes bytes of the network, at least one. Returns those of the peer that they complete.
        Raises `ChannelError`; what `unsent` returns then says so to the peer."""
        if self._failed:
            return b""
        try:
            if not self.has_begun and data[0] not in (_ALERT, _HANDSHAKE):
                raise ChannelError("something that is not TLS")
            self.has_begun = True
            self._handshake_bytes += 0 if self.is_open else len(data)
            if self._handshake_bytes > _HANDSHAKE_BYTES:
                raise ChannelError("a handshake that is too long")
            if self._tls is None:
                assert self._server is not None
                self._tls = self._server.wrap_bio(self._in, self._out, server_side=True)
            self._in.write(data)
            if not self.is_open and not self._shake_hands(self._tls):
                return b""
            return _plain(self._tls)
        except ssl.SSLError as error:
            self._failed = True
            reason = (error.reason or "a broken record").replace("_", " ").lower()
            raise ChannelError(f"something that TLS does not allow: {reason}") from error
        except ChannelError:
            self._failed = True
            raise

    def send(self, data: bytes) -> bytes:
        """Returns the bytes of the network that send these, and all that is unsent. Before the
        channel is open they are kept until it is."""
        if self._tls is None or not self.is_open:
            self._early += [data] if data else []
            return self.unsent()
        sent = [self._out.read()]
        for start in range(0, 0 if self._failed else len(data), _RECORD_BYTES):
            self._tls.write(data[start : start + _RECORD_BYTES])
            sent.append(self._out.read())
        return b"".join(sent)

    def unsent(self) -> bytes:
        """Bytes of the network that TLS itself sends."""
        return self._out.read()

    def _shake_hands(self, tls: ssl.SSLObject) -> bool:
        """Whether the handshake is complete."""
        try:
            tls.do_handshake()
        except ssl.SSLWantReadError:
            return False
        self.is_open = True
        for data in self._early:
            tls.write(data)
        self._early.clear()
        return True


def fingerprint_of(certificate: bytes) -> str:
    """The SHA-256 of a certificate in DER."""
    return hashlib.sha256(certificate).hexdigest()


def client_context() -> ssl.SSLContext:
    """TLS 1.3 with any certificate; that the peer has its key is checked by TLS."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def _plain(tls: ssl.SSLObject) -> bytes:
    """All that can be read."""
    found = []
    try:
        while data := tls.read(_RECORD_BYTES):
            found.append(data)
    except ssl.SSLWantReadError:
        pass
    return b"".join(found)
