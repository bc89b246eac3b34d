"""What is known of a transfer at one moment."""

from __future__ import annotations

from dataclasses import dataclass

from waywiser.transfer.errors import TransferError


@dataclass(frozen=True, slots=True, kw_only=True)
class TransferInfo:
    """What is known of a transfer at one moment, from `TransferHandle.query`."""

    ended: bool
    """Whether it has ended, in success or failure."""
    moved: int
    """Bytes that have arrived."""
    bytes: int
    """Bytes of the whole transfer. A read that meets the end of its file moves fewer."""
    error: TransferError | None
    """What ``result()`` raises, if the transfer has failed or was cancelled."""
