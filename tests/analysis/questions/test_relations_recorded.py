"""Answers about real H200s, measured once: nothing is wrong with them."""

from __future__ import annotations

from pathlib import Path

import pytest

from kept import RESULTS, unpacked
from waywiser.analysis.questions import affinity, anisotropy, contention, identical
from waywiser.curves.answer import Finding
from waywiser.curves.subject import Subject
from waywiser.profile import Profile

FOUR, TWO = "2026-11-20-h200-catalogue/four-gpus/check", "2026-11-20-h200/two-gpus/standard"


def recorded(name: str, folder: Path) -> Subject:
    with Profile.open(unpacked(RESULTS / f"{name}.wwp.xz", folder / "recorded.wwp")) as profile:
        return Subject.of(profile)


@pytest.mark.parametrize("name", [FOUR, TWO])
def test_links_are_even_and_equal(name: str, tmp_path: Path) -> None:
    subject = recorded(name, tmp_path)
    assert identical.answer(subject).findings == ()
    assert affinity.answer(subject).findings == ()
    assert all(each.severity == "info" for each in anisotropy.answer(subject).findings)


def test_four_gpus_share_the_way_to_the_host_and_not_from_it(tmp_path: Path) -> None:
    found = contention.answer(recorded(FOUR, tmp_path)).findings
    sets: dict[str, Finding] = {
        each.statement.partition(" ")[0]: each for each in found if each.id == "shared-bottleneck"
    }
    assert set(sets) == {"all-to-host", "host-and-all"}
    carried = sets["all-to-host"].exhibits[0]
    assert carried.value == pytest.approx(155e9, rel=0.03)
    assert "duplex-loss" not in {each.id for each in found}, "92% of the sum changes no plan"
