"""Changes of nodes over many nights: found in time, at their date, with their cause, and never
without one."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from analysis.history.planted_nights import (
    BUSY,
    H2D,
    QUIET,
    again,
    drift,
    moment,
    paths,
    planted,
    step,
    uuid_of,
)
from waywiser.analysis.history.history import History, PathHistory, history_of
from waywiser.analysis.history.night import Night, NightGpu, PathColumns

NODES, NIGHTS = 10, 60


def line(found: History, path: str = H2D, node: str = "n1") -> PathHistory:
    (only,) = [each for each in found.paths if (each.node, each.path) == (node, path)]
    return only


def test_a_loss_of_5_percent_is_found_within_three_nights_at_its_date() -> None:
    """Each node of a fleet, three nights after its change: benchmarks/history.py has more."""
    nights = {f"n{seed}": 15 + 4 * seed for seed in range(NODES)}
    surveys = {
        name: [to_gpus(each) for each in planted(name, NIGHTS, seed, change=step(night, 0.95))]
        for seed, (name, night) in enumerate(nights.items())
    }
    right = 0
    for name, night in nights.items():
        found = history_of([each for own in surveys.values() for each in own[: night + 3]])
        if line(found, node=name).status == "slower":
            right += 1
            (change,) = line(found, node=name).changes
            assert change.ratio == pytest.approx(0.95, abs=0.025)
            assert change.date[:10] in {moment(night + n)[:10] for n in (-1, 0, 1)}
    assert right >= 0.9 * NODES


def test_a_loss_is_found_in_the_faster_processes_where_the_median_has_too_much_noise() -> None:
    """A third of the processes are 6 to 12 % slow, in each night others."""
    rng = np.random.default_rng(11)

    def slowed(night: Night) -> Night:
        factors = np.where(rng.random((len(night.paths), 8)) < 1 / 3, rng.uniform(1.06, 1.12), 1.0)
        return msgspec.structs.replace(
            night,
            paths=PathColumns.of(
                msgspec.structs.replace(
                    path,
                    seconds=path.seconds * float(np.median(own)),
                    fastest_seconds=path.fastest_seconds * own.min(),
                )
                for path, own in zip(night.paths, factors, strict=True)
            ),
        )

    nights = {f"n{seed}": 25 + 3 * seed for seed in range(NODES)}
    every = [
        [slowed(to_gpus(n)) for n in planted(name, night + 3, seed, change=step(night, 0.95))]
        for seed, (name, night) in enumerate(nights.items())
    ]
    found, without = (
        sum(line(history_of(own), node=own[0].host).status == "slower" for own in surveys)
        for surveys in (every, [[median_only(night) for night in own] for own in every])
    )
    assert found >= 0.6 * NODES
    assert without <= 0.5 * NODES and found >= without + 3


def to_gpus(night: Night) -> Night:
    """The night with the paths from the host to its GPUs alone: others do not change theirs."""
    paths = PathColumns.of(path for path in night.paths if path.group == "H2D")
    return msgspec.structs.replace(night, paths=paths)


def median_only(night: Night) -> Night:
    same = (msgspec.structs.replace(path, fastest_seconds=path.seconds) for path in night.paths)
    return msgspec.structs.replace(night, paths=PathColumns.of(same))


@pytest.mark.parametrize("kept", [QUIET, BUSY], ids=["quiet", "busy"])
def test_no_false_alarm_on_any_night(kept: tuple[str, ...]) -> None:
    surveys = [planted(f"n{n}", NIGHTS, 1000 + n, kept=kept) for n in range(NODES)]
    for nights in range(8, NIGHTS + 1, 13):
        found = history_of([each for own in surveys for each in own[:nights]])
        assert not found.of("slower", "changed"), nights
        assert len(found.of("suspected")) <= 2


def test_a_slow_drift_is_named_as_drift() -> None:
    found = line(history_of(planted("n1", NIGHTS, 3, change=drift(-0.01))))
    assert found.status == "slower"
    (change,) = found.changes
    assert change.kind == "drift"
    assert change.per_week == pytest.approx(-0.01, abs=0.002)
    assert found.trend_per_week == pytest.approx(-0.01, abs=0.002)


def test_missing_nights_move_no_date() -> None:
    surveys = planted("n1", 50, 4, change=step(30, 0.9))
    kept = [each for n, each in enumerate(surveys) if n % 3 != 1 and not 24 < n < 33]
    (change,) = line(history_of(kept)).changes
    assert change.after[:10] == moment(24)[:10]
    assert change.date[:10] == moment(33)[:10]


def test_one_odd_night_is_no_change_but_suspected_while_it_is_the_last() -> None:
    surveys = planted("n1", 30, 5, change=lambda p, n: 0.7 if p == H2D and n == 20 else 1.0)
    last = history_of(surveys[:21])
    assert line(last).status == "suspected"
    assert last.suspects == ("n1",)
    (change,) = line(last).changes
    assert not change.confirmed and change.ratio == pytest.approx(0.7, abs=0.04)
    assert line(history_of(surveys)).status == "steady"


def test_two_surveys_in_a_night_are_one_night_and_refute_or_confirm_what_is_suspected() -> None:
    surveys = planted("n1", 21, 5, change=step(20, 0.7))
    healthy = planted("n1", 21, 5)[-1]
    refuted = [*surveys, again(healthy, 1), again(healthy, 2)]
    assert line(history_of(refuted)).status == "steady"
    confirmed = [*surveys, again(surveys[-1], 1), again(surveys[-1], 2)]
    found = line(history_of(confirmed))
    assert found.status == "slower"
    assert found.nights[-1].surveys == 3 and len(found.nights) == 21
    twice = [each for own in planted("n1", 40, 6) for each in (own, again(own, 3))]
    assert len(line(history_of(twice)).nights) == 40


def test_a_change_of_all_paths_with_a_new_driver_says_so_once() -> None:
    every = [path for _, path, _, _ in paths()]
    found = history_of(
        planted(
            "n1", 40, 7, change=step(25, 0.93, every),
            facts=lambda n: {"driver": "550.54" if n < 25 else "560.28", "kernel": "6.1"},
        )
    )  # fmt: skip
    (node,) = found.nodes
    (change,) = node.changes
    assert change.since == ("driver 550.54 before, 560.28 now",)
    assert change.ratio == pytest.approx(0.93, abs=0.01)
    assert (change.paths, change.of) == (len(every), len(every))


def test_a_change_of_one_path_is_no_change_of_the_node() -> None:
    found = history_of(planted("n1", 40, 8, change=step(25, 0.93)))
    assert not found.nodes[0].changes
    assert line(found).last_change is not None and not line(found).changes[0].since


def test_a_loss_that_returns_is_a_change_and_a_gain_hides_no_later_loss() -> None:
    def lost(path: str, night: int) -> float:
        return 0.9 if path == H2D and 20 <= night < 30 else 1.0

    found = line(history_of(planted("n1", 50, 9, change=lost)))
    assert found.status == "changed" and [c.ratio < 1 for c in found.changes] == [True, False]

    def faster_first(path: str, night: int) -> float:
        return 1.06 if path == H2D and 20 <= night < 35 else 1.0

    found = line(history_of(planted("n1", 50, 10, change=faster_first)))
    assert found.status == "slower" and found.ratio == pytest.approx(1 / 1.06, abs=0.01)


def test_since_lists_later_changes_only() -> None:
    surveys = planted("n1", 50, 11, change=step(20, 0.9))
    assert line(history_of(surveys, since=moment(21)[:10])).status == "steady"
    assert line(history_of(surveys, since=moment(19)[:10])).status == "slower"


def test_a_replaced_gpu_begins_a_new_line_and_is_said() -> None:
    def replaced(night: Night, number: int) -> Night:
        if number < 25:
            return night
        one, two = night.gpus
        other = NightGpu(two.index, "GPU-other", two.pci)
        return msgspec.structs.replace(night, gpus=(one, other))

    surveys = planted("n1", 40, 12, change=step(25, 0.8))
    found = history_of([replaced(each, n) for n, each in enumerate(surveys)])
    (node,) = found.nodes
    assert any("gpu:1 is another device" in note and "GPU-other" in note for note in node.notes)
    lines = [each for each in found.paths if each.path == H2D]
    assert sorted(len(each.nights) for each in lines) == [15, 25]
    assert {each.gpus for each in lines} == {(uuid_of("n1", 1),), ("GPU-other",)}
    assert all(each.status == "steady" for each in lines)
    assert any("not in the last survey" in note for note in node.notes)


def test_the_worst_paths_and_nodes_come_first() -> None:
    surveys = [
        *planted("n1", 30, 13),
        *planted("n2", 30, 14, change=step(20, 0.9)),
        *planted("n3", 30, 15, change=step(15, 0.7)),
        *planted("n4", 30, 16, change=step(29, 0.8)),
    ]
    found = history_of(surveys)
    assert [(p.node, p.status) for p in found.paths[:3]] == [
        ("n3", "slower"),
        ("n2", "slower"),
        ("n4", "suspected"),
    ]
    assert [node.name for node in found.nodes] == ["n3", "n2", "n4", "n1"]


def test_a_few_nights_say_nothing() -> None:
    found = history_of(planted("n1", 5, 17, change=step(4, 0.5)))
    assert {path.status for path in found.paths} == {"too few nights"}


def test_a_path_of_another_size_in_the_last_survey_is_not_said_to_be_missing() -> None:
    surveys = planted("n1", 6, 1)
    large = msgspec.structs.replace(
        surveys[-1],
        paths=PathColumns.of(
            msgspec.structs.replace(path, bytes=8 * path.bytes, seconds=8 * path.seconds,
                                    fastest_seconds=8 * path.fastest_seconds)
            for path in surveys[-1].paths
        ),
    )  # fmt: skip
    found = history_of([*surveys[:-1], large])
    (node,) = found.nodes
    assert not any("not in the last survey" in note for note in node.notes)
    (note,) = [note for note in node.notes if "another size" in note]
    assert "512 MiB after 64 MiB" in note
