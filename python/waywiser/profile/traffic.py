"""Which links carried a workload: what counters counted around it, over the bytes it moved.

A link of a GPU *sent* the bytes of transfers that start in the GPU's memory and *received* those of
transfers that end there; counts are given as a multiple of these bytes. What moved in
as long a time without work is taken off before. Counts of NVLink are of data alone; those of PCIe
may include what the protocol adds. Managed memory that moves in place is brought back before each
execution, and the counters see that too: it counts among the bytes moved, and a direction in which
nothing else moves is not known.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import msgspec

from waywiser.machine import Traits
from waywiser.words import GpuTraffic, LinkEvidence, Series, Transfer, Value, Workload

LEAST_SHARE = 0.05
"""Least share of a workload's bytes: less is control traffic."""

Link = Literal["NVLink", "PCIe"]
Direction = Literal["sent", "received"]


class Carried(Value, frozen=True):
    """What one kind of link of one GPU moved in one direction."""

    gpu: int
    link: Link
    direction: Direction
    bytes: int
    """Counted, less what moves without work."""
    ratio: float
    """Bytes counted over those that the workload moves from or to this GPU; over all, if those are
    none."""
    links: int
    """Links that moved anything; 1 for PCIe."""

    def __str__(self) -> str:
        many = f" over {self.links} links" if self.link == "NVLink" else ""
        return f"gpu:{self.gpu} {self.direction} {self.ratio:.3f} × the bytes by {self.link}{many}"


class LinkUse(Value, frozen=True):
    """The links that the bytes of a series used."""

    links: tuple[Link, ...]
    """Those that carried them; none if no link that is counted moved."""
    carried: tuple[Carried, ...]
    executions: int
    bytes: int
    """Moved by all executions together."""
    reasons: tuple[str, ...]
    """Why counters could not be read: what they count is unknown."""

    @property
    def known(self) -> bool:
        """Whether any counter could be read."""
        return self.executions > 0

    def __str__(self) -> str:
        if not self.known:
            return f"links unknown: {'; '.join(self.reasons)}"
        if not self.carried:
            unknown = f" ({'; '.join(self.reasons)})" if self.reasons else ""
            return f"no counted link moved bytes{unknown}"
        which = " and ".join(self.links)
        return f"through {which}: {', '.join(map(str, self.carried))}"


class PacketOverhead(Value, frozen=True):
    """What the PCIe counters of a GPU count for each byte of a copy between it and page-locked host
    memory, as a survey saw it: packets have headers, and each read of host memory is
    requested by a packet in the other direction."""

    received: float
    """Bytes that are counted for each byte of a copy to the GPU."""
    requested: float
    """Bytes in the other direction meanwhile."""
    sent: float
    """Bytes for each byte of a copy from the GPU."""

    def copied(self, received: float, sent: float) -> tuple[float, float]:
        """Bytes of copies to and from the GPU that make such counts."""
        to = received / self.received
        return to, max(sent - to * self.requested, 0.0) / self.sent


def packet_overheads(series: Iterable[Series], traits: Traits) -> dict[int, PacketOverhead]:
    """By GPU, from the copies with the largest packets: those with the least overhead."""
    to: dict[int, tuple[float, float]] = {}
    back: dict[int, float] = {}
    for each in series:
        if len(each.workload.transfers) != 1:
            continue
        (transfer,) = each.workload.transfers
        ends = transfer.path.ends
        if not any(traits.memory(end.kind).page_locked for end in ends):
            continue
        if (use := link_use(each, traits)) is None:
            continue
        ratios = {(c.gpu, c.direction): c.ratio for c in use.carried if c.link == "PCIe"}
        sides: tuple[Direction, ...] = ("sent", "received")
        for end, direction in zip(ends, sides, strict=True):
            gpu = end.place.index
            ratio = ratios.get((gpu, direction), 0.0) if end.place.kind == "gpu" else 0.0
            if ratio < 1:  # not over this link, or not known
                continue
            if direction == "sent":
                back[gpu] = min(ratio, back.get(gpu, ratio))
            else:
                found = ratio, ratios.get((gpu, "sent"), 0.0)
                to[gpu] = min(found, to.get(gpu, found))
    return {gpu: PacketOverhead(*to[gpu], back[gpu]) for gpu in sorted(to.keys() & back.keys())}


