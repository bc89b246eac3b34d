"""When a profile was measured, and by whom."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

import profiles
from report import machines
from waywiser.render.chapters.method import citation
from waywiser.render.document import document
from waywiser.render.entry import Entry, entry, read
from waywiser.render.markdown import markdown
from waywiser.render.origin import when

DATED = {"file": "a.json", "tool": "Google Benchmark", "date": "2018-06-03 10:00:05"}


def imported(*files: dict[str, str]) -> Entry:
    subject = machines.subject(profiles.machine(), blocks=1, count=6)
    overview = msgspec.structs.replace(subject.overview, created="2026-11-20T12:00:00")
    result = {"imported": list(files), "page_bytes": 4096, "memory_total_bytes": 3 * 2**29}
    return entry(msgspec.structs.replace(subject, seen=overview, environment=result))


def test_a_survey_knows_its_day(tmp_path: Path) -> None:
    (found,) = read([profiles.write(tmp_path / "a.wwp")])
    assert when(found).startswith("measured 20")
    assert when(found) in citation(found)


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ((DATED,), "measured 2018-06-03, imported 2026-11-20"),
        (
            (DATED, DATED | {"date": "2018-06-13 08:00:00"}),
            "measured 2018-06-03 to 2018-06-13, imported 2026-11-20",
        ),
        (({"file": "b.txt", "tool": "OSU"},), "imported 2026-11-20, unknown when it was measured"),
        ((DATED | {"date": "last week"},), "imported 2026-11-20, unknown when it was measured"),
    ],
)
def test_the_day_of_an_import_is_not_that_of_a_measurement(
    files: tuple[dict[str, str], ...], said: str
) -> None:
    found = imported(*files)
    assert when(found) == said
    assert citation(found).startswith(f"{files[0]['tool']}, imported by Waywiser ")
    assert said in citation(found)


def test_every_imported_file_has_a_row_and_the_environment_none() -> None:
    text = markdown(document([imported(DATED, {"file": "c.csv", "left_out": "is empty"})]))
    assert "| a.json | Google Benchmark |  | 2018-06-03 10:00:05 |" in text
    assert "is empty" in text
    assert "| imported |" not in text


def test_bytes_are_reported_in_the_unit_that_they_fill() -> None:
    text = markdown(document([imported(DATED)]))
    assert "| page bytes | 4 KiB |" in text
    assert "| memory total bytes | 1.5 GiB |" in text


def test_no_interval_is_claimed_where_there_is_none() -> None:
    subject = machines.subject(profiles.machine(), blocks=1, count=3)
    assert citation(entry(subject)).endswith("no intervals.")
    assert "95 % intervals" in citation(entry(machines.subject(profiles.machine(), blocks=1)))
