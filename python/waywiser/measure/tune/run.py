"""Tunes this machine: finds what to search, measures it with the workers of a survey, and keeps
every visit at once in a profile. It prints nothing: its caller watches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import msgspec

from waywiser.machine import Machine, require_real
from waywiser.measure.probe.options import MEASURE, ProbeOptions
from waywiser.measure.probe.sharing import SurveyLock
from waywiser.measure.scope import MachineSelection, Scope, live_machine, read_scope
from waywiser.measure.survey_run import (
    SurveyError,
    VisitWatcher,
    interrupts_stored,
    kept_plan_of,
    measure_orders,
    next_worker,
    require_same,
    require_usable,
    run_environment,
)
from waywiser.measure.tune.search import Configuration, SearchAxis
from waywiser.measure.tune.targets import (
    Configurator,
    Target,
    Targets,
    TuneRequest,
    find_targets,
    fitting,
)
from waywiser.measure.tune.tuner import REPORTED, ROUNDS, Tuned, Tuner, grid_points
from waywiser.profile import Profile, WritableProfile, is_finished
from waywiser.profile.planned import TUNING
from waywiser.words import Unsupported, Value, Visit

LEAST_BUFFER_BYTES = 256 * 2**20
"""Workers may use so much for buffers at least."""


class GridNote(Value, frozen=True):
    """The configurations of one path and size in a grid. A later version may search others."""

    default: str
    """The identity of the series with default settings."""
    axes: tuple[SearchAxis, ...]
    configurations: dict[str, Configuration]
    """By the identity of their series."""


class TuneNote(Value, frozen=True, forbid_unknown_fields=False):
    """What a run of a tuning was, stored in the environment of the run."""

    request: TuneRequest
    selection: MachineSelection
    first_block: int
    """The number of its first process."""
    grids: tuple[GridNote, ...] = ()
    """What it measures if it is not a search but a grid."""

    @property
    def end_block(self) -> int:
        """The number after that of its last process."""
        return self.first_block + (self.request.grid or ROUNDS + REPORTED)


@dataclass(frozen=True)
class Tuning:
    """A tuning that is ready to be measured."""

    scope: Scope
    machine: Machine
    """That of the profile, if there is one already."""
    note: TuneNote
    configurator: Configurator
    targets: tuple[Target, ...]
    """Those that fit into the budget."""
    cut: tuple[Target, ...]
    """Those that do not."""
    unsupported: tuple[Unsupported, ...]
    seconds: float
    """About how long the targets take."""
    all_seconds: float
    """The same with those that do not fit."""
    budget_seconds: float
    exists: bool
    """Whether the profile exists already."""

    def tuner(self, finished: Sequence[Visit] = ()) -> Tuner:
        return Tuner(
            self.targets,
            self.configurator,
            self.machine,
            first_block=self.note.first_block,
            budget_seconds=self.budget_seconds,
            seed=self.note.request.seed,
            grid=self.note.request.grid,
            finished=finished,
        )

    def probe_options(self, worker: tuple[str, ...], first_worker: int) -> ProbeOptions:
        """How workers measure it. ``worker`` is their command, ``first_worker`` the number of the
        first."""
        return ProbeOptions(
            memory_bytes=max(self.buffer_bytes, LEAST_BUFFER_BYTES),
            command=worker,
            first_worker=first_worker,
            sides=len(self.machine.gpus) > 1,
        )

    @property
    def buffer_bytes(self) -> int:
        """The most that the buffers and the staging memory of a workload take."""
        points = (grid_points(target, self.configurator).values() for target in self.targets)
        return max((point.buffer_bytes for point in chain(*points)), default=0)

    @property
    def grids(self) -> tuple[GridNote, ...]:
        """The configurations of each target."""
        return tuple(
            GridNote(
                target.point.identity,
                target.axes,
                {
                    point.identity: configuration
                    for configuration, point in grid_points(target, self.configurator).items()
                },
            )
            for target in self.targets
        )


def prepare_tuning(
    file: Path, request: TuneRequest, selection: MachineSelection, budget_seconds: float
) -> Tuning:
    """Looks at the machine and at the profile, if it exists, and chooses what to search. Measures
    nothing, writes nothing.

    Raises `WaywiserError`: a profile of another machine, patterns that match nothing, nothing to
    search.
    """
    before = _Before.read(file, request, selection) if file.exists() else None
    if before:
        selection = before.selection
        require_same(before.machine, live_machine(), file)
    scope = read_scope(selection, request.paths)
    if before:
        require_usable(before.machine, scope, file)
    machine = before.machine if before else scope.machine
    request = msgspec.structs.replace(
        request, memory_bytes=min(request.memory_bytes, scope.memory_bytes)
    )
    found = find_targets(machine, request)
    configurator = Configurator(machine, request.memory_bytes)
    trial = Tuner(found.targets, configurator, machine, grid=request.grid)
    seconds = {t.point.identity: trial.expected_seconds(t) for t in found.targets}
    kept, cut = fitting(found.targets, seconds, budget_seconds - trial.processes_seconds)
    if not kept:
        raise _nothing_left(found, cut, min(seconds.values(), default=0) + trial.processes_seconds)
    return Tuning(
        scope,
        machine,
        TuneNote(request, selection, before.first_block if before else 0),
        configurator,
        tuple(kept),
        tuple(cut),
        found.unsupported,
        sum(seconds[each.point.identity] for each in kept) + trial.processes_seconds,
        sum(seconds.values()) + trial.processes_seconds,
        budget_seconds,
        before is not None,
    )


class _Before(NamedTuple):
    """What a profile that exists says of its machine."""

    machine: Machine
    selection: MachineSelection
    first_block: int
    """The first block of this tuning: after all others, or that of the same one before."""

    @classmethod
    def read(cls, file: Path, request: TuneRequest, selection: MachineSelection) -> _Before:
        """Raises `WaywiserError` for a simulated machine and for another selection."""
        with Profile.open(file) as profile:
            machine = profile.machine
            require_real(machine, str(file), allowed="emulated")
            notes = _notes(profile)
            same = next((n for n in reversed(notes) if _is_alike(n.request, request)), None)
            stored = same or next(reversed(notes), None)
            own = stored.selection if stored else kept_plan_of(profile).selection
            _require_agreement(selection, own, file)
            if same is not None:
                return cls(machine, own, same.first_block)
            rows = profile.visit_rows()
            last = max((row.block for row in rows), default=-1)
            # An interrupted tuning goes on with the blocks after its own.
            return cls(machine, own, max((last + 1, *(n.end_block for n in notes))))


def _nothing_left(found: Targets, cut: Sequence[Target], least: float) -> SurveyError:
    """``least`` is how long the shortest search takes."""
    why = found.unsupported[-1].reason if found.unsupported else "see 'waywiser survey --list'"
    if cut:
        why = f"the shortest search takes about {least:.0f} s: write --budget {least:.0f}"
    return SurveyError("nothing is left to tune", remedy=why)


def tune(
    tuning: Tuning,
    file: Path,
    watcher: VisitWatcher,
    *,
    command: Sequence[str] = (),
    worker: tuple[str, ...] = MEASURE,
) -> Tuner:
    """Measures what is missing, into a new profile or into one that exists; the tuner then has the
    results. ``worker`` is the command of a worker.

    Raises `WaywiserError`: another survey runs here; `Interrupted`.
    """
    note = tuning.note
    if note.request.grid:
        note = msgspec.structs.replace(note, grids=tuning.grids)
    environment = {**run_environment(tuning.scope), TUNING: msgspec.to_builtins(note)}
    with SurveyLock(), _opened(tuning, file, environment, command) as profile:
        visits = list(profile.visits())
        tuner = tuning.tuner(list(filter(is_finished, visits)))
        options = tuning.probe_options(worker, next_worker(profile, visits))
        with interrupts_stored(profile, "the same command goes on with the rest"):
            measure_orders(profile, tuning.machine, tuner, options, watcher, tuning.scope.teams)
    return tuner


def tuned_results(file: Path) -> list[Tuned]:
    """What the searches in a profile found. Measures nothing."""
    with Profile.open(file) as profile:
        machine = profile.machine
        note = next((n for n in reversed(_notes(profile)) if not n.request.grid), None)
        visits = list(profile.visits())
    if note is None:
        return []
    tuner = Tuner(
        find_targets(machine, note.request).targets,
        Configurator(machine, note.request.memory_bytes),
        machine,
        first_block=note.first_block,
        seed=note.request.seed,
        finished=filter(is_finished, visits),
        budget_seconds=0.0,
    )
    for _ in tuner:
        raise AssertionError("nothing is measured without a budget")
    return tuner.results()


def _opened(
    tuning: Tuning, file: Path, environment: dict[str, object], command: Sequence[str]
) -> WritableProfile:
    if tuning.exists:
        return WritableProfile.resume(file, environment, command=command)
    return WritableProfile.create(
        file,
        tuning.machine,
        environment,
        unsupported_paths=(*tuning.scope.unsupported_paths, *tuning.unsupported),
        command=command,
    )


def _require_agreement(given: MachineSelection, own: MachineSelection, file: Path) -> None:
    """Raises `SurveyError` for an option that differs from the selection in the profile. Options
    that were not given agree."""
    usual = MachineSelection()
    options = {"gpus": "--gpus", "share": "--share", "files": "--file", "scratch": "--scratch",
               "ranks": "--ranks", "ranks_per_gpu": "--ranks-per-gpu", "mpicc": "--mpicc",
               "rank_cpus": "--rank-cpus", "launcher": "--launcher"}  # fmt: skip
    for name, option in options.items():
        value = getattr(given, name)
        if value not in (getattr(usual, name), getattr(own, name)):
            raise SurveyError(
                f"the profile was measured with another {option}",
                where=str(file),
                remedy="leave it out, or name a new file",
            )


def _notes(profile: Profile) -> list[TuneNote]:
    """What the runs of a profile searched, in their order."""
    found: list[TuneNote] = []
    for _, environment in sorted(profile.environments.items()):
        if TUNING in environment:
            try:
                found.append(msgspec.convert(environment[TUNING], TuneNote))
            except msgspec.ValidationError:
                continue  # of another version: its series are there all the same
    return found


def _is_alike(one: TuneRequest, other: TuneRequest) -> bool:
    """Whether two requests differ in memory at most: the limit of the system may have changed."""
    return msgspec.structs.replace(one, memory_bytes=other.memory_bytes) == other
