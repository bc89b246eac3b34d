from __future__ import annotations

import lzma
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import profiles
from waywiser.profile import (
    DamagedProfile,
    MissingProfile,
    NewerProfile,
    NotAProfile,
    NotWritable,
    OlderProfile,
    Profile,
    ProfileError,
    WritableProfile,
)
from waywiser.profile import opening as opening_module
from waywiser.profile.schema import SCHEMA_VERSION

Opening = Callable[[Path], Profile]

READERS = pytest.mark.parametrize("opening", [Profile.open, Profile.open_snapshot])


def read_all(path: Path, opening: Opening = Profile.open) -> int:
    with opening(path) as profile:
        known = (profile.machine, profile.unsupported_paths, profile.environments, profile.runs)
        return len(known) + len(list(profile.visits())) + len(profile.series())


@pytest.fixture(scope="module")
def valid(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return profiles.write(tmp_path_factory.mktemp("valid") / "a.wwp")


def assert_clear(error: ProfileError, path: Path) -> None:
    assert error.exit_code == 2
    assert str(error).startswith(f"{path}: ")
    assert "\n" not in str(error)


def other_database(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE sample (n)")
    connection.commit()
    connection.close()


def one_byte_short_of_a_header(path: Path) -> None:
    path.write_bytes(b"SQLite format 3\0" + bytes(83))


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda path: path.write_bytes(b""), "empty"),
        (lambda path: path.write_bytes(b"series,n,span\r\n" * 50), "not a profile"),
        (one_byte_short_of_a_header, "not a profile"),
        (lambda path: path.write_bytes(lzma.compress(bytes(1000))), "compressed"),
        (other_database, "another program's"),
        (lambda path: path.mkdir(), "directory"),
        (os.mkfifo, "FIFO and not a regular file"),
    ],
)
def test_what_is_no_profile_is_said(
    tmp_path: Path, make: Callable[[Path], object], says: str
) -> None:
    path = tmp_path / "a.wwp"
    make(path)
    resumed = partial(WritableProfile.resume, environment={})
    for opening in (Profile.open, Profile.open_snapshot, resumed):
        with pytest.raises(NotAProfile, match=says) as caught:
            opening(path)
        assert_clear(caught.value, path)


def test_a_missing_file_is_said_and_not_made(tmp_path: Path) -> None:
    path = tmp_path / "a.wwp"
    with pytest.raises(MissingProfile) as caught:
        Profile.open(path)
    assert_clear(caught.value, path)
    with pytest.raises(MissingProfile):
        WritableProfile.resume(path, {})
    assert not path.exists()


@pytest.mark.parametrize(
    ("version", "error", "remedy"),
    [
        (SCHEMA_VERSION + 6, NewerProfile, "update Waywiser"),
        (SCHEMA_VERSION - 1, OlderProfile, "survey the machine again"),
    ],
)
def test_another_version_is_named_with_the_remedy(
    tmp_path: Path, version: int, error: type[ProfileError], remedy: str
) -> None:
    path = profiles.write(tmp_path / "a.wwp")
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA user_version = {version}")
    connection.close()
    resumed = partial(WritableProfile.resume, environment={})
    for opening in (Profile.open, Profile.open_snapshot, resumed):
        with pytest.raises(error, match=f"version {version}.*{remedy}") as caught:
            opening(path)
        assert_clear(caught.value, path)


@READERS
@given(keep=st.floats(0, 1, exclude_max=True))
def test_a_truncated_file_is_said(
    opening: Opening, valid: Path, tmp_path_factory: pytest.TempPathFactory, keep: float
) -> None:
    path = tmp_path_factory.mktemp("cut") / "a.wwp"
    whole = valid.read_bytes()
    path.write_bytes(whole[: int(len(whole) * keep)])
    with pytest.raises((DamagedProfile, NotAProfile)) as caught:
        opening(path)
    assert_clear(caught.value, path)
    if path.stat().st_size >= 100:
        assert "truncated" in str(caught.value)


