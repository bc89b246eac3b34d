"""Makes decision tables and policies from the series of profiles.

At each measured size the methods are compared by their times from call to completion; the rule is
`waywiser.stats.method_choice`. A method that was not measured at a size has a time between those of
its neighbours; its interval covers the line and the power law through them, if they are near.
The same rule decides between two measured sizes with different methods, at each doubling of the
smaller one. The boundary is where the curves of the methods on both sides cross.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import msgspec

from waywiser.analysis.policy.candidates import (
    Candidate,
    Candidates,
    MeasuredTime,
    candidates,
    needs_idle_peers,
)
from waywiser.analysis.policy.costs import CostsOfMethods, is_plain, simplicity
from waywiser.analysis.policy.decision_table import (
    CopyKind,
    DecisionTable,
    Method,
    MethodTime,
    SizeDecision,
    Why,
)
from waywiser.analysis.policy.errors import PolicyError
from waywiser.analysis.policy.table import (
    Fingerprint,
    MethodCosts,
    NextBest,
    Policy,
    PolicyClass,
    PolicyRow,
    collectives_of,
)
from waywiser.analysis.policy.texts import costly_text, is_by_multiprocessors
from waywiser.curves import Subject, amount, size_span, survey_again
from waywiser.machine import DECLARED, UNKNOWN_CPU, Machine, require_real
from waywiser.stats import Interval, Timed
from waywiser.stats.method_choice import UNKNOWN, choices, good
from waywiser.version import __version__
from waywiser.words import MOST_INDEX, Transfer, grouped, whole_number

NEAR = 4
"""The largest ratio of two sizes between which the line and the power law hold a time between
them. Over a wider gap the line is used, with the uncertainty `UNKNOWN`."""

_THREADS = "threads"
"""The parameter of executors that takes the number of copying threads."""

FEWEST_PIECES = (2, 4, 8, 16, 32, 64, 256, 1024, 4096)
"""The smallest counts of pieces of the ranges that have decisions of their own. A method with a
high cost of each call stops being the fastest at few pieces: ranges are shorter there."""

MOST_BEYOND = 16
"""The largest ratio of a size and the largest measured one to which a time is extrapolated."""


class _Time(NamedTuple):
    """A time as it is shown, and as methods are compared by."""

    shown: MethodTime
    timed: Timed


class _Option(NamedTuple):
    """A method of a table with its times over the sizes of the table."""

    method: Method
    transfer: Transfer
    times: Mapping[int, _Time]
    is_plain: bool
    key: tuple[float | bool | str, ...]

    @property
    def threads(self) -> int:
        """The number of CPUs that it needs."""
        return max(1, *(time.shown.costs.threads for time in self.times.values()))


def decision_tables(
    subjects: Sequence[Subject],
    places: str = "",
    size: int = 0,
    count: int = 0,
    *,
    kind: CopyKind | None = None,
    of_tools: bool = False,
) -> tuple[DecisionTable, ...]:
    """The tables of all kinds of copies that were measured, of one machine or of several surveys
    of it; of one ``kind``, with and without the links of other GPUs, if it is given. Raises
    `PolicyError` if the profiles are of different machines. Surveys during which other programs
    used the machine count only if all are such.

    A table is of the pair of places that was measured most, and of its equivalents; of ``places``
    (``numa:1 -> gpu:0``) and its equivalents if these were measured. If ``size`` is larger than
    all that were measured for a copy, but not too large to be estimated, its table has it too.
    With ``count``, lists have one table: that of lists of so many pieces. With ``of_tools`` the
    methods of other tools count in imported profiles; no policy can have these.
    """
    _require_one_machine(subjects)
    idle = [each for each in subjects if not _load(each)]
    skipped = [_load(each) for each in subjects if idle and each not in idle]
    subjects = idle or subjects
    tables: list[DecisionTable] = []
    former: dict[CopyKind, int] = {}
    known: dict[int, CostsOfMethods] = {}
    for found in candidates(subjects, places, kind=kind, of_tools=of_tools):
        # With as many CPUs as a survey had, its times count, and not those of one with more.
        least = former.get(found.kind, 0) + 1
        former[found.kind] = found.threads
        if (costs := known.get(found.threads)) is None:
            costs = known[found.threads] = CostsOfMethods(found.machine, subjects)
        loads = (f"{load}: it is not used" for load in skipped)
        found = found._replace(notes=(*loads, *found.notes))
        made = _TableMaker(found, least, costs).tables(size, count)
        made = (_with_hidden(each, subjects) for each in made)
        tables += made if idle else (_undecided(each, subjects) for each in made)
    return tuple(tables)


def _load(subject: Subject) -> str:
    """``node.wwp was surveyed under load: other programs used 1.7 of 2 CPUs``; empty if it was not,
    or if that is not known."""
    load = subject.overview.load
    if load is None or not load.is_loaded:
        return ""
    return f"{_file(subject)} was surveyed under load: {load.text}"


def _undecided(table: DecisionTable, subjects: Sequence[Subject]) -> DecisionTable:
    """A table of surveys under load: it decides nothing if CPUs copy by some method."""
    if not any(DECLARED.executor(each.executor).uses_cpus for each in table.methods):
        return table
    remedy = subjects[0].surveyed(f": on the idle machine, {_deciding(table)} decides")
    reason = f"not decided, since {' and '.join(map(_load, subjects))}{remedy}"
    return msgspec.structs.replace(table, undecided=reason)


def _deciding(table: DecisionTable) -> str:
    """The command that measures the methods of a table again."""
    kind, (source, destination) = table.kind, table.paths[0].split(" -> ")
    return survey_again(f"{kind.source}@{source} -> {kind.destination}@{destination}*")


def _with_hidden(table: DecisionTable, subjects: Sequence[Subject]) -> DecisionTable:
    """A table that says at which sizes noise alone keeps the simpler method."""
    hidden = [(each, n) for each in table.decisions if (n := each.hidden) is not None]
    if not hidden:
        return table
    worst, other = max(hidden, key=lambda found: -(found[0].margin(found[1]) or 0.0))
    rival = worst.times[other]
    assert rival is not None
    width = max(worst.time.relative_width, rival.relative_width)
    sizes = size_span(hidden[0][0].bytes, hidden[-1][0].bytes)
    pieces = f" in lists of {table.count} pieces and more" if table.count > 1 else ""
    taken = worst.time.seconds / rival.seconds - 1
    text = (
        f"{sizes}{pieces}: {costly_text(table.methods[worst.chosen], worst.time.costs)} took up to "
        f"{amount(taken)} longer than {costly_text(table.methods[other], rival.costs)}, and the "
        f"noise is ±{amount(width)}"
    )
    remedy = subjects[0].surveyed(f"{_deciding(table)} decides")
    return msgspec.structs.replace(table, hidden=text, remedy=remedy)


def no_methods(subjects: Sequence[Subject], where: str) -> PolicyError:
    """The error if no profile has a method that policies can have."""
    if all(each.machine.ranks for each in subjects):
        return PolicyError(
            "messages between ranks were measured, which the transfer library does not send",
            where=where,
            remedy="waywiser predict --crossovers, or waywiser advise with a path, shows which is "
            "faster",
        )
    return PolicyError(
        "no method of the transfer library was measured",
        where=where,
        remedy=subjects[0].surveyed("measure paths: waywiser survey --preset standard"),
    )


def build_policy(subjects: Sequence[Subject]) -> Policy:
    """The policy of the machine that was measured. Raises `PolicyError` if the profiles are of
    different machines, or if nothing that the library does was measured."""
    tables = decision_tables(subjects)
    if not tables:
        raise no_methods(subjects, _file(subjects[0]))
    return policy_of(tables, subjects)


def policy_of(tables: Sequence[DecisionTable], subjects: Sequence[Subject]) -> Policy:
    """The tables as a policy. Raises `SimulatedMachineError` for a simulated machine."""
    for subject in subjects:
        require_real(subject.machine, _file(subject))
    rows: dict[CopyKind, list[PolicyRow]] = {}
    for table in tables:
        if why_not_written(table):
            continue
        for threads, each in _by_cpus(table):
            rows.setdefault(table.kind, []).extend(_rows(each, threads))
    classes = (
        PolicyClass(
            kind.source,
            kind.destination,
            kind.relation,
            kind.peers_idle,
            _sorted(rows.get(kind, ())),
            _sorted(rows.get(msgspec.structs.replace(kind, host_contiguous=True), ())),
        )
        for kind in dict.fromkeys(kind.of_class for kind in rows)
    )
    return Policy(
        machine=fingerprint(subjects[0].machine),
        classes=tuple(classes),
        measured=max((subject.overview.created[:10] for subject in subjects), default=""),
        program=__version__,
    )


def _sorted(rows: Iterable[PolicyRow]) -> tuple[PolicyRow, ...]:
    return tuple(sorted(rows, key=lambda row: (row.count, row.threads, row.from_bytes)))


def why_not_written(table: DecisionTable) -> str:
    """The reason why a policy has no rows of a table: nothing shows that its method is better than
    the default of the library. Empty if it has rows."""
    if table.undecided:
        return table.undecided
    executors = sorted({each.executor for each in table.methods})
    if len(table.methods) == 1 and table.not_measured:
        return f"only {executors[0]} was measured, and not {' or '.join(table.not_measured)}"
    takes = all(_THREADS in DECLARED.executor(name).library.settings for name in executors)
    times = (each for decision in table.decisions for each in decision.times if each is not None)
    numbers = {each.settings.get(_THREADS, "") for each in times}
    if takes and len(executors) == len(numbers) == 1:
        return f"{executors[0]} was measured with one number of threads alone"
    return ""


def fingerprint(machine: Machine) -> Fingerprint:
    """The machine of a policy, as the library finds it where it runs."""
    gpu = machine.gpus[0] if machine.gpus else None
    link = gpu.pcie if gpu is not None else None
    major = machine.driver.partition(".")[0]
    return Fingerprint(
        gpu=gpu.name if gpu is not None else "",
        gpu_link=f"PCIe {link.generation_max} x{link.width_max}"
        if link is not None and link.generation_max
        else "",
        cpu="" if machine.cpu_model == UNKNOWN_CPU else machine.cpu_model,
        driver=whole_number(major, MOST_INDEX) or 0,
        hypervisor=machine.virtual or "none",
    )


def _file(subject: Subject) -> str:
    return subject.overview.profile or subject.name


def _require_one_machine(subjects: Sequence[Subject]) -> None:
    first, *others = (fingerprint(subject.machine) for subject in subjects)
    for other, subject in zip(others, subjects[1:], strict=True):
        if names := first.differences(other):
            raise PolicyError(
                f"is of another machine than {_file(subjects[0])}, by {' and '.join(names)}",
                where=_file(subject),
                remedy="give profiles of one machine, or compare with --compare",
            )


class _TableMaker:
    """Makes the tables of one kind of copy that was measured with one number of threads."""

    def __init__(self, found: Candidates, least: int, costs: CostsOfMethods) -> None:
        """``least`` is the number of CPUs from which the survey counts."""
        self._found = found
        self._least = least
        self._costs = costs
        usual = [each for each in found.candidates if not needs_idle_peers(each.method)]
        self._idle = [each for each in found.candidates if needs_idle_peers(each.method)]
        self._lists = [each for each in usual if each.piece]
        self._alone = [each for each in usual if not each.piece]
        self._single = [
            each
            for each in self._alone
            if DECLARED.executor(each.method.executor).library.contiguous or found.of_tools
        ]

    def tables(self, size: int, pieces: int) -> Iterator[DecisionTable]:
        """As `decision_tables`."""
        kind = self._found.kind
        if self._single and not kind.host_contiguous:
            yield self._with_fewer_cpus(kind, self._options(self._single, size))
        lists = list(self._options_of_lists(pieces))
        needed = max((each.threads for _, options in lists for each in options), default=1)
        for count, options in lists:
            yield self._table(kind, count, options, max(needed, self._least))
        if self._idle and not kind.host_contiguous:
            kind = msgspec.structs.replace(kind, peers_idle=True)
            yield self._with_fewer_cpus(kind, self._options([*self._single, *self._idle], size))

    def _with_fewer_cpus(self, kind: CopyKind, options: Sequence[_Option]) -> DecisionTable:
        """The table of contiguous copies, with those of fewer CPUs."""
        usable: dict[int, list[_Option]] = {}
        for needed in sorted({option.threads for option in options}):
            able = [each for each in options if each.threads <= needed]
            usable[max(needed, self._least)] = able
        *fewer, table = (self._table(kind, 1, able, cpus) for cpus, able in usable.items())
        known = tuple(each for each in fewer if _is_known(each, table))
        return msgspec.structs.replace(table, fewer_cpus=known)

    def _table(
        self, kind: CopyKind, count: int, options: Sequence[_Option], threads: int
    ) -> DecisionTable:
        options = sorted(options, key=lambda option: option.key)
        sizes, chosen = _decided(options, is_list=count > 1)
        known = [[option.times.get(size) for size in sizes] for option in options]
        times = [[each.shown if each else None for each in row] for row in known]
        decisions = []
        for n, (size, method) in enumerate(zip(sizes, chosen, strict=True)):
            start = 1 if n == 0 and count > 1 else _start(n, sizes, chosen, times)
            why = _why([time.timed if (time := row[n]) else None for row in known], method)
            at = tuple(row[n] for row in times)
            decisions.append(SizeDecision(size, start, method, at, why))
        measured = {each.method.executor for each in options}
        return DecisionTable(
            kind=kind,
            threads=threads,
            count=count,
            methods=tuple(option.method for option in options),
            plain=next((n for n, each in enumerate(options) if each.is_plain), None),
            decisions=tuple(decisions),
            paths=self._found.paths,
            notes=self._found.notes,
            not_measured=self._costs.others(options[0].transfer, measured),
        )

    def _options(self, found: Sequence[Candidate], beyond: int) -> list[_Option]:
        """Those of contiguous copies, at the measured sizes, between them, and at ``beyond`` if
        that is larger."""
        sizes = sorted({size for each in found for size in each.times})
        sizes += [
            low * 2**doublings
            for low, high in pairwise(sizes)
            for doublings in range(1, (high - 1).bit_length())
            if low * 2**doublings < high
        ]
        sizes += [beyond] if beyond > max(sizes) else []
        options = []
        for each in found:
            times = {size: time for size in sizes if (time := self._at(each, size)) is not None}
            options.append(self._option(each, times))
        return options

    def _options_of_lists(self, pieces: int) -> Iterator[tuple[int, list[_Option]]]:
        """The options of lists for each range of counts: (the smallest count, options over pieces).

        Times of a piece size are of its measured count nearest to the middle of the range; without
        one in the range, they are estimated for the middle. Copies of one piece help to estimate
        short lists. With ``pieces`` there is one range, and all times are of lists of so many.
        """
        lists = self._lists if pieces > 1 else _compared_lists(self._lists)
        counts: dict[int, set[int]] = {}
        for each in lists:
            counts.setdefault(each.piece, set()).update(size // each.piece for size in each.times)
        alone = [_alone(each, self._alone) for each in lists]
        known_to = max((count for several in counts.values() for count in several), default=0)
        starts = [pieces] if pieces > 1 else [n for n in FEWEST_PIECES if n <= max(known_to, 2)]
        ends = [*starts[1:], pieces + 1 if pieces > 1 else 4 * starts[-1]]
        for low, high in zip(starts, ends, strict=True) if counts else ():
            middle = round(math.sqrt(low * (high - 1)))
            by_method: dict[Method, dict[int, _Time]] = {}
            first: dict[Method, Candidate] = {}
            for each, one in zip(lists, alone, strict=True):
                within = [n for n in counts[each.piece] if low <= n < high]
                count = min(within, key=lambda n: abs(math.log(n / middle)), default=middle)
                if time := self._at(each, count * each.piece, one):
                    by_method.setdefault(each.method, {})[each.piece] = time
                    first[each.method] = each
            if by_method:
                yield low, [self._option(first[m], times) for m, times in by_method.items()]

    def _option(self, candidate: Candidate, times: Mapping[int, _Time]) -> _Option:
        largest = candidate.times[max(candidate.times)].transfer
        method = candidate.method
        if needs_idle_peers(method):
            method = self._costs.method(largest)
        plain = is_plain(method, *(place.kind for place in largest.path.places))
        key = simplicity(self._costs.of(largest, self._found.kind), method, plain)
        return _Option(method, largest, times, plain, key)

    def _at(
        self, candidate: Candidate, size: int, alone: MeasuredTime | None = None
    ) -> _Time | None:
        """The time at a size: measured, between its neighbours, or a little beyond the largest
        size. None below the smallest size of one copy. A list of fewer pieces has one: between the
        time of one piece ``alone`` and that of the smallest list that was measured, or without the
        first at least their share of the second, and at most all of it."""
        is_list = candidate.piece > 0
        known = candidate.times
        if is_list and alone is not None and alone.timed.seconds < known[min(known)].timed.seconds:
            known = {candidate.piece: alone, **known}
        if (own := known.get(size)) is not None:
            return _Time(self._shown(own, size), own.timed)
        found = _interpolated(known, size, is_list=is_list)
        if found is None:
            return None
        ends, line, span = found
        compared = (line, line) if is_list else span
        intervals = [interval for each in ends if (interval := each.timed.interval)]
        timed = Timed(line, _covering(compared, intervals, ends))
        low, high = msgspec.structs.astuple(_covering(span, [each.interval for each in ends], ends))
        own = next(each for each in ends if each is not alone)
        shown = msgspec.structs.replace(
            self._shown(own, size), seconds=line, low=low, high=high,
            interpolated=True, series=own.transfer.way,
        )  # fmt: skip
        return _Time(shown, timed)

    def _shown(self, known: MeasuredTime, size: int) -> MethodTime:
        """A measured time with the costs and settings of the method at a size."""
        transfer = msgspec.structs.replace(known.transfer, bytes=size)
        layout = transfer.layout
        return MethodTime(
            seconds=known.timed.seconds,
            low=known.interval.low,
            high=known.interval.high,
            costs=self._costs.of(transfer, self._found.kind),
            series=known.series,
            pieces=size // layout.run if layout is not None else 1,
            processes=known.processes,
            settings=self._costs.settings(transfer),
        )


def _compared_lists(lists: list[Candidate]) -> list[Candidate]:
    """Those of sizes of pieces that several executors moved, or all if there are none. A size that
    one executor alone moved decides nothing beside these."""
    executors = grouped((each.piece, each.method.executor) for each in lists)
    several = {piece for piece, names in executors.items() if len(set(names)) > 1}
    return [each for each in lists if not several or each.piece in several]


def _is_known(fewer: DecisionTable, table: DecisionTable) -> bool:
    """Whether the best method with fewer CPUs was measured: it is that with all CPUs, or by the
    same executor. Otherwise an executor that is faster with all CPUs may be so with fewer too, and
    the library's defaults use as many as there are."""
    for decision in table.decisions:
        at = fewer.at(decision.bytes)
        if at is None:
            continue
        best, own = table.methods[decision.chosen], fewer.methods[at.chosen]
        if best not in fewer.methods and best.executor != own.executor:
            return False
    return True


