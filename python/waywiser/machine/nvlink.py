"""NVLink: who is at the other end of a GPU's lanes, from NVML or from hwloc's matrix."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence

from waywiser.machine.facts import Lane
from waywiser.machine.hwloc import Distances
from waywiser.machine.machine import NvLink

_NOMINAL = {1: 20.0, 2: 25.0, 3: 25.0, 4: 25.0, 5: 25.0, 6: 25.0, 7: 50.0}
"""GB/s of one lane and direction by NVML's version number (1: NVLink 1.0, 2: 2.0, 3: 2.2, 4: 3.0,
5: 3.1, 6: 4.0, 7: 5.0), as NVIDIA's data sheets state them: total per GPU over lanes over two."""

_LANE_RATES = frozenset({*_NOMINAL.values(), 25.781, 26.562, 53.125})
"""GB/s per lane that drivers report: nominal, and raw where the driver counts coding too."""


def links_from_lanes(lanes: Sequence[Lane], index_of: Mapping[str, int]) -> tuple[NvLink, ...]:
    """Lanes grouped by their other end and speed; ``index_of`` numbers visible GPUs by address.

    A lane to a GPU that is not visible, or to an end that nobody names, is left out.
    """
    groups: Counter[tuple[str, float]] = Counter()
    for lane in lanes:
        to = _other_end(lane, index_of)
        if to:
            groups[to, lane.mb_per_s / 1000 or _NOMINAL.get(lane.version, 0.0)] += 1
    return tuple(NvLink(to, count, rate) for (to, rate), count in sorted(groups.items()))


def _other_end(lane: Lane, index_of: Mapping[str, int]) -> str:
    if lane.remote_pci in index_of:
        return f"gpu:{index_of[lane.remote_pci]}"
    # An older driver does not name the kind: a device that is no GPU of ours and has an address
    # is a switch, unless it says that it is a (hidden) GPU.
    if lane.remote in ("switch", "cpu"):
        return lane.remote
    return "switch" if not lane.remote and lane.remote_pci else ""


def links_from_distances(
    distances: Sequence[Distances], index_of: Mapping[str, int]
) -> dict[int, tuple[NvLink, ...]]:
    """Per GPU, the links in hwloc's ``NVLinkBandwidth`` (MB/s from row to column).

    ``index_of`` numbers the GPUs by the matrix's keys (``OSDev:802``). Other PCI devices are
    switches, packages and NUMA nodes are the CPU. One lane's rate is the greatest common divisor
    of all entries, when it is one that NVLink has; else a bundle counts as one lane.
    """
    links: dict[int, tuple[NvLink, ...]] = {}
    for matrix in distances:
        if matrix.name != "NVLinkBandwidth":
            continue
        lane = _greatest_common_rate(matrix)
        for key, row in zip(matrix.keys, matrix.values, strict=True):
            if key in index_of:
                ends: Counter[str] = Counter()
                for other, value in zip(matrix.keys, row, strict=True):
                    if other != key and value:
                        ends[_end_of_key(other, index_of)] += value
                links[index_of[key]] = tuple(
                    _bundle(to, total / 1000, lane) for to, total in sorted(ends.items())
                )
    return links


def _greatest_common_rate(matrix: Distances) -> float:
    """GB/s; the diagonal is each device's way to itself and no link."""
    return (
        math.gcd(*(v for i, row in enumerate(matrix.values) for j, v in enumerate(row) if i != j))
        / 1000
    )


def _end_of_key(key: str, index_of: Mapping[str, int]) -> str:
    if key in index_of:
        return f"gpu:{index_of[key]}"
    return "cpu" if key.startswith(("Package", "NUMANode")) else "switch"


def _bundle(to: str, total: float, lane: float) -> NvLink:
    if lane in _LANE_RATES:
        return NvLink(to, round(total / lane), lane)
    return NvLink(to, 1, total)
