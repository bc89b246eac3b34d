from __future__ import annotations

import csv
import io
import json
import os
import random
import subprocess
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import msgspec
import pytest

import profiles
import sides
from waywiser.cli.export import OneScreen, TooLongForScreen, export
from waywiser.curves.overview import overview
from waywiser.curves.series_rows import SERIES_TYPES
from waywiser.exchange.exports.samples import write_csv, write_json
from waywiser.notebook.export_call import ExportError
from waywiser.profile import ExistingFile, MissingProfile, Profile, WritableProfile
from waywiser.profile.sample_rows import COLUMNS


@pytest.fixture(scope="module")
def profile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return profiles.write(tmp_path_factory.mktemp("export") / "a.wwp")


def exported(file: Path, format: str, folder: Path) -> str:
    target = folder / f"out.{format}"
    export([str(file)], False, format, str(target))
    with target.open(encoding="utf-8", newline="") as stream:
        return stream.read()


def test_csv_has_a_row_per_sample_in_order(profile: Path, tmp_path: Path) -> None:
    rows = list(csv.DictReader(io.StringIO(exported(profile, "csv", tmp_path), newline="")))
    assert tuple(rows[0]) == COLUMNS
    found: dict[tuple[str, int], list[dict[str, str]]] = {}
    for row in rows:
        found.setdefault((row["identity"], int(row["block"])), []).append(row)
    measured = [visit for visit in profiles.visits() if len(visit.samples)]
    assert set(found) == {(visit.workload.identity, visit.block) for visit in measured}
    for visit in measured:
        mine = found[visit.workload.identity, visit.block]
        assert tuple(float(row["span_seconds"]) for row in mine) == visit.samples.span
        assert tuple(float(row["host_seconds"]) for row in mine) == visit.samples.host
        assert tuple(int(row["repetitions"]) for row in mine) == visit.samples.repetitions
        parts = tuple(tuple(map(float, row["transfer_seconds"].split())) for row in mine)
        assert parts == (visit.samples.transfers or ((),) * len(mine))
        assert [row["n"] for row in mine] == [str(n) for n in range(len(mine))]
        assert {row["workload"] for row in mine} == {str(visit.workload)}
        assert {row["stop"] for row in mine} == {visit.stop}


def test_samples_have_their_path_and_their_bandwidth(profile: Path, tmp_path: Path) -> None:
    rows = list(csv.DictReader(io.StringIO(exported(profile, "csv", tmp_path), newline="")))
    (pair, *_) = [row for row in rows if row["curve"] == f"{profiles.H2D}; {profiles.D2H}"]
    assert pair["source"] == "pinned@numa:0; device@gpu:0"
    assert pair["destination"] == "device@gpu:0; pinned@numa:0"
    assert pair["executor"] == "copy-engine"
    bandwidth = float(pair["bytes"]) / float(pair["span_seconds"]) / 1e9
    assert float(pair["gb_per_s"]) == pytest.approx(bandwidth)
    (operation, *_) = [row for row in rows if row["workload"] == "empty-interval@gpu:0"]
    assert {operation[name] for name in ("source", "destination", "executor", "gb_per_s")} == {""}


def test_csv_is_rfc_4180(profile: Path, tmp_path: Path) -> None:
    text = exported(profile, "csv", tmp_path)
    lines = text.split("\r\n")
    assert lines[-1] == "" and not any("\n" in line for line in lines)
    assert lines[0] == ",".join(COLUMNS)
    widths = {len(row) for row in csv.reader(io.StringIO(text, newline=""), strict=True)}
    assert widths == {len(COLUMNS)}


def test_flags_are_columns_of_their_own(profile: Path, tmp_path: Path) -> None:
    rows = list(csv.DictReader(io.StringIO(exported(profile, "csv", tmp_path), newline="")))
    tiny = [row for row in rows if row["workload"] == f"{profiles.HOST} of 8"]
    assert {(row["void"], row["below_resolution"]) for row in tiny} == {("0", "1")}


def test_json_is_as_promised(profile: Path, tmp_path: Path) -> None:
    found = json.loads(exported(profile, "json", tmp_path))
    assert list(found) == ["schema", "machine", "environment", "sides", "locality", "series"]
    assert found["machine"]["hostname"] == "node7"
    assert found["environment"] == profiles.ENVIRONMENT
    by_text = {series["workload"]: series for series in found["series"]}
    large = by_text[f"{profiles.H2D} of {2**30}"]
    assert (large["source"], large["executor"]) == ("pinned@numa:0", "copy-engine")
    assert all(sample["gb_per_s"] == 2**30 / sample["span"] / 1e9 for sample in large["samples"])
    promised = {"workload", "path", "bytes", "parameters", "cache", "samples", "stop"}
    assert promised <= set(large)
    assert (large["path"], large["bytes"], large["cache"]) == (profiles.H2D, 2**30, "warm")
    assert large["stop"] == "converged" and large["parameters"] == {}
    assert by_text[f"{profiles.HOST} of 8"]["parameters"] == {"threads": "2"}
    pair = by_text[f"{profiles.H2D} of 8; {profiles.D2H} of 8"]
    assert pair["path"] == f"{profiles.H2D}; {profiles.D2H}" and pair["parameters"] == [{}, {}]
    assert by_text["empty-interval@gpu:0"]["path"] == "empty-interval@gpu:0"