def link_use(series: Series, traits: Traits) -> LinkUse | None:
    """What the first block that was looked at shows; None without one."""
    found = next((v.evidence for v in series.visits if v.evidence is not None), None)
    return None if found is None else _link_use(series.workload, found, traits)


def _link_use(workload: Workload, found: LinkEvidence, traits: Traits) -> LinkUse:
    reasons = dict.fromkeys(
        f"gpu:{gpu.index}: {reason}" for gpu in found.gpus for reason in gpu.reasons
    )
    counted = any(
        count is not None for gpu in found.gpus for count in msgspec.structs.astuple(gpu.work)
    )
    if found.reason or not counted:
        why = (found.reason,) if found.reason else tuple(reasons)
        return LinkUse((), (), 0, 0, why or ("no counter was read",))
    moved = workload.bytes * found.executions
    rest = found.seconds / found.idle_seconds if found.idle_seconds else 0.0
    home = Workload(tuple(t for t in workload.transfers if _is_brought_back(t, traits)))
    carried = [each for gpu in found.gpus for each in _of_gpu(gpu, workload, home, found, rest)]
    least = LEAST_SHARE * min(t.bytes for t in workload.transfers) * found.executions
    used = tuple(each for each in carried if each.bytes >= least)
    kinds = dict.fromkeys(each.link for each in used)
    return LinkUse(tuple(kinds), used, found.executions, moved, tuple(reasons))


def _of_gpu(
    gpu: GpuTraffic, workload: Workload, home: Workload, found: LinkEvidence, rest: float
) -> tuple[Carried, ...]:
    """``home`` has the transfers whose bytes are brought back before each execution."""
    sent, received = _expected(workload, gpu.index)
    back_in, back_out = _expected(home, gpu.index)
    carried = []
    sides: tuple[tuple[Direction, int, int, str], ...] = (
        ("sent", sent, back_out, "tx"),
        ("received", received, back_in, "rx"),
    )
    for direction, own, back, suffix in sides:
        if back and not own:
            continue
        reference = (own + back or workload.bytes) * found.executions
        by_link: dict[int, int] | None = getattr(gpu.work, f"nvlink_{suffix}")
        if by_link is not None:
            idle = sum((getattr(gpu.idle, f"nvlink_{suffix}") or {}).values())
            net = max(0, sum(by_link.values()) - round(idle * rest))
            links = _links(by_link)
            carried.append(Carried(gpu.index, "NVLink", direction, net, net / reference, links))
        count: int | None = getattr(gpu.work, f"pcie_{suffix}")
        if count is not None:
            idle = getattr(gpu.idle, f"pcie_{suffix}") or 0
            net = max(0, count - round(idle * rest))
            carried.append(Carried(gpu.index, "PCIe", direction, net, net / reference, 1))
    return tuple(carried)


def _links(by_link: dict[int, int]) -> int:
    """Those that moved a share worth showing."""
    most = max(by_link.values(), default=0)
    return sum(count >= LEAST_SHARE * most for count in by_link.values()) if most else 0


def _is_brought_back(transfer: Transfer, traits: Traits) -> bool:
    """Whether its bytes have to move back before each execution, since they moved in place."""
    return all(traits.memory(end.kind).migrates for end in transfer.path.ends)


def _expected(workload: Workload, gpu: int) -> tuple[int, int]:
    """Bytes of one execution that leave and reach the memory of a GPU; a copy within it neither. Of
    a collective what an ideal one sends and receives over each link."""
    sent = received = 0
    for transfer in workload.transfers:
        if transfer.path.is_among_several:
            each = round(transfer.bytes * transfer.bus_factor)
            is_member = any(
                p.kind == "gpu" and p.index == gpu for p in transfer.path.source.place.each
            )
            sent, received = sent + each * is_member, received + each * is_member
            continue
        ends = [
            memory.place.kind == "gpu" and memory.place.index == gpu
            for memory in transfer.path.ends
        ]
        if ends == [True, False]:
            sent += transfer.bytes
        elif ends == [False, True]:
            received += transfer.bytes
    return sent, received
