"""A data set: it says what its profiles say, and nothing that happens to its files loses or
doubles a run."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sqlite3
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import waywiser
from kept import RESULTS, unpacked
from waywiser.analysis.dataset import engines, profiles, scan, workers
from waywiser.analysis.dataset.columns import COLUMNS, NAMES, columns_table
from waywiser.analysis.dataset.files import files_in, is_dataset, pack
from waywiser.analysis.dataset.profiles import export_profiles, read_nights, record
from waywiser.analysis.dataset.rows import read_rows
from waywiser.analysis.dataset.scan import Scan
from waywiser.analysis.history.night import read_night
from waywiser.cli import run
from waywiser.curves.subject import read_subject
from waywiser.measure import survey_run
from waywiser.measure.probe.sharing import SurveyLock
from waywiser.profile.checksum import sealed
from waywiser.profile.errors import DamagedProfile, NotWritable

CHECKS = [RESULTS / "2026-11-22-check-two-gpus" / f"check-{n}.wwp.xz" for n in (1, 2, 3)]

LATER = datetime(2030, 1, 1, tzinfo=UTC)

STEP = 1 / 40_000
"""By how much a process in a data set may differ: half of a step."""


@pytest.fixture(autouse=True)
def _own_lock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other tests may survey this host meanwhile."""
    monkeypatch.setattr(survey_run, "SurveyLock", lambda: SurveyLock(f"waywiser-{os.getpid()}"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three profiles of one day."""
    found = tmp_path / "nodes"
    found.mkdir()
    for n, packed in enumerate(CHECKS):
        unpacked(packed, found / f"{n}.wwp")
    return found


def runs(folder: Path) -> list[str]:
    return sorted(str(row.file) for row in Scan(folder).runs)


def rows(folder: Path) -> int:
    return int(Scan(folder).relation.count("*").fetchall()[0][0])


def test_a_night_is_that_of_the_profile(folder: Path) -> None:
    before = read_nights([str(folder)])
    export_profiles(folder, folder)
    found = read_nights([str(folder)])
    assert (before.read, found.read) == (3, 0)
    assert sorted(found.nights, key=lambda n: n.file) == sorted(before.nights, key=lambda n: n.file)
    assert read_night(str(folder / "0.wwp")) in found.nights


def test_a_subject_is_that_of_the_profile_to_half_of_a_step(folder: Path) -> None:
    export_profiles(folder, folder)
    whole = Scan(folder)
    for node in whole.subjects(whole.runs):
        own = read_subject(node.file, links=True)
        for name in ("name", "machine", "environment", "links", "health", "created", "unfinished"):
            assert getattr(node, name) == getattr(own, name)
        assert [point.text for point in node.points] == [point.text for point in own.points]
        for mine, theirs in zip(node.points, own.points, strict=True):
            assert len(mine.blocks) == len(theirs.blocks)
            for one, other in zip(mine.blocks, theirs.blocks, strict=True):
                assert one.median == pytest.approx(other.median, rel=1.01 * STEP)


def test_what_a_survey_wrote_and_what_an_export_wrote_is_there_once(folder: Path) -> None:
    record(str(folder / "0.wwp"), folder)
    export_profiles(folder, folder)
    record(str(folder / "1.wwp"), folder)
    assert len(files_in(folder)) == 2
    assert runs(folder) == ["0.wwp", "1.wwp", "2.wwp"]
    once = rows(folder)
    assert pack(folder, LATER).files == 2
    assert len(files_in(folder)) == 1
    assert (runs(folder), rows(folder)) == (["0.wwp", "1.wwp", "2.wwp"], once)


def test_files_of_today_are_not_packed(folder: Path) -> None:
    for n in range(3):
        record(str(folder / f"{n}.wwp"), folder)
    day = files_in(folder)[0].day
    assert pack(folder, datetime.fromisoformat(f"{day}T23:00+00:00")).days == 0
    assert len(files_in(folder)) == 3


def test_a_profile_that_changed_is_read_and_replaces_its_rows(folder: Path) -> None:
    export_profiles(folder, folder)
    (folder / "0.wwp").write_bytes((folder / "1.wwp").read_bytes())
    found = read_nights([str(folder)])
    assert found.read == 1
    own = {Path(night.file).name: night for night in found.nights}
    assert own["0.wwp"].paths == own["1.wwp"].paths
    assert export_profiles(folder, folder)[:2] == (1, 2)
    assert read_nights([str(folder)]).read == 0
    assert len(runs(folder)) == len(set(runs(folder))) or len(runs(folder)) == 4


def test_each_survey_is_a_night_though_all_profiles_have_one_name(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nodes = tmp_path / "set"
    for n in range(3):
        own = tmp_path / str(n) / "night.wwp"
        own.parent.mkdir()
        own.write_bytes((folder / f"{n}.wwp").read_bytes())
        record(str(own), nodes)
    shutil.copy2(own, nodes / "night.wwp")
    found = read_nights([str(nodes)])
    assert (len(found.nights), found.read) == (3, 0)
    assert len({*found.files}) == 3 and str(nodes / "night.wwp") in found.files
    assert export_profiles(nodes, nodes)[:2] == (0, 1)
    assert run(["check", str(nodes), "--json"]) == 0
    (node,) = json.loads(capsys.readouterr().out)["nights"]["nodes"]
    assert node["surveys"] == 3


def test_a_profile_that_changed_supersedes_only_its_own_run(folder: Path) -> None:
    export_profiles(folder, folder)
    os.utime(folder / "1.wwp", (1, 1))
    found = read_nights([str(folder)])
    assert (len(found.nights), found.read) == (3, 1)
    assert sorted(found.files) == [str(folder / f"{n}.wwp") for n in range(3)]


def test_rows_stay_when_the_profile_is_gone(folder: Path) -> None:
    export_profiles(folder, folder)
    (folder / "2.wwp").unlink()
    assert len(read_nights([str(folder)]).nights) == 3
    export_profiles(folder, folder)
    assert runs(folder) == ["0.wwp", "1.wwp", "2.wwp"]


def test_damaged_and_foreign_files_are_named_and_left_aside(folder: Path) -> None:
    export_profiles(folder, folder)
    whole = files_in(folder)[0].path
    damaged, foreign, cut = (whole.with_name(f"{n}.parquet") for n in ("all-d", "foreign", "cut"))
    pq.write_table(pa.table({"a": [1]}), foreign)
    cut.write_bytes(whole.read_bytes()[:1000])
    content = bytearray(whole.read_bytes())
    content[200:4000] = bytes(3800)
    damaged.write_bytes(content)
    found = read_nights([str(folder)])
    assert len(found.nights) == 3
    assert found.scans[str(folder)].unreadable.keys() >= {str(foreign), str(cut)}
    assert "no file of a Waywiser data set" in found.scans[str(folder)].unreadable[str(foreign)]
    assert str(damaged) in found.unreadable
    left = pack(folder, LATER).left
    assert left.keys() == {str(foreign), str(cut), str(damaged)}
    assert all(path.exists() for path in (foreign, cut, damaged)), "nothing is removed unread"
    assert runs(folder) == ["0.wwp", "1.wwp", "2.wwp"]


def test_unknown_columns_are_ignored_and_missing_ones_are_empty(folder: Path) -> None:
    record(str(folder / "0.wwp"), folder)
    (path,) = [file.path for file in files_in(folder)]
    table = pq.read_table(path, partitioning=None)
    more = table.append_column("of_a_later_version", pa.nulls(table.num_rows, pa.string()))
    pq.write_table(more.drop_columns(["noise", "gpus", "facts", "class"]), path)
    whole = Scan(folder)
    assert whole.relation.columns == [*NAMES, "day"]
    assert whole.relation.filter("noise IS NOT NULL").count("*").fetchall() == [(0,)]
    assert len(whole.nights(whole.runs)[0].paths) == 10


def damaged_in(path: Path, column: str) -> None:
    """Flips bytes of the values of a column, and leaves the footer as it is."""
    content = bytearray(path.read_bytes())
    group = pq.ParquetFile(path).metadata.row_group(0)
    (own,) = [
        group.column(n)
        for n in range(group.num_columns)
        if group.column(n).path_in_schema == column
    ]
    first = own.dictionary_page_offset or own.data_page_offset
    for at in range(first, first + own.total_compressed_size):
        content[at] ^= 0xFF
    path.write_bytes(content)


@pytest.mark.parametrize("column", ["run", "file_modified", "seconds"])
def test_a_packed_file_whose_values_are_damaged_is_named_and_left_aside(
    folder: Path, column: str, capsys: pytest.CaptureFixture[str]
) -> None:
    export_profiles(folder, folder, LATER)
    (packed,) = [file.path for file in files_in(folder)]
    record(str(folder / "0.wwp"), folder)
    for profile in folder.glob("*.wwp"):
        profile.rename(folder.parent / profile.name)
    damaged_in(packed, column)
    assert run(["check", str(folder), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["nights"]["nodes"][0]["surveys"] == 1
    assert list(found["nights"]["unreadable"]) == [str(packed)]
    assert run(["export", str(folder), "--format", "parquet"]) == 0
    assert f"{packed}: is damaged" in capsys.readouterr().err
    if column != "seconds":
        assert waywiser.fleet(folder).aggregate("count(DISTINCT run)").fetchall() == [(1,)]


def test_files_that_are_packed_while_they_are_listed_are_listed_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for n in range(3):
        record(str(folder / f"{n}.wwp"), folder)
    query = Scan._query

    def packed_before(self: Scan, files: Any) -> str:
        pack(folder, LATER)
        return query(self, files)

    monkeypatch.setattr(Scan, "_query", packed_before)
    assert runs(folder) == ["0.wwp", "1.wwp", "2.wwp"]


def test_files_that_are_packed_while_they_are_read_are_listed_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for n in range(3):
        record(str(folder / f"{n}.wwp"), folder)
    read = scan.read_all

    def packed_after(path: Path) -> Any:
        found = read(path)
        pack(folder, LATER)
        return found

    monkeypatch.setattr(scan, "read_all", packed_after)
    assert runs(folder) == ["0.wwp", "1.wwp", "2.wwp"]


def test_files_of_another_version_are_named_and_stay(folder: Path) -> None:
    for n in range(3):
        record(str(folder / f"{n}.wwp"), folder)
    other = files_in(folder)[0].path
    table = pq.read_table(other, partitioning=None)
    pq.write_table(table.replace_schema_metadata({b"waywiser": b"2"}), other)
    content = other.read_bytes()
    assert Scan(folder).unreadable == {str(other): "has columns of version 2, not of 1"}
    assert runs(folder) != ["0.wwp", "1.wwp", "2.wwp"]
    done = pack(folder, LATER)
    assert (done.files, done.left.keys()) == (2, {str(other)})
    for n in range(3):
        with contextlib.suppress(NotWritable):
            record(str(folder / f"{n}.wwp"), folder)
    assert other.read_bytes() == content


def test_a_packed_file_of_another_version_is_not_replaced_by_the_same_runs(folder: Path) -> None:
    export_profiles(folder, folder, LATER)
    (packed,) = [file.path for file in files_in(folder)]
    table = pq.read_table(packed, partitioning=None)
    pq.write_table(table.replace_schema_metadata({b"waywiser": b"1.5"}), packed)
    content = packed.read_bytes()
    for n in range(3):
        record(str(folder / f"{n}.wwp"), folder)
    assert str(packed) in pack(folder, LATER).left
    assert packed.read_bytes() == content
    assert runs(folder) == ["0.wwp", "1.wwp", "2.wwp"]


def test_files_with_columns_that_are_not_known_are_not_packed(folder: Path) -> None:
    for n in range(3):
        record(str(folder / f"{n}.wwp"), folder)
    later = files_in(folder)[1].path
    table = pq.read_table(later, partitioning=None)
    pq.write_table(table.append_column("power", pa.nulls(table.num_rows, pa.float32())), later)
    done = pack(folder, LATER)
    assert done.left == {str(later): "has a column that is not known here: power"}
    assert "power" in pq.read_schema(later).names
    assert runs(folder) == ["0.wwp", "1.wwp", "2.wwp"]


def test_a_folder_of_a_day_that_cannot_be_listed_is_named(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    export_profiles(folder, folder)
    closed = str(files_in(folder)[0].path.parent)
    listed = os.listdir

    def listdir(path: str | os.PathLike[str]) -> list[str]:
        if os.fspath(path) == closed:  # mode 000 closes nothing to the superuser
            raise PermissionError(13, "Permission denied", closed)
        return listed(path)

    monkeypatch.setattr(os, "listdir", listdir)
    assert Scan(folder).unreadable == {closed: "cannot be listed: Permission denied"}
    assert pack(folder, LATER).left == {closed: "cannot be listed: Permission denied"}


@pytest.mark.parametrize("column", ["bytes", "measured", "deviations", "followed"])
def test_values_of_another_type_are_named_and_left_aside(
    folder: Path, column: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for n in range(3):
        record(str(folder / f"{n}.wwp"), folder)
    other = files_in(folder)[0].path
    table = pq.read_table(other, partitioning=None)
    at = table.schema.get_field_index(column)
    pq.write_table(table.set_column(at, column, pa.array(["64 MiB"] * table.num_rows)), other)
    why = f"has values of another type in {column}: string"
    assert Scan(folder).unreadable == {str(other): why}
    assert pack(folder, LATER).left == {str(other): why}
    for profile in folder.glob("*.wwp"):
        profile.unlink()
    assert run(["check", str(folder)]) == 0
    assert why in "".join(capsys.readouterr())


@pytest.mark.parametrize("column", ["measured", "host", "file"])
def test_an_empty_value_where_none_may_be_is_one_line(
    folder: Path, column: str, capsys: pytest.CaptureFixture[str]
) -> None:
    record(str(folder / "0.wwp"), folder)
    (path,) = [file.path for file in files_in(folder)]
    table = pq.read_table(path, partitioning=None)
    at = table.schema.get_field_index(column)
    empty = pa.nulls(table.num_rows, table.schema.field(column).type)
    pq.write_table(table.set_column(at, column, empty), path)
    for words in (["check"], ["check", "--part", "references/2"]):
        assert run([words[0], str(folder), *words[1:]]) == 2
        said = capsys.readouterr().err
        assert "a value that Waywiser does not write" in said and len(said.splitlines()) == 1
    if column != "file":
        assert pack(folder, LATER).left == {str(path): f"has no {column} in a row"}


@pytest.mark.parametrize(
    ("column", "why"),
    [
        ("run", "a row has no run"),
        ("seconds", "a path that is followed has no time"),
        ("processes", "a path that is followed has no processes"),
        ("shift", "a path with times has no shift"),
    ],
)
def test_an_empty_value_says_what_lacks_it(
    folder: Path, column: str, why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    record(str(folder / "0.wwp"), folder)
    (path,) = [file.path for file in files_in(folder)]
    table = pq.read_table(path, partitioning=None)
    at = table.schema.get_field_index(column)
    empty = pa.nulls(table.num_rows, table.schema.field(column).type)
    pq.write_table(table.set_column(at, column, empty), path)
    assert run(["check", str(folder)]) == 2
    said = capsys.readouterr().err
    assert why in said and len(said.splitlines()) == 1


def test_an_interruption_waits_for_few_files(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for n in range(3):
        record(str(folder / f"{n}.wwp"), folder)
    path = files_in(folder)[0].path
    for n in range(20):
        shutil.copy(path, path.with_name(f"x{n}-{n:016x}.parquet"))
    read, read_all = [], scan.read_all

    def counted(path: Path) -> tuple[str, Any]:
        read.append(path)
        return read_all(path)

    def interrupted(values: list[str]) -> Any:
        if values:
            raise KeyboardInterrupt
        return engines.texts_of(values)

    monkeypatch.setattr(scan, "read_all", counted)
    monkeypatch.setattr(scan, "texts_of", interrupted)
    monkeypatch.setattr(scan, "TABLES_AT_ONCE", 4)
    with pytest.raises(KeyboardInterrupt):
        Scan(folder)
    assert len(read) <= 4


def test_a_folder_whose_name_is_not_utf_8_is_named(folder: Path) -> None:
    other = folder.with_name(os.fsdecode(b"set-\xff"))
    with pytest.raises(NotWritable, match="cannot be written: 'utf-8'"):
        export_profiles(folder, other)
    export_profiles(folder, folder)
    moved = folder.rename(folder.with_name(os.fsdecode(b"nodes-\xff")))
    (path,) = [file.path for file in files_in(moved)]
    assert Scan(moved).unreadable == {str(path): "has a name that is not UTF-8"}
    assert pack(moved, LATER).left == {}, "one packed file stays"
    assert read_nights([str(moved)]).unreadable == {str(path): "has a name that is not UTF-8"}


@pytest.mark.parametrize("column", ["record", "gpus", "workload"])
def test_values_that_cannot_be_are_one_line(
    folder: Path, column: str, capsys: pytest.CaptureFixture[str]
) -> None:
    record(str(folder / "0.wwp"), folder)
    (path,) = [file.path for file in files_in(folder)]
    table = pq.read_table(path, partitioning=None)
    at = table.schema.get_field_index(column)
    other = pa.array(["[nothing"] * table.num_rows)
    pq.write_table(table.set_column(at, column, other), path)
    assert run(["check", str(folder)]) == 2
    said = capsys.readouterr().err
    assert "a value that Waywiser does not write" in said and len(said.splitlines()) == 1


def test_files_that_are_packed_meanwhile_are_listed_again(folder: Path) -> None:
    for n in range(3):
        record(str(folder / f"{n}.wwp"), folder)
    whole = Scan(folder)
    pack(folder, LATER)
    assert len(whole.nights(whole.runs)) == 3


def test_several_processes_write_and_read_the_same(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = read_nights([str(folder)])
    monkeypatch.setattr(profiles, "FEW", 1)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2})
    assert read_nights([str(folder)]).nights == one.nights
    assert export_profiles(folder, folder).added == 3
    found = read_nights([str(folder)])
    shutil.rmtree(next(folder.glob("day=*")))
    monkeypatch.setattr(workers, "COMMAND", ("false",))
    assert read_nights([str(folder)]).nights == one.nights, "a process that fails costs nothing"
    assert export_profiles(folder, folder).added == 3
    assert read_nights([str(folder)]).nights == found.nights


def test_processes_that_cannot_write_leave_the_error_to_the_caller(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(profiles, "FEW", 1)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    (tmp_path / "file").touch()
    with pytest.raises(NotWritable):
        export_profiles(folder, tmp_path / "file" / "set")
    assert capfd.readouterr() == ("", "")


def test_a_folder_without_the_packages_is_read_as_before(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    export_profiles(folder, folder)

    def none(name: str) -> Any:
        raise engines.NoEngine(f"no {name}", remedy="pip install 'waywiser[fleet]'")

    for module in (engines, scan):
        monkeypatch.setattr(module, "engine", none)
    assert read_nights([str(folder)]).read == 3
    for path in folder.glob("*.wwp"):
        path.unlink()
    assert run(["check", str(folder)]) == 2
    assert "waywiser[fleet]" in capsys.readouterr().err


def test_every_column_is_declared_and_no_verdict_is_among_them(folder: Path) -> None:
    columns = read_rows(str(folder / "0.wwp")).columns
    assert columns.keys() == set(NAMES)
    assert len({len(values) for values in columns.values()}) == 1
    assert not {"status", "verdict", "outcome", "p"} & set(NAMES)
    assert all(column.meaning for column in COLUMNS)


def test_a_profile_with_impossible_samples_is_named_and_the_others_have_rows(folder: Path) -> None:
    whole = {read_rows(str(file)).run for file in (folder / "0.wwp", folder / "2.wwp")}
    damaged = folder / "1.wwp"
    with contextlib.closing(sqlite3.connect(damaged)) as connection, connection:
        row = connection.execute("SELECT * FROM visit WHERE samples > 0 LIMIT 1").fetchone()
        names = [name for name, *_ in connection.execute("SELECT * FROM visit").description]
        changed = dict(zip(names[:-1], row[:-1], strict=True)) | {"span": b"no column"}
        connection.execute(
            "UPDATE visit SET span = :span, checksum = :checksum WHERE visit = :visit",
            changed | {"checksum": sealed(tuple(changed.values()))[-1]},
        )
    found = export_profiles(folder, folder, LATER)
    assert found.added == 2 and list(found.unreadable) == [str(damaged)]
    assert "cannot be unpacked" in found.unreadable[str(damaged)]
    assert {each.run for each in Scan(folder).runs} == whole
    with pytest.raises(DamagedProfile, match=r"1\.wwp"):
        read_rows(str(damaged))


def test_the_page_has_the_columns() -> None:
    page = (RESULTS.parent / "export.md").read_text()
    assert columns_table() in page


def test_the_verb_writes_beside_the_profiles_or_elsewhere(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "broken.wwp").write_text("no profile\n")
    assert run(["export", str(folder), "--format", "parquet", "-o", str(tmp_path / "set")]) == 0
    said = capsys.readouterr().err
    assert "3 profiles added, 0 known" in said and "broken.wwp: is not a profile" in said
    assert is_dataset(tmp_path / "set") and not is_dataset(folder)
    assert run(["check", str(tmp_path / "set"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["nights"]["nodes"][0]["surveys"] == 3


def test_the_verb_says_how_many_files_of_days_there_are(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for added, known in ((3, 0), (0, 3)):
        assert run(["export", str(folder), "--format", "parquet"]) == 0
        text = f"{added} profiles added, {known} known; 1 file of 1 day\n"
        assert capsys.readouterr().err.endswith(text)
    for profile in folder.glob("*.wwp"):
        profile.unlink()
    assert run(["export", str(folder), "--format", "parquet"]) == 0, "its past days are packed"


@pytest.mark.parametrize("name", ["broken.wwp", "readme.txt"])
def test_an_export_of_no_profile_is_an_error(
    tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / name).write_text("no profile\n")
    assert run(["export", str(tmp_path), "--format", "parquet"]) == 2
    said = capsys.readouterr().err
    assert ("is not a profile" if name == "broken.wwp" else "no *.wwp") in said
    assert len(said.splitlines()) == 1


def test_a_data_set_is_not_written_to_standard_output(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    assert run(["export", str(folder), "--format", "parquet", "-o", "-"]) == 2
    assert "a data set is a folder" in capsys.readouterr().err
    assert not (folder / "-").exists()


@pytest.mark.parametrize("at_once", [2, 20_000])
def test_labels_of_a_gpu_are_those_of_the_rows_of_its_host(
    folder: Path, tmp_path: Path, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scan, "AT_ONCE", at_once)
    export_profiles(folder, folder)
    night = read_night(str(folder / "0.wwp"))
    file = tmp_path / "labels"
    file.write_text(f"{night.host} rack=r1\n{night.gpus[1].uuid} owner=physics\nother rack=r9\n")
    found = waywiser.fleet(folder, labels=file)
    assert found.columns[-2:] == ["rack", "owner"]
    assert found.select("rack, owner").distinct().fetchall() == [("r1", "physics")]
    assert found.count("*").fetchall()[0][0] == rows(folder)


@pytest.mark.parametrize(
    "own", ["class=a", "Day=1", "run=a", "FILE=a", "seconds=1", "rack=r1 Rack=r2"]
)
def test_a_label_that_has_the_name_of_a_column_is_an_error(
    folder: Path, tmp_path: Path, own: str
) -> None:
    export_profiles(folder, folder)
    (tmp_path / "labels").write_text(f"n1 {own}\n")
    with pytest.raises(waywiser.WaywiserError, match="has the name of the column"):
        waywiser.fleet(folder, labels=tmp_path / "labels")


def test_an_empty_folder_says_so(tmp_path: Path) -> None:
    assert read_nights([str(tmp_path)]).unreadable == {str(tmp_path): "no *.wwp is in this folder"}


def test_a_survey_writes_its_own_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Measures host memory, which every machine has."""
    profile, nodes = tmp_path / "a.wwp", tmp_path / "nodes"
    few = ["--only", "h2h numa:0", "--sizes", "1MiB", "--preset", "check", "--no-scratch"]
    assert run(["survey", *few, "-o", str(profile), "--dataset", str(nodes)]) == 0
    (file,) = files_in(nodes)
    assert str(file.path) in capsys.readouterr().err
    assert not file.is_packed and file.run
    (night,) = read_nights([str(nodes)]).nights
    assert night.host == read_night(str(profile)).host
    assert runs(nodes) == ["a.wwp"]


def test_a_data_set_that_cannot_be_written_is_said_before_the_survey(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    profile, closed = tmp_path / "a.wwp", tmp_path / "file" / "nodes"
    few = ["--only", "h2h numa:0", "--sizes", "1MiB", "--preset", "check", "--no-scratch"]
    assert run(["survey", *few, "-o", str(profile), "--dataset", str(closed)]) == 2
    said = capsys.readouterr().err
    assert f"{closed}: cannot be written" in said and len(said.splitlines()) == 1
    with pytest.raises(NotWritable):
        waywiser.survey(output=str(profile), dataset=str(closed))
    assert not profile.exists()


def test_a_survey_whose_rows_cannot_be_written_is_shown_and_complete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Measures host memory, which every machine has."""

    def full(file: str, dataset: Path) -> Path:
        raise NotWritable("cannot be written: no space", where=str(dataset), remedy="free some")

    monkeypatch.setattr(profiles, "record", full)
    profile, nodes = tmp_path / "a.wwp", tmp_path / "nodes"
    few = ["--only", "h2h numa:0", "--sizes", "1MiB", "--preset", "check", "--no-scratch"]
    assert run(["survey", *few, "-o", str(profile), "--dataset", str(nodes)]) == 0
    shown, said = capsys.readouterr()
    assert "H2H" in shown.upper()
    assert "no space" in said and f"{profile} is complete, and not in the data set" in said
