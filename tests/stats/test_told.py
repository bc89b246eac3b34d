"""What is kept of samples says what they say, and is never believed beyond its rules."""

from __future__ import annotations

import hashlib
import sqlite3
from pathlib import Path

import msgspec
import pytest

import profiles
from waywiser.profile import Profile, WritableProfile
from waywiser.records import Samples, Visit
from waywiser.stats.order import Interval
from waywiser.stats.overview import overview
from waywiser.stats.summary import summary_of
from waywiser.stats.told import RULES, Told, packed, tell, told_in, told_of
from waywiser.words import Workload

GOLDEN = {1: "f91923b550dc"}
"""By number of rules: the head of SHA-256 over what they make of `known_visits`."""


def stored(path: Path, *, kept: bool = True) -> Path:
    with WritableProfile.create(path, profiles.machine(), {}) as profile:
        for visit in profiles.visits():
            profile.commit_visit(visit, summary_of(visit) if kept else None)
    return path


def change(path: Path, sql: str, *values: object) -> None:
    connection = sqlite3.connect(path)
    connection.execute(sql, values)
    connection.commit()
    connection.close()


def known_visits() -> list[Visit]:
    """Of round numbers, whose sums and quotients are the same everywhere."""
    one = profiles.workload(profiles.H2D, 2**20)
    two = Workload.parse(f"{profiles.H2D} of 1MiB; {profiles.D2H} of 1MiB")
    found = []
    for n, what in enumerate((one, two, one, one)):
        spans = tuple((64 + (7 * k * k + n) % 13) / 2**20 for k in range(5 + 4 * n))
        taken = Samples(
            span=spans,
            host=tuple(span + 1 / 2**18 for span in spans),
            repetitions=(1 + 3 * (n == 2),) * len(spans),
            flags=tuple(1 if k == n else 2 * (k % 5 == 3) for k in range(len(spans))),
            transfers=tuple((span, span / 2) for span in spans) if what is two else (),
        )
        found.append(profiles.visit(what, n, taken, mode="host" if n == 3 else "device"))
    return found


def test_what_is_kept_is_what_the_samples_say(tmp_path: Path) -> None:
    with Profile.open(stored(tmp_path / "a.wwp")) as profile:
        kept = list(told_in(profile, profile.workloads()))
        fresh = [told_of(each) for each in profile.iter_series()]
    assert [list(each.told) for each in kept] == [list(each.told) for each in fresh]
    for one, other in zip(kept, fresh, strict=True):
        bare = [msgspec.structs.replace(v, samples=Samples()) for v in other.series.visits]
        assert list(one.series.visits) == bare
    assert sum(each.block is not None for one in kept for each in one.told) > 20


@pytest.mark.parametrize(
    "how",
    [
        "UPDATE visit SET told = NULL",
        "UPDATE visit SET told = x'00ff'",
        "UPDATE visit SET told = 'text'",
        "UPDATE visit SET told = 17",
        "ALTER TABLE visit DROP COLUMN told",
    ],
)
def test_without_it_the_samples_are_asked(tmp_path: Path, how: str) -> None:
    with Profile.open(stored(tmp_path / "a.wwp")) as profile:
        expected = overview(profile)
    change(tmp_path / "a.wwp", how)
    with Profile.open(tmp_path / "a.wwp") as profile:
        assert overview(profile) == expected


def test_what_other_rules_said_is_not_believed(tmp_path: Path) -> None:
    path = stored(tmp_path / "a.wwp")
    with Profile.open(path) as profile:
        expected = overview(profile)
    change(path, "UPDATE visit SET told = ?", packed(Told(RULES + 1, 0, None)))
    with Profile.open(path) as profile:
        assert overview(profile) == expected
    change(path, "UPDATE visit SET told = ?", packed(Told(RULES, 0, None)))
    with Profile.open(path) as profile:  # of these rules it is
        assert overview(profile) != expected


def test_the_rules_have_a_number_of_their_own() -> None:
    """Where this fails, the same samples are told otherwise than before: raise `RULES`, or profiles
    that keep what the former rules said go on saying it; and note here what the new ones make."""
    made = b"".join(packed(tell(visit)) for visit in known_visits())
    assert hashlib.sha256(made).hexdigest()[:12] == GOLDEN[RULES]


@pytest.mark.parametrize(
    "changes",
    [
        {"median": float("inf")},
        {"median": float("nan")},
        {"median": -1.0},
        {"count": 0},
        {"spread": float("nan")},
        {"interval": Interval(2.0, 1.0)},
    ],
)
def test_what_makes_no_sense_is_not_believed(tmp_path: Path, changes: dict[str, object]) -> None:
    path = stored(tmp_path / "a.wwp")
    with Profile.open(path) as profile:
        fresh = overview(profile)
        told = tell(next(visit for visit in profile.visits() if len(visit.samples)))
    assert told.block is not None
    wrong = msgspec.structs.replace(told, block=msgspec.structs.replace(told.block, **changes))
    change(path, "UPDATE visit SET told = ? WHERE told IS NOT NULL", packed(wrong))
    with Profile.open(path) as profile:
        assert overview(profile) == fresh
