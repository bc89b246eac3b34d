"""A model of a machine: curves, what transfers share, and how well it predicts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from waywiser.curves import label_of
from waywiser.model.curve import CurveModel
from waywiser.model.held_out import Validation
from waywiser.model.machine_model import MachineModel
from waywiser.model.published import PublishedModel
from waywiser.model.rate import CountModel
from waywiser.model.texts import (
    bandwidth_text,
    first_of_classes,
    form_text,
    latency_text,
    not_identified,
    shared_capacities,
    with_interval,
)
from waywiser.render.parts import Block, Section, Sheet, SheetColumn, Words, numbers
from waywiser.words import by_wording, count, format_bytes, format_rate, format_time

MOST_ROWS = 16
"""Rows of a table, unless all are asked for."""

LEAST_GAP = 1e-9
"""Seconds: what is less is no gap that was measured."""


def curve_sheet(curves: Sequence[CurveModel]) -> Sheet:
    """The parameters of single transfers."""
    return Sheet.of(
        "Latency and bandwidth of single transfers",
        (
            SheetColumn("path", folds=True),
            SheetColumn("latency", number=True),
            SheetColumn("GB/s", number=True),
            SheetColumn("sizes", number=True),
            "predicted from",
            SheetColumn("deviation of held-out sizes", number=True, short="held-out sizes"),
        ),
        (
            (
                curve.text,
                latency_text(curve.latency),
                bandwidth_text(curve.inverse_rate),
                len(curve.sizes),
                form_text(curve),
                "—" if curve.error is None else f"{curve.error:.1%}",
            )
            for curve in curves
        ),
        "In parentheses: 95 % intervals. Held-out sizes: the median deviation of each size from "
        "what the others predict.",
    )


def capacity_sheet(model: MachineModel, *, everything: bool = False) -> Sheet:
    """What carries several transfers at once; ``everything``: also links that one transfer
    fills."""
    return Sheet.of(
        "What transfers share",
        (
            SheetColumn("resource", folds=True),
            SheetColumn("method", folds=True),
            SheetColumn("GB/s, 95 % interval", number=True, short="GB/s"),
            SheetColumn("shared by", folds=True),
            SheetColumn("sets that show it", number=True, short="sets"),
        ),
        [*_capacities(model, everything), *_queues(model)],
    )


def _capacities(model: MachineModel, everything: bool) -> Iterator[tuple[object, ...]]:
    for each in shared_capacities(model):
        own = each.capacity
        if everything or own.basis == "sets":
            sets = len(own.rests_on) if own.basis == "sets" else "one fills it"
            yield own.resource, own.method, each.rate, each.sharers, sets


def _queues(model: MachineModel) -> Iterator[tuple[object, ...]]:
    for queue in model.capacities.queues:
        gap = f"{format_time(queue.gap)} between transfers"
        one = "one transfer runs after another"
        yield f"queue {queue.way} each GPU", queue.method, gap, one, len(queue.rests_on)


def model_parts(
    model: MachineModel, *, everything: bool = False, imported: bool = False
) -> Iterator[Block | Section]:
    """Curves, capacities, messages, findings of a model."""
    yield from _head(model, imported)
    messages = {each.name for each in model.messages}
    alone = [each for each in model.curves if each.text not in messages]
    together = [each for each in model.curves if each.text in messages]
    yield from _curves("Single transfers", model, alone, everything)
    title = "Messages and copies of ranks, by pairs that take the same time"
    yield from _curves(title, model, together, True)
    if text := minimum_text(together):
        yield Section("", "Median and minimum of jobs", (Words(text),))
    if model.counts:
        notes = [Words(text) for each in model.counts if (text := skipped_text(each))]
        yield Section("", "Several messages at once", (_counts(model), *notes))
    if model.capacities.curves:
        title = "What transfers share, and how much it carries"
        yield Section("", title, (*_shared(model, everything, imported),))


def _head(model: MachineModel, imported: bool) -> Iterator[Block]:
    day = f"{'imported' if imported else 'measured'} on {model.surveyed[:10]}"
    if model.machine.simulated:
        day = f"simulated on {model.surveyed[:10]} {model.machine.simulated}"
    has = [f"{count(len(model.curves), 'curve')} of single transfers"]
    if model.capacities.curves:
        by_sets = sum(each.basis == "sets" for each in model.capacities.capacities)
        what = "capacity" if by_sets == 1 else "capacities"
        has.append(f"{by_sets} {what} from sets of transfers")
    name = model.machine.hostname or "an unknown machine"
    yield Words(f"Model of {name}, {day}: {', '.join(has)}.", "lead")


def _curves(
    title: str, model: MachineModel, curves: Sequence[CurveModel], everything: bool
) -> Iterator[Section]:
    """A row for each curve that has parameters, or for all; then why others have none."""
    if not curves:
        return
    blocks: list[Block] = []
    identified = [each for each in curves if each.latency.value or each.inverse_rate.value]
    shown = list(curves)
    if not everything:
        shown = first_of_classes(identified, model.machine)[:MOST_ROWS]
    if shown:
        blocks.append(curve_sheet(shown))
    if (more := len(identified) - len(shown)) > 0:
        text = f"and {more} more with parameters, most of equal paths; --all shows all."
        blocks.append(Words(text))
    yield Section("", title, (*blocks, *map(Words, not_identified(curves))))


def minimum_text(curves: Sequence[CurveModel]) -> str:
    """That times are the median of jobs and pairs, and where the minimum differs most; empty if
    there is nothing to differ."""
    rows = [
        (usual / least, usual, least, size, each.text)
        for each in curves
        for size, usual, least in zip(each.sizes, each.times, each.least, strict=False)
    ]
    if not rows or max(rows)[0] <= 1:
        return ""
    copies = [each for each in rows if "@gpu:" in each[4]]
    shown = [max(rows)]
    if copies:
        shown.append(max(each for each in copies if each[3] == min(x[3] for x in copies)))
    examples = "; ".join(
        f"{name} of {format_bytes(size)}: {format_time(usual)} against {format_time(least)}"
        for _, usual, least, size, name in dict.fromkeys(shown)
    )
    return (
        "These times are the median of jobs and pairs. --rule published takes their minimum, which "
        f"is less: {examples}."
    )


def skipped_text(counts: CountModel) -> str:
    """Which sizes of several messages are in no model, and why; empty if none is."""
    sizes = counts.skipped
    if not sizes:
        return ""
    return (
        f"{counts.key.name}: {count(len(sizes), 'size')} from "
        f"{format_bytes(sizes[0])} to {format_bytes(sizes[-1])} are skipped: they were measured "
        "without one message, or with fewer than three numbers of messages."
    )


def _counts(model: MachineModel) -> Sheet:
    rows = []
    for each in model.counts:
        gap = (
            format_time(each.start_gap.latency)
            if each.start_gap.latency > LEAST_GAP
            else "none seen"
        )
        limit = "not identified"
        if each.limit is not None:
            limit = with_interval(format_rate, each.limit.bytes_per_second, each.limit.interval)
        numbers_of = f"{each.counts[0]} to {each.counts[-1]}"
        rows.append((each.key.name, numbers_of, gap, limit, f"{each.typical:.1%}"))
    figures = ("messages", "each further one", "injection limit, GB/s", "held-out numbers")
    return Sheet.of("Several messages at once", ("memory and test", *numbers(*figures)), rows)


def _shared(model: MachineModel, everything: bool, imported: bool) -> Iterator[Block]:
    sheet = capacity_sheet(model, everything=everything)
    if sheet.rows:
        yield sheet
    else:
        measures = "" if imported else " survey --model measures such sets."
        yield Words(f"No capacity is known from sets of transfers.{measures}")
    filled = sum(each.basis != "sets" for each in model.capacities.capacities)
    if filled and not everything:
        yield Words(f"{count(filled, 'link')} that one transfer fills: --all shows them.")
    for group in model.capacities.groups:
        names = ", ".join(f"gpu:{index}" for index in group)
        yield Words(f"{names} may share a port to the host.")
    for finding in model.capacities.findings:
        yield Words(f"Finding: {finding}.")


def validation_parts(found: Validation, *, everything: bool = False) -> Iterator[Block]:
    """How well the model predicts what is held out."""
    if found.rows:
        figures = ("number", "median", "95 % within", "worst", "in the 95 % interval")
        yield Sheet.of(
            "Errors of predictions",
            ("held out", *numbers(*figures)),
            (
                (
                    each.what,
                    each.number,
                    f"{each.median:.1%}",
                    f"{each.p95:.1%}",
                    f"{each.worst:.1%}",
                    "—" if each.coverage is None else f"{each.coverage:.0%}",
                )
                for each in found.rows
            ),
            "Errors are of predicted over measured time, less 1. Every second size was held out, "
            "so that neighbours were twice as far apart as usual.",
        )
    for each in found.sets if everything else ():
        unknown = ", ".join(each.prediction.unknown)
        unknown = f", unknown: {unknown}" if unknown else ""
        yield Words(f"{each.error:+.1%}{unknown}: {label_of(each.timed.workload)}", indent=2)
    for line, _ in by_wording(found.notes):
        yield Words(f"Note: {line}.")


def published_parts(found: PublishedModel, warnings: Sequence[str]) -> Iterator[Block]:
    """The model of messages by the published rule."""
    yield Words(
        "The rule of Bienz, Olson, Gropp and Lockhart (HPEC 2021): least squares through the "
        "minimum of all pairs and jobs, without intervals."
    )
    yield from (Words(f"Warning: {warning}.") for warning in warnings)
    rows = []
    for each in found.lines:
        ends = dict.fromkeys((each.source, each.destination))
        falls = f"faster from {format_bytes(each.low)} to {format_bytes(each.high)}"
        rate = format_rate(1 / each.inverse_rate, 0.005) if each.inverse_rate > 0 else falls
        rows.append((
            " to ".join(ends),
            each.locality,
            each.protocol or "all sizes",
            f"{format_bytes(each.low)} to {format_bytes(each.high)}",
            f"{each.latency:.3e}",
            f"{each.inverse_rate:.3e}",
            rate,
        ))  # fmt: skip
    figures = numbers("sizes", "alpha, s", "beta, s/B", "GB/s")
    yield Sheet.of("Lines of messages", ("memory", "locality", "protocol", *figures), rows)
    for kind, slope in found.injection.items():
        limit = f"{format_rate(1 / slope, 0.005)} GB/s" if slope > 0 else "no limit"
        yield Words(f"Injection rate R_N of a node, {kind} memory: {slope:.3e} s/B, {limit}.")
