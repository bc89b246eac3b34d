"""What follows from a profile is kept in the user's cache, and nothing needs it."""

from __future__ import annotations

import os
import random
import shutil
import zlib
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from tests import profiles

from analysis.questions.subjects import curve, postal
from analysis.questions.subjects import subject as made_of
from waywiser.analysis.questions import fitted as fits
from waywiser.curves import subject as subjects
from waywiser.curves.subject import Subject, read_subject
from waywiser.profile import Profile, WritableProfile, derived


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return profiles.write(tmp_path / "a.wwp")


def subject(file: Path) -> Subject:
    with Profile.open(file) as profile:
        return Subject.of(profile)


def forbid(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is made from samples any more."""

    def never(*_: object, **__: object) -> None:
        raise AssertionError("it is made again")

    monkeypatch.setattr(subjects, "overview", never)
    monkeypatch.setattr(subjects, "points_of", never)
    monkeypatch.setattr(fits, "fit_curves", never)


READERS: dict[str, Callable[[Path], Subject]] = {
    "report": subject,
    "comparison": read_subject,
    "check": lambda file: read_subject(file, links=True),
}


@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
def test_what_is_kept_is_what_was_made(
    read: Callable[[Path], Subject],
    file: Path,
    derived_folder: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with monkeypatch.context() as without:
        without.setattr(derived, "MOST_BYTES", 0)
        made = read(file)
        assert not derived_folder.exists()
    assert read(file) == made
    assert len(list(derived_folder.iterdir())) == 1
    forbid(monkeypatch)
    assert read(file) == made


def test_a_copy_has_the_same_under_its_own_name(
    file: Path, derived_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = subject(file)
    other = Path(shutil.copy(file, file.with_name("other.wwp")))
    forbid(monkeypatch)
    again = subject(other)
    assert (again.file, again.overview.profile) == (str(other), str(other))
    assert again.points == first.points


def test_fits_are_kept_by_the_times_of_blocks(
    derived_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = (made_of(curve(profiles.H2D, postal(5e-6, rate))).curves for rate in (55e9, 54e9))
    first = fits.fitted(one)
    assert fits.fitted(other) != first
    forbid(monkeypatch)
    assert fits.fitted(one) == first


@pytest.mark.parametrize("harm", ["cut", "other bytes", "another value", "a folder"])
def test_what_cannot_be_read_is_made_again(harm: str, file: Path, derived_folder: Path) -> None:
    made = subject(file)
    (kept,) = derived_folder.iterdir()
    data = kept.read_bytes()
    kept.unlink()
    if harm == "a folder":
        kept.mkdir()
    elif harm == "another value":
        kept.write_bytes(zlib.compress(msgspec.msgpack.encode({"name": 1})))
    else:
        whole = data[: len(data) // 2] if harm == "cut" else random.Random(1).randbytes(len(data))
        kept.write_bytes(whole)
    assert subject(file) == made


def test_without_a_cache_all_is_made_in_memory(
    file: Path, derived_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = subject(file)
    derived_folder.parent.parent.rename(derived_folder.parent.parent.with_name("gone"))
    derived_folder.parent.parent.write_text("no folder")
    assert subject(file) == made
    assert derived_folder.parent.parent.read_text() == "no folder"


def test_other_rules_have_names_of_their_own(
    file: Path, derived_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    subject(file)
    monkeypatch.setattr(derived, "rules", lambda: "others")
    subject(file)
    assert len(list(derived_folder.iterdir())) == 2


def test_the_rules_are_sources_that_are_there() -> None:
    root = Path(derived.__file__).parents[1]
    assert all(list((root / name).glob("*.py")) for name in derived.RULED)


@pytest.mark.parametrize("name", ["stats/order.py", "machine/traits.json"])
def test_a_changed_source_is_another_rule(name: str, tmp_path: Path) -> None:
    source = tmp_path / name
    source.parent.mkdir()
    source.write_text("one")
    before = derived.sources_version(tmp_path)
    (source.parent / "order.pyc").write_text("compiled")
    assert derived.sources_version(tmp_path) == before
    source.write_text("two")
    assert derived.sources_version(tmp_path) != before


def test_what_changed_while_it_was_read_is_not_kept(
    tmp_path: Path, derived_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, *others = profiles.visits()
    whole = profiles.new(tmp_path / "a.wwp")
    whole.commit_visit(first)

    def made(profile: Profile) -> int:
        found = derived.derived(profile, "test", int, lambda: added(whole))
        return found

    def added(to: WritableProfile) -> int:
        to.commit_visit(others.pop())
        return 1

    with Profile.open(tmp_path / "a.wwp") as profile:
        assert made(profile) == made(profile) == 1
        assert not list(derived_folder.iterdir())
        assert derived.derived(profile, "test", int, lambda: 2) == 2
        assert len(list(derived_folder.iterdir())) == 1
    whole.close()


def test_what_was_used_the_longest_time_ago_goes(
    derived_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = random.Random(1).randbytes(1000)
    for n in range(4):
        derived.kept(n, "test", bytes, lambda: text)
    for n, kept in enumerate(sorted(derived_folder.iterdir())):
        os.utime(kept, (1000 + n, 1000 + n))
    ordered = sorted(derived_folder.iterdir())
    assert len(ordered) == 4
    monkeypatch.setattr(derived, "MOST_BYTES", 4500)
    derived.kept(4, "test", bytes, lambda: text)
    left = set(derived_folder.iterdir())
    assert set(ordered[:3]).isdisjoint(left) and len(left) == 2
