"""The price of a layout: its rate over that of contiguous bytes on the same path."""

from __future__ import annotations

from waywiser.words import Transfer, Workload

NEAREST = 1.5
"""Sizes this far apart, as a factor, are still compared: a layout takes whole units only."""


class Contiguous:
    """Rates of contiguous transfers, by path and executor with its default settings."""

    def __init__(self) -> None:
        self._rates: dict[str, dict[int, float]] = {}

    def add(self, workload: Workload, rate: float) -> None:
        """Takes note of a series' rate in bytes per second, if it is of contiguous bytes."""
        transfer = _only_transfer(workload)
        if transfer is not None and transfer.layout is None and not transfer.parameters:
            self._rates.setdefault(str(transfer.path), {})[transfer.bytes] = rate

    def share(self, workload: Workload, rate: float) -> float | None:
        """A layout's rate over that of contiguous bytes by the same executor at the nearest size;
        None where that was not measured, and for anything else."""
        transfer = _only_transfer(workload)
        if transfer is None or transfer.layout is None:
            return None
        rates = self._rates.get(str(transfer.path), {})
        size = transfer.bytes
        near = min(rates, key=lambda known: max(known / size, size / known), default=None)
        if near is None or max(near / size, size / near) > NEAREST:
            return None
        return rate / rates[near]


def _only_transfer(workload: Workload) -> Transfer | None:
    return workload.transfer if workload.cache == "warm" else None
