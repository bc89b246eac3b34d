"""Tables of OSU with damaged rows and titles, or with lines of other programs within them."""

from __future__ import annotations

import pytest

from waywiser.exchange.imports.osu import read

ROWS = {8: "2.15", 512: "3.40", 65536: "17.08", 4194304: "611.25"}


def table(rows: dict[int, str], title: str = "OSU MPI Latency Test v7.3") -> list[str]:
    lines = [f"# {title}", "# Size          Latency (us)"]
    return lines + [f"{size:<10}{figure:>22}" for size, figure in rows.items()]


def stated_in(lines: list[str]) -> tuple[dict[int, float], dict[str, str]]:
    """(microseconds by size, what is not imported)."""
    (found,) = read("\n".join(lines), "x")
    times = {each.workload.bytes: each.samples.span[0] * 1e6 for each in found.measured}
    assert len(times) == len(found.measured)
    return times, {each.path: each.reason for each in found.unsupported_paths}


@pytest.mark.parametrize("line", ["slurmstepd: error: x", "[1] 12 13", "n7: warning", "", "# end"])
@pytest.mark.parametrize("at", [2, 3, 5])
def test_a_line_of_another_program_ends_no_table(at: int, line: str) -> None:
    lines = table(ROWS)
    times, skipped = stated_in([*lines[:at], line, *lines[at:]])
    assert times == pytest.approx({size: float(figure) for size, figure in ROWS.items()})
    assert not skipped


@pytest.mark.parametrize(
    ("figure", "reason"),
    [
        ("61", "cut off"),
        ("611.2", "cut off"),
        ("", "no row"),
        ("nan", "no row"),
        ("-3.10", "no row"),
        ("611,25", "no row"),
        ("0.00", "is 0"),
    ],
)
@pytest.mark.parametrize("size", ROWS)
def test_a_damaged_row_is_listed_and_the_others_are_kept(
    size: int, figure: str, reason: str
) -> None:
    times, skipped = stated_in(table(ROWS | {size: figure}))
    assert set(times) == set(ROWS) - {size}
    (why,) = skipped.values()
    assert reason in why


def test_a_size_that_stands_twice_is_no_block() -> None:
    lines = table(ROWS)
    times, skipped = stated_in([*lines, "512                      9.90"])
    assert times[512] == pytest.approx(3.4)
    assert "not larger" in skipped["OSU MPI Latency Test v7.3, line 7"]


@pytest.mark.parametrize("title", ["OSU MPI_Put Latency Test v7.3 n7: INFO", "OSU MPI_Get Late"])
def test_a_table_below_a_damaged_title_is_not_one_of_the_test_above(title: str) -> None:
    times, skipped = stated_in(table(ROWS) + table({8: "5.55", 16: "5.66"}, title))
    assert set(times) == set(ROWS)
    assert list(skipped.values()) == ["the title of the table is damaged"]


def test_a_second_head_without_a_title_is_not_one_of_the_test_above() -> None:
    times, skipped = stated_in(table(ROWS) + table({8: "5.55", 16: "5.66"})[1:])
    assert times[8] == pytest.approx(2.15)
    assert list(skipped.values()) == ["the title of the table is damaged"]
