"""The two sides of a comparison: surveys of before and of now, with their GPUs matched."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from waywiser.analysis.comparison.comparison_text import (
    GONE,
    ONLY_IN_BASE,
    copy_text,
    no_repetition,
)
from waywiser.analysis.comparison.differences import another_machine, is_same_machine
from waywiser.curves.answer import Device
from waywiser.curves.gpu_numbers import Devices, device_of
from waywiser.curves.subject import Subject, is_copy, without_copies
from waywiser.machine.machine import Gpu


class ComparisonSides:
    """Surveys without copies; all GPUs have the numbers of `reference`."""

    def __init__(
        self, base: Sequence[Subject], new: Sequence[Subject], repeats: Sequence[Subject] = ()
    ) -> None:
        """``repeats`` are later surveys of the new machine; those that are not are `rejected`.
        Raises ValueError for a side without nodes."""
        if not base or not new:
            raise ValueError("a comparison needs a node on each side")
        (base, copies), (new, more) = without_copies(base), without_copies(new)
        usable, self.rejected = _usable(repeats, base, new)
        self.copies = [*copies, *more]
        """(copy, original) by file."""
        self.reference = max(base, key=lambda node: len(node.machine.gpus))
        self.base, self.new, self.repeats = (
            [node.beside(self.reference) for node in side] for side in (base, new, usable)
        )
        self.another = another_machine(base, new)
        """What differs if the new machine is another one; else empty."""

    @cached_property
    def gone(self) -> dict[int, Gpu]:
        """GPUs of the reference that the new surveys lack, by number."""
        return {
            gpu.index: gpu
            for node in self.new
            if not node.is_of_results
            for gpu in node.match.missing
        }

    @cached_property
    def unnamed(self) -> dict[int, Gpu]:
        """GPUs of the reference that new results of other tools do not name, by number: whether
        the machine has them is not known."""
        return {
            gpu.index: gpu
            for node in self.new
            if node.is_of_results
            for gpu in node.match.missing
            if gpu.index not in self.gone
        }

    @cached_property
    def requests(self) -> set[str]:
        """What the surveys were asked for, as text."""
        return {node.request for node in (*self.base, *self.new)}

    @cached_property
    def replanned(self) -> str:
        """The versions of the new files if all have the same request and none was made by a
        version that made a base; else empty. A plan is that of its version: what another one
        leaves out without a reason was not lost by the machine."""
        before, now = (
            {node.environment.get("waywiser") for node in side if node.request}
            for side in (self.base, self.new)
        )
        known = all(isinstance(each, str) and each for each in before | now)
        is_same_request = len(self.requests) == 1 and all(self.requests) and known
        return ", ".join(sorted(map(str, now))) if is_same_request and not before & now else ""

    @cached_property
    def unsupported(self) -> dict[str, str]:
        """Why the new machine does not support a path, by its text."""
        return {each.path: each.reason for node in self.new for each in node.unsupported_paths}

    @property
    def is_in_order(self) -> bool | None:
        """Whether the base was measured before the new surveys; None if no time says so."""
        before, now = (min(node.created for node in side) for side in (self.base, self.new))
        return before < now if before and now and before != now else None

    @property
    def gone_text(self) -> str:
        """How a line about a GPU that has gone ends."""
        return ONLY_IN_BASE if self.another else GONE

    @property
    def exchanged(self) -> tuple[tuple[Device, Device], ...]:
        """(before, now): another device in the same place."""
        pairs = (pair for node in self.new for pair in node.match.exchanged)
        return tuple(dict.fromkeys((device_of(old), device_of(now)) for old, now in pairs))

    @cached_property
    def known(self) -> Devices:
        """The GPUs of the reference."""
        return {gpu.index: device_of(gpu) for gpu in self.reference.machine.gpus}

    @cached_property
    def devices(self) -> Devices:
        """GPUs as the first new survey has them that has them, else as the reference has them."""
        found: dict[int, Device] = {}
        for node in self.new:
            for gpu in node.machine.gpus:
                found.setdefault(node.match.numbers[gpu.index], device_of(gpu))
        return {**self.known, **found}


def _usable(
    repeats: Sequence[Subject], base: Sequence[Subject], new: Sequence[Subject]
) -> tuple[list[Subject], list[str]]:
    """The repeats that are further surveys of the new machine, and a note on each other one."""
    usable, copies = without_copies(repeats)
    notes = [no_repetition(copy_text(copy, of)) for copy, of in copies]
    for repeat in list(usable):
        same = next((each for each in (*base, *new) if is_copy(each, repeat)), None)
        if same is not None:
            fact = f"is the survey {same.called}"
        elif not any(is_same_machine(each, repeat) for each in new):
            fact = "is of another machine"
        elif repeat.created < min(each.created for each in new):
            fact = "is older than the new survey"
        else:
            continue
        notes.append(no_repetition(f"{repeat.called} {fact}"))
        usable.remove(repeat)
    return usable, notes
