"""The nightly verdict: what fails a node, and what is only said."""

from __future__ import annotations

import math
import random
import re
from typing import Any

import msgspec
import nodes
import pytest

from waywiser.analysis.comparison.checkup import Checkup, check_up
from waywiser.analysis.comparison.comparison_text import MEASURE_AGAIN, NEW_BASELINE, label
from waywiser.curves.subject import LoadedLink, Subject
from waywiser.machine.machine import Machine
from waywiser.profile import RunHealth
from waywiser.words.records import Failure, GpuHealth, Health

PROCESSES = 8
"""Sets as `--preset check` measures sets."""


def surveyed(seed: int, host: str = "node0", **options: Any) -> Subject:
    return nodes.node(seed, host, blocks=PROCESSES, **options)


def checked(node: Subject, base: Subject | None = None, *repeats: Subject) -> Checkup:
    return check_up(node, [base or surveyed(1)], repeats=repeats)


def with_health(node: Subject, *counters: dict[str, int], xids: tuple[int, ...] = ()) -> Subject:
    """Readings at the start and at the end of its run, of gpu:0."""
    readings = [
        Health("t", (GpuHealth(0, node.machine.gpus[0].uuid, each, {}, xids if n else ()),))
        for n, each in enumerate(counters)
    ]
    return msgspec.structs.replace(node, health=(RunHealth(1, readings[0], readings[1]),))


def texts(found: Checkup) -> tuple[str, ...]:
    return tuple(each.text for each in found.findings)


def test_a_healthy_node_is_ok_in_one_line() -> None:
    found = checked(surveyed(2))
    assert found.status == "ok"
    assert not texts(found)
    assert re.fullmatch(
        r"OK node0: 82 no change; a loss below [0-9]\.[0-9] % could hide on a headline path",
        str(found),
    )


def test_the_first_line_has_the_largest_loss_that_could_hide() -> None:
    """It is the largest one of the paths without a change."""
    base, node = (nodes.node(seed, blocks=6, between_blocks=0.03) for seed in (31, 32))
    found = check_up(node, [base])
    paths = [path for path in found.comparison.measured if path.verdict == "no change"]
    unclear = [path for path in paths if not found.comparison.is_decided(path)]
    most = max(path.detectable or 1.0 for path in paths)
    counts = f"{len(paths) - len(unclear)} no change, {len(unclear)} not decided"
    assert found.tested.startswith(f"{counts}; a loss below {most:.1%}".replace("%", " %"))
    for allowed, status in ((most * 1.01, "ok"), (most * 0.99, "inconclusive")):
        limited = check_up(node, [base], max_hidden=allowed)
        assert (limited.status, str(limited).split()[0]) == (status, status.upper())
    assert any(f"{most * 0.99:.0%}" in line for line in limited.undecided)


def test_every_headline_path_counts_if_the_user_says_what_may_hide() -> None:
    """Without it, copies of the host are only noted."""
    paths = (
        "pageable@numa:0 -> pageable@numa:0 by cpu",
        "pageable@numa:0 -> device@gpu:0 by copy-engine",
    )

    def one(seed: int) -> Subject:
        rng = random.Random(seed)
        medians = [nodes.SIZE / 8e9 * math.exp(rng.gauss(0, 0.02)) for _ in range(6)]
        series = tuple(nodes.digest(nodes.workload(each), medians) for each in paths)
        return msgspec.structs.replace(nodes.node(seed), points=series)

    usual = check_up(one(2), [one(1)], max_hidden=None)
    strict = check_up(one(2), [one(1)], max_hidden=0.001)
    assert (usual.status, strict.status) == ("ok", "inconclusive")


def test_a_slower_link_fails_it_once_it_was_measured_again() -> None:
    slow = nodes.slow_host_link(4, 1.05)
    node, again = surveyed(2, slow=slow), surveyed(3, slow=slow)
    first = checked(node)
    assert (first.status, texts(first)) == ("inconclusive", ())
    assert f"H2D {nodes.h2d(4)} is 4." in first.undecided[0] or any(
        f"H2D {nodes.h2d(4)} is 4." in line for line in first.undecided
    )
    assert nodes.h2d(4) in first.suspects
    found = checked(node, None, again)
    assert found.status == "failed"
    assert any(f"{nodes.h2d(4)} is 4." in finding for finding in texts(found))
    assert str(found).startswith("FAILED node0: ")
    assert not found.suspects


