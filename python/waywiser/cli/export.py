"""``waywiser export``: a profile in the formats of other programs, or settings of theirs."""

from __future__ import annotations

import io
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Annotated, TextIO

from waywiser.cli.app import verb
from waywiser.words import WaywiserError, parse_bytes
from waywiser.words.numbers import Bounds

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Mapping, Sequence

    from waywiser.model.capacity import CapacityModel
    from waywiser.profile import Profile

RANKS_PER_GPU = Bounds(1, 4096)

FORMATS = ("csv", "json", "parquet", "google-benchmark")

USUAL_FORMAT = "json"
"""The format if neither an option nor the name of the output says another."""


NORMAL_VALUES = "normal-values"
"""Rows for a table of the bandwidths that machines reach: no settings of a program."""

POLICY = "waywiser"
"""What `waywiser.transfer` reads."""


class ExportError(WaywiserError):
    """A profile that cannot be exported as asked."""


@verb("Write a profile, settings, a policy or a model for other programs.")
def export(
    files: list[str],
    summary: bool = False,
    format: str = "",
    output: str = "",
    consumer: str = "",
    piece: str = "",
    source: str = "",
    ranks_per_gpu: Annotated[int, RANKS_PER_GPU] = 1,
) -> None:
    """Write a profile's samples or a summary, its policy for waywiser.transfer, or settings and a
    model for other programs.

    FILE...: A profile (.wwp); with --for waywiser several of one machine; with --format parquet a
        folder of profiles.
    --summary: Write a row per path and size: bandwidth, latency and intervals.
    --format FORMAT: The form of the file: json, csv (a row per sample), parquet (the same, with
        pyarrow) or google-benchmark (its JSON, under Comm|Scope's names); by default what the name
        of -o says, else json. parquet of a folder of profiles is a data set: a file for each past
        day. With --for slurm, mpich or openmpi: json has the reasons too.
    -o, --output FILE: Write to FILE; by default to standard output, or with -. A terminal gets more
        than a screen of text only with -. Of a folder of profiles the data set is written to this
        folder, by default beside them.
    --for PROGRAM: Write for another program. waywiser: which method is fastest for each copy, as
        waywiser.transfer reads it; a former policy is replaced. ucx, vllm, sglang, flexkv,
        kv-offload (JSON): settings from what was measured. reframe (JSON): references for a test of
        ReFrame. slurm, mpich (options), openmpi (a rankfile): one process for each GPU on the
        better NUMA node; standard error has the reasons. simgrid, astra-sim, model (JSON): the
        model of the machine. normal-values: rows for a table of what machines reach, which name
        no host, user, address or serial number; they are shown before -o FILE is written.
    --piece SIZE: Bytes of one piece of the KV cache, as 32KiB, for --for sglang or flexkv.
    --source SOURCE: The page (https://...) or the repository (owner/name:path) where others find
        the profile, for --for normal-values; by default "sent", for rows that you send to somebody.
    --ranks-per-gpu N: So many processes of each GPU for --for slurm, mpich or openmpi; by default
        1.

    waywiser export node.wwp --for waywiser -o machine.json
        write the policy of this machine for waywiser.transfer
    waywiser export nodes --format parquet
        write a data set of all profiles of a folder
    """
    _require_sense(output, consumer, piece, source, has_form=bool(format) or summary)
    if consumer == POLICY:
        _export_policy(files, output)
        return
    if len(files) == 1 and os.path.isdir(files[0]) and format == "parquet" and not consumer:
        _export_dataset(files[0], output)
        return
    if len(files) > 1:
        what = f"--for {consumer}" if consumer else "an export"
        raise ExportError(f"{what} is of one profile", remedy="name one")
    (file,) = files
    _require_known(consumer)
    if consumer == NORMAL_VALUES:
        _export_normal_values(file, output, source)
    elif consumer in _launchers():
        _export_places(file, output, consumer, ranks_per_gpu, "summary" if summary else format)
    elif consumer in _models():
        _export_model(file, output, consumer)
    elif consumer:
        _export_settings(file, output, consumer, piece)
    else:
        _export_samples(file, output, format, summary=summary)


def _export_samples(file: str, output: str, format: str, *, summary: bool) -> None:
    from waywiser.exchange.exports.samples import SUMMARY_WRITERS, WRITERS
    from waywiser.profile import Profile

    writers = SUMMARY_WRITERS if summary else WRITERS
    format = _valid_format(format or _format_of(output), writers)
    with Profile.open(file) as profile:
        if format == "parquet":
            _export_parquet(profile, output, summary)
            return
        with _text_stream(output) as stream:
            writers[format](profile, stream)


