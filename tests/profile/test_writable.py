from __future__ import annotations

import math
import random
import sqlite3
from pathlib import Path

import pytest

import profiles
from waywiser.profile import (
    ExistingFile,
    LockedProfile,
    NotWritable,
    Profile,
    ProfileError,
    WritableProfile,
    writing,
)
from waywiser.words.records import (
    Failure,
    Samples,
    Unsupported,
)


def test_a_committed_visit_is_there_for_others_at_once(tmp_path: Path) -> None:
    path = tmp_path / "a.wwp"
    with profiles.new(path) as writer, Profile.open(path) as reader:
        assert list(reader.visits()) == []
        writer.commit_visit(profiles.good())
        assert list(reader.visits()) == [profiles.good()]


def test_what_measured_nothing_is_stored_with_the_next_visit_or_at_the_end(
    tmp_path: Path,
) -> None:
    path = tmp_path / "a.wwp"
    skipped = [
        profiles.visit(profiles.WHAT, block, failure=Failure("skipped", "equal"))
        for block in range(3)
    ]
    writer = profiles.new(path)
    with Profile.open(path) as reader:
        writer.commit_later(skipped[0])
        writer.commit_later(skipped[1])
        assert list(reader.visits()) == []
        writer.commit_visit(profiles.good(5))
        assert list(reader.visits()) == [*skipped[:2], profiles.good(5)]
        writer.commit_later(skipped[2])
        writer.close()
        assert {visit.block for visit in reader.visits()} == {0, 1, 2, 5}


def test_finished_is_all_but_the_interrupted(tmp_path: Path) -> None:
    kinds = ["crash", "timeout", "out-of-memory", "wrong-bytes", "interrupted"]
    with profiles.new(tmp_path / "a.wwp") as profile:
        profile.commit_visit(profiles.good(0))
        for block, kind in enumerate(kinds, start=1):
            profile.commit_visit(profiles.visit(profiles.WHAT, block, failure=Failure(kind, "why")))
        assert profile.finished() == {(profiles.WHAT.identity, block) for block in range(5)}


def test_an_interrupted_visit_is_measured_again_and_a_finished_one_never(tmp_path: Path) -> None:
    stopped = profiles.visit(profiles.WHAT, 0, failure=Failure("interrupted", "Ctrl-C"))
    with profiles.new(tmp_path / "a.wwp") as profile:
        profile.commit_visit(stopped)
        profile.commit_visit(profiles.good())
        with pytest.raises(ProfileError, match="finished already"):
            profile.commit_visit(profiles.good())
        assert list(profile.visits()) == [profiles.good()]


@pytest.mark.parametrize(
    "taken",
    [Samples(span=(math.nan,)), Samples(span=(math.inf,)), Samples(span=(1.0,), host=(1.0, 2.0))],
)
def test_samples_that_make_no_sense_leave_the_file_as_it_was(
    tmp_path: Path, taken: Samples
) -> None:
    with profiles.new(tmp_path / "a.wwp") as profile:
        with pytest.raises(ProfileError):
            profile.commit_visit(profiles.visit(profiles.WHAT, 0, taken))
        assert list(profile.visits()) == []
        profile.commit_visit(profiles.good())
        assert list(profile.visits()) == [profiles.good()]


def test_resume_is_a_further_run_with_its_own_environment(tmp_path: Path) -> None:
    path = tmp_path / "a.wwp"
    with profiles.new(path) as profile:
        profile.commit_visit(profiles.good(0))
    with WritableProfile.resume(
        path, {"driver": "999"}, command=["waywiser", "survey", "--resume"]
    ) as more:
        more.commit_visit(profiles.good(1))
    with Profile.open(path) as profile:
        assert list(profile.visits()) == [profiles.good(0), profiles.good(1)]
        assert profile.environments == {1: profiles.ENVIRONMENT, 2: {"driver": "999"}}
        assert profile.environment == {"driver": "999"}
        assert [run.command[-1:] for run in profile.runs] == [(), ("--resume",)]
    rows = sqlite3.connect(path)
    assert rows.execute("SELECT run FROM visit ORDER BY visit").fetchall() == [(1,), (2,)]
    rows.close()


def test_a_later_reason_replaces_an_earlier_one(tmp_path: Path) -> None:
    unsupported_paths = [Unsupported("a", "old"), Unsupported("b", "why"), Unsupported("a", "new")]
    with WritableProfile.create(
        tmp_path / "a.wwp", profiles.machine(), {}, unsupported_paths=unsupported_paths
    ) as profile:
        assert profile.unsupported_paths == (Unsupported("a", "new"), Unsupported("b", "why"))


def test_one_survey_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "a.wwp"
    with profiles.new(path) as first:
        with pytest.raises(LockedProfile, match="another survey"):
            WritableProfile.resume(path, {})
        with Profile.open(path):
            pass  # closing a reader must not drop the lock
        with pytest.raises(LockedProfile):
            WritableProfile.resume(path, {})
        first.commit_visit(profiles.good())
    WritableProfile.resume(path, {}).close()


def test_an_existing_file_is_never_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "a.wwp"
    path.write_text("precious")
    with pytest.raises(ExistingFile, match="not overwritten"):
        profiles.new(path)
    assert path.read_text() == "precious"
    assert list(tmp_path.iterdir()) == [path]


def test_a_missing_folder_is_said(tmp_path: Path) -> None:
    with pytest.raises(NotWritable, match="No such file"):
        profiles.new(tmp_path / "none" / "a.wwp")


def test_a_disk_without_room_for_a_new_profile_is_said_of_the_profile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(writing, "put", full)
    with pytest.raises(NotWritable, match="the disk is full") as caught:
        profiles.new(tmp_path / "a.wwp")
    assert caught.value.where == str(tmp_path / "a.wwp")
    assert "--resume" not in caught.value.remedy  # there is nothing to resume
    assert not list(tmp_path.iterdir())


def test_closing_twice_is_harmless(tmp_path: Path) -> None:
    profile = profiles.new(tmp_path / "a.wwp")
    profile.close()
    profile.close()


def test_a_full_disk_is_said_and_what_was_there_stays(tmp_path: Path) -> None:
    path = tmp_path / "a.wwp"
    with profiles.new(path) as profile:
        profile.commit_visit(profiles.good(0))
        (pages,) = profile._connection.execute("PRAGMA page_count").fetchone()
        profile._connection.execute(f"PRAGMA max_page_count = {pages}")
        large = profiles.samples(random.Random(1), 1e-3, count=2000)
        with pytest.raises(NotWritable, match="disk is full"):
            profile.commit_visit(profiles.visit(profiles.WHAT, 1, large))
        assert list(profile.visits()) == [profiles.good(0)]
