"""Which paths of a check need no further process."""

from __future__ import annotations

import math
import random

import msgspec
import pytest

from analysis.comparison import nodes
from waywiser.analysis.health.early_stop import (
    PRIOR_FREEDOM,
    BaselineTime,
    OtherReferences,
    ProcessTimes,
    baseline_times,
    path_times,
    settled,
    usual_noise,
)
from waywiser.curves.curve import Point
from waywiser.curves.subject import Subject
from waywiser.words.records import Failure

LOOKS = 8
THRESHOLD = 0.03
SAME = BaselineTime(0.0, 0.0)


def times(deviation: float, processes: int, loss: float = 0.0, seed: int = 1,
          before: BaselineTime | None = SAME) -> ProcessTimes:  # fmt: skip
    rng = random.Random(seed)
    now = [math.log1p(loss) + rng.gauss(0, deviation) for _ in range(processes)]
    return ProcessTimes(f"path {seed}", now, before)


def named(paths: list[ProcessTimes], look: int) -> dict[str, str]:
    return settled(paths, look, LOOKS, THRESHOLD)


def test_quiet_paths_are_settled_after_three_processes() -> None:
    paths = [times(0.002, 3, seed=seed) for seed in range(10)]
    assert set(named(paths, 3)) == {path.curve for path in paths}
    assert not named([times(0.002, 2, seed=seed) for seed in range(10)], 2)


def test_noisy_paths_go_on_and_a_clear_one_among_them_does_not() -> None:
    noisy = [times(0.03, 3, seed=seed, before=None) for seed in range(5)]
    assert not named(noisy, 3)
    deviations = (-0.03, 0.0, 0.03)
    faster = ProcessTimes("faster", [-0.06 + each for each in deviations], SAME)
    slower = ProcessTimes("slower", [0.12 + each for each in deviations], SAME)
    found = named([*noisy, faster, slower], 3)
    assert set(found) == {"faster"}, "an early look hardly accuses"
    noisy = [times(0.03, 7, seed=seed, before=None) for seed in range(5)]
    slower = ProcessTimes("slower", [0.23 + each for each in (*deviations, *deviations)], SAME)
    found = named([*noisy, slower], 7)
    assert set(found) == {"slower"} and "slower than before" in found["slower"]


def test_a_path_of_several_sizes_is_settled_if_all_are() -> None:
    quiet, noisy = times(0.001, 3), times(0.2, 3)
    both = [quiet, noisy._replace(curve=quiet.curve)]
    others = [times(0.001, 3, seed=seed) for seed in range(2, 9)]
    assert quiet.curve not in named([*both, *others], 3)


def test_a_path_that_fails_each_time_is_settled() -> None:
    fails = ProcessTimes("fails", [], None, failures=3)
    assert "3 processes: it fails in all" in named([fails], 3)["fails"]
    assert not named([fails._replace(failures=2)], 3), "it was not tried often enough"


def test_a_baseline_that_scatters_clears_and_accuses_less() -> None:
    noisy = [times(0.03, 7, seed=seed, before=None) for seed in range(5)]
    deviations = [-0.03, 0.0, 0.03, 0.02, -0.02, 0.01, -0.01]
    for now in ([each - 0.4 for each in deviations[:3]], [each + 0.3 for each in deviations]):
        look = len(now)
        sure = ProcessTimes("path", now, SAME)
        unsure = sure._replace(before=BaselineTime(0.0, 0.25))
        assert "path" in named([*noisy, sure], look)
        assert "path" not in named([*noisy, unsure], look)


def test_a_baseline_of_one_process_is_not_exact() -> None:
    """Its noise is taken to be that of now: a change of the threshold is seldom decided."""
    cleared = accused = 0
    for seed in range(300):
        rng = random.Random(seed)
        (made,) = baseline_times([[one_process(math.exp(rng.gauss(0, 0.03)))]]).values()
        assert made.variance is None
        paths = [times(0.03, LOOKS, seed=31 * seed + n, before=None) for n in range(6)]
        now = [math.log1p(THRESHOLD) + rng.gauss(0, 0.03) for _ in range(LOOKS)]
        for look in range(3, LOOKS + 1):
            cut = [path._replace(now=path.now[:look]) for path in paths]
            why = named([*cut, ProcessTimes("path", now[:look], made)], look).get("path", "")
            cleared += "at most" in why
            accused += "slower than before" in why
            if why:
                break
    assert cleared <= 300 * 0.05 + 3 * math.sqrt(300 * 0.05)
    assert accused <= 300 * 0.05 + 3 * math.sqrt(300 * 0.05)


