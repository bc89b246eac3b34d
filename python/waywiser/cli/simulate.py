"""``waywiser simulate``: surveys a simulated machine, and shows what was found."""

from __future__ import annotations

import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from waywiser.cli.app import Changes, GpuCount, Json, ProfileFile
from waywiser.cli.verb import verb
from waywiser.measure.option import stored
from waywiser.measure.simulate_options import SimulateOptions

if TYPE_CHECKING:
    from waywiser.measure.plan.preset import Request
    from waywiser.measure.simulated_survey import SimulatedSurvey


@verb("Survey a simulated machine: that of a profile, with changes.")
def simulate(
    file: ProfileFile,
    output: str,
    change: Changes = None,
    gpus: GpuCount = None,
    *,
    options: SimulateOptions,
    json: Json = False,
) -> None:
    """Survey a simulated machine: that of a profile, with its noise and with changes.

    -o, --output FILE: Write the profile to FILE.

    waywiser simulate node.wwp --set 'PCIe to gpu:*=126GB/s' -o faster.wwp
        survey the machine of a profile as if its links to GPUs were faster
    waywiser simulate node.wwp --gpus 4 --preset check -o four.wwp
        survey the links of a machine with four GPUs like those of the profile
    """
    from waywiser.cli.progress import watcher
    from waywiser.cli.show import show_profile
    from waywiser.cli.streams import say
    from waywiser.cli.survey import stopped_by_signals
    from waywiser.measure.simulated_survey import prepare_simulation, start_simulation
    from waywiser.model.whatif import Change, MachineChanges
    from waywiser.profile.output_file import require_output, require_profile_name

    target = Path(output)
    require_profile_name(target)
    require_output(output)
    changes = MachineChanges(tuple(map(Change.parse, change or ())), gpus)
    survey = prepare_simulation(Path(file), changes, _request(options), options.seed)
    say(_before(survey) + "\n")
    with stopped_by_signals(), closing(watcher()) as watching:
        start_simulation(survey, target, watching, command=("waywiser", *sys.argv[1:]))
    show_profile(output, json=json, headline_last=True)
    say(f"profile: {output}\n")


def _request(options: SimulateOptions) -> Request | None:
    """What to survey; None: as the profile was surveyed. Raises `WaywiserError` for a preset, sizes
    or transfers that no machine has, before the profile is read, which takes seconds."""
    from waywiser.curves.sizes import parse_sizes
    from waywiser.measure.plan.preset import Request, find_preset
    from waywiser.measure.plan.requested_workloads import parse_workload

    if options.preset:
        find_preset(options.preset)
    if options.sizes:
        parse_sizes(options.sizes)
    for workload in options.workload:
        parse_workload(workload)
    selected = stored(replace(options, seed=None), "request")
    return Request(**selected) if selected else None


def _before(survey: SimulatedSurvey) -> str:
    """What is said before the work starts."""
    from waywiser.machine.machine import machine_line
    from waywiser.words.number_format import count

    plan = survey.plan
    series, unknown = count(len(plan.points), "series"), count(survey.unknown, "curve")
    found = f"{plan.preset.name}: {series}, {unknown} not in the model"
    return f"{machine_line(survey.machine)}\n{found}"
