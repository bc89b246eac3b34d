"""A survey of many curves: one line each, by family; and with every size, each path with one table
and a row for each of its settings."""

from __future__ import annotations

import io
import random
from pathlib import Path

import msgspec
import pytest
from rich.console import Console

import profiles
from waywiser.curves.curve import FAMILIES
from waywiser.curves.overview import Overview, overview
from waywiser.profile import Profile, WritableProfile
from waywiser.render.terminal import print_parts
from waywiser.render.views.profile import profile_parts
from waywiser.words import Operation, Place, Workload
from waywiser.words.records import Failure, Visit

KIB, MIB = 2**10, 2**20
SM = "pinned@numa:0 -> device@gpu:0 by sm"
BACK = "device@gpu:1 -> device@gpu:0 by copy-engine"
SETTINGS = {
    f"{profiles.H2D}[api=sync]": 50e9,
    "pinned[pages=huge]@numa:0 -> device@gpu:0 by copy-engine": 56e9,
    f"{profiles.H2D} (flushed)": 40e9,
}
LAYOUTS = {
    f"{profiles.H2D} as list[piece=28672]": (1060864, 11e9),
    f"{SM} as list[piece=28672]": (1060864, 45e9),
    f"{SM} as box[height=64,width=16384]": (MIB, 25e9),
}


def visit(text: str, size: int, rate: float) -> Visit:
    what = Workload.parse(text)
    sized = [msgspec.structs.replace(transfer, bytes=size) for transfer in what.transfers]
    what = msgspec.structs.replace(what, transfers=tuple(sized))
    taken = profiles.samples(random.Random(1), what.bytes / rate, transfers=len(sized))
    return profiles.visit(what, 0, taken)


def visits() -> list[Visit]:
    paths = {profiles.H2D: 55e9, profiles.D2H: 54e9, SM: 50e9, profiles.PEER: 390e9}
    paths |= {"pageable@numa:0 -> device@gpu:0 by copy-engine": 7e9}
    paths |= {"device@gpu:0 -> device@gpu:0 by copy-engine": 2000e9}
    made = [visit(text, n, rate) for text, rate in paths.items() for n in (8, MIB, 64 * MIB)]
    made += [visit(text, n, rate) for text, rate in SETTINGS.items() for n in (64 * KIB, 64 * MIB)]
    made += [visit(text, size, rate) for text, (size, rate) in LAYOUTS.items()]
    made += [visit(BACK, n, 389e9) for n in (8, MIB)]
    made += [visit(f"{profiles.H2D}; {profiles.D2H}", n, 95e9) for n in (MIB, 64 * MIB)]
    skipped = visit(BACK, 64 * MIB, 1.0)
    why = Failure("skipped", f"equal to {profiles.PEER} at 8 B, within 5 %")
    made.append(
        Visit(skipped.workload, 0, "skipped", skipped.started, failure=why),
    )
    for name, place, parameters in (
        ("kernel-launch", Place("gpu", 0), {}),
        ("malloc", Place("numa", 0), {"bytes": "1048576"}),
        ("malloc", Place("numa", 0), {}),
    ):
        call = Workload(operation=Operation(name, place, parameters))
        made.append(profiles.visit(call, 0, profiles.samples(random.Random(1), 2e-6, transfers=0)))
    return made


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("many") / "a.wwp"
    with WritableProfile.create(path, profiles.machine(), {}) as new:
        for each in visits():
            new.commit_visit(each)
    return path


@pytest.fixture(scope="module")
def found(file: Path) -> Overview:
    with Profile.open(file) as profile:
        return overview(profile)


def shown(file: Path, width: int = 100, *, everything: bool = True) -> str:
    stream = io.StringIO()
    terminal = Console(
        file=stream, width=width, highlight=False, force_terminal=True, color_system=None
    )
    with Profile.open(file) as profile:
        print_parts(terminal, profile_parts(profile, overview(profile), everything=everything))
    return "\n".join(line.rstrip() for line in stream.getvalue().splitlines())


def cells(text: str, start: str) -> list[str]:
    (line,) = [line for line in text.splitlines() if line.strip().startswith(start)]
    return [cell.strip() for cell in line.strip().split("  ") if cell.strip()]


