"""Regimes: ranges of sizes in which the same thing sets the time of a transfer."""

from __future__ import annotations

from typing import Literal

from waywiser.words import Workload, number_format

Regime = Literal["operation", "latency", "medium", "bandwidth"]
"""What sets the time: an operation; what it costs to begin; both; the bandwidth."""

START_BYTES = number_format.RATE_BYTES
"""Below this size the time is that of beginning."""

BANDWIDTH_BYTES = 16 * 2**20
"""Size from which on the bandwidth sets the time: over PCIe 5 the start takes then under 1 %. A
survey measures bandwidths at this size where a larger one would take long."""


def regime_of(workload: Workload) -> Regime:
    """The regime by the bytes of the largest transfer of a workload."""
    if workload.kind == "operation":
        return "operation"
    size = max(transfer.bytes for transfer in workload.transfers)
    if size < START_BYTES:
        return "latency"
    return "medium" if size < BANDWIDTH_BYTES else "bandwidth"
