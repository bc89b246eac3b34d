"""``waywiser export``: a profile in the formats of other programs, or settings of theirs."""

from __future__ import annotations

import io
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, TextIO

from waywiser.cli.app import ProfileFile, verb
from waywiser.words import WaywiserError, parse_bytes

if TYPE_CHECKING:
    from collections.abc import Container

    from waywiser.profile import Profile

FORMATS = ("csv", "json", "parquet", "google-benchmark")

USUAL_FORMAT = "json"
"""The format if neither an option nor the name of the output says another."""


NORMAL_VALUES = "normal-values"
"""Rows for a table of the bandwidths that machines reach: no settings of a program."""


class ExportError(WaywiserError):
    """A profile that cannot be exported as asked."""


@verb()
def export(
    file: ProfileFile,
    summary: bool = False,
    format: str = "",
    output: str = "",
    consumer: str = "",
    piece: str = "",
    source: str = "",
) -> int:
    """Write a profile's samples, a summary, or settings of other programs.

    --summary: Write a row per path and size: bandwidth, latency and intervals.
    --format FORMAT: json, csv (a row per sample), parquet (the same, with pyarrow) or
        google-benchmark (its JSON, under Comm|Scope's names); by default what the name of -o says,
        else json. parquet of a folder of profiles is a data set: a file for each past day.
    -o, --output FILE: Write to FILE; by default to standard output, or with -. A terminal gets more
        than a screen of text only with -. Of a folder of profiles the data set is written to this
        folder, by default beside them.
    --for PROGRAM: Write settings of another program from what was measured: ucx, vllm, sglang,
        flexkv or kv-offload (JSON); or normal-values: rows for a table of what machines reach.
    --piece SIZE: With --for sglang or flexkv: bytes of one piece of the KV cache, as 32KiB.
    --source SOURCE: With --for normal-values: the page (https://...) or the repository
        (owner/name:path) where others find the profile.

    waywiser export node.wwp --for ucx -o ucx.conf
        write measured settings for UCX
    waywiser export nodes --format parquet
        write a data set of all profiles of a folder
    """
    from waywiser.exchange.exports.samples import SUMMARY_WRITERS, WRITERS
    from waywiser.profile import Profile

    if os.path.isdir(file) and format == "parquet" and not (summary or consumer or source):
        return _export_dataset(file, output)
    _require_sense(output, consumer, piece, has_form=bool(format) or summary)
    if bool(source) is not (consumer == NORMAL_VALUES):
        raise ExportError(
            f"--source and --for {NORMAL_VALUES} belong together", remedy="write both or neither"
        )
    if source:
        return _export_normal_values(file, output, source)
    if consumer:
        return _export_settings(file, output, consumer, piece)
    writers = SUMMARY_WRITERS if summary else WRITERS
    format = _valid_format(format or _format_of(output), writers)
    with Profile.open(file) as profile:
        if format == "parquet":
            _export_parquet(profile, output, summary)
            return 0
        with _text_stream(output) as stream:
            writers[format](profile, stream)
    return 0


def _export_dataset(folder: str, output: str) -> int:
    """Brings the data set of a folder of profiles up to date, and packs past days."""
    from waywiser.analysis.dataset.profiles import export_profiles
    from waywiser.cli.streams import say
    from waywiser.words.number_format import count

    dataset = Path(output or folder)
    done = export_profiles(Path(folder), dataset)
    for file, why in done.unreadable.items():
        say(f"waywiser: {file}: {why}\n")
    say(
        f"{dataset}: {count(done.added, 'profile')} added, {done.known} known; "
        f"{count(done.packed.days, 'day')} packed\n"
    )
    return 0


def _require_sense(output: str, consumer: str, piece: str, *, has_form: bool) -> None:
    """Raises `ExportError` for a file named as a profile, and for options that exclude another."""
    from waywiser.profile.file_name import SUFFIX

    if PurePath(output).suffix == SUFFIX:
        raise ExportError(f"{output}: an export is no profile", remedy="name it .csv or .json")
    if consumer and has_form:
        raise ExportError(f"--for {consumer} has one form", remedy="remove --format and --summary")
    if piece and not consumer:
        raise ExportError("--piece is for settings", remedy="add --for sglang or --for flexkv")


def _valid_format(format: str, writers: Container[str]) -> str:
    """Returns the format. Raises `ExportError` for one that does not exist, or no summary has."""
    if format not in FORMATS:
        raise ExportError(f"{format!r} is no format", remedy=f"write one of {', '.join(FORMATS)}")
    if format not in writers and format != "parquet":
        raise ExportError(
            f"--summary has no form of {format}", remedy="write --format csv, json or parquet"
        )
    return format


def _export_settings(file: str, output: str, consumer: str, piece: str) -> int:
    from waywiser.exchange.settings.consumers import settings_text
    from waywiser.profile import Profile

    piece_bytes = parse_bytes(piece) if piece else 0
    if piece and not piece_bytes:
        raise ExportError(f"--piece {piece} is no number of bytes", remedy="write 1 or more")
    with Profile.open(file) as profile:
        text = settings_text(profile, consumer, piece_bytes)
    with _text_stream(output) as stream:
        stream.write(text)
    return 0


def _export_normal_values(file: str, output: str, source: str) -> int:
    """Raises `ExportError` if no row can be made, and what `read_values` raises for rows that are
    not in the form."""
    from waywiser.curves.curve import curves_of
    from waywiser.curves.normal import values_of
    from waywiser.curves.normal_table import read_values, values_text
    from waywiser.curves.overview import overview
    from waywiser.profile import Profile

    with Profile.open(file) as profile:
        curves = curves_of(overview(profile).series)
        found = values_of(profile.machine, curves, source, profile.created[:7])
    if not found:
        raise ExportError(
            "no headline path has a link that is known and an interval that is narrow enough",
            where=file,
            remedy=f"waywiser check {file} --all says of each path why",
        )
    text = values_text(found)
    read_values(text, "the rows")
    with _text_stream(output) as stream:
        stream.write(text)
    return 0


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
