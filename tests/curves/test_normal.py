"""Headline paths beside those of other machines: what is below, and what has no verdict and why."""

from __future__ import annotations

import math
import re
from functools import cache
from pathlib import Path

import pytest
from msgspec.structs import replace

from analysis.questions.subjects import curve, postal, subject
from exchange.imports.shared_files import shared
from kept import RESULTS, unpacked
from profiles import D2H, H2D, PAGEABLE, PEER
from profiles import machine as machine_of_two
from waywiser.curves.curve import Curve, curves_of
from waywiser.curves.normal import (
    BELOW,
    NormalPath,
    below_findings,
    normal_paths,
    values_of,
    verdicts_text,
)
from waywiser.curves.normal_causes import causes_of, shipped_causes
from waywiser.curves.normal_table import (
    OURS,
    NormalValue,
    read_values,
    shipped_values,
    values_text,
)
from waywiser.curves.overview import overview
from waywiser.machine.machine import Machine, NumaNode, PcieLink
from waywiser.profile import Profile
from waywiser.profile.series_frame import SeriesFrame
from waywiser.words.records import Series, Visit

pytestmark = pytest.mark.slow

LARGE = (2**20, 2**26, 2**29)
OTHERS = tuple(value for value in shipped_values() if not value.source.startswith(OURS))
"""The values that are not of this project's profiles."""


def value(gb_per_s: float, source: int, **changes: object) -> NormalValue:
    return replace(
        NormalValue(
            link="PCIe 5 x16",
            path="H2D",
            bytes=0,
            gb_per_s=gb_per_s,
            gpu="",
            group="",
            is_inferred=False,
            source=f"https://example.org/{source}",
            date="2026",
            tool="nvbandwidth",
            note="",
        ),
        **changes,
    )


THREE = (value(50.0, 1), value(52.0, 2), value(55.0, 3))


def paths(
    rate: float,
    values: tuple[NormalValue, ...] = THREE,
    *,
    text: str = H2D,
    machine: Machine | None = None,
    sizes: tuple[int, ...] = LARGE,
    between: float = 0.002,
    blocks: int = 6,
) -> list[NormalPath]:
    """The headline paths of a machine whose one path has a bandwidth, in GB/s."""
    seconds = postal(5e-6, rate * 1e9)
    found = subject(curve(text, seconds, sizes, blocks=blocks, between=between), machine=machine)
    return normal_paths(found.machine, found.curves, values)


def one(*args: object, **changes: object) -> NormalPath:
    (found,) = paths(*args, **changes)  # type: ignore[arg-type]
    return found


