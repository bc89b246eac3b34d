"""The methods that move pieces between pinned host memory and a GPU, by piece size and count. The
pieces are scattered on both sides.

A KV cache is such a list: its pieces are blocks of one layer. Methods are compared by their time
from call to completion, as in `waywiser.profile.layout_crossover`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, NamedTuple

from waywiser.curves import Point, Subject
from waywiser.exchange.settings.origin import (
    SettingsError,
    longer_text,
    samples_text,
    seen_rate_text,
)
from waywiser.machine import DECLARED, Traits, call_text
from waywiser.profile import Estimate
from waywiser.words import Transfer, Value, format_bytes, format_settings

Direction = Literal["H2D", "D2H"]

DIRECTIONS: tuple[Direction, ...] = ("H2D", "D2H")

ONE_CALL_EACH = "cudaMemcpyAsync"
"""The call that moves one piece by a copy engine."""

ONE_CALL = "cudaMemcpyBatchAsync"
"""The call that moves all pieces by copy engines."""

MULTIPROCESSORS = "blocks"
"""The setting of a kernel that says how many multiprocessors it uses, if it was set."""


class ListMethod(Value, frozen=True):
    """One method that moves a list, measured."""

    call: str
    """What a program calls: ``cudaMemcpyBatchAsync``."""
    transfer: Transfer
    estimate: Estimate

    @property
    def name(self) -> str:
        """The executor with its settings."""
        return self.transfer.path.executor + format_settings(self.transfer.parameters)

    @property
    def is_kernel(self) -> bool:
        """Whether a kernel of a GPU moves the pieces in place, as the library does."""
        executor = DECLARED.executor(self.transfer.path.executor)
        return executor.is_kernel and executor.library.lists

    @property
    def seconds(self) -> float:
        return self.estimate.seen_median

    @property
    def rate_text(self) -> str:
        return seen_rate_text(self.transfer.bytes, self.estimate)

    @property
    def origin(self) -> str:
        return f"{self.rate_text}, {samples_text(self.estimate)}, {self.transfer}"


class ListCell(Value, frozen=True):
    """A number of pieces of one size, and the methods that moved them, the fastest first."""

    piece: int
    """Bytes of a piece."""
    count: int
    methods: tuple[ListMethod, ...]

    @property
    def text(self) -> str:
        return f"{self.count} x {format_bytes(self.piece)}"

    @property
    def kernel(self) -> ListMethod | None:
        """The fastest kernel; None if none was measured."""
        return next((method for method in self.methods if method.is_kernel), None)

    def fastest(self, *calls: str) -> ListMethod | None:
        """The fastest method that makes one of the calls; None if none was measured."""
        return next((method for method in self.methods if method.call in calls), None)


class ListDirection(Value, frozen=True):
    """All lists that were measured from one memory to another, by size of pieces and count."""

    direction: Direction
    ends: str
    """Source and destination, as in a path."""
    cells: tuple[ListCell, ...]


def list_directions(subject: Subject) -> dict[Direction, ListDirection]:
    """The direction from host to GPU and back: the pair of memories with the most lists counts.

    Raises `SettingsError` if the profile has no lists between a GPU and pinned memory.
    """
    found: dict[tuple[Direction, str], dict[tuple[int, int], list[ListMethod]]] = {}
    for point, transfer, direction in _list_points(subject):
        ends = f"{transfer.path.source} -> {transfer.path.destination}"
        run = transfer.layout.run if transfer.layout is not None else 0
        call = call_of(transfer, subject.machine.traits)
        methods = found.setdefault((direction, ends), {})
        methods.setdefault((run, transfer.bytes // run), []).append(
            ListMethod(call, transfer, point.measured)
        )
    if not found:
        raise SettingsError(
            "the profile has no lists of pieces between a GPU and pinned host memory",
            remedy=subject.surveyed(
                "measure them: waywiser survey --preset standard --only 'as list'"
            ),
        )
    chosen: dict[Direction, ListDirection] = {}
    for (direction, ends), cells in found.items():
        made = ListDirection(
            direction,
            ends,
            tuple(
                ListCell(piece, number, tuple(sorted(methods, key=lambda each: each.seconds)))
                for (piece, number), methods in sorted(cells.items())
            ),
        )
        known = chosen.get(direction)
        if known is None or len(made.cells) > len(known.cells):
            chosen[direction] = made
    return chosen


def _list_points(subject: Subject) -> Iterator[tuple[Point, Transfer, Direction]]:
    traits = subject.machine.traits
    pinned, device = (traits.reference_memory("gpu", place) for place in ("numa", "gpu"))
    directions: dict[tuple[str, str], Direction] = {
        (pinned, device): "H2D",
        (device, pinned): "D2H",
    }
    for curve in subject.curves:
        for point in curve.measured:
            transfer = point.workload.transfer
            if transfer is None or transfer.layout is None or transfer.layout.kind != "list":
                continue
            if transfer.layout.scattered:  # blocks are scattered on both sides
                continue
            path = transfer.path
            direction = directions.get((path.source.kind, path.destination.kind))
            warm = point.workload.cache == "warm"
            if direction is not None and path.is_plain and warm and transfer.layout.run:
                yield point, transfer, direction


def call_of(transfer: Transfer, traits: Traits) -> str:
    """The call with which a program makes a transfer, without its settings."""
    call = traits.call(transfer)
    return call.text if call is not None else call_text([transfer], traits)


class KernelRule(Value, frozen=True):
    """Kernel for pieces below a size if there are enough of them, else copy engine."""

    below: int
    """Bytes: shorter pieces are moved by the kernel. 0: none are."""
    from_count: int
    """The smallest number of pieces that the kernel moves."""


class KernelAndEngine(Value, frozen=True):
    """Kernel and copy engine on the same pieces."""

    cell: ListCell
    kernel: ListMethod
    engine: ListMethod

    def loss(self, kernel: bool) -> float:
        """Returns how much longer the chosen method takes than the faster one, as a share."""
        mine, other = (self.kernel, self.engine) if kernel else (self.engine, self.kernel)
        return max(0.0, mine.seconds / other.seconds - 1)

    def loss_by(self, rule: KernelRule) -> float:
        """That of the method which the rule chooses."""
        return self.loss(self.cell.piece < rule.below and self.cell.count >= rule.from_count)

    @property
    def text(self) -> str:
        """``585 x 28 KiB: kernel 46.7 GB/s, copy engine 31.7 GB/s``."""
        return (
            f"{self.cell.text}: kernel {self.kernel.rate_text}, copy engine {self.engine.rate_text}"
        )


def kernels_and_engines(cells: Iterable[ListCell], *engine_calls: str) -> list[KernelAndEngine]:
    """The cells that both a kernel and one of the copy-engine calls moved."""
    found = []
    for cell in cells:
        kernel, engine = cell.kernel, cell.fastest(*engine_calls)
        if kernel is not None and engine is not None:
            found.append(KernelAndEngine(cell, kernel, engine))
    return found


def largest_loss(
    found: Sequence[KernelAndEngine], rule: KernelRule
) -> tuple[float, KernelAndEngine]:
    """The largest loss of a rule over all pieces, and where it is."""
    loss, n = max((each.loss_by(rule), n) for n, each in enumerate(found))
    return loss, found[n]


def best_rule(found: Sequence[KernelAndEngine], from_count: int) -> KernelRule:
    """The rule with the smallest largest loss, then with the smallest sum of losses.

    ``below`` is a measured size, at which the copy engine is used, or 0; if the kernel is best at
    all sizes, it is the byte after the largest one. ``from_count`` stays as it is unless a larger
    measured count loses less.
    """
    pieces = sorted({each.cell.piece for each in found})
    counts = sorted({each.cell.count for each in found if each.cell.count > from_count})
    rules = [
        KernelRule(below, number)
        for below in (0, *pieces[1:], pieces[-1] + 1)
        for number in (from_count, *counts)
    ]

    def cost(rule: KernelRule) -> tuple[float, float]:
        losses = [each.loss_by(rule) for each in found]
        return max(losses), sum(losses)

    return min(rules, key=cost)


# One switch for all pieces: it depends on the bytes of one piece, which depend on the model.

MOST_FACTOR = 2.0
"""A measured size that differs from the pieces of the user by a larger factor decides nothing."""


class SwitchChoice(NamedTuple):
    """What is chosen, and why."""

    kernel: bool | None
    """None if it cannot be decided."""
    reason: str
    found: Sequence[KernelAndEngine]
    """The lists that decide."""


def choose(direction: ListDirection | None, piece: int, *engine_calls: str) -> SwitchChoice:
    """The method that loses less at the measured sizes next to ``piece`` bytes."""
    found = kernels_and_engines(direction.cells, *engine_calls) if direction is not None else []
    if not found:
        return SwitchChoice(
            None, "no list was moved by both a kernel and this copy-engine call", ()
        )
    if not piece:
        return SwitchChoice(
            None, "it depends on the bytes of a piece; name them with --piece", found
        )
    sizes = sorted({each.cell.piece for each in found})
    near = min(sizes, key=lambda size: max(size / piece, piece / size))
    if max(near / piece, piece / near) > MOST_FACTOR:
        reason = f"pieces of about {format_bytes(piece)} were not measured"
        return SwitchChoice(None, f"{reason}; the nearest are of {format_bytes(near)}", found)
    decisive = [each for each in found if each.cell.piece == near]
    losses = {kernel: max(d.loss(kernel) for d in decisive) for kernel in (True, False)}
    kernel = losses[True] < losses[False]
    return SwitchChoice(
        kernel,
        f"at pieces of {format_bytes(near)} it takes {longer_text(losses[kernel], 'the other')}; "
        f"the other takes {longer_text(losses[not kernel], 'it')}",
        decisive,
    )
