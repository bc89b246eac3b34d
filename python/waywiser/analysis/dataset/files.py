"""The files of a data set: ``day=2026-11-27/HOST-RUN.parquet``, one for each profile, and one for
each past day after it was packed.

A file is written whole and renamed. Two nodes never write to one file, so that nothing is locked.
A packed file is named by the runs in it, and what it holds is removed only after it is there: a
kill leaves at most runs that are there twice, which readers see by their names.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from hashlib import blake2b
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from waywiser.analysis.dataset.columns import MARK, NAMES, VERSION
from waywiser.analysis.dataset.engines import arrow_schema, engine
from waywiser.analysis.dataset.rows import RunRows
from waywiser.profile import NotWritable
from waywiser.words import replaced_file

_DAY = re.compile(r"day=([0-9]{4}-[0-9]{2}-[0-9]{2})")

_RUN = re.compile(r"-([0-9a-f]{16})\.parquet")

PACK = "all-"
"""How the name of a packed file begins."""

GONE = "is gone"
"""Why a file is left aside that another process has packed meanwhile: no fault of it."""

DELTAS = ("deviations.list.element",)
"""Columns of small numbers."""

SPLIT = ("seconds", "fastest", "shift")
"""Columns of floats, whose bytes are stored apart."""

LEVEL, PACKED_LEVEL = 3, 12
"""Levels of zstd."""

ROWS = 16_384
"""Rows of a row group: of a large fleet, the nights of some hosts are read alone."""

DICTIONARY = 256 * 2**20
"""Bytes up to which the distinct values of a column are stored once."""


class DataFile(NamedTuple):
    """One file."""

    path: Path
    day: str

    @property
    def run(self) -> str:
        """The run of a file that is not packed; else empty."""
        found = None if self.is_packed else _RUN.search(self.path.name)
        return found[1] if found else ""

    @property
    def is_packed(self) -> bool:
        return self.path.name.startswith(PACK)


def is_dataset(folder: Path) -> bool:
    """Whether a folder has days."""
    with suppress(OSError):
        return any(_DAY.fullmatch(each.name) for each in folder.iterdir())
    return False


def files_in(folder: Path, unreadable: dict[str, str] | None = None) -> list[DataFile]:
    """All files of the days of a folder, by name; foreign ones too. Folders that cannot be listed
    are added to ``unreadable``."""
    found = []
    for day in _names_in(folder, unreadable):
        if named := _DAY.fullmatch(day):
            own = [each for each in _names_in(folder / day, unreadable) if each[0] != "."]
            paths = [folder / day / each for each in own if each.endswith(".parquet")]
            found += [DataFile(path, named[1]) for path in paths]
    return found


def _names_in(folder: Path, unreadable: dict[str, str] | None) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        if unreadable is not None:
            unreadable[str(folder)] = f"cannot be listed: {error.strerror}"
        return []


def write_run(folder: Path, rows: RunRows) -> Path:
    """Writes the rows of a profile, or replaces what a former state of it has. Raises
    `NotWritable`, `NoEngine`."""
    path = folder / rows.file
    write_table(_table([rows]), path)
    return path


def _table(several: Sequence[RunRows]) -> Any:
    arrow = engine("pyarrow")
    schema = arrow_schema(arrow)
    columns = [
        arrow.array(
            list(chain.from_iterable(each.columns[field.name] for each in several)), field.type
        )
        for field in schema
    ]
    return arrow.Table.from_arrays(columns, schema=schema)


def write_day(folder: Path, day: str, several: Sequence[RunRows]) -> None:
    """Writes the rows of several profiles of a day into one file, which `pack` takes up. Raises
    `NotWritable`, `NoEngine`."""
    keys = (_key(each.run, each.columns["file_modified"][0]) for each in several)
    write_table(_table(several), folder / f"day={day}" / _packed_name(keys))


def _packed_name(keys: Iterable[str]) -> str:
    """The name of a packed file: equal for equal states of equal runs."""
    runs = "\0".join(sorted({*keys}))
    return f"{PACK}{blake2b(runs.encode(), digest_size=8).hexdigest()}.parquet"


def write_table(table: Any, path: Path, level: int = LEVEL) -> None:
    """Writes rows whole, with the encodings that each column has. Raises `NotWritable`, of a file
    of another version too."""
    parquet = engine("pyarrow.parquet")
    others = [
        each.name for each in table.schema if each.name not in SPLIT and each.name != "deviations"
    ]
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _require_same_version(path)
        with replaced_file(path) as part:
            parquet.write_table(
                table,
                part,
                compression="zstd",
                compression_level=level,
                use_dictionary=others,
                column_encoding={
                    **dict.fromkeys(SPLIT, "BYTE_STREAM_SPLIT"),
                    **dict.fromkeys(DELTAS, "DELTA_BINARY_PACKED"),
                },
                dictionary_pagesize_limit=DICTIONARY,
                row_group_size=ROWS,
                write_statistics=["host", "measured"],
            )
    except (OSError, UnicodeEncodeError) as error:
        raise NotWritable(
            f"cannot be written: {getattr(error, 'strerror', None) or error}",
            where=str(path),
            remedy="name a folder that is yours and has space",
        ) from error


def _require_same_version(path: Path) -> None:
    if path.exists() and (why := why_foreign(path)).startswith(OTHER_VERSION):
        raise NotWritable(why, where=str(path), remedy="write it with the Waywiser that wrote it")


OTHER_VERSION = "has columns of version"


def why_foreign(path: Path, *, whole: bool = False) -> str:
    """Why a file is not of a data set; empty if it is. ``whole`` reads all of it."""
    return _read(path, lambda file: file.read() if whole else None)[0]


def count_rows(path: Path) -> tuple[str, int]:
    """Why a file is not of a data set, empty if it is; and the number of its rows."""
    why, found = _read(path, lambda file: file.metadata.num_rows)
    return why, found or 0


def read_all(path: Path) -> tuple[str, Any]:
    """Why a file is not of a data set, empty if it is; and a `pyarrow.Table` of its rows with all
    columns: those that it lacks are null."""
    return _read(path, lambda file: _with_all_columns(file.read(use_threads=False)))


def _with_all_columns(table: Any) -> Any:
    arrow = engine("pyarrow")
    schema = arrow_schema(arrow)
    if table.schema.equals(schema):
        return table
    columns = [
        table[field.name].cast(field.type, safe=not arrow.types.is_timestamp(field.type))
        if field.name in table.column_names
        else arrow.nulls(len(table), field.type)
        for field in schema
    ]
    return arrow.Table.from_arrays(columns, schema=schema)


def _read(path: Path, read: Callable[[Any], Any]) -> tuple[str, Any]:
    """Why a file is not of a data set, empty if it is; and what is ``read`` of it."""
    arrow, parquet = engine("pyarrow"), engine("pyarrow.parquet")
    try:
        with parquet.ParquetFile(path, pre_buffer=False) as file:
            why = _why_foreign(arrow, file.schema_arrow)
            return why, None if why else read(file)
    except FileNotFoundError:
        return GONE, None
    except UnicodeEncodeError:
        return "has a name that is not UTF-8", None
    except (OSError, arrow.ArrowException) as error:
        return f"is damaged: {str(error).splitlines()[0]}", None


def _why_foreign(arrow: Any, schema: Any) -> str:
    usual = arrow_schema(arrow)
    if schema.equals(usual, check_metadata=True):
        return ""
    version = (schema.metadata or {}).get(MARK)
    if version is not None and version != str(VERSION).encode():
        return f"{OTHER_VERSION} {version.decode(errors='replace')}, not of {VERSION}"
    if version is None or not {*_NEEDED} <= {*schema.names}:
        return "is no file of a Waywiser data set"
    for field in usual:
        if field.name in schema.names:
            kind = _kind(arrow.types, schema.field(field.name).type)
            if kind not in ("null", _kind(arrow.types, field.type)):
                return f"has values of another type in {field.name}: {kind}"
    return ""


def _kind(types: Any, of: Any) -> str:
    """A name of the types of Arrow whose values are the same."""
    if types.is_dictionary(of):
        return _kind(types, of.value_type)
    if types.is_list(of) or types.is_large_list(of):
        return f"list of {_kind(types, of.value_type)}"
    if types.is_timestamp(of):
        return "timestamp" if of.tz else "timestamp without a zone"
    if types.is_string(of) or types.is_large_string(of):
        return "string"
    if types.is_integer(of):
        return "integer"
    return "float" if types.is_floating(of) else str(of)


def _why_left(table: Any) -> str:
    """Why `pack` leaves the file of a table as it is; empty if it takes it up."""
    if unknown := sorted({*table.column_names} - {*NAMES}):
        return f"has a column that is not known here: {unknown[0]}"
    keys = ("run", "host", "measured", "file_modified")
    empty = [name for name in keys if table[name].null_count]
    return f"has no {empty[0]} in a row" if empty else ""


_NEEDED = ("run", "number", "host", "measured", "path", "bytes", "seconds", "file_modified")
"""Columns that every version has."""


class Packed(NamedTuple):
    """What `pack` did."""

    days: int
    files: int
    """Files that are now in those of days."""
    rows: int
    bytes: int
    left: dict[str, str]
    """File -> why it stayed as it is."""


def pack(folder: Path, now: datetime | None = None) -> Packed:
    """Packs the files of past days (UTC), one file a day. It can be killed at any moment, and run
    twice at once. Raises `NotWritable`, `NoEngine`."""
    today = (now or datetime.now(UTC)).date().isoformat()
    days: dict[str, list[DataFile]] = {}
    total = Packed(0, 0, 0, 0, {})
    for file in files_in(folder, total.left):
        if file.day < today:
            days.setdefault(file.day, []).append(file)
    for files in days.values():
        if len(files) > 1 or not files[0].is_packed:
            total = _packed_day(files, total)
    return total


def _taken_up(
    files: Sequence[DataFile], left: dict[str, str]
) -> Iterator[tuple[Path, tuple[int, int, int], Any]]:
    """The files that are packed, the state of each and its table. Others are added to ``left``."""
    arrow = engine("pyarrow")
    for file in files:
        state = _state(file.path)
        why, table = _read(file.path, lambda file: file.read())
        if why := why or _why_left(table):
            if why != GONE:  # packed by another process
                left[str(file.path)] = why
            continue
        try:
            yield file.path, state, _as_known(arrow, table, arrow_schema(arrow))
        except arrow.ArrowException as error:
            left[str(file.path)] = f"has a value that does not fit: {str(error).splitlines()[0]}"


def _packed_day(files: Sequence[DataFile], total: Packed) -> Packed:
    arrow, left = engine("pyarrow"), dict(total.left)
    taken = list(_taken_up(files, left))
    if not taken:
        return total._replace(left=left)
    read = [(path, state) for path, state, _ in taken]
    tables = [table for *_, table in taken]
    table = _latest(arrow, arrow.concat_tables(tables))
    path = files[0].path.with_name(_packed_name(_keys(table)))
    if str(path) in left:
        return total._replace(left=left)
    if [each for each, _ in read] != [path]:
        write_table(table.sort_by([("host", "ascending"), ("measured", "ascending"),
                              ("number", "ascending")]),
               path, PACKED_LEVEL)  # fmt: skip
    for old, state in read:
        if old != path and _state(old) == state:  # else it was replaced meanwhile
            with suppress(FileNotFoundError):
                old.unlink()
    return Packed(
        total.days + 1,
        total.files + len(read),
        total.rows + table.num_rows,
        total.bytes + path.stat().st_size,
        left,
    )


def _keys(table: Any) -> Iterator[str]:
    """The runs of a table, each with the state of its profile."""
    distinct = table.group_by(["run", "file_modified"]).aggregate([])
    for run, modified in zip(distinct["run"].to_pylist(), distinct["file_modified"].to_pylist(),
                             strict=True):  # fmt: skip
        yield _key(run, modified)


def _key(run: str, modified: int) -> str:
    return f"{run} {modified}"


def _latest(arrow: Any, table: Any) -> Any:
    """The rows of the latest state of each run, each once."""
    import pyarrow.compute as compute

    newest = table.group_by("run").aggregate([("file_modified", "max")])
    latest = dict(
        zip(newest["run"].to_pylist(), newest["file_modified_max"].to_pylist(), strict=True)
    )
    limit = arrow.array([latest[run] for run in table["run"].to_pylist()], arrow.int64())
    table = table.filter(compute.equal(table["file_modified"], limit))
    # of two files with the same state of a run the first counts
    seen: dict[str, int] = {}
    kept = []
    for n, chunk in enumerate(table["run"].chunks):
        for run in chunk.to_pylist():
            kept.append(seen.setdefault(run, n) == n)
    return table.filter(arrow.array(kept, arrow.bool_()))


def _as_known(arrow: Any, table: Any, schema: Any) -> Any:
    """The columns that are known; those that a file lacks are null."""
    columns = [
        table[field.name].cast(field.type, safe=not arrow.types.is_timestamp(field.type))
        if field.name in table.schema.names
        else arrow.nulls(table.num_rows, field.type)
        for field in schema
    ]
    return arrow.Table.from_arrays(columns, schema=schema).combine_chunks()


def _state(path: Path) -> tuple[int, int, int]:
    try:
        found = path.stat()
    except OSError:
        return 0, 0, 0
    return found.st_ino, found.st_size, found.st_mtime_ns
