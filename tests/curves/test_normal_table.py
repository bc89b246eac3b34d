"""The table of values of other machines: its form is checked, and its ranges have sources."""

from __future__ import annotations

import csv
import io
import random
import re
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exchange.imports.shared_files import shared
from waywiser.curves.headline import Group
from waywiser.curves.normal_table import (
    COLUMNS,
    FILE,
    LARGE_TEXT,
    LEAST_SOURCES,
    NormalRange,
    NormalTableError,
    NormalValue,
    model_name,
    range_of_class,
    ranges,
    read_values,
    shipped_values,
    size_class,
)
from waywiser.machine.link_class import MEMORY

ROW = {
    "link": "PCIe 5 x8",
    "path": "H2D",
    "bytes": "1073741824",
    "gb_per_s": "27.5",
    "gpu": "L40S",
    "group": "",
    "link_is": "stated",
    "source": "https://example.org/l40s",
    "date": "2026-03",
    "tool": "nvbandwidth 0.8",
    "note": "",
}


def table(*rows: dict[str, str]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows([{**ROW, **row} for row in rows])
    return text.getvalue()


def values(*rows: dict[str, str]) -> tuple[NormalValue, ...]:
    return read_values(table(*rows), "mine.csv")


class TestForm:
    def test_a_row_in_the_form_is_read(self) -> None:
        (value,) = values({"gpu": "NVIDIA L40S", "link_is": "inferred"})
        assert value.link == "PCIe 5 x8"
        assert value.gb_per_s == 27.5
        assert value.gpu == "L40S"
        assert value.is_inferred
        assert value.size == LARGE_TEXT

    @pytest.mark.parametrize(
        ("column", "cell", "said"),
        [
            ("link", "PCIe Gen5 x16", "is no link"),
            ("link", "PCIe 5 x12", "is no link"),
            ("link", "1 × PCIe 5 x16", "is no link"),
            ("link", MEMORY, "only these, have the link"),
            ("path", "H2D pinned", "is no headline path"),
            ("path", "local copy", "only these, have the link"),
            ("bytes", "64 MiB", "is no number of bytes"),
            ("bytes", "-1", "is no number of bytes"),
            ("gb_per_s", "27,5", "is no bandwidth"),
            ("gb_per_s", "nan", "is no bandwidth"),
            ("gb_per_s", "-3", "is no bandwidth"),
            ("gb_per_s", "31.6", "more than the 31.5 GB/s that PCIe 5 x8 can carry"),
            ("link_is", "", "write stated or inferred"),
            ("source", "stored-text index id 62193952648", "names no page"),
            ("source", "a colleague", "names no page"),
            ("source", "http://example.org/", "names no page"),
            ("date", "March 2026", "is no date"),
            ("tool", "", "the tool is missing"),
            ("note", "THRESHOLD of a health check", "a threshold is no measured value"),
            ("gpu", "L40S ", "blanks at its ends"),
            ("note", "a\tb", "do not print"),
        ],
    )
    def test_what_is_not_in_the_form_is_named_with_its_line(
        self, column: str, cell: str, said: str
    ) -> None:
        with pytest.raises(NormalTableError) as error:
            values({"source": "https://example.org/other"}, {column: cell})
        assert error.value.where == "mine.csv"
        assert "line 3: " in error.value.what
        assert said in error.value.what
        assert "line 2" not in error.value.what

    def test_several_errors_are_named_at_once_and_many_are_counted(self) -> None:
        bad = [{"date": "then", "source": f"https://example.org/{n}"} for n in range(9)]
        with pytest.raises(NormalTableError, match=r"line 2: .*line 6: .*; and 4 more"):
            values(*bad)

    def test_a_row_that_is_repeated_or_cut_is_an_error(self) -> None:
        with pytest.raises(NormalTableError, match="line 3: it repeats line 2"):
            values({}, {"note": "again", "date": "2025"})
        with pytest.raises(NormalTableError, match="line 3: it has 2 columns of 11"):
            read_values(table({}) + "PCIe 5 x8,H2D\n", "mine.csv")
        with pytest.raises(NormalTableError, match="its first line is"):
            read_values("link,path\n", "mine.csv")
        with pytest.raises(NormalTableError, match="its first line is"):
            read_values("", "mine.csv")

    @given(st.text(max_size=400))
    def test_any_text_is_read_or_is_an_error(self, text: str) -> None:
        for start in ("", ",".join(COLUMNS) + "\n"):
            try:
                read_values(start + text, "mine.csv")
            except NormalTableError as error:
                assert "\n" not in str(error)

    def test_two_directions_carry_twice_as_much(self) -> None:
        (both,) = values({"path": "bidirectional", "gb_per_s": "52"})
        assert both.gb_per_s == 52
        (four,) = values({"link": "4 × PCIe 5 x8", "path": "host-to-all", "gb_per_s": "110"})
        assert four.link == "4 × PCIe 5 x8"


class TestSizes:
    def test_large_and_unstated_sizes_are_one_class(self) -> None:
        assert {size_class(size) for size in (0, 2**24, 32_000_000, 2**30)} == {LARGE_TEXT}

    def test_smaller_sizes_are_those_near_a_power_of_two(self) -> None:
        assert size_class(10**6) == size_class(2**20) == "about 1 MiB"
        assert size_class(2**21) == "about 2 MiB"
        assert size_class(10**5) == "about 128 KiB"


class TestRanges:
    def test_a_range_counts_each_source_once(self) -> None:
        (found,) = ranges(
            values(
                {"gb_per_s": "26"},
                {"gb_per_s": "28", "bytes": ""},
                {"gb_per_s": "27", "source": "someone/node:README.md"},
            )
        )
        assert str(found) == "PCIe 5 x8: 26.0–28.0 (2 sources)"
        assert not found.decides

    def test_sources_of_this_project_are_one(self) -> None:
        ours = [{"source": f"waywiser:docs/results/{n}"} for n in range(5)]
        (found,) = ranges(values(*ours, {"gb_per_s": "26"}))
        assert str(found) == "PCIe 5 x8: 26.0–27.5 (2 sources)"

    def test_groups_stay_apart_unless_they_overlap(self) -> None:
        rows = [
            {"group": "near", "gb_per_s": "26"},
            {"group": "near", "gb_per_s": "27"},
            {"group": "far", "gb_per_s": "19"},
        ]
        (found,) = ranges(values(*rows))
        assert found.figures == "19.0 or 26.0–27.0"
        (joined,) = ranges(values(*rows, {"group": "far", "gb_per_s": "26.4"}))
        assert joined.figures == "19.0–27.0"

    def test_a_model_with_enough_sources_has_its_own_range(self) -> None:
        rows = [
            {"gpu": "L40S", "source": f"https://example.org/{n}", "gb_per_s": f"2{n}"}
            for n in range(LEAST_SOURCES)
        ]
        few = values(*rows[1:], {"gpu": "A2", "gb_per_s": "9"})
        assert [each.gpu for each in ranges(few)] == [""]
        enough = values(*rows, {"gpu": "A2", "gb_per_s": "9"})
        assert [each.gpu for each in ranges(enough)] == ["", "L40S"]

        def lowest(gpu: str) -> float:
            found = range_of_class(enough, "PCIe 5 x8", "H2D", LARGE_TEXT, gpu)
            assert found is not None
            return found.whole.low

        assert lowest("NVIDIA L40S") == 20
        assert lowest("NVIDIA A2") == 9

    def test_copies_within_a_gpu_have_no_range_of_all_models(self) -> None:
        local = {"link": MEMORY, "path": "local copy", "gb_per_s": "400"}
        found = values({**local, "gpu": "L40S"}, {**local, "gpu": "A2"})
        assert {str(each) for each in ranges(found)} == {
            "L40S: 400 (1 source)",
            "A2: 400 (1 source)",
        }
        assert range_of_class(found, MEMORY, "local copy", LARGE_TEXT, "NVIDIA T4") is None

    def test_nothing_is_known_of_another_link_path_or_size(self) -> None:
        found = values({})
        assert range_of_class(found, "PCIe 4 x8", "H2D", LARGE_TEXT, "L40S") is None
        assert range_of_class(found, "PCIe 5 x8", "D2H", LARGE_TEXT, "L40S") is None
        assert range_of_class(found, "PCIe 5 x8", "H2D", "about 1 MiB", "L40S") is None


def test_vendors_before_a_model_are_no_part_of_it() -> None:
    assert model_name("NVIDIA H100 80GB HBM3") == "H100 80GB HBM3"
    assert model_name("NVIDIA GeForce RTX 4090") == model_name("GeForce RTX 4090") == "RTX 4090"
    assert model_name("AMD Radeon RX 7900 XTX") == "RX 7900 XTX"


class TestShippedValues:
    def test_each_has_a_page_or_a_repository(self) -> None:
        assert len(shipped_values()) > 100
        assert not any("index id" in value.source for value in shipped_values())

    def test_the_class_that_most_sources_have(self) -> None:
        found = range_of_class(shipped_values(), "PCIe 4 x16", "H2D", LARGE_TEXT, "Test GPU")
        assert str(found) == "PCIe 4 x16: 24.7–28.4 (7 sources)"

    def test_peer_copies_of_eighteen_nvlinks_have_two_groups(self) -> None:
        found = range_of_class(shipped_values(), "NVLink 4 x18", "P2P", LARGE_TEXT, "H200")
        assert found is not None
        assert found.figures.startswith("369–377 or 38") or found.figures == "369–377 or 396"
        assert found.decides

    def test_what_a_gpu_has_of_a_c2c_link_is_that_of_its_product(self) -> None:
        known = {
            model: range_of_class(shipped_values(), "NVLink-C2C", "H2D", LARGE_TEXT, model)
            for model in ("GB200", "GB300", "NVIDIA GH200 480GB", "Test GPU")
        }
        texts = {model: str(found) for model, found in known.items()}
        assert texts["GB200"] == "GB200 at NVLink-C2C: 201 (2 sources)"
        assert texts["GB300"] == "GB300 at NVLink-C2C: 212 or 359 (2 sources)"
        assert texts["NVIDIA GH200 480GB"] == "GH200 480GB at NVLink-C2C: 377–380 (1 source)"
        assert texts["Test GPU"].startswith("NVLink-C2C: 201–212 or 359–380 (")
        assert not any(found.decides for found in known.values() if found is not None)

    def test_lines_are_kept_when_they_are_shuffled(self) -> None:
        header, *lines = FILE.read_text().splitlines()
        random.Random(7).shuffle(lines)
        again = read_values("\n".join([header, *lines]), "shuffled.csv")
        assert sorted(map(repr, again)) == sorted(map(repr, shipped_values()))

    def test_every_path_is_a_headline_path(self) -> None:
        assert {value.path for value in shipped_values()} <= set(get_args(Group))


def is_own(value: NormalValue) -> bool:
    """Whether it is of a kept or imported profile of this repository."""
    return value.source.startswith(("waywiser:", "cwpearson/ms-thesis:"))


def reference_rows() -> list[dict[str, str]]:
    """The public figures that the values were selected from."""
    text = (shared("reference") / "reference-values.csv").read_text()
    return list(csv.DictReader(io.StringIO(text)))


OCI = "oracle-quickstart/oci-gpu-quickstarts:nvidia/"
NAMED_SINCE = {
    "stored-text index id 52252791387": f"{OCI}GB200/README-GB200.md",
    "stored-text index id 51884305790": f"{OCI}GB300/README-GB300.md",
}
"""Files of repositories that were known without their names when the figures were selected."""

READ_SINCE = {"https://dnhkng.github.io/posts/gh200-benchmarking/"}
"""Pages that were not known then."""


def source_of(row: dict[str, str]) -> str:
    source = row["source_url_or_repo_path"].partition(" (")[0]
    return NAMED_SINCE.get(source, source)


class TestReferenceFigures:
    def test_each_shipped_value_is_one_that_nobody_called_a_problem(self) -> None:
        giga = {"GB/s": 1.0, "GiB/s": 2**30 / 1e9}
        known = {
            (source_of(row), f"{float(row['value']) * giga[row['unit']]:.4g}")
            for row in reference_rows()
            if row["healthy"] == "yes" and row["unit"] in giga and "THRESHOLD" not in row["note"]
        }
        others = [
            value
            for value in shipped_values()
            if not is_own(value) and value.source not in READ_SINCE
        ]
        assert len(others) > 100
        missing = [v for v in others if (v.source, f"{v.gb_per_s:.4g}") not in known]
        assert missing == []

    def test_each_path_of_a_host_that_has_a_class_is_shipped(self) -> None:
        """No value is selected by its height: all healthy ones of a class are there."""
        paths = {"H2D pinned": "H2D", "D2H pinned": "D2H"}
        shipped = {(v.source, v.path, f"{v.gb_per_s:.4g}") for v in shipped_values()}
        checked = 0
        for row in reference_rows():
            named = not row["source_url_or_repo_path"].startswith("stored-text")
            of_class = row["host_link"].startswith("PCIe Gen")
            if named and of_class and row["healthy"] == "yes" and row["path"] in paths:
                value = float(row["value"]) * (2**30 / 1e9 if row["unit"] == "GiB/s" else 1)
                key = source_of(row), paths[row["path"]], f"{value:.4g}"
                assert key in shipped
                checked += 1
        assert checked > 30

    def test_figures_that_are_not_shipped_are_seldom_below_and_problems_are(self) -> None:
        """Those whose source has no name check the ranges, and make none."""
        healthy, problems = [], []
        for row in reference_rows():
            found = beside(row)
            if found is None or not found[1].decides:
                continue
            rate, known = found
            is_below = rate < 0.95 * known.whole.low
            if row["healthy"] == "reported as a problem":
                problems.append(is_below)
            elif row["healthy"] == "yes" and source_of(row).startswith("stored-"):
                healthy.append(is_below)
        assert len(healthy) >= 30
        assert sum(healthy) == 0
        assert len(problems) >= 6
        assert all(problems)


def beside(row: dict[str, str]) -> tuple[float, NormalRange] | None:
    """The bandwidth of a copy by a copy engine, and the range of its class if there is one."""
    text = f"{row['note']} {row['tool']}"
    if re.search("SM kernel|SM copy|CPU threads|THRESHOLD", text):
        return None
    host = re.match(r"PCIe Gen(\d) x(\d+)", row["host_link"])
    nvlink = re.match(r"NVLink(\d),? (\d+) links", row["peer_link"])
    path = {"H2D pinned": "H2D", "D2H pinned": "D2H", "P2P write": "P2P", "P2P read": "P2P",
            "P2P bidirectional (total)": "P2P bidirectional"}.get(row["path"])  # fmt: skip
    if path is None:
        return None
    if path in ("H2D", "D2H") or row["peer_link"].startswith("PCIe"):
        link = f"PCIe {host[1]} x{host[2]}" if host else ""
    else:
        link = f"NVLink {nvlink[1]} x{nvlink[2]}" if nvlink else ""
    rate = float(row["value"]) * (2**30 / 1e9 if row["unit"] == "GiB/s" else 1)
    size = size_class(int(row["size_bytes"] or 0))
    known = range_of_class(shipped_values(), link, path, size, row["gpu_model"])
    return None if known is None else (rate, known)
