"""Settings of kept and of made-up profiles, for the tests of all consumers."""

from __future__ import annotations

import random
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

import profiles
from kept import RESULTS, unpacked
from waywiser.curves.subject import Subject
from waywiser.machine.machine import Machine, NumaNode
from waywiser.profile import Profile, WritableProfile
from waywiser.words import Transfer, Workload

H100 = RESULTS / "2026-11-23-surveys" / "h100-standard-1.wwp.xz"
FOUR = RESULTS / "2026-11-20-h200-catalogue" / "four-gpus" / "standard.wwp.xz"
CHECK = RESULTS / "2026-11-20-h200-catalogue" / "one-gpu" / "check.wwp.xz"


@cache
def subject(packed: Path) -> Subject:
    with (
        TemporaryDirectory() as folder,
        Profile.open(unpacked(packed, Path(folder) / "a.wwp")) as profile,
    ):
        return Subject.of(profile)


def two_nodes() -> Machine:
    """`profiles.machine` with a second NUMA node; GPU 0 is at node 0, GPU 1 at node 1."""
    machine = profiles.machine()
    near, far = machine.gpus
    return msgspec.structs.replace(
        machine,
        numa=(*machine.numa, NumaNode(1, (4, 5), 32 * 2**30, 0)),
        gpus=(near, msgspec.structs.replace(far, numa=1)),
    )


def made(rates: dict[str, float], machine: Machine | None = None) -> Subject:
    """A subject with one series for each text of a transfer, at about so many bytes per second."""
    rng = random.Random(7)
    with TemporaryDirectory() as folder:
        file = Path(folder) / "a.wwp"
        with WritableProfile.create(file, machine or profiles.machine(), {}) as profile:
            for text, rate in rates.items():
                transfer = Transfer.parse(text)
                taken = profiles.samples(rng, transfer.bytes / rate, noise=1e-4)
                profile.commit_visit(profiles.visit(Workload((transfer,)), 0, taken))
        with Profile.open(file) as profile:
            return Subject.of(profile)


def comments(text: str) -> str:
    return "\n".join(line for line in text.splitlines() if line.startswith("#"))


def settings(text: str) -> list[str]:
    """The lines that are not comments."""
    return [line for line in text.splitlines() if line and not line.startswith("#")]


def lists(
    seconds: Iterable[tuple[int, int, float, float]], ends: str, engine: str
) -> dict[str, float]:
    """Rates of lists of (piece, count, kernel's time, engine's time)."""
    found: dict[str, float] = {}
    for piece, count, kernel, copied in seconds:
        size = piece * count
        found[f"{ends} by sm as list[piece={piece}] of {size}"] = size / kernel
        found[f"{ends} by {engine} as list[piece={piece}] of {size}"] = size / copied
    return found