wrong_bytes = st.lists(
    st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 255)), min_size=1, max_size=4
)


@READERS
@given(wrong=wrong_bytes)
def test_a_file_with_wrong_bytes_is_read_or_an_error_but_never_breaks(
    opening: Opening,
    valid: Path,
    tmp_path_factory: pytest.TempPathFactory,
    wrong: list[tuple[float, int]],
) -> None:
    damaged = bytearray(valid.read_bytes())
    for position, value in wrong:
        damaged[int(position * len(damaged))] = value
    path = tmp_path_factory.mktemp("wrong") / "a.wwp"
    path.write_bytes(damaged)
    try:
        read_all(path, opening)
    except ProfileError as error:
        assert_clear(error, path)


def test_a_snapshot_has_the_same_rows_and_finds_each_changed_one(
    valid: Path, tmp_path: Path
) -> None:
    with Profile.open(valid) as whole, Profile.open_snapshot(valid) as snapshot:
        assert snapshot.series() == whole.series()
        assert snapshot.environments == whole.environments
        assert snapshot.machine == whole.machine
    path = tmp_path / "a.wwp"
    for change, says in (
        ("UPDATE visit SET span = zeroblob(9) WHERE visit = 2", "visit 2: its checksum is wrong"),
        ("DELETE FROM visit WHERE visit = 2", r"visit has \d+ of \d+ rows"),
        ("UPDATE machine SET json = replace(json, 'gpus', 'cpus')", "machine 1: its checksum"),
    ):
        shutil.copyfile(valid, path)
        connection = sqlite3.connect(path)
        connection.execute(change)
        connection.commit()
        connection.close()
        with pytest.raises(DamagedProfile, match=says):
            read_all(path, Profile.open_snapshot)


def test_a_snapshot_stays_as_it_was_while_a_survey_writes(tmp_path: Path) -> None:
    path = profiles.write(tmp_path / "a.wwp")
    with Profile.open_snapshot(path) as profile:
        before = list(profile.visits())
        writer = sqlite3.connect(path, timeout=0)
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            writer.execute("DELETE FROM visit")
            writer.commit()
        writer.close()
        assert list(profile.visits()) == before


WRITES = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], timeout=0)
try:
    connection.execute("DELETE FROM visit")
    connection.commit()
except sqlite3.OperationalError as error:
    print(error)
"""


def test_no_other_process_writes_while_a_snapshot_is_open(tmp_path: Path) -> None:
    """Closing any descriptor of a file would give back the locks that SQLite has of it."""
    path = profiles.write(tmp_path / "a.wwp")
    with Profile.open_snapshot(path) as profile:
        done = subprocess.run(
            [sys.executable, "-c", WRITES, str(path)], capture_output=True, text=True, check=True
        )
        assert "locked" in done.stdout
        assert list(profile.visits()) == list(profiles.visits())


def test_a_file_without_one_of_the_tables_is_damaged(tmp_path: Path) -> None:
    path = profiles.write(tmp_path / "a.wwp")
    connection = sqlite3.connect(path)
    connection.execute("DROP TABLE refusal")
    connection.execute("CREATE VIEW refusal AS SELECT * FROM visit")  # a view is no table
    connection.commit()
    connection.close()
    for opening in (Profile.open, Profile.open_snapshot):
        with pytest.raises(DamagedProfile, match=r"refusal\.path is missing"):
            opening(path)


@pytest.mark.parametrize("table", ["machine", "plan"])
def test_a_table_without_its_row_is_damaged(tmp_path: Path, table: str) -> None:
    path = profiles.write(tmp_path / "a.wwp")
    connection = sqlite3.connect(path)
    connection.execute(f"DELETE FROM {table}")
    connection.commit()
    connection.close()
    with Profile.open(path) as profile, pytest.raises(DamagedProfile):
        _ = (profile.machine, profile.plan_json)


@pytest.fixture
def other_user() -> Callable[[Callable[[], None]], None]:
    """Runs a function as a user who owns nothing: as root only by taking off root's rights."""

    def run(body: Callable[[], None]) -> None:
        if os.geteuid() != 0:
            body()
            return
        os.seteuid(65534)
        try:
            body()
        finally:
            os.seteuid(0)

    return run


