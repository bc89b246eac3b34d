"""``waywiser simulate``: surveys a simulated machine, and shows what was found."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from waywiser.cli.app import Changes, GpuCount, Json, Only, ProfileFile, Seed
from waywiser.cli.verb import verb

if TYPE_CHECKING:
    from waywiser.measure.plan.preset import Request
    from waywiser.measure.simulated_survey import SimulatedSurvey


@verb("Survey a simulated machine: that of a profile, with changes.")
def simulate(
    file: ProfileFile,
    output: str,
    change: Changes = None,
    gpus: GpuCount = None,
    seed: Seed = None,
    preset: str | None = None,
    only: Only = None,
    workload: list[str] | None = None,
    sizes: str | None = None,
    model: bool = False,
    json: Json = False,
) -> None:
    """Survey a simulated machine: that of a profile, with its noise and with changes.

    -o, --output FILE: Write the profile to FILE.
    --preset NAME: How much to measure, as for 'survey'. By default as the profile was surveyed.
    --workload TEXT: Measure these transfers, as for 'survey'. May be repeated.
    --sizes SIZES: Sizes to measure, as for 'survey'.
    --model: Also measure the sets of transfers that a model of the machine needs.

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
    from waywiser.model.changes import Change, MachineChanges
    from waywiser.profile.output_file import require_output, require_profile_name

    target = Path(output)
    require_profile_name(target)
    require_output(output)
    changes = MachineChanges(tuple(map(Change.parse, change or ())), gpus)
    request = _request(preset, only or (), workload or (), sizes, model)
    survey = prepare_simulation(Path(file), changes, request, seed)
    say(_before(survey) + "\n")
    with stopped_by_signals(), closing(watcher()) as watching:
        start_simulation(survey, target, watching, command=("waywiser", *sys.argv[1:]))
    show_profile(output, json=json, headline_last=True)
    say(f"profile: {output}\n")


def _request(
    preset: str | None,
    only: Sequence[str],
    workloads: Sequence[str],
    sizes: str | None,
    model: bool,
) -> Request | None:
    """What to survey; None: as the profile was surveyed. Raises `WaywiserError` for a preset, sizes
    or transfers that no machine has, before the profile is read, which takes seconds."""
    from waywiser.curves.sizes import parse_sizes
    from waywiser.measure.plan.preset import Request, find_preset
    from waywiser.measure.plan.requested_workloads import parse_workload

    if preset:
        find_preset(preset)
    if sizes:
        parse_sizes(sizes)
    for workload in workloads:
        parse_workload(workload)
    if not any((preset, only, workloads, sizes, model)):
        return None
    return Request(
        preset=preset or Request().preset,
        only=tuple(only),
        workloads=tuple(workloads),
        sizes=sizes or "",
        model=model,
    )


def _before(survey: SimulatedSurvey) -> str:
    """What is said before the work starts."""
    from waywiser.machine.machine_line import machine_line
    from waywiser.words.number_format import count

    plan = survey.plan
    series, unknown = count(len(plan.points), "series"), count(survey.unknown, "curve")
    found = f"{plan.preset.name}: {series}, {unknown} not in the model"
    return f"{machine_line(survey.machine)}\n{found}"
