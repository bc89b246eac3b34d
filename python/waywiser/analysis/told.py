"""What workloads of several transfers have in common to tell: rates, devices and evidence."""

from __future__ import annotations

from collections.abc import Sequence

from waywiser.analysis.answer import Device, Exhibit
from waywiser.analysis.subject import Subject
from waywiser.analysis.texts import NAMED
from waywiser.analysis.together import Together
from waywiser.stats.order import Interval
from waywiser.words import Transfer
from waywiser.words.number_format import format_rate


def rate_text(rate: float, span: Interval | None) -> str:
    """``101.2 GB/s (101.0–101.5)``."""
    if span is None:
        return f"{format_rate(rate)} GB/s"
    half = span.width / 2 / rate
    low, high = format_rate(span.low, half), format_rate(span.high, half)
    return f"{format_rate(rate, half)} GB/s ({low}–{high})"


def devices_of(subject: Subject, transfers: Sequence[Transfer]) -> tuple[Device, ...]:
    """The GPUs at any end, by index."""
    places = {
        str(place): place
        for transfer in transfers
        for place in transfer.path.places
        if place.kind == "gpu"
    }
    return tuple(
        subject.device(place) for place in sorted(places.values(), key=lambda place: place.index)
    )


def exhibits_of(each: Together, group: Sequence[int]) -> list[Exhibit]:
    """The rate of a group of transfers together, and of each alone."""
    rate, span = each.carried(group)
    told = [Exhibit(each.point.line.workload, "rate together", rate, "B/s", span)]
    for n in list(group)[:NAMED]:
        alone = each.alone[n].estimate.rate
        span = alone.interval if alone else None
        told.append(
            Exhibit(each.alone[n].line.workload, "rate alone", each.alone[n].rate, "B/s", span)
        )
    return told
