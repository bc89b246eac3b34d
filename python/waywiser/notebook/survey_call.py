"""A survey of this machine that Python calls, and how far it is."""

from __future__ import annotations

import math
import operator
import os
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from numbers import Real
from pathlib import Path
from typing import Any, Protocol, TypeVar, get_type_hints, runtime_checkable

from waywiser.analysis.dataset.profiles import require_recordable
from waywiser.curves import name_of
from waywiser.measure.option import Option
from waywiser.measure.option import options_of as declared_options
from waywiser.measure.plan.plan import Plan
from waywiser.measure.plan.tally import Tally
from waywiser.measure.probe.supervisor import Progress
from waywiser.measure.survey_options import SurveyOptions
from waywiser.measure.survey_request import (
    request_of,
    require_agreement,
    require_sense,
    selection_of,
)
from waywiser.measure.survey_run import (
    Interrupted,
    Survey,
    SurveyError,
    Watcher,
    prepare,
    require_free_host,
    resume,
    start,
)
from waywiser.notebook.profile_view import ProfileView, read_profile
from waywiser.notebook.python_arguments import python_arguments
from waywiser.profile import ExistingFile, default_name, require_output, unused_file
from waywiser.words import CacheError, Visit, WaywiserError, format_bytes, format_seconds
from waywiser.words.user_cache import VARIABLE as CACHE_VARIABLE
from waywiser.words.user_cache import user_cache

_MOST_BITS = 64
"""The longest whole number that is compared with the bounds of an option."""


@dataclass(frozen=True)
class SurveyProgress:
    """How far a survey is. As text it is one line, so that ``progress=print`` shows it."""

    share: float
    """The share of the expected time that is done, from 0 to 1."""
    seconds_left: float
    """The expected time of the rest, corrected by how long the visits took so far."""
    visits: int
    """Visits (one series in one process) that are finished, those of earlier runs too."""
    of_visits: int
    """Visits that are planned."""
    path: str
    """The path that was measured last."""
    bytes: int
    """The size of its transfers."""

    def __str__(self) -> str:
        size = f" of {format_bytes(self.bytes)}" if self.bytes else ""
        done = f"{self.share:4.0%}  {self.visits} of {self.of_visits} visits"
        left = format_seconds(self.seconds_left)
        return f"{done}, {left} left; last: {self.path}{size}"


OnSurveyProgress = Callable[[SurveyProgress], object]


@runtime_checkable
class SurveyWatcher(Watcher, Protocol):
    """Follows a survey more closely than `OnSurveyProgress`, as a command does."""

    command: tuple[str, ...]
    """What the profile says of how it was made."""

    def begin_run(self, what: Survey | Path) -> None:
        """What will be measured, before it is: a plan, or the rest of a profile."""

    def file_for(self, hostname: str) -> Path:
        """The profile of a machine if none is named. Raises `WaywiserError`."""

    def note(self, line: str) -> None:
        """Something to know before or after the measurement."""

    def warn(self, line: str) -> None:
        """Something that was not done."""


def watcher_of(
    progress: OnSurveyProgress | SurveyWatcher | None, command: tuple[str, ...]
) -> SurveyWatcher:
    """The watcher, or one that calls back. Raises `SurveyError` for what is neither."""
    if progress is not None and isinstance(progress, SurveyWatcher):
        return progress
    if progress is not None and not callable(progress):
        raise _wrong("progress", progress, "no function")
    return CallbackWatcher(progress, command)


def survey_machine(
    given: Mapping[str, Any], progress: OnSurveyProgress | SurveyWatcher | None = None
) -> ProfileView:
    """Measures this machine in worker processes, and reads the profile.

    ``given`` are the arguments of `waywiser.survey` by name. Raises `WaywiserError`;
    `KeyboardInterrupt`, which says where the profile is.
    """
    if isinstance(progress, SurveyWatcher):
        return read_profile(_survey(options_of(SurveyOptions, given), progress))
    with python_arguments():
        options = options_of(SurveyOptions, given)
        try:
            return read_profile(_survey(options, watcher_of(progress, (_call(given),))))
        except Interrupted as error:
            raise KeyboardInterrupt(
                f"{error.what}; waywiser.open({error.where!r}) reads them, "
                f"waywiser.survey(output={error.where!r}, resume=True) measures the rest"
            ) from None


def _survey(options: SurveyOptions, watcher: SurveyWatcher) -> Path:
    """The profile, which is complete."""
    require_sense(options)
    if options.dataset is not None:
        require_recordable(Path(options.dataset))
    file = Path(options.output) if options.output else None
    if options.resume and file is not None and os.path.lexists(file):
        require_agreement(options, file)
        require_free_host()
        watcher.begin_run(file)
        resume(file, watcher, command=watcher.command)
    else:
        if file is not None:
            _require_new(file)
        request, selection = request_of(options), selection_of(options)
        survey = prepare(request, selection, expect_gpus=options.expect_gpus)
        if options.resume:
            watcher.note(f"there is no {file} to resume: a new survey starts")
        require_free_host()  # if it is being surveyed, that is the only message
        file = file or watcher.file_for(survey.machine.hostname)
        watcher.begin_run(survey)
        start(survey, file, watcher, command=watcher.command)
    _record(file, options, watcher)
    return file


def _record(file: Path, options: SurveyOptions, watcher: SurveyWatcher) -> None:
    """Writes the rows of a profile into the data set that is named, or says why it does not: the
    profile is complete without them."""
    if options.dataset is None:
        return
    from waywiser.analysis.dataset.profiles import record

    try:
        watcher.note(f"data set: {record(str(file), Path(options.dataset))}")
    except WaywiserError as error:
        watcher.warn(f"waywiser: {error}")
        watcher.warn(f"{file} is complete, and not in the data set {options.dataset}")


