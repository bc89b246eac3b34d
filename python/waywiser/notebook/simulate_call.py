"""Surveys of a simulated machine: `waywiser.simulate`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from waywiser.measure.option import stored
from waywiser.measure.simulate_options import SimulateOptions
from waywiser.notebook.survey_call import (
    OnSurveyProgress,
    SurveyWatcher,
    options_of,
    watcher_of,
)
from waywiser.notebook.verb_result import FileName
from waywiser.words import MOST_SIMULATED_GPUS, WordError
from waywiser.words.numbers import parse_fraction

if TYPE_CHECKING:
    from waywiser.measure.plan.preset import Request
    from waywiser.measure.simulated_survey import SimulatedSurvey
    from waywiser.model.whatif import MachineChanges

SAID = 10
"""Nights after which a line says how far it is."""


def simulate_machine(
    name: FileName,
    output: FileName,
    changed: str | Sequence[str],
    arguments: Mapping[str, Any],
    progress: OnSurveyProgress | SurveyWatcher | None = None,
) -> list[str]:
    """As `waywiser.simulate`: the profiles. Raises `WaywiserError`."""
    from waywiser.measure.simulated_survey import prepare_simulation, start_simulation
    from waywiser.model.whatif import MachineChanges
    from waywiser.profile import require_output

    options = options_of(SimulateOptions, arguments, "simulate")
    file, target, watcher = Path(name), Path(output), watcher_of(progress, ("waywiser.simulate()",))
    texts = [changed] if isinstance(changed, str) else changed
    changes = MachineChanges.parse(texts, MOST_SIMULATED_GPUS)
    if options.nights is not None:
        return list(map(str, _simulate_nights(file, target, changes, options, watcher)))
    _require_options(options, target)
    require_output(str(target))
    survey = prepare_simulation(file, changes, _request(options), options.seed, options.host)
    watcher.note(_before(survey))
    start_simulation(survey, target, watcher, command=watcher.command)
    return [str(target)]


def _require_options(options: SimulateOptions, target: Path) -> None:
    """Raises `WaywiserError` for options of nights without ``--nights``, and for bad names."""
    from waywiser.profile import require_profile_name

    if options.from_night is not None:
        raise WordError("--from-night is for --nights", remedy="give --nights N too")
    require_profile_name(target)
    require_host(options.host)


def _require_night(first: int, nights: int) -> None:
    """Raises `WordError` for a first night of changes after the last night."""
    from waywiser.words import count

    if first > nights:
        raise WordError(
            f"--from-night {first} is after the last of {count(nights, 'night')}",
            remedy=f"give 1 to {nights}",
        )


def _simulate_nights(
    file: Path,
    folder: Path,
    changes: MachineChanges,
    options: SimulateOptions,
    watcher: SurveyWatcher,
) -> list[Path]:
    """Surveys a simulated machine every night, into profiles named by host and day. Raises
    `WaywiserError`: none of the profiles may exist."""
    from waywiser.measure.simulated_nights import SimulatedNights, moments
    from waywiser.measure.simulated_survey import prepare_simulation
    from waywiser.model.whatif import MachineChanges
    from waywiser.profile import make_folder, require_output
    from waywiser.profile.file_name import SUFFIX
    from waywiser.words import count

    noise = parse_fraction(options.night_noise, "deviation between nights")
    nights, first = options.nights or 0, options.from_night or 1
    _require_night(first, nights)
    require_host(options.host)
    request = _request(options)
    later = prepare_simulation(file, changes, request, options.seed, options.host)
    early = later
    if first > 1:
        same = MachineChanges((), changes.gpus)
        early = prepare_simulation(file, same, request, options.seed, options.host, later)
    days = moments(later, nights)
    make_folder(folder)
    name = options.host or file.name.removesuffix(SUFFIX)
    files = [folder / f"{name}-{day.date()}{SUFFIX}" for day in days]
    for each in files:
        require_output(str(each))
    dates = f"{days[0].date()} to {days[-1].date()}"
    watcher.note(f"{_before(later)}\n{count(nights, 'night')} from {dates}")
    before, after = (SimulatedNights(each, noise, watcher.command) for each in (early, later))
    for night, (day, target) in enumerate(zip(days, files, strict=True), 1):
        (before if night < first else after).simulate(night, day, target)
        if night % SAID == 0:
            watcher.note(f"{night} of {count(nights, 'night')}")
    return files


def require_host(host: str | None) -> None:
    """Raises `WordError` for what no host is named."""
    from waywiser.words import is_host_name

    if host is not None and not is_host_name(host):
        raise WordError(f"--host {host!r} is no host name", remedy="write a name such as n005")


def _request(options: SimulateOptions) -> Request | None:
    """What to survey; None: as the profile was surveyed. Raises `WaywiserError` for a preset, sizes
    or transfers that no machine has, before the profile is read, which takes seconds."""
    from waywiser.curves import has_name, parse_sizes
    from waywiser.measure.plan.preset import Request, find_preset
    from waywiser.measure.plan.requested_workloads import parse_workload

    if options.preset:
        find_preset(options.preset)
    if options.sizes:
        parse_sizes(options.sizes)
    for workload in options.workload:
        if not has_name(workload):
            parse_workload(workload)
    selected = stored(replace(options, seed=None), "request")
    return Request(**selected) if selected else None


def _before(survey: SimulatedSurvey) -> str:
    """What is said before the work starts."""
    from waywiser.machine import machine_line
    from waywiser.words import count

    plan = survey.plan
    series, unknown = count(len(plan.points), "series"), count(survey.unknown, "curve")
    found = f"{plan.preset.name}: {series}, {unknown} not in the model"
    return f"{machine_line(survey.machine)}\n{found}"
