from __future__ import annotations

import math
import sqlite3
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import profiles
import seen_copies
import waywiser
from damaging import reseal
from waywiser.profile import (
    Profile,
    ProfileError,
    RunHealth,
    WritableProfile,
)
from waywiser.words import Transfer
from waywiser.words.records import (
    BlockLatencies,
    Failure,
    GpuHealth,
    GpuTraffic,
    Health,
    LinkBytes,
    LinkEvidence,
    Locality,
    Observation,
    ObservedCopy,
    Samples,
)
from waywiser.words.visible_text import single_line


def test_everything_comes_back_as_it_went_in(tmp_path: Path) -> None:
    with Profile.open(profiles.write(tmp_path / "a.wwp")) as profile:
        assert list(profile.visits()) == list(profiles.visits())
        assert profile.machine == profiles.machine()
        assert profile.environment == profiles.ENVIRONMENT
        assert set(profile.unsupported_paths) == set(profiles.UNSUPPORTED_PATHS)
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
def test_any_visit_comes_back_to_the_bit_with_its_notes_in_one_line_each(
    tmp_path_factory: pytest.TempPathFactory, taken: Samples, notes: list[str]
) -> None:
    visit = msgspec.structs.replace(profiles.visit(profiles.WHAT, 3, taken), notes=tuple(notes))
    with profiles.new(tmp_path_factory.mktemp("any") / "a.wwp") as profile:
        profile.commit_visit(visit)
        shown = tuple(map(single_line, notes))
        assert list(profile.visits()) == [msgspec.structs.replace(visit, notes=shown)]


def test_a_gap_in_a_column_comes_back_as_no_number(tmp_path: Path) -> None:
    taken = Samples(span=(1.0, 2.0), host=(math.nan, 3.0))
    with profiles.new(tmp_path / "a.wwp") as profile:
        profile.commit_visit(profiles.visit(profiles.WHAT, 0, taken))
        (back,) = profile.visits()
    assert math.isnan(back.samples.host[0]) and back.samples.host[1] == 3.0


def test_identities_by_another_rule_are_said_and_not_shown_as_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.wwp"
    with profiles.new(path) as profile:
        profile.commit_visit(profiles.good(0))
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE series SET identity = 'of-old'")
        connection.execute("UPDATE visit SET series = 'of-old'")
        reseal(connection)
    connection.close()
    with (
        Profile.open(path) as profile,
        pytest.raises(ProfileError, match=r"is of-old in it and .* survey again"),
    ):
        profile.series()


def test_a_reader_does_not_write(tmp_path: Path) -> None:
    path = profiles.write(tmp_path / "a.wwp")
    before = path.read_bytes()
    with Profile.open(path) as profile:
        assert profile.series() and profile.machine == profiles.machine()
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_who_copies_is_kept_with_the_machine_once_for_each_gpu(tmp_path: Path) -> None:
    path = tmp_path / "a.wwp"
    with profiles.new(path) as profile:
        bare = profile.machine
        for each in (*seen_copies.seen({}), *seen_copies.seen()):
            profile.commit_who_copies(each)
    with Profile.open(path) as profile:
        known = profile.machine
    assert known.traits.who_copies == seen_copies.seen()
    traits = msgspec.structs.replace(known.traits, who_copies=())
    assert msgspec.structs.replace(known, traits=traits) == bare


@pytest.mark.parametrize(
    "wrong",
    [
        {"gpu": -1},
        {"gpu": 2**20},
        {"started": "yesterday"},
        {"seconds": -1.0},
        {"kernel": Observation("waited", alone_seconds=-1e-6)},
        {"fill": Observation("ended", held_seconds=float("inf"))},
        {"copies": (ObservedCopy(Transfer.parse(seen_copies.LOCAL.format(0)), Observation()),)},
    ],
)
def test_an_impossible_observation_is_damage(tmp_path: Path, wrong: dict[str, Any]) -> None:
    path = tmp_path / "a.wwp"
    with profiles.new(path) as profile:
        profile.commit_who_copies(msgspec.structs.replace(seen_copies.seen()[0], **wrong))
    with Profile.open(path) as profile, pytest.raises(ProfileError):
        _ = profile.machine


