"""Comparisons find what is there, and nothing where nothing is."""

from __future__ import annotations

import math
import random

import msgspec
import nodes
import pytest

from waywiser.analysis.compared import Comparison
from waywiser.analysis.comparison import compare
from waywiser.analysis.node import Node
from waywiser.analysis.same_gpus import match
from waywiser.plan.select import NothingMatches
from waywiser.records import Failure, Refusal
from waywiser.stats.series_summary import SeriesSummary
from waywiser.words import Workload

BLOCKS = 2


def surveyed(seed: int, **options: object) -> Node:
    return nodes.node(seed, blocks=BLOCKS, **options)  # type: ignore[arg-type]


def worse(comparison: Comparison) -> set[str]:
    return {path.curve for path in comparison.of("worse")}


def test_the_same_machine_again_is_the_same_in_nine_of_ten() -> None:
    clean = 0
    for seed in range(20):
        found = compare([surveyed(2 * seed)], [surveyed(2 * seed + 1)])
        clean += found.counts["same"] + found.counts["unclear"] == len(found.paths)
    assert clean >= 18


def test_a_link_that_is_5_percent_slower_is_found_and_nothing_else() -> None:
    slow = surveyed(2, slow=nodes.slow_host_link(3, 1.05))
    found = compare([surveyed(1)], [slow])
    expected = {nodes.h2d(3), nodes.d2h(3), f"{nodes.h2d(3)}; {nodes.d2h(3)}"}
    sets = {digest.curve for digest in slow.series if len(digest.workload.transfers) > 2}
    assert worse(found) == expected | sets
    path = next(path for path in found.paths if path.curve == nodes.h2d(3))
    assert path.evidence is not None
    judged = path.evidence.judged
    assert judged.interval.low < 1 / 1.05 < judged.interval.high
    assert judged.blocks == (2, 2)
    assert [device.uuid for device in path.devices] == ["GPU-node0-3"]


def test_a_link_that_is_faster_is_better() -> None:
    found = compare([surveyed(1, slow=nodes.slow_host_link(3, 1.05))], [surveyed(2)])
    assert nodes.d2h(3) in {path.curve for path in found.of("better")}
    assert not found.of("worse")


def test_an_effect_below_the_threshold_does_not_matter() -> None:
    slow = surveyed(2, slow=nodes.slow_host_link(3, 1.02))
    assert not worse(compare([surveyed(1)], [slow]))
    assert nodes.h2d(3) in worse(compare([surveyed(1)], [slow], threshold=0.01))


def test_where_blocks_scatter_as_much_as_the_effect_it_is_unclear() -> None:
    loud = {"between_blocks": 0.05}
    slow = surveyed(2, slow=nodes.slow_host_link(3, 1.05), **loud)
    found = compare([surveyed(1, **loud)], [slow])
    assert not worse(found)
    assert found.counts["unclear"] > found.counts["same"]


def test_more_files_are_more_blocks() -> None:
    loud = {"between_blocks": 0.012}
    slow = nodes.slow_host_link(3, 1.06)
    base = [surveyed(seed, **loud) for seed in range(4)]
    new = [surveyed(10 + seed, slow=slow, **loud) for seed in range(4)]
    assert nodes.h2d(3) not in worse(compare(base[:1], new[:1]))
    assert nodes.h2d(3) in worse(compare(base, new))


def test_one_block_a_side_stands_on_experience_and_says_so() -> None:
    base, new = nodes.node(1), nodes.node(2, slow=nodes.slow_host_link(3, 1.05))
    found = compare([base], [new])
    assert nodes.h2d(3) in worse(found)
    assert any("one block a side" in note for note in found.notes)
    few = [
        msgspec.structs.replace(each, series=tuple(d for d in each.series if d.curve in
                                                    (nodes.h2d(3), nodes.d2h(3))))
        for each in (base, new)
    ]  # fmt: skip
    alone = compare(few[:1], few[1:])
    assert worse(alone) == {nodes.h2d(3), nodes.d2h(3)}
    assert alone.paths[0].parts[0].judged.how == "experience"


def test_one_block_of_a_path_that_depends_on_its_process_says_nothing() -> None:
    managed = "managed@numa:0 -> managed@gpu:0 by page-fault"
    before, after = (
        Node("a", nodes.machine(), (nodes.digest(nodes.workload(managed), [seconds]),))
        for seconds in (1e-3, 1.2e-3)
    )
    assert compare([before], [after]).paths[0].verdict == "unclear"


