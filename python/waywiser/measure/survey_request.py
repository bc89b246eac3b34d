"""What the options of a survey ask for: a request, a selection of the machine, and whether both
agree with a profile that `--resume` goes on with."""

from __future__ import annotations

import os
from pathlib import Path

from waywiser.measure.option import Option, given, options_of, stored
from waywiser.measure.plan.preset import Request
from waywiser.measure.scope import MachineSelection
from waywiser.measure.survey_options import SurveyOptions
from waywiser.measure.survey_run import KeptPlan, SurveyError, kept_plan_of
from waywiser.measure.tune_options import TuneOptions
from waywiser.profile import Profile, require_profile_name


def request_of(options: SurveyOptions) -> Request:
    """What to plan. Raises `OptionError`."""
    memory = selection_of(options).memory_bytes
    return Request(memory_bytes=memory, **stored(options, "request"))


def selection_of(options: SurveyOptions | TuneOptions) -> MachineSelection:
    """What of the machine to measure. Raises `OptionError`."""
    usual = {}
    if isinstance(options, SurveyOptions):
        usual["scratch"] = os.path.abspath(os.path.dirname(options.output or "") or ".")
    named = options.scratch is not None
    return MachineSelection(**{**usual, **stored(options, "selection")}, scratch_named=named)


def require_sense(options: SurveyOptions) -> None:
    """Raises `SurveyError` for options that exclude each other, `NotWritable` for an output that is
    not the name of a profile."""
    if options.scratch and options.no_scratch:
        raise SurveyError("--scratch and --no-scratch say opposite things", remedy="leave one out")
    if options.resume and options.output is None:
        raise SurveyError("--resume needs the profile", remedy="name it with -o FILE")
    if not options.resume:
        require_ranks(options)
    _require_no_model(options)
    if options.output is not None:
        require_output_name(options.output)


def require_ranks(options: SurveyOptions | TuneOptions) -> None:
    """Raises `SurveyError` for an option of ranks without them."""
    for name in () if options.ranks else ("ranks_per_gpu", "rank_cpus", "mpicc", "launcher"):
        if getattr(options, name):
            raise SurveyError(f"{options_of(options)[name].name} is for --ranks", remedy="add it")


def _require_no_model(options: SurveyOptions) -> None:
    if options.ranks and options.model:
        raise SurveyError(
            "--model measures no messages between ranks", remedy="leave --ranks out, or --model"
        )


def require_output_name(output: str) -> None:
    """Raises `NotWritable` for a file that is not there and has not the name of a profile."""
    if not os.path.lexists(output):
        require_profile_name(Path(output))


def require_agreement(options: SurveyOptions, file: Path) -> None:
    """Raises `SurveyError` for an option that differs from the plan in the profile: `--resume` goes
    on with that plan. Options that were not given agree."""
    with Profile.open(file) as profile:
        kept, gpus = kept_plan_of(profile), len(profile.machine.gpus)
    declared = options_of(options)
    differing = [
        declared[name].name
        for name, value in given(options).items()
        if not _agrees(declared[name], value, kept)
    ]
    if options.expect_gpus > gpus:
        differing.append(declared["expect_gpus"].name)
    if differing:
        raise SurveyError(
            f"--resume goes on with the plan in the profile, which has another {differing[0]}",
            where=str(file),
            remedy="leave it out, or survey into a new file",
        )


def _agrees(option: Option, value: object, kept: KeptPlan) -> bool:
    to = option.stored
    return to is None or getattr(getattr(kept, to.part), to.field) == to.convert(value)