def test_health_is_kept_per_run_at_both_ends(tmp_path: Path) -> None:
    path = tmp_path / "a.wwp"
    readings = [Health(f"2026-11-20T0{n}", (GpuHealth(0, "GPU-0", {"x": n}),)) for n in range(3)]
    with profiles.new(path) as profile:
        profile.commit_health(readings[0], "start")
        profile.commit_health(readings[1], "end")
    with WritableProfile.resume(path, {}) as profile:
        profile.commit_health(readings[2], "start")
    with Profile.open(path) as profile:
        assert profile.health() == [
            RunHealth(1, readings[0], readings[1]),
            RunHealth(2, readings[2], None),
        ]


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
    evidence = LinkEvidence(4, 0.01, 0.02, (GpuTraffic(0, moved, LinkBytes(), ("why not",)),))
    visit = profiles.visit(profiles.workload(profiles.H2D, 4096))
    visit = msgspec.structs.replace(visit, evidence=evidence, block=9)
    path = profiles.write(tmp_path / "a.wwp")
    with WritableProfile.resume(path, {}) as profile:
        profile.commit_visit(visit)
    with Profile.open(path) as profile:
        assert list(profile.visits())[-1] == visit


def test_times_of_single_gpus_come_back(tmp_path: Path) -> None:
    path = tmp_path / "a.wwp"
    lanes = (((1.0, 2.0, 3.0), (4.0,)), ((1.5, 2.5, 3.5), (4.5,)))
    taken = Samples(span=(4.0, 4.5), transfers=((3.0, 4.0), (3.5, 4.5)), lanes=lanes)
    visit = profiles.visit(profiles.WHAT, 3, taken)
    with profiles.new(path) as profile:
        profile.commit_visit(profiles.good(0))
        profile.commit_visit(visit)
        assert [each.samples.lanes for each in profile.visits()] == [(), lanes]
    with Profile.open(path) as profile:
        assert [each.samples for each in profile.visits()][1] == taken


def test_times_of_single_gpus_go_with_their_visit(tmp_path: Path) -> None:
    path = tmp_path / "a.wwp"
    taken = Samples(span=(2.0,), transfers=((2.0,),), lanes=(((1.0, 2.0),),))
    interrupted = msgspec.structs.replace(
        profiles.visit(profiles.WHAT, 0, taken),
        stop="failed",
        failure=Failure("interrupted", "by the user"),
    )
    with profiles.new(path) as profile:
        profile.commit_visit(interrupted)
        profile.commit_visit(profiles.visit(profiles.WHAT, 0, Samples(span=(1.0,))))
        assert [each.samples.lanes for each in profile.visits()] == [()]


def test_a_profile_without_times_of_single_gpus_has_no_table_for_them(tmp_path: Path) -> None:
    path = profiles.write(tmp_path / "a.wwp")
    with sqlite3.connect(path) as connection:
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master")]
    connection.close()
    assert "visit" in tables and "lanes" not in tables


@pytest.mark.parametrize(
    "damage",
    ["counts = '[]'", "counts = '[2,-1]'", "counts = '{'", "counts = '[3]'", "seconds = x'00'"],
)
def test_damaged_times_of_single_gpus_are_reported(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "a.wwp"
    taken = Samples(span=(2.0,), transfers=((2.0,),), lanes=(((1.0, 2.0),),))
    with profiles.new(path) as profile:
        profile.commit_visit(profiles.visit(profiles.WHAT, 0, taken))
    with sqlite3.connect(path) as connection:
        connection.execute(f"UPDATE lanes SET {damage}")
        reseal(connection)
    connection.close()
    with Profile.open(path) as profile, pytest.raises(ProfileError, match="visit 1"):
        list(profile.visits())


@pytest.mark.parametrize(
    "lanes", [(((1.0, 2.0),),), (((1.0, 2.0),), ((1.0,),))], ids=["too few", "unequal"]
)
def test_times_of_different_numbers_of_gpus_are_not_stored(tmp_path: Path, lanes: Any) -> None:
    taken = Samples(span=(2.0, 2.0), transfers=((2.0,), (2.0,)), lanes=lanes)
    with (
        profiles.new(tmp_path / "a.wwp") as profile,
        pytest.raises(ProfileError, match="different numbers of GPUs"),
    ):
        profile.commit_visit(profiles.visit(profiles.WHAT, 0, taken))