def test_a_gpu_that_is_gone_does_not_make_the_others_look_changed() -> None:
    whole = nodes.node(1)
    found = compare([whole], [nodes.without(whole, "0000:04:00.0")])
    assert [device.uuid for device in found.missing_gpus] == ["GPU-node0-3"]
    missing = found.of("missing")
    single = [path for path in missing if ";" not in path.curve]
    assert len(single) == 2 + 14
    assert all("gpu:3 is gone" in path.why for path in missing)
    assert {path.verdict for path in found.paths} <= {"missing", "same", "new"}
    assert nodes.h2d(7) in {path.curve for path in found.of("same")}


def test_an_exchanged_gpu_is_said_and_no_failure() -> None:
    base = nodes.node(1)
    gpus = list(base.machine.gpus)
    gpus[2] = msgspec.structs.replace(gpus[2], uuid="GPU-new")
    machine = msgspec.structs.replace(base.machine, gpus=tuple(gpus))
    found = compare([base], [msgspec.structs.replace(nodes.node(2), machine=machine)])
    assert any("GPU-node0-2 before, GPU-new now" in note for note in found.notes)
    assert found.counts["missing"] == found.counts["worse"] == 0


def test_gpus_are_told_by_uuid_then_by_place_then_by_number() -> None:
    whole = nodes.machine().gpus
    shifted = [msgspec.structs.replace(gpu, index=gpu.index - 1) for gpu in whole[1:]]
    assert match(whole, shifted).numbers == {n: n + 1 for n in range(7)}
    others = nodes.machine("other").gpus
    assert match(whole, others).numbers == {n: n for n in range(8)}
    assert len(match(whole, others).exchanged) == 8
    nowhere = [msgspec.structs.replace(gpu, uuid="", pci="") for gpu in whole]
    assert match(whole, nowhere).numbers == {n: n for n in range(8)}
    more = msgspec.structs.replace(nodes.gpu(0, "x"), pci="0000:99:00.0")
    assert match(whole, [*whole, more]).added == (more,)
    assert match(whole, [*whole, more]).numbers[0] == 8


def test_a_path_that_fails_now_is_missing_with_its_reason() -> None:
    base = nodes.node(1)
    broken = Failure("gpu", "an illegal address")

    def failed(digest: SeriesSummary) -> SeriesSummary:
        if digest.curve != nodes.h2d(2):
            return digest
        return msgspec.structs.replace(digest, blocks=(), failures=(broken,))

    again = nodes.node(2)
    new = msgspec.structs.replace(again, series=tuple(map(failed, again.series)))
    (path,) = compare([base], [new]).of("missing")
    assert path.curve == nodes.h2d(2)
    assert "an illegal address" in path.why
    left_out = tuple(d for d in again.series if d.curve != nodes.h2d(2))
    refused = msgspec.structs.replace(
        again, series=left_out, refusals=(Refusal(nodes.h2d(2), "used by others"),)
    )
    (path,) = compare([base], [refused]).of("missing")
    assert path.why == "used by others"
    (path,) = compare([refused], [base]).of("new")
    assert path.curve == nodes.h2d(2)


def test_a_path_that_was_left_out_for_time_is_unclear() -> None:
    base = nodes.node(1)
    over = Failure("skipped", "the time was over")

    def skipped(digest: SeriesSummary) -> SeriesSummary:
        if digest.curve != nodes.h2d(2):
            return digest
        return msgspec.structs.replace(digest, blocks=(), failures=(over,))

    again = nodes.node(2)
    new = msgspec.structs.replace(again, series=tuple(map(skipped, again.series)))
    for found in (compare([base], [new]), compare([new], [base])):
        (path,) = [each for each in found.paths if each.curve == nodes.h2d(2)]
        assert (path.verdict, found.counts["missing"], found.counts["new"]) == ("unclear", 0, 0)
        assert "the time was over" in path.why


