from __future__ import annotations

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from machines import machine

from waywiser.measure.plan.plan import Plan, make_plan
from waywiser.measure.plan.preset import Request
from waywiser.measure.plan.requested_workloads import WorkloadError
from waywiser.words import WaywiserError

H2D = "pinned@numa:0 -> device@gpu:0 by copy-engine"
D2H = "device@gpu:0 -> pinned@numa:0 by copy-engine"
P2P = "device@gpu:0 -> device@gpu:1 by copy-engine"
MIB = 2**20


def plan(*workloads: str, gpus: int = 2, **request: object) -> Plan:
    return make_plan(machine(gpus=gpus), Request(workloads=workloads, **request))  # type: ignore[arg-type]


def texts(found: Plan) -> set[str]:
    return {point.curve.text for point in found.points}


def test_only_the_named_are_measured_at_the_sizes_of_the_preset() -> None:
    found = plan(f"{H2D}; {P2P}")
    assert texts(found) == {f"{H2D}; {P2P}"}
    assert [point.size for point in found.points] == [2**i for i in range(3, 31)]
    assert not found.unsupported_paths


def test_a_size_of_its_own_wins_and_may_differ_between_transfers() -> None:
    found = plan(f"{H2D} of 1MiB; {P2P} of 64MiB", sizes="8:1GiB")
    (point,) = found.points
    assert [t.bytes for t in point.workload.transfers] == [MIB, 64 * MIB]
    assert point.size == 64 * MIB and point.buffer_bytes == 2 * 65 * MIB and not point.growing


def test_a_transfer_without_a_size_takes_those_of_the_survey() -> None:
    found = plan(f"{H2D} of 1MiB; {P2P}", sizes="4KiB,8KiB")
    sizes = [[t.bytes for t in point.workload.transfers] for point in found.points]
    assert sizes == [[MIB, 4096], [MIB, 8192]]


def test_only_adds_what_it_matches_of_the_preset() -> None:
    found = plan(f"{H2D}; {P2P}", only=("empty-interval",), preset="quick")
    assert texts(found) == {f"{H2D}; {P2P}", "empty-interval@gpu:0", "empty-interval@gpu:1"}
    assert texts(plan(H2D, only=(f"{H2D[:-1]}?",))) == {H2D}


def test_the_same_workload_is_measured_once_however_it_is_written() -> None:
    twice = plan(f"{H2D} of 1MiB", f"  {H2D}[api=async]   of 1048576 ", f"{H2D} of 2MiB")
    assert [str(point.workload) for point in twice.points] == [
        f"{H2D} of {MIB}",
        f"{H2D} of {2 * MIB}",
    ]


def test_bidirectional_paths_are_written_as_tables_write_them() -> None:
    both = plan("pinned@numa:0 <-> device@gpu:0 by copy-engine of 1MiB; " + P2P)
    opposite = "device@gpu:0 -> pinned@numa:0 by copy-engine"
    assert texts(both) == {f"{H2D}; {opposite}; {P2P}"}


def test_cache_states_and_shared_buffers_can_be_named() -> None:
    (point,) = plan(f"{H2D} of 1MiB (dirtied)", preset="quick").points
    assert point.workload.cache == "dirtied"
    to_each = "; ".join(H2D.replace("gpu:0", f"gpu:{g}") + " of 1MiB" for g in (0, 1))
    (point,) = plan(f"{to_each} (shared)").points
    assert point.workload.shared and point.buffer_bytes == 3 * MIB


def test_a_request_is_the_same_plan_after_it_was_stored() -> None:
    request = Request(workloads=(f"{H2D} of 1MiB; {P2P}",), sizes="4KiB")
    again = msgspec.json.decode(msgspec.json.encode(request), type=Request)
    assert make_plan(machine(gpus=2), again) == make_plan(machine(gpus=2), request)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("nonsense by sm", "'nonsense by sm'"),
        (f"{H2D};", "is not a path"),
        (f"{H2D} of 1parsec", "is not a size"),
        (H2D.replace("copy-engine", "magic"), "magic"),
        (f"{H2D}[api=psychic]", f"{H2D}[api=psychic] cannot be measured here"),
        (H2D.replace("gpu:0", "gpu:7"), "gpu:7"),
        (f"{P2P}; {P2P}[peer=off]", "cannot run together"),
        (f"{H2D} of 1TiB", "--memory allows 4 GiB"),
        (f"{H2D} of 1MiB; {P2P} of 1MiB (shared)", "named twice"),
    ],
)
def test_what_cannot_be_measured_is_one_line_with_the_transfer(text: str, says: str) -> None:
    with pytest.raises(WorkloadError) as error:
        plan(text)
    assert says in str(error.value) and "\n" not in str(error.value)
    assert error.value.exit_code == 2


def test_a_node_that_is_no_place_is_named_with_the_reason() -> None:
    of = msgspec.structs.replace(
        machine(gpus=1), notes=("numa:2 is skipped: it has no CPUs of its own", "numa:22 is: no")
    )
    request = Request(workloads=("pageable@numa:2 -> pageable@numa:0 by cpu of 1MiB",))
    with pytest.raises(WorkloadError) as error:
        make_plan(of, request)
    assert str(error.value).endswith("; numa:2 is skipped: it has no CPUs of its own)")


def test_without_a_gpu_the_reason_is_the_machine_s() -> None:
    with pytest.raises(WorkloadError, match="no driver is loaded"):
        plan(H2D, gpus=0)
    local = "pageable@numa:0 -> pageable@numa:0 by cpu"
    assert texts(plan(local, gpus=0)) == {local}


GRAMMAR = st.sampled_from(
    [*"@:;[]=,()-> ", "pinned", "device", "numa", "gpu", "0", "1", " by ", " of ", " as ", "cpu",
     "copy-engine", "api", "peer", "off", "sync", "list", "piece", "64", "MiB", "(shared)",
     "(flushed)", H2D, D2H, P2P, "\x00", "é"]
)  # fmt: skip


@settings(max_examples=60, suppress_health_check=list(HealthCheck))
@given(st.lists(GRAMMAR, max_size=12).map("".join))
def test_any_text_is_a_plan_or_one_line(text: str) -> None:
    try:
        found = plan(text, sizes="64KiB")
    except WaywiserError as error:
        assert str(error) and "\n" not in str(error)
    else:
        assert found.points
