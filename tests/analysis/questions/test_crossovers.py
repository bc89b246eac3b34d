"""Which way is best where, on machines whose truth is known."""

from __future__ import annotations

import msgspec
import pytest
from tests import profiles
from tests.analysis.questions.subjects import FEW, Seconds, curve, postal, subject

from waywiser.analysis.questions.crossovers import MOST_OF_BOXES, answer
from waywiser.curves.answer import MOST_FINDINGS
from waywiser.words.records import Series

PINNED, PAGEABLE = profiles.H2D, profiles.PAGEABLE
SM = "pinned@numa:0 -> device@gpu:0 by sm"
HOST = "pageable@numa:0 -> pageable@numa:0 by cpu"


def seen_later(series: list[Series], seconds: float) -> list[Series]:
    """Makes each execution longer for the application by this factor."""

    def later(each: Series) -> Series:
        visits = []
        for visit in each.visits:
            host = tuple(span + seconds for span in visit.samples.span)
            samples = msgspec.structs.replace(visit.samples, host=host)
            visits.append(msgspec.structs.replace(visit, samples=samples))
        return Series(each.workload, tuple(visits))

    return [later(each) for each in series]


def test_one_winner_is_reported_with_its_margins() -> None:
    said = answer(subject(curve(PINNED, postal(5e-6, 50e9)), curve(PAGEABLE, postal(20e-6, 10e9))))
    (finding,) = said.findings
    assert finding.id == "faster" and finding.severity == "info"
    assert finding.text.startswith(
        "pinned is faster than pageable: numa:0 -> gpu:0 (to device by copy-engine) 3.1"
    )
    assert "5 times as fast from 8 B to 1 GiB" in finding.text
    assert finding.effect == pytest.approx(4.0, rel=0.05)
    assert finding.remedy == "use pinned if the program can choose"
    assert [device.place for device in finding.devices] == ["gpu:0"]
    assert {exhibit.series.partition(" of ")[0] for exhibit in finding.exhibits} == {
        PINNED,
        PAGEABLE,
    }
    (row,) = said.tables[0].rows
    assert {cell.mark for cell in row.cells[4:]} == {"yes", ""}


def test_at_a_crossover_both_ranges_are_reported() -> None:
    said = answer(subject(curve(PINNED, postal(20e-6, 50e9)), curve(SM, postal(5e-6, 10e9))))
    (finding,) = said.findings
    assert finding.id == "crossover"
    assert "sm from 8 B to 128 KiB" in finding.text
    assert "copy-engine from 256 KiB to 1 GiB" in finding.text
    assert finding.remedy.startswith("choose by size: sm from 8 B")


def test_ways_are_compared_by_what_an_application_sees() -> None:
    quick = seen_later(curve(SM, postal(2e-6, 50e9), FEW), 30e-6)
    said = answer(subject(seen_later(curve(PINNED, postal(4e-6, 50e9), FEW), 3e-6), quick))
    (finding,) = said.findings
    assert finding.text.startswith("copy-engine is faster than sm")


def test_methods_that_are_even_are_no_finding() -> None:
    said = answer(subject(curve(PINNED, postal(5e-6, 50e9)), curve(SM, postal(5e-6, 50e9))))
    assert (said.findings, said.tables) == ((), ())
    assert "1 are even" in said.summary


@pytest.mark.parametrize(("start", "findings"), [(0.5e-6, 0), (5e-6, 1)])
def test_a_choice_that_saves_less_than_a_microsecond_is_no_finding(
    start: float, findings: int
) -> None:
    said = answer(subject(curve(PINNED, postal(start, 5e10)), curve(SM, postal(2 * start, 5e10))))
    assert len(said.findings) == findings
    assert len(said.tables[0].rows) == 1


