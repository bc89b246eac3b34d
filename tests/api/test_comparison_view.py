"""`waywiser.compare`: the decisions of ``waywiser compare``, as text and as a table."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

import waywiser
from api import opened
from waywiser.analysis.comparison.comparison_text import summary
from waywiser.cli import run
from waywiser.notebook.comparison_view import ComparisonError, ComparisonView
from waywiser.profile import MissingProfile

Output = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("compared")
    return [opened.unpacked(folder, f"two-h200-check-{n}") for n in (1, 2, 3)]


@pytest.fixture(scope="module")
def found(files: list[Path]) -> ComparisonView:
    return waywiser.compare(files[0], files[1])


def test_it_is_what_the_command_line_compares(
    files: list[Path], found: ComparisonView, capsys: Output
) -> None:
    run(["compare", str(files[0]), str(files[1]), "--json"])
    written = json.loads(capsys.readouterr().out)
    assert json.loads(msgspec.json.encode(found.result.for_json())) == written
    undecided = [path for path in written["paths"] if path["verdict"] == "not decided"]
    assert len(undecided) == written["counts"]["not decided"] > 0
    assert sum(written["counts"].values()) == len(written["paths"])


def test_opened_profiles_and_several_of_a_side_are_taken(
    files: list[Path], found: ComparisonView
) -> None:
    base, new = (waywiser.open(file) for file in files[:2])
    assert waywiser.compare(base, new).result == found.result
    several = waywiser.compare([str(files[0]), new], (files[2],), repeat=iter([files[0]]))
    assert several.result.base == (str(files[0]), str(files[1]))
    assert several.result.repeats or several.notes


def test_a_row_is_a_path(found: ComparisonView) -> None:
    assert len(found.paths) == len(found.result.paths) > 0
    for row, path in zip(found.paths, found.result.paths, strict=True):
        assert (row.verdict, row.path, row.curve) == (path.verdict, path.name, path.curve)
        assert row.group == path.headline
        size = path.size
        if size is None:
            assert row.change_percent is None and row.seconds_now is None
            continue
        assert row.change_percent == 100 * (path.ratio - 1)
        assert row.seconds_before == size.seconds_before
        assert (row.processes_before, row.processes_now) == size.processes
        if row.gb_per_s_now is not None:
            assert row.gb_per_s_now == size.rated_bytes / row.seconds_now / 1e9
    assert sum(found.counts.values()) == len(found.paths)


def test_a_comparison_shows_its_summary(found: ComparisonView, files: list[Path]) -> None:
    lines = repr(found).splitlines()
    assert lines[0] == f"{files[0]} -> {files[1]}"
    assert summary(found.result) in lines
    assert any(line.startswith("  H2D ") for line in lines)
    assert "<pre>" in found._repr_html_()


def test_it_becomes_a_table_of_arrow(found: ComparisonView) -> None:
    pytest.importorskip("pyarrow")
    assert found.to_arrow().column("path").to_pylist() == found.paths["path"]


def test_changes_are_named(tmp_path: Path) -> None:
    old, new = (opened.unpacked(tmp_path, f"h100-standard-{n}") for n in (1, 2))
    found = waywiser.compare(old, new, threshold=0.01)
    changed = [row for row in found.paths if row.verdict in ("suspected", "improvement")]
    assert changed
    assert changed[0].path in repr(found)
    assert changed[0].path.replace(">", "&gt;") in found._repr_html_()


def test_what_cannot_be_compared_is_an_error_of_one_line(files: list[Path]) -> None:
    with pytest.raises(ComparisonError, match="a side is empty"):
        waywiser.compare([], files[0])
    with pytest.raises(ComparisonError, match=r"the threshold 3 is no fraction \(write 0\.03"):
        waywiser.compare(files[0], files[1], threshold=3)
    with pytest.raises(waywiser.WaywiserError, match=r"'3' is no threshold \(write 3% or 0\.03"):
        waywiser.compare(files[0], files[1], threshold="3")
    with pytest.raises(ComparisonError, match=r"^5 is no profile \(name a file, or pass what"):
        waywiser.compare(5, files[0])  # type: ignore[arg-type]
    with pytest.raises(MissingProfile):
        waywiser.compare(files[0], "there-is-none.wwp")