class TestVerdicts:
    @pytest.mark.parametrize(
        ("rate", "verdict"), [(40, "below"), (46.5, "below"), (48.5, "normal"), (52, "normal"),
                              (57, "normal"), (60, "above")]
    )  # fmt: skip
    def test_only_what_is_outside_of_the_range_by_more_than_tools_differ(
        self, rate: float, verdict: str
    ) -> None:
        found = one(rate)
        assert found.verdict == verdict
        assert found.why == ""
        assert found.text.endswith("PCIe 5 x16: 50.0–55.0 (3 sources)")
        assert found.text.startswith(verdict) == (verdict != "normal")

    def test_two_sources_decide_nothing(self) -> None:
        found = one(20, THREE[1:])
        assert (found.verdict, found.why) == ("", "a verdict needs 3 sources")
        assert found.text == "PCIe 5 x16: 52.0–55.0 (2 sources), no verdict"

    def test_a_source_that_is_repeated_is_one(self) -> None:
        again = tuple(replace(each, source=THREE[0].source) for each in THREE)
        assert one(20, again).verdict == ""

    def test_an_interval_that_reaches_the_range_decides_nothing(self) -> None:
        found = one(44, between=0.2, blocks=8)
        assert found.interval is not None
        assert found.interval.high > 0.95 * 50
        assert found.verdict == ""
        assert "too wide" in found.why
        assert found.text.endswith("not decided")

    def test_a_value_without_an_interval_decides_nothing(self) -> None:
        found = subject(curve(H2D, postal(5e-6, 20e9), LARGE, blocks=1, count=1))
        (path,) = normal_paths(found.machine, found.curves, THREE)
        assert path.interval is None
        assert (path.verdict, path.why) == ("", "the measurement has no interval")

    def test_a_link_that_is_hidden_has_no_verdict_and_says_so(self) -> None:
        base = machine_of_two()
        hidden = replace(
            base, gpus=tuple(replace(gpu, pcie=PcieLink(0, 0, 0, 0)) for gpu in base.gpus)
        )
        found = one(20, machine=hidden)
        assert found.verdict == ""
        assert found.why == "generation and width of the PCIe link are not visible"
        assert found.text == "link not known"

    def test_a_simulated_machine_has_no_verdict(self) -> None:
        found = one(20, machine=replace(machine_of_two(), simulated="from node.wwp"))
        assert (found.verdict, found.why) == ("", "the machine is simulated")

    def test_sizes_are_compared_with_their_class(self) -> None:
        found = one(20, sizes=(2**18, 2**20))
        assert (found.verdict, found.why) == ("", "no source has this link, path and size")
        small = tuple(replace(each, bytes=10**6, gb_per_s=18.0) for each in THREE)
        assert one(20, (*THREE, *small), sizes=(2**18, 2**20)).verdict == "normal"

    def test_a_link_that_could_be_wider_is_compared_with_wider_ones(self) -> None:
        """A link at x8 in a slot for x16 is the fault that is looked for."""
        base = machine_of_two()
        low = replace(
            base, gpus=tuple(replace(gpu, pcie=PcieLink(5, 8, 5, 16)) for gpu in base.gpus)
        )
        assert one(27.5, machine=low).verdict == "below"

    def test_memory_of_another_node_is_not_compared(self) -> None:
        base = machine_of_two()
        two = replace(base, numa=(*base.numa, NumaNode(1, (4, 5), 2**35, 1)))
        found = subject(
            curve("pinned@numa:1 -> device@gpu:0 by copy-engine", postal(5e-6, 20e9), LARGE),
            machine=two,
        )
        assert [path.verdict for path in normal_paths(two, found.curves, THREE)] in ([], [""])

    def test_a_path_of_other_tools_settings_is_compared_and_other_methods_are_not(self) -> None:
        assert one(40, text=f"{H2D}[api=sync]").verdict == "below"
        assert paths(40, text="pinned@numa:0 -> device@gpu:0 by sm") == []
        assert paths(40, text="pageable@numa:0 -> pageable@numa:0 by cpu") == []


class TestFindings:
    def test_a_finding_for_each_range_names_its_paths_and_their_number(self) -> None:
        found = subject(
            curve(H2D, postal(5e-6, 40e9), LARGE),
            curve(H2D.replace("gpu:0", "gpu:1"), postal(5e-6, 30e9), LARGE),
            curve(D2H, postal(5e-6, 30e9), LARGE),
        )
        d2h = tuple(replace(each, path="D2H") for each in THREE)
        beside = normal_paths(found.machine, found.curves, (*THREE, *d2h))
        first, second = below_findings(found.machine, beside)
        assert first.id == second.id == BELOW
        assert first.severity == "warning"
        assert re.match(
            r"H2D, numa:0 -> gpu:1 \(and 1 more such path\) has (29\.9|30)", first.statement
        )
        assert "normal for PCIe 5 x16: 50.0–55.0 (3 sources)" in first.statement
        assert [device.place for device in first.devices] == ["gpu:1", "gpu:0"]
        assert re.match(r"D2H, gpu:0 -> numa:0 has (29\.9|30)", second.statement)
        assert "no baseline" in second.detail
        assert "waywiser check" in second.remedy
        assert first.effect == pytest.approx(0.4, abs=0.01)

    def test_no_finding_without_a_path_below(self) -> None:
        found = subject(curve(H2D, postal(5e-6, 53e9), LARGE))
        beside = normal_paths(found.machine, found.curves, THREE)
        assert below_findings(found.machine, beside) == []
        assert verdicts_text(beside) == "1 of 1 headline path has a verdict: 1 normal"

    def test_counts_of_verdicts(self) -> None:
        assert verdicts_text([]) == ""
        assert verdicts_text([one(40, THREE[:1])]) == "none of 1 headline path has a verdict"
        both = [one(40), one(53), one(99)]
        assert verdicts_text(both) == "2 of 3 headline paths have a verdict: 1 normal, 1 below"


