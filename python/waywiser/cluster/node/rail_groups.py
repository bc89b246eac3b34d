"""The workers of a node's rails as processes: their start, and their end whatever they do."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from waywiser.cluster.node.rail_group import RailGroup
from waywiser.machine import Machine
from waywiser.measure.probe.options import ProbeOptions
from waywiser.measure.supervise import ProcessError
from waywiser.words import Failure, Rail, WaywiserError, count

_ATTEMPTS = 2
"""Groups that are started before workers are given up."""


class RailError(WaywiserError):
    """The workers of this node cannot measure."""


class RailGroups:
    """Keeps one group of workers from test to test, and starts another after a loss. One thread at
    a time uses the group; any may `abort` or `kill` it."""

    def __init__(
        self,
        machine: Callable[[], Machine],
        rails: Sequence[Rail],
        make_group: Callable[[Sequence[int], int], RailGroup],
        options: ProbeOptions | None = None,
    ) -> None:
        self.rails = rails
        self.group: RailGroup | None = None
        self.stuck = ""
        """A process that did not end although it was killed; empty for none. No worker is started
        any more then."""
        self._machine = machine
        self._options = options or ProbeOptions()
        self._make_group = make_group
        self._number = 0
        self._lock = threading.Lock()
        """Held by who reads or changes `group` beside the thread that uses it."""
        self._kills = 0
        """How often workers were to end: what starts meanwhile does not go on."""
        self._ends = False

    def ready(self, rails: int) -> RailGroup:
        """The workers of the first rails, which are started if they do not run. Raises
        `RailError`."""
        kills = self._kills
        if self.stuck:
            raise RailError(self.stuck)
        gpus = [rail.gpu for rail in self.rails[:rails]]
        if len(gpus) < rails or min(gpus, default=-1) < 0:
            have = sum(gpu >= 0 for gpu in gpus)
            raise RailError(
                f"{have} of the {count(rails, 'rail')} of this test have a GPU on this node",
                remedy="see which GPUs nvidia-smi lists there",
            )
        group = self.group
        if group is not None and group.usable and group.size == rails:
            return group
        self.drop()
        failure: Failure | None = None
        for _ in range(_ATTEMPTS):
            group = self._started(gpus, kills)
            failure = group.get_ready(self._machine(), self._options)
            if failure is None:
                return group
            self.drop()
        raise RailError(
            f"the workers did not get ready: {failure.reason if failure else ''}",
            remedy="run waywiser doctor on the node",
        )

    def abort(self) -> None:
        """Lets the workers leave their test."""
        with self._lock:
            if self.group is not None:
                self.group.abort()

    def kill(self) -> None:
        """Kills the processes of the group."""
        with self._lock:
            if self.group is not None:
                self.group.kill()

    def end_start(self, *, for_good: bool) -> None:
        """Kills the group, also one that starts now: no other is started instead; none any more if
        it is ``for_good``."""
        with self._lock:
            self._ends = self._ends or for_good
            self._kills += 1
        self.kill()

    def drop(self, seconds: float = 0.0) -> None:
        """Ends the group: politely in so many seconds, then by force. Raises `ProcessError` if a
        process does not end."""
        with self._lock:
            group, self.group = self.group, None
        if group is not None:
            group.end(seconds) if seconds else group.close()

    @contextmanager
    def stuck_noted(self) -> Iterator[None]:
        """Raises `RailError` instead of `ProcessError`, and notes what does not end."""
        try:
            yield
        except ProcessError as error:
            self.group = None  # it cannot be closed
            self.stuck = str(error)
            raise RailError(self.stuck) from error

    def _started(self, gpus: Sequence[int], kills: int) -> RailGroup:
        """A new group. Raises `RailError` if workers are to end since there were ``kills``; none is
        left then that `kill` does not find."""
        with self._lock:
            self._require_starts(kills)
        self._number += 1
        try:
            group = self._make_group(gpus, self._number)
        except ProcessError as error:
            raise RailError(str(error)) from error
        with self._lock:
            self.group = group
            try:
                self._require_starts(kills)
            except RailError:
                group.kill()
                raise
        return group

    def _require_starts(self, kills: int) -> None:
        if self._ends or self._kills != kills:
            raise RailError("the workers were ended while they started")