def one_process(seconds: float) -> Point:
    """A series that one process has measured."""
    known = nodes.node(1, gpus=1, blocks=1).points[0]
    block = msgspec.structs.replace(known.blocks[0], median=seconds)
    return msgspec.structs.replace(known, blocks=(block,))


def test_nothing_is_settled_after_the_last_look() -> None:
    assert not named([times(0.001, 9, seed=seed) for seed in range(4)], LOOKS + 1)


def test_a_loss_is_seldom_cleared() -> None:
    """A path that is as slow as the threshold, looked at eight times, is cleared in 5 % at most."""
    cleared = 0
    for seed in range(400):
        whole = [times(0.02, LOOKS, THRESHOLD, seed=31 * seed + n) for n in range(6)]
        for look in range(3, LOOKS + 1):
            found = named([path._replace(now=path.now[:look]) for path in whole], look)
            if "at most" in found.get(whole[0].curve, ""):
                cleared += 1
                break
    assert cleared <= 400 * 0.05 + 3 * math.sqrt(400 * 0.05)


def test_times_are_those_of_a_profile_and_of_its_baselines() -> None:
    now, one, other = (nodes.node(seed, gpus=1, blocks=3) for seed in (1, 2, 3))
    before = baseline_times([one.points, other.points])
    found = path_times(now.points, before)
    assert [path.curve for path in found] == [point.curve for point in now.points]
    for path, point in zip(found, now.points, strict=True):
        assert path.before is not None
        assert path.before.middle == pytest.approx(math.log(point.blocks[0].median), abs=0.05)
        assert 0 < path.before.variance < 0.01
        assert len(path.now) == 3
    failed = now.points[0].of(now.points[0].workload, failures=[Failure("verification", "x")])
    assert path_times([failed])[0].now == ()
    assert isinstance(now, Subject)


def test_what_no_reference_looks_at_is_settled_at_the_first_look() -> None:
    noisy = [times(0.1, 3, seed=seed, before=None) for seed in range(6)]
    of_a_link, beside_others, with_room, with_baseline, *rest = noisy
    noisy[1] = beside_others._replace(series="one")
    noisy[2] = with_room._replace(series="other")
    noisy[3] = with_baseline._replace(before=SAME)
    others = OtherReferences(frozenset({of_a_link.curve}), {"one": 0.05, "other": 5.0})
    found = settled(noisy, 3, LOOKS, THRESHOLD, others)
    assert set(found) == {with_room.curve, *(path.curve for path in rest)}
    assert all("no reference has anything against it" in why for why in found.values())
    assert not settled([path._replace(now=path.now[:2]) for path in noisy], 2, LOOKS, 0.03, others)


def test_a_path_below_other_machines_is_measured_until_the_end() -> None:
    quiet = [times(0.01, 3, seed=seed, before=None) for seed in range(6)]
    below = quiet[0]._replace(series="below")
    others = OtherReferences(frozenset(), {"below": -0.2})
    for look in range(3, LOOKS):
        assert below.curve not in settled([below, *quiet[1:]], look, LOOKS, 1e-6, others)


def test_quiet_paths_do_not_wait_for_noisy_ones() -> None:
    """The noise of all paths counts less, the less alike they are."""
    alike = [times(0.01, 8, seed=seed) for seed in range(12)]
    assert usual_noise(alike).freedom == PRIOR_FREEDOM
    mixed = [*alike[:6], *(times(0.3, 8, seed=seed) for seed in range(20, 26))]
    assert 0 < usual_noise(mixed).freedom < 1
    noisy = [times(0.05, 5, seed=seed, before=None) for seed in range(3)]
    quiet = [times(0.001, 5, seed=seed, before=None) for seed in range(77, 80)]
    assert set(named([*quiet, *noisy], 5)) == {path.curve for path in quiet}
    for few in ([], [times(0.01, 1)], [times(0.01, 8)]):
        assert usual_noise(few).freedom == 0, "no other path shows anything"
