from __future__ import annotations

import math
import random
import sqlite3
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import profiles
import waywiser
from waywiser.profile import (
    ExistingFile,
    LockedProfile,
    NotWritable,
    Profile,
    ProfileError,
    RunHealth,
    WritableProfile,
    writing,
)
from waywiser.records import (
    BlockLatencies,
    Evidence,
    Failure,
    GpuHealth,
    GpuTraffic,
    Health,
    LinkBytes,
    Locality,
    Refusal,
    Samples,
    Visit,
)

WHAT = profiles.workload(profiles.H2D, 2**20)


def new(path: Path) -> Profile:
    return WritableProfile.create(path, profiles.machine(), profiles.ENVIRONMENT)


def good(block: int = 0) -> Visit:
    return profiles.visit(WHAT, block, profiles.samples(random.Random(block), 1e-3))


def test_everything_comes_back_as_it_went_in(tmp_path: Path) -> None:
    with Profile.open(profiles.write(tmp_path / "a.wwp")) as profile:
        assert list(profile.visits()) == list(profiles.visits())
        assert profile.machine == profiles.machine()
        assert profile.environment == profiles.ENVIRONMENT
        assert set(profile.refusals) == set(profiles.REFUSALS)
        assert msgspec.json.decode(profile.plan_json) == {"preset": "standard"}
        (run,) = profile.runs
        assert run.command == ("waywiser", "survey") and run.version == waywiser.__version__
        assert run.ended is not None and run.started <= run.ended


def test_series_hold_their_visits_in_block_order_by_curve_and_size(tmp_path: Path) -> None:
    with Profile.open(profiles.write(tmp_path / "a.wwp")) as profile:
        series = profile.series()
    assert {visit.workload.identity for visit in profiles.visits()} == {
        each.workload.identity for each in series
    }
    keys = [(each.workload.curve, each.workload.bytes) for each in series]
    assert keys == sorted(keys)
    for each in series:
        assert [v.block for v in each.visits] == sorted(v.block for v in each.visits)
        assert all(v.workload == each.workload for v in each.visits)


times = st.floats(1e-9, 1e3)


@st.composite
def any_samples(draw: st.DrawFn) -> Samples:
    count = draw(st.integers(1, 5))
    width = draw(st.integers(1, 3))

    def column(values: st.SearchStrategy[float]) -> tuple[float, ...]:
        return tuple(draw(st.lists(values, min_size=count, max_size=count)))

    def perhaps(values: st.SearchStrategy[float]) -> tuple[float, ...]:
        return column(values) if draw(st.booleans()) else ()

    counts = st.integers(1, 2**32 - 1)
    return Samples(
        span=column(times),
        host=perhaps(times),
        skew=perhaps(times),
        repetitions=perhaps(counts),  # type: ignore[arg-type]
        flags=perhaps(counts),  # type: ignore[arg-type]
        transfers=tuple(
            tuple(draw(st.lists(times, min_size=width, max_size=width))) for _ in range(count)
        ),
    )


@settings(max_examples=30)  # each commit waits for the disk
@given(taken=any_samples(), notes=st.lists(st.text(max_size=8), max_size=2))
def test_any_visit_comes_back_to_the_bit(
    tmp_path_factory: pytest.TempPathFactory, taken: Samples, notes: list[str]
) -> None:
    visit = msgspec.structs.replace(profiles.visit(WHAT, 3, taken), notes=tuple(notes))
    with new(tmp_path_factory.mktemp("any") / "a.wwp") as profile:
        profile.commit_visit(visit)
        assert list(profile.visits()) == [visit]


def test_a_gap_in_a_column_comes_back_as_no_number(tmp_path: Path) -> None:
    taken = Samples(span=(1.0, 2.0), host=(math.nan, 3.0))
    with new(tmp_path / "a.wwp") as profile:
        profile.commit_visit(profiles.visit(WHAT, 0, taken))
        (back,) = profile.visits()
    assert math.isnan(back.samples.host[0]) and back.samples.host[1] == 3.0


@pytest.mark.parametrize(
    "taken",
    [Samples(span=(math.nan,)), Samples(span=(math.inf,)), Samples(span=(1.0,), host=(1.0, 2.0))],
)
def test_samples_that_make_no_sense_leave_the_file_as_it_was(
    tmp_path: Path, taken: Samples
) -> None:
    with new(tmp_path / "a.wwp") as profile:
        with pytest.raises(ProfileError):
            profile.commit_visit(profiles.visit(WHAT, 0, taken))
        assert list(profile.visits()) == []
        profile.commit_visit(good())
        assert list(profile.visits()) == [good()]