@pytest.mark.parametrize(
    ("version", "asked", "verdict"),
    [
        ("2.0", "check", "unclear"),
        ("1.0", "check", "missing"),
        ("2.0", "quick", "missing"),
        ("", "check", "missing"),
    ],
)
def test_what_another_version_does_not_plan_is_not_lost(
    version: str, asked: str, verdict: str
) -> None:
    replace = msgspec.structs.replace
    base = replace(nodes.node(1), environment={"waywiser": "1.0"})
    again = nodes.node(2)
    kept = tuple(d for d in again.series if d.curve != nodes.h2d(2))
    new = replace(again, series=kept, asked=asked, environment={"waywiser": version})
    (path,) = [each for each in compare([base], [new]).paths if each.curve == nodes.h2d(2)]
    assert path.verdict == verdict
    assert ("by waywiser 2.0 it is no longer planned" in path.why) is (verdict == "unclear")
    # one file of the old version beside it speaks for the machine
    third = tuple(d for d in nodes.node(3).series if d.curve != nodes.h2d(2))
    other = replace(new, series=third, environment={"waywiser": "1.0"}, file="other.wwp")
    assert compare([base], [new, other]).counts["missing"] == 1
    # so does a node that is gone
    bare = replace(new, machine=replace(new.machine, numa=()))
    assert compare([base], [bare]).counts["missing"] == 1
    # what is refused is lost, also where all of its kinds are
    refusals = (Refusal("pinned -> device by copy-engine", "no engine"),)
    (path,) = compare([base], [replace(new, refusals=refusals)]).of("missing")
    assert path.why == "no engine"


def test_a_size_that_fails_now_is_not_hidden_by_the_others() -> None:
    sizes = (2**20, nodes.SIZE)
    base, again = (nodes.node(seed, blocks=2, sizes=sizes) for seed in (1, 2))

    def failed(digest: SeriesSummary) -> SeriesSummary:
        if (digest.curve, digest.bytes) != (nodes.h2d(2), nodes.SIZE):
            return digest
        broken = Failure("timeout", "no answer")
        return msgspec.structs.replace(digest, blocks=(), failures=(broken,))

    new = msgspec.structs.replace(again, series=tuple(map(failed, again.series)))
    (path,) = compare([base], [new]).of("missing")
    assert path.curve == nodes.h2d(2)
    assert f"fails at {nodes.SIZE} B" in path.why


def test_a_dip_at_one_size_is_worse_though_the_curve_is_not() -> None:
    sizes = tuple(2**n for n in range(20, 27))
    base = nodes.node(1, blocks=2, sizes=sizes)

    def dip(what: Workload) -> float:
        return 1.3 if (what.curve, what.bytes) == (nodes.h2d(2), 2**23) else 1.0

    found = compare([base], [nodes.node(2, blocks=2, sizes=sizes, slow=dip)])
    assert worse(found) == {nodes.h2d(2)}
    assert found.paths[0].why == f"at {2**23} B alone"


def test_another_class_of_machine_is_said() -> None:
    base, new = nodes.node(1), nodes.node(2)
    gpus = tuple(msgspec.structs.replace(gpu, name="Other GPU") for gpu in new.machine.gpus)
    machine = msgspec.structs.replace(new.machine, gpus=gpus, cpu_model="Other", driver="1")
    notes = compare([base], [msgspec.structs.replace(new, machine=machine)]).notes
    assert any("8 × Test GPU before, 8 × Other GPU now" in note for note in notes)
    assert any(note.startswith("another CPU") for note in notes)
    assert any(note.startswith("another driver") for note in notes)


def test_ranks_must_not_speak_against_it() -> None:
    """Six blocks a side of which the median moves and the ranks do not."""
    what = nodes.workload(nodes.h2d(0))
    before = nodes.digest(what, [1.0, 1.0001, 1.0002, 1.2, 1.2001, 1.2002])
    after = nodes.digest(what, [1.0003, 1.0004, 1.19, 1.2003, 1.2004, 1.2005])
    base, new = (Node("a", nodes.machine(), (each,)) for each in (before, after))
    assert compare([base], [new]).paths[0].verdict == "unclear"


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
    assert math.isclose(found.paths[0].parts[0].judged.ratio, 1 / 1.5, rel_tol=0.02)
    assert sum(found.counts.values()) == len(found.paths)


def bimodal(modes: list[tuple[int, ...]], host: str = "node0") -> Node:
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
    return Node("node0", nodes.machine(), tuple(digests))


def test_two_blocks_that_agree_by_chance_accuse_nobody_where_others_jump() -> None:
    """One path of thirty was in its fast mode twice before, and in its slow mode twice now."""
    before = [(0, 0), *[(n % 2, (n // 2) % 2) for n in range(30)]]
    after = [(1, 1), *[((n // 2) % 2, n % 2) for n in range(30)]]
    found = compare([bimodal(before)], [bimodal(after, "later")])
    assert not found.of("worse", "better")
    steady = [(0, 0)] * 31
    found = compare([bimodal(steady)], [bimodal([(1, 1), *steady[1:]], "later")])
    assert len(found.of("worse")) == 1
