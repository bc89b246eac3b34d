"""Slowdowns of the members of a set with a collective: collectives, copies and compute. Each member
is timed while the others run throughout, and alone in turn."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from waywiser.curves import (
    Curve,
    Exhibit,
    Finding,
    Mark,
    Point,
    Sheet,
    SheetCell,
    Subject,
    practical,
    table,
)
from waywiser.profile import Slowdown
from waywiser.stats import THRESHOLD, Interval
from waywiser.words import (
    COLLECTIVE,
    Transfer,
    Value,
    format_settings,
    format_time,
    size_text,
    with_units,
)


class SustainedMember(Value, frozen=True):
    """One member of a set, at the largest size of its curve."""

    curve: Curve
    point: Point
    at: int
    """Its position in the workload."""
    slowdown: Slowdown

    @property
    def transfer(self) -> Transfer:
        return self.point.workload.transfers[self.at]

    @property
    def others(self) -> tuple[Transfer, ...]:
        """The transfers that ran with it."""
        transfers = self.point.workload.transfers
        return (*transfers[: self.at], *transfers[self.at + 1 :])

    @property
    def is_slowed(self) -> bool:
        """Whether the whole interval lies beyond the threshold."""
        found = self.slowdown.interval
        return found is not None and found.low > 1 + THRESHOLD

    @property
    def is_unslowed(self) -> bool:
        found = self.slowdown.interval
        return found is not None and found.high <= 1 + THRESHOLD

    @property
    def seconds(self) -> float:
        """Its time while the others run."""
        return self.transfer.bytes / self.point.transfer_rates[self.at]


def found_sustained(curves: Iterable[Curve]) -> list[SustainedMember]:
    """The members of all such sets, by set."""
    found: list[SustainedMember] = []
    for curve in curves:
        if curve.workload.is_sustained and curve.measured:
            point = curve.measured[-1]
            known = enumerate(point.measured.slowdowns)
            found += (SustainedMember(curve, point, n, slowdown) for n, slowdown in known)
    return found


def sustained_table(members: Sequence[SustainedMember]) -> tuple[Sheet, ...]:
    """One row for each member of each set."""
    return table(
        "Beside: collectives, copies and compute together against each alone",
        ("member", "slowed", "slowdown", "95 %", "time", "beside"),
        map(_row, members),
        "Slowdown: time while all others of the set run throughout (shorter ones repeat) over time "
        "alone in the same process, in turn, by the host's clock. All streams have the default "
        f"priority. yes: slowed by more than {THRESHOLD:.0%}, no: not, ? not determined.",
    )


def _row(each: SustainedMember) -> tuple[SheetCell, ...]:
    mark: Mark = "no" if each.is_unslowed else "yes" if each.is_slowed else "unclear"
    return (
        SheetCell(sized(each.transfer), "", each.point.text),
        SheetCell("", mark),
        SheetCell(slowdown_text(each.slowdown)),
        SheetCell(interval_text(each.slowdown.interval)),
        SheetCell(format_time(each.seconds)),
        SheetCell("; ".join(map(sized, each.others))),
    )


def sustained_findings(members: Sequence[SustainedMember], subject: Subject) -> Iterator[Finding]:
    """One finding for each collective that others slow down, and for each copy and product that a
    collective slows down, from the set that slows it most."""
    slowed = [each for each in members if each.is_slowed]
    slowed.sort(key=lambda each: -each.slowdown.median)
    first: dict[str, SustainedMember] = {}
    for each in slowed:
        first.setdefault(sized(each.transfer), each)
    yield from practical(_finding(each, subject) for each in first.values())


def _finding(each: SustainedMember, subject: Subject) -> Finding:
    span = each.slowdown.interval
    of_collective = each.transfer.path.is_among_several
    name = each.transfer.collective if of_collective else each.transfer.path.executor
    what = f"{name} of {size_text(each.transfer.bytes)}" if of_collective else sized(each.transfer)
    return Finding(
        id="slowed-collective" if of_collective else "slowed-beside-collective",
        severity="info",
        statement=f"{what} takes "
        f"{slowdown_text(each.slowdown)} the time ({interval_text(span)}) beside "
        f"{'; '.join(map(sized, each.others))}",
        effect=each.slowdown.median - 1,
        interval=Interval(span.low - 1, span.high - 1) if span else None,
        devices=subject.gpus(each.transfer.path.source.place.each),
        exhibits=(Exhibit(each.point.text, f"slowdown of {name}", each.slowdown.median,
                          "ratio", span),),
        remedy=_remedy(each),
    )  # fmt: skip


def _remedy(each: SustainedMember) -> str:
    if not each.transfer.path.is_among_several:
        return "count on this time where both overlap, or start one after the other"
    if any(other.path.source.place != other.path.destination.place for other in each.others):
        return (
            f"waywiser advise --beside {each.transfer.collective} names the copy that slows it "
            "least"
        )
    return ""


def sized(transfer: Transfer) -> str:
    """The transfer in few words: ``allreduce gpu:0-1 of 256 MiB``, ``matrix-product gpu:0 of 64
    MiB``, of a copy all of it."""
    source, destination = transfer.path.places
    what = with_units(transfer.way)
    if source == destination:
        name = transfer.collective or transfer.path.executor
        more = {k: v for k, v in transfer.parameters.items() if k != COLLECTIVE}
        what = with_units(f"{name}{format_settings(more)} {source}")
    return f"{what} of {size_text(transfer.bytes)}"


def slowdown_text(slowdown: Slowdown) -> str:
    """``×1.02``, ``×88``."""
    return f"×{_factor(slowdown.median)}"


def interval_text(span: Interval | None) -> str:
    """``1.01–1.03``; empty if there is none."""
    if span is None:
        return ""
    return f"{_factor(span.low)}–{_factor(span.high)}"


def _factor(value: float) -> str:
    return f"{value:.3g}" if value >= 10 else f"{value:.2f}"
