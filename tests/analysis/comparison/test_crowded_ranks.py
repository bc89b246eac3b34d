"""Messages between ranks that share CPUs are shown with a flag, and never compared."""

from __future__ import annotations

import random
from pathlib import Path

import msgspec
import pytest

from profiles import ENVIRONMENT, machine, samples, visit, workload
from waywiser.curves.subject import read_subject
from waywiser.machine.machine import PlacedRank
from waywiser.profile import Profile, WritableProfile
from waywiser.profile.estimate import estimate
from waywiser.profile.quality_flags import CROWDED, are_crowded
from waywiser.words import Workload
from waywiser.words.records import Series

ALONE = "pageable@rank:0 -> pageable@rank:1 by mpi"
SHARING = "pageable@rank:0 -> pageable@rank:2 by mpi"

RANKS = (PlacedRank(0, (0,), 0), PlacedRank(1, (1,), 0), PlacedRank(2, (0,), 0))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    here = msgspec.structs.replace(machine(), ranks=RANKS, messages="MPICH 5.0.2")
    path = tmp_path / "a.wwp"
    with WritableProfile.create(path, here, ENVIRONMENT) as profile:
        for n, text in enumerate((ALONE, SHARING)):
            taken = samples(random.Random(n), 1e-3)
            profile.commit_visit(visit(workload(text, 2**20), 0, taken))
    return path


def test_they_have_no_verdict(file: Path) -> None:
    node = read_subject(file)
    assert [series.workload.curve for series in node.points] == [ALONE]
    (missing,) = [each for each in node.unsupported_paths if each.path == SHARING]
    assert missing.reason == "its ranks share CPUs: how they take turns has no verdict"


def test_they_are_flagged(file: Path) -> None:
    with Profile.open(file) as profile:
        series = [Series(each.workload, (each,)) for each in profile.visits()]
        estimates = [estimate(each, profile.machine) for each in series]
    flagged = [
        [flag.what for flag in each.quality_flags if flag.kind == CROWDED]
        for each in estimates
        if each is not None
    ]
    assert flagged == [[], ["its ranks share CPUs"]]


def test_sets_are_crowded_if_ranks_of_different_pairs_share_cpus() -> None:
    four = (*RANKS[:2], PlacedRank(2, (1,), 0), PlacedRank(3, (3,), 0))
    here = msgspec.structs.replace(machine(), ranks=four)
    pairs = Workload.parse(f"{ALONE}; pageable@rank:2 -> pageable@rank:3 by mpi")
    assert are_crowded(pairs, here)
    assert not are_crowded(Workload.parse(ALONE), here)
    assert not are_crowded(Workload.parse("pageable@numa:0 -> pageable@numa:0 by cpu"), here)
