from __future__ import annotations

import msgspec

import sides as synthetic
from waywiser.analysis.questions.hidden import sentences
from waywiser.profile.locality import decide_sides


def result(**machine: object) -> list[str]:
    found = decide_sides(synthetic.records(5, **machine))  # type: ignore[arg-type]
    assert found is not None
    return list(sentences(found))


def test_two_sides_and_drifting_cores() -> None:
    gpus, cores = result(workers=2, cores="drifting")
    assert gpus.startswith("GPUs 0-3 and GPUs 4-7 are on two sides: 5.78 µs")
    assert "the same from 12 of 12 blocks (probability of this by chance: 0.001)" in gpus
    assert cores.startswith("cores drift between two sides (12") and "within 0.05 s" in cores


def test_cores_that_stay_and_level_alone() -> None:
    gpus, cores = result(one_side=True)
    assert "by their level alone, since all blocks were on one side" in gpus
    assert cores.startswith("each core stayed on one of two hidden NUMA nodes")


def test_one_side() -> None:
    (gpus,) = result(sockets=1)
    assert gpus.startswith("GPUs 0-7 have equal latency to host memory, 5.79 µs")


def test_a_single_gpu_says_nothing() -> None:
    (record,) = synthetic.records(5, sockets=1)
    blocks = tuple(
        msgspec.structs.replace(block, copies=tuple(row[:1] for row in block.copies))
        for block in record.blocks
    )
    found = decide_sides([msgspec.structs.replace(record, gpus=(0,), blocks=blocks)])
    assert found is not None and list(sentences(found)) == []
