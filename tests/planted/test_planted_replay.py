"""A recorded survey replayed, with one GPU's copies slower: they are worse, and nothing else is.

The samples go the whole way of a survey: a worker process answers from the recording, the
supervisor hands visits over, profiles are written and read, and digests are compared.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from analysis.comparison.nodes import losses
from kept import unpacked
from measure.probe.scripted_orders import an_order
from planted.noise import RESULTS
from replaying import Scale, command
from waywiser.analysis.comparison.comparison import compare
from waywiser.curves.subject import Subject, read_subject
from waywiser.measure.probe.options import ProbeOptions
from waywiser.measure.probe.supervisor import run_orders
from waywiser.profile import Profile, WritableProfile
from waywiser.words import Memory, Place, Transfer, Workload

RECORDED = RESULTS / "2026-11-20-h200" / "two-gpus" / "standard.wwp.xz"
SLOWED = Place("gpu", 1)
PAGE_LOCKED = {"pinned", "write-combined", "device"}
USUAL = (
    "pinned@numa:0 -> device@gpu:1 by copy-engine",
    "device@gpu:1 -> pinned@numa:0 by copy-engine",
    "write-combined@numa:0 -> device@gpu:1 by copy-engine",
    "device@gpu:1 -> write-combined@numa:0 by copy-engine",
    "device@gpu:0 -> device@gpu:1 by copy-engine",
    "device@gpu:1 -> device@gpu:0 by copy-engine",
    "device@gpu:1 -> device@gpu:1 by copy-engine",
)
"""What is asked of a GPU first; two blocks of rarer settings may be too few for an answer."""


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpacked(RECORDED, tmp_path_factory.mktemp("recording") / "two-gpus.wwp")


@pytest.fixture(scope="module")
def before(recording: Path) -> Subject:
    return replayed(recording, "before", (), 1)


def replayed(recording: Path, name: str, scales: tuple[Scale, ...], resample: int) -> Subject:
    """A profile of every copy that was recorded, measured again by a worker that replays it."""
    file = recording.with_name(f"{name}.wwp")
    with Profile.open(recording) as profile:
        machine = profile.machine
        orders = [
            replace(an_order(block=visit.block), workload=visit.workload)
            for visit in profile.visits()
            if is_copy(visit.workload) and visit.failure is None
        ]
    with WritableProfile.create(file, machine, {}) as profile:
        options = ProbeOptions(command=command(recording, scales, resample))
        run_orders(orders, machine, options=options, on_visit=profile.commit_visit)
    return read_subject(file)


def is_copy(workload: Workload) -> bool:
    """Whether copy engines copy, between memories that they access directly."""
    return bool(workload.transfers) and all(
        transfer.path.executor == "copy-engine"
        and transfer.layout is None
        and {end.kind for end in ends(transfer)} <= PAGE_LOCKED
        for transfer in workload.transfers
    )


def ends(transfer: Transfer) -> tuple[Memory, Memory]:
    return transfer.path.source, transfer.path.destination


def touches(curve: str) -> bool:
    transfers = Workload.parse(curve).transfers
    return any(end.place == SLOWED for transfer in transfers for end in ends(transfer))


def test_one_gpus_copies_that_are_5_percent_slower_are_worse_and_no_others(
    recording: Path, before: Subject
) -> None:
    after = replayed(recording, "slower", (Scale(str(SLOWED), 1.05),), 2)
    found = compare([before], [after])
    slow = {path.curve for path in found.of("suspected")}
    same = {path.curve for path in found.of("no change")}
    assert slow >= set(USUAL)
    assert all(map(touches, slow))
    assert len(same) >= 10
    assert not found.of("improvement", "missing", "new")


def test_a_replay_with_nothing_slower_is_the_same_or_unclear(
    recording: Path, before: Subject
) -> None:
    found = compare([before], [replayed(recording, "again", (), 2)])
    assert not losses(found)
    assert not found.of("improvement", "missing", "new")
    assert {path.curve for path in found.of("no change")} >= set(USUAL)
