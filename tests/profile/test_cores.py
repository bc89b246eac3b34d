from __future__ import annotations

import msgspec
import pytest

import sides as synthetic
from waywiser.profile.cores import CoreVerdict, decide_cores
from waywiser.profile.locality import decide_sides
from waywiser.words.records import Locality

SEEDS = range(40)


def cores(records: list[Locality]) -> CoreVerdict:
    found = decide_sides(records)
    assert found is not None
    return found.cores


@pytest.mark.parametrize("truth", ["stable", "drifting"])
def test_what_is_planted_is_found(truth: str) -> None:
    kinds = [
        cores(synthetic.records(seed, workers=2, cores=truth)).stability  # type: ignore[arg-type]
        for seed in SEEDS
    ]
    assert kinds.count(truth) >= 0.97 * len(kinds)


def test_one_socket_shows_none() -> None:
    kinds = [cores(synthetic.records(seed, sockets=1)).stability for seed in SEEDS]
    assert kinds.count("none seen") >= 0.97 * len(kinds)


def test_cores_that_drift_are_named_with_the_time() -> None:
    found = cores(synthetic.records(4, workers=2, cores="drifting"))
    assert found.changed and set(found.changed) <= set(found.cores)
    assert found.seconds == pytest.approx(0.05)
    assert found.local_seconds == pytest.approx(120e-9, rel=0.05)
    assert found.remote_seconds == pytest.approx(221e-9, rel=0.05)


def test_stable_ones_are_reported_over_the_time_looked_at() -> None:
    found = cores(synthetic.records(4, workers=3))
    assert found.stability == "stable"
    assert found.seconds == pytest.approx(2 * 20 + 3 * 0.05)


def test_cores_show_by_themselves_where_no_gpu_does() -> None:
    for truth in ("stable", "drifting"):
        records = [
            msgspec.structs.replace(each, gpus=())
            for each in synthetic.records(4, workers=2, cores=truth)  # type: ignore[arg-type]
        ]
        assert decide_cores(records, {}).stability == truth


def test_one_look_does_not_show_whether_it_stays() -> None:
    (record,) = synthetic.records(4)
    blocks = tuple(msgspec.structs.replace(block, reads=block.reads[:1]) for block in record.blocks)
    once = msgspec.structs.replace(record, blocks=blocks, sweeps=record.sweeps[:1])
    assert decide_cores([once], {}).stability == "not determined"
    none = tuple(msgspec.structs.replace(block, reads=()) for block in record.blocks)
    nothing = msgspec.structs.replace(record, blocks=none, sweeps=())
    assert decide_cores([nothing], {}).stability == "not determined"