def test_a_loss_that_is_not_there_again_is_a_note() -> None:
    node = surveyed(2, slow=nodes.slow_host_link(4, 1.05))
    found = checked(node, None, surveyed(3))
    assert found.status == "ok"
    assert any("not when measured again" in note for note in found.notes)
    assert re.fullmatch(
        r"OK node0: 82 no change; a loss below [0-9]\.[0-9] % could hide on a headline path",
        str(found),
    )


def test_a_copy_of_the_survey_is_no_repeat() -> None:
    node = surveyed(2, slow=nodes.slow_host_link(4, 1.05))
    copy = msgspec.structs.replace(node, file="copy.wwp")
    found = checked(node, None, copy)
    assert (found.status, texts(found)) == ("inconclusive", ())
    assert any("copy.wwp is the survey node0.wwp" in note for note in found.notes)


def test_a_repeat_of_another_machine_settles_nothing() -> None:
    node = surveyed(2, slow=nodes.slow_host_link(4, 1.05))
    found = checked(node, None, surveyed(3, "node9"))
    assert found.status == "inconclusive"
    assert any("node9.wwp is of another machine" in note for note in found.notes)


def test_a_copy_of_a_baseline_does_not_settle_a_loss() -> None:
    base = [surveyed(1), surveyed(2)]
    copy = msgspec.structs.replace(base[0], file="copy.wwp")
    node = surveyed(4, slow=nodes.slow_host_link(4, 1.05))
    assert check_up(node, [*base, copy]).status == "inconclusive"
    assert check_up(node, [*base, surveyed(3)]).status == "failed"


def test_a_baseline_of_other_gpus_decides_nothing() -> None:
    node = surveyed(2)
    gpus = tuple(msgspec.structs.replace(gpu, name="NVIDIA H100") for gpu in node.machine.gpus)
    other = msgspec.structs.replace(
        node, machine=msgspec.structs.replace(node.machine, gpus=gpus), file="other.wwp"
    )
    found = check_up(other, [surveyed(1)])
    assert found.status == "inconclusive"
    assert found.undecided[0].startswith("the GPUs of the baseline are of another model: make a")


@pytest.mark.parametrize("gpus", [1, 8])
def test_a_baseline_of_another_machine_of_the_same_model_is_said_first(gpus: int) -> None:
    node, base = surveyed(2, gpus=gpus), surveyed(1, gpus=gpus)
    others = tuple(
        msgspec.structs.replace(gpu, uuid=f"{gpu.uuid}-other") for gpu in base.machine.gpus
    )
    machine = msgspec.structs.replace(base.machine, gpus=others)
    found = check_up(node, [msgspec.structs.replace(base, machine=machine)])
    assert found.status == "ok"
    assert str(found).startswith(
        "OK node0: the baseline is of another machine (no GPU has the same UUID), so a difference "
        "can be the other machine, not a fault: "
    )
    assert not any("another device" in note for note in found.notes)


def test_a_repeat_that_settles_nothing_is_named() -> None:
    loud = {"between_blocks": 0.13}
    base = surveyed(1, **loud)
    node = surveyed(2, slow=nodes.slow_host_link(4, 1.3), **loud)
    found = checked(node, base, surveyed(3, slow=nodes.slow_host_link(4, 1.1), **loud))
    assert found.status == "inconclusive"
    assert any("its 2 new surveys together do not confirm it" in line for line in found.undecided)


QUIET, NOISE = 0.002, 0.12
"""Deviations between processes of a survey that could find 15 %, and of one that could not."""


@pytest.mark.parametrize(
    ("before", "now", "remedy"),
    [
        pytest.param(NOISE, QUIET, NEW_BASELINE, id="baseline"),
        pytest.param(QUIET, NOISE, MEASURE_AGAIN, id="new survey"),
        pytest.param(NOISE, NOISE, f"{NEW_BASELINE}, then measure again", id="both"),
    ],
)
def test_the_side_that_scatters_is_named_with_the_remedy(
    before: float, now: float, remedy: str
) -> None:
    base, node = surveyed(1, between_blocks=before), surveyed(2, between_blocks=now)
    found = check_up(node, [base])
    assert found.status == "inconclusive" and not found.suspects
    lines = [line for line in found.undecided if line.endswith(f": {remedy}")]
    assert lines == list(found.undecided)
    for line in lines:
        written = re.search(r"deviate by (\S+)% in the baseline and by (\S+)% now", line)
        assert written is not None
        for share, true in zip(written.groups(), (before, now), strict=True):
            assert float(share) / 100 == pytest.approx(true, rel=0.5)
    noise = found.comparison.undecided[0].parts[-1].noise
    alone = [side.detectable is not None and side.detectable < 0.15 for side in noise]
    assert alone == [before == QUIET, now == QUIET]


