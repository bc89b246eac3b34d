"""Two surveys of one real GPU in a row, as they are, and with copies that are 5 % slower."""

from __future__ import annotations

import msgspec
import pytest

from analysis.comparison.nodes import losses, slower
from kept import RESULTS, unpacked
from waywiser.analysis.comparison.comparison import compare
from waywiser.curves.curve import Point
from waywiser.curves.subject import Subject, read_subject

ONE_GPU = RESULTS / "2026-11-20-h200" / "one-gpu"

CLEAN = [
    f"{source} -> {destination} by copy-engine"
    for source, destination in (
        ("pinned@numa:0", "device@gpu:0"),
        ("device@gpu:0", "pinned@numa:0"),
    )
]
"""Headline paths that repeat within a tenth of a per cent, at nine sizes from 1 MiB on."""


@pytest.fixture(scope="module")
def surveys(tmp_path_factory: pytest.TempPathFactory) -> list[Subject]:
    folder = tmp_path_factory.mktemp("recorded")
    return [
        read_subject(unpacked(ONE_GPU / f"{name}.wwp.xz", folder / f"{name}.wwp"))
        for name in ("standard", "standard-again")
    ]


def mixed(
    one: Subject, blocks_of_one: set[int], other: Subject, blocks_of_other: set[int]
) -> Subject:
    """Some blocks of each: a survey that might as well have been."""
    others = {digest.identity: digest for digest in other.points}

    def both(digest: Point) -> Point:
        theirs = others[digest.identity].blocks if digest.identity in others else ()
        kept = [each for each in digest.blocks if each.block in blocks_of_one]
        kept += [each for each in theirs if each.block in blocks_of_other]
        return msgspec.structs.replace(digest, blocks=tuple(kept))

    return msgspec.structs.replace(one, points=tuple(map(both, one.points)))


def test_the_same_gpu_again_has_not_changed(surveys: list[Subject]) -> None:
    first, again = surveys
    sides = [
        (first, again),
        (mixed(first, {0}, again, {0}), mixed(first, {1}, again, {1})),
        (mixed(first, {0}, again, {1}), mixed(first, {1}, again, {0})),
        (mixed(first, {0}, again, set()), mixed(first, {1}, again, set())),
        (mixed(again, {0}, first, set()), mixed(again, {1}, first, set())),
        (mixed(first, {0}, again, set()), mixed(again, {1}, first, set())),
    ]
    for before, after in sides:
        found = compare([before], [after])
        assert not losses(found)
        assert not found.of("improvement")


def test_clean_paths_that_became_5_percent_slower_are_found(surveys: list[Subject]) -> None:
    first, again = surveys
    found = compare([first], [slower(again, lambda digest: digest.curve in CLEAN, 1.05)])
    assert losses(found) == set(CLEAN)
    assert set(CLEAN) <= {path.curve for path in found.of("suspected")}
    assert not found.of("improvement")
    quick = compare([first], [slower(again, lambda digest: digest.curve in CLEAN, 1 / 1.06)])
    assert {path.curve for path in quick.of("improvement")} == set(CLEAN)


def test_one_path_alone_is_found_among_all(surveys: list[Subject]) -> None:
    first, again = surveys
    for curve in CLEAN:
        found = compare([first], [slower(again, lambda d, c=curve: d.curve == c, 1.05)])
        assert losses(found) == {curve}
