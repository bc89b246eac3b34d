"""A survey: looks at the machine, plans, measures, and keeps every visit at once in a profile.

This is the one module that ties hardware, plan, probe and profile together. It prints nothing:
its caller watches.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import msgspec

from waywiser.curves import imported_from
from waywiser.machine import CpuLoad, Machine, find_nccl, native, require_real
from waywiser.machine.cpu_load import ENTRY as LOAD_ENTRY
from waywiser.machine.cpu_load import CpuLoadWatch
from waywiser.machine.environment import environment, message_variables
from waywiser.machine.file_places import same_places
from waywiser.machine.filesystem import filesystem_of
from waywiser.machine.health import HealthWatch
from waywiser.machine.nccl_library import VARIABLE as NCCL_VARIABLE
from waywiser.measure.plan.evidence import located_cpus, located_memories
from waywiser.measure.plan.outlook import Outlook, outlook
from waywiser.measure.plan.plan import Plan, make_plan
from waywiser.measure.plan.preset import Request
from waywiser.measure.plan.schedule import Schedule, Settle
from waywiser.measure.probe.environment import PROCESS_ENVIRONMENT
from waywiser.measure.probe.options import ProbeOptions
from waywiser.measure.probe.sharing import SurveyLock, workers_together
from waywiser.measure.probe.supervisor import Progress, run_orders
from waywiser.measure.probe.worker_process import LimitReached
from waywiser.measure.ranks.world import RankTeams
from waywiser.measure.scope import (
    MachineSelection,
    MissingGpus,
    Scope,
    live_machine,
    read_scope,
    require_answers,
    with_nccl,
)
from waywiser.measure.who_copies import observe_planned_copies
from waywiser.profile import (
    NotReadable,
    NotWritable,
    Profile,
    WritableProfile,
    is_finished,
    resume_command,
)
from waywiser.version import __version__
from waywiser.words import Order, Process, Value, Visit, WaywiserError


class SurveyError(WaywiserError):
    """A survey that cannot be made or continued."""


class Interrupted(SurveyError):
    """Stopped from outside; what was finished is in the profile."""

    exit_code = 130


class SurveyEstimate(Value, frozen=True):
    """What was said before the work started."""

    series: int
    visits: int
    buffer_bytes: int
    seconds: float

    @classmethod
    def of(cls, plan: Plan, expected: Outlook) -> SurveyEstimate:
        return cls(len(plan.points), plan.visits, plan.buffer_bytes, expected.seconds)


FORMER_SELECTION = "wishes"
"""What profiles of earlier versions call `KeptPlan.selection`."""


class KeptPlan(Value, frozen=True):
    """What a profile keeps of its plan: with the machine beside it, the same plan again."""

    request: Request
    selection: MachineSelection
    estimate: SurveyEstimate
    waywiser: str = __version__
    validation: tuple[str, ...] = ()
    """Identities of the series that models are compared with, and never fitted to."""


@dataclass(frozen=True)
class Survey:
    """A survey ready to be made."""

    scope: Scope
    selection: MachineSelection
    plan: Plan

    @property
    def machine(self) -> Machine:
        return self.scope.machine

    @property
    def estimate(self) -> SurveyEstimate:
        return SurveyEstimate.of(self.plan, self.outlook)

    @cached_property
    def outlook(self) -> Outlook:
        return outlook(self.plan)


class VisitWatcher(Protocol):
    """Receives the progress of visits."""

    def progress(self, progress: Progress) -> None:
        """The estimate of the visit that is being measured."""

    def visit(self, visit: Visit) -> None:
        """A visit that is finished and stored."""


class OrderSource(Iterable[Order], Protocol):
    """Gives orders, one at a time."""

    def record(self, visit: Visit) -> None:
        """Takes note of what a visit found."""

    def coming(self) -> Sequence[Process]:
        """The processes to start together with that of the last order, in their order."""


class Watcher(VisitWatcher, Protocol):
    """Receives the progress of a survey."""

    def begin(self, plan: Plan, finished: Iterable[Visit]) -> None:
        """Once, before anything is measured; ``finished`` are visits of earlier runs."""


def prepare(request: Request, selection: MachineSelection, *, expect_gpus: int = 0) -> Survey:
    """Looks at the machine and plans. Measures nothing, writes nothing.

    Raises `WaywiserError`: bad requests, nothing to measure, fewer GPUs than expected, a registry
    that is missing.
    """
    scope = read_scope(selection, request.texts)
    if len(scope.machine.gpus) < expect_gpus:
        why = scope.machine.gpu_reason or "; ".join(
            f"{r.path} {r.reason}" for r in scope.unsupported_paths
        )
        expected = "1 GPU is" if expect_gpus == 1 else f"{expect_gpus} GPUs are"
        raise MissingGpus(
            f"{expected} expected and {len(scope.machine.gpus)} can be measured",
            remedy=why or "see 'waywiser topology'",
        )
    request = msgspec.structs.replace(request, memory_bytes=scope.memory_bytes)
    plan = nonempty_plan(scope.machine, request)
    return Survey(with_nccl(scope, plan), selection, plan)


def nonempty_plan(machine: Machine, request: Request) -> Plan:
    """The plan of a survey. Raises `SurveyError` if it measures nothing."""
    plan = make_plan(machine, request)
    if not plan.points:
        unsupported = plan.unsupported_paths[-1:]
        nothing = "no size fits the paths that --only selects"
        why = unsupported[0].reason if unsupported else nothing
        if not machine.numa:
            why = _why_no_node(machine)
        raise SurveyError("nothing is left to measure", remedy=why)
    return plan


def _why_no_node(machine: Machine) -> str:
    skipped = "; ".join(note for note in machine.notes if note.startswith("numa:"))
    return f"no NUMA node can be used: {skipped or 'the system shows none'}"


def require_free_host() -> None:
    """Raises `waywiser.measure.probe.sharing.SharingError` if another survey runs here now."""
    with SurveyLock():
        pass


def start(
    survey: Survey,
    file: Path,
    watcher: Watcher,
    *,
    command: Sequence[str] = (),
    settle: Settle | None = None,
) -> None:
    """Makes the survey into a new profile. ``settle`` names, after each round of processes, the
    curves that need no further one.

    Raises `WaywiserError`: the file exists, another survey runs here; `Interrupted`.
    """
    plan, selection = survey.plan, survey.selection
    kept = KeptPlan(plan.request, selection, survey.estimate, validation=plan.validation)
    with SurveyLock():
        profile = WritableProfile.create(
            file,
            survey.machine,
            run_environment(survey.scope),
            plan_json=msgspec.json.encode(kept),
            unsupported_paths=(*survey.scope.unsupported_paths, *plan.unsupported_paths),
            command=command,
        )
        with _removed_if_empty(file), _resumable(), profile:
            _measure(profile, survey.machine, plan, (), watcher, survey.scope.teams, settle)


@contextmanager
def _resumable() -> Iterator[None]:
    """What was finished is stored when a disk is full or fails, or a limit is met: a resume goes
    on."""
    try:
        yield
    except (NotReadable, NotWritable, LimitReached) as error:
        remedy = ", ".join(filter(None, (error.remedy, "then --resume")))
        raise type(error)(error.what, where=error.where, remedy=remedy) from error


@contextmanager
def _removed_if_empty(file: Path) -> Iterator[None]:
    """Removes the profile after an error before anything was measured, so that the same command
    can be given again with another launcher."""
    try:
        yield
    except Interrupted:
        raise
    except WaywiserError:
        with suppress(WaywiserError, OSError):  # the first error counts
            with Profile.open(file) as profile:
                is_empty = next(iter(profile.visits()), None) is None
            if is_empty:
                file.unlink()
        raise


def resume(file: Path, watcher: Watcher, *, command: Sequence[str] = ()) -> None:
    """Goes on with the survey in a profile, by its own plan, measuring only what is missing.

    Raises `WaywiserError`: no such profile, another machine, another survey runs; `Interrupted`.
    """
    with Profile.open(file) as before:
        machine = before.machine
        require_real(machine, str(file), allowed="emulated")
        kept = kept_plan_of(before)
    with SurveyLock():
        live = live_machine()
        require_answers(live, kept.selection)
        require_same(machine, live, file)
        scope = read_scope(kept.selection, kept.request.texts)
        require_usable(machine, scope, file)
        plan = make_plan(machine, kept.request)
        scope = with_nccl(scope, plan)
        require_same_libraries(machine, scope.machine, file)
        profile = WritableProfile.resume(file, run_environment(scope), command=command)
        with _resumable(), profile:
            _measure(
                profile,
                machine,
                plan,
                list(profile.visits()),
                watcher,
                scope.teams,
            )


def _measure(
    profile: WritableProfile,
    machine: Machine,
    plan: Plan,
    visits: Sequence[Visit],
    watcher: Watcher,
    teams: RankTeams | None,
    settle: Settle | None = None,
) -> None:
    """``visits`` are those of the profile."""

    def skip(visit: Visit) -> None:
        profile.commit_later(visit)
        watcher.visit(visit)

    finished = [visit for visit in visits if is_finished(visit)]
    options = probe_options(plan, machine, first_worker=next_worker(profile, visits))
    schedule = Schedule(
        plan, finished=finished, on_skip=skip, together=options.together, settle=settle
    )
    watcher.begin(plan, finished)
    with interrupts_stored(
        profile, f"go on with: {resume_command(str(profile.path))}", plan.visits
    ):
        observe_planned_copies(profile, machine, plan, options)
        measure_orders(profile, machine, schedule, options, watcher, teams)


def probe_options(plan: Plan, machine: Machine, **other: Any) -> ProbeOptions:
    """How workers measure a plan; ``other`` are further fields of `ProbeOptions`."""
    gpus = sorted(frozenset().union(*(point.gpus for point in plan.points)))
    return ProbeOptions(
        memory_bytes=plan.buffer_bytes,
        together=1 if machine.ranks else workers_together(machine, gpus, plan.buffer_bytes),
        gpus=tuple(gpus),
        sides=len(machine.gpus) > 1,
        located=() if machine.ranks else located_memories(machine),
        located_cpus=located_cpus(machine),
        **other,
    )


@contextmanager
def interrupts_stored(profile: WritableProfile, remedy: str, visits: int = 0) -> Iterator[None]:
    """Stores what was measured, and raises `Interrupted`, if the user interrupts. ``visits`` are
    those of the whole plan, if their number is known."""
    try:
        yield
    except KeyboardInterrupt:
        profile.commit_waiting()
        done = (
            f"{len(profile.finished())} of {visits} visits are"
            if visits
            else "what was measured is"
        )
        raise Interrupted(
            f"interrupted: {done} stored", where=str(profile.path), remedy=remedy
        ) from None


def next_worker(profile: Profile, visits: Iterable[Visit]) -> int:
    """The number of the next worker process; ``visits`` are those of the profile."""
    known = [visit.worker for visit in visits] + [each.worker for each in profile.localities()]
    return max(known, default=0) + 1


def measure_orders(
    profile: WritableProfile,
    machine: Machine,
    orders: OrderSource,
    options: ProbeOptions,
    watcher: VisitWatcher,
    teams: RankTeams | None = None,
) -> None:
    """Measures the orders with workers, and stores the visits, what workers find out about memory,
    the error counters of the GPUs, and how much other programs use the CPUs."""

    def store(visit: Visit) -> None:
        profile.commit_visit(visit)
        orders.record(visit)
        load.store_if_due()
        watcher.visit(visit)

    load = _StoredLoad(profile, are_own=teams is None or teams.are_descendants)
    with _health_read(profile, machine), closing(load):
        run_orders(
            orders,
            machine,
            options=options,
            on_visit=store,
            on_progress=watcher.progress,
            on_locality=profile.commit_locality,
            teams=teams,
            coming=orders.coming,
        )


LOAD_SECONDS = 30.0
"""How often the load is stored, so that a survey that is killed has one too."""


class _StoredLoad:
    """The load by other programs during a run, which its profile holds; stored when closed."""

    def __init__(self, profile: WritableProfile, *, are_own: bool) -> None:
        """``are_own`` says whether all that measure are descendants of this process."""
        self._profile = profile
        self._are_own = are_own
        self._watch = CpuLoadWatch()
        self._due = time.monotonic() + LOAD_SECONDS

    def store_if_due(self) -> None:
        if time.monotonic() >= self._due:
            self.close()
            self._due = time.monotonic() + LOAD_SECONDS

    def close(self) -> None:
        found = self._watch.read()
        if not self._are_own:
            why = "ranks by --launcher: their CPU time cannot be separated from that of others"
            found = CpuLoad(found.seconds, found.cpus, source=why)
        self._profile.commit_environment({LOAD_ENTRY: msgspec.to_builtins(found)})


@contextmanager
def _health_read(profile: WritableProfile, machine: Machine) -> Iterator[None]:
    """Stores what the error counters of the GPUs show before and after."""
    if not machine.gpus:
        yield
        return
    with HealthWatch(machine.gpus) as watch:
        profile.commit_health(watch.read(), "start")
        try:
            yield
        finally:
            profile.commit_health(watch.read(), "end")


def run_environment(scope: Scope) -> dict[str, Any]:
    """What could explain a number that is measured now."""
    library = native.load()
    return {
        **environment(),
        "backend": library.backend,
        "cuda_runtime": library.runtime_version,
        "hwloc": library.hwloc_version,
        "worker_variables": dict(PROCESS_ENVIRONMENT),
        "files": {
            file.name: {"path": file.path, **filesystem_of(file.path).facts}
            for file in scope.machine.files
        },
        "notes": [*scope.machine.notes, *scope.notes],
    } | _of_libraries(scope)


def _of_libraries(scope: Scope) -> dict[str, Any]:
    """The library of messages of a survey with ranks, and the NCCL that it measures."""
    found: dict[str, Any] = {}
    if scope.teams is not None:
        library = scope.teams.library
        found["messages"] = {
            "library": library.text,
            "mpicc": library.mpicc.path,
            "variables": message_variables(os.environ),
        }
    nccl = find_nccl() if scope.machine.nccl else None
    if nccl is not None:
        found["nccl"] = {
            "version": scope.machine.nccl, "path": nccl.path, "found_by": nccl.found_by
        }  # fmt: skip
    return found


def kept_plan_of(profile: Profile) -> KeptPlan:
    """Raises `SurveyError` for a profile that no survey of this version made."""
    try:
        stored = msgspec.json.decode(profile.plan_json)
        if isinstance(stored, dict) and FORMER_SELECTION in stored:
            stored["selection"] = stored.pop(FORMER_SELECTION)
        return msgspec.convert(stored, KeptPlan)
    except (msgspec.MsgspecError, RecursionError) as error:
        if tools := imported_from(profile.environment):
            raise SurveyError(
                f"its numbers are imported from {' and '.join(tools)}: no survey made it",
                where=str(profile.path),
                remedy="name a profile that waywiser survey made on this machine",
            ) from error
        raise SurveyError(
            f"it has no plan of a survey ({error})",
            where=str(profile.path),
            remedy="resume it with the command and the version of Waywiser that made it",
        ) from error


def require_same(measured: Machine, live: Machine, file: Path) -> None:
    """Raises if the profile's machine is not this one."""
    if measured.hostname != live.hostname:
        raise SurveyError(
            f"it is of the machine {measured.hostname}, this is {live.hostname}",
            where=str(file),
            remedy=f"resume it on {measured.hostname}, or survey this machine into a new file",
        )
    uuids = {gpu.index: gpu.uuid for gpu in live.gpus}
    for gpu in measured.gpus:
        if uuids.get(gpu.index) != gpu.uuid:
            raise SurveyError(
                f"its gpu:{gpu.index} is {gpu.uuid}, here it is {uuids.get(gpu.index, 'missing')}",
                where=str(file),
                remedy="make the same GPUs visible (CUDA_VISIBLE_DEVICES), or survey again",
            )


