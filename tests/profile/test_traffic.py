from __future__ import annotations

import msgspec
import pytest

import profiles
from waywiser.machine.traits import DECLARED, Traits
from waywiser.profile.traffic import LinkUse, PacketOverhead, link_use, packet_overheads
from waywiser.words.records import GpuTraffic, LinkBytes, LinkEvidence, Series

SIZE = 64 << 20
MOVED = 4 * SIZE
STILL = LinkBytes(nvlink_tx={}, nvlink_rx={}, pcie_tx=0, pcie_rx=0)


def result(path: str, *gpus: GpuTraffic, reason: str = "", seconds: float = 0.01) -> LinkUse:
    what = profiles.workload(path, SIZE)
    found = LinkEvidence(4, seconds, seconds, gpus, reason)
    visit = msgspec.structs.replace(profiles.visit(what), evidence=found)
    later = profiles.visit(what, 1)
    answer = link_use(Series(what, (visit, later)), Traits())
    assert answer is not None
    return answer


def spread(count: int, links: int = 18) -> dict[int, int]:
    return dict.fromkeys(range(links), count // links)


def test_a_peer_copy_goes_through_nvlink() -> None:
    found = result(
        profiles.PEER,
        GpuTraffic(
            0, LinkBytes(spread(round(1.003 * MOVED)), spread(MOVED // 100), 900, 800), STILL
        ),
        GpuTraffic(1, LinkBytes(spread(MOVED // 100), spread(MOVED), 700, 600), STILL),
    )
    assert found.links == ("NVLink",)
    assert [(c.gpu, c.direction, c.links) for c in found.carried] == [
        (0, "sent", 18),
        (1, "received", 18),
    ]
    assert found.carried[0].ratio == pytest.approx(1.003, abs=1e-4)
    assert str(found) == (
        "through NVLink: gpu:0 sent 1.003 × the bytes by NVLink over 18 links, "
        "gpu:1 received 1.000 × the bytes by NVLink over 18 links"
    )


def test_a_peer_copy_without_peer_access_goes_through_pcie_of_both() -> None:
    found = result(
        f"{profiles.PEER}[peer=off]",
        GpuTraffic(0, LinkBytes({}, {}, round(1.02 * MOVED), MOVED // 1000), STILL),
        GpuTraffic(1, LinkBytes({}, {}, MOVED // 1000, round(1.02 * MOVED)), STILL),
    )
    assert found.links == ("PCIe",)
    assert [(c.gpu, c.direction, round(c.ratio, 2)) for c in found.carried] == [
        (0, "sent", 1.02),
        (1, "received", 1.02),
    ]


def test_each_direction_of_a_pair_is_compared_with_its_own_bytes() -> None:
    found = result(
        f"{profiles.H2D}; {profiles.D2H}",
        GpuTraffic(0, LinkBytes({}, {}, MOVED, round(1.01 * MOVED)), STILL),
    )
    assert [(c.direction, round(c.ratio, 2)) for c in found.carried] == [
        ("sent", 1.0),
        ("received", 1.01),
    ]


def test_what_is_brought_back_before_each_execution_counts_too() -> None:
    """The counters see it, in a direction of its own, or beside what moves the same way."""
    to = "managed@numa:0 -> managed@gpu:0 by prefetch"
    back = "managed@gpu:0 -> managed@numa:0 by prefetch"
    one = result(to, GpuTraffic(0, LinkBytes({}, {}, MOVED, MOVED), STILL))
    assert [(c.direction, round(c.ratio, 2)) for c in one.carried] == [("received", 1.0)]
    both = result(f"{to}; {back}", GpuTraffic(0, LinkBytes({}, {}, 2 * MOVED, 2 * MOVED), STILL))
    assert [(c.direction, round(c.ratio, 2)) for c in both.carried] == [
        ("sent", 1.0),
        ("received", 1.0),
    ]


def test_what_moves_without_work_is_taken_off() -> None:
    busy = LinkBytes({}, {}, 0, MOVED)
    found = result(profiles.H2D, GpuTraffic(0, LinkBytes({}, {}, 0, 2 * MOVED), busy))
    assert [round(c.ratio, 3) for c in found.carried] == [1.0]


def test_a_copy_within_a_gpu_moves_no_link() -> None:
    found = result("device@gpu:0 -> device@gpu:0 by copy-engine", GpuTraffic(0, STILL, STILL))
    assert found.links == () and str(found) == "no counted link moved bytes"


def test_what_is_not_counted_is_reported() -> None:
    nowhere = result(profiles.H2D, reason="no NVIDIA driver")
    assert not nowhere.known and str(nowhere) == "links unknown: no NVIDIA driver"
    unsupported_paths = result(profiles.H2D, GpuTraffic(0, reasons=("PCIe sent is not counted",)))
    assert not unsupported_paths.known and "gpu:0: PCIe sent is not counted" in str(
        unsupported_paths
    )
    partly = result(
        profiles.H2D,
        GpuTraffic(0, LinkBytes(pcie_rx=MOVED), LinkBytes(pcie_rx=0), ("NVML shows no NVLink",)),
    )
    assert partly.known and partly.links == ("PCIe",) and len(partly.reasons) == 1


def test_nobody_looked() -> None:
    assert link_use(profiles.series(), Traits()) is None


def _seen(path: str, sent: float, received: float) -> Series:
    what = profiles.workload(path, SIZE)
    link = LinkBytes({}, {}, round(sent * MOVED), round(received * MOVED))
    found = LinkEvidence(4, 0.01, 0.01, (GpuTraffic(0, link, STILL),), "")
    return Series(what, (msgspec.structs.replace(profiles.visit(what), evidence=found),))


def test_copies_follow_from_counts_of_packets() -> None:
    """As an H200 counts with packets of 256 bytes: 20 for completions, 24 for writes and reads."""
    series = [_seen(profiles.H2D, 0.094, 1.0782), _seen(profiles.D2H, 1.0938, 0.0),
              _seen(profiles.H2D.replace("copy-engine", "sm"), 0.2, 1.2)]  # fmt: skip
    found = packet_overheads(series, DECLARED)
    assert found == {0: PacketOverhead(pytest.approx(1.0782), pytest.approx(0.094),
                                       pytest.approx(1.0938))}  # fmt: skip
    to, back = found[0].copied(39.04e9, 23.22e9)
    assert to == pytest.approx(36.14e9, rel=0.01) and back == pytest.approx(18.07e9, rel=0.01)
    assert found[0].copied(0.0, 0.0) == (0.0, 0.0)


def test_without_both_directions_nothing_is_known_of_packets() -> None:
    assert packet_overheads([_seen(profiles.H2D, 0.094, 1.0782)], DECLARED) == {}
    gone = Series(profiles.workload(profiles.D2H, SIZE), ())
    assert packet_overheads([_seen(profiles.H2D, 0.094, 1.0782), gone], DECLARED) == {}