def test_a_baseline_of_one_process_needs_a_new_one() -> None:
    found = check_up(surveyed(2, gpus=2, between_blocks=0.04), [nodes.node(1, gpus=2)])
    assert found.status == "inconclusive"
    reasons = [line for line in found.undecided if "would not be found" in line]
    assert reasons
    for line in reasons:
        assert "no survey of the baseline measured it in two processes" in line
        assert line.endswith(f": {NEW_BASELINE}")


def test_a_loss_below_what_is_detectable_says_so() -> None:
    slow = nodes.slow_host_link(4, 1.045)
    base, node = (
        surveyed(seed, slow=each, between_blocks=0.02)
        for seed, each in ((1, nodes.slow_host_link(4, 1.0)), (2, slow))
    )
    found = checked(node, base)
    below = [path for path in found.comparison.of("suspected") if path.is_below_detectable]
    assert below
    for path in below:
        assert path.detectable is not None and path.detectable > 1 - path.ratio
        (line,) = [line for line in found.undecided if line.startswith(label(path))]
        assert "suspected, since one new survey alone shows it" in line
        assert f"although only a loss of {path.detectable:.1%} or more is found" in line
        assert "its processes deviate by" in line


def test_a_repeat_older_than_the_survey_repeats_nothing() -> None:
    slow = nodes.slow_host_link(4, 1.06)
    new, older = surveyed(3, slow=slow), surveyed(2)
    older = msgspec.structs.replace(older, created="2026-11-19T03:00:00+00:00")
    found = checked(new, surveyed(1), older)
    assert found.status == "inconclusive"
    assert any("older than the new survey" in note for note in found.notes)
    later = msgspec.structs.replace(older, created="2026-11-21T03:00:00+00:00")
    assert checked(new, surveyed(1), later).status == "ok"


def test_a_failure_of_the_gpu_that_has_the_number_of_a_lost_one_is_a_finding() -> None:
    base = surveyed(1)
    lost = nodes.without(surveyed(2), base.machine.gpus[3].pci)
    crash = Failure("crash", "killed")
    series = tuple(
        msgspec.structs.replace(each, blocks=(), failures=(crash,))
        if each.curve == nodes.h2d(3)  # of what was gpu:4
        else each
        for each in lost.points
    )
    found = checked(msgspec.structs.replace(lost, points=series), base)
    assert any("killed" in finding for finding in texts(found))
    assert not any("is missing" in finding for finding in texts(checked(lost, base)))


def test_a_link_is_compared_with_the_best_baseline_that_shows_it() -> None:
    narrow = {2: LoadedLink(5, 8)}
    unknown = msgspec.structs.replace(surveyed(1), links={})
    always = msgspec.structs.replace(surveyed(2, links=narrow), created="2026-11-20T04")
    node = surveyed(3, links=narrow)
    assert check_up(node, [unknown, always]).status == "ok"
    assert check_up(node, [unknown]).status == "failed"
    assert check_up(node, [always, surveyed(4)]).status == "failed"


def test_three_baselines_settle_a_loss_without_a_repeat() -> None:
    base = [surveyed(seed) for seed in (1, 2, 3)]
    node = surveyed(4, slow=nodes.slow_host_link(4, 1.05))
    assert check_up(node, base).status == "failed"
    assert check_up(surveyed(5), base).status == "ok"


def test_one_process_a_side_is_inconclusive_and_names_the_headline_paths() -> None:
    found = check_up(nodes.node(2), [nodes.node(1)])
    assert found.status == "inconclusive"
    assert "its noise is not known" in found.undecided[0]
    slow = check_up(nodes.node(2, slow=nodes.slow_host_link(4, 1.3)), [nodes.node(1)])
    assert slow.status == "inconclusive"
    assert nodes.h2d(4) in slow.suspects


def without_gpus(seed: int, *noise: float, processes: int = PROCESSES) -> Subject:
    """A host without GPUs; ``noise`` are the deviations between processes of copies by its CPUs."""
    rng = random.Random(seed)
    series = tuple(
        nodes.digest(
            nodes.workload(f"{kind}@numa:0 -> {kind}@numa:0 by cpu"),
            [0.01 * math.exp(rng.gauss(0, each)) for _ in range(processes)],
        )
        for kind, each in zip(("pageable", "pinned"), noise, strict=False)
    )
    return Subject(
        "node0", nodes.machine(gpus=0), series, f"{seed}.wwp", f"2026-11-20T0{seed}", "check"
    )


