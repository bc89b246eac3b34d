"""The strategies for messages between GPUs of ranks that a survey has measured, as measured and as
modelled.

Each method, an executor with its settings, is measured from end to end. What is compared with one
another is

- messages of one sender, by their number and size;
- messages of one rank to several peers, one to each, by their number;
- messages between the processes of two GPUs, which share what is sent, by their number;
- messages between active pairs of ranks, one of each, by the number of pairs;
- exchanges among several ranks that send the same, by the number of ranks.

A method that stages one message whole is not measured for several. It is modelled: its copies,
which take what it takes longer than a message between hosts, of the bytes of all messages together;
and then the messages between hosts.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, NamedTuple

from waywiser.curves import size_span
from waywiser.machine import Machine, crowd_note, placements
from waywiser.machine.ranks import OF_TASK, TEST
from waywiser.model.count_table import CountKey
from waywiser.model.curve import CurveModel
from waywiser.model.errors import ModelError
from waywiser.model.message_strategies import MessageStrategies, MissingStrategy
from waywiser.model.messages import (
    ACTIVE_PAIRS,
    AMONG,
    ONE_SENDER,
    PEERS,
    SHARES,
    Locality,
    MessageClass,
    MessageTimes,
    ranks_among,
)
from waywiser.model.rate import CountModel
from waywiser.model.strategies import (
    StepCost,
    StepTime,
    Strategy,
    StrategyStep,
    added,
    of_counts,
    of_curve,
)
from waywiser.model.strategy_steps import GPU, HOST, MessageModels, StepTable, job_times
from waywiser.stats import Interval
from waywiser.words import plural, with_units
from waywiser.words.settings import parse_word

Subject = Literal["messages", "peers", "processes", "pairs", "exchanges"]
_SEVERAL: tuple[tuple[Subject, str, str, str], ...] = (
    ("peers", PEERS, "peer", "Messages from the GPU of a rank to peers, one to each"),
    ("processes", SHARES, "process", "Messages between the processes of two GPUs, one of each"),
    ("pairs", ACTIVE_PAIRS, "pair", "Messages between GPUs of pairs of ranks, one of each pair"),
)
"""What several messages are of, by the name of their test."""


class _Compared(NamedTuple):
    """Methods that do the same."""

    subject: Subject
    text: str
    unit: str
    test: str
    """The test of several messages; empty for exchanges."""
    locality: Locality
    methods: tuple[str, ...]


def survey_strategies(
    messages: Sequence[MessageTimes], models: MessageModels, machine: Machine
) -> list[MessageStrategies]:
    """The comparisons that have two strategies or more; ``messages`` are those of a survey."""
    own = [each for each in messages if (each.source, each.destination) == (GPU, GPU)]
    own = _between_gpus(own, machine)
    found = []
    for compared in _compared(own):
        maker = _Maker(own, messages, models, compared, machine)
        strategies = maker.strategies()
        if max(len(strategies.measured), len(strategies.modelled)) > 1:
            found.append(strategies)
    return found


def require_any(found: Sequence[MessageStrategies], where: str) -> None:
    """Raises `ModelError` if there is nothing to compare."""
    if not found:
        raise ModelError(
            "has no two strategies for messages between GPUs of ranks",
            where=where,
            remedy="measure them: waywiser survey --ranks 2 --only 'between-ranks' on a machine "
            "with a GPU",
        )


def _between_gpus(messages: Sequence[MessageTimes], machine: Machine) -> list[MessageTimes]:
    """Returns the messages of ranks with different GPUs, if there are any: two ranks of one GPU are
    another path. If ranks have several placements, they are of the first."""
    first = placements(machine.ranks)[0]
    gpus = {rank.index: rank.gpu for rank in first}
    messages = [each for each in messages if set(each.ranks) <= gpus.keys()]
    apart = [
        each
        for each in messages
        if gpus[each.ranks[0]] != gpus[each.ranks[1]] or each.test in (PEERS, SHARES)
    ]
    return apart or list(messages)


def _compared(messages: Sequence[MessageTimes]) -> Iterator[_Compared]:
    localities = sorted({each.locality for each in messages}, reverse=True)
    for locality in localities:
        own = [each for each in messages if each.locality == locality]
        one = [x.method for x in own if not x.test and TEST not in parse_word(x.method, "")[1]]
        text = f"Messages from the GPU of a rank to that of another, {locality}"
        yield _Compared("messages", text, "message", ONE_SENDER, locality, _once(one))
        for subject, test, unit, text in _SEVERAL:
            of_test = {each.method for each in own if each.test == test} & set(one)
            if of_test:
                where = f"{text}, {locality}"
                yield _Compared(subject, where, unit, test, locality, _once(of_test))
        for sent, methods in _exchanges(own).items():
            text = f"Exchanges{sent} among ranks, all that one GPU sends, {locality}"
            yield _Compared("exchanges", text, "rank", "", locality, _once(methods))


def _exchanges(messages: Iterable[MessageTimes]) -> dict[str, list[str]]:
    """Methods of exchanges by what is sent."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for each in messages:
        if each.test.startswith(AMONG):
            _, settings = parse_word(each.method, "a method")
            sent = [f"{k}={v}" for k, v in sorted(settings.items()) if k in OF_TASK]
            found[f" ({', '.join(sent)})" if sent else ""].append(each.method)
    return dict(found)