@pytest.fixture
def theirs() -> Iterator[Path]:
    """A folder that any user can reach, unlike pytest's own."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        path.chmod(0o755)
        yield path
        path.chmod(0o755)


def test_other_peoples_profiles_open_and_do_not_resume(
    theirs: Path, other_user: Callable[[Callable[[], None]], None]
) -> None:
    folder = theirs
    path = profiles.write(folder / "a.wwp")
    path.chmod(0o444)
    folder.chmod(0o555)

    def body() -> None:
        assert read_all(path) > 4
        with pytest.raises(NotWritable) as caught:
            WritableProfile.resume(path, {})
        assert_clear(caught.value, path)
        with pytest.raises(NotWritable):
            WritableProfile.create(folder / "b.wwp", profiles.machine(), {})

    other_user(body)
    assert list(folder.iterdir()) == [path]


def leave_hot_journal(path: Path, copy: Path) -> None:
    """At ``copy`` what a kill in the middle of a commit leaves: pages of an unfinished transaction
    in the file, and the journal that takes them back."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA cache_size = 1")  # so that pages go to the file before the commit
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("UPDATE visit SET span = zeroblob(length(span))")
    connection.execute("UPDATE visit SET gate = 'never committed'")
    journal = path.with_name(path.name + "-journal")
    shutil.copyfile(path, copy)
    shutil.copyfile(journal, copy.with_name(copy.name + "-journal"))
    connection.execute("ROLLBACK")
    connection.close()
    assert b"never committed" in copy.read_bytes()


@READERS
def test_a_commit_cut_short_is_taken_back_when_read(opening: Opening, tmp_path: Path) -> None:
    path = profiles.write(tmp_path / "a.wwp")
    leave_hot_journal(path, tmp_path / "b.wwp")
    with opening(tmp_path / "b.wwp") as profile:
        assert list(profile.visits()) == list(profiles.visits())


def test_a_commit_cut_short_is_taken_back_when_resumed(tmp_path: Path) -> None:
    path = profiles.write(tmp_path / "a.wwp")
    leave_hot_journal(path, tmp_path / "b.wwp")
    with WritableProfile.resume(tmp_path / "b.wwp", {}) as profile:
        assert list(profile.visits()) == list(profiles.visits())
        profile.commit_visit(
            profiles.visit(
                profiles.workload(profiles.HOST, 64), 0, profiles.samples(random.Random(1), 1e-6)
            )
        )


def test_a_commit_cut_short_reads_where_nothing_may_be_written(
    theirs: Path, other_user: Callable[[Callable[[], None]], None]
) -> None:
    folder = theirs
    path = folder / "b.wwp"
    leave_hot_journal(profiles.write(folder / "a.wwp"), path)
    before = path.read_bytes()
    for each in folder.iterdir():
        each.chmod(0o444)
    folder.chmod(0o555)

    def body() -> None:
        with Profile.open(path) as profile:
            assert list(profile.visits()) == list(profiles.visits())

    other_user(body)
    assert path.read_bytes() == before


def test_a_profile_held_by_another_program_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opening_module, "BUSY_SECONDS", 0.05)
    path = profiles.write(tmp_path / "a.wwp")
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    with pytest.raises(ProfileError, match="busy") as caught:
        Profile.open(path)
    assert_clear(caught.value, path)
    holder.close()


def test_a_profile_whose_name_is_not_utf_8_is_read(valid: Path, tmp_path: Path) -> None:
    path = tmp_path / os.fsdecode(b"n\xff\xfe.wwp")
    shutil.copy(valid, path)
    assert read_all(path)
