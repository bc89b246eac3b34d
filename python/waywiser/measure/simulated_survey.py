"""A survey of a simulated machine: by the engine of surveys, with workers that simulate.

The profile says in the description of its machine (`waywiser.machine.machine.Machine.simulated`)
of which profile it was made, and with which changes. Simulated visits take no time: the schedule
reads a clock that advances by what the visits would take.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_DNS, uuid5

import msgspec

from waywiser.machine import Gpu, Machine, require_real
from waywiser.machine.machine import SIMULATED_NAME
from waywiser.measure.plan.outlook import outlook
from waywiser.measure.plan.plan import Plan
from waywiser.measure.plan.points import PlannedPoint
from waywiser.measure.plan.preset import Request
from waywiser.measure.plan.schedule import Schedule
from waywiser.measure.probe.options import ProbeOptions
from waywiser.measure.probe.simulate import command as worker_command
from waywiser.measure.probe.supervisor import Supervisor
from waywiser.measure.scope import MachineSelection
from waywiser.measure.survey_run import (
    Interrupted,
    KeptPlan,
    SurveyError,
    SurveyEstimate,
    Watcher,
    nonempty_plan,
    probe_options,
)
from waywiser.model.errors import ModelError
from waywiser.model.machine_model import profile_capacities
from waywiser.model.simulation import SimulatedMachine, Simulation
from waywiser.model.whatif import MachineChanges
from waywiser.profile import Profile, WritableProfile
from waywiser.profile.planned import TUNING, planned
from waywiser.version import __version__
from waywiser.words import MOST_SIMULATED_GPUS, Process, TemporaryFolder, Unsupported, Visit, count

IMPORTED = "imported"
"""The entry of the environment of a profile that was imported."""


@dataclass(frozen=True)
class SimulatedSurvey:
    """A survey of a simulated machine, ready to be made."""

    simulation: Simulation
    plan: Plan
    environment: dict[str, Any]
    original: str
    """When the profile was created of which the machine is."""
    unknown: int = 0
    """Curves of the plan that the model does not know."""

    @property
    def machine(self) -> Machine:
        return self.simulation.changed.machine


def _require_gpus(number: int | None) -> None:
    """Raises `ModelError` for a number of GPUs that cannot be simulated."""
    if number is not None and not 1 <= number <= MOST_SIMULATED_GPUS:
        raise ModelError(
            f"a survey of {number} GPUs cannot be simulated",
            remedy=f"give 1 to {MOST_SIMULATED_GPUS}",
        )


def prepare_simulation(
    file: Path,
    changes: MachineChanges,
    options: Request | None,
    seed: int | None,
    host: str | None = None,
    like: SimulatedSurvey | None = None,
) -> SimulatedSurvey:
    """Fits the model of a profile, changes it and plans. ``options`` is what to survey; by default
    the request of the profile. A machine with a name, ``host``, has GPUs of its own: their UUIDs
    follow from the name. ``like`` is a survey of the same profile, whose model is taken.

    Raises `WaywiserError`: a file that is no profile, no transfers, impossible changes, bad
    requests.
    """
    _require_gpus(changes.gpus)
    with Profile.open(file) as profile:
        require_real(profile.machine, str(file))
        request = options or _request_of(profile)
        measured = like.simulation.measured if like else profile_capacities(profile)
        environment = dict(profile.environment)
        created = profile.created
    if seed is not None:
        request = msgspec.structs.replace(request, seed=seed)
    changed = changes.applied(measured)
    machine = msgspec.structs.replace(
        changed.machine,
        hostname=host or f"{measured.machine.hostname or 'machine'}{SIMULATED_NAME}",
        simulated=_origin(file, measured.machine, created, changes, request.seed),
        gpus=tuple(_of_host(gpu, host) for gpu in changed.machine.gpus),
    )
    changed = msgspec.structs.replace(changed, machine=machine)
    simulation = Simulation(str(file.absolute()), measured, changed, request.seed)
    for entry in (TUNING, IMPORTED):
        environment.pop(entry, None)
    environment.update(waywiser=__version__, backend="simulation")
    whole = nonempty_plan(machine, request)
    plan = _known(whole, SimulatedMachine(simulation))
    unknown = len(plan.unsupported_paths) - len(whole.unsupported_paths)
    return SimulatedSurvey(simulation, plan, environment, created, unknown)


def _origin(file: Path, measured: Machine, created: str, changes: MachineChanges, seed: int) -> str:
    of_machine = f" ({measured.hostname})" if measured.hostname else ""
    origin = " of ".join(filter(None, (f"{file.name}{of_machine}", created[:10])))
    text = f"from {origin}; {str(changes) or 'no changes'}; seed {seed}"
    return text + _not_known(len(measured.gpus), changes.gpus or 0)


def _not_known(measured: int, simulated: int) -> str:
    """What cannot be known of a machine with more GPUs than were measured."""
    if simulated <= measured:
        return ""
    return (
        f"; measured were {count(measured, 'GPU')}, so it is not known whether the others are at a "
        "second socket, or share links that fewer GPUs do not fill"
    )


def _of_host(gpu: Gpu, host: str | None) -> Gpu:
    """The GPU of a simulated host with a name."""
    if not host:
        return gpu
    uuid = f"GPU-{uuid5(NAMESPACE_DNS, f'{host} {gpu.index} {gpu.uuid}')}"
    return msgspec.structs.replace(gpu, uuid=uuid)


def start_simulation(
    survey: SimulatedSurvey, output: Path, watcher: Watcher, *, command: Sequence[str] = ()
) -> None:
    """Makes the survey into a new profile. Raises `WaywiserError`: the file exists;
    `Interrupted`. After an error no file is left: it can be made again."""
    plan, machine = survey.plan, survey.machine
    with TemporaryFolder("waywiser-simulation-") as folder:
        simulation = folder.path / "simulation.json"
        simulation.write_bytes(msgspec.json.encode(survey.simulation))
        options = probe_options(plan, machine, command=worker_command(simulation))
        profile = WritableProfile.create(
            output,
            machine,
            survey.environment,
            plan_json=commission_json(survey),
            unsupported_paths=plan.unsupported_paths,
            command=command,
        )
        try:
            with profile:
                _measure(profile, survey, options, watcher)
        except KeyboardInterrupt:
            output.unlink(missing_ok=True)
            raise Interrupted(
                "interrupted: no profile is kept", remedy="simulate the machine again"
            ) from None
        except BaseException:
            output.unlink(missing_ok=True)
            raise


def commission_json(survey: SimulatedSurvey) -> bytes:
    """What a profile stores of the plan."""
    plan = survey.plan
    estimate = SurveyEstimate.of(plan, outlook(plan))
    selection = MachineSelection(memory_bytes=plan.request.memory_bytes)
    kept = KeptPlan(plan.request, selection, estimate, validation=plan.validation)
    return msgspec.json.encode(kept)


def _known(plan: Plan, machine: SimulatedMachine) -> Plan:
    """The plan without what the model does not know, which is listed with the reasons. Raises
    `SurveyError` if nothing is left."""
    known: list[PlannedPoint] = []
    reasons: dict[str, str] = {}
    for point in plan.points:
        try:
            machine.times(point.workload)
        except ModelError as error:
            reasons.setdefault(point.curve.text, error.what)
        else:
            known.append(point)
    if not known:
        raise SurveyError(
            "the model knows nothing of what is to be measured", remedy=next(iter(reasons.values()))
        )
    measured = {point.curve.text for point in known}
    unsupported = [Unsupported(*each) for each in reasons.items() if each[0] not in measured]
    return replace(
        plan,
        points=tuple(known),
        unsupported_paths=(*plan.unsupported_paths, *unsupported),
    )


class SimulatedClock:
    """Seconds that the visits would have taken."""

    def __init__(self, worker_seconds: float) -> None:
        self._now = 0.0
        self._worker_seconds = worker_seconds
        self._process: Process | None = None

    def __call__(self) -> float:
        return self._now

    def took(self, visit: Visit, process: Process) -> None:
        """Advances by a visit, and by the start of a worker if it is another process."""
        self._now += visit.elapsed_seconds
        if process != self._process:
            self._process = process
            self._now += self._worker_seconds


def _measure(
    profile: WritableProfile, survey: SimulatedSurvey, options: ProbeOptions, watcher: Watcher
) -> None:
    def skip(visit: Visit) -> None:
        profile.commit_later(visit)
        watcher.visit(visit)

    plan, machine = survey.plan, survey.machine
    clock = SimulatedClock(plan.worker_seconds)
    schedule = Schedule(plan, on_skip=skip, clock=clock)
    watcher.begin(plan, ())
    with closing(Supervisor(machine, options, profile.commit_locality)) as supervisor:
        for order in schedule:
            found = supervisor.measure(order, watcher.progress)
            visit = msgspec.structs.replace(
                found, elapsed_seconds=found.setup_seconds + found.sampling_seconds
            )
            clock.took(visit, order.process)
            profile.commit_visit(visit)
            schedule.record(visit)
            watcher.visit(visit)
        supervisor.end()


def _request_of(profile: Profile) -> Request:
    """The request of the profile; the default if that is not known."""
    stored = planned(profile.plan_json).request
    if stored is None:
        return Request()
    try:
        return msgspec.convert(msgspec.json.decode(profile.plan_json)["request"], Request)
    except (msgspec.MsgspecError, KeyError, TypeError, RecursionError):
        return Request(
            stored.preset or Request().preset, stored.only, stored.sizes, stored.workloads
        )
