"""A profile without its samples: per series and block the median and its interval, read at once.

What compares profiles needs no samples, and reading them takes a hundred times as long. Files whose
visits were stored without a summary are summarised while they are read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from waywiser.profile.opening import damaged
from waywiser.profile.profile import Profile
from waywiser.profile.sound import MOST, MOST_SECONDS, Unsound, require_sound
from waywiser.records import Failure, Summary
from waywiser.words import Stop, TimingMode, Value, Workload

if TYPE_CHECKING:
    from numpy import bool_, float64, int64
    from numpy.typing import NDArray


class BlockDigest(Value, frozen=True):
    """One visit that has samples that count. Seconds."""

    block: int
    median: float
    low: float | None = None
    """Of the median's 95 % interval within the block; None where there is none."""
    high: float | None = None
    count: int = 0
    """Samples that count."""
    stop: Stop = "converged"
    mode: TimingMode = "device"
    spread: float = 0.0
    """Relative standard deviation of samples that are too few for an interval, or of those that
    another tool did not keep; 0 where it is not known, or the interval tells."""
    foreign: bool = False
    """Another tool's, which sampled by rules of its own."""


class Digest(Value, frozen=True):
    """One series: what it is, what its blocks say, and why others say nothing."""

    workload: Workload
    blocks: tuple[BlockDigest, ...] = ()
    failures: tuple[Failure, ...] = ()
    """Of visits that failed or were skipped."""
    identity: str = ""
    """As the file has it; `Workload.identity` otherwise."""
    text: str = ""
    curve: str = ""

    @classmethod
    def of(
        cls,
        workload: Workload,
        blocks: Sequence[BlockDigest] = (),
        failures: Sequence[Failure] = (),
    ) -> Digest:
        """Of a workload in memory."""
        return cls(workload, tuple(blocks), tuple(failures),
                   workload.identity, str(workload), workload.curve)  # fmt: skip

    @property
    def bytes(self) -> int:
        return self.workload.bytes


class RawBlocks(NamedTuple):
    """The samples of several visits, one after the other, as arrays.

    ``spans``, ``repetitions`` and ``flags`` have one entry per sample; ``starts`` says where each
    visit begins, and ``host_timed`` by which clock it was timed.
    """

    spans: NDArray[float64]
    repetitions: NDArray[float64]
    flags: NDArray[int64]
    starts: NDArray[int64]
    host_timed: NDArray[bool_]


Summarise = Callable[[RawBlocks], Sequence[Summary]]
Spreads = Callable[[Profile], dict[int, float]]


class _Row(NamedTuple):
    visit: int
    series: str
    block: int
    mode: TimingMode
    stop: Stop
    failure_kind: str | None
    failure_reason: str | None
    counted: int | None
    median: float | None
    low: float | None
    high: float | None


_SUMMARISED = ("counted", "median", "low", "high")


def digests(profile: Profile, summarise: Summarise, spreads_of: Spreads) -> list[Digest]:
    """All series by curve, then by size, each with its blocks in order.

    ``summarise`` is asked for all visits that have samples and no summary, as files of earlier
    programs have them. Raises `ProfileError` for a damaged file.
    """
    present = profile.columns("visit")
    columns = ", ".join(
        name if name not in _SUMMARISED or name in present else f"NULL AS {name}"
        for name in _Row._fields
    )
    rows = profile.select(f"SELECT {columns} FROM visit ORDER BY series, block", _Row)
    made = _made_now(profile, [row for row in rows if row.counted is None], summarise)
    spreads = spreads_of(profile) if "counted" in present else {}
    by_series: dict[str, list[_Row]] = {}
    for row in rows:
        by_series.setdefault(row.series, []).append(row)
    return [
        _digest(profile, head, by_series[head[0]], made, spreads)
        for head in profile.select(
            "SELECT identity, text, curve, workload FROM series ORDER BY curve, bytes, identity",
            tuple[str, str, str, str],
        )
        if head[0] in by_series
    ]


def _digest(
    profile: Profile,
    head: tuple[str, str, str, str],
    rows: list[_Row],
    made: dict[int, Summary],
    spreads: dict[int, float],
) -> Digest:
    identity, text, curve, workload = head
    failures = [
        Failure(row.failure_kind, row.failure_reason or "") for row in rows if row.failure_kind
    ]
    try:
        known = _WORKLOADS.decode(workload)
        require_sound(known)
        return Digest(known, tuple(_blocks(rows, made, spreads)),
                      tuple(failures), identity, text, curve)  # fmt: skip
    except (msgspec.MsgspecError, Unsound) as error:
        raise damaged(profile.path, f"series {identity}: {error}") from error


_WORKLOADS = msgspec.json.Decoder(Workload)


def _blocks(
    rows: list[_Row], made: dict[int, Summary], spreads: dict[int, float]
) -> Iterator[BlockDigest]:
    for row in rows:
        count, median, low, high = row.counted, row.median, row.low, row.high
        if count is None and row.visit in made:
            found = made[row.visit]
            count, median, low, high = found.counted, found.median, found.low, found.high
        if count and median is not None and median > 0:
            if not _is_summary(count, median, low, high):
                raise Unsound(f"the summary of visit {row.visit} is of no samples")
            spread = spreads.get(row.visit, 0.0) if low is None else 0.0
            yield BlockDigest(row.block, median, low, high, count, row.stop, row.mode, spread)


def _is_summary(count: int, median: float, low: float | None, high: float | None) -> bool:
    within = low is None or high is None or 0 <= low <= median <= high <= MOST_SECONDS
    return 0 < count <= MOST and median <= MOST_SECONDS and within


def _made_now(profile: Profile, rows: list[_Row], summarise: Summarise) -> dict[int, Summary]:
    """By visit, of those that have samples."""
    if not rows:
        return {}
    import numpy as np

    wanted = {row.visit: row.mode for row in rows}
    one = f"= {rows[0].visit}" if len(rows) == 1 else "> 0"
    found = profile.select(
        f"SELECT visit, span, repetitions, flags FROM sample WHERE visit {one} ORDER BY visit",
        tuple[int, float, int | None, int | None],
    )
    found = [row for row in found if row[0] in wanted]
    if not found:
        return {}
    visits, spans, repetitions, flags = zip(*found, strict=True)
    numbers, starts = np.unique(np.array(visits, dtype=np.int64), return_index=True)
    raw = RawBlocks(
        np.array(spans, dtype=float),
        np.array([1 if count is None else count for count in repetitions], dtype=float),
        np.array([flag or 0 for flag in flags], dtype=np.int64),
        starts,
        np.array([wanted[int(number)] == "host" for number in numbers], dtype=bool),
    )
    return dict(zip(map(int, numbers), summarise(raw), strict=True))