def _decided(options: Sequence[_Option], *, is_list: bool) -> tuple[list[int], list[int]]:
    """The sizes of a table, and the position of the method of each. The sizes are the measured
    ones, of lists those whose times are estimates too, the largest one, and those between two of
    them at which the method changes."""
    sizes = sorted({size for option in options for size in option.times})
    timed = {
        size: [time.timed if (time := each.times.get(size)) else None for each in options]
        for size in sizes
    }
    measured = {
        size
        for each in options
        for size, time in each.times.items()
        if is_list or not time.shown.interpolated
    }
    ends = sorted(measured | {sizes[-1]})
    chosen = choices([[timed[size][n] for size in ends] for n in range(len(options))])
    decided = dict(zip(ends, chosen, strict=True))
    for low, high in pairwise(ends):
        if decided[low] != decided[high]:
            decided |= {size: good(timed[size])[0] for size in sizes if low < size < high}
    ordered = sorted(decided.items())
    around = [None, *(method for _, method in ordered), None]
    kept = [
        (size, method)
        for n, (size, method) in enumerate(ordered)
        if size in ends or not around[n] == method == around[n + 2]
    ]
    return [size for size, _ in kept], [method for _, method in kept]


def _why(times: Sequence[Timed | None], chosen: int) -> Why:
    known = [n for n, each in enumerate(times) if each is not None]
    if len(known) == 1:
        return "only"
    if chosen != good(times)[0]:
        return "shorter"
    fastest = min(known, key=lambda n: each.seconds if (each := times[n]) else math.inf)
    return "faster" if chosen == fastest else "simpler"


