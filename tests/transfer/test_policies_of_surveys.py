"""A survey over the fake GPU, and what its policy says: small copies and a matrix product beside
large copies, and lists that are contiguous in host memory, which a context copies as it says."""

from __future__ import annotations

import json
from pathlib import Path

import fake_gpu
import numpy as np
import pytest
from fake_gpu import GpuArray, random_array

from own_lock import commands, finish
from waywiser import transfer
from waywiser.analysis.policy.build import build_policy, decision_tables
from waywiser.curves.subject import Subject
from waywiser.profile import Profile
from waywiser.words.records import Visit

H2D = "pinned@numa:0 -> device@gpu:0 by copy-engine"
LARGE = f"{H2D} of 16MiB"
PRODUCT = "device@gpu:0 -> device@gpu:0 by matrix-product of 5000001"
"""Two launches, the last of which has a part of a row."""

ROW = f"{H2D} as list[piece=28672] of 1032192"
BYSTANDERS = [LARGE, PRODUCT, ROW, f"{LARGE}; {PRODUCT}", f"{LARGE}; {ROW}"]

PIECE, COUNT = 4096, 96
EXECUTORS = ("gather-scatter", "sm", "batch", "copy-engine")
LISTS = [
    f"device@gpu:0 -> pinned@numa:0 by {executor} as list[piece={PIECE},scattered=source] of "
    f"{count * PIECE}"
    for executor in EXECUTORS
    for count in (8, COUNT)
]

SLOW_LINK = "devices=1;latency=1;event=1;h2d=0.5;d2h=2"
"""A large copy lasts much longer than the bystanders on any machine that runs the test."""


@pytest.fixture(scope="module")
def folder(
    fake_native_environment: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """The folder with the profile ``a.wwp``."""
    made = tmp_path_factory.mktemp("survey")
    options = [word for text in (*BYSTANDERS, *LISTS) for word in ("--workload", text)]
    with commands(made, fake_native_environment) as start:
        command = ("survey", "--preset", "quick", "-o", "a.wwp", *options)
        code, _, err = finish(start(*command, WAYWISER_FAKE=SLOW_LINK))
    assert code == 0, err
    return made


def read(folder: Path) -> tuple[dict[str, Visit], Subject]:
    with Profile.open(folder / "a.wwp") as profile:
        visits = {str(visit.workload): visit for visit in profile.visits()}
        assert all(visit.failure is None for visit in visits.values())
        return visits, Subject.of(profile)


def test_bystanders_are_measured_and_are_costs_of_the_large_copy(
    fake_native_environment: dict[str, str], folder: Path
) -> None:
    with commands(folder, fake_native_environment) as start:
        code, out, err = finish(start("advise", "a.wwp", "--from", "pinned@numa:0", "--to",
                                      "device@gpu:0", "--bytes", "16MiB"))  # fmt: skip
    assert code == 0, err
    visits, subject = read(folder)
    assert len(visits) == len(BYSTANDERS) + len(LISTS)
    modes = {len(v.workload.transfers): set[str]() for v in visits.values()}
    for visit in visits.values():
        modes[len(visit.workload.transfers)].add(visit.mode)
        if len(visit.workload.transfers) == 2:
            assert all(len(times) == 2 and min(times) > 0 for times in visit.samples.transfers)
    assert modes == {1: {"device", "host"}, 2: {"device", "host"}}
    (table,) = [t for t in decision_tables([subject]) if t.count == 1 and t.kind.source == "pinned"]
    costs = table.decisions[-1].time.costs
    assert costs.small_copy is not None and costs.small_copy > 0
    assert costs.matrix_product is not None and costs.matrix_product > 0
    taken = next(line for line in out.splitlines() if line.startswith("It takes from others"))
    assert "small copies " in taken and "matrix products " in taken


def test_a_list_is_copied_as_its_survey_found_best(folder: Path) -> None:
    _, subject = read(folder)
    policy = build_policy([subject])
    found = policy.class_of("device", "pinned")
    assert found is not None and found.rows == ()
    row = found.row(PIECE, COUNT, 1, host_contiguous=True)
    assert row is not None and row.executor in EXECUTORS and row.next is not None
    written = json.loads(policy.to_json()) | {"machine": {}}
    file = folder / "machine.json"
    file.write_text(json.dumps(written))
    file.chmod(0o600)
    cache, pool = GpuArray((2 * COUNT, PIECE)), transfer.pinned_empty((COUNT, PIECE), np.uint8)
    values = random_array((2 * COUNT, PIECE), seed=1)
    cache.set(values)
    order = np.random.default_rng(2).permutation(2 * COUNT)[:COUNT]
    with transfer.Context(policy=file) as context:
        fake_gpu.configure("")
        said = context.explain(pool, cache, np.arange(COUNT), order)
        assert f"by the policy; policy {file}: {row.executor} took" in said
        assert said.endswith("pieces of 4 KiB that are contiguous in host memory")
        context.copy_blocks(pool, cache, np.arange(COUNT), order)
    np.testing.assert_array_equal(pool, values[order])