def _once(methods: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(set(methods)))


class _Maker:
    """Makes the strategies of one comparison."""

    def __init__(
        self,
        own: Sequence[MessageTimes],
        messages: Sequence[MessageTimes],
        models: MessageModels,
        compared: _Compared,
        machine: Machine,
    ) -> None:
        self._models = models
        self._compared = compared
        self._of_method: defaultdict[str, list[MessageTimes]] = defaultdict(list)
        for each in own:
            if each.locality == compared.locality and self._is_of(each):
                self._of_method[each.method].append(each)
        of_hosts = [x for x in messages if (x.source, x.destination) == (HOST, HOST)]
        self._host_methods = {x.method for x in of_hosts if x.locality == compared.locality}
        here = [each for each in own if each.locality == compared.locality]
        alone = {each.ranks for each in here if not each.test}
        several = {each.ranks for each in here if each.test == compared.test}
        self._pair = min(several & alone or alone or several, default=(-1, -1))
        crowded = crowd_note(machine.ranks)
        self.notes: list[str] = [crowded] if crowded else []
        self._is_crowded = bool(crowded)

    def _is_of(self, message: MessageTimes) -> bool:
        if self._compared.subject == "exchanges":
            return message.test.startswith(AMONG)
        return message.test in ("", self._compared.test)

    def strategies(self) -> MessageStrategies:
        methods = self._compared.methods
        measured = [self._strategy(each, self._measured(each)) for each in methods]
        modelled, missing = [], []
        for method in methods:
            cost = self._modelled(method)
            if cost is not None:
                modelled.append(self._strategy(method, cost))
            else:
                reason = "it needs a curve of two sizes or more"
                missing.append(MissingStrategy(with_units(method), True, reason))
        points = {key for method in methods for key in self._table(method)}
        return MessageStrategies(
            modelled=tuple(modelled),
            measured=tuple(measured),
            missing=tuple(missing),
            counts=tuple(sorted({count for count, _ in points})),
            sizes=tuple(sorted({bytes for _, bytes in points})),
            processes=None,
            copies=None,
            extents=tuple(self._extents()),
            notes=tuple(dict.fromkeys(self.notes)),
            subject=self._compared.text,
            unit=self._compared.unit,
            replicate="block",
        )

    def _strategy(self, method: str, cost: StepCost) -> Strategy:
        """Returns the strategy of a method; its cost is unsure if ranks share CPUs."""

        def unsure(count: int, bytes: int) -> StepTime | None:
            found = cost(count, bytes)
            return found._replace(has_scatter=False) if found is not None else None

        own = unsure if self._is_crowded else cost
        return Strategy(with_units(method), (StrategyStep("all", own),))

    def _extents(self) -> Iterator[str]:
        """``mpi: 1, 4, 16 messages of 8 B to 1 MiB``; methods with the same ones together."""
        methods: defaultdict[str, list[str]] = defaultdict(list)
        for method in self._compared.methods:
            table = self._table(method)
            counts = sorted({count for count, _ in table})
            sizes = sorted({bytes for _, bytes in table})
            unit = self._compared.unit if counts == [1] else plural(self._compared.unit)
            span = f"{unit} of {size_span(sizes[0], sizes[-1])}"
            methods[f"{', '.join(map(str, counts))} {span}"].append(with_units(method))
        for extent, own in methods.items():
            yield f"{', '.join(own)}: {extent}"

    def _table(self, method: str) -> StepTable:
        """Measured times by (number, bytes). Of single messages those of the pair count, so that
        methods are compared at the same one."""
        times: defaultdict[tuple[int, int], tuple[float, ...]] = defaultdict(tuple)
        own = self._of_method[method]
        is_known = any(each.ranks == self._pair and not each.test for each in own)
        for each in own:
            if is_known and not each.test and each.ranks != self._pair:
                continue
            number = each.count
            if self._compared.subject == "exchanges":
                number = ranks_among(each.test)
            times[each.bytes, number] += each.seconds
        return job_times(times)

    def _measured(self, method: str) -> StepCost:
        """One message of a size between two measured ones has the time that the model has."""
        table = self._table(method)
        sizes = sorted(bytes for count, bytes in table if count == 1)
        curve = self._curve(GPU, method)

        def cost(count: int, bytes: int) -> StepTime | None:
            found = table.get((count, bytes))
            if found is None and count == 1 and curve is not None and sizes:
                return of_curve(curve, bytes) if sizes[0] <= bytes <= sizes[-1] else None
            return found

        return cost

    # By the model.

    def _modelled(self, method: str) -> StepCost | None:
        """Returns None if nothing of a method is modelled."""
        if self._compared.subject == "exchanges":
            return self._of_exchange(method)
        curve = self._curve(GPU, method)
        several = self._several(GPU, method)
        if curve is None:
            return None
        if several is None and self._compared.subject == "messages":
            staged = self._staged(method, curve)
            if staged is not None:
                return staged

        def cost(count: int, bytes: int) -> StepTime | None:
            if count == 1:
                return of_curve(curve, bytes)
            return of_counts(several, count, bytes) if several is not None else None

        return cost

    def _of_exchange(self, method: str) -> StepCost | None:
        curves = {
            ranks_among(own.test): curve
            for own, curve in self._models.classes
            if (own.source, own.method, own.locality) == (GPU, method, self._compared.locality)
            and len(curve.sizes) > 1
        }

        def cost(count: int, bytes: int) -> StepTime | None:
            return of_curve(curves[count], bytes) if count in curves else None

        return cost if curves else None

    def _staged(self, method: str, curve: CurveModel) -> StepCost | None:
        """The copies and then the messages of a method that stages whole; None for other methods.
        An executor without settings is one if it sends no messages between hosts."""
        plain = next((x for x in sorted(self._host_methods) if not parse_word(x, "")[1]), "")
        host, several = self._curve(HOST, plain), self._several(HOST, plain)
        is_staged = method not in self._host_methods and not parse_word(method, "a method")[1]
        if not is_staged or host is None or several is None:
            return None
        self.notes.append(
            f"{method} of several messages is modelled: what it takes longer than a message "
            f"between hosts ({plain}), for the bytes of all together, and then the messages "
            "between hosts"
        )

        def cost(count: int, bytes: int) -> StepTime | None:
            if count == 1:
                return of_curve(curve, bytes)
            all_bytes = count * bytes
            copies = _difference(of_curve(curve, all_bytes), of_curve(host, all_bytes))
            messages = of_counts(several, count, bytes)
            if copies is None or messages is None:
                return None
            has_scatter = copies.has_scatter and messages.has_scatter
            return StepTime(*added((copies, messages)), has_scatter)

        return cost

    def _several(self, kind: str, method: str) -> CountModel | None:
        key = CountKey(kind, self._compared.test, method, self._compared.locality)
        return next((each for each in self._models.counts if each.key == key), None)

    def _curve(self, kind: str, method: str) -> CurveModel | None:
        found = self._class(kind, method)
        return found[1] if found is not None else None

    def _class(self, kind: str, method: str) -> tuple[MessageClass, CurveModel] | None:
        """Returns the class of the pair at which all methods are compared: the first that sends
        several messages."""
        key = kind, kind, self._compared.locality, "", method
        found = [each for each in self._models.classes if each[0].kind == key]
        own = [each for each in found if self._pair in each[0].pairs] or found
        if len(found) > 1:
            note = f"of {len(found)} classes of pairs, which differ, {own[0][0].name} is taken"
            self.notes.append(note)
        return own[0] if own and len(own[0][1].sizes) > 1 else None


def _difference(whole: StepTime | None, part: StepTime | None) -> StepTime | None:
    """What is left of a time without a part of it; None if nothing is."""
    if whole is None or part is None or whole.seconds <= part.seconds:
        return None
    seconds = whole.seconds - part.seconds
    around = None
    if whole.interval is not None and part.interval is not None:
        half = max(whole.interval.width, part.interval.width) / 2
        around = Interval(max(seconds - half, 0.0), seconds + half)
    return StepTime(seconds, around, whole.has_scatter and part.has_scatter)
