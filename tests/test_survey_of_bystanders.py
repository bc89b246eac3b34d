"""Small copies and a matrix product beside large copies, measured over the fake GPU."""

from __future__ import annotations

from pathlib import Path

from own_lock import commands, finish
from waywiser.analysis.policy.build import decision_tables
from waywiser.curves.subject import Subject
from waywiser.profile import Profile

H2D = "pinned@numa:0 -> device@gpu:0 by copy-engine"
LARGE = f"{H2D} of 16MiB"
PRODUCT = "device@gpu:0 -> device@gpu:0 by matrix-product of 5000001"
"""Two launches, the last of which has a part of a row."""

ROW = f"{H2D} as list[piece=28672] of 1032192"
SLOW_LINK = "devices=1;latency=1;event=1;h2d=0.5"
"""A large copy lasts much longer than the bystanders on any machine that runs the test."""


def test_bystanders_are_measured_and_are_costs_of_the_large_copy(
    fake_native_environment: dict[str, str], tmp_path: Path
) -> None:
    workloads = [LARGE, PRODUCT, ROW, f"{LARGE}; {PRODUCT}", f"{LARGE}; {ROW}"]
    options = [word for text in workloads for word in ("--workload", text)]
    with commands(tmp_path, fake_native_environment) as start:
        command = ("survey", "--preset", "quick", "-o", "a.wwp", *options)
        code, _, err = finish(start(*command, WAYWISER_FAKE=SLOW_LINK))
        assert code == 0, err
        code, out, err = finish(start("advise", "a.wwp", "--from", "pinned@numa:0", "--to",
                                      "device@gpu:0", "--bytes", "16MiB"))  # fmt: skip
    assert code == 0, err
    with Profile.open(tmp_path / "a.wwp") as profile:
        visits = {str(visit.workload): visit for visit in profile.visits()}
        subject = Subject.of(profile)
    assert len(visits) == len(workloads)
    assert all(visit.failure is None for visit in visits.values())
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


def test_a_standard_survey_plans_them(
    fake_native_environment: dict[str, str], tmp_path: Path
) -> None:
    with commands(tmp_path, fake_native_environment) as start:
        command = ("survey", "--dry-run", "--only", "*by matrix-product*")
        code, out, err = finish(start(*command, WAYWISER_FAKE="devices=1"))
    assert code == 0, err
    assert "by matrix-product" in out + err
