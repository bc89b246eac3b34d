from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from machine.captured import CAPTURES, machine
from waywiser.machine.assemble import machine_from
from waywiser.machine.bounds import bound, why_unbounded
from waywiser.machine.capture import load_capture
from waywiser.machine.machine import Machine
from waywiser.words import Operation, Place, Transfer, Workload

H200 = machine("h200-vm-8gpu")
A100 = machine("two-socket-4gpu")
H2D = "pinned@numa:0 -> device@gpu:0 by copy-engine"
D2H = "device@gpu:0 -> pinned@numa:0 by copy-engine"


def peer(source: int, destination: int, settings: str = "") -> str:
    return f"device@gpu:{source} -> device@gpu:{destination} by copy-engine{settings}"


def gb_per_s(text: str, where: Machine = H200) -> float:
    found = bound(where, Workload.parse(text))
    assert found is not None
    return found.bytes_per_second / 1e9


def test_a_copy_to_a_gpu_is_bound_by_its_pcie_link() -> None:
    found = bound(H200, Workload.parse(H2D))
    assert found is not None
    assert found.made_of == "PCIe 5 x16: 16 lanes × 32 GT/s × 128/130 / 8 = 63.0 GB/s"
    assert (found.narrowest, found.note) == ("PCIe to gpu:0", "")


def test_both_directions_add_up() -> None:
    assert gb_per_s(f"{H2D}; {D2H}") == pytest.approx(126.03, abs=0.01)
    assert gb_per_s(f"{peer(0, 1)}; {peer(1, 0)}") == pytest.approx(956.2, abs=0.1)


def test_two_copies_over_one_link_share_it() -> None:
    assert gb_per_s(f"{H2D}; {H2D}") == pytest.approx(63.015, abs=0.01)


def test_unequal_transfers_end_with_the_busiest_link() -> None:
    text = f"{H2D} of 3; pinned@numa:0 -> device@gpu:1 by copy-engine of 1"
    assert gb_per_s(text) == pytest.approx(63.015 * 4 / 3, abs=0.01)


def test_peers_behind_a_switch_share_their_own_lanes() -> None:
    assert gb_per_s(peer(0, 1)) == pytest.approx(18 * 26.562)
    assert gb_per_s(f"{peer(0, 1)}; {peer(0, 2)}") == pytest.approx(18 * 26.562)
    assert gb_per_s(f"{peer(0, 1)}; {peer(2, 3)}") == pytest.approx(2 * 18 * 26.562)


def test_direct_lanes_belong_to_their_pair() -> None:
    assert gb_per_s(peer(0, 1), A100) == pytest.approx(100)
    assert gb_per_s(f"{peer(0, 1)}; {peer(0, 2)}", A100) == pytest.approx(200)


def test_without_peer_access_the_host_lies_between() -> None:
    found = bound(H200, Workload.parse(peer(0, 1, "[peer=off]")))
    assert found is not None
    assert found.narrowest.startswith("PCIe")
    assert found.bytes_per_second / 1e9 == pytest.approx(63.015, abs=0.01)


def test_a_local_copy_reads_and_writes() -> None:
    found = bound(H200, Workload.parse("device@gpu:0 -> device@gpu:0 by copy-engine"))
    assert found is not None
    assert found.bytes_per_second / 1e9 == pytest.approx(2407.2, abs=0.1)
    assert found.made_of.endswith("(read and written) = 2407.2 GB/s")


def test_a_link_that_is_lower_now_keeps_its_peak_and_says_so() -> None:
    found = bound(A100, Workload.parse(H2D))
    assert found is not None
    assert found.bytes_per_second / 1e9 == pytest.approx(31.508, abs=0.001)
    assert found.note == "gpu:0's link was at PCIe 1 x8 when captured"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("pageable@numa:0 -> pageable@numa:0 by cpu", "must be measured"),
        (H2D.replace("gpu:0", "gpu:9"), "gpu:9 is not"),
        ("mapped@file:/data/x -> pageable@numa:0 by cpu", "file system"),
        (f"{H2D}; pageable@numa:0 -> pageable@numa:0 by cpu", "must be measured"),
    ],
)
def test_what_is_not_known_has_a_reason(text: str, why: str) -> None:
    workload = Workload.parse(text)
    assert bound(H200, workload) is None
    assert why in why_unbounded(H200, workload)


RELAY = "pinned@numa:0 -> device@gpu:0 by relay"


