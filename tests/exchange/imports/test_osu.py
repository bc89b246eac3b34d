from __future__ import annotations

from pathlib import Path

import pytest

from waywiser.exchange.imports import detect
from waywiser.exchange.imports.errors import Malformed
from waywiser.exchange.imports.foreign_file import ForeignFile
from waywiser.exchange.imports.osu import read
from waywiser.words.records import SUMMARY

DATA = Path(__file__).parent / "data"
TITLE = "# OSU MPI Bandwidth Test v7.4\n# Datatype: MPI_CHAR.\n"


def seconds(found: ForeignFile) -> dict[str, float]:
    return {str(each.workload): each.samples.span[0] for each in found.measured}


def test_rates_are_in_10_to_the_6_bytes_and_buffers_are_reported_by_the_command() -> None:
    found = detect.read(DATA / "osu_bw.txt")[0]
    path = "device@gpu:0 -> pageable@numa:1 by mpi[test=bw]"
    assert seconds(found) == {f"{path} of 1": pytest.approx(0.5e-6),
                              f"{path} of 1024": pytest.approx(0.5e-6)}  # fmt: skip
    assert {each.samples.flags for each in found.measured} == {(SUMMARY,)}
    assert [unsupported.reason for unsupported in found.unsupported_paths] == ["its figure is 0"]
    assert found.version == "7.2"


def test_several_tables_of_one_text() -> None:
    found = detect.read(DATA / "osu_latency.txt")[0]
    one = "device@gpu:0 -> device@gpu:1 by mpi[test=latency]"
    there = "pageable@numa:0 -> pageable@numa:1 by mpi[test=bibw] of 1048576"
    back = "pageable@numa:1 -> pageable@numa:0 by mpi[test=bibw] of 1048576"
    assert seconds(found) == {
        f"{one} of 8": pytest.approx(2.5e-6),
        f"{one} of 1048576": pytest.approx(110e-6),
        f"{there}; {back}": pytest.approx(2 * 1048576 / 1000e6),
    }
    reasons = [unsupported.reason for unsupported in found.unsupported_paths]
    assert any("0 bytes" in reason for reason in reasons)
    assert any("found wrong bytes" in reason for reason in reasons)
    assert any("only two-sided" in reason for reason in reasons)


def test_a_title_for_gpus_alone_suggests_where_buffers_are_and_says_so() -> None:
    (found,) = read("# OSU MPI-CUDA Latency Test v7.5\n# Size  Avg Latency(us)\n8  2.5\n", "x")
    (measured,) = found.measured
    assert str(measured.workload.transfers[0].path.source) == "device@gpu:0"
    assert "unknown" in measured.notes[0]


def test_extra_columns_are_passed_over() -> None:
    text = "# OSU MPI Latency Test v7.5\n# Size Avg Latency(us) Min Lat(us) Iterations\n8 2 1 100\n"
    assert list(seconds(read(text, "x")[0]).values()) == [pytest.approx(2e-6)]


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (TITLE, "x:1: the table has no row: it is truncated"),
        (TITLE + "1 2.0\n", "x:3: a row before the line '# Size"),
        (
            TITLE + "# Size  Speed (parsecs)\n1 2\n",
            "x:3: the column 'Speed .parsecs.' is not in MB/s",
        ),
        (TITLE + "# Size  Bandwidth (MB/s)\n1 2.0\n4 ?\n", "x:5: no row of a size and a figure"),
        (TITLE + "# Size  Bandwidth (MB/s)\n999999999999999999 2\n", "x:4: a message of"),
        ("nothing", "no title"),
    ],
)
def test_what_breaks_the_rules_is_reported_with_its_line(text: str, what: str) -> None:
    with pytest.raises(Malformed, match=what.replace("?", r"\?")):
        read(text, "x")
