from __future__ import annotations

from waywiser.machine.bounds import describe_nvlinks
from waywiser.machine.facts import Lane
from waywiser.machine.hwloc import Distances
from waywiser.machine.machine import NvLink
from waywiser.machine.nvlink import (
    lanes_text,
    links_from_c2c,
    links_from_distances,
    links_from_lanes,
)

INDEX = {"0000:01:00.0": 0, "0000:02:00.0": 1}


def test_lanes_are_grouped_by_their_other_end() -> None:
    lanes = [
        Lane(0, "gpu", "0000:02:00.0", 25781, 2),
        Lane(1, "gpu", "0000:02:00.0", 25781, 2),
        Lane(2, "cpu", "0004:00:00.0", 25781, 2),
    ]
    assert links_from_lanes(lanes, INDEX) == (
        NvLink("cpu", 1, 25.781),
        NvLink("gpu:1", 2, 25.781),
    )


def test_a_lane_without_a_speed_has_its_versions_nominal_one() -> None:
    assert links_from_lanes([Lane(0, "switch", "", 0, 7)], INDEX) == (NvLink("switch", 1, 50.0),)


def test_an_end_with_an_address_and_no_kind_is_a_switch() -> None:
    assert links_from_lanes([Lane(0, "", "0000:09:00.0", 1000)], INDEX)[0].to == "switch"


def test_hidden_gpus_and_unnamed_ends_are_skipped() -> None:
    lanes = [Lane(0, "gpu", "0000:0f:00.0", 25781), Lane(1, "", "", 25781)]
    assert links_from_lanes(lanes, INDEX) == ()


def test_a_matrix_shows_lanes_to_gpus_switches_and_the_cpu() -> None:
    keys = ["OSDev:1", "OSDev:2", "PCIDev:9", "Package:3"]
    values = [
        [1000000, 50000, 25000, 75000],
        [50000, 1000000, 25000, 0],
        [25000, 25000, 0, 0],
        [75000, 0, 0, 0],
    ]
    links, notes = links_from_distances(
        [
            Distances("NVLinkBandwidth", keys, values),
            Distances("NUMALatency", ["NUMANode:0"], [[10]]),
        ],
        {"OSDev:1": 0, "OSDev:2": 1},
    )
    assert notes == ()
    assert links[0] == (NvLink("cpu", 3, 25.0), NvLink("gpu:1", 2, 25.0), NvLink("switch", 1, 25.0))
    assert links[1] == (NvLink("gpu:0", 2, 25.0), NvLink("switch", 1, 25.0))


def test_a_rate_that_no_lane_has_is_that_of_an_unknown_number_of_lanes() -> None:
    matrix = Distances("NVLinkBandwidth", ["OSDev:1", "OSDev:2"], [[0, 33000], [33000, 0]])
    (link,) = links_from_distances([matrix], {"OSDev:1": 0})[0][0]
    assert link == NvLink("switch", 0, 0.0, gb_per_s_together=33.0)
    assert link.gb_per_s == 33.0
    assert describe_nvlinks([link]) == "NVLink: 33.0 GB/s, the number of lanes is unknown"
    assert lanes_text([link]) == "33.0 GB/s"
    assert lanes_text([NvLink("cpu", 1, 25.0)]) == "1 lane"
    assert lanes_text([NvLink("cpu", 0, 0.0)]) == "lanes"


def test_active_c2c_links_are_links_to_the_cpu() -> None:
    (link,) = links_from_c2c([45000] * 10)
    assert link == NvLink("cpu", 10, 45.0, "NVLink-C2C")
    assert describe_nvlinks([link]) == "NVLink-C2C: 10 lanes × 45 GB/s = 450.0 GB/s"
    assert links_from_c2c([]) == ()