def _start(
    n: int,
    sizes: Sequence[int],
    chosen: Sequence[int],
    times: Sequence[Sequence[MethodTime | None]],
) -> int:
    """The smallest size of a decision: where its method's curve crosses that of the decision
    before. If one of the two is faster at both sizes, it is used between them too: the other one
    was chosen because it is simpler, by the noise of one size."""
    if n == 0:
        return sizes[0]
    low, high = sizes[n - 1], sizes[n]
    before, after = chosen[n - 1], chosen[n]
    ends = [(times[before][at], times[after][at]) for at in (n - 1, n)]
    gains = [math.log(a.seconds / b.seconds) for a, b in ends if a and b]
    if before == after:
        share = 0.5
    elif len(gains) == 2:
        share = -gains[0] / (gains[1] - gains[0]) if gains[0] < 0 < gains[1] else gains[1] <= 0
    else:
        share = 1.0 if ends[0][1] is None else 0.5
    start = math.ceil(math.exp(math.log(low) + share * math.log(high / low)))
    return min(max(start, low + 1), high)


def _alone(found: Candidate, single: Sequence[Candidate]) -> MeasuredTime | None:
    """The fastest copy of one piece of a list by the same executor, or by any if the executor moves
    lists alone; None if none was measured."""
    own = [each for each in single if each.method.executor == found.method.executor]
    known = (time for each in own or single if (time := each.times.get(found.piece)) is not None)
    return min(known, key=lambda time: time.timed.seconds, default=None)