def test_json_has_every_sample_and_every_failure(profile: Path, tmp_path: Path) -> None:
    found = json.loads(exported(profile, "json", tmp_path))
    samples: dict[tuple[str, int], list[Any]] = {}
    result: dict[tuple[str, int], Any] = {}
    for series in found["series"]:
        for sample in series["samples"]:
            samples.setdefault((series["identity"], sample["block"]), []).append(sample)
        for visit in series["visits"]:
            result[series["identity"], visit["block"]] = visit
    for visit in profiles.visits():
        key = (visit.workload.identity, visit.block)
        mine = samples.get(key, [])
        assert tuple(sample["span"] for sample in mine) == visit.samples.span
        assert tuple(sample["flags"] for sample in mine) == visit.samples.flags
        failure = result[key]["failure"]
        assert (failure and failure["kind"]) == (visit.failure and visit.failure.kind)
        assert result[key]["stop"] == visit.stop


def test_standard_output_gets_the_same_bytes(profile: Path, tmp_path: Path) -> None:
    for format in ("csv", "json"):
        code = (
            "from waywiser.cli.export import export; "
            f"export([{str(profile)!r}], False, {format!r}, '-')"
        )
        found = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        ended = subprocess.run(
            [sys.executable, "-c", code], env=found, check=True, capture_output=True
        )
        assert ended.stdout.decode() == exported(profile, format, tmp_path)
        assert ended.stderr == b""


