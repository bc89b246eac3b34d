"""Reports of the tests of one round by MPI, as they end."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from waywiser.cluster.transports.transport import OnFinished
from waywiser.measure.ranks.mpi_library import MpiError
from waywiser.words import FailedTest, FinishedTest, PlannedTest, RailTime


class MpiReports:
    """Reports finished tests. Failures of launches that name no node wait until a launch got ready:
    if none does, the launcher is to blame and not the tests."""

    def __init__(self, name: str, size: int, on_finished: OnFinished, *, is_open: bool) -> None:
        self._name, self._size, self._on_finished = name, size, on_finished
        self._is_open = is_open
        self._waiting: list[tuple[PlannedTest, FailedTest]] = []
        self.setup_seconds = 0.0
        """Seconds that the launch of the next tests took."""

    def __call__(
        self,
        test: PlannedTest,
        times: tuple[RailTime, ...] = (),
        failed: FailedTest | None = None,
        elapsed_seconds: float = 0.0,
    ) -> None:
        ended = datetime.now(UTC) - timedelta(seconds=elapsed_seconds)
        self._on_finished(
            FinishedTest(
                test,
                self._name,
                self._size,
                ended.isoformat(timespec="milliseconds"),
                self.setup_seconds,
                elapsed_seconds,
                times,
                failed,
            )
        )

    def unstarted(self, test: PlannedTest, failed: FailedTest) -> None:
        if self._is_open:
            self(test, failed=failed)
        else:
            self._waiting.append((test, failed))

    def open(self) -> None:
        """A launch got ready."""
        self._is_open = True
        waiting, self._waiting = self._waiting, []
        for test, failed in waiting:
            self(test, failed=failed)

    def end(self) -> None:
        """Raises `MpiError` if no launch got ready."""
        if self._waiting:
            raise MpiError(self._waiting[0][1].failure.reason)