def test_a_committed_visit_is_there_for_others_at_once(tmp_path: Path) -> None:
    path = tmp_path / "a.wwp"
    with new(path) as writer, Profile.open(path) as reader:
        assert list(reader.visits()) == []
        writer.commit_visit(good())
        assert list(reader.visits()) == [good()]


def test_finished_is_all_but_the_interrupted(tmp_path: Path) -> None:
    kinds = ["crash", "timeout", "out-of-memory", "wrong-bytes", "interrupted"]
    with new(tmp_path / "a.wwp") as profile:
        profile.commit_visit(good(0))
        for block, kind in enumerate(kinds, start=1):
            profile.commit_visit(profiles.visit(WHAT, block, failure=Failure(kind, "why")))
        assert profile.finished() == {(WHAT.identity, block) for block in range(5)}


def test_an_interrupted_visit_is_measured_again_and_a_finished_one_never(tmp_path: Path) -> None:
    stopped = profiles.visit(WHAT, 0, failure=Failure("interrupted", "Ctrl-C"))
    with new(tmp_path / "a.wwp") as profile:
        profile.commit_visit(stopped)
        profile.commit_visit(good())
        with pytest.raises(ProfileError, match="finished already"):
            profile.commit_visit(good())
        assert list(profile.visits()) == [good()]


def test_resume_is_a_further_run_with_its_own_environment(tmp_path: Path) -> None:
    path = tmp_path / "a.wwp"
    with new(path) as profile:
        profile.commit_visit(good(0))
    with WritableProfile.resume(
        path, {"driver": "999"}, command=["waywiser", "survey", "--resume"]
    ) as more:
        more.commit_visit(good(1))
    with Profile.open(path) as profile:
        assert list(profile.visits()) == [good(0), good(1)]
        assert profile.environments == {1: profiles.ENVIRONMENT, 2: {"driver": "999"}}
        assert profile.environment == {"driver": "999"}
        assert [run.command[-1:] for run in profile.runs] == [(), ("--resume",)]
    rows = sqlite3.connect(path)
    assert rows.execute("SELECT run FROM visit ORDER BY visit").fetchall() == [(1,), (2,)]
    rows.close()


def test_a_later_reason_replaces_an_earlier_one(tmp_path: Path) -> None:
    refusals = [Refusal("a", "old"), Refusal("b", "why"), Refusal("a", "new")]
    with WritableProfile.create(
        tmp_path / "a.wwp", profiles.machine(), {}, refusals=refusals
    ) as profile:
        assert profile.refusals == (Refusal("a", "new"), Refusal("b", "why"))


def test_one_survey_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "a.wwp"
    with new(path) as first:
        with pytest.raises(LockedProfile, match="another survey"):
            WritableProfile.resume(path, {})
        with Profile.open(path):
            pass  # closing a reader must not drop the lock
        with pytest.raises(LockedProfile):
            WritableProfile.resume(path, {})
        first.commit_visit(good())
    WritableProfile.resume(path, {}).close()


def test_an_existing_file_is_never_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "a.wwp"
    path.write_text("precious")
    with pytest.raises(ExistingFile, match="not overwritten"):
        new(path)
    assert path.read_text() == "precious"
    assert list(tmp_path.iterdir()) == [path]


def test_identities_by_another_rule_are_said_and_not_shown_as_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.wwp"
    with new(path) as profile:
        profile.commit_visit(good(0))
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE series SET identity = 'of-old'")
        connection.execute("UPDATE visit SET series = 'of-old'")
    connection.close()
    with (
        Profile.open(path) as profile,
        pytest.raises(ProfileError, match=r"is of-old in it and .* survey anew"),
    ):
        profile.series()


def test_a_missing_folder_is_said(tmp_path: Path) -> None:
    with pytest.raises(NotWritable, match="No such file"):
        new(tmp_path / "none" / "a.wwp")


def test_a_disk_without_room_for_a_new_profile_is_said_of_the_profile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(writing, "fill", full)
    with pytest.raises(NotWritable, match="the disk is full") as caught:
        new(tmp_path / "a.wwp")
    assert caught.value.where == str(tmp_path / "a.wwp")
    assert "--resume" not in caught.value.remedy  # there is nothing to resume
    assert not list(tmp_path.iterdir())