class TestCauses:
    def test_each_range_that_decides_has_causes_with_a_command(self) -> None:
        for each in shipped_values():
            found = causes_of(each.link, each.path)
            assert found, each
            assert all(cause.check and cause.look_for for cause in found)

    def test_causes_fit_the_link_and_the_path(self) -> None:
        def ids(link: str, path: str) -> set[str]:
            return {cause.id for cause in causes_of(link, path)}

        host = ids("PCIe 5 x16", "H2D")
        assert {"low-state", "wrong-slot", "numa", "iommu", "power-state", "virtual-machine"} < host
        assert "acs" not in host
        assert ids("8 × PCIe 5 x16", "host-to-all") == host
        assert {"acs", "resizable-bar"} < ids("PCIe 4 x16", "P2P")
        assert "acs" not in ids("NVLink 4 x18", "P2P")
        assert "nvlink-down" in ids("NVLink 4 x18", "P2P")
        assert "numa" not in ids("memory", "local copy")

    def test_an_example_has_a_source_and_a_cause_has_one_id(self) -> None:
        causes = shipped_causes()
        assert len({cause.id for cause in causes}) == len(causes)
        for cause in causes:
            assert bool(cause.example) == bool(cause.source)

    def test_examples_are_cases_that_were_reported_as_a_problem(self) -> None:
        text = (shared("reference") / "reference-values.csv").read_text()
        problems = [line for line in text.splitlines() if "reported as a problem" in line]
        for cause in shipped_causes():
            assert not cause.source or any(line.startswith(cause.source) for line in problems)


