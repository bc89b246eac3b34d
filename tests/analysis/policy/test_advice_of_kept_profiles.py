"""Kept profiles of one kind of machine advise the same method, or say that they do not decide."""

from __future__ import annotations

from pathlib import Path

import pytest

from kept import RESULTS, unpacked
from waywiser.analysis.policy.advice import CopyRequest, advise
from waywiser.curves.subject import Subject
from waywiser.profile import Profile

SURVEYS = RESULTS / "2026-11-23-surveys"
FILES = {
    "H200": [*(SURVEYS / f"h200-standard-{n}.wwp.xz" for n in (1, 3, 5)),
             RESULTS / "2026-11-24-policy" / "h200-standard.wwp.xz"],
    "H100": [*(SURVEYS / f"h100-standard-{n}.wwp.xz" for n in (1, 3)),
             RESULTS / "2026-11-24-policy" / "h100-standard.wwp.xz"],
}  # fmt: skip
COPIES = (
    ("pageable@numa:0", "device@gpu:0", "1GiB"),
    ("pageable@numa:0", "device@gpu:0", "64MiB"),
    ("device@gpu:0", "pageable@numa:0", "64MiB"),
    ("pinned@numa:0", "device@gpu:0", "64MiB"),
)


@pytest.mark.parametrize("kind", FILES)
def test_profiles_that_decide_advise_the_same_method(kind: str, tmp_path: Path) -> None:
    decided: dict[tuple[str, ...], set[str]] = {}
    silent = 0
    for number, packed in enumerate(FILES[kind]):
        with Profile.open(unpacked(packed, tmp_path / f"{number}.wwp")) as profile:
            subject = Subject.of(profile)
        for copy in COPIES:
            found = advise([subject], CopyRequest.of(*copy))
            notes = [note for note in found.notes if "does not decide" in note]
            assert all(f"{number}.wwp" in note for note in notes)
            if notes:
                silent += 1
            else:
                decided.setdefault(copy, set()).add(str(found.best.method))
    assert silent  # surveys of a version with other defaults are among them
    assert decided and all(len(methods) == 1 for methods in decided.values())