def _interpolated(
    known: Mapping[int, MeasuredTime], size: int, *, is_list: bool
) -> tuple[list[MeasuredTime], float, tuple[float, float]] | None:
    """(the measured times beside a size, by the line through them, the least and the most); None
    for a size too far from them."""
    below = max((each for each in known if each < size), default=None)
    above = min((each for each in known if each > size), default=None)
    if below is None:
        return ([known[above]], *_fewer(known, size)) if above is not None and is_list else None
    if above is not None:
        ends = [known[below], known[above]]
        line, other = _between(known[below].timed, known[above].timed, below, size, above)
        if above > NEAR * below:
            return ends, line, (line / math.sqrt(1 + UNKNOWN), line * math.sqrt(1 + UNKNOWN))
        return ends, line, (min(line, other), max(line, other))
    if size > MOST_BEYOND * below:
        return None
    smaller = max((each for each in known if each < below), default=0)
    before = known[smaller].timed.seconds if smaller else 0.0
    line, other = _beyond(known[below].timed.seconds, before, smaller, below, size)
    return [known[below]], line, (min(line, other), max(line, other))


def _fewer(known: Mapping[int, MeasuredTime], size: int) -> tuple[float, tuple[float, float]]:
    """(by the line through the two smallest sizes, the least and the most) below the smallest."""
    smallest, *larger = sorted(known)
    most = known[smallest].timed.seconds
    least = most * size / smallest
    second = larger[0] if larger else 0
    slope = (known[second].timed.seconds - most) / (second - smallest) if larger else 0.0
    line = most - slope * (smallest - size)
    return min(max(line, least), most), (least, most)