def require_same_libraries(measured: Machine, live: Machine, file: Path) -> None:
    """Raises if messages or collectives would be those of another library than the profile's."""
    for what, before, now, remedy in (
        (
            "MPI library",
            measured.messages,
            live.messages,
            "name its mpicc in WAYWISER_MPICC or first in PATH",
        ),
        ("NCCL", measured.nccl, live.nccl, f"name it in {NCCL_VARIABLE}"),
    ):
        if before and before != now:
            raise SurveyError(
                f"its {what} is {before}, here it is {now or 'unknown'}",
                where=str(file),
                remedy=f"{remedy}, or survey into a new file",
            )


def require_usable(measured: Machine, scope: Scope, file: Path) -> None:
    """Raises if places of the profile may not be used now."""
    usable = {gpu.index for gpu in scope.machine.gpus}
    for gpu in measured.gpus:
        if gpu.index not in usable:
            why = next(
                (r.reason for r in scope.unsupported_paths if r.path == f"gpu:{gpu.index}"), ""
            )
            raise SurveyError(
                f"gpu:{gpu.index} cannot be measured now",
                where=str(file),
                remedy=why or scope.machine.gpu_reason,
            )
    if reason := same_places(measured.files, scope.machine.files):
        raise SurveyError(
            reason, where=str(file), remedy="bring it back as it was, or survey again"
        )
    cpus = {cpu for node in scope.machine.numa for cpu in node.cpus}
    missing = sorted({cpu for node in measured.numa for cpu in node.cpus} - cpus)
    if missing:
        raise SurveyError(
            f"it was measured on CPUs that may not be used now, as {missing[0]}",
            where=str(file),
            remedy="give the process the same CPUs (taskset, cpuset), or survey again",
        )
