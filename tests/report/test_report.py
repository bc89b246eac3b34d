"""The report in its forms, without a browser."""

from __future__ import annotations

from pathlib import Path

import pytest

import profiles
from tree import ROOT
from waywiser.cli import run
from waywiser.profile.output_file import LIMIT_BYTES
from waywiser.render.chapters.glossary import TERMS
from waywiser.render.document import document
from waywiser.render.entry import read
from waywiser.render.figures.render import pdf_file, svg_file
from waywiser.render.markdown import markdown
from waywiser.render.page import page
from waywiser.render.parts import Document, Fold, Sheet, Words


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return profiles.write(tmp_path_factory.mktemp("report") / "a.wwp")


@pytest.fixture(scope="module")
def made(file: Path) -> Document:
    return document(read([file]))


ORDER = ["status", "headlines", "findings", "links", "methods", "curves", "questions"]
FOLDED = ["quality", "missing", "method", "glossary"]


def test_the_sections_come_in_their_order(made: Document) -> None:
    assert [section.anchor for section in made.sections] == [*ORDER, *FOLDED]
    assert [section.anchor for section in made.sections if section.folded] == FOLDED
    questions = made.section("questions")
    assert questions is not None and questions.sections
    assert all(section.folded for section in questions.sections)
    counts, answers = questions.blocks
    assert isinstance(counts, Words) and isinstance(answers, Fold)
    assert counts.text.startswith(f"{len(questions.sections)} questions: ")
    assert isinstance(answers.blocks[0], Sheet)
    assert len(answers.blocks[0].rows) == len(questions.sections)


def test_terms_of_the_glossary_are_those_of_the_documentation() -> None:
    known = (ROOT / "docs" / "glossary.md").read_text().lower()
    for terms, _ in TERMS:
        for term in terms.split(", "):
            assert term.split()[0].lower() in known, term


def test_the_page_needs_nothing_else(made: Document) -> None:
    text = page(made)
    assert "<script" not in text
    for attribute in ('src="', 'href="http', "url(http", "@import"):
        assert attribute not in text


def test_figures_are_named_and_drawn(made: Document) -> None:
    names = [picture.name for picture in made.pictures()]
    assert "bandwidth-numa-0-gpu-0" in names
    assert len(set(names)) == len(names)
    text = page(made)
    assert text.count('<svg class="figure"') == len(names)
    assert "fill: #" not in text and "stroke: #" not in text


def test_markdown_shows_the_same_sections(made: Document) -> None:
    text = markdown(made)
    for section in made.sections:
        assert f"## {section.title}" in text
    assert text.startswith("# node7\n")


def test_a_figure_is_a_file_of_its_own(made: Document) -> None:
    picture = made.pictures()[0]
    text = svg_file(picture)
    assert text.startswith("<?xml")
    assert picture.title.replace(">", "&gt;") in text
    assert "var(--" not in text and "fill: #" in text
    assert pdf_file(picture).startswith(b"%PDF")


def test_the_name_of_a_file_says_the_format_of_a_figure(file: Path, tmp_path: Path) -> None:
    begin = {"svg": b"<?xml", "pdf": b"%PDF", "png": b"\x89PNG"}
    for suffix, expected in begin.items():
        output = tmp_path / f"links.{suffix}"
        for _ in range(2):  # a former one is replaced
            assert run(["report", str(file), "--figure", "topology", "-o", str(output)]) == 0
        assert output.read_bytes().startswith(expected)


def test_a_former_report_is_replaced_and_nothing_else(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "report.html"
    for _ in range(2):
        assert run(["report", str(file), "-o", str(output)]) == 0
    assert output.read_text().startswith("<!doctype html>")
    other = tmp_path / "other.html"
    for content in (file.read_bytes(), b"precious"):
        other.write_bytes(content)
        capsys.readouterr()
        assert run(["report", str(file), "-o", str(other)]) == 2
        assert "is no report, and is not overwritten" in capsys.readouterr().err
        assert other.read_bytes() == content
    assert sorted(each.name for each in tmp_path.iterdir()) == ["other.html", "report.html"]


def test_of_an_existing_file_no_more_than_a_limit_is_read(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "report.html"
    with output.open("wb") as existing:
        existing.truncate(LIMIT_BYTES + 1)  # sparse
    assert run(["report", str(file), "-o", str(output)]) == 2
    assert "is no report, and is not overwritten" in capsys.readouterr().err
    assert output.stat().st_size == LIMIT_BYTES + 1


def test_a_copy_of_a_survey_is_no_second_machine(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = tmp_path / "b.wwp"
    copy.write_bytes(file.read_bytes())
    output = tmp_path / "report.md"
    assert run(["report", str(file), "-o", str(output)]) == 0
    alone, made = output.read_text().rpartition("---")[::2]
    assert "waywiser" in made
    for files, said in (
        ((file, file), f"{file} is named twice, and is shown once"),
        ((file, copy), f"{copy} is a copy of {file}, and is shown once"),
    ):
        capsys.readouterr()
        assert run(["report", *map(str, files), "-o", str(output)]) == 0
        assert f"waywiser: {said}\n" in capsys.readouterr().err
        assert output.read_text().rpartition("---")[0] == alone


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--format", "docx"], "'docx' is no format"),
        (["--format", "svg"], "--figure list names them"),
        (["--figure", "x"], "there is no figure 'x'"),
        (["--figure", "x", "--format", "html"], "a single figure is no html"),
        (["--format", "pdf", "--figure", "x"], "there is no figure 'x'"),
        (["--format", "png", "--figure", "x"], "there is no figure 'x'"),
        (["--figure", "topology", "-o", "x.docx"], "a single figure is no html"),
        (["-o", "x.jpg"], "x.jpg: no report has the extension .jpg"),
        (["-o", "x.wwp", "--format", "html"], "x.wwp: no report has the extension .wwp"),
    ],
)
def test_what_makes_no_sense_is_reported(
    file: Path, words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["report", str(file), *words]) == 2
    assert said in capsys.readouterr().err


def test_without_a_figure_their_list_is_an_error_of_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = profiles.write(tmp_path / "a.wwp")
    monkeypatch.setattr(Document, "pictures", lambda _: [])
    assert run(["report", str(file), "--figure", "list"]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1
    assert "there is no figure: the profiles show too little for one (survey more" in said.err
