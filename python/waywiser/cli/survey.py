"""``waywiser survey``: says what will be done, does it, and shows what was found."""

from __future__ import annotations

import math
import os
import signal
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

import msgspec

from waywiser.cli.progress import format_seconds, watcher
from waywiser.cli.streams import say
from waywiser.plan.plan import Plan
from waywiser.plan.points import Priority
from waywiser.plan.preset import FULL, Request
from waywiser.profile import Profile, default_name
from waywiser.profile.output_path import require_new_output
from waywiser.records import Unsupported
from waywiser.scope import ALL, Wishes
from waywiser.survey import Survey, SurveyError, commission_of, prepare, resume, start
from waywiser.words import WordError, format_bytes, parse_bytes
from waywiser.words.members import member_lines, merged

_MIB = 2**20


@dataclass(frozen=True)
class Options:
    """The command line as it was written; None for what was not said."""

    output: str | None = None
    preset: str | None = None
    only: tuple[str, ...] = ()
    sizes: str | None = None
    deadline: float | None = None
    gpus: str | None = None
    expect_gpus: int = 0
    memory: str | None = None
    share: bool = False
    seed: int | None = None
    files: tuple[str, ...] = ()
    scratch: str | None = None
    no_scratch: bool = False
    workloads: tuple[str, ...] = ()
    resume: bool = False
    dry_run: bool = False
    json: bool = False

    @property
    def request(self) -> Request:
        usual = Request()
        return Request(
            preset=self.preset or usual.preset,
            only=self.only,
            workloads=self.workloads,
            sizes=self.sizes or usual.sizes,
            memory_bytes=self.wishes.memory_bytes,
            seed=usual.seed if self.seed is None else self.seed,
            deadline_seconds=self._deadline_seconds,
        )

    @property
    def wishes(self) -> Wishes:
        return Wishes(
            self.gpus or ALL,
            self.share,
            self._memory_bytes,
            files=tuple(map(os.path.abspath, self.files)),
            scratch="" if self.no_scratch else os.path.abspath(self._scratch_folder),
            scratch_asked=self.scratch is not None,
        )

    @property
    def _deadline_seconds(self) -> float:
        if self.deadline is None:
            return Request().deadline_seconds
        if not math.isfinite(self.deadline):
            raise SurveyError(
                "--deadline is not a number of seconds", remedy="write --deadline 180"
            )
        return self.deadline

    @property
    def _memory_bytes(self) -> int:
        if not self.memory:
            return Wishes().memory_bytes
        try:
            return parse_bytes(self.memory)
        except WordError as error:
            raise SurveyError(f"--memory {error.what}", remedy=error.remedy) from error

    @property
    def _scratch_folder(self) -> str:
        """The folder of scratch files, by default that of the profile."""
        return self.scratch or os.path.dirname(self.output or "") or "."


def run_survey(options: Options) -> None:
    """The verb. Raises `WaywiserError`; what is finished by then is in the profile."""
    if options.scratch and options.no_scratch:
        raise SurveyError("--scratch and --no-scratch say opposite things", remedy="leave one out")
    file = Path(options.output) if options.output else None
    if options.resume and file is None:
        raise SurveyError("--resume needs the profile", remedy="name it with -o FILE")
    if options.resume and options.dry_run:
        raise SurveyError("--resume and --dry-run say opposite things", remedy="leave one out")
    if options.resume and file is not None and os.path.lexists(file):
        _require_agreement(options, file)
        with closing(watcher()) as watching, _stopped_by_signals():
            resume(file, watching, command=("waywiser", *sys.argv[1:]))
        _show(file, json=options.json)
        return
    if file is not None and not options.dry_run:
        require_new_output(file)
    survey = prepare(options.request, options.wishes, expect_gpus=options.expect_gpus)
    if options.dry_run:
        _say_plan(survey, json=options.json)
        return
    if options.resume:
        _print_progress(f"there is no {file} to resume: a new survey starts")
    file = file or Path(default_name(survey.machine.hostname))
    _print_progress("\n".join(_before(survey)))
    with closing(watcher()) as watching, _stopped_by_signals():
        start(survey, file, watching, command=("waywiser", *sys.argv[1:]))
    _show(file, json=options.json)