def test_captured_standard_output_serves_too(
    profile: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    export([str(profile)], False, "json", "-")
    assert json.loads(capsys.readouterr().out)["schema"] == 2


def test_a_device_is_written_to(profile: Path) -> None:
    export([str(profile)], False, "csv", "/dev/null")


def test_an_existing_file_is_not_overwritten(profile: Path, tmp_path: Path) -> None:
    target = tmp_path / "out.csv"
    target.write_text("precious")
    with pytest.raises(ExistingFile):
        export([str(profile)], False, "csv", str(target))
    assert target.read_text() == "precious"


def test_an_export_that_fails_leaves_no_file(
    profile: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Profile, "iter_series", fail)
    with pytest.raises(KeyboardInterrupt):
        export([str(profile)], False, "csv", str(tmp_path / "out.csv"))
    assert list(tmp_path.iterdir()) == []


def test_bad_input_is_said_before_anything_is_written(profile: Path, tmp_path: Path) -> None:
    target = tmp_path / "out"
    with pytest.raises(ExportError, match="no format"):
        export([str(profile)], False, "xml", str(target))
    with pytest.raises(MissingProfile):
        export([str(tmp_path / "none.wwp")], False, "csv", str(target))
    assert not target.exists()


def summary(file: Path, format: str, folder: Path) -> str:
    target = folder / f"summary.{format}"
    export([str(file)], True, "", str(target))
    with target.open(encoding="utf-8", newline="") as stream:
        return stream.read()


def test_a_summary_has_a_row_per_series(profile: Path, tmp_path: Path) -> None:
    rows = list(csv.DictReader(io.StringIO(summary(profile, "csv", tmp_path), newline="")))
    assert tuple(rows[0]) == tuple(SERIES_TYPES)
    assert len(rows) == len({visit.workload.identity for visit in profiles.visits()})
    (row,) = [row for row in rows if row["workload"] == f"{profiles.H2D} of {2**30}"]
    with Profile.open(profile) as opened:
        (line,) = [line for line in overview(opened).series if line.text == row["workload"]]
    found = line.estimate
    assert found is not None and found.rate is not None and found.rate.interval is not None
    assert float(row["seconds"]) == found.median
    assert float(row["gb_per_s"]) == found.rate.value / 1e9
    assert float(row["gb_per_s_low"]) == found.rate.interval.low / 1e9
    assert (row["source"], row["destination"]) == ("pinned@numa:0", "device@gpu:0")
    assert (row["bytes"], row["samples"], row["processes"]) == (str(2**30), "40", "2")
    (lost,) = [row for row in rows if row["workload"] == f"{profiles.PAGEABLE} of 8"]
    assert lost["seconds"] == "" and "SIGSEGV" in lost["not_measured"]


def test_a_summary_as_json_has_the_same_rows(profile: Path, tmp_path: Path) -> None:
    found = json.loads(summary(profile, "json", tmp_path))
    assert list(found) == ["schema", "profile", "created", "hostname", "series"]
    assert (found["schema"], found["hostname"]) == (1, "node7")
    rows = list(csv.DictReader(io.StringIO(summary(profile, "csv", tmp_path), newline="")))
    assert [
        {name: cell(value) for name, value in series.items()} for series in found["series"]
    ] == rows


def cell(value: object) -> str:
    """A value of JSON as CSV has it."""
    if isinstance(value, bool):
        return str(int(value))
    return "" if value is None else str(value)


def test_a_summary_has_no_form_of_a_benchmark(profile: Path) -> None:
    with pytest.raises(ExportError, match="no form of google-benchmark"):
        export([str(profile)], True, "google-benchmark", "-")


@pytest.mark.parametrize(("name", "first"), [("a.csv", "identity,"), ("a.json", "{"), ("a", "{")])
def test_the_name_of_the_file_says_the_format(
    profile: Path, tmp_path: Path, name: str, first: str
) -> None:
    export([str(profile)], False, "", str(tmp_path / name))
    assert (tmp_path / name).read_text().startswith(first)


def test_the_name_of_a_file_that_is_no_format_is_an_error(profile: Path, tmp_path: Path) -> None:
    with pytest.raises(ExportError, match=r"no format has the extension \.txt"):
        export([str(profile)], False, "", str(tmp_path / "a.txt"))
    for format in ("", "json"):
        with pytest.raises(ExportError, match="an export is no profile"):
            export([str(profile)], False, format, str(tmp_path / "a.wwp"))
    assert not list(tmp_path.glob("a.*"))
    export([str(profile)], False, "json", str(tmp_path / "a.txt"))
    assert (tmp_path / "a.txt").read_text().startswith("{")


class Terminal(io.StringIO):
    """Standard output that a person reads."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("format", "is_summary"), [("csv", False), ("json", False), ("csv", True), ("json", True)]
)
def test_a_terminal_gets_no_more_than_a_screen_unless_it_is_named(
    profile: Path, monkeypatch: pytest.MonkeyPatch, format: str, is_summary: bool
) -> None:
    monkeypatch.setenv("LINES", "12")
    monkeypatch.setenv("COLUMNS", "80")
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    with pytest.raises(TooLongForScreen, match="more than the 12 lines of the terminal") as caught:
        export([str(profile)], is_summary, format, "")
    assert "-o FILE" in caught.value.remedy and "-o -" in caught.value.remedy
    assert terminal.getvalue() == ""
    export([str(profile)], is_summary, format, "-")
    named = terminal.getvalue()
    monkeypatch.setenv("LINES", "1000000")
    terminal.truncate(0)
    terminal.seek(0)
    export([str(profile)], is_summary, format, "")
    assert terminal.getvalue() == named != ""


def test_lines_that_the_terminal_folds_count_for_several(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LINES", "4")
    monkeypatch.setenv("COLUMNS", "10")
    screen = OneScreen()
    screen.write("a" * 20 + "\r\n")
    screen.write("a")
    assert screen.text == "a" * 20 + "\r\na"
    with pytest.raises(TooLongForScreen):
        screen.write("a" * 10)


def test_every_column_is_documented() -> None:
    page = (Path(__file__).parents[3] / "docs" / "export.md").read_text()
    first, second = page.split("## ")[1:3]
    for part, columns in ((first, SERIES_TYPES), (second, COLUMNS)):
        assert [line.split("`")[1] for line in part.splitlines() if line.startswith("| `")] == [
            *columns
        ]


class Nowhere(io.TextIOBase):
    """Counts characters and keeps none."""

    written = 0

    def write(self, text: str) -> int:
        self.written += len(text)
        return len(text)


@pytest.mark.parametrize("write", [write_csv, write_json])
def test_memory_does_not_grow_with_the_profile(tmp_path: Path, write: Any) -> None:
    rng = random.Random(1)
    peaks = []
    for visits in (4, 24):
        path = tmp_path / f"{visits}.wwp"
        with WritableProfile.create(path, profiles.machine(), {}) as new:
            for block in range(visits):
                what = profiles.workload(profiles.H2D, 8 * (block // 2 + 1))
                taken = profiles.samples(rng, 1e-3, count=1000)
                new.commit_visit(profiles.visit(what, block % 2, taken))
        with Profile.open(path) as opened:
            stream = Nowhere()
            tracemalloc.start()
            write(opened, stream)
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
            assert stream.written > 1000 * visits
    assert peaks[1] < 1.5 * peaks[0]


def test_a_visit_says_on_which_side_its_memory_was(tmp_path: Path) -> None:
    path = tmp_path / "sides.wwp"
    near, far = (5.8e-6,) * 4 + (6.4e-6,) * 4, (6.4e-6,) * 4 + (5.8e-6,) * 4
    what = profiles.workload(profiles.H2D, 4096)
    with WritableProfile.create(path, profiles.machine(), {}) as profile:
        for found in sides.records(5):
            profile.commit_locality(found)
        for block, latencies in enumerate((near, far)):
            taken = profiles.samples(random.Random(block), 1e-5, 6)
            visit = profiles.visit(what, block, taken)
            pinned, device = visit.buffers
            result = msgspec.structs.replace(pinned, gpu_seconds=latencies)
            profile.commit_visit(msgspec.structs.replace(visit, buffers=(result, device)))
    rows = list(csv.DictReader(io.StringIO(exported(path, "csv", tmp_path), newline="")))
    assert {(row["block"], row["side"]) for row in rows} == {("0", "local"), ("1", "remote")}
    found = json.loads(exported(path, "json", tmp_path))
    assert found["sides"]["groups"] == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert len(found["locality"]) == 1
