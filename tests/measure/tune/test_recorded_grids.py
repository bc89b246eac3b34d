"""The search on recorded grids, which stand in for the machine (see `recorded_grid`)."""

from __future__ import annotations

from pathlib import Path

import pytest
from recorded_grid import RecordedGrid, recorded_grids, replay

from kept import RESULTS, unpacked
from waywiser.stats.order import median

GRIDS = sorted((RESULTS / "2026-11-23-tuning").glob("*.wwp.xz"))
SEEDS = range(1, 10)
ENOUGH, MOST_SAMPLES = 0.97, 0.15


def grids_of(packed: Path, folder: Path) -> list[RecordedGrid]:
    return list(recorded_grids(unpacked(packed, folder / packed.stem)))


def test_there_are_grids_of_every_kind_of_search() -> None:
    assert len(GRIDS) >= 6


@pytest.mark.parametrize("packed", GRIDS, ids=lambda path: path.name.partition(".")[0])
def test_winners_are_as_fast_as_the_best_with_few_samples(packed: Path, tmp_path: Path) -> None:
    assert packed.stat().st_size < 1_500_000
    for grid in grids_of(packed, tmp_path):
        assert len(grid.points) == grid.target.configurations, "the grid is full"
        found = [replay(grid, seed) for seed in SEEDS]
        assert median([each.share for each in found]) >= ENOUGH, grid.name
        assert max(each.samples for each in found) <= MOST_SAMPLES, grid.name


def test_the_defaults_are_not_enough_on_most_grids(tmp_path: Path) -> None:
    gains = [replay(grid, 1).gain for packed in GRIDS for grid in grids_of(packed, tmp_path)]
    assert sum(gain > 1.1 for gain in gains) > len(gains) / 2


def test_a_grid_keeps_the_settings_that_it_was_recorded_with(tmp_path: Path) -> None:
    """A later version searches fewer settings of lists."""
    (packed,) = (file for file in GRIDS if file.name == "grid-lists.wwp.xz")
    (grid,) = grids_of(packed, tmp_path)
    assert [axis.name for axis in grid.target.axes] == ["grid", "blocks"]
    assert {configuration[0] for configuration in grid.points} == {"tuned", "paper"}


def test_a_replay_is_the_same_again(tmp_path: Path) -> None:
    (grid, *_) = grids_of(GRIDS[0], tmp_path)
    assert replay(grid, 1) == replay(grid, 1)
