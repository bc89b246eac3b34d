"""``waywiser simulate``: surveys a simulated machine, and shows what was found."""

from __future__ import annotations

import sys
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from waywiser.cli.progress import watcher
from waywiser.cli.streams import say
from waywiser.cli.survey import stopped_by_signals
from waywiser.curves.sizes import parse_sizes
from waywiser.machine.machine_line import machine_line
from waywiser.measure.plan.preset import Request, find_preset
from waywiser.measure.plan.requested_workloads import parse_workload
from waywiser.measure.simulated_survey import SimulatedSurvey, prepare_simulation, start_simulation
from waywiser.model.changes import Change, MachineChanges
from waywiser.profile.output_file import require_output, require_profile_name
from waywiser.words.number_format import count


@dataclass(frozen=True)
class SimulateOptions:
    """The command line as it was written; None for what was not given."""

    file: str
    output: str
    changes: tuple[str, ...] = ()
    gpus: int | None = None
    seed: int | None = None
    preset: str | None = None
    only: tuple[str, ...] = ()
    workloads: tuple[str, ...] = ()
    sizes: str | None = None
    model: bool = False
    json: bool = False

    @property
    def request(self) -> Request | None:
        """What to survey; None: as the profile was surveyed."""
        given = (self.preset, self.only, self.workloads, self.sizes, self.model)
        if not any(given):
            return None
        return Request(
            preset=self.preset or Request().preset,
            only=self.only,
            workloads=self.workloads,
            sizes=self.sizes or "",
            model=self.model,
        )


def run_simulate(options: SimulateOptions) -> None:
    """The verb. Raises `WaywiserError`; then there is no new profile."""
    output = Path(options.output)
    require_profile_name(output)
    require_output(options.output)
    changes = MachineChanges(tuple(map(Change.parse, options.changes)), options.gpus)
    _require_request(options)
    survey = prepare_simulation(Path(options.file), changes, options.request, options.seed)
    say(_before(survey) + "\n")
    with stopped_by_signals(), closing(watcher()) as watching:
        start_simulation(survey, output, watching, command=("waywiser", *sys.argv[1:]))
    from waywiser.cli.show import show_profile

    show_profile(str(output), json=options.json, headline_last=True)
    say(f"profile: {output}\n")


def _require_request(options: SimulateOptions) -> None:
    """Raises `WaywiserError` for a preset, sizes or transfers that no machine has, before the
    profile is read, which takes seconds."""
    if options.preset:
        find_preset(options.preset)
    if options.sizes:
        parse_sizes(options.sizes)
    for workload in options.workloads:
        parse_workload(workload)


def _before(survey: SimulatedSurvey) -> str:
    """What is said before the work starts."""
    plan = survey.plan
    return (
        f"{machine_line(survey.machine)}\n"
        f"{plan.preset.name}: {count(len(plan.points), 'series')}, "
        f"{count(survey.unknown, 'curve')} not in the model"
    )
