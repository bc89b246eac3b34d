"""A profile in the formats of other programs, or settings of theirs: `waywiser.export`."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, TextIO

from waywiser.notebook.verb_result import FileName, VerbResult, file_names
from waywiser.notebook.without_effect import require_effect
from waywiser.words import WaywiserError, parse_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Mapping

    from waywiser.model.capacity import CapacityModel
    from waywiser.profile import Profile
    from waywiser.render.parts import Block, Section

FORMATS = ("csv", "json", "parquet", "google-benchmark")

USUAL_FORMAT = "json"
"""The format if neither an option nor the name of the output says another."""


NORMAL_VALUES = "normal-values"
"""Rows for a table of the bandwidths that machines reach: no settings of a program."""

POLICY = "waywiser"
"""What `waywiser.transfer` reads."""


class ExportError(WaywiserError):
    """A profile that cannot be exported as asked."""


Output = FileName | TextIO | None
"""A file, ``-`` for standard output, or a stream of text; without one the content is returned."""


def export_files(
    names: Sequence[FileName],
    *,
    summary: bool = False,
    format: str = "",
    output: Output = None,
    consumer: str = "",
    piece: str = "",
    source: str = "",
    ranks_per_gpu: int = 1,
) -> VerbResult:
    """As `waywiser.export`. Raises `WaywiserError`."""
    files, target = file_names(names), _Target(output)
    _require_sense(target, consumer, piece, source, format, summary=summary)
    if consumer == POLICY:
        return _export_policy(files, target)
    if len(files) == 1 and os.path.isdir(files[0]) and format == "parquet" and not consumer:
        return _export_dataset(files[0], target)
    if len(files) > 1:
        what = f"--for {consumer}" if consumer else "an export"
        raise ExportError(f"{what} is of one profile", remedy="name one")
    (file,) = files
    _require_known(consumer)
    notes: tuple[str, ...] = ()
    if not consumer:
        _export_samples(file, target, format, summary=summary)
    elif consumer == NORMAL_VALUES:
        notes = _export_normal_values(file, target, source)
    elif consumer in _launchers():
        form = "summary" if summary else format
        notes = _export_places(file, target, consumer, ranks_per_gpu, form)
    elif consumer in _models():
        _export_model(file, target, consumer)
    else:
        _export_settings(file, target, consumer, piece)
    return target.result(said=notes)


class _Target:
    """Where an export goes. Raises `ExportError` for what is no output."""

    def __init__(self, output: Output) -> None:
        self.name = ""
        self._stream: TextIO | None = None
        if isinstance(output, str | os.PathLike):
            self.name = os.fspath(output)
        elif output is not None:
            self._stream = _text_stream(output)
        self.content: str | bytes = ""
        """What was written, if no output is named."""

    @property
    def takes_bytes(self) -> bool:
        """Whether it is no text."""
        return self._stream is None

    @contextmanager
    def text(self) -> Iterator[TextIO]:
        """The stream to write text to."""
        from waywiser.profile.output_file import open_text_output

        if self._stream is not None:
            yield self._stream
        elif self.name:
            with open_text_output(self.name) as stream:
                yield stream
        else:
            kept = io.StringIO(newline="")
            yield kept
            self.content = kept.getvalue()

    def result(self, parts: Iterable[Block | Section] = (), said: Sequence[str] = ()) -> VerbResult:
        """What `waywiser.export` returns."""
        shown, document = tuple(parts), {"schema": 1, "output": self.name}
        text = self.content if isinstance(self.content, str) and not shown else None
        return VerbResult(self.content, lambda: document, lambda: shown, said=said, content=text)


def _text_stream(output: Any) -> TextIO:
    """Raises `ExportError` if text cannot be written to it."""
    remedy = "pass the name of a file, a stream of text or None"
    if not callable(getattr(output, "write", None)):
        raise ExportError(f"output is of type {type(output).__name__}", remedy=remedy)
    try:
        output.write("")
    except TypeError:
        raise ExportError("output is a stream of bytes, not of text", remedy=remedy) from None
    stream: TextIO = output
    return stream


def _export_samples(file: str, target: _Target, format: str, *, summary: bool) -> None:
    from waywiser.exchange.exports.samples import SUMMARY_WRITERS, WRITERS
    from waywiser.profile import Profile

    writers = SUMMARY_WRITERS if summary else WRITERS
    format = _valid_format(format or _format_of(target.name), writers)
    with Profile.open(file) as profile:
        if format == "parquet":
            _export_parquet(profile, target, summary)
            return
        with target.text() as stream:
            writers[format](profile, stream)


def _require_known(consumer: str) -> None:
    """Raises `ExportError` for a program that nothing is written for."""
    if not consumer:
        return
    from waywiser.exchange.settings.consumers import CONSUMERS

    known = (POLICY, *CONSUMERS, *_launchers(), *_models(), NORMAL_VALUES)
    if consumer not in known:
        raise ExportError(
            f"--for does not know {consumer!r}",
            remedy=f"write --for and one of {', '.join(known)}",
        )


def _launchers() -> Iterable[str]:
    from waywiser.exchange.settings.launchers import LAUNCHERS

    return LAUNCHERS


def _models() -> Mapping[str, Callable[[CapacityModel], str]]:
    from waywiser.model.export import EXPORTS

    return EXPORTS


def _export_dataset(folder: str, target: _Target) -> VerbResult:
    """Brings the data set of a folder of profiles up to date, and packs past days. Raises
    `ExportError` for standard output, and an error if no profile can be read."""
    from waywiser.analysis.dataset.files import files_in, is_dataset
    from waywiser.analysis.dataset.profiles import export_profiles
    from waywiser.notebook.unread_files import none_read
    from waywiser.profile import profiles_in, why_no_profile
    from waywiser.words import count

    if target.name == "-" or not target.takes_bytes:
        raise ExportError("a data set is a folder", remedy="name one with -o, or remove -o")
    dataset = Path(target.name or folder)
    done = export_profiles(Path(folder), dataset)
    # Of a data set without profiles, to which surveys write, past days are packed.
    is_alone = dataset == Path(folder) and is_dataset(dataset) and not profiles_in(dataset)
    if not (done.added or done.known or is_alone):
        raise none_read(done.unreadable or {folder: why_no_profile(folder)}, "no profile to export")
    files = files_in(dataset)
    days = len({each.day for each in files})
    said = (
        f"{dataset}: {count(done.added, 'profile')} added, {done.known} known; "
        f"{count(len(files), 'file')} of {count(days, 'day')}"
    )
    unread = [f"waywiser: {file}: {why}" for file, why in done.unreadable.items()]
    return target.result(said=[*unread, said])


def _require_sense(
    target: _Target, consumer: str, piece: str, source: str, format: str, *, summary: bool
) -> None:
    """Raises `ExportError` for a file named as a profile, and for options without effect."""
    from waywiser.profile.file_name import SUFFIX

    if PurePath(target.name).suffix == SUFFIX:
        raise ExportError(f"{target.name}: an export is no profile", remedy="name it .csv or .json")
    has_one_form = consumer and consumer not in _launchers()
    has_pieces = consumer not in ("", POLICY, NORMAL_VALUES) and consumer not in (
        *_launchers(), *_models()
    )  # fmt: skip
    is_of_values = consumer == NORMAL_VALUES
    idle: dict[str, dict[str, object]] = {
        f"--for {consumer} has one form": {
            "--format": has_one_form and format,
            "--summary": has_one_form and summary,
        },
        "it is for --for sglang and --for flexkv": {"--piece": not has_pieces and piece},
        f"it is for --for {NORMAL_VALUES}": {"--source": not is_of_values and source},
    }
    require_effect(idle, ExportError)


def _export_policy(files: Sequence[str], target: _Target) -> VerbResult:
    from waywiser.analysis.policy.policy_files import policy_of_files
    from waywiser.analysis.policy.table import FORMAT
    from waywiser.profile import STANDARD_OUTPUT, OutputKind, require_output, write_output
    from waywiser.render.views.policy import written_parts

    kind = OutputKind("policy", f'"{FORMAT}"')
    require_output(target.name, kind)
    found, tables = policy_of_files(files)
    if target.name in ("", STANDARD_OUTPUT):
        with target.text() as stream:
            stream.write(found.to_json().decode())
        return target.result()
    write_output(target.name, found.to_json(), kind)
    return target.result(written_parts(found, tables, target.name))


def _export_model(file: str, target: _Target, consumer: str) -> None:
    """Raises `ModelError` if there is nothing to export."""
    from waywiser.model.errors import ModelError
    from waywiser.model.machine_model import obtained_model
    from waywiser.notebook.remedies import possible_remedies
    from waywiser.profile import Profile

    with possible_remedies(file):
        with Profile.open(file) as profile:
            found = obtained_model(profile).capacities
        if not found.curves:
            raise ModelError(
                "the profile has no samples of single transfers, so there is nothing to export",
                where=file,
                remedy="survey the machine with waywiser survey --model",
            )
    with target.text() as stream:
        stream.write(_models()[consumer](found))


def _export_places(
    file: str, target: _Target, consumer: str, per_gpu: int, form: str
) -> tuple[str, ...]:
    """Writes what a launcher takes, and returns its reasons."""
    from waywiser.analysis.questions.rank_binding import bound_ranks
    from waywiser.exchange.settings.launchers import comments, launcher_text
    from waywiser.profile import Profile
    from waywiser.words.visible_text import pretty_json

    if form not in ("", "json"):
        raise ExportError(
            f"--for {consumer} has two forms", remedy="write --format json, or nothing"
        )
    with Profile.open(file) as profile:
        found = bound_ranks(profile, per_gpu)
        untimed = profile.machine.untimed
    text = launcher_text(found, consumer)
    if form:
        text = pretty_json({"launcher": consumer, "text": text, "binding": found})
    with target.text() as stream:
        stream.write(text)
    reasons = [*([f"The machine is {untimed}."] if untimed else []), *comments(found)]
    return () if form else tuple(reasons)


def _valid_format(format: str, writers: Container[str]) -> str:
    """Returns the format. Raises `ExportError` for one that does not exist, or no summary has."""
    if format not in FORMATS:
        raise ExportError(f"{format!r} is no format", remedy=f"write one of {', '.join(FORMATS)}")
    if format not in writers and format != "parquet":
        raise ExportError(
            f"--summary has no form of {format}", remedy="write --format csv, json or parquet"
        )
    return format


def _export_settings(file: str, target: _Target, consumer: str, piece: str) -> None:
    from waywiser.exchange.settings.consumers import settings_text
    from waywiser.profile import Profile

    piece_bytes = parse_bytes(piece) if piece else 0
    if piece and not piece_bytes:
        raise ExportError(f"--piece {piece} is no number of bytes", remedy="write 1 or more")
    with Profile.open(file) as profile:
        text = settings_text(profile, consumer, piece_bytes)
    with target.text() as stream:
        stream.write(text)


def _export_normal_values(file: str, target: _Target, source: str) -> tuple[str, ...]:
    """Returns what is said of rows in a file: all of them, since others will see them."""
    from waywiser.curves.normal import rows_text
    from waywiser.profile import STANDARD_OUTPUT, Profile

    with Profile.open(file) as profile:
        text = rows_text(profile, source)
    with target.text() as stream:
        stream.write(text)
    if target.name in ("", STANDARD_OUTPUT):
        return ()
    name = target.name
    return text, f"This is all that {name} has: no host, user, address or serial number."


def _format_of(output: str) -> str:
    """Raises `ExportError` for an extension that is no format."""
    suffix = PurePath(output).suffix.removeprefix(".").casefold()
    if suffix and suffix not in FORMATS:
        raise ExportError(
            f"{output}: no format has the extension .{suffix}",
            remedy="name it .csv, .json or .parquet, or add --format",
        )
    return suffix or USUAL_FORMAT


def _export_parquet(profile: Profile, target: _Target, summary: bool) -> None:
    from waywiser.curves import SERIES_TYPES
    from waywiser.exchange.exports.parquet import pyarrow, write_parquet
    from waywiser.exchange.exports.samples import summary_rows
    from waywiser.profile import rows_of
    from waywiser.profile.output_file import open_output
    from waywiser.profile.sample_rows import TYPES

    pyarrow()  # before a file is made
    if not target.takes_bytes:
        raise ExportError("Parquet is no text", remedy="name a file with -o, or pipe it on")
    rows, types = (summary_rows(profile), SERIES_TYPES) if summary else (rows_of(profile), TYPES)
    if target.name:
        with open_output(target.name) as stream:
            write_parquet(rows, types, stream)
        return
    kept = io.BytesIO()
    write_parquet(rows, types, kept)
    target.content = kept.getvalue()