def test_relays_add_the_links_of_other_gpus() -> None:
    found = bound(H200, Workload.parse(f"{RELAY}[relays=1+3]"))
    assert found is not None
    assert found.bytes_per_second / 1e9 == pytest.approx(3 * 63.015, abs=0.01)
    assert found.narrowest == "host links to gpu:0+1+3"
    assert found.made_of == (
        "PCIe 5 x16: 16 lanes × 32 GT/s × 128/130 / 8 = 63.0 GB/s; "
        "the links of gpu:0+1+3 together 189.0 GB/s"
    )
    back = "device@gpu:0 -> pageable@numa:0 by relay[relays=1+3]"
    assert gb_per_s(f"{RELAY}[relays=1+3]; {back}") == pytest.approx(6 * 63.015, abs=0.02)
    assert gb_per_s(f"{RELAY}; {RELAY}") == pytest.approx(8 * 63.015, abs=0.02)


def test_relays_bring_no_more_than_the_nvlinks_of_the_gpu_carry() -> None:
    narrow = msgspec.structs.replace(H200.gpus[0].nvlinks[0], lanes=4)
    gpu = msgspec.structs.replace(H200.gpus[0], nvlinks=(narrow,))
    machine = msgspec.structs.replace(H200, gpus=(gpu, *H200.gpus[1:]))
    found = bound(machine, Workload.parse(RELAY))
    assert found is not None
    assert found.bytes_per_second / 1e9 == pytest.approx(63.015 + 4 * 26.562, abs=0.01)
    assert found.made_of.endswith("106.2 GB/s of it over the NVLinks of gpu:0")


def test_a_relay_without_nvlink_adds_nothing() -> None:
    gpus = [msgspec.structs.replace(gpu, nvlinks=()) for gpu in H200.gpus]
    bare = msgspec.structs.replace(H200, gpus=tuple(gpus))
    assert gb_per_s(RELAY, bare) == pytest.approx(63.015, abs=0.01)


def test_direct_lanes_carry_what_their_relay_brings() -> None:
    # Each pair has four lanes of 25 GB/s; the link of gpu:0 to the host is PCIe 4 x16.
    assert gb_per_s(f"{RELAY}[relays=1]", A100) == pytest.approx(2 * 31.508, abs=0.01)


def test_a_staged_copy_between_peers_is_bound_by_their_links_to_the_host() -> None:
    found = bound(H200, Workload.parse("device@gpu:0 -> device@gpu:1 by staged"))
    assert found is not None
    assert found.bytes_per_second / 1e9 == pytest.approx(63.015, abs=0.01)


def test_an_operation_has_no_bound() -> None:
    workload = Workload(operation=Operation("launch", Place("gpu", 0)))
    assert bound(H200, workload) is None
    assert why_unbounded(H200, workload)


def test_a_bound_has_no_reason_against_it() -> None:
    assert why_unbounded(H200, Workload.parse(H2D)) == ""


def test_nvlink_to_the_cpu_replaces_pcie() -> None:
    link = msgspec.json.decode(b'{"to": "cpu", "lanes": 3, "gb_per_s_per_lane": 25.0}')
    gpu = msgspec.structs.replace(
        H200.gpus[0], nvlinks=(msgspec.convert(link, type(H200.gpus[0].nvlinks[0])),)
    )
    assert gb_per_s(H2D, msgspec.structs.replace(H200, gpus=(gpu,))) == pytest.approx(75)


def test_a_bare_file_shows_the_link_as_it_was_seen() -> None:
    old = machine_from(load_capture(CAPTURES / "hwloc-1.xml"))
    found = bound(old, Workload.parse(H2D))
    assert found is not None
    assert (
        found.made_of
        == "PCIe: 8.0 GB/s at the link state of the capture (more, if the GPU was idle)"
    )


@given(
    st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7), st.integers(1, 1 << 30)), min_size=1)
)
def test_no_set_of_copies_beats_the_sum_of_its_parts(copies: list[tuple[int, int, int]]) -> None:
    transfers = tuple(
        Transfer.parse(f"{peer(source, destination)} of {size}")
        for source, destination, size in copies
    )
    whole = bound(H200, Workload(transfers))
    parts = [bound(H200, Workload((transfer,))) for transfer in transfers]
    assert whole is not None
    total = sum(part.bytes_per_second for part in parts if part is not None)
    assert whole.bytes_per_second <= total * (1 + 1e-9)