def _require_agreement(options: Options, file: Path) -> None:
    """Raises `SurveyError` for an option that differs from the plan in the profile: `--resume` goes
    on with that plan. Options that were not given agree."""
    with Profile.open(file) as profile:
        commission, gpus = commission_of(profile), len(profile.machine.gpus)
    request, asked = commission.request, options.request
    wishes, wanted = commission.wishes, options.wishes
    agreement = {
        "--preset": options.preset is None or asked.preset == request.preset,
        "--only": not options.only or asked.only == request.only,
        "--workload": not options.workloads or asked.workloads == request.workloads,
        "--sizes": options.sizes is None or asked.sizes == request.sizes,
        "--deadline": options.deadline is None
        or asked.deadline_seconds == request.deadline_seconds,
        "--gpus": options.gpus is None or wanted.gpus == wishes.gpus,
        "--expect-gpus": options.expect_gpus <= gpus,
        "--memory": options.memory is None or wanted.memory_bytes == wishes.memory_bytes,
        "--share": not options.share or wishes.share,
        "--seed": options.seed is None or asked.seed == request.seed,
        "--file": not options.files or wanted.files == wishes.files,
        "--scratch": options.scratch is None or wanted.scratch == wishes.scratch,
        "--no-scratch": not options.no_scratch or not wishes.scratch,
    }
    if differing := [name for name, agrees in agreement.items() if not agrees]:
        raise SurveyError(
            f"--resume goes on with the plan in the profile, which has another {differing[0]}",
            where=str(file),
            remedy="leave it out, or survey into a new file",
        )


def _print_progress(text: str) -> None:
    """Writes for people, not for pipes: standard output is kept for the result."""
    say(text + "\n")


def _before(survey: Survey) -> Iterator[str]:
    """What is said before long work starts."""
    machine = survey.machine
    nodes = f"{len(machine.numa)} NUMA node{'s' if len(machine.numa) > 1 else ''}"
    models = Counter(gpu.name for gpu in machine.gpus)
    gpus = ", ".join(f"{n} × {name}" if n > 1 else name for name, n in models.items())
    gpus = gpus or f"no GPU ({machine.gpu_reason})"
    yield f"{machine.hostname}: {machine.cpu_model}, {nodes}; {gpus}"
    for unsupported in survey.scope.unsupported_paths:
        yield f"{unsupported.path} is skipped: {unsupported.reason}"
    yield from survey.scope.notes
    yield from survey.plan.notes
    yield from _file_lines(survey)
    yield from _total(survey)
    if survey.plan.left_out:
        thorough = survey.plan.preset.name == FULL.name
        whom = "--only or --sizes" if thorough else "a more thorough --preset, or to --only"
        yield f"{survey.plan.left_out} series more are left to {whom}"


def _file_lines(survey: Survey) -> Iterator[str]:
    """What will be read, and what is written beside the profile."""
    used = {
        memory.place.file
        for point in survey.plan.points
        for transfer in point.workload.transfers
        for memory in (transfer.path.source, transfer.path.destination)
    }
    for file in survey.machine.files:
        if file.name not in used:
            continue
        size, kind = format_bytes(file.bytes), file.filesystem or "unknown file system"
        if file.scratch:
            yield f"scratch files of at most {size} together in {file.path} ({kind}), then gone"
        else:
            yield f"{file.path} ({size}, {kind}) is read, never written"


