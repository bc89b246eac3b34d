"""A profile as tables: the headline paths, the series, the samples, and single curves."""

from __future__ import annotations

import html
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any

from waywiser.curves import (
    SERIES_TYPES,
    Curve,
    HeadlineRow,
    Overview,
    Subject,
    by_family,
    headline_rows,
    matches_any,
    subject_of,
    texts_of,
)
from waywiser.curves.headlines import headline_path_rows
from waywiser.curves.select import nearest, suggestion, with_terms
from waywiser.curves.series_rows import (
    MEASURED_TYPES,
    interval_cells,
    measured_cells,
    percent_of_bound,
    rate_cells,
    series_rows,
)
from waywiser.machine import Machine
from waywiser.notebook.data_table import DataTable, html_table
from waywiser.notebook.optional_package import optional
from waywiser.profile import Profile, ProfileError, SeriesFrame
from waywiser.profile.sample_rows import TYPES as SAMPLE_TYPES
from waywiser.profile.sample_rows import rows_of_series
from waywiser.words import (
    Series,
    WaywiserError,
    count,
    format_rate,
    format_relative,
    format_time,
    visible,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from waywiser.analysis.policy.advice import Advice
    from waywiser.analysis.policy.table import Policy
    from waywiser.analysis.questions.placement import Placement
    from waywiser.model.prediction import Prediction
    from waywiser.notebook.curve_figure import CurveQuantity
    from waywiser.notebook.verb_result import VerbResult

MOST_CURVES = 8
"""Most curves in one figure: more cannot be distinguished."""

CURVE_TYPES: dict[str, type] = {"bytes": int, **MEASURED_TYPES}

HEADLINE_TYPES: dict[str, type] = {
    "group": str,
    "path": str,
    "bytes": int,
    "gb_per_s": float,
    "gb_per_s_low": float,
    "gb_per_s_high": float,
    "percent_of_bound": float,
    "latency_bytes": int,
    "latency_seconds": float,
    "latency_seconds_low": float,
    "latency_seconds_high": float,
    "cached": bool,
}
"""The bandwidth at the largest size that was measured if that is 64 KiB or more, and the latency at
the smallest if that is 4 KiB or less. ``cached`` is true if a cache can hold the bytes that the
bandwidth is of."""


class NoSuchPath(WaywiserError, KeyError):
    """A path that a profile has not measured, or a pattern that several paths match."""

    __str__ = Exception.__str__


class ProfileView:
    """A profile as it was when it was opened; the file is not kept open.

    A bandwidth is in GB/s (10^9 bytes per second) at the median time, a time is in seconds, and
    ``low`` and ``high`` are the ends of the 95 % interval. The numbers are those of
    ``waywiser show --json`` and ``waywiser export``.
    """

    def __init__(self, profile: Profile) -> None:
        """Use `read_profile`."""
        self._profile = profile
        self._frame = SeriesFrame.read(profile)
        self.path: str = str(profile.path)
        """The file."""
        self.machine: Machine = profile.machine
        """The machine that was measured."""
        self.created: str = profile.created
        """UTC, ISO 8601."""
        self.environment: dict[str, Any] = profile.environment
        """What could explain a number, as the latest run found it."""
        self._subject = Subject.of(profile, self._frame)
        self.overview: Overview = self._subject.overview
        """What ``waywiser show --json`` writes."""
        self.node: Subject = subject_of(profile, self._frame)
        """What comparisons read."""

    def __fspath__(self) -> str:
        """The file, for functions that take files."""
        return self.path

    @cached_property
    def series(self) -> DataTable:
        """One row per series, by curve, then by size; those that were not measured too."""
        rows = series_rows(self.overview.series, self._frame, self.machine)
        return DataTable.of("series", SERIES_TYPES, rows)

    @cached_property
    def samples(self) -> DataTable:
        """One row per sample, with the columns of ``waywiser export``. The rows are unpacked anew
        whenever they are read."""
        return DataTable(
            "samples",
            SAMPLE_TYPES,
            lambda: rows_of_series(self._with_samples(), self.overview.sides, self.machine),
            lambda: int(self._frame.taken.sum()),
        )

    def headline(self) -> DataTable:
        """The headline paths and reads of files, by group; if there are none, the fastest path of
        each family."""
        return DataTable.of(
            "headline",
            HEADLINE_TYPES,
            map(_headline_cells, self._headlines),
        )

    def curve(self, path: str) -> DataTable:
        """One row per size of a path.

        ``path`` is the path as a table has it, or words or a glob that only one path matches, as in
        ``waywiser show --only``. Raises `NoSuchPath`.
        """
        found = self.measured_curve(path)
        rows = ((point.bytes, *measured_cells(point)) for point in found.measured)
        return DataTable.of(found.name, CURVE_TYPES, rows)

    def plot(self, *paths: str, quantity: CurveQuantity = "bandwidth", title: str = "") -> Figure:
        """A figure of one or several paths over size: points with their intervals, and lines
        between neighbouring sizes of a sweep. Without ``paths`` it has the first path of each kind
        of headline path, of at most eight kinds. ``quantity`` is ``bandwidth`` or
        ``latency``.

        Raises `NoSuchPath`, `NothingToPlot`, `MissingPackage` without matplotlib.
        """
        optional("matplotlib", "plot()")
        from waywiser.notebook.curve_figure import curve_figure

        if paths:
            curves = [self.measured_curve(path) for path in paths]
        else:
            rows = headline_rows(self.machine, by_family(self._subject.curves))
            curves = list({row.first.text: row.first for row in rows}.values())[:MOST_CURVES]
        return curve_figure(curves, quantity, title or self.node.name, named=bool(paths))

    def shown(self, *, all: bool = False) -> VerbResult:
        """What ``waywiser survey`` prints at its end: that of `waywiser.show`, with the headline
        paths last. ``all``: all curves."""
        from waywiser.notebook.show_call import show_file

        return show_file(self.path, everything=all, headline_last=True)

    def placement(self) -> Placement:
        """Where to put buffers and threads, and which GPUs to use together, each with the cost of
        the worst choice. ``print(profile.placement())`` shows the sentences."""
        from waywiser.analysis.questions.placement_answer import placement

        return placement(self._subject)

    def measured_curve(self, path: str) -> Curve:
        """The measured series of a path. Raises `NoSuchPath`."""
        if not isinstance(path, str):
            raise NoSuchPath(f"{path!r} is no path", remedy="write it as a table has it")
        known = self._subject.curves
        found = [curve for curve in known if path == curve.text]
        found = found or [curve for curve in known if path == curve.name]
        found = found or [
            self._by_text[row.first.text]
            for row in self._headlines
            if path.casefold() == row.group.casefold()
        ]
        machine = self.machine
        found = found or [c for c in known if matches_any(texts_of(c.workload, machine), [path])]
        if len(found) == 1:
            return found[0]
        if found:
            some = "; ".join(nearest(path, _with_terms(found, machine)))
            raise NoSuchPath(f"{len(found)} paths match {path!r}", remedy=f"name one of: {some}")
        if reason := self._why_not_measured(path):
            raise NoSuchPath(f"{path} was not measured", remedy=reason)
        near = suggestion(path, _with_terms(known, machine)) or "nothing was measured"
        raise NoSuchPath(f"{self.path} has no path {path!r}", remedy=near)

    def _why_not_measured(self, path: str) -> str:
        """The reason why a path has no time; empty if the profile does not know the path."""
        for row in self.series:
            if path in (row.path, row.curve) and row.not_measured:
                return str(row.not_measured)
        unsupported_paths = (
            group.reason for group in self.overview.unsupported_paths if path in group.members
        )
        return next(unsupported_paths, "")

    def policy(self) -> Policy:
        """Which method is fastest for each kind of copy, by its size: what ``waywiser advise``
        writes; ``to_json()`` is the content of the file. Raises `PolicyError` if no method of the
        transfer library was measured."""
        from waywiser.analysis.policy.build import build_policy

        return build_policy([self._subject])

    def advise(
        self,
        source: str,
        destination: str,
        bytes: int | str,
        *,
        count: int = 1,
        host_contiguous: bool = False,
        peers_idle: bool = False,
        max_threads: int | None = None,
        polite: bool = False,
        beside: str = "",
    ) -> Advice:
        """The method to use for one copy, as ``waywiser advise`` shows it.

        ``source`` and ``destination`` are memories, ``pageable@numa:0``. ``bytes`` is a number or
        a text like ``1GiB``; with ``count`` it is the size of each piece, and with
        ``host_contiguous`` the pieces lie one after another in host memory. ``beside`` is a
        collective that runs meanwhile, ``allreduce``. Raises `PolicyError`,
        `NotMeasured` if the profile has no time of such a copy.
        """
        from waywiser.analysis.policy.advice import CopyRequest, advise

        request = CopyRequest.of(
            source,
            destination,
            bytes,
            count=count,
            host_contiguous=host_contiguous,
            peers_idle=peers_idle,
            max_threads=max_threads,
            polite=polite,
            beside=beside,
        )
        return advise([self._subject], request)

    def predict(
        self, *workloads: str, changes: Sequence[str] = (), messages: int = 1
    ) -> Prediction:
        """What transfers take that start together, as ``waywiser predict`` shows it.

        ``workloads`` are texts with sizes, ``'h2d pinned gpu:0 of 50MiB'``; ``changes`` are as
        ``--set`` takes them, ``'PCIe to gpu:*=126GB/s'``; each transfer is made ``messages`` times.
        Raises `ModelError`, and `WordError` for a text that names no transfers.
        """
        from waywiser.measure.plan.requested_workloads import named_workload_of
        from waywiser.model.predicted import predicted
        from waywiser.model.whatif import MachineChanges

        assumed = MachineChanges.parse(changes)
        with Profile.open(self.path) as profile:
            workload = named_workload_of("; ".join(workloads), profile)
            return predicted(profile, workload, assumed, messages)

    @cached_property
    def _by_text(self) -> dict[str, Curve]:
        return {curve.text: curve for curve in self._subject.curves}

    @cached_property
    def _headlines(self) -> list[HeadlineRow]:
        """One for each headline path, by group."""
        return headline_path_rows(self.machine, by_family(self._subject.curves))

    def _with_samples(self) -> Iterator[Series]:
        for workload, _, of in self._frame.series:
            rows = self._frame.visits[of]
            yield Series(workload, tuple(self._profile.visit_of(row, workload) for row in rows))

    def __repr__(self) -> str:
        return f"{visible(self.path)}: {visible(self._described())}"

    def _repr_html_(self) -> str:
        """What a notebook shows: the machine and the headline paths."""
        lines = [
            f"<p><b>{html.escape(visible(self.node.name))}</b>, {html.escape(self.created)}</p>",
            f"<p>{html.escape(visible(self._described()))}</p>",
        ]
        if self._headlines:
            columns = ("", "path", "size", "GB/s", "±", "of the bound", "latency")
            lines.append(html_table(columns, map(_headline_texts, self._headlines)))
        return "".join(lines)

    def _described(self) -> str:
        """``2 NVIDIA H200, Intel Xeon 8468; 740 series of 62 curves, 726 converged``."""
        gpus = Counter(gpu.name for gpu in self.machine.gpus)
        parts = [f"{number} {name}" for name, number in gpus.items()]
        parts += [self.machine.cpu_model] if self.machine.cpu_model else []
        said = self.overview.summary
        what = (
            f"{count(said.series, 'series')} of {count(said.curves, 'curve')}, "
            f"{said.converged} converged"
        )
        return "; ".join(filter(None, (", ".join(parts), what)))


def read_profile(path: str | os.PathLike[str]) -> ProfileView:
    """Reads the whole file and closes it. Raises `ProfileError`."""
    if not isinstance(path, (str, os.PathLike)):
        raise ProfileError(
            f"{path!r} is not the path of a profile", remedy="write waywiser.open('machine.wwp')"
        )
    with Profile.open(path) as profile:
        return ProfileView(profile)


def _labels(curves: Sequence[Curve]) -> list[str]:
    """What distinguishes these curves: their names, or their full texts if names are the same."""
    names = [curve.name for curve in curves]
    return names if len(set(names)) == len(names) else [curve.text for curve in curves]


def _with_terms(curves: Sequence[Curve], machine: Machine) -> list[str]:
    """The same, and again after the terms of the field that apply to each."""
    labels = _labels(curves)
    pairs = zip(curves, labels, strict=True)
    terms = (with_terms(curve.workload, label, machine) for curve, label in pairs)
    return [*labels, *chain.from_iterable(terms)]


def _headline_cells(row: HeadlineRow) -> tuple[Any, ...]:
    """The columns of `HEADLINE_TYPES`."""
    large, small = row.large, row.small
    bandwidth: tuple[Any, ...] = (None,) * 5
    if large is not None:
        bandwidth = (large.bytes, *rate_cells(large), percent_of_bound(large))
    latency: tuple[Any, ...] = (None,) * 4
    if small is not None and small.estimate is not None:
        latency = (small.bytes, small.estimate.median, *interval_cells(small.estimate.interval))
    return (row.group, row.first.name, *bandwidth, *latency, row.cached)


def _headline_texts(row: HeadlineRow) -> tuple[str, ...]:
    """The same as people read it, with the digits that are known."""
    large, small = row.large, row.small
    bandwidth: tuple[str, ...] = ("",) * 4
    if large is not None and large.estimate is not None:
        share, relative = large.of_bound, large.estimate.relative
        bandwidth = (
            row.at,
            format_rate(large.rate, relative),
            format_relative(relative),
            "" if share is None else f"{share:.0%}",
        )
    latency = ""
    if small is not None and small.estimate is not None:
        latency = format_time(small.estimate.median, small.estimate.relative)
    return (row.group, visible(row.first.name), *bandwidth, latency)