def test_a_noisy_copy_by_cpus_beside_a_quiet_one_leaves_no_check_inconclusive_and_is_noted() -> (
    None
):
    found = check_up(without_gpus(2, 0.15, 0.005), [without_gpus(1, 0.15, 0.005)])
    assert found.status == "ok"
    assert "host copy" in found.notes[0] and "would not be found" in found.notes[0]
    quiet = check_up(without_gpus(2, 0.005), [without_gpus(1, 0.005)])
    assert quiet.status == "ok" and not any("would not" in note for note in quiet.notes)
    single = check_up(without_gpus(2, 0.001, processes=1), [without_gpus(1, 0.001, processes=1)])
    assert single.status == "inconclusive" and "noise is not known" in single.undecided[0]


def test_where_the_noise_lets_no_verdict_stand_nothing_is_ok() -> None:
    noisy = check_up(without_gpus(2, 0.15, 0.15), [without_gpus(1, 0.15, 0.15)])
    assert noisy.status == "inconclusive" and "would not be found" in noisy.undecided[0]


@pytest.mark.parametrize("before, now", [(0.01, 0.0135), (0.01, 0.0101)])
def test_messages_of_one_process_that_a_repeat_does_not_settle_are_not_ok(
    before: float, now: float
) -> None:
    message = nodes.workload("pageable@rank:0 -> pageable@rank:1 by mpi")
    base, node, again = (
        msgspec.structs.replace(
            without_gpus(n), points=(nodes.digest(message, [seconds]),), file=f"{n}.wwp"
        )
        for n, seconds in ((1, before), (2, now), (3, before * 1.01))
    )
    for found in (check_up(node, [base]), check_up(node, [base], repeats=[again])):
        assert found.status == "inconclusive" and found.undecided


@pytest.mark.parametrize("threshold", [0.0, 0.03, 0.2, 0.5, 0.99])
def test_a_threshold_of_any_size_leaves_a_healthy_node_ok(threshold: float) -> None:
    base, node = surveyed(1), surveyed(2)
    assert check_up(node, [base], threshold).status == "ok"
    slow = surveyed(3, slow=nodes.slow_host_link(4, 1.6))
    verdict = "ok" if threshold > 0.6 else "inconclusive"
    assert check_up(slow, [base], threshold).status == verdict


def test_the_largest_drops_are_listed_whatever_the_verdict() -> None:
    found = checked(surveyed(2))
    assert len(found.drops) == 5
    ratios = [drop.ratio for drop in found.drops]
    assert ratios == sorted(ratios)
    assert all(ratio < 1 for ratio in ratios)
    assert {drop.verdict for drop in found.drops} <= {"no change", "not decided"}


def test_a_change_by_its_own_interval_alone_is_a_note() -> None:
    base, node = (nodes.node(seed, blocks=4, between_blocks=0.03) for seed in (28, 128))
    found = check_up(node, [base])
    assert found.comparison.changed_alone
    assert any(" of 82 paths changed by more than the threshold" in note for note in found.notes)


def test_a_gpu_that_is_gone_fails_it_and_is_reported_once() -> None:
    whole = surveyed(1)
    found = checked(nodes.without(whole, "0000:04:00.0"), whole)
    assert found.status == "failed"
    result = [finding for finding in texts(found) if "gpu:3" in finding]
    assert result == ["gpu:3 (0000:04:00.0, GPU-node0-3) is gone"]


def test_another_gpu_in_its_place_is_said_and_fails_nothing() -> None:
    node = surveyed(2)
    gpus = tuple(
        msgspec.structs.replace(gpu, uuid="GPU-new") if gpu.index == 3 else gpu
        for gpu in node.machine.gpus
    )
    machine: Machine = msgspec.structs.replace(node.machine, gpus=gpus)
    found = checked(msgspec.structs.replace(node, machine=machine))
    assert found.status == "ok"
    assert any("GPU-new" in note for note in found.notes)


def test_a_link_that_became_narrower_fails_it_and_one_that_always_was_does_not() -> None:
    narrow = {2: LoadedLink(5, 8)}
    found = checked(surveyed(2, links=narrow))
    assert texts(found) == (
        "gpu:2 (0000:03:00.0, GPU-node0-2) ran at PCIe 5 x8 of 5 x16 under load",
    )
    assert checked(surveyed(2, links=narrow), surveyed(1, links=narrow)).status == "ok"


