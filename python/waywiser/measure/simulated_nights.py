"""Surveys of a simulated machine on many nights, to rehearse what follows nodes over time.

The schedule and the profile are those of every survey. No worker is started: thousands of them
would take hours, and a simulation answers at once. The last night is the day of the original
profile, so that no night lies in the future.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path

import msgspec

from waywiser.measure.plan.schedule import Schedule
from waywiser.measure.simulated_survey import SimulatedClock, SimulatedSurvey, commission_json
from waywiser.model.simulation import SimulatedMachine, SimulatedNight
from waywiser.profile import WritableProfile
from waywiser.words import Order, Process, Visit


def moments(survey: SimulatedSurvey, nights: int) -> list[datetime]:
    """When the survey of each night begins: at the time of day of the original, once a day."""
    last = datetime.fromisoformat(survey.original)
    return [last - timedelta(days=nights - night) for night in range(1, nights + 1)]


class SimulatedNights:
    """Makes the surveys of one simulated machine, which is read once for all nights."""

    def __init__(self, survey: SimulatedSurvey, noise: float, command: Sequence[str] = ()) -> None:
        """``noise`` is the relative standard deviation of each path between nights. Raises
        `waywiser.profile.ProfileError`."""
        self._survey, self._noise, self._command = survey, noise, command
        self._machine = SimulatedMachine(survey.simulation)
        self._plan_json = commission_json(survey)

    def simulate(self, number: int, moment: datetime, output: Path) -> None:
        """Makes the survey of a night, from 1, into a new profile. Raises `WaywiserError`; no file
        is left then."""
        survey, night = self._survey, SimulatedNight(number, self._noise)
        profile = WritableProfile.create(
            output,
            survey.machine,
            survey.environment,
            plan_json=self._plan_json,
            unsupported_paths=survey.plan.unsupported_paths,
            command=self._command,
            created=moment.isoformat(timespec="milliseconds"),
        )
        try:
            with profile:
                clock = SimulatedClock(survey.plan.worker_seconds)
                schedule = Schedule(survey.plan, on_skip=profile.commit_later, clock=clock)
                workers: dict[Process, int] = {}
                for order in schedule:
                    worker = workers.setdefault(order.process, len(workers) + 1)
                    started = moment + timedelta(seconds=clock())
                    found = self._machine.visit(order.workload, order.process, night)
                    visit = _of_order(found, order, worker, started)
                    clock.took(visit, order.process)
                    profile.commit_later(visit)  # all in one transaction: nothing can be lost
                    schedule.record(visit)
        except BaseException:
            output.unlink(missing_ok=True)
            raise


def _of_order(found: Visit, order: Order, worker: int, started: datetime) -> Visit:
    setup = max(found.elapsed_seconds - found.sampling_seconds, 0.0)
    return msgspec.structs.replace(
        found,
        block=order.block,
        started=started.isoformat(timespec="milliseconds"),
        worker=worker,
        setup_seconds=setup,
        elapsed_seconds=setup + found.sampling_seconds,
    )
