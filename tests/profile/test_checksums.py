"""A changed byte anywhere in a profile is reported, or it did not hold data."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

import profiles
from damaging import reseal
from waywiser.curves.overview import overview
from waywiser.curves.subject import read_subject
from waywiser.profile import DamagedProfile, Profile, ProfileError, WritableProfile
from waywiser.profile.schema import COUNTED, TABLES
from waywiser.words.records import GpuHealth, Health, Locality

FLIPS = 300


def contents(path: Path) -> Any:
    """All that is in a profile, as readers see it."""
    with Profile.open(path) as profile:
        return (
            profile.created,
            profile.machine,
            profile.plan_json,
            profile.environments,
            profile.runs,
            profile.unsupported_paths,
            profile.localities(),
            profile.health(),
            list(profile.visits()),
        )


READERS: dict[str, Callable[[Path], Any]] = {
    "profile": contents,
    "overview": lambda path: _overview(path),
    "node": lambda path: msgspec.structs.replace(read_subject(path, links=True), file=""),
}


def _overview(path: Path) -> Any:
    with Profile.open(path) as profile:
        return msgspec.structs.replace(overview(profile), profile="")


@pytest.fixture(scope="module")
def valid(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A profile with rows in every table."""
    path = tmp_path_factory.mktemp("valid") / "a.wwp"
    with WritableProfile.create(
        path, profiles.machine(), profiles.ENVIRONMENT,
        unsupported_paths=profiles.UNSUPPORTED_PATHS,
        plan_json='{"request":{"preset":"check"}}', command=("waywiser", "survey"),
    ) as profile:  # fmt: skip
        profile.commit_health(Health("2026-11-20", (GpuHealth(0, "GPU-0", {"x": 1}),)), "start")
        profile.commit_locality(Locality(1, profiles.STARTED, "pinned@numa:0"))
        for visit in profiles.visits(blocks=1, sizes=(8, 2**20)):
            profile.commit_visit(visit)
    return path


def test_a_flipped_byte_is_reported_or_held_no_data(valid: Path, tmp_path: Path) -> None:
    whole = valid.read_bytes()
    expected = {name: read(valid) for name, read in READERS.items()}
    path = tmp_path / "b.wwp"
    rng = random.Random(20261122)
    reported = 0
    for position in rng.sample(range(len(whole)), FLIPS):
        damaged = bytearray(whole)
        damaged[position] ^= rng.choice((0x01, 0x10, 0x80, 0xFF))
        path.write_bytes(damaged)
        for name, read in READERS.items():
            try:
                assert read(path) == expected[name], f"{name} at byte {position}"
            except ProfileError as error:
                assert str(error).startswith(f"{path}: ") and "\n" not in str(error)
                reported += 1
    assert reported > FLIPS / 2  # the others are in parts of pages that hold nothing


def values(path: Path, table: str) -> list[tuple[Any, ...]]:
    connection = sqlite3.connect(path)
    found = connection.execute(f"SELECT * FROM {table}").fetchall()
    connection.close()
    return found


@pytest.mark.parametrize("table", [table.name for table in TABLES])
def test_a_changed_value_of_any_table_is_found_with_its_place(
    valid: Path, tmp_path: Path, table: str
) -> None:
    path = tmp_path / "b.wwp"
    (table_of,) = [each for each in TABLES if each.name == table]
    for column in table_of.columns:
        path.write_bytes(valid.read_bytes())
        connection = sqlite3.connect(path)
        connection.execute("PRAGMA ignore_check_constraints = ON")
        changed = f"{column.name} || 'x'" if "TEXT" in column.type else f"{column.name} + 1000"
        connection.execute(
            f"UPDATE {table} SET {column.name} = {changed} WHERE {column.name} IS NOT NULL"
        )
        touched = connection.total_changes
        connection.commit()
        connection.close()
        if touched:
            with pytest.raises(DamagedProfile, match=rf"{table} .*checksum") as caught:
                contents(path)
            assert str(caught.value).startswith(f"{path}: ")


def test_rows_that_are_gone_are_found(valid: Path, tmp_path: Path) -> None:
    lost = {table: rf"{table} has \d+ of \d+ rows" for table in COUNTED}
    for table, says in {**lost, "series": "is missing", "plan": "has 0 rows"}.items():
        path = tmp_path / f"{table}.wwp"
        path.write_bytes(valid.read_bytes())
        connection = sqlite3.connect(path)
        key = TABLES[[each.name for each in TABLES].index(table)].columns[0].name
        connection.execute(f"DELETE FROM {table} WHERE {key} = (SELECT max({key}) FROM {table})")
        connection.commit()
        connection.close()
        with pytest.raises(DamagedProfile, match=says):
            contents(path)


def test_a_block_that_is_there_twice_is_found(valid: Path, tmp_path: Path) -> None:
    path = tmp_path / "b.wwp"
    path.write_bytes(valid.read_bytes())
    with sqlite3.connect(path) as connection:
        columns = ", ".join(column.name for column in _visit().columns[1:])
        again = f"SELECT visit + 1000, {columns} FROM visit LIMIT 1"
        connection.execute(f"INSERT INTO visit (visit, {columns}) {again}")
        reseal(connection)
    connection.close()
    with pytest.raises(DamagedProfile, match="twice"):
        contents(path)


def _visit() -> Any:
    return next(each for each in TABLES if each.name == "visit")
