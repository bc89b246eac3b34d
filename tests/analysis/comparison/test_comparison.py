"""Comparisons find what is there, and nothing where nothing is."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable, Sequence
from itertools import pairwise

import msgspec
import nodes
import pytest

from waywiser.analysis.comparison.checkup import check_up
from waywiser.analysis.comparison.comparison import compare
from waywiser.analysis.comparison.comparison_text import (
    headline_lines,
    summary,
    verdict_text,
    why_suspected,
)
from waywiser.analysis.comparison.path_change import ProfileComparison
from waywiser.analysis.comparison.path_parts import parts_of
from waywiser.curves.curve import Point
from waywiser.curves.gpu_numbers import GpuMatch, match_gpus
from waywiser.curves.select import NothingMatches
from waywiser.curves.subject import Subject
from waywiser.machine.machine import Gpu
from waywiser.profile.block import BlockSummary
from waywiser.words import Workload
from waywiser.words.records import Failure, Unsupported

PROCESSES = 4

ONE_SURVEY = "one new survey alone shows it"


def surveyed(seed: int, **options: object) -> Subject:
    return nodes.node(seed, blocks=PROCESSES, **options)  # type: ignore[arg-type]


def regressions(comparison: ProfileComparison) -> set[str]:
    return {path.curve for path in comparison.of("regression")}


def test_the_same_machine_again_shows_no_change() -> None:
    clean = 0
    for seed in range(20):
        found = compare([surveyed(2 * seed)], [surveyed(2 * seed + 1)])
        clean += found.counts["no change"] == len(found.paths)
    assert clean >= 19


def test_a_link_that_is_5_percent_slower_is_found_and_nothing_else() -> None:
    slow = surveyed(2, slow=nodes.slow_host_link(3, 1.05))
    found = compare([surveyed(1)], [slow])
    expected = {nodes.h2d(3), nodes.d2h(3), f"{nodes.h2d(3)}; {nodes.d2h(3)}"}
    sets = {digest.curve for digest in slow.points if len(digest.workload.transfers) > 2}
    assert nodes.losses(found) == expected | sets
    path = next(path for path in found.paths if path.curve == nodes.h2d(3))
    assert path.decision is not None
    decision = path.decision
    assert decision.interval is not None
    assert decision.interval.low < 1 / 1.05 < decision.interval.high
    assert path.headline == "H2D"
    assert path.parts[0].processes == (4, 4)
    assert [device.uuid for device in path.devices] == ["GPU-node0-3"]


def test_a_group_is_its_lowest_member_corrected_over_all_headline_paths() -> None:
    found = compare([surveyed(1)], [surveyed(2, slow=nodes.slow_host_link(4, 1.05))])
    members = [path for path in found.measured if path.headline == "H2D"]
    lowest = min(members, key=lambda path: path.ratio)
    assert lowest.curve == nodes.h2d(4) and len(members) == 8
    (line,) = [line.split() for line in headline_lines(found) if line.split()[0] == "H2D"]
    assert line[1:6] == [f"{lowest.verdict}:", f"{lowest.ratio - 1:+.1%}", "lowest", "of", "8;"]
    decisions = [part.decision for path in found.measured if path.headline for part in path.parts]
    clearest = min(decisions, key=lambda each: each.p or 1)
    assert clearest.p is not None and 0 < clearest.p < 0.001
    assert clearest.p_corrected == pytest.approx(len(decisions) * clearest.p)


def test_a_link_that_is_faster_is_an_improvement() -> None:
    found = compare([surveyed(1, slow=nodes.slow_host_link(3, 1.05))], [surveyed(2)])
    assert nodes.d2h(3) in {path.curve for path in found.of("improvement")}
    assert not found.of("regression")


def test_an_effect_below_the_threshold_does_not_matter() -> None:
    slow = surveyed(2, slow=nodes.slow_host_link(3, 1.02))
    assert not nodes.losses(compare([surveyed(1)], [slow]))
    assert nodes.h2d(3) in nodes.losses(compare([surveyed(1)], [slow], threshold=0.01))


def test_noise_as_large_as_the_effect_hides_it_and_says_how_much() -> None:
    loud = {"between_blocks": 0.05}
    slow = surveyed(2, slow=nodes.slow_host_link(3, 1.05), **loud)
    found = compare([surveyed(1, **loud)], [slow])
    assert not nodes.losses(found)
    path = next(path for path in found.paths if path.curve == nodes.h2d(3))
    assert path.detectable is not None and path.detectable > 0.08


def test_without_a_change_noise_decides_whether_that_is_an_answer() -> None:
    quiet = compare([surveyed(1)], [surveyed(2)])
    assert {verdict_text(quiet, path) for path in quiet.paths} == {"no change"}
    assert not any("decide" in line for line in headline_lines(quiet))
    loud = compare([surveyed(1, between_blocks=0.2)], [surveyed(2, between_blocks=0.2)])
    path = next(path for path in loud.of("no change") if path.headline == "H2D")
    assert path.detectable is not None and path.detectable > loud.most_hidden
    assert verdict_text(loud, path) == "not decided" and "not decided" in summary(loud)
    lines = list(headline_lines(loud))
    assert any(line.startswith("  H2D") and "not decided: " in line and
               "; the noise hides losses below " in line for line in lines)  # fmt: skip
    assert "waywiser survey --preset full --only H2D --only D2H" in lines[-1]


def test_a_difference_beyond_the_threshold_within_the_noise_is_not_decided() -> None:
    sides = [surveyed(seed, between_blocks=0.03) for seed in range(1, 9)]
    found = [compare([base], [new]) for base, new in pairwise(sides)]
    paths = [(each, path) for each in found for path in each.of("no change")]
    beyond = [(each, path) for each, path in paths if abs(math.log(path.ratio)) > math.log(1.03)]
    assert beyond and len(beyond) < len(paths)
    assert {verdict_text(each, path) for each, path in beyond} == {"not decided"}


def test_more_processes_find_more() -> None:
    loud = {"between_blocks": 0.02}
    slow = nodes.slow_host_link(3, 1.06)
    base = [surveyed(seed, **loud) for seed in range(4)]
    new = [surveyed(10 + seed, slow=slow, **loud) for seed in range(4)]
    few, many = compare(base[:1], new[:1]), compare(base, new)
    assert nodes.h2d(3) not in regressions(few)
    assert nodes.h2d(3) in regressions(many)
    for found in (few, many):
        path = next(path for path in found.paths if path.curve == nodes.h2d(3))
        assert path.parts[0].surveys == ((1, 1) if found is few else (4, 4))


def test_a_loss_in_one_survey_is_suspected_until_another_shows_it() -> None:
    slow = nodes.slow_host_link(3, 1.05)
    base, new, again = surveyed(1), surveyed(2, slow=slow), surveyed(3, slow=slow)
    expected = nodes.losses(compare([base], [new]))
    assert nodes.h2d(3) in expected
    for two_of_base in ([base], [base, surveyed(4)]):
        once = compare(two_of_base, [new])
        assert not regressions(once)
        assert set(map(why_suspected, once.of("suspected"))) == {ONE_SURVEY}
        for twice in (
            compare(two_of_base, [new], repeats=[again]),
            compare(two_of_base, [new, again]),
            compare(two_of_base, [again, new]),
        ):
            assert expected <= regressions(twice)
            assert not twice.of("suspected")


def test_a_loss_that_another_survey_does_not_show_is_no_change_and_a_note() -> None:
    base, new, healthy = surveyed(1), surveyed(2, slow=nodes.slow_host_link(3, 1.12)), surveyed(3)
    again = compare([base], [new], repeats=[healthy])
    assert not again.of("regression", "suspected")
    assert again.repeats == (healthy.called,)
    notes = [note for note in again.notes if note.startswith(f"H2D {nodes.h2d(3)} is 10.")]
    assert notes and notes[0].endswith(
        "slower (bandwidth) in the survey, and not when measured again"
    )
    for both in ([new, healthy], [healthy, new]):
        found = compare([base], both)
        assert not found.of("regression", "suspected")
        assert any("but not changed in each of them" in note for note in found.notes)


def test_repeats_are_for_suspected_paths_and_hide_nothing_else() -> None:
    """A repeat of one path neither makes up for a path that the survey lacks nor takes one away."""
    base, slow = surveyed(1), surveyed(2, slow=nodes.slow_host_link(3, 1.05))
    new = msgspec.structs.replace(
        slow, points=tuple(each for each in slow.points if each.curve != nodes.h2d(5))
    )
    again = surveyed(3, slow=nodes.slow_host_link(3, 1.05))
    only = msgspec.structs.replace(
        again,
        request="the suspected path",
        points=tuple(each for each in again.points if each.curve in (nodes.h2d(3), nodes.h2d(5))),
    )
    found = compare([base], [new], repeats=[only])
    assert regressions(found) == {nodes.h2d(3)}
    assert nodes.d2h(3) in nodes.losses(found)
    assert [path.curve for path in found.of("missing")] == [nodes.h2d(5)]
    assert not any("another plan" in note for note in found.notes)
    chosen = compare([base], [new], only=["H2D"], repeats=[again])
    assert regressions(chosen) == {nodes.h2d(3)}
    assert all(path.headline == "H2D" for path in chosen.paths)


def test_a_repeat_of_one_size_confirms_a_loss_of_all_sizes() -> None:
    sizes, slow = (2**24, 2**25, nodes.SIZE), nodes.slow_host_link(3, 1.05)
    base, new = surveyed(1, sizes=sizes), surveyed(2, sizes=sizes, slow=slow)
    again = compare([base], [new], repeats=[surveyed(3, slow=slow)])
    assert nodes.h2d(3) in regressions(again)
    refuted = compare([base], [new], repeats=[surveyed(3)])
    assert not refuted.of("regression")
    left = {path.curve: path for path in refuted.of("suspected")}
    assert left[nodes.h2d(3)].why == "only at 16 MiB, 32 MiB"
    assert set(map(why_suspected, left.values())) == {ONE_SURVEY}


def test_a_gain_in_one_survey_is_an_improvement_that_may_be_chance() -> None:
    slow, healthy = nodes.slow_host_link(3, 1.05), [surveyed(seed) for seed in (2, 3, 4)]
    base = surveyed(1, slow=slow)
    found = compare([base], healthy[:1])
    assert nodes.h2d(3) in {path.curve for path in found.of("improvement")}
    assert any("may be chance" in note for note in found.notes)
    settled = compare([base], healthy)
    assert nodes.h2d(3) in {path.curve for path in settled.of("improvement")}
    assert not any("may be chance" in note for note in settled.notes)
    mixed = compare([base], [healthy[0], surveyed(5, slow=slow)])
    assert not mixed.of("improvement", "suspected", "regression")


def test_one_process_a_side_is_suspected_and_says_why() -> None:
    base, new = nodes.node(1), nodes.node(2, slow=nodes.slow_host_link(3, 1.05))
    found = compare([base], [new])
    assert not regressions(found)
    assert {nodes.h2d(3), nodes.d2h(3)} <= {path.curve for path in found.of("suspected")}
    assert all(path.detectable is None for path in found.measured)
    assert any("one process alone measured all paths" in note for note in found.notes)
    assert any("in several processes (--preset check for links" in note for note in found.notes)


def test_a_faster_path_without_replicates_is_not_suspected() -> None:
    base, new = nodes.node(1, slow=nodes.slow_host_link(3, 1.3)), nodes.node(2)
    assert not compare([base], [new]).of("suspected", "improvement", "regression")


def test_a_gpu_that_is_gone_does_not_make_the_others_look_changed() -> None:
    whole = nodes.node(1)
    found = compare([whole], [nodes.without(whole, "0000:04:00.0")])
    assert [device.uuid for device in found.missing_gpus] == ["GPU-node0-3"]
    missing = found.of("missing")
    single = [path for path in missing if ";" not in path.curve]
    assert len(single) == 2 + 14
    assert all("gpu:3 is gone" in path.why for path in missing)
    assert {path.verdict for path in found.paths} <= {"missing", "no change", "new"}
    assert nodes.h2d(7) in {path.curve for path in found.of("no change")}


def test_an_exchanged_gpu_is_said_and_no_failure() -> None:
    base = nodes.node(1)
    gpus = list(base.machine.gpus)
    gpus[2] = msgspec.structs.replace(gpus[2], uuid="GPU-new")
    machine = msgspec.structs.replace(base.machine, gpus=tuple(gpus))
    found = compare([base], [msgspec.structs.replace(nodes.node(2), machine=machine)])
    assert any("GPU-node0-2 before, GPU-new now" in note for note in found.notes)
    assert found.counts["missing"] == found.counts["regression"] == 0


def test_gpus_are_reported_by_uuid_then_by_place_then_by_number() -> None:
    def matched(other: Sequence[Gpu], gpus: Sequence[Gpu]) -> GpuMatch:
        first, second = (
            msgspec.structs.replace(nodes.machine(), gpus=tuple(each)) for each in (other, gpus)
        )
        return match_gpus(first, second)

    whole = nodes.machine().gpus
    shifted = [msgspec.structs.replace(gpu, index=gpu.index - 1) for gpu in whole[1:]]
    assert matched(whole, shifted).numbers == {n: n + 1 for n in range(7)}
    others = nodes.machine("other").gpus
    assert matched(whole, others).numbers == {n: n for n in range(8)}
    assert len(matched(whole, others).exchanged) == 8
    nowhere = [msgspec.structs.replace(gpu, uuid="", pci="") for gpu in whole]
    assert matched(whole, nowhere).numbers == {n: n for n in range(8)}
    more = msgspec.structs.replace(nodes.gpu(0, "x"), pci="0000:99:00.0")
    assert matched(whole, [*whole, more]).added == (more,)
    assert matched(whole, [*whole, more]).numbers[0] == 8


def test_a_path_that_fails_now_is_missing_with_its_reason() -> None:
    base = nodes.node(1)
    broken = Failure("gpu", "an illegal address")

    def failed(digest: Point) -> Point:
        if digest.curve != nodes.h2d(2):
            return digest
        return msgspec.structs.replace(digest, blocks=(), failures=(broken,))

    again = nodes.node(2)
    new = msgspec.structs.replace(again, points=tuple(map(failed, again.points)))
    (path,) = compare([base], [new]).of("missing")
    assert path.curve == nodes.h2d(2)
    assert "an illegal address" in path.why
    kept = tuple(d for d in again.points if d.curve != nodes.h2d(2))
    unsupported_paths = msgspec.structs.replace(
        again, points=kept, unsupported_paths=(Unsupported(nodes.h2d(2), "used by others"),)
    )
    (path,) = compare([base], [unsupported_paths]).of("missing")
    assert path.why == "used by others"
    (path,) = compare([unsupported_paths], [base]).of("new")
    assert path.curve == nodes.h2d(2)


def test_a_path_without_time_is_skipped() -> None:
    base = nodes.node(1)
    over = Failure("skipped", "the time was over")

    def skipped(digest: Point) -> Point:
        if digest.curve != nodes.h2d(2):
            return digest
        return msgspec.structs.replace(digest, blocks=(), failures=(over,))

    again = nodes.node(2)
    new = msgspec.structs.replace(again, points=tuple(map(skipped, again.points)))
    for found in (compare([base], [new]), compare([new], [base])):
        (path,) = [each for each in found.paths if each.curve == nodes.h2d(2)]
        assert (path.verdict, found.counts["missing"], found.counts["new"]) == ("skipped", 0, 0)
        assert "the time was over" in path.why


@pytest.mark.parametrize(
    ("version", "requested", "verdict"),
    [
        ("2.0", "check", "skipped"),
        ("1.0", "check", "missing"),
        ("2.0", "quick", "skipped"),
        ("", "check", "missing"),
    ],
)
def test_what_another_version_does_not_plan_is_not_lost(
    version: str, requested: str, verdict: str
) -> None:
    replace = msgspec.structs.replace
    base = replace(nodes.node(1), environment={"waywiser": "1.0"})
    again = nodes.node(2)
    kept = tuple(d for d in again.points if d.curve != nodes.h2d(2))
    new = replace(again, points=kept, request=requested, environment={"waywiser": version})
    (path,) = [each for each in compare([base], [new]).paths if each.curve == nodes.h2d(2)]
    assert path.verdict == verdict
    assert ("by waywiser 2.0 the plan of this version no longer has it" in path.why) is (
        (version, requested) == ("2.0", "check")
    )
    if requested != "check":
        return
    # one file of the old version beside it speaks for the machine
    third = tuple(d for d in nodes.node(3).points if d.curve != nodes.h2d(2))
    other = replace(new, points=third, environment={"waywiser": "1.0"}, file="other.wwp")
    assert compare([base], [new, other]).counts["missing"] == 1
    # so does a node that is gone
    bare = replace(new, machine=replace(new.machine, numa=()))
    assert compare([base], [bare]).counts["missing"] == 1
    # what is not supported is lost, also where all of its kinds are
    unsupported_paths = (Unsupported("pinned -> device by copy-engine", "no engine"),)
    (path,) = compare([base], [replace(new, unsupported_paths=unsupported_paths)]).of("missing")
    assert path.why == "no engine"
    assert path.headline == "H2D"


def test_a_size_that_fails_now_is_not_hidden_by_the_others() -> None:
    sizes = (2**20, nodes.SIZE)
    base, again = (nodes.node(seed, blocks=2, sizes=sizes) for seed in (1, 2))

    def failed(digest: Point) -> Point:
        if (digest.curve, digest.bytes) != (nodes.h2d(2), nodes.SIZE):
            return digest
        broken = Failure("timeout", "no answer")
        return msgspec.structs.replace(digest, blocks=(), failures=(broken,))

    new = msgspec.structs.replace(again, points=tuple(map(failed, again.points)))
    (path,) = compare([base], [new]).of("missing")
    assert path.curve == nodes.h2d(2)
    assert f"fails at {nodes.SIZE} B, 1 of 2 sizes: timeout: no answer" in path.why
    assert path.why.endswith("; at the other 1: no change") and path.parts
    (said,) = [line for line in check_up(new, [base]).reasons if nodes.h2d(2) in line]
    assert f"{nodes.h2d(2)} fails at" in said and "is missing" not in said


def test_a_dip_at_one_size_is_found_though_the_curve_has_not_changed() -> None:
    sizes = tuple(2**n for n in range(20, 27))
    base = nodes.node(1, blocks=4, sizes=sizes)

    def dip(what: Workload) -> float:
        return 1.3 if (what.curve, what.bytes) == (nodes.h2d(2), 2**23) else 1.0

    found = compare([base], [nodes.node(2, blocks=4, sizes=sizes, slow=dip)])
    assert nodes.losses(found) == {nodes.h2d(2)}
    assert found.paths[0].why == "only at 8 MiB"


def test_another_class_of_machine_is_said() -> None:
    base, new = nodes.node(1), nodes.node(2)
    gpus = tuple(msgspec.structs.replace(gpu, name="Other GPU") for gpu in new.machine.gpus)
    machine = msgspec.structs.replace(new.machine, gpus=gpus, cpu_model="Other", driver="1")
    notes = compare([base], [msgspec.structs.replace(new, machine=machine)]).notes
    assert any("8 × Test GPU before, 8 × Other GPU now" in note for note in notes)
    assert any(note.startswith("another CPU") for note in notes)
    assert any(note.startswith("another driver") for note in notes)


def test_only_what_is_asked_for_is_compared() -> None:
    base, new = nodes.node(1), nodes.node(2)
    found = compare([base], [new], only=["pinned -> device@gpu:3"])
    assert nodes.h2d(3) in {path.curve for path in found.paths}
    assert nodes.d2h(3) not in {path.curve for path in found.paths}
    with pytest.raises(NothingMatches):
        compare([base], [new], only=["nonsense"])
    with pytest.raises(ValueError, match="each side"):
        compare([base], [])


def test_the_worst_come_first() -> None:
    def slow(what: Workload) -> float:
        factors = {nodes.h2d(1): 1.1, nodes.h2d(2): 1.5, nodes.h2d(3): 0.8}
        return factors.get(what.curve, 1.0)

    found = compare([surveyed(1)], [surveyed(2, slow=slow)])
    assert [path.curve for path in found.paths[:3]] == [
        nodes.h2d(2), nodes.h2d(1), nodes.h2d(3)
    ]  # fmt: skip
    assert math.isclose(found.paths[0].ratio, 1 / 1.5, rel_tol=0.02)
    assert sum(found.counts.values()) == len(found.paths)


def bimodal(modes: list[tuple[int, ...]], host: str = "node0") -> Subject:
    """Paths through pageable memory that take 30 % longer in some processes, with a hundredth of
    that in noise; ``modes`` says for each path which of its blocks do."""
    rng = random.Random(host)
    digests = [
        nodes.digest(
            nodes.workload(f"pageable@numa:0 -> pageable@numa:0 by cpu[threads={n + 1}]"),
            [1e-3 * (1.3 if slow else 1.0) * math.exp(rng.gauss(0, 0.003)) for slow in blocks],
        )
        for n, blocks in enumerate(modes)
    ]
    return Subject("node0", nodes.machine(), tuple(digests))


def test_two_processes_that_agree_by_chance_accuse_nobody() -> None:
    """One path of thirty was in its fast mode twice before, and in its slow mode twice now."""
    before = [(0, 0), *[(n % 2, (n // 2) % 2) for n in range(30)]]
    after = [(1, 1), *[((n // 2) % 2, n % 2) for n in range(30)]]
    found = compare([bimodal(before)], [bimodal(after, "later")])
    assert not found.of("regression", "improvement")


def test_three_surveys_show_how_far_surveys_differ() -> None:
    """Surveys jump by 6 % as a whole; their processes agree within 0.2 %."""
    what = nodes.workload(nodes.h2d(0))

    def survey(name: str, level: float, seed: int) -> Subject:
        rng = random.Random(seed)
        medians = [1e-3 * math.exp(level + rng.gauss(0, 0.002)) for _ in range(4)]
        return Subject(name, nodes.machine(), (nodes.digest(what, medians),), file=name)

    base = [survey(f"base-{n}", level, n) for n, level in enumerate((0.0, 0.06, -0.06))]
    new = survey("new", 0.06, 9)
    assert nodes.losses(compare(base[:1], [new]))
    settled = compare(base, [new])
    assert not nodes.losses(settled)
    assert settled.paths[0].detectable is not None and settled.paths[0].detectable > 0.1
    steady = [survey(f"steady-{n}", 0.001 * n, 20 + n) for n in range(3)]
    assert regressions(compare(steady, [new]))


def test_sizes_that_nothing_replicates_borrow_the_noise_of_their_curve() -> None:
    """Four processes measured 64 MiB, one of them 8 MiB and 32 MiB too."""
    sizes = (2**23, 2**25, nodes.SIZE)

    def survey(seed: int, slow: float) -> Subject:
        whole = nodes.node(seed, gpus=1, blocks=4, sizes=sizes, between_blocks=0.004)
        digests = []
        for digest in whole.points:
            blocks = digest.blocks if digest.bytes == nodes.SIZE else digest.blocks[:1]
            if (digest.curve, digest.bytes) == (nodes.h2d(0), 2**25):
                blocks = nodes.digest(digest.workload, [blocks[0].median * slow]).blocks
            digests.append(msgspec.structs.replace(digest, blocks=blocks))
        return msgspec.structs.replace(whole, points=tuple(digests))

    found = compare([survey(1, 1.0)], [survey(2, 1.3)])
    path = next(path for path in found.paths if path.curve == nodes.h2d(0))
    assert (path.verdict, path.why) == ("suspected", "only at 32 MiB")
    assert all(part.decision.freedom > 0 for part in path.parts)


def test_sizes_of_different_processes_are_compared_size_by_size() -> None:
    """Before, one process measured both sizes; now, each was measured by a process of its own."""
    small, large = (nodes.workload(nodes.h2d(0), size=size) for size in (32 * 2**20, 128 * 2**20))

    def measured(blocks: tuple[int, int]) -> tuple[tuple[int, Point], ...]:
        return tuple(
            (0, Point.of(each, [BlockSummary(block, each.bytes / nodes.LINK)]))
            for each, block in zip((small, large), blocks, strict=True)
        )

    together, apart = measured((0, 0)), measured((0, 1))
    for before, after in ((together, apart), (apart, together)):
        sides = ({each.identity: [(n, each)] for n, each in side} for side in (before, after))
        (part,) = parts_of(*sides)
        assert part.typical.log_ratio == pytest.approx(0.0, abs=1e-12)


PAGEABLE = "pageable@numa:0 -> device@gpu:0 by copy-engine"
HOST = "pageable@numa:0 -> pageable@numa:0 by cpu"


def in_common(slow: Callable[[str], bool]) -> str:
    """What is said if the paths that ``slow`` takes are 20 % slower now."""
    others = [nodes.workload(text, size=nodes.SIZE) for text in (PAGEABLE, HOST)]

    def survey(seed: int, factor: float) -> Subject:
        whole = surveyed(seed, gpus=2)
        known = [
            *((each.workload, each.blocks[0].median) for each in whole.points),
            *((each, each.bytes / 10e9) for each in others),
        ]
        rng = random.Random(seed)
        series = []
        for each, seconds in known:
            middle = seconds * (factor if slow(each.curve) else 1)
            blocks = [middle * rng.gauss(1, 0.001) for _ in range(PROCESSES)]
            series.append(nodes.digest(each, blocks))
        return msgspec.structs.replace(whole, points=tuple(series))

    return compare([survey(1, 1.0)], [survey(2, 1.2)]).in_common


@pytest.mark.parametrize(
    ("slow", "text"),
    [
        (lambda _: False, ""),
        (
            lambda curve: "pageable" in curve,
            "no change was found on 10 paths over GPU links (H2D, D2H, bidirectional, P2P, "
            "host-to-all, all-to-host; a loss of # or more would have been found); CPUs have a "
            "part in both slower paths",
        ),
        (
            lambda curve: curve == HOST,
            "no change was found on 10 paths over GPU links (H2D, D2H, bidirectional, P2P, "
            "host-to-all, all-to-host; a loss of # or more would have been found); CPUs have a "
            "part in the slower path",
        ),
        (lambda curve: "gpu:1" in curve, "all 7 slower paths use gpu:1"),
        (
            lambda curve: {"gpu:0", "gpu:1"} <= set(re.findall(r"gpu:\d", curve)),
            "all 4 slower paths use gpu:0, gpu:1 together",
        ),
        (lambda curve: curve in (nodes.h2d(1), HOST), ""),
        (lambda curve: curve == nodes.h2d(1), ""),
        (lambda _: True, ""),
    ],
)
def test_what_slower_paths_have_in_common_is_one_line_after_the_answer(
    slow: Callable[[str], bool], text: str
) -> None:
    assert re.sub(r"loss of [0-9.]+%", "loss of #", in_common(slow)) == text
