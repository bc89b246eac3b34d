"""What a survey may have seen of the copies of GPUs."""

from __future__ import annotations

from collections.abc import Mapping

from waywiser.machine.traits import Traits
from waywiser.words import Transfer
from waywiser.words.records import Observation, ObservedCopy, WhileOccupied, WhoCopies

LOCAL = "device@gpu:{0} -> device@gpu:{0} by copy-engine"
COPIES: dict[str, WhileOccupied] = {
    f"{LOCAL} of 4096": "waited",
    f"{LOCAL} of 1048576": "waited",
    f"{LOCAL}[api=sync] of 1048576": "waited",
    f"{LOCAL} as box[height=64,width=2048] of 1048576": "waited",
    "device@gpu:{0} -> device@gpu:{0} by batch as list[piece=65536] of 1048576": "waited",
    "pinned@numa:0 -> device@gpu:{0} by copy-engine of 1048576": "ended",
    "device@gpu:{0} -> pinned@numa:0 by copy-engine of 1048576": "ended",
}
"""As on an H100, with the number of the GPU left open."""


def seen(copies: Mapping[str, WhileOccupied] = COPIES, gpus: int = 2) -> tuple[WhoCopies, ...]:
    """What was seen on each GPU."""
    return tuple(
        WhoCopies(
            gpu,
            "2026-11-25T12:00:00.000+00:00",
            Observation("waited"),
            Observation("waited"),
            tuple(
                ObservedCopy(
                    Transfer.parse(text.format(gpu)),
                    Observation(found, "other work" if found == "undecided" else ""),
                )
                for text, found in copies.items()
            ),
            0.2,
        )
        for gpu in range(gpus)
    )


def traits(copies: Mapping[str, WhileOccupied] = COPIES, gpus: int = 2) -> Traits:
    """The traits of this version with what was seen."""
    return Traits(who_copies=seen(copies, gpus))