@cache
def kept_series(name: str) -> tuple[Machine, tuple[Series, ...]]:
    """The machine and the series of a kept profile."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        file = unpacked(RESULTS / name, Path(folder) / "kept.wwp")
        with Profile.open(file) as profile:
            return profile.machine, tuple(profile.series())


def slower(each: Series, factor: float) -> Series:
    """The series with all times longer by a factor."""

    def visit(known: Visit) -> Visit:
        taken = known.samples
        return replace(
            known,
            samples=replace(
                taken,
                span=tuple(time * factor for time in taken.span),
                host=tuple(time * factor for time in taken.host),
            ),
        )

    return replace(each, visits=tuple(map(visit, each.visits)))


def kept_curves(name: str, pattern: str = "", factor: float = 1.0) -> tuple[Machine, list[Curve]]:
    """The curves of a kept profile; those whose text begins with ``pattern`` take longer."""
    from waywiser.curves.classes import representatives
    from waywiser.curves.overview import overview_of

    machine, known = kept_series(name)
    changed = [
        slower(each, factor) if pattern and each.workload.curve.startswith(pattern) else each
        for each in known
    ]
    first = representatives([each.workload for each in changed], machine)
    seen = overview_of(machine, SeriesFrame.of(changed).series_blocks(), first=first)
    return machine, [*curves_of(seen.series)]


SURVEYS = "2026-11-23-surveys"


class TestKeptProfiles:
    @pytest.mark.parametrize("name", sorted(p.name for p in (RESULTS / SURVEYS).glob("*.wwp.xz")))
    def test_none_of_the_h100_and_h200_is_below_by_figures_of_others(
        self, name: str, tmp_path: Path
    ) -> None:
        with Profile.open(unpacked(RESULTS / SURVEYS / name, tmp_path / "kept.wwp")) as profile:
            curves = curves_of(overview(profile, ["copy-engine"]).series)
            for values in (OTHERS, shipped_values()):
                found = normal_paths(profile.machine, curves, values)
                assert any(path.verdict == "normal" for path in found)
                assert not [path for path in found if path.verdict == "below"]

    @pytest.mark.parametrize("values", [OTHERS, shipped_values()], ids=["others", "all"])
    @pytest.mark.parametrize(
        ("name", "pattern"),
        [
            ("2026-11-20-h200/one-gpu/standard.wwp.xz", "pinned@numa:0 -> device@gpu:0 by copy"),
            ("2026-11-20-h200/two-gpus/standard.wwp.xz", "pinned@numa:0 -> device@gpu:1 by copy"),
            ("2026-11-20-h200/two-gpus/standard.wwp.xz", "device@gpu:0 -> pinned@numa:0 by copy"),
        ],
    )
    def test_ten_percent_less_on_pcie_5_is_below(
        self, name: str, pattern: str, values: tuple[NormalValue, ...]
    ) -> None:
        machine, curves = kept_curves(name, pattern, 1 / 0.9)
        found = normal_paths(machine, curves, values)
        below = [path for path in found if path.verdict == "below"]
        assert [path.workload.startswith(pattern) for path in below] == [True]
        (finding,) = below_findings(machine, below)
        assert finding.effect is not None
        assert 0.05 < finding.effect < 0.11

    def test_rows_of_a_profile_are_in_the_form_and_make_it_normal(self) -> None:
        machine, curves = kept_curves("2026-11-20-h200/two-gpus/standard.wwp.xz")
        rows = values_of(machine, curves, "https://example.org/h200", "2026-11")
        again = read_values(values_text(rows), "rows.csv")
        assert {value.path for value in again} >= {"H2D", "D2H", "P2P", "local copy"}
        for value, row in zip(again, rows, strict=True):
            assert value.gb_per_s == pytest.approx(row.gb_per_s, rel=1e-3)
            assert replace(value, gb_per_s=0.0) == replace(row, gb_per_s=0.0)
        three = [replace(v, source=f"https://example.org/{n}") for v in again for n in range(3)]
        found = normal_paths(machine, curves, three)
        in_rows = {value.path for value in again}
        decided = [path for path in found if path.path in in_rows and path.verdict]
        assert {path.verdict for path in decided} == {"normal"}
        assert len(decided) >= 0.8 * len(in_rows), "few have no interval"

    @pytest.mark.parametrize(
        "source", sorted({v.source for v in shipped_values() if v.source.startswith(OURS)})
    )
    def test_values_of_this_project_are_those_of_a_kept_profile(
        self, source: str, tmp_path: Path
    ) -> None:
        packed = RESULTS.parent.parent / source.removeprefix(OURS)
        with Profile.open(unpacked(packed, tmp_path / "kept.wwp")) as profile:
            curves = curves_of(overview(profile, ["copy-engine"]).series)
            known = {
                (point.workload.copies[0].bytes, point.rate / 1e9)
                for each in curves
                for point in each.measured
                if point.rate
            }
        for value in shipped_values():
            if value.source == source:
                rates = [rate for size, rate in known if size == value.bytes]
                assert any(math.isclose(value.gb_per_s, each, rel_tol=1e-3) for each in rates)


def test_no_number_of_a_path_is_lost() -> None:
    found = one(49.81)
    assert math.isclose(found.gb_per_s, 49.81, rel_tol=0.02)
    assert found.name == "H2D, numa:0 -> gpu:0"
    assert found.figure.endswith("GB/s at 512 MiB")
    peer = paths(390, text=PEER)
    assert [path.name for path in peer] == ["P2P, gpu:0 -> gpu:1"]
    pageable = paths(9, text=PAGEABLE)
    assert [path.path for path in pageable] == ["pageable H2D"]
