from __future__ import annotations

import random
from pathlib import Path

import msgspec
import pytest

import profiles
from waywiser.curves.overview import Overview, overview
from waywiser.profile import Profile, WritableProfile
from waywiser.profile.quality_flags import REMEDIES
from waywiser.words.records import Failure, Visit


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Overview:
    path = profiles.write(tmp_path_factory.mktemp("overview") / "a.wwp", blocks=7)
    with Profile.open(path) as profile:
        return overview(profile)


def of(folder: Path, *visits: Visit) -> Overview:
    with WritableProfile.create(folder / "a.wwp", profiles.machine(), {}) as profile:
        for visit in visits:
            profile.commit_visit(visit)
        return overview(profile)


def test_each_series_is_counted_once(found: Overview) -> None:
    summary = found.summary
    absent = (summary.failed, summary.unsupported, summary.skipped)
    parts = (summary.converged, summary.not_converged, *absent)
    assert sum(parts) == summary.series == len(found.series)
    assert summary.curves == len({point.curve for point in found.series})
    assert summary.blocks == 7


def test_seven_blocks_are_reported_between_processes(found: Overview) -> None:
    known = [point.estimate for point in found.series if point.estimate is not None]
    assert {estimate.kind for estimate in known} == {"between processes"}


def test_warnings_come_gravest_first_with_their_remedies(found: Overview) -> None:
    kinds = [group.reason for group in found.warnings]
    assert kinds == [kind for kind in REMEDIES if kind in kinds]
    assert all(group.remedy == REMEDIES[group.reason] for group in found.warnings)


def test_every_failed_visit_is_named(found: Overview) -> None:
    failed = [visit for visit in profiles.visits(blocks=7) if visit.failure is not None]
    assert sum(len(group.members) for group in found.failures) == len(failed)
    sizes = [len(group.members) for group in found.failures]
    assert sizes == sorted(sizes, reverse=True)


def test_what_the_measuring_remarked_is_grouped(tmp_path: Path) -> None:
    rng = random.Random(1)
    what = profiles.workload(profiles.H2D, 2**20)
    visits = [
        msgspec.structs.replace(
            profiles.visit(what, block, profiles.samples(rng, 1e-3)), notes=("spin gate",)
        )
        for block in range(2)
    ]
    (note,) = of(tmp_path, *visits).notes
    assert (note.reason, len(note.members)) == ("spin gate", 2)


def test_what_is_still_to_be_measured_is_counted(tmp_path: Path) -> None:
    path = tmp_path / "a.wwp"
    plan = b'{"estimate": {"visits": 3, "seconds": 1.5}, "request": {}}'
    with WritableProfile.create(path, profiles.machine(), {}, plan_json=plan) as profile:
        for size in (2**20, 2**21):
            what = profiles.workload(profiles.H2D, size)
            profile.commit_visit(profiles.visit(what, 0, profiles.samples(random.Random(1), 1e-3)))
        interrupted = profiles.visit(
            profiles.workload(profiles.H2D, 2**22), 0, failure=Failure("interrupted", "stopped")
        )
        profile.commit_visit(interrupted)
        result = overview(profile)
    assert (result.visits, result.planned_visits) == (2, 3)


def test_a_plan_that_says_nothing_promises_nothing(found: Overview) -> None:
    assert found.planned_visits is None


def test_a_size_skipped_in_one_block_counts_by_the_others(tmp_path: Path) -> None:
    what = profiles.workload(profiles.H2D, 2**30)
    good = profiles.visit(what, 0, profiles.samples(random.Random(1), 20e-3))
    bare = profiles.visit(what, 1, failure=Failure("skipped", "the bandwidth has saturated"))
    result = of(tmp_path, good, msgspec.structs.replace(bare, stop="skipped"))
    (point,) = result.series
    assert point.estimate is not None
    assert point.estimate.converged and point.estimate.stop == "converged"
    assert point.estimate.quality_flags == ()
    assert (result.failures, len(result.skipped)) == ((), 1)
    assert (result.summary.converged, result.summary.skipped) == (1, 0)


def test_what_the_machine_does_not_support_is_no_failure(tmp_path: Path) -> None:
    pages = Failure("not-supported", "no huge pages are reserved")
    what = [profiles.workload(profiles.H2D, 2**20), profiles.workload(profiles.H2D, 2**21)]
    unsupported_paths = [profiles.visit(what[0], block, failure=pages) for block in range(2)]
    crashed = profiles.visit(what[1], 0, failure=Failure("crash", "SIGSEGV"))
    result = of(tmp_path, *unsupported_paths, crashed, profiles.visit(what[1], 1, failure=pages))
    assert [(each.kind, each.reason) for each in result.failures] == [("crash", "SIGSEGV")]
    (unsupported,) = result.unsupported
    assert (unsupported.reason, len(unsupported.members)) == ("no huge pages are reserved", 2)
    assert (result.summary.unsupported, result.summary.failed) == (1, 1)


def test_it_goes_through_json_and_back(found: Overview) -> None:
    assert msgspec.json.decode(msgspec.json.encode(found), type=Overview) == found