def test_a_narrow_range_of_a_few_bytes_is_no_finding() -> None:
    """On a healthy machine pageable memory was faster from 16 to 32 B."""

    def pinned(size: int) -> float:
        return 5e-6 + (3e-6 if 16 <= size <= 32 else 0) + size / 50e9

    def wider(size: int) -> float:
        return 5e-6 + (3e-6 if 8 <= size <= 512 else 0) + size / 50e9

    def winners(first: Seconds) -> str:
        found = answer(subject(curve(PINNED, first), curve(PAGEABLE, postal(5e-6, 10e9))))
        return found.findings[0].text

    assert winners(pinned).startswith("pinned is faster than pageable: ")
    assert "pageable from 8 B to 512 B" in winners(wider)


def test_a_setting_is_compared_with_the_default() -> None:
    threads = f"{HOST}[threads=8]"
    said = answer(subject(curve(HOST, postal(1e-7, 12e9)), curve(threads, postal(5e-6, 80e9))))
    (finding,) = said.findings
    head = "which of cpu and cpu[threads=8] is faster depends on the size: within numa:0"
    assert finding.text.startswith(head)
    (row,) = said.tables[0].rows
    assert [cell.text for cell in row.cells[2:4]] == ["cpu", "cpu[threads=8]"]


def test_the_recommendation_is_the_fastest_of_all_that_was_measured() -> None:
    said = answer(
        subject(
            curve(PINNED, postal(5e-6, 20e9)),
            curve(PAGEABLE, postal(20e-6, 10e9)),
            curve(SM, postal(5e-6, 50e9)),
        )
    )
    pageable = next(f for f in said.findings if f.text.startswith("pinned is faster than p"))
    assert pageable.remedy.startswith("use a third method")
    assert pageable.remedy.endswith("pinned -> device by sm")


@pytest.mark.parametrize("sizes", [[2**30], [2**26, 2**30]])
def test_a_method_measured_at_few_sizes_is_the_fastest_if_it_is_faster_at_a_larger_one(
    sizes: list[int],
) -> None:
    said = answer(
        subject(
            curve(PINNED, postal(5e-3, 20e9), [2**22, 2**24, 2**26, 2**30]),
            curve(PAGEABLE, postal(20e-3, 10e9), [2**22, 2**24, 2**26, 2**30]),
            curve(SM, postal(5e-6, 1e13), sizes),
        )
    )
    pageable = next(f for f in said.findings if f.text.startswith("pinned is faster than p"))
    assert pageable.remedy == (
        "use a third method, which is faster than both at these sizes: pinned -> device by sm"
    )


def test_where_a_third_method_is_faster_is_said_beside_what_to_use() -> None:
    sizes = [2**22, 2**24, 2**26, 2**30]
    said = answer(
        subject(
            curve(PINNED, postal(5e-6, 20e9), sizes),
            curve(PAGEABLE, postal(20e-6, 10e9), sizes),
            curve(SM, postal(5e-6, 1e12), [2**22]),
        )
    )
    pageable = next(f for f in said.findings if f.text.startswith("pinned is faster than p"))
    assert pageable.remedy == (
        "use pinned if the program can choose, but pinned -> device by sm at 4 MiB"
    )


def test_what_moves_nothing_is_no_way() -> None:
    """Pages that are resident where they are fetched to; the driver knows the host as one place."""
    for end in ("numa:0", "gpu:0"):
        path = f"managed@{end} -> managed@{end} by"
        said = answer(
            subject(
                *(curve(f"{path} {by}", postal(1e-6, 1e12)) for by in ("prefetch", "page-fault"))
            )
        )
        assert said.findings == ()
        assert not said.answered


def test_variants_are_compared_with_their_own_kind_alone() -> None:
    huge = PAGEABLE.replace("pageable", "pageable[pages=huge]")
    line: Seconds = postal(20e-6, 10e9)
    said = answer(
        subject(curve(PINNED, postal(5e-6, 50e9)), curve(PAGEABLE, line), curve(huge, line))
    )
    assert len(said.findings) == 1
    assert "1 have one winner and 1 are even" in said.summary


