"""Finished tests as arrays, each read once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from operator import is_

import numpy as np

from waywiser.analysis.cluster.pair_tests import PHASES, PairTests
from waywiser.words import FinishedTest


@dataclass(frozen=True)
class FinishedTests:
    """All finished tests of known nodes."""

    pairs: PairTests
    """The tests of two nodes, failed ones included."""
    failed: list[FinishedTest]
    collectives: list[FinishedTest]

    def extended(self, more: FinishedTests) -> FinishedTests:
        """Returns these and more."""
        rails = max(self.pairs.y.shape[1], more.pairs.y.shape[1])
        pairs = [_widened(each.pairs, rails) for each in (self, more)]
        return FinishedTests(
            PairTests(
                *(
                    np.concatenate([getattr(part, each.name) for part in pairs])
                    for each in fields(PairTests)
                )
            ),
            self.failed + more.failed,
            self.collectives + more.collectives,
        )


class _LastRead:
    """What was read last: the next call adds the tests of a round."""

    known: tuple[list[str], list[FinishedTest], FinishedTests] | None = None


def read_records(
    names: list[str], index: Mapping[str, int], finished: Sequence[FinishedTest]
) -> FinishedTests:
    """Reads finished tests; of those that the last call has read, the result is kept."""
    last = _LastRead.known
    if (
        last is not None
        and names == last[0]
        and len(finished) >= len(last[1])
        and all(map(is_, finished, last[1]))
    ):
        records = last[2].extended(_read(index, finished[len(last[1]) :]))
    else:
        records = _read(index, finished)
    _LastRead.known = names, list(finished), records
    return records


def _widened(tests: PairTests, rails: int) -> PairTests:
    """The tests with so many rails, of which the last ones have no times."""
    more = rails - tests.y.shape[1]
    return tests.replaced(np.pad(tests.y, ((0, 0), (0, more), (0, 0)), constant_values=np.nan))


def _read(index: Mapping[str, int], finished: Sequence[FinishedTest]) -> FinishedTests:
    rows: list[tuple[int, int, int, int]] = []
    places: list[tuple[int, int, int]] = []
    seconds: list[float] = []
    failed, collectives = [], []
    for each in finished:
        test = each.test
        if each.failed is not None:
            failed.append(each)
        if test.phase == "collective":
            collectives.append(each)
            continue
        if len(test.nodes) != 2:
            continue
        first, second = test.nodes
        if first not in index or second not in index:
            continue
        for time in each.times:
            if time.rail >= 0 and time.seconds > 0:
                places.append((len(rows), time.rail, 0 if time.sender == first else 1))
                seconds.append(time.seconds)
        rows.append((index[first], index[second], PHASES.index(test.phase), test.round))
    where = np.array(places, dtype=np.int64).reshape(-1, 3)
    y = np.full((len(rows), int(where[:, 1].max(initial=0)) + 1, 2), np.nan)
    y[tuple(where.T)] = np.log(np.array(seconds))
    columns = np.array(rows, dtype=np.int64).reshape(-1, 4).T
    return FinishedTests(
        PairTests(columns[0], columns[1], y, columns[2], columns[3]), failed, collectives
    )
