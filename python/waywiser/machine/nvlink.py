"""NVLink: who is at the other end of a GPU's lanes, from NVML or from hwloc's matrix."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from waywiser.machine.facts import Lane
from waywiser.machine.hwloc import Distances
from waywiser.machine.hwloc_faults import HwlocVersion, lane_rates
from waywiser.machine.machine import NvLink
from waywiser.words import count

_NOMINAL = {1: 20.0, 2: 25.0, 3: 25.0, 4: 25.0, 5: 25.0, 6: 25.0, 7: 50.0}
"""GB/s of one lane and direction by NVML's version number (1: NVLink 1.0, 2: 2.0, 3: 2.2, 4: 3.0,
5: 3.1, 6: 4.0, 7: 5.0), as NVIDIA's data sheets state them: total per GPU over lanes over two."""


def links_from_lanes(lanes: Sequence[Lane], index_of: Mapping[str, int]) -> tuple[NvLink, ...]:
    """Lanes grouped by their other end and speed; ``index_of`` numbers visible GPUs by address.

    A lane to a GPU that is not visible, or to an unknown end, is omitted.
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


def links_from_c2c(rates: Sequence[int]) -> tuple[NvLink, ...]:
    """The active C2C links to the CPU, of these 10^6 bytes per second, grouped by speed."""
    return tuple(
        NvLink("cpu", number, rate / 1000, "NVLink-C2C")
        for rate, number in sorted(Counter(rates).items())
    )


def links_from_distances(
    distances: Sequence[Distances],
    index_of: Mapping[str, int],
    models: Mapping[int, str] | None = None,
    version: HwlocVersion | None = None,
) -> tuple[dict[int, tuple[NvLink, ...]], tuple[str, ...]]:
    """Per GPU, the links in hwloc's ``NVLinkBandwidth`` (MB/s from row to column), and notes.

    ``index_of`` numbers the GPUs by the matrix's keys (``OSDev:802``), ``models`` are their names.
    Other PCI devices are switches, packages and NUMA nodes are the CPU. A lane's rate is that of
    the model; of an unknown one the greatest common divisor of all entries, if NVLink has such
    lanes; else the number of lanes is unknown.
    """
    links: dict[int, tuple[NvLink, ...]] = {}
    notes: list[str] = []
    for matrix in distances:
        if matrix.name != "NVLinkBandwidth":
            continue
        rows = dict(_rows(matrix, index_of))
        named = [(models or {}).get(gpu, "") for gpu in rows]
        rates = lane_rates([tuple(ends.values()) for ends in rows.values()], named, version)
        notes += rates.notes
        for gpu, ends in rows.items():
            links[gpu] = tuple(
                _bundle(to, total / 1000 * rates.factor, rates.gb_per_s_per_lane)
                for to, total in sorted(ends.items())
            )
    return links, tuple(notes)


def _rows(matrix: Distances, index_of: Mapping[str, int]) -> Iterator[tuple[int, Counter[str]]]:
    """Per GPU, MB/s by the other end. The diagonal is each device's way to itself and no link."""
    for key, row in zip(matrix.keys, matrix.values, strict=True):
        if key in index_of:
            ends: Counter[str] = Counter()
            for other, value in zip(matrix.keys, row, strict=True):
                if other != key and value:
                    ends[_end_of_key(other, index_of)] += value
            yield index_of[key], ends


def _end_of_key(key: str, index_of: Mapping[str, int]) -> str:
    if key in index_of:
        return f"gpu:{index_of[key]}"
    return "cpu" if key.startswith(("Package", "NUMANode")) else "switch"


def _bundle(to: str, total: float, lane: float) -> NvLink:
    """``lane`` is 0 if the lanes cannot be counted."""
    lanes = round(total / lane) if lane else 0
    if lanes and abs(lanes * lane - total) < lane / 100:
        return NvLink(to, lanes, lane)
    return NvLink(to, 0, 0.0, gb_per_s_together=total)


def lanes_text(links: Sequence[NvLink]) -> str:
    """``4 lanes``, or of lanes without a number ``75.0 GB/s``; empty for no link, and ``lanes`` if
    nothing is known of them."""
    if not links:
        return ""
    if all(link.lanes for link in links):
        return count(sum(link.lanes for link in links), "lane")
    rates = [link.gb_per_s for link in links]
    return f"{sum(rates):.1f} GB/s" if all(rates) else "lanes"