def _require_new(file: Path) -> None:
    """Raises `ExistingFile` for a file that exists, `NotWritable` for one that cannot be made."""
    try:
        require_output(str(file))
    except ExistingFile as error:
        if file.is_dir():
            raise
        raise ExistingFile(
            error.what,
            where=error.where,
            remedy="go on with the survey in it by --resume, or name another file with -o",
        ) from None


Table = TypeVar("Table")


def options_of(table: type[Table], arguments: Mapping[str, Any], verb: str = "survey") -> Table:
    """The options of a table. Raises `SurveyError` for a value that is empty or of another type,
    with the help of the function of the verb as its remedy."""
    declared, hints = declared_options(table), get_type_hints(table)
    try:
        checked = {
            name: _checked(name, value, hints[name], declared[name])
            for name, value in arguments.items()
            if value is not None
        }
    except _WrongType as error:
        raise SurveyError(error.what, remedy=f"see help(waywiser.{verb})") from None
    return table(**checked)


def _checked(name: str, value: Any, hint: Any, option: Option) -> Any:
    """The value of an argument as the command line has it, by the type of the option."""
    if hint == tuple[str, ...]:
        return _texts(name, value)
    if hint is bool:
        if not isinstance(value, bool):
            raise _wrong(name, value, "neither True nor False")
        return value
    if option.takes_numbers:
        return ",".join(_texts(name, value, numbers=True))
    if option.bounds is None:
        return _text(name, value, numbers=False)
    number = _seconds(name, value) if hint == float | None else _whole(name, value)
    option.bounds.require(number, option.name)
    return number


def _texts(name: str, value: Any, *, numbers: bool = False) -> tuple[str, ...]:
    if isinstance(value, (str, os.PathLike)) or not isinstance(value, Iterable):
        return (_text(name, value, numbers=numbers),)
    several = tuple(_text(name, each, numbers=numbers) for each in value)
    if not several:
        raise _empty(name)
    return several


def _text(name: str, value: Any, *, numbers: bool) -> str:
    """The text; with ``numbers`` that of a whole number too."""
    if isinstance(value, (str, os.PathLike)):
        text = str(os.fspath(value))
        if not text:
            raise _empty(name)
        return text
    if not numbers:
        raise _wrong(name, value, "not a text")
    return str(_whole(name, value, "neither a text nor a whole number"))


def _whole(name: str, value: Any, kind: str = "no whole number") -> int:
    """Integers of numpy too, and no truth values."""
    try:
        number = None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = None
    if number is None:
        raise _wrong(name, value, kind)
    if number.bit_length() > _MOST_BITS:  # thousands of digits cannot even be printed
        raise _WrongType(f"{name} is too large a number")
    return number


def _seconds(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, Real):
        raise _wrong(name, value, "no number of seconds")
    try:
        return float(value)
    except OverflowError:
        return math.inf


def _empty(name: str) -> SurveyError:
    return SurveyError(f"{name} is empty", remedy="leave it out, or say what is meant")


class _WrongType(SurveyError):
    """An argument of another type than its option."""


def _wrong(name: str, value: Any, kind: str) -> _WrongType:
    return _WrongType(f"{name}={value!r} is {kind}", remedy="see help(waywiser.survey)")


def _call(given: Mapping[str, Any]) -> str:
    """What the profile keeps as the command: the call with the arguments that were given."""
    said = (
        f"{name}={(os.fspath(value) if isinstance(value, os.PathLike) else value)!r}"
        for name, value in given.items()
        if value is not None and value is not False
    )
    return f"waywiser.survey({', '.join(said)})"


def new_cache_file(hostname: str) -> Path:
    """A file that does not exist yet in ``~/.cache/waywiser/profiles``, which is made if need be.
    ``XDG_CACHE_HOME`` replaces ``~/.cache``. Raises `SurveyError`."""
    remedy = f"name a file: waywiser.survey(output=...), or a folder: {CACHE_VARIABLE}=..."
    try:
        folder = user_cache("profiles", "the folder of profiles", remedy)
    except CacheError as error:
        raise SurveyError(error.what, where=error.where, remedy=error.remedy) from error
    return unused_file(folder / default_name(hostname))


class CallbackWatcher:
    """Calls back after each visit."""

    def __init__(self, progress: OnSurveyProgress | None, command: tuple[str, ...]) -> None:
        self.command = command
        self._progress = progress
        self._tally: Tally | None = None

    def begin_run(self, what: Survey | Path) -> None:
        """The caller knows what was named."""

    def file_for(self, hostname: str) -> Path:
        return new_cache_file(hostname)

    def note(self, line: str) -> None:
        """Nothing is printed."""

    def warn(self, line: str) -> None:
        warnings.warn(line, stacklevel=6)

    def begin(self, plan: Plan, finished: Iterable[Visit]) -> None:
        self._tally = Tally(plan, finished)

    def progress(self, progress: Progress) -> None:
        """Estimates of visits that are not finished are not passed on."""

    def visit(self, visit: Visit) -> None:
        tally = self._tally
        assert tally is not None, "begin() comes first"
        tally.finished(visit)
        if self._progress is None:
            return
        self._progress(
            SurveyProgress(
                tally.share,
                tally.seconds_left,
                tally.visits,
                tally.of_visits,
                name_of(visit.workload),
                visit.workload.size,
            )
        )