def _between(one: Timed, other: Timed, below: int, size: int, above: int) -> tuple[float, float]:
    """(by the line, by the power law) through two sizes."""
    line = one.seconds + (other.seconds - one.seconds) * (size - below) / (above - below)
    share = math.log(size / below) / math.log(above / below)
    return line, one.seconds ** (1 - share) * other.seconds**share


def _beyond(
    last: float, before: float, smaller: int, largest: int, size: int
) -> tuple[float, float]:
    """(by the line through the last two sizes, in proportion to the bytes)."""
    slope = max(0.0, (last - before) / (largest - smaller))
    return last + slope * (size - largest), last * size / largest


def _covering(
    span: tuple[float, float], intervals: Sequence[Interval], ends: Sequence[MeasuredTime]
) -> Interval:
    """Covers the times from the first to the last, with the noise of the sizes beside."""
    sides = list(zip(intervals, ends, strict=True))
    above = max(each.high / end.timed.seconds for each, end in sides)
    below = min(each.low / end.timed.seconds for each, end in sides)
    return Interval(span[0] * below, span[1] * above)


def _by_cpus(table: DecisionTable) -> list[tuple[int, DecisionTable]]:
    """The tables of a policy with the number of CPUs from which they hold. Of those with equal
    choices, the one with the most methods."""
    found: list[tuple[int, DecisionTable]] = []
    for each in (*table.fewer_cpus, table):
        threads = each.threads
        if found and _chosen(found[-1][1]) == _chosen(each):
            threads, _ = found.pop()
        found.append((threads, each))
    return found