def test_grave_errors_fail_it_and_others_are_said() -> None:
    minor = with_health(surveyed(2), {"PCIe replays": 0}, {"PCIe replays": 2})
    found = checked(minor)
    assert found.status == "ok"
    assert "gpu:0 PCIe replays +2" in found.notes
    grave = with_health(surveyed(2), {"ECC uncorrected": 0}, {"ECC uncorrected": 1})
    assert texts(checked(grave)) == ("gpu:0 ECC uncorrected +1",)
    result = with_health(surveyed(2), {}, {}, xids=(79,))
    assert texts(checked(result)) == ("gpu:0 XID 79",)


def test_what_was_counted_since_the_baseline_is_reported() -> None:
    name = "rows remapped after uncorrected errors"
    base = with_health(surveyed(1), {name: 0, "PCIe replays": 5}, {name: 0, "PCIe replays": 5})
    node = with_health(surveyed(2), {name: 2, "PCIe replays": 6}, {name: 2, "PCIe replays": 6})
    found = checked(node, base)
    assert texts(found) == (f"gpu:0 {name} +2 since the baseline",)
    assert "gpu:0 PCIe replays +1 since the baseline" in found.notes
    assert not texts(checked(base, node))  # a counter that was set back


def test_a_headline_path_that_is_not_there_fails_it() -> None:
    node = surveyed(2)
    less = msgspec.structs.replace(
        node, points=tuple(d for d in node.points if d.curve != nodes.h2d(2))
    )
    assert texts(checked(less)) == (
        f"H2D {nodes.h2d(2)} is missing: the new survey has not measured it",
    )
    other = msgspec.structs.replace(less, request="standard")
    assert checked(other).status == "ok"


def test_where_nothing_can_be_reported_it_is_inconclusive() -> None:
    nothing = msgspec.structs.replace(surveyed(2), points=(), request="something else")
    assert checked(nothing).status == "inconclusive"


def test_a_baseline_of_another_machine_is_said_first() -> None:
    found = checked(surveyed(2, "node9"))
    assert str(found).startswith(
        "OK node9: the baseline is of another machine (host node0 before, node9 now), so a "
    )
    less = checked(surveyed(2, "node9", gpus=7))
    assert str(less).startswith("FAILED node9: the baseline is of another machine (host node0")
    gone = [finding for finding in texts(less) if "gpu:7 (" in finding]
    assert gone == ["gpu:7 (0000:08:00.0, GPU-node0-7) is only in the machine of the base"]
    assert not any("is gone" in text for text in (*texts(less), *less.notes))
    assert not any("another device" in note for note in found.notes)


def test_errors_are_counted_since_the_latest_baseline_in_whatever_order() -> None:
    name = "PCIe replays"
    dates = ("2026-11-01T03:00:00.000+00:00", "2026-11-02T03:00:00.000+00:00")
    base = [
        with_health(surveyed(n, created=date), {name: 5 * n}, {name: 5 * n})
        for n, date in enumerate(dates, 1)
    ]
    node = with_health(surveyed(3), {name: 11}, {name: 11})
    for both in (base, base[::-1]):
        assert f"gpu:0 {name} +1 since the baseline" in check_up(node, both).notes


def test_a_survey_is_no_baseline_of_itself() -> None:
    survey = surveyed(1)
    found = check_up(survey, [msgspec.structs.replace(survey, file="backup.wwp")])
    assert found.status == "inconclusive"
    assert any("is the same survey as backup.wwp" in note for note in found.notes)
    assert check_up(survey, [survey, surveyed(2)]).status == "ok"


def test_an_unfinished_survey_is_inconclusive_and_fails_for_nothing_that_it_lacks() -> None:
    whole = surveyed(2)
    begun = msgspec.structs.replace(whole, points=whole.points[:9], unfinished=True)
    found = checked(begun)
    assert (found.status, texts(found)) == ("inconclusive", ())
    assert checked(msgspec.structs.replace(begun, unfinished=False)).status == "failed"


def test_paths_that_nobody_asked_for_are_skipped() -> None:
    whole = surveyed(2)
    less = msgspec.structs.replace(whole, points=whole.points[:9], request="quick")
    found = checked(less)
    assert found.comparison.counts["missing"] == 0
    assert str(found).startswith("OK node0: 9 no change, ")
    assert f" {len(whole.points) - 9} skipped; a loss below " in str(found)