def test_managed_memory_is_compared_with_explicit_copies() -> None:
    managed = "managed@numa:0 -> managed@gpu:0 by prefetch"
    said = answer(subject(curve(PINNED, postal(5e-6, 50e9)), curve(managed, postal(50e-6, 45e9))))
    (finding,) = said.findings
    assert finding.text.startswith(
        "pinned -> device by copy-engine is faster than managed -> managed by prefetch"
    )


def test_alike_places_are_counted_and_not_repeated() -> None:
    curves = []
    for gpu in range(2):
        curves.append(curve(PINNED.replace("gpu:0", f"gpu:{gpu}"), postal(5e-6, 50e9)))
        curves.append(curve(PAGEABLE.replace("gpu:0", f"gpu:{gpu}"), postal(20e-6, 10e9)))
    said = answer(subject(*curves))
    (finding,) = said.findings
    assert "the same for both equivalent pairs of places" in finding.text
    assert said.tables[0].rows[0].cells[0].text == "numa:0 -> gpu:0 and 1 equivalent"


def laid_out(way: str, layout: str, seconds: Seconds) -> list[Series]:
    return curve(f"pinned@numa:0 -> device@gpu:0 by {way} as {layout}", seconds, (2**26,))


def test_boxes_are_compared_over_the_size_of_their_rows() -> None:
    small, large = (
        "box[width=4096,height=16,pitch=8192]",
        "box[width=1048576,height=16,pitch=2097152]",
    )
    said = answer(
        subject(
            laid_out("sm", small, postal(0.0, 50e9)),
            laid_out("copy-engine", small, postal(0.0, 10e9)),
            laid_out("sm", large, postal(0.0, 50e9)),
            laid_out("copy-engine", large, postal(0.0, 55e9)),
        )
    )
    (finding,) = said.findings
    assert finding.id == "layout-crossover"
    assert "4 KiB sm, 1 MiB copy-engine; up to 5 times as fast as the next" in finding.text
    (table,) = said.tables
    assert table.names[-2:] == ("4 KiB", "1 MiB")
    cells = table.rows[0].cells[-2:]
    assert cells[0].text.startswith("sm (") and cells[1].text.startswith("copy-engine")


def test_lists_are_left_to_the_policy() -> None:
    said = answer(
        subject(
            laid_out("sm", "list[piece=4096]", postal(0.0, 50e9)),
            laid_out("batch", "list[piece=4096]", postal(0.0, 10e9)),
        )
    )
    assert (said.findings, said.tables, said.answered) == ((), (), False)


def test_there_are_few_findings_however_much_was_measured() -> None:
    settings = [f"{HOST}[threads={n}]" for n in range(2, 30)]
    curves = [curve(text, postal(1e-6, n * 1e9), FEW) for n, text in enumerate(settings, 2)]
    said = answer(subject(curve(HOST, postal(1e-7, 1e9), FEW), *curves))
    assert len(said.findings) <= MOST_FINDINGS + MOST_OF_BOXES
    assert all(len(table.rows) <= 40 for table in said.tables)


def test_a_single_way_has_no_rival() -> None:
    said = answer(subject(curve(PINNED, postal(5e-6, 50e9))))
    assert said.findings == () and said.tables == ()
    assert said.unanswered == ("which method is fastest: there are no two methods to compare",)


def test_what_else_beats_the_same_loser_is_no_news() -> None:
    combined = PINNED.replace("pinned", "write-combined")
    fast, slow = postal(5e-6, 50e9), postal(20e-6, 10e9)
    said = answer(subject(curve(PINNED, fast), curve(combined, fast), curve(PAGEABLE, slow)))
    (finding,) = said.findings
    assert finding.text.startswith("pinned is faster than pageable")


def test_settings_that_another_tool_had_throughout_are_its_defaults() -> None:
    sync = "by copy-engine[api=sync]"
    said = answer(
        subject(
            curve(PINNED.replace("by copy-engine", sync), postal(5e-6, 50e9)),
            curve(PAGEABLE.replace("by copy-engine", sync), postal(20e-6, 10e9)),
        )
    )
    (finding,) = said.findings
    assert finding.text.startswith("pinned is faster than pageable")