def test_families_come_in_their_order(file: Path) -> None:
    heads = [line.split(" ──")[0] for line in shown(file).splitlines() if " ───" in line]
    present = [*FAMILIES[:4], "bidirectional"]
    assert heads == present
    # the table before the first family has groups of headline paths with the same names
    _, head, brief = shown(file, everything=False).partition(f"\n{present[0]} ")
    lines = (head + brief).splitlines()
    lines = [line for line in lines if line.startswith((*present, FAMILIES[-1]))]
    assert [line.split("  ")[0] for line in lines] == [*present, FAMILIES[-1]]


@pytest.mark.parametrize("everything", [True, False])
def test_the_headline_paths_come_first(file: Path, everything: bool) -> None:
    text = shown(file, width=200, everything=everything)
    below = text.split("\nheadline paths ")[1].split("\n\n")[0]
    rows = [row for row in below.splitlines()[1:] if not row.startswith(" ")]  # cells may fold
    assert [row.split("  ")[0].partition(",")[0] for row in rows] == [
        *("H2D", "D2H", "bidirectional", "P2P", "local copy", "pageable H2D")
    ]
    rate, _, bound, _, normal, latency, *_, call = cells(below, "H2D")[1:]
    assert float(rate) == pytest.approx(55, rel=0.01)
    assert (bound, call) == ("87%", "cudaMemcpyAsync, pinned host memory")
    assert latency.endswith(" ns")
    assert normal.startswith("PCIe 5 x16: ")
    call, paths = cells(below, "P2P")[-2:]
    assert paths == "2: 389–390 at 1 MiB"
    assert call == "cudaMemcpyPeerAsync"


def test_headline_paths_precede_the_others_of_their_family(file: Path) -> None:
    family = shown(file, 120, everything=False).split(f"\n{FAMILIES[0]} ")[1]
    starts = [line.split("  ")[0] for line in family.split("\n\n")[0].splitlines()[1:]]
    paths = [start for start in starts if start]
    assert paths == [profiles.H2D, profiles.PAGEABLE, SM]


def test_many_settings_of_a_path_are_one_line_with_their_range(file: Path) -> None:
    lines = shown(file, 120, everything=False).splitlines()
    at = next(n for n, line in enumerate(lines) if line.startswith(f"{profiles.H2D}  "))
    assert cells(lines[at], profiles.H2D)[1] == "54.99"
    assert cells(lines[at + 1], "3 other settings")[1:] == ["40.0–56.0", "63–89%", "64 MiB"]
    # one layout has its own line
    assert cells(lines[at + 2], "as list[piece=28KiB]")[1] == "11.00"
    assert cells("\n".join(lines), SM)[1] == "50.00"


def test_operations_are_one_line_for_all_places_of_a_kind(file: Path) -> None:
    text = shown(file, 120, everything=False)
    table = text.split(f"\n{FAMILIES[-1]} ")[1].split("\n\n")[0]
    assert cells(table, "malloc@numa:0")[1:] == ["±0.1 %", "2.000 µs"]
    assert cells(table, "malloc[bytes=1MiB]@numa:0")[-1].endswith(" µs")


@pytest.mark.parametrize("width", [60, 80, 100])
def test_one_line_per_curve_fits_with_nothing_cut_off(file: Path, width: int) -> None:
    text = shown(file, width, everything=False)
    assert max(map(len, text.splitlines())) <= width
    assert "…" not in text


def test_other_settings_are_rows_below_their_path(file: Path) -> None:
    text = shown(file)
    below = text.split(f"\n{profiles.H2D}\n")[1]
    assert cells(below, "[api=sync]")[:3] == ["[api=sync]", "50.00", "50.00"]
    assert cells(below, "from pinned[pages=huge]")[1] == "55.99"
    assert cells(below, "(flushed)")[1] == "40.00"


