"""The samples of many visits as arrays, unpacked from the rows of profiles and checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache
from operator import attrgetter
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from waywiser.profile.columns import NUMBER_BYTES, BadColumn, unpacked_bytes
from waywiser.profile.errors import ProfileError
from waywiser.profile.profile import NO_SAMPLES, Profile
from waywiser.profile.rows import LISTS, AloneRow, VisitRow, require_counts, visit_from
from waywiser.profile.validation import MOST, MOST_SECONDS
from waywiser.words import GpuState, Visit, Workload

Array = NDArray[Any]

MOST_SAMPLES = 2**26
"""The most samples that are unpacked together: 512 MiB per column."""


SHORT_BYTES = 64
"""Compressed columns up to this size are mostly constant, and many visits have the same."""

MOST_KNOWN_BYTES = 2**15
"""Bytes of a short column that is kept unpacked."""

_unpacked_short = lru_cache(maxsize=256)(unpacked_bytes)
"""The bytes of a column that many visits have in common."""


class SampleColumns:
    """Visits of a profile, or of none, and one entry per sample: by visit, in the order taken. A
    column is unpacked when it is first used. Every property raises `ProfileError` for a damaged
    file."""

    def __init__(
        self,
        visits: Sequence[VisitRow],
        profile: Profile | None,
        alone: Mapping[tuple[str, int], AloneRow] | None = None,
    ) -> None:
        """``alone`` has the times of transfers without others, by series and block."""
        self.visits = tuple(visits)
        self.profile = profile
        self._alone_rows = alone or {}

    def bare_visit_of(self, row: VisitRow, workload: Workload) -> Visit:
        """A visit without its samples. Raises `ProfileError` for one that is impossible."""
        if self.profile is None:
            return visit_from(row, workload, NO_SAMPLES)
        return self.profile.bare_visit_of(row, workload)

    def gpu_states_of(self, row: VisitRow) -> tuple[GpuState, ...]:
        """Readings of GPUs while a visit ran. Raises `ProfileError` for what does not decode."""
        try:
            found: tuple[GpuState, ...] = LISTS["gpu_states"](row.gpu_states)
            return found
        except msgspec.MsgspecError as error:
            raise self._damaged(row, error) from error

    def _damaged(self, row: VisitRow, why: object) -> ProfileError:
        """The error for a visit that is impossible."""
        if self.profile is None:
            return ProfileError(f"visit {row.visit}: {why}")
        return self.profile.damaged_visit(row, why)

    @cached_property
    def taken(self) -> Array:
        """The number of samples of each visit."""
        total = 0
        for visit in self.visits:
            if visit.samples:
                try:
                    require_counts(visit)
                except BadColumn as error:
                    raise self._damaged(visit, error) from error
                total += visit.samples
                if total > MOST_SAMPLES:
                    raise self._damaged(visit, f"there are more than {MOST_SAMPLES} samples")
        return np.array([visit.samples for visit in self.visits], dtype=np.int64)

    @cached_property
    def starts(self) -> Array:
        """The position of the first sample of each visit."""
        return np.cumsum(self.taken) - self.taken

    @cached_property
    def span(self) -> Array:
        """Seconds of one repetition of the workload."""
        found = self._column("span", "<f8", 0.0)
        self._require_times(found)
        return found

    @cached_property
    def host(self) -> Array:
        """Seconds from call to completion; NaN if that was not taken."""
        found = self._column("host", "<f8", np.nan)
        self._require_times(np.where(np.isnan(found), 0.0, found))
        return found

    @cached_property
    def repetitions(self) -> Array:
        """Executions that were batched into the sample."""
        found = self._column("repetitions", "<i8", 1)
        self._require((found >= 1) & (found <= MOST), "a sample of so many repetitions")
        return found

    @cached_property
    def flags(self) -> Array:
        found = self._column("flags", "<i8", 0)
        self._require(found >= 0, "flags below zero")
        return found

    def transfers(self, visit: int) -> Array:
        """Seconds of each transfer of one visit: a row per sample, a column per transfer."""
        row = self.visits[visit]
        count, width = row.samples, row.width
        if width == 1 and row.transfers is None:
            start = self.starts[visit]
            return self.span[start : start + count].reshape(count, 1)
        if not width:
            return np.empty((count, 0))
        return self._times_of(row, row.transfers)

    def alone(self, visit: int) -> Array | None:
        """The same of each transfer without the others; None if it was not timed."""
        row = self.visits[visit]
        known = self._alone_rows.get((row.series, row.block))
        return None if known is None else self._times_of(row, known.seconds)

    def _times_of(self, row: VisitRow, blob: bytes | None) -> Array:
        count, width = row.samples, row.width
        try:
            data = unpacked_bytes(blob, count * width)
        except BadColumn as error:
            raise self._damaged(row, error) from error
        found = np.frombuffer(data, "<f8").reshape(count, width)
        if not np.abs(found).sum() <= MOST_SECONDS:
            raise self._damaged(row, "impossible times")
        return found

    def _column(self, name: str, kind: str, absent: float) -> Array:
        """``absent`` stands for each sample of a visit that has no such column."""
        fill = np.array([absent], dtype=kind).tobytes()
        column, most = attrgetter(name), MOST_KNOWN_BYTES // NUMBER_BYTES
        parts = []
        try:
            for visit, count in zip(self.visits, self.taken.tolist(), strict=True):
                blob = column(visit)
                if not count:
                    continue
                if blob is None:
                    parts.append(fill * count)
                elif len(blob) <= SHORT_BYTES and count <= most:
                    parts.append(_unpacked_short(blob, count))
                else:
                    parts.append(unpacked_bytes(blob, count))
        except BadColumn as error:
            raise self._damaged(visit, error) from error
        data = b"".join(parts)
        assert len(data) == NUMBER_BYTES * self.taken.sum()
        return np.frombuffer(data, kind)

    def _require(self, holds: Array, what: str) -> None:
        if not holds.all():
            wrong = int(np.argmin(holds))
            visit = int(np.searchsorted(np.cumsum(self.taken), wrong, side="right"))
            raise self._damaged(self.visits[visit], what)

    def _require_times(self, seconds: Array) -> None:
        """Checks that the times of each visit together are no longer than anybody can have
        measured."""
        if not len(seconds):
            return
        with np.errstate(over="ignore", invalid="ignore"):
            sums = np.add.reduceat(np.abs(seconds), self.starts[self.taken > 0])
            wrong = ~(sums <= MOST_SECONDS)
        if wrong.any():
            visit = int(np.flatnonzero(self.taken)[np.argmax(wrong)])
            raise self._damaged(self.visits[visit], "impossible times")