def _total(survey: Survey) -> Iterator[str]:
    """How much is planned, how long it is expected to take, and what has no time."""
    plan, expected = survey.plan, survey.outlook
    processes = f"{expected.processes} process{'es' if expected.processes > 1 else ''}"
    yield (
        f"{plan.preset.name}: {len(plan.points)} series in {expected.visits} visits by "
        f"{processes}, up to {format_bytes(-(-plan.buffer_bytes // _MIB) * _MIB)} of memory, "
        f"about {format_seconds(expected.seconds)} (seed {plan.request.seed})"
    )
    if plan.deadline_seconds:
        short = [
            f"{expected.left_out[priority.name.lower()]} {_PRIORITIES[priority]}"
            for priority in reversed(Priority)
            if priority.name.lower() in expected.left_out
        ]
        fit = f"no time is expected for {', '.join(short)}" if short else "all is expected to fit"
        order = ", ".join(_PRIORITIES[priority] for priority in reversed(Priority))
        yield (
            f"deadline after {format_seconds(plan.deadline_seconds)}: {fit}; if time runs out, "
            f"these are skipped first: {order}"
        )


_PRIORITIES = {
    Priority.CONDITIONAL: "other sizes of equal paths that differ",
    Priority.REST: "sizes that one process measures",
    Priority.REPRESENTATIVE: "repeated sizes",
    Priority.HEADLINE: "repeated sizes of the main paths",
}


def _say_plan(survey: Survey, *, json: bool) -> None:
    plan = survey.plan
    if json:
        said = {
            "schema": 1,
            "request": plan.request,
            "estimate": survey.estimate,
            "left_out": plan.left_out,
            "notes": plan.notes,
            "deadline_seconds": plan.deadline_seconds,
            "outlook": survey.outlook,
            "series": [
                {
                    "identity": point.workload.identity,
                    "workload": str(point.workload),
                    "name": point.curve.name,
                    "bytes": point.workload.bytes,
                    "buffer_bytes": point.buffer_bytes,
                    "processes": point.processes,
                    "priority": point.priority.name.lower(),
                    "seconds": point.processes * point.unmeasured_seconds,
                }
                for point in plan.points
            ],
            "unsupported_paths": [*survey.scope.unsupported_paths, *plan.unsupported_paths],
        }
        print(msgspec.json.format(msgspec.json.encode(said), indent=2).decode())
        return
    for line in (*_before(survey), *_curves(plan), *_unsupported_paths(plan.unsupported_paths)):
        print(line)


def _curves(plan: Plan) -> Iterator[str]:
    """One line per curve: how many sizes, from where to where, how long."""
    curves: dict[str, list[tuple[int, float]]] = {}
    for point in plan.points:
        seconds = point.processes * point.unmeasured_seconds
        curves.setdefault(point.curve.name, []).append((point.size, seconds))
    for text, sizes in curves.items():
        first, last = format_bytes(min(sizes)[0]), format_bytes(max(sizes)[0])
        count = f"{len(sizes)} sizes, {first} to {last}" if len(sizes) > 1 else first
        if not max(sizes)[0]:
            count = "no bytes"
        seconds = sum(of_one for _, of_one in sizes)
        yield f"  {text}: {count}, {format_seconds(seconds) if seconds >= 0.5 else 'under 1 s'}"


def _unsupported_paths(unsupported_paths: Sequence[Unsupported]) -> Iterator[str]:
    """The paths that are not measured, under the reasons why."""
    reasons: dict[str, list[str]] = {}
    for unsupported in unsupported_paths:
        reasons.setdefault(unsupported.reason, []).append(unsupported.path)
    for reason, paths in merged(reasons.items()):
        yield f"not measured: {reason}"
        yield from (f"  {line}" for line in member_lines(paths))


@contextmanager
def _stopped_by_signals() -> Iterator[None]:
    """A scheduler or a closed terminal stops a survey as Ctrl-C does: stored, resumable."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _show(file: Path, *, json: bool) -> None:
    from waywiser.cli.show import run_show

    run_show(str(file), json)
    _print_progress(f"profile: {file}")