def test_layouts_of_two_memories_stand_in_one_table(file: Path) -> None:
    text = shown(file)
    table = text.split("\npinned@numa:0 -> device@gpu:0, laid out")[1].split("\n\n")[0]
    assert table.startswith(" (from call to completion; × share of contiguous by the same")
    for start, size, rate, share in (
        ("contiguous by sm", MIB, 50e9, ""),
        ("list[piece=28KiB] by copy-engine", 1060864, 11e9, "×0.22"),
        ("list[piece=28KiB] by sm", 1060864, 45e9, "×0.91"),
        ("box[height=64,width=16KiB] by sm", MIB, 25e9, "×0.52"),
    ):
        number, _, of_contiguous = cells(table, start)[1].partition(" ")
        # a program has the result 2 µs after the device is done
        gb_per_s = size / (size / rate + 2e-6) / 1e9
        assert (float(number), of_contiguous) == (pytest.approx(gb_per_s, rel=0.005), share)


def test_the_price_of_a_layout_is_in_the_json_form(found: Overview) -> None:
    shares = {line.curve: line.of_contiguous for line in found.series if line.of_contiguous}
    assert set(shares) == set(LAYOUTS)
    assert shares[f"{SM} as list[piece=28672]"] == pytest.approx(0.9, rel=0.01)


def test_equivalent_paths_follow_the_one_that_stands_for_them(file: Path, found: Overview) -> None:
    text = shown(file)
    after = text.split(f"1 path equivalent to {profiles.PEER}\n")[1]
    assert cells(after.split("\n\n")[0], BACK)[-1] == "389.0"
    assert {line.like for line in found.series if line.curve == BACK} == {profiles.PEER}
    assert found.summary.skipped == 1 and found.summary.failed == 0


def test_operations_are_one_table_by_place(file: Path) -> None:
    text = shown(file).split("operations: time per call\n")[1].split("\n\n")[0]
    rows = [line.split()[:3] for line in text.splitlines()]
    assert rows[0] == ["place", "operation", "settings"]
    assert [row[:2] for row in rows[1:]] == [
        ["gpu:0", "kernel-launch"],
        ["numa:0", "malloc"],
        ["numa:0", "malloc"],
    ]
    assert rows[-1][2] == "bytes=1MiB"


def test_it_fits_a_hundred_columns_with_nothing_cut_off(file: Path) -> None:
    text = shown(file)
    assert max(map(len, text.splitlines())) <= 100
    assert "…" not in text


def test_a_large_class_is_reported_by_its_extremes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gpus = tuple(
        msgspec.structs.replace(
            profiles.machine().gpus[0],
            index=n,
            uuid=f"GPU-{n}",
            peers=tuple(p for p in range(4) if p != n),
        )
        for n in range(4)
    )
    machine = msgspec.structs.replace(profiles.machine(), gpus=gpus)
    pairs = [(a, b) for a in range(4) for b in range(4) if a != b]
    with WritableProfile.create(tmp_path / "a.wwp", machine, {}) as new:
        for n, (a, b) in enumerate(pairs):
            path = f"device@gpu:{a} -> device@gpu:{b} by copy-engine"
            for size in (8, MIB) if n else (8, KIB, MIB, 2 * MIB, 4 * MIB, 8 * MIB, 16 * MIB):
                new.commit_visit(visit(path, size, (400 - n) * 1e9))
        for each in visits()[:3]:
            new.commit_visit(each)
    text = shown(tmp_path / "a.wwp")
    table = text.split(f"11 paths equivalent to {profiles.PEER}; the extremes\n")[1]
    rows = [line.strip().split(" by ") for line in table.split("\n\n")[0].splitlines()[1:]]
    assert [row[0] for row in rows] == [
        "device@gpu:0 -> device@gpu:2",
        "device@gpu:3 -> device@gpu:2",
    ]
    assert [row[1].split()[-1] for row in rows] == ["399.0", "389.0"]
    few = shown(tmp_path / "a.wwp", 120, everything=False)
    assert cells(few.split(FAMILIES[3])[1], "device@gpu:3 -> device@gpu:2")[1] == "389.0"
    monkeypatch.setattr("waywiser.render.views.curve_lines.SHORT", 0)
    brief = shown(tmp_path / "a.wwp", 120, everything=False)
    assert cells(brief, "11 equivalent paths")[1:] == ["389–399", "81–83%", "1 MiB"]
    matrix = brief.split("bandwidth in GB/s from row to column")[1].split("\n\n")[0]
    assert cells(matrix.replace("   ", "  "), "gpu:3") == ["gpu:3", "391", "390", "389", "-"]
