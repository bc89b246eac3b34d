"""The page of a fleet."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

import profiles
from waywiser.analysis.comparison.fleet import Fleet
from waywiser.cli import run
from waywiser.render.fleet import fleet_document
from waywiser.render.page import page
from waywiser.render.parts import Assessment, Document, Remarks, Sheet


def test_the_ill_nodes_come_first(fleet: Document) -> None:
    verdict = fleet.sections[0].blocks[0]
    assert isinstance(verdict, Assessment) and verdict.severity == "error"
    table = fleet.sections[1].blocks[0]
    assert isinstance(table, Sheet)
    ill = [row.cells[0] for row in table.rows[:3]]
    assert {cell.text for cell in ill} == {"n03", "n07", "n09"}
    assert all(cell.link for cell in ill) and not table.rows[3].cells[0].link


def test_the_class_is_a_column_where_there_are_several(assessed: Fleet) -> None:
    def columns(fleet: Fleet) -> tuple[str, ...]:
        table = fleet_document(fleet).sections[1].blocks[0]
        assert isinstance(table, Sheet)
        assert all(len(row.cells) == len(table.columns) for row in table.rows)
        return table.names

    (one,) = assessed.classes
    assert "class" not in columns(assessed)
    assert "class" in columns(msgspec.structs.replace(assessed, classes=(one, one)))


def test_a_suspicion_comes_with_the_command_that_measures_it_again(fleet: Document) -> None:
    assert "waywiser survey" in page(fleet)


def test_a_file_that_cannot_be_read_is_reported_and_stays_text(fleet: Document) -> None:
    assert "/data/&lt;b&gt;.wwp: is no profile" in page(fleet)


def test_fleet_writes_its_page_beside_its_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = []
    for seed in (1, 2):
        (tmp_path / str(seed)).mkdir()
        files.append(str(profiles.write(tmp_path / str(seed) / "a.wwp", seed)))
    output = tmp_path / "fleet.html"
    assert run(["check", *files, "--page", str(output)]) in (0, 1, 3)
    assert "host" in capsys.readouterr().out
    assert output.read_text().startswith("<!doctype html>")
    assert run(["check", *files, "--page", files[0]]) == 2
    assert "is not overwritten" in capsys.readouterr().err
    assert run(["check", *files, "--page", "-"]) in (0, 1, 3)
    said = capsys.readouterr()
    assert said.out.startswith("<!doctype html>") and "host" in said.err
    assert run(["check", *files, "--page", "-", "--json"]) == 2
    assert "both write to standard output" in capsys.readouterr().err


def test_what_is_no_mere_suspicion_has_something_to_do(fleet: Document) -> None:
    wrong = next(section for section in fleet.sections if section.anchor == "wrong")
    remarks = [
        remark
        for host in wrong.sections
        for block in host.blocks
        if isinstance(block, Remarks)
        for remark in block.remarks
    ]
    assert {bool(remark.remedy) for remark in remarks if remark.severity == "error"} == {True}
    assert any("reseat" in remark.remedy for remark in remarks)
    suspected = [remark for remark in remarks if remark.severity == "warning"]
    assert suspected and not any(remark.remedy for remark in suspected)