def test_a_reader_does_not_write(tmp_path: Path) -> None:
    path = profiles.write(tmp_path / "a.wwp")
    before = path.read_bytes()
    with Profile.open(path) as profile:
        assert profile.series() and profile.machine == profiles.machine()
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_closing_twice_is_harmless(tmp_path: Path) -> None:
    profile = new(tmp_path / "a.wwp")
    profile.close()
    profile.close()


def test_a_full_disk_is_said_and_what_was_there_stays(tmp_path: Path) -> None:
    path = tmp_path / "a.wwp"
    with new(path) as profile:
        profile.commit_visit(good(0))
        (pages,) = profile._connection.execute("PRAGMA page_count").fetchone()
        profile._connection.execute(f"PRAGMA max_page_count = {pages}")
        large = profiles.samples(random.Random(1), 1e-3, count=2000)
        with pytest.raises(NotWritable, match="disk is full"):
            profile.commit_visit(profiles.visit(WHAT, 1, large))
        assert list(profile.visits()) == [good(0)]


def test_health_is_kept_per_run_at_both_ends(tmp_path: Path) -> None:
    path = tmp_path / "a.wwp"
    readings = [Health(f"2026-11-20T0{n}", (GpuHealth(0, "GPU-0", {"x": n}),)) for n in range(3)]
    with new(path) as profile:
        profile.commit_health(readings[0], "start")
        profile.commit_health(readings[1], "end")
    with WritableProfile.resume(path, {}) as profile:
        profile.commit_health(readings[2], "start")
    with Profile.open(path) as profile:
        assert profile.health() == [
            RunHealth(1, readings[0], readings[1]),
            RunHealth(2, readings[2], None),
        ]


def test_a_profile_from_before_health_was_read_opens_and_is_resumed_with_it(tmp_path: Path) -> None:
    path = profiles.write(tmp_path / "a.wwp")
    connection = sqlite3.connect(path)
    connection.execute("DROP TABLE health")
    connection.commit()
    connection.close()
    with Profile.open(path) as profile:
        assert profile.health() == [] and list(profile.visits())
    with WritableProfile.resume(path, {}) as profile:
        profile.commit_health(Health("now"), "start")
    with Profile.open(path) as profile:
        assert profile.health() == [RunHealth(2, Health("now"), None)]


def a_locality(worker: int) -> Locality:
    block = BlockLatencies("verified", ((5.8e-6, 6.4e-6),), ((1.2e-7,),))
    return Locality(
        worker, profiles.STARTED, "pinned@numa:0", (0, 1), (3,), (0.1,), (block,), seconds=0.3
    )


def test_localities_come_back_in_the_order_found(tmp_path: Path) -> None:
    path = profiles.write(tmp_path / "a.wwp")
    found = [a_locality(1), a_locality(2)]
    with WritableProfile.resume(path, {}) as profile:
        for each in found:
            profile.commit_locality(each)
        assert profile.localities() == found
    with Profile.open(path) as profile:
        assert profile.localities() == found


def test_evidence_comes_back_as_it_went_in(tmp_path: Path) -> None:
    moved = LinkBytes({0: 1024, 17: 2**40}, {}, None, 7)
    evidence = Evidence(4, 0.01, 0.02, (GpuTraffic(0, moved, LinkBytes(), ("why not",)),))
    visit = profiles.visit(profiles.workload(profiles.H2D, 4096))
    visit = msgspec.structs.replace(visit, evidence=evidence, block=9)
    path = profiles.write(tmp_path / "a.wwp")
    with WritableProfile.resume(path, {}) as profile:
        profile.commit_visit(visit)
    with Profile.open(path) as profile:
        assert list(profile.visits())[-1] == visit


def test_a_profile_from_before_links_and_memory_were_looked_at_opens_and_is_resumed_with_both(
    tmp_path: Path,
) -> None:
    path = profiles.write(tmp_path / "a.wwp")
    connection = sqlite3.connect(path)
    connection.execute("DROP TABLE locality")
    connection.execute("ALTER TABLE visit DROP COLUMN evidence")
    connection.commit()
    connection.close()
    with Profile.open(path) as profile:
        before = list(profile.visits())
        assert before == list(profiles.visits())
        assert profile.localities() == []
    with WritableProfile.resume(path, {}) as profile:
        profile.commit_locality(a_locality(1))
        visit = profiles.visit(profiles.workload(profiles.H2D, 4096), 9)
        visit = msgspec.structs.replace(visit, evidence=Evidence(1, 0.1, 0.1, reason="no driver"))
        profile.commit_visit(visit)
    with Profile.open(path) as profile:
        assert list(profile.visits()) == [*before, visit]
        assert profile.localities() == [a_locality(1)]
