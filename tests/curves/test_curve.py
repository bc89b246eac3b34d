from __future__ import annotations

from pathlib import Path

import msgspec

import profiles
from waywiser.curves.curve import Point, VisitStart
from waywiser.curves.overview import overview
from waywiser.profile import Profile, WritableProfile
from waywiser.words.records import Failure, Visit

SIZE = 2**20
JSON_FIELDS = [
    *("identity", "workload", "curve", "name", "transfer_rates", "bytes", "cache", "mode"),
    *("estimate", "bound", "of_bound", "seconds", "left_out", "like", "of_contiguous", "link_use"),
]


def stored(path: Path, *visits: Visit) -> Path:
    with WritableProfile.create(path, profiles.machine(), {}) as profile:
        for visit in visits:
            profile.commit_visit(visit)
    return path


def begun(visit: Visit, worker: int, started: str) -> Visit:
    return msgspec.structs.replace(visit, worker=worker, started=started)


def test_a_point_keeps_process_and_time_of_each_visit(tmp_path: Path) -> None:
    what = profiles.workload(profiles.H2D, SIZE)
    first = begun(profiles.visit(what, 0), 1, "2026-11-20T10:00:00Z")
    failed = profiles.visit(what, 1, failure=Failure("crash", "SIGSEGV"))
    later = begun(failed, 7, "2026-11-21T23:59:59Z")
    with Profile.open(stored(tmp_path / "a.wwp", first, later)) as profile:
        (point,) = overview(profile).series
    assert point.workload == what
    assert point.visits == (
        VisitStart(0, 1, "2026-11-20T10:00:00Z"),
        VisitStart(1, 7, "2026-11-21T23:59:59Z"),
    )


def test_json_has_the_fields_of_its_schema_in_their_order(tmp_path: Path) -> None:
    with Profile.open(profiles.write(tmp_path / "a.wwp")) as profile:
        found = overview(profile)
    written = msgspec.json.decode(msgspec.json.encode(found.for_json()))
    assert [list(series) for series in written["series"]] == [JSON_FIELDS] * len(found.series)
    for series, point in zip(written["series"], found.series, strict=True):
        assert series["workload"] == point.text == str(point.workload)
        assert series["seconds"] == point.spent_seconds


def test_what_was_not_measured_has_no_rate(tmp_path: Path) -> None:
    what = profiles.workload(profiles.H2D, SIZE)
    visit = profiles.visit(what, 0, failure=Failure("crash", "SIGSEGV"))
    with Profile.open(stored(tmp_path / "a.wwp", visit)) as profile:
        (point,) = overview(profile).series
    assert isinstance(point, Point)
    assert (point.estimate, point.rate) == (None, 0.0)
