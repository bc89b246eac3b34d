"""A watcher of runs for tests."""

from __future__ import annotations

from waywiser.analysis.cluster.procedure import Round
from waywiser.cluster.surveys.time_plan import TimePlan
from waywiser.words.cluster import ClusterNode, FinishedTest


class Record:
    """A watcher that keeps what is reported."""

    def __init__(self) -> None:
        self.rounds: list[tuple[str, int, int]] = []
        self.finished: list[FinishedTest] = []
        self.lost: list[str] = []
        self.notes: list[str] = []

    def begin_round(self, round: Round, bytes: int, plan: TimePlan | None) -> None:
        self.rounds.append((round.phase, round.number, bytes))

    def finish(self, test: FinishedTest) -> None:
        self.finished.append(test)

    def lose(self, node: ClusterNode) -> None:
        self.lost.append(node.name)

    def note(self, line: str) -> None:
        self.notes.append(line)
