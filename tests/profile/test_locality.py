from __future__ import annotations

import msgspec
import numpy as np
import pytest

import sides as synthetic
from waywiser.profile.locality import decide_sides
from waywiser.words.records import BlockLatencies, BufferRecord, Failure, Locality

MACHINES = 150


def test_two_planted_sides_are_found_and_one_is_not_divided() -> None:
    found = [decide_sides(synthetic.records(seed)) for seed in range(MACHINES)]
    right = [each is not None and each.groups == ((0, 1, 2, 3), (4, 5, 6, 7)) for each in found]
    assert sum(right) >= 0.99 * MACHINES
    one = [decide_sides(synthetic.records(seed, sockets=1)) for seed in range(MACHINES)]
    assert sum(each is None or len(each.groups) != 1 for each in one) <= 0.01 * MACHINES


def test_chance_makes_a_small_p_value_as_seldom_as_it_says() -> None:
    """Also where some GPUs are much noisier than others, and far outliers are frequent."""
    rng = np.random.default_rng(7)
    found = []
    for _ in range(MACHINES):
        noise = 1e-7 * rng.standard_t(2, (6, synthetic.ROUNDS, 8)) * (1, 1, 1, 1, 1, 1, 4, 4)
        copies = np.clip(5.8e-6 + noise, 1e-6, None).tolist()
        blocks = tuple(BlockLatencies("unverified", tuple(map(tuple, each))) for each in copies)
        assessed = decide_sides([Locality(1, "", "pinned@numa:0", tuple(range(8)), blocks=blocks)])
        assert assessed is not None and assessed.p_value is not None
        found.append(assessed.p_value)
    for level in (0.05, 0.5):
        share = np.mean(np.array(found) <= level)
        assert abs(share - level) <= 3 * np.sqrt(level * (1 - level) / MACHINES)


@pytest.mark.parametrize("gpus", [2, 4])
def test_fewer_gpus_are_divided_where_blocks_lie_on_both_sides(gpus: int) -> None:
    half = gpus // 2
    for seed in range(30):
        found = decide_sides(synthetic.records(seed, gpus=gpus, workers=4))
        assert found is not None and found.by == "blocks"
        assert found.groups == (tuple(range(half)), tuple(range(half, gpus)))
        one = decide_sides(synthetic.records(seed, gpus=gpus, workers=4, sockets=1))
        assert one is not None and len(one.groups) == 1


def test_blocks_of_one_side_show_by_level_and_it_is_said() -> None:
    found = decide_sides(synthetic.records(3, one_side=True))
    assert found is not None
    assert found.by == "level"
    assert found.groups == ((0, 1, 2, 3), (4, 5, 6, 7))


def test_what_is_shown_two_sides() -> None:
    found = decide_sides(synthetic.records(5, workers=2))
    assert found is not None
    assert found.by == "blocks"
    assert found.p_value is not None and found.p_value <= 0.01
    assert found.silhouette is not None and found.silhouette > 0.7
    assert found.local_seconds == pytest.approx(5.8e-6, abs=0.1e-6)
    assert found.remote_seconds == pytest.approx(6.4e-6, abs=0.1e-6)
    assert len(found.blocks) == found.agreeing == 12
    assert {each.side for each in found.blocks} == {0, 1}
    assert all(0.3e-6 < each.margin_seconds < 0.9e-6 for each in found.blocks)
    assert found.cores.stability == "stable"


def test_sides_of_blocks_are_right_whatever_the_gpus_take_by_themselves() -> None:
    """A constant that belongs to each GPU does not decide where a block is."""
    rng = np.random.default_rng(7)
    own = rng.uniform(0, 0.8e-6, 8)

    def moved(record: Locality) -> Locality:
        blocks = tuple(
            msgspec.structs.replace(
                block,
                copies=tuple(
                    tuple(float(s + o) for s, o in zip(row, own, strict=True))
                    for row in block.copies
                ),
            )
            for block in record.blocks
        )
        return msgspec.structs.replace(record, blocks=blocks)

    plain = decide_sides(synthetic.records(5))
    shifted = decide_sides(map(moved, synthetic.records(5)))
    assert plain is not None and shifted is not None
    assert shifted.groups == plain.groups
    assert [each.side for each in shifted.blocks] == [each.side for each in plain.blocks]


def test_a_buffer_of_a_series_is_near_the_group_that_reaches_it_sooner() -> None:
    found = decide_sides(synthetic.records(5))
    assert found is not None
    near_first = BufferRecord(
        "pinned@numa:0", "verified", gpu_seconds=(5.8e-6,) * 4 + (6.4e-6,) * 4
    )
    assert found.side_of(near_first) == 0
    near_second = msgspec.structs.replace(near_first, gpu_seconds=near_first.gpu_seconds[::-1])
    assert found.side_of(near_second) == 1
    between = msgspec.structs.replace(near_first, gpu_seconds=(6.0e-6,) * 8)
    assert found.side_of(between) is None
    assert found.side_of(BufferRecord("device@gpu:0", "verified")) is None
    assert (found.group_of(2), found.group_of(6)) == (0, 1)


def test_without_records_or_copies_nothing_is_shown_gpus() -> None:
    assert decide_sides([]) is None
    lost = Locality(1, synthetic.START.isoformat(), "pinned@numa:0", failure=Failure("crash", "x"))
    assert decide_sides([lost]) is None
    (record,) = synthetic.records(1)
    blocks = tuple(msgspec.structs.replace(block, copies=()) for block in record.blocks)
    found = decide_sides([msgspec.structs.replace(record, gpus=(), blocks=blocks)])
    assert found is not None
    assert found.groups == () and found.cores.stability == "stable"


def test_the_verdict_is_the_same_each_time() -> None:
    known = synthetic.records(11, workers=2)
    assert decide_sides(known) == decide_sides(known)
