"""Strategies for messages between GPUs of two nodes: the fastest, and where they cross."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations, groupby, product

from waywiser.model.crossover import Axis, FastestRange
from waywiser.model.falling_times import LongerTime
from waywiser.model.message_strategies import (
    ALL_CORES,
    DIRECT,
    EXTRA_MESSAGE,
    OWN_SHARES,
    THREE_STEP,
    MessageStrategies,
    MissingStrategy,
)
from waywiser.model.strategies import StrategyTime
from waywiser.model.strategy_table import StrategyFall, StrategyTable
from waywiser.model.texts import with_interval
from waywiser.render.parts import Block, Section, Sheet, SheetColumn, Words, numbers
from waywiser.render.views.strategy_texts import comparison_text, fastest_text, span_of
from waywiser.words import by_wording, count, format_bytes, format_time, plural

BASES = {"measured": "as measured", "modelled": "by the model"}
CROSSINGS = (
    "In parentheses: perhaps from where the other one is no longer surely faster, surely from "
    "where the intervals no longer overlap."
)
MEANING = {
    DIRECT: "each message from GPU to GPU by GPU-aware MPI",
    THREE_STEP: "a copy to the host, messages between hosts, a copy to the GPU",
    ALL_CORES: "as 3-step, but {processes} processes of the host share the bytes, and their memory",
    EXTRA_MESSAGE: "as all cores, but one process sends the others their shares",
    OWN_SHARES: "each of these processes copies its share, while the other GPUs do the same",
}
OF_KNOWN = {"measured": "of those measured at each size", "modelled": "of those modelled"}
MOST_CHANGES = 5
"""Stretches of sizes that the first sentence names."""
MOST_TIMES = 4
"""Sizes of the table of times, unless all are asked for."""


def _axes(table: StrategyTable) -> tuple[Axis, ...]:
    return ("messages", "bytes") if len(table.counts) > 1 else ("bytes",)


def strategy_parts(
    found: MessageStrategies, table: StrategyTable, *, everything: bool = False
) -> Iterator[Block | Section]:
    """The fastest strategies, their crossovers with the first one, their times."""
    yield Words(_headline(table), "lead")
    yield from (Words(text) for text in _notes(found, table))
    yield Section("", "The fastest strategy", (_fastest(table, found.replicate, everything),))
    names = list(dict.fromkeys(name for basis in table.bases for name in basis.strategies))
    pairs = list(combinations(names, 2))
    comparable = [pair for pair in pairs if _meet(table, pair)]
    shown = [pair for pair in comparable if everything or pair[0] == names[0]]
    if shown:
        yield Words(CROSSINGS)
    for first, second in shown:
        sheets = [_crossovers(table, (first, second), axis, everything) for axis in _axes(table)]
        yield Section("", f"{second} or {first}", tuple(each for each in sheets if each.rows))
    if more := len(comparable) - len(shown):
        yield Words(f"{count(more, 'more pair')} of strategies: --all shows all.")
    if apart := len(pairs) - len(comparable):
        yield Words(f"{count(apart, 'pair')} of strategies have no size in common.")
    yield Section("", "Times", (_times(table, names, everything),))


def _meet(table: StrategyTable, pair: tuple[str, str]) -> bool:
    """Whether both strategies are known at one number and size, on one basis."""
    for basis in table.bases:
        first, second = ({(t.count, t.bytes) for t in basis.times if t.name == n} for n in pair)
        if first & second:
            return True
    return False


def _headline(table: StrategyTable) -> str:
    basis = next((x for x in table.bases if len(x.strategies) > 1), table.bases[0])
    fastest = {each.count: each.ranges for each in basis.fastest}
    both = dict.fromkeys((table.counts[0], _most_known(table)))
    texts = [f"{count(n, table.unit)}: {_brief(fastest[n])}" for n in both]
    known = f"{OF_KNOWN[basis.basis]}, {len(basis.strategies)} in all"
    return f"{table.subject}, the fastest strategy {known}. {'. '.join(texts)}."


def _brief(ranges: Sequence[FastestRange]) -> str:
    """The fastest strategies, or how often they change if that is too often for a sentence."""
    changes = [name for name, _ in groupby(each.fastest for each in ranges)]
    if len(changes) <= MOST_CHANGES:
        return fastest_text(ranges, unknown=False)
    return f"it changes {len(changes) - 1} times with the size, as the table below shows"


def _most_known(table: StrategyTable) -> int:
    """The largest number at which every strategy is known on one basis, else the smallest."""
    names = {name for basis in table.bases for name in basis.strategies}
    known: dict[int, set[str]] = {}
    for basis in table.bases:
        for each in basis.times:
            known.setdefault(each.count, set()).add(each.name)
    return max((n for n in known if known[n] >= names), default=table.counts[0])


def _notes(found: MessageStrategies, table: StrategyTable) -> Iterator[str]:
    names = dict.fromkeys(name for basis in table.bases for name in basis.strategies)
    meanings = [f"{name}, {MEANING[name]}" for name in names if name in MEANING]
    if whole := [name for name in names if name not in MEANING]:
        meanings.append(f"{', '.join(whole)}, measured from end to end")
    yield f"Strategies: {'; '.join(meanings)}.".format(processes=found.processes)
    copies = f" Copies between a process and its GPU are {found.copies}." if found.copies else ""
    if found.extents:
        yield f"Known are: {'; '.join(found.extents)}.{copies}"
    reasons: dict[str, list[MissingStrategy]] = {}
    for each in found.missing:
        reasons.setdefault(each.reason, []).append(each)
    for reason, missing in reasons.items():
        how = {"modelled" if each.is_modelled else "measured" for each in missing}
        names_of = " and ".join(dict.fromkeys(each.name for each in missing))
        yield f"Not {' and not '.join(sorted(how))}: {names_of}, since {reason}."
    yield from (f"Note: {line}." for line, _ in by_wording(found.notes))
    for basis in table.bases:
        if any(not each.has_scatter for each in basis.times):
            yield (
                f"Note: some times {BASES[basis.basis]} rest on one {found.replicate}, which shows "
                f"no scatter between {found.replicate}s: nothing is said to be sure of them."
            )
    yield from (_fall(each, table.unit) for each in table.falls)
    if table.compared:
        yield _disagreement(table)


def _fall(found: StrategyFall, unit: str) -> str:
    longer = LongerTime(found.than_bytes, found.than_seconds)
    return (
        f"Note: {found.name}, {count(found.count, unit)}: "
        f"{longer.text(found.bytes, found.seconds)}."
    )


def _disagreement(table: StrategyTable) -> str:
    wrong = table.disagreements
    points = count(table.compared, "combination")
    text = f"At {points} of number and size that were measured "
    if not wrong:
        return f"{text}the model chooses the measured fastest at each."
    worst = max(wrong, key=lambda each: each.cost)
    within = sum(each.is_within_interval is True for each in wrong)
    return (
        f"{text}the model chooses another than the measured fastest at {len(wrong)}, of which "
        f"{within} within its intervals. The most that this costs is {worst.cost:.1%}: "
        f"{worst.predicted} instead of {worst.measured} for {count(worst.count, table.unit)} of "
        f"{format_bytes(worst.bytes)}."
    )


def _shown_counts(table: StrategyTable, everything: bool) -> list[int]:
    """Powers of two, the most at which all strategies are known, and the most."""
    own = (1, _most_known(table), table.counts[-1])
    return [n for n in table.counts if everything or n in own or n.bit_count() == 1]


def _fastest(table: StrategyTable, replicate: str, everything: bool) -> Sheet:
    shown = _shown_counts(table, everything)
    rows = {
        n: [fastest_text(basis.fastest[row].ranges) for basis in table.bases]
        for row, n in enumerate(table.counts)
        if n in shown
    }
    return Sheet.of(
        "The fastest strategy by size",
        (plural(table.unit), *_basis_columns()),
        _merged(rows, str),
        "Of the strategies that are known at a size. Surely: all are known, and the 95 % "
        f"intervals, for a single time of another {replicate}, do not overlap. Perhaps: they do.",
    )


def _crossovers(table: StrategyTable, pair: tuple[str, str], axis: Axis, everything: bool) -> Sheet:
    is_counts = axis == "messages"
    fixes: Sequence[int] = table.sizes if is_counts else _shown_counts(table, everything)
    values = table.counts if is_counts else table.sizes
    shown, name = (str, format_bytes) if is_counts else (format_bytes, str)
    rows = {}
    for fixed in fixes:
        cells = [each.comparison(*pair, axis, fixed) for each in table.bases]
        if any(cells):
            rows[fixed] = [comparison_text(c, shown) if c else "unknown" for c in cells]
    over = span_of(shown(values[0]), shown(values[-1]))
    title = (
        f"By the number of {plural(table.unit)}, {over}" if is_counts else f"By the size, {over}"
    )
    column = "bytes of each" if is_counts else plural(table.unit)
    return Sheet.of(title, (column, *_basis_columns()), _merged(rows, name))


def _basis_columns() -> tuple[SheetColumn, ...]:
    return tuple(SheetColumn(text, folds=True) for text in BASES.values())


def _merged(
    rows: Mapping[int, Sequence[str]], text: Callable[[int], str]
) -> Iterator[tuple[str, ...]]:
    """Neighbouring rows with the same cells as one."""
    for cells, group in groupby(rows, key=lambda value: tuple(rows[value])):
        own = list(group)
        yield span_of(text(own[0]), text(own[-1])), *cells


def _times(table: StrategyTable, names: Sequence[str], everything: bool) -> Sheet:
    sizes, counts = table.sizes, table.counts
    if not everything:
        sizes = sizes[:: max(1, -(-len(sizes) // MOST_TIMES))]
        counts = tuple(dict.fromkeys((counts[0], _most_known(table))))
    known = {
        (basis.basis, each.name, each.count, each.bytes): each
        for basis in table.bases
        for each in basis.times
    }
    rows = []
    for n, size, name in product(counts, sizes, names):
        cells = [known.get((basis.basis, name, n, size)) for basis in table.bases]
        if any(cells):
            rows.append((n, format_bytes(size), name, *map(_time, cells)))
    columns = (*numbers(plural(table.unit), "bytes of each"), "strategy", *numbers(*BASES.values()))
    caption = "In parentheses: 95 % intervals, for a single time."
    return Sheet.of("Times", columns, rows, caption)


def _time(time: StrategyTime | None) -> str:
    if time is None:
        return "unknown"
    return with_interval(format_time, time.seconds, time.interval)