def _require_known(consumer: str) -> None:
    """Raises `ExportError` for a program that nothing is written for."""
    from waywiser.exchange.settings.consumers import CONSUMERS

    known = (POLICY, *CONSUMERS, *_launchers(), *_models(), NORMAL_VALUES)
    if consumer and consumer not in known:
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


def _export_dataset(folder: str, output: str) -> None:
    """Brings the data set of a folder of profiles up to date, and packs past days. Raises
    `ExportError` for standard output, and an error if no profile can be read."""
    from waywiser.analysis.dataset.files import files_in, is_dataset
    from waywiser.analysis.dataset.profiles import export_profiles
    from waywiser.cli.streams import say
    from waywiser.cli.unread_files import none_read
    from waywiser.profile.file_name import profiles_in, why_no_profile
    from waywiser.profile.output_file import STANDARD_OUTPUT
    from waywiser.words.number_format import count

    if output == STANDARD_OUTPUT:
        raise ExportError("a data set is a folder", remedy="name one with -o, or remove -o")
    dataset = Path(output or folder)
    done = export_profiles(Path(folder), dataset)
    # Of a data set without profiles, to which surveys write, past days are packed.
    is_alone = dataset == Path(folder) and is_dataset(dataset) and not profiles_in(dataset)
    if not (done.added or done.known or is_alone):
        raise none_read(done.unreadable or {folder: why_no_profile(folder)}, "no profile to export")
    for file, why in done.unreadable.items():
        say(f"waywiser: {file}: {why}\n")
    files = files_in(dataset)
    days = len({each.day for each in files})
    say(
        f"{dataset}: {count(done.added, 'profile')} added, {done.known} known; "
        f"{count(len(files), 'file')} of {count(days, 'day')}\n"
    )


def _require_sense(output: str, consumer: str, piece: str, source: str, *, has_form: bool) -> None:
    """Raises `ExportError` for a file named as a profile, and for options that exclude another."""
    from waywiser.profile.file_name import SUFFIX

    if PurePath(output).suffix == SUFFIX:
        raise ExportError(f"{output}: an export is no profile", remedy="name it .csv or .json")
    if consumer and has_form and consumer not in _launchers():
        raise ExportError(f"--for {consumer} has one form", remedy="remove --format and --summary")
    if piece and consumer in ("", POLICY, NORMAL_VALUES, *_launchers(), *_models()):
        raise ExportError("--piece is for settings", remedy="add --for sglang or --for flexkv")
    if source and consumer != NORMAL_VALUES:
        raise ExportError(
            f"--source is for --for {NORMAL_VALUES}", remedy=f"add --for {NORMAL_VALUES}"
        )


def _export_policy(files: Sequence[str], output: str) -> None:
    from waywiser.analysis.policy.policy_files import policy_of_files
    from waywiser.analysis.policy.table import FORMAT
    from waywiser.cli.app import print_result
    from waywiser.profile.output_file import (
        STANDARD_OUTPUT,
        OutputKind,
        require_output,
        write_output,
    )
    from waywiser.report.views.policy import written_parts

    kind = OutputKind("policy", f'"{FORMAT}"')
    require_output(output, kind)
    found, tables = policy_of_files(files)
    if output in ("", STANDARD_OUTPUT):
        with _text_stream(output) as stream:
            stream.write(found.to_json().decode())
        return
    write_output(output, found.to_json(), kind)
    print_result(None, written_parts(found, tables, output))


def _export_model(file: str, output: str, consumer: str) -> None:
    """Raises `ModelError` if there is nothing to export."""
    from waywiser.cli.remedies import possible_remedies
    from waywiser.model.errors import ModelError
    from waywiser.model.machine_model import obtained_model
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
    with _text_stream(output) as stream:
        stream.write(_models()[consumer](found))


def _export_places(file: str, output: str, consumer: str, per_gpu: int, form: str) -> None:
    """Writes what a launcher takes, and its reasons to standard error."""
    from waywiser.analysis.questions.rank_binding import bound_ranks
    from waywiser.cli.app import print_result
    from waywiser.cli.streams import json_text
    from waywiser.exchange.settings.launchers import comments, launcher_text
    from waywiser.profile import Profile
    from waywiser.report.parts import Words

    if form not in ("", "json"):
        raise ExportError(
            f"--for {consumer} has two forms", remedy="write --format json, or nothing"
        )
    with Profile.open(file) as profile:
        found = bound_ranks(profile, per_gpu)
        untimed = profile.machine.untimed
    text = launcher_text(found, consumer)
    if form:
        text = json_text({"launcher": consumer, "text": text, "binding": found})
    else:
        notes = [*([f"The machine is {untimed}."] if untimed else []), *comments(found)]
        print_result(None, map(Words, notes), to_errors=True)
    with _text_stream(output) as stream:
        stream.write(text)