def _chosen(table: DecisionTable) -> list[tuple[int, Method]]:
    return [(each.from_bytes, table.methods[each.chosen]) for each in table.decisions]


def _rows(table: DecisionTable, threads: int) -> Iterator[PolicyRow]:
    for decision in table.decisions:
        time, method = decision.time, table.methods[decision.chosen]
        yield PolicyRow(
            from_bytes=decision.from_bytes,
            bytes=decision.bytes,
            count=table.count,
            threads=threads,
            executor=method.executor,
            settings=dict(sorted(time.settings.items())),
            seconds=_rounded(time.seconds),
            low=_rounded(time.low),
            high=_rounded(time.high),
            next=_next(table, decision),
            costs=_rounded_costs(time.costs),
            pieces=time.pieces,
        )


def _next(table: DecisionTable, decision: SizeDecision) -> NextBest | None:
    other = decision.next
    time = decision.times[other] if other is not None else None
    if other is None or time is None:
        return None
    executor, settings = table.methods[other].executor, dict(sorted(time.settings.items()))
    margin = time.seconds / decision.time.seconds - 1
    by = is_by_multiprocessors(table.methods[other], time.costs)
    return NextBest(executor, settings, _rounded(time.seconds), _rounded(margin), by)


def _rounded_costs(costs: MethodCosts) -> MethodCosts:
    slowdowns = {"small_copy": costs.small_copy, "matrix_product": costs.matrix_product}
    rounded = {name: _rounded(each) for name, each in slowdowns.items() if each is not None}
    collectives = {name: _rounded(each) for name, each in collectives_of(costs).items()}
    return msgspec.structs.replace(costs, **rounded, collectives=collectives or msgspec.UNSET)


def _rounded(value: float) -> float:
    """Rounds to five digits: noise is larger than what is cut off."""
    return float(f"{value:.5g}")
