"""What the workers of rails do together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from waywiser.machine import Machine
from waywiser.measure.probe.member import Member
from waywiser.measure.probe.options import ProbeOptions
from waywiser.measure.probe.protocol import MeasuredVisit
from waywiser.words import Failure, Order, Visit


class RailGroup(Protocol):
    """The workers of some GPUs: `waywiser.measure.ranks.nccl_group.NcclGroup`."""

    @property
    def lost(self) -> bool: ...

    @property
    def blamed(self) -> Member | None: ...

    @property
    def size(self) -> int:
        """How many they are."""

    @property
    def runs(self) -> bool:
        """Whether no process has ended."""

    @property
    def usable(self) -> bool: ...

    def get_ready(self, machine: Machine, options: ProbeOptions) -> Failure | None: ...

    def make_key(self, seconds: float) -> str | Failure: ...

    def connect(
        self, key: str, ranks: Sequence[int], size: int, seconds: float
    ) -> float | Failure: ...

    def measure(self, order: Order) -> tuple[Visit, tuple[MeasuredVisit, ...]]: ...

    def leave(self) -> None: ...

    def abort(self) -> None: ...

    def kill(self) -> None:
        """Kills the processes, from the start on; does not wait. Any thread may call it."""

    def end(self, seconds: float) -> None: ...

    def close(self) -> None: ...
