"""Reading a profile that a survey is writing: between any two looks at the file a further series,
and a further block of one that was there, may have come in."""

from __future__ import annotations

import io
import json
import random
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

import profiles
from waywiser.curves.curve import points_of
from waywiser.curves.overview import overview
from waywiser.curves.subject import Subject, read_subject
from waywiser.exchange.exports.google_benchmark import write_benchmark
from waywiser.exchange.exports.samples import write_csv, write_json
from waywiser.profile import Profile, WritableProfile, opening
from waywiser.profile import profile as profiles_of
from waywiser.profile.series_frame import SeriesFrame


class Interleaved:
    """A connection before each of whose queries another process commits two visits."""

    def __init__(self, connection: sqlite3.Connection, more: Iterator[None]) -> None:
        self._connection = connection
        self._more = more

    def execute(self, sql: str, values: Sequence[Any] = ()) -> sqlite3.Cursor:
        next(self._more)
        return self._connection.execute(sql, values)

    def serialize(self) -> bytes:
        next(self._more)
        return self._connection.serialize()

    def close(self) -> None:
        self._connection.close()


@pytest.fixture
def growing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A profile that grows whenever it is looked at."""
    file = profiles.write(tmp_path / "a.wwp")
    with WritableProfile.resume(file, {}) as writer:

        def grow() -> Iterator[None]:
            rng = random.Random(5)
            old = profiles.workload(profiles.H2D, profiles.SIZES[0])
            block, bytes = 10, 2**20 + 4
            while True:
                new = profiles.workload(profiles.H2D, bytes)
                for what in (old, new):
                    writer.commit_visit(
                        profiles.visit(what, block, profiles.samples(rng, 1e-3, count=6))
                    )
                block, bytes = block + 1, bytes + 4
                yield

        more = grow()

        def open_read_only(path: Path) -> opening.Opened:
            opened = opening.open_read_only(path)
            return opened._replace(connection=Interleaved(opened.connection, more))  # type: ignore[arg-type]

        monkeypatch.setattr(profiles_of, "open_read_only", open_read_only)
        yield file


def nodes(profile: Profile) -> object:
    return read_subject(profile.path, links=True).links


READERS: dict[str, Callable[[Profile], object]] = {
    "visits": lambda profile: list(profile.visits()),
    "series": lambda profile: profile.series(),
    "frame": lambda profile: points_of(SeriesFrame.read(profile)),
    "overview": lambda profile: overview(profile).series,
    "subject": lambda profile: Subject.of(profile).curves,
    "node": nodes,
}


@pytest.mark.parametrize("reader", READERS)
def test_what_is_read_holds_together(growing: Path, reader: str, derived_folder: Path) -> None:
    with Profile.open(growing) as profile:
        assert READERS[reader](profile)
    assert not derived_folder.exists() or not list(derived_folder.iterdir())


@pytest.mark.parametrize("write", [write_csv, write_json, write_benchmark])
def test_what_is_exported_holds_together(growing: Path, write: Callable[..., None]) -> None:
    stream = io.StringIO()
    with Profile.open(growing) as profile:
        write(profile, stream)
    if write is write_json:
        for series in json.loads(stream.getvalue())["series"]:
            result = {visit["block"] for visit in series["visits"]}
            assert {sample["block"] for sample in series["samples"]} <= result