def _valid_format(format: str, writers: Container[str]) -> str:
    """Returns the format. Raises `ExportError` for one that does not exist, or no summary has."""
    if format not in FORMATS:
        raise ExportError(f"{format!r} is no format", remedy=f"write one of {', '.join(FORMATS)}")
    if format not in writers and format != "parquet":
        raise ExportError(
            f"--summary has no form of {format}", remedy="write --format csv, json or parquet"
        )
    return format


def _export_settings(file: str, output: str, consumer: str, piece: str) -> None:
    from waywiser.exchange.settings.consumers import settings_text
    from waywiser.profile import Profile

    piece_bytes = parse_bytes(piece) if piece else 0
    if piece and not piece_bytes:
        raise ExportError(f"--piece {piece} is no number of bytes", remedy="write 1 or more")
    with Profile.open(file) as profile:
        text = settings_text(profile, consumer, piece_bytes)
    with _text_stream(output) as stream:
        stream.write(text)


def _export_normal_values(file: str, output: str, source: str) -> None:
    from waywiser.cli.streams import say
    from waywiser.curves.normal import rows_text
    from waywiser.profile import Profile
    from waywiser.profile.output_file import STANDARD_OUTPUT

    with Profile.open(file) as profile:
        text = rows_text(profile, source)
    if output not in ("", STANDARD_OUTPUT):
        say(f"{text}\nThis is all that {output} has: no host, user, address or serial number.\n")
    with _text_stream(output) as stream:
        stream.write(text)


def _format_of(output: str) -> str:
    """Raises `ExportError` for an extension that is no format."""
    suffix = PurePath(output).suffix.removeprefix(".").casefold()
    if suffix and suffix not in FORMATS:
        raise ExportError(
            f"{output}: no format has the extension .{suffix}",
            remedy="name it .csv, .json or .parquet, or add --format",
        )
    return suffix or USUAL_FORMAT


@contextmanager
def _text_stream(output: str) -> Iterator[TextIO]:
    """The stream of an output; the terminal takes no more than a screen unless it is named."""
    from waywiser.profile.output_file import STANDARD_OUTPUT, open_text_output

    if output or not sys.stdout.isatty():
        with open_text_output(output or STANDARD_OUTPUT) as stream:
            yield stream
        return
    screen = OneScreen()
    yield screen
    sys.stdout.write(screen.text)


class TooLongForScreen(WaywiserError):
    """Text that a terminal is not asked to show."""


class OneScreen(io.StringIO):
    """Keeps what is written. Raises `TooLongForScreen` as soon as it has more lines than the
    terminal, less one for the next prompt."""

    def __init__(self) -> None:
        super().__init__(newline="")
        self._size = shutil.get_terminal_size()

    def write(self, text: str) -> int:
        written = super().write(text)
        if self._lines() >= self._size.lines:
            raise TooLongForScreen(
                f"this is more than the {self._size.lines} lines of the terminal",
                remedy="write it to a file with -o FILE, or to the terminal with -o -",
            )
        return written

    @property
    def text(self) -> str:
        """What was written."""
        return self.getvalue()

    def _lines(self) -> int:
        """Lines of the terminal, which folds long ones."""
        width = max(1, self._size.columns)
        return sum(max(1, -(-len(line) // width)) for line in self.text.splitlines())


def _export_parquet(profile: Profile, output: str, summary: bool) -> None:
    from waywiser.curves.series_rows import SERIES_TYPES
    from waywiser.exchange.exports.parquet import pyarrow, write_parquet
    from waywiser.exchange.exports.samples import summary_rows
    from waywiser.profile.output_file import STANDARD_OUTPUT, open_output
    from waywiser.profile.sample_rows import TYPES, rows_of

    pyarrow()  # before a file is made
    if output in ("", STANDARD_OUTPUT) and sys.stdout.isatty():
        raise ExportError("Parquet is no text", remedy="name a file with -o, or pipe it on")
    rows = summary_rows(profile) if summary else rows_of(profile)
    with open_output(output or STANDARD_OUTPUT) as stream:
        write_parquet(rows, SERIES_TYPES if summary else TYPES, stream)
