"""The certificate of a coordinator: made for one run, never in a file."""

from __future__ import annotations

import os
import ssl
from datetime import UTC, datetime

from waywiser.cluster.connection.secure_channel import fingerprint_of
from waywiser.words import WaywiserError

_BEGIN, _END = datetime(1970, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, tzinfo=UTC)
"""Clocks of nodes may be wrong, and the key does not outlive the run."""


class CertificateError(WaywiserError):
    """No certificate can be made here."""


class RunCertificate:
    """A new key with its certificate. Raises `CertificateError`."""

    def __init__(self) -> None:
        pem, der = _made()
        self.fingerprint = fingerprint_of(der)
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        """For the server's end of channels."""
        self.context.minimum_version = ssl.TLSVersion.TLSv1_3
        self.context.num_tickets = 0  # no connection is resumed
        try:
            file = os.memfd_create("waywiser-certificate")
            try:
                os.write(file, pem)
                self.context.load_cert_chain(f"/proc/self/fd/{file}")
            finally:
                os.close(file)
        except OSError as error:
            raise CertificateError(
                f"the certificate of this run cannot be loaded: {error.strerror}",
                remedy="see whether /proc is mounted, and memory is free",
            ) from error


def _made() -> tuple[bytes, bytes]:
    """Key and certificate as PEM, and the certificate as DER."""
    try:  # only a coordinator needs it, and it takes 0.1 s to load
        from cryptography import x509
        from cryptography.hazmat.primitives.asymmetric import ec
        from cryptography.hazmat.primitives.hashes import SHA256
        from cryptography.hazmat.primitives.serialization import (
            Encoding,
            NoEncryption,
            PrivateFormat,
        )
    except ImportError as error:
        raise CertificateError(
            f"the coordinator needs the package cryptography, which cannot be loaded ({error})",
            remedy="pip install cryptography",
        ) from error
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "waywiser")])
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(_BEGIN)
        .not_valid_after(_END)
        .sign(key, SHA256())
    )
    secret = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return secret + certificate.public_bytes(Encoding.PEM), certificate.public_bytes(Encoding.DER)
