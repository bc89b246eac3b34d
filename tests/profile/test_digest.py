"""Digests say what the samples say, whether they were stored or are made while reading."""

from __future__ import annotations

import random
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import profiles
from waywiser.profile import DamagedProfile, Profile, WritableProfile
from waywiser.profile.digest import RawBlocks
from waywiser.records import SUMMARY, VOID, Samples
from waywiser.stats.block import estimate_block
from waywiser.stats.summary import digests, summaries, summary_of

WHAT = profiles.workload(profiles.H2D, 2**20)


def stored(path: Path, *, summarised: bool) -> Path:
    with WritableProfile.create(path, profiles.machine(), {}) as profile:
        for visit in profiles.visits():
            profile.commit_visit(visit, summary_of(visit) if summarised else None)
    return path


def test_stored_and_made_summaries_are_equal(tmp_path: Path) -> None:
    with_columns = digests(stored(tmp_path / "a.wwp", summarised=True))
    without = digests(stored(tmp_path / "b.wwp", summarised=False))
    assert with_columns == without
    assert sum(len(digest.blocks) for digest in without) > 20


def test_a_digest_is_what_the_samples_say(tmp_path: Path) -> None:
    path = stored(tmp_path / "a.wwp", summarised=True)
    with Profile.open(path) as profile:
        series = {each.workload.identity: each for each in profile.series()}
    for digest in digests(path):
        visits = series[digest.identity].visits
        found = [block for visit in visits if (block := estimate_block(visit))]
        assert [b.median for b in digest.blocks] == [block.median for block in found]
        assert digest.failures == tuple(v.failure for v in visits if v.failure)
        assert digest.text == str(digest.workload)
        assert digest.curve == digest.workload.curve


def test_a_file_of_an_earlier_program_has_no_columns_and_is_not_touched(tmp_path: Path) -> None:
    import sqlite3

    path = stored(tmp_path / "a.wwp", summarised=True)
    expected = digests(path)
    connection = sqlite3.connect(path)
    for column in ("counted", "median", "low", "high", "told"):
        connection.execute(f"ALTER TABLE visit DROP COLUMN {column}")
    connection.commit()
    connection.close()
    before = path.read_bytes()
    path.chmod(0o444)
    assert digests(path) == expected
    assert path.read_bytes() == before
    path.chmod(0o644)
    with WritableProfile.resume(path, {}) as profile:  # brings it up to date
        assert {"counted", "median", "low", "high"} <= profile.columns("visit")
    assert digests(path) == expected


def test_a_workload_that_makes_no_sense_is_damage(tmp_path: Path) -> None:
    import sqlite3

    path = stored(tmp_path / "a.wwp", summarised=True)
    connection = sqlite3.connect(path)
    connection.execute("UPDATE series SET workload = '{}]'")
    connection.commit()
    connection.close()
    with pytest.raises(DamagedProfile):
        digests(path)


sample = st.tuples(
    st.floats(1e-7, 1e-2),
    st.integers(1, 40),
    st.sampled_from((0, 0, 0, VOID, SUMMARY)),
)


@given(st.lists(st.lists(sample, min_size=1, max_size=25), min_size=1, max_size=6), st.randoms())
def test_all_at_once_is_visit_by_visit(
    blocks: list[list[tuple[float, int, int]]], rng: random.Random
) -> None:
    import numpy as np

    modes = [rng.choice(("device", "host")) for _ in blocks]
    flat = [each for block in blocks for each in block]
    raw = RawBlocks(
        np.array([span for span, _, _ in flat]),
        np.array([float(batch) for _, batch, _ in flat]),
        np.array([flag for _, _, flag in flat]),
        np.cumsum([0, *(len(block) for block in blocks[:-1])]),
        np.array([mode == "host" for mode in modes]),
    )
    single = [
        summary_of(
            profiles.visit(
                WHAT,
                taken=Samples(
                    span=tuple(span for span, _, _ in block),
                    repetitions=tuple(batch for _, batch, _ in block),
                    flags=tuple(flag for _, _, flag in block),
                ),
                mode=mode,
            )
        )
        for block, mode in zip(blocks, modes, strict=True)
    ]
    assert summaries(raw) == [msgspec.structs.replace(each, told=None) for each in single]
