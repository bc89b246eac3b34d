"""The rows of one profile, and what nights and comparisons take of them."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from hashlib import blake2b
from itertools import islice
from typing import Any, NamedTuple

import msgspec
import numpy as np

from waywiser.analysis.comparison.own_findings import own_findings
from waywiser.analysis.dataset.columns import STEPS
from waywiser.analysis.history.night import (
    FollowedPath,
    Night,
    moment_of,
    night_of,
)
from waywiser.curves import LoadedLink, Point, Subject, as_compared, imported_from, points_of
from waywiser.machine import Machine
from waywiser.profile import BlockSummary, Profile, ProfileError, RunHealth, SeriesFrame
from waywiser.stats import median, survey_median
from waywiser.words import (
    NOT_MEASURED,
    Failure,
    Operation,
    Value,
    WordError,
    Workload,
    grouped,
    json_text,
)

TIME = "time"


class RunParts(Value, frozen=True):
    """The parts of a run that comparisons need, without its paths and its machine: the fields of a
    `Subject` with these names."""

    environment: dict[str, Any]
    links: dict[int, LoadedLink] = msgspec.field(default_factory=dict)
    health: tuple[RunHealth, ...] = ()
    tools: tuple[str, ...] = ()
    request: str = ""
    unfinished: bool = False
    own_findings: tuple[str, ...] = ()


class RunRecord(RunParts, frozen=True, kw_only=True):
    """The `RunParts` of a run and its machine: the column ``record``."""

    machine: Machine


class UnreadRecord(RunParts, frozen=True, kw_only=True):
    """A `RunRecord` whose machine is not read yet: most runs of a host have the same text."""

    machine: msgspec.Raw


class RunRows(NamedTuple):
    """The rows of one profile."""

    run: str
    host: str
    day: str
    columns: dict[str, list[Any]]
    """The values of all rows, by column."""

    @property
    def file(self) -> str:
        """The name of its file in a data set: no other profile has it."""
        from waywiser.profile import default_name

        host = default_name(self.host).name.rpartition("-")[0]
        return f"day={self.day}/{host}-{self.run}.parquet"


def run_of(host: str, created: str, file: str) -> str:
    """The name of a run. A survey that is resumed has the same; a copy of a profile has another,
    so that a check names it."""
    text = "\0".join((host, created, os.path.basename(file)))
    return blake2b(text.encode(), digest_size=8).hexdigest()


def state_of(file: str) -> tuple[int, int]:
    """Size and time of change of a profile; zeros if it cannot be seen."""
    try:
        found = os.stat(file)
    except (OSError, ValueError):
        return 0, 0
    return found.st_size, found.st_mtime_ns


MOST_TOGETHER, MOST_SAMPLES = 16, 2**17
"""Profiles whose statistics are made together, and samples from which on they are."""


class _ReadProfile(NamedTuple):
    """What the file of a profile has."""

    about: Subject
    """The subject, without points."""
    frame: SeriesFrame
    plan_json: str
    version: str
    """The version of Waywiser."""
    state: tuple[int, int]


def read_rows(file: str) -> RunRows:
    """The rows of a profile. Raises `waywiser.profile.ProfileError`."""
    failed: dict[str, ProfileError] = {}
    for rows in read_all_rows([file], failed):
        return rows
    raise failed[file]


def read_all_rows(files: Iterable[str], failed: dict[str, ProfileError]) -> Iterator[RunRows]:
    """The rows of several profiles; those that cannot be read are added to ``failed``."""
    read: list[_ReadProfile] = []
    samples = 0
    for file in files:
        try:
            found = _read(file)
        except ProfileError as error:
            failed[file] = error
            continue
        read.append(found)
        samples += sum([visit.samples for visit in found.frame.visits])
        if len(read) == MOST_TOGETHER or samples >= MOST_SAMPLES:
            yield from _rows_together(read, failed)
            read, samples = [], 0
    if read:
        yield from _rows_together(read, failed)


def _read(file: str) -> _ReadProfile:
    """Reads all of the file that rows need. Raises `ProfileError`."""
    state = state_of(file)  # before it is read: a change meanwhile is seen the next time
    with Profile.open_snapshot(file) as profile:
        frame = SeriesFrame.read(profile)
        about = Subject.described(profile, (), len(frame.visits))
        versions = [run.version for run in profile.runs]
        return _ReadProfile(
            msgspec.structs.replace(about, file=file),
            frame,
            profile.plan_json,
            versions[-1] if versions else "",
            state,
        )


def _rows_together(
    read: Sequence[_ReadProfile], failed: dict[str, ProfileError]
) -> Iterator[RunRows]:
    """The rows of profiles whose statistics are made together; of each alone if that fails."""
    try:
        medians = iter(SeriesFrame.joined([each.frame for each in read]).medians_alone())
    except ProfileError as error:
        if len(read) == 1:
            failed[read[0].about.file] = error
            return
        for each in read:
            yield from _rows_together([each], failed)
        return
    nodes: list[tuple[_ReadProfile, Subject]] = []
    for each in read:
        about, frame = each.about, each.frame
        points = points_of(frame, list(islice(medians, len(frame.visits))))
        about = msgspec.structs.replace(about, points=tuple(points))
        try:
            node = as_compared(about, frame, each.plan_json, links=True)
            node = msgspec.structs.replace(node, own_findings=own_findings(node))
        except ProfileError as error:
            failed[about.file] = error
            continue
        nodes.append((each, node))
    measured = iter(_measured([point for _, node in nodes for point in node.points]))
    for each, node in nodes:
        early = [row.started for row in each.frame.visits if row.samples]
        first = "" if imported_from(node.environment) else min(early, default="")
        night = msgspec.structs.replace(night_of(node), first_visit=first)
        own = list(islice(measured, len(node.points)))
        yield _run_rows(node, night, own, each.state, each.version)


def rows_of(node: Subject, night: Night) -> RunRows:
    """The same of a profile that was read."""
    return _run_rows(node, night, _measured(node.points))


def _run_rows(
    node: Subject,
    night: Night,
    measured: Sequence[RowTimes],
    state: tuple[int, int] = (0, 0),
    version: str = "",
) -> RunRows:
    about, points = _about(node, night, state, version), node.points
    named = {path.curve: path for path in night.paths.paths}
    rows = [
        *map(_row, points, [named.get(point.curve) for point in points], measured),
        *(RowValues(path=x.path, failure="unsupported", reason=x.reason)
          for x in node.unsupported_paths),
    ] or [RowValues()]  # fmt: skip
    count = len(rows)
    columns: dict[str, list[Any]] = {name: [value] * count for name, value in about.items()}
    columns |= zip(RowValues._fields, map(list, zip(*rows, strict=True)), strict=True)
    columns["number"] = list(range(count))
    columns["record"] = [json_text(_record(node)), *[None] * (count - 1)]
    return RunRows(about["run"], night.host, night.created[:10], columns)


def _record(node: Subject) -> RunRecord:
    return RunRecord(**{name: getattr(node, name) for name in RunRecord.__struct_fields__})


def _about(node: Subject, night: Night, state: tuple[int, int], version: str) -> dict[str, Any]:
    """What all rows of a run have."""
    return {
        "run": run_of(night.host, night.created, night.file),
        "host": night.host,
        "measured": moment_of(night.created),
        "class": night.hardware,
        "driver": node.machine.driver,
        "kernel": str(node.environment.get("kernel") or ""),
        "waywiser": version,
        "simulated": night.simulated,
        "gpus": json_text(night.gpus),
        "facts": json_text(night.facts),
        "first_visit": night.first_visit,
        "file": os.path.basename(night.file),
        "file_bytes": state[0],
        "file_modified": state[1],
    }


class RowTimes(NamedTuple):
    """What a row says of the medians of its processes; by default there are none."""

    processes: int = 0
    seconds: float | None = None
    fastest: float | None = None
    noise: float | None = None
    deviations: Sequence[int] = ()


class RowValues(NamedTuple):
    """The values in which the rows of a run differ; the default is a run of which nothing was
    measured."""

    path: str = ""
    name: str = ""
    group: str = ""
    bytes: int = 0
    followed: bool = False
    metric: str = TIME
    processes: int = 0
    seconds: float | None = None
    fastest: float | None = None
    noise: float | None = None
    deviations: Sequence[int] = ()
    shift: float | None = None
    failure: str = ""
    reason: str = ""
    workload: str = ""


def _row(point: Point, path: FollowedPath | None, measured: RowTimes) -> RowValues:
    failures = [each for each in point.failures if each.kind not in NOT_MEASURED]
    failure = next(iter(failures or point.failures), None)
    return RowValues(
        point.curve,
        path.path if path else "",
        path.group if path else "",
        point.bytes,
        path is not None and path.bytes == point.bytes,
        TIME,
        *measured,
        median([block.shift for block in point.blocks]) if point.blocks else None,
        failure.kind if failure else "",
        failure.reason if failure else "",
        point.text,
    )


def _measured(points: Sequence[Point]) -> list[RowTimes]:
    """What rows say of the processes of each point."""
    found = [RowTimes()] * len(points)
    counts = [len(point.blocks) for point in points]
    for count, rows in grouped((count, n) for n, count in enumerate(counts) if count).items():
        medians = [tuple([block.median for block in points[n].blocks]) for n in rows]
        times, logs = np.array(medians), np.log(medians)
        seconds = np.array(list(map(survey_median, medians)), np.float32).tolist()
        fastest = times.min(axis=1).astype(np.float32).tolist()
        noise: list[float | None] = [None] * len(rows)
        if count > 1:
            noise = two_digits(logs.std(axis=1, ddof=1)).tolist()
        steps = (logs - np.array(list(map(math.log, seconds)))[:, None]) * STEPS
        deviations = np.rint(steps).astype(int).tolist()
        for n, *own in zip(rows, seconds, fastest, noise, deviations, strict=True):
            found[n] = RowTimes(count, *own)
    return found


def two_digits(values: Any) -> Any:
    """Positive values with two digits, which is what a deviation of a few processes is known to."""
    values = np.asarray(values, float)
    unit = 10.0 ** (np.floor(np.log10(np.maximum(values, 1e-9))) - 1)
    return (np.rint(values / unit) * unit).astype(np.float32)


@lru_cache(maxsize=1024)  # many runs of a fleet begin at one moment
def created_text(measured: datetime) -> str:
    """A time as profiles have it."""
    return measured.astimezone(UTC).isoformat(timespec="milliseconds")


class SubjectRow(NamedTuple):
    """The columns of a row that a subject takes; those of a row without a time are None."""

    run: str
    host: str
    measured: datetime
    record: str
    workload: str
    seconds: float
    deviations: Sequence[int] | None
    shift: float | None
    failure: str
    reason: str


def subject_of_rows(rows: Sequence[SubjectRow], file: str) -> Subject:
    """A subject by the rows of a run: its processes are those of the profile to half of a step."""
    first = rows[0]
    record = msgspec.json.decode(first.record, type=UnreadRecord)
    return Subject(
        name=first.host,
        points=tuple(_points(rows)),
        file=file,
        created=created_text(first.measured),
        machine=_machine(bytes(record.machine)),
        **{name: getattr(record, name) for name in RunParts.__struct_fields__},
    )


@lru_cache(maxsize=16384)
def _machine(text: bytes) -> Machine:
    return msgspec.json.decode(text, type=Machine)


def _points(rows: Iterable[SubjectRow]) -> Iterator[Point]:
    for row in rows:
        if not row.workload:
            continue
        if row.deviations and row.shift is None:
            raise ValueError("a path with times has no shift")
        failures = [Failure(row.failure, row.reason)] if row.failure else []
        blocks = [
            BlockSummary(n, row.seconds * math.exp(each / STEPS), shift=row.shift or 0.0)
            for n, each in enumerate(row.deviations or ())
        ]
        known = _known(row.workload)
        yield msgspec.structs.replace(known, blocks=tuple(blocks), failures=tuple(failures))


@lru_cache(maxsize=65536)
def _known(text: str) -> Point:
    """The point of a workload, without anything that was measured."""
    try:
        workload = Workload.parse(text)
    except WordError:
        workload = Workload(operation=Operation.parse(text))
    return Point.of(workload)


def as_recorded(node: Subject, night: Night) -> Subject:
    """A subject as a data set would have it, so that two sources of one survey say the same."""
    columns = rows_of(node, night).columns
    rows = zip(*(columns[name] for name in SubjectRow._fields), strict=True)
    return subject_of_rows(list(map(SubjectRow._make, rows)), node.file)
