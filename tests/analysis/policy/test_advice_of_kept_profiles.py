"""Kept profiles of one kind of machine advise the same method, or say that they do not decide."""

from __future__ import annotations

from pathlib import Path

import pytest

from kept import RESULTS, unpacked
from waywiser.analysis.policy.advice import CopyRequest, advise
from waywiser.curves.subject import Subject
from waywiser.profile import Profile

ONE_GPU = "2026-11-20-h200-catalogue/one-gpu"
SURVEYS, POLICY, SETS = "2026-11-23-surveys", "2026-11-24-policy", "2026-11-25-sets"
FILES = {
    "H200": [f"{ONE_GPU}/standard",
             *(f"{SURVEYS}/h200-standard-{n}" for n in (1, 3)), f"{POLICY}/h200-standard",
             *(f"{SETS}/h200-model-{n}" for n in (1, 3))],
    "H100": [*(f"{SURVEYS}/h100-standard-{n}" for n in (1, 3)), f"{POLICY}/h100-standard",
             f"{POLICY}/h100-standard-2", f"{SETS}/h100-model-1"],
}  # fmt: skip
"""Kept surveys of standard copies on one GPU, of one kind of virtual machine each."""

HOST, GPU = "numa:0", "gpu:0"
COPIES = (
    *((f"pageable@{HOST}", f"device@{GPU}", size) for size in ("16MiB", "1GiB")),
    *((f"device@{GPU}", f"pageable@{HOST}", size) for size in ("16MiB", "1GiB")),
    (f"pinned@{HOST}", f"device@{GPU}", "64MiB"),
    (f"device@{GPU}", f"pinned@{HOST}", "1MiB"),
)
"""Copies of pageable memory of two sizes, and a copy of pinned memory, in both directions."""


@pytest.mark.parametrize("kind", FILES)
def test_profiles_that_decide_advise_the_same_method(kind: str, tmp_path: Path) -> None:
    decided: dict[tuple[str, ...], set[str]] = {}
    silent = 0
    for number, packed in enumerate(FILES[kind]):
        with Profile.open(
            unpacked(RESULTS / f"{packed}.wwp.xz", tmp_path / f"{number}.wwp")
        ) as profile:
            subject = Subject.of(profile)
        for copy in COPIES:
            found = advise([subject], CopyRequest.of(*copy))
            notes = [note for note in found.notes if "does not decide" in note]
            assert all(f"{number}.wwp" in note for note in notes)
            if notes:
                assert "by more than the noise" not in found.why
                silent += 1
            else:
                decided.setdefault(copy, set()).add(str(found.best.method))
    assert silent  # surveys of a version with other defaults are among them
    assert decided and all(len(methods) == 1 for methods in decided.values())
