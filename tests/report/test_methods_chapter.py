"""The chapter Which method when: the decisions of the policy, with the figures that show them."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from analysis.questions.subjects import curve, postal, subject
from kept import RESULTS, unpacked
from waywiser.analysis.policy.build import decision_tables
from waywiser.analysis.policy.decision_table import (
    CopyKind,
    DecisionTable,
    Method,
    MethodTime,
    SizeDecision,
)
from waywiser.analysis.policy.table import MethodCosts
from waywiser.machine.native import NativeError
from waywiser.render import entry as entries
from waywiser.render.chapters.curves import curves, styles_of
from waywiser.render.chapters.methods import methods
from waywiser.render.decision_figures import decision_figures
from waywiser.render.document import document
from waywiser.render.entry import Entry, entry
from waywiser.render.figures.curves import BAND
from waywiser.render.figures.drawing import Shape
from waywiser.render.figures.styles import colour_of
from waywiser.render.parts import Document, Fold, Pictures, Section, Sheet, Words

PLAIN = "pageable@numa:0 -> device@gpu:0 by copy-engine"
STAGED = "pageable@numa:0 -> device@gpu:0 by staged"
SIZES = tuple(2**n for n in range(14, 31, 4))


def times(rate: float, size: int, pieces: int, series: str, costs: MethodCosts) -> MethodTime:
    seconds = size * pieces / rate
    text = f"{series} of {size * pieces}"
    return MethodTime(seconds, seconds * 0.99, seconds * 1.01, costs, series=text, pieces=pieces)


def table(
    kind: CopyKind, count: int, chosen: tuple[int, ...], series: tuple[str, ...]
) -> DecisionTable:
    """Method n has n + 1 times 10 GB/s."""
    costs = (MethodCosts(), MethodCosts(threads=8, pinned_bytes=2**24, small_copy=1.25))
    own = [Method(text.split(" by ")[1].partition(" as ")[0], {}) for text in series]
    decisions = tuple(
        SizeDecision(
            size,
            size * 3 // 4,
            choice,
            tuple(
                times(1e10 * (n + 1), size, count, text, costs[n]) for n, text in enumerate(series)
            ),
            "faster",
        )
        for size, choice in zip(SIZES, chosen, strict=True)
    )
    return DecisionTable(
        kind, 16, count, tuple(own), 0, decisions, ("numa:0 -> gpu:0",), ("a note",)
    )


def made(*tables: DecisionTable, key: str = "") -> Entry:
    found = entry(subject(curve(PLAIN, postal(2e-5, 1e10))), name="node", key=key)
    return msgspec.structs.replace(found, decisions=tables)


CONTIGUOUS = table(CopyKind("pageable", "device"), 1, (0, 0, 1, 1, 1), (PLAIN, STAGED))
LISTS = [
    table(
        CopyKind("pageable", "device"), count, chosen,
        tuple(f"{text} as list[piece=4096]" for text in (PLAIN, STAGED)),
    )
    for count, chosen in ((2, (0,) * 5), (32, (0, 1, 1, 1, 1)), (1024, (1,) * 5))
]  # fmt: skip


def rows_of(section: Section) -> list[list[str]]:
    (sheet,) = [block for block in section.blocks if isinstance(block, Sheet)]
    return [[cell.text for cell in row.cells] for row in sheet.rows]


def test_a_row_says_the_sizes_the_method_the_gain_and_the_costs() -> None:
    first, second = rows_of(methods([made(CONTIGUOUS)]))
    assert first == [
        "pageable -> device", "below 3\N{NO-BREAK SPACE}MiB", "copy-engine", "is the plain copy",
        "nothing known",
    ]  # fmt: skip
    assert second == [
        "", "from 3\N{NO-BREAK SPACE}MiB", "staged", "×2",
        "8 CPUs, 16 MiB pinned, small copies take 1.25 × the time",
    ]  # fmt: skip


def test_the_middle_count_stands_for_lists_and_all_are_folded() -> None:
    section = methods([made(CONTIGUOUS, *LISTS)])
    titles = [row[0] for row in rows_of(section) if row[0]]
    assert titles == ["pageable -> device", "pageable -> device, lists of 32 pieces and more"]
    (below,) = section.sections
    assert below.folded and below.title == "pageable -> device"
    (fold,) = [block for block in below.blocks if isinstance(block, Fold)]
    (sheet,) = fold.blocks
    assert [row.cells[0].text.rsplit("of ")[-1] for row in sheet.rows if row.cells[0].text] == [
        f"{count} pieces and more" for count in (2, 32, 1024)
    ]
    (pictures,) = [block for block in below.blocks if isinstance(block, Pictures)]
    assert [each.name for each in pictures.pictures] == [
        "method-pageable-device", "method-pageable-device-lists",
    ]  # fmt: skip


def test_the_band_has_the_colour_of_the_method_in_all_figures() -> None:
    own = made(CONTIGUOUS)
    styles = styles_of(own)
    (figure,) = decision_figures(own)
    assert set(figure.names) <= set(styles)
    assert len({styles[name] for name in figure.names}) == 2
    (picture,) = methods([own]).sections[0].blocks[0].pictures  # type: ignore[union-attr]
    marks = picture.draw().marks
    bands = [mark.stroke for mark in marks if isinstance(mark, Shape) and mark.width == BAND]
    by_method = dict(zip(figure.methods, figure.names, strict=True))
    assert bands == [colour_of(styles[by_method[n]]) for n in (0, 1)]
    assert picture.data is not None
    assert [row.cells[-1].text for row in picture.data.rows] == ["copy-engine"] * 2 + ["staged"] * 3
    (lines,) = curves([own]).sections
    (of_family,) = [block for block in lines.blocks if isinstance(block, Pictures)]
    strokes = {m.stroke for m in of_family.pictures[0].draw().marks if isinstance(m, Shape)}
    assert colour_of(styles["copy-engine, pageable"]) in strokes


def test_lists_are_drawn_with_the_bytes_of_all_pieces() -> None:
    (picture,) = methods([made(LISTS[1])]).sections[0].blocks[0].pictures  # type: ignore[union-attr]
    assert picture.data is not None
    staged = picture.data.names.index("staged")
    assert {row.cells[staged].text for row in picture.data.rows} == {"20.0"}, "GB/s"


def test_kinds_with_one_method_are_named_in_one_sentence() -> None:
    alone = msgspec.structs.replace(
        CONTIGUOUS,
        kind=CopyKind("pinned", "device"),
        methods=CONTIGUOUS.methods[:1],
        decisions=tuple(
            msgspec.structs.replace(each, chosen=0, times=each.times[:1])
            for each in CONTIGUOUS.decisions
        ),
    )
    section = methods([made(CONTIGUOUS, alone)])
    notes = [block.text for block in section.blocks if isinstance(block, Words)]
    assert notes == ["Only one method was measured: pinned -> device."]
    assert len(section.sections) == 1


def test_several_machines_have_a_table_each() -> None:
    section = methods([made(CONTIGUOUS, key="a-"), made(CONTIGUOUS, key="b-")])
    assert sum(isinstance(block, Sheet) for block in section.blocks) == 2
    assert [each.anchor[:2] for each in section.sections] == ["a-", "b-"]


def test_without_the_native_library_the_chapter_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(_: object, **__: object) -> None:
        raise NativeError("the native library does not load", remedy="build it")

    monkeypatch.setattr(entries, "decision_tables", missing)
    found = entry(subject(curve(PLAIN, postal(2e-5, 1e10))))
    (words,) = methods([found]).blocks
    assert isinstance(words, Words) and "Not determined: the native library" in words.text
    assert document([found]).section("methods") is not None


def test_a_recorded_survey_has_the_chapter_before_its_curves(recorded: Document) -> None:
    anchors = [section.anchor for section in recorded.sections]
    assert anchors.index("methods") + 1 == anchors.index("curves")
    section = recorded.section("methods")
    assert section is not None
    names = [row[0] for row in rows_of(section) if row[0]]
    assert "pinned -> device, lists of 32 pieces and more" in names
    assert all(each.folded for each in section.sections)
    pictures = [each for each in recorded.pictures() if each.name.startswith("method-")]
    assert len(pictures) == len({each.name for each in pictures}) >= 5
    for picture in pictures:
        assert picture.data is not None and picture.data.names[-1] == "use"
        assert picture.draw().marks


def test_a_survey_of_one_gpu_shows_staged_copies(tmp_path: Path) -> None:
    packed = RESULTS / "2026-11-23-surveys" / "h200-standard-3.wwp.xz"
    (found,) = entries.read([unpacked(packed, tmp_path / "one.wwp")])
    kinds = {str(each.table.kind): each for each in decision_figures(found)}
    figure = kinds["pageable -> device"]
    assert {"copy-engine, pageable", "staged, pageable"} == set(figure.names)


SETTINGS = ("api=sync", "api=async,submit=1", "cus=304", "parts=2", "unheard=of")


@pytest.mark.parametrize("by", ["copy-engine", "sm", "unheard"])
@pytest.mark.parametrize("settings", SETTINGS)
def test_methods_of_other_tools_are_in_the_chapter_with_unknown_costs(
    by: str, settings: str
) -> None:
    paths = [f"pinned@numa:0 -> device@gpu:0 by {by}[{settings},n={n}]" for n in (1, 2)]
    curves = [curve(path, postal(1e-5, (n + 1) * 1e10)) for n, path in enumerate(paths)]
    known = msgspec.structs.replace(
        subject(*curves), environment={"imported": [{"tool": "a tool", "version": "1"}]}
    )
    (sheet,) = (
        each for each in methods([entry(known, name="a")]).blocks if isinstance(each, Sheet)
    )
    assert settings.partition(",")[0] in str(sheet.rows[-1]) and "n=2" in str(sheet.rows[-1])
    assert {row.cells[-1].text for row in sheet.rows} == {"not known"}


def test_messages_between_ranks_are_no_methods_of_copies() -> None:
    paths = [f"device@gpu:0 -> device@gpu:1 by mpi[test=bw,n={n}]" for n in (1, 2)]
    curves = [curve(path, postal(1e-5, (n + 1) * 1e10)) for n, path in enumerate(paths)]
    known = msgspec.structs.replace(
        subject(*curves), environment={"imported": [{"tool": "a tool", "version": "1"}]}
    )
    assert not methods([entry(known, name="a")]).blocks


def test_of_a_survey_the_chapter_has_the_methods_of_the_library_alone() -> None:
    """A kernel that the library uses for lists alone makes no copy of one range there."""
    curves = [curve(f"pinned@numa:0 -> device@gpu:0 by {by}", postal(1e-5, rate))
              for by, rate in (("copy-engine", 2e10), ("sm", 4e10))]  # fmt: skip
    known = subject(*curves)
    tables = {
        str(each.kind): list(map(str, each.methods)) for each in entry(known, name="a").decisions
    }
    assert tables == {
        str(each.kind): list(map(str, each.methods)) for each in decision_tables([known])
    }
