"""Five nightly checks of four real GPUs on a busy host: nothing to find, until a GPU is slower."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import msgspec
import pytest

from analysis.comparison.nodes import losses, slower
from kept import RESULTS, unpacked
from waywiser.analysis.comparison.checkup import check_up
from waywiser.analysis.comparison.comparison import compare
from waywiser.curves.curve import Point
from waywiser.curves.subject import Subject, read_subject

BUSY = RESULTS / "2026-11-20-h200-catalogue" / "four-gpus-busy"
ODD = "gpu:2"
LINKS = {f"pinned@numa:0 -> device@{ODD} by copy-engine",
         f"device@{ODD} -> pinned@numa:0 by copy-engine"}  # fmt: skip
PEERS = {
    f"device@gpu:{a} -> device@gpu:{b} by copy-engine"
    for a in range(4)
    for b in range(4)
    if a != b and ODD in (f"gpu:{a}", f"gpu:{b}")
}


@pytest.fixture(scope="module")
def checks(tmp_path_factory: pytest.TempPathFactory) -> list[Subject]:
    folder = tmp_path_factory.mktemp("checks")
    return [
        read_subject(unpacked(BUSY / f"{name}.wwp.xz", folder / f"{name}.wwp"))
        for name in ("check", *(f"check-{n}" for n in range(1, 5)))
    ]


def test_one_process_a_side_decides_nothing(checks: list[Subject]) -> None:
    for before, after in combinations(checks, 2):
        found = compare([before], [after])
        assert not losses(found)
        assert not found.of("improvement")
        assert len(found.undecided) > 0


def test_three_nights_against_two_show_no_change_and_how_large_one_would_be(
    checks: list[Subject],
) -> None:
    for new in combinations(checks, 2):
        found = compare([each for each in checks if each not in new], new)
        assert not losses(found)
        assert not found.of("improvement")
        links = [path for path in found.paths if path.headline in ("H2D", "D2H", "P2P")]
        assert links
        assert all(path.detectable is not None and path.detectable < 0.06 for path in links)


@pytest.mark.parametrize("factor", [1.05, 1.08])
@pytest.mark.parametrize("night", range(5))
def test_one_night_with_a_slower_gpu_regresses_on_its_links_alone(
    checks: list[Subject], night: int, factor: float
) -> None:
    """Sets of transfers from the host scatter by 10 % there; the links by themselves do not."""
    bad = slower(checks[night], lambda digest: ODD in digest.text, factor)
    found = compare([each for n, each in enumerate(checks) if n != night], [bad])
    slow = {path.name for path in found.of("regression")}
    assert slow >= LINKS | PEERS
    assert all(ODD in path.curve for path in found.of("regression"))
    assert not found.of("improvement")


def test_a_process_that_another_user_slowed_down_does_not_hide_a_loss(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """In the second check one process of eight reached 25 GB/s D2H, the others 54 to 55."""
    folder = tmp_path_factory.mktemp("shared")
    kept = RESULTS / "2026-11-23-surveys"
    base, new = (
        read_subject(unpacked(kept / f"h100-busy-check-{n}.wwp.xz", folder / f"{n}.wwp"))
        for n in ("1a", "1b")
    )
    d2h = "device@gpu:0 -> pinned@numa:0 by copy-engine"
    healthy = compare([base], [new])
    assert not losses(healthy)
    (path,) = (path for path in healthy.paths if path.curve == d2h)
    assert path.detectable is not None and path.detectable < 0.06
    assert any(
        f"1 of 8 processes now was much slower than the others and was not used "
        f"(D2H {d2h}, 54% slower)" in note
        for note in healthy.notes
    )
    found = compare([base], [slower(new, lambda each: each.curve == d2h, 1 / 0.95)])
    assert {path.curve for path in found.of("suspected")} == {d2h}


def test_much_slower_processes_leave_a_check_inconclusive(tmp_path: Path) -> None:
    """Two of eight processes that take ten times as long may be another user's work, or a fault."""
    kept = RESULTS / "2026-11-23-surveys"
    base, new = (
        read_subject(unpacked(kept / f"h100-check-{n}.wwp.xz", tmp_path / f"{n}.wwp"))
        for n in (3, 4)
    )
    assert check_up(new, [base]).status == "ok"

    def slow(series: Point) -> Point:
        blocks = [
            msgspec.structs.replace(each, median=each.median * 10) if each.block in (2, 5) else each
            for each in series.blocks
        ]
        return msgspec.structs.replace(series, blocks=tuple(blocks))

    series = tuple(map(slow, new.points))
    found = check_up(msgspec.structs.replace(new, points=series), [base])
    assert found.status == "inconclusive"
    assert any("if they count, the loss is" in line for line in found.undecided)
    assert any("2 of 8 processes now were much slower" in note for note in found.notes)
