"""Tables of messages between ranks, as the pages about papers show them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import isnan, nan
from statistics import median

from rank_profiles import RankProfile, copies, half_modelled, held_out, median_times

from waywiser.model.curve import CurveModel, CurveTimes, fit_curves
from waywiser.model.curve_form import best_lines
from waywiser.model.messages import ACTIVE_PAIRS, SHARES, curve_of
from waywiser.model.strategies import Strategy, StrategyTimes
from waywiser.model.strategy_steps import GPU, HOST
from waywiser.words import format_bytes
from waywiser.words.number_format import format_rate, format_time, plural
from waywiser.words.sizes_in_text import with_units

MOST_SIZES = 8
"""Columns of a table."""
DIRECT, STAGED = "mpi", "mpi-staged"


def row(*cells: object) -> str:
    return f"| {' | '.join(map(str, cells))} |"


def head(*cells: str) -> Iterator[str]:
    yield row(*cells)
    yield f"|{'---|' * len(cells)}"


def listed(profile: RankProfile) -> str:
    machine = profile.machine
    return (
        f"`{profile.file}`: {len(machine.ranks)} ranks of {machine.messages} on "
        f"{len(machine.gpus)} × {profile.gpus}, {profile.name}"
    )


def costs_by_size(profile: RankProfile) -> Iterator[str]:
    """One message between memories of the host and of GPUs, by size."""
    curves = {"host memory": profile.curve(HOST, DIRECT), "GPU memory": profile.curve(GPU, DIRECT)}
    known = {name: median_times(curve) for name, curve in curves.items() if curve is not None}
    sizes = sorted({size for times in known.values() for size in times})
    if len(known) < 2:
        return
    yield from head("bytes", *known)
    for size in sizes[::2]:
        cells = [format_time(times[size]) if size in times else "—" for times in known.values()]
        yield row(format_bytes(size), *cells)


def lines_of(curves: Iterable[tuple[str, CurveTimes]]) -> Iterator[str]:
    """The postal model of each range of sizes, with the deviation that it has there."""
    yield from head(
        "messages or copies", "sizes", "alpha, s", "beta, s/B", "deviation: median", "largest"
    )
    for name, curve in curves:
        times = median_times(curve)
        for line in best_lines(list(times), list(times.values())):
            off = [abs((line.latency + line.inverse_rate * size) / seconds - 1)
                   for size, seconds in times.items() if line.low <= size <= line.high]  # fmt: skip
            yield row(name, f"{format_bytes(line.low)} to {format_bytes(line.high)}",
                      f"{line.latency:.2e}", f"{line.inverse_rate:.2e}", f"{median(off):.1%}",
                      f"{max(off):.0%}")  # fmt: skip


def message_curves(profile: RankProfile) -> Iterator[tuple[str, CurveTimes]]:
    """One message, by memory; curves long enough for lines."""
    for kind in (HOST, GPU):
        curve = profile.curve(kind, DIRECT)
        if curve is not None and len(curve.blocks.bytes) >= 8:
            yield f"{kind} memory, {profile.name if kind == GPU else 'one node'}", curve


def copies_table() -> Iterator[str]:
    """The postal model of copies between the host and a GPU."""
    yield from lines_of(copies())


def injection(profile: RankProfile) -> Iterator[str]:
    """The injection limits of pairs of ranks."""
    for model in profile.counts:
        if model.key.test in (ACTIVE_PAIRS, SHARES):
            limit = model.limit
            shown = f"{1 / limit.bytes_per_second:.2e} s/B" if limit else "none is seen"
            yield row(model.key.name, f"1 to {model.counts[-1]}", shown)


def one_message(profile: RankProfile) -> Iterator[str]:
    """Both methods, measured and, at sizes that were held out, modelled; the sum of the steps of
    the second; their crossover."""
    pairs = [(name, profile.curve(GPU, name)) for name in (DIRECT, STAGED)]
    curves = {name: curve for name, curve in pairs if curve is not None}
    if len(curves) < 2:
        return
    known = {name: held_out(curve) for name, curve in curves.items()}
    steps = _steps(profile)
    names = [f"`{n}`, {how}" for n in known for how in ("measured", "held out, modelled")]
    yield from head("bytes", *names, *(["sum of the steps"] if steps else []))
    sizes = sorted(set.intersection(*(set(each.measured) for each in known.values())))
    for size in sizes:
        cells: list[str] = []
        for each in known.values():
            cells.append(format_time(each.measured[size]))
            modelled = each.modelled.get(size)
            cells.append(format_time(modelled) if modelled else "—")
        if steps:
            total = sum(time.seconds if (time := step.predict(size)) else nan for step in steps)
            cells.append("—" if isnan(total) else format_time(total))
        yield row(format_bytes(size), *cells)
    errors = [error for each in known.values() for error in each.errors]
    yield ""
    yield (
        f"Every second size of a curve was held out: the median error of {len(errors)} sizes is "
        f"{median(errors):.1%}. {_crossing(curves, sizes)}"
    )


def _steps(profile: RankProfile) -> list[CurveModel]:
    """A copy to the host, a message between hosts, a copy to the GPU; none if the messages were not
    measured."""
    message = profile.curve(HOST, DIRECT)
    return fit_curves([message, *(curve for _, curve in copies())]) if message is not None else []


def _crossing(curves: dict[str, CurveTimes], sizes: Sequence[int]) -> str:
    """Says from which size on a curve is faster, as measured and by models of half of the sizes."""
    measured = {name: median_times(curve) for name, curve in curves.items()}
    modelled = StrategyTimes([half_modelled(name, curve) for name, curve in curves.items()])
    of_model = {
        name: {s: t.seconds for s in sizes if (t := modelled.of(name, 1, s))} for name in curves
    }
    own, theirs = _switches(measured, sizes), _switches(of_model, sizes)
    if own == theirs == []:
        winner = min(curves, key=lambda name: measured[name][sizes[0]])
        return f"`{winner}` is faster at every size, as measured and by the models."
    texts = [", ".join(map(format_bytes, each)) or "no size" for each in (own, theirs)]
    return f"They cross at {texts[0]} as measured, and at {texts[1]} by the models."


def _switches(times: dict[str, dict[int, float]], sizes: Sequence[int]) -> list[int]:
    """The first sizes at which another one is faster than at the size before."""
    one, other = times.values()
    known = [size for size in sizes if size in one and size in other]
    faster = [one[size] < other[size] for size in known]
    return [known[n] for n in range(1, len(known)) if faster[n] != faster[n - 1]]


def several(profile: RankProfile, unit: str) -> Iterator[str]:
    """All strategies by number and size; measured, and modelled in parentheses."""
    for found in profile.of_unit(unit):
        if unit != "rank" and len(found.counts) < 2:
            continue
        yield f"{found.subject}:"
        yield ""
        yield from _strategies(found.counts, found.sizes, found.measured, found.modelled, unit)
        yield ""


def _strategies(
    counts: Sequence[int],
    sizes: Sequence[int],
    measured: Sequence[Strategy],
    modelled: Sequence[Strategy],
    unit: str,
) -> Iterator[str]:
    own, models = StrategyTimes(measured), StrategyTimes(modelled)
    yield from head(plural(unit), "bytes of each", *(f"`{name}`" for name in own.names), "fastest")
    for number in counts:
        for size in sizes:
            cells, known = [], {}
            for name in own.names:
                time, model = own.of(name, number, size), models.of(name, number, size)
                text = f"({format_time(model.seconds)})" if model else "—"
                cells.append(format_time(time.seconds) if time and time.is_measured else text)
                best = time if time and time.is_measured else model
                if best:
                    known[name] = best.seconds
            fastest = min(known, key=lambda name: known[name]) if known else "—"
            yield row(number, format_bytes(size), *cells, fastest)


def by_memory(profile: RankProfile) -> Iterator[str]:
    """Methods between memories of the host and of GPUs: GB/s at each size."""
    curves: dict[tuple[str, str], dict[int, float]] = {}
    for each in profile.classes:
        if not each.test and "test=" not in each.method:
            ends = f"{each.source} to {each.destination}"
            curves[ends, each.method] = median_times(curve_of(each, profile.messages))
    sizes = sorted({size for times in curves.values() for size in times if size >= 2**16})
    shown = sizes[:: -(-len(sizes) // MOST_SIZES)]
    yield from head("memory", "method", *map(format_bytes, shown))
    for (ends, method), times in sorted(curves.items()):
        cells = [format_rate(size / times[size]) if size in times else "—" for size in shown]
        yield row(ends, f"`{with_units(method)}`", *cells)
