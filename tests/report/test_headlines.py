"""The headline table."""

from __future__ import annotations

import re
from functools import cache

import msgspec
import pytest

import profiles
from analysis.questions.subjects import curve, postal, subject
from machine.captured import machine as captured
from report import machines
from tree import ROOT
from waywiser.curves.figure_range import range_of
from waywiser.curves.headlines import headline_rows
from waywiser.machine.machine import Cache, Machine, NumaNode
from waywiser.render.chapters.headlines import headlines, tiles
from waywiser.render.entry import Entry, entry
from waywiser.render.parts import Sheet, SheetCell, SheetRow
from waywiser.render.views.headline import COLUMNS
from waywiser.words.number_format import format_rate

HOST = "pageable@numa:0 -> pageable@numa:0 by cpu"


@cache
def result(name: str, key: str = "", sizes: tuple[int, ...] = machines.SIZES) -> Entry:
    found = machines.subject(machines.eight_gpus(name), blocks=1, count=12, sizes=sizes)
    return entry(found, name=name, key=key)


def said(cell: SheetCell) -> str:
    return f"{cell.text} {cell.note}".replace("\N{NO-BREAK SPACE}", " ").strip()


def cells(*entries: Entry) -> dict[str, dict[str, str]]:
    """Group -> column -> text."""
    (sheet,) = headlines(entries).blocks
    assert isinstance(sheet, Sheet)
    return {
        row.cells[0].text.partition(",")[0]: dict(
            zip(sheet.names, map(said, row.cells), strict=True)
        )
        for row in sheet.rows
    }


def beside(*entries: Entry) -> dict[str, SheetRow]:
    (sheet,) = headlines(entries).blocks
    assert isinstance(sheet, Sheet)
    return {row.cells[0].text: row for row in sheet.rows}


def test_each_row_has_the_call_that_achieves_it() -> None:
    found = cells(result("a"))
    assert found["H2D"]["achieved by"] == "cudaMemcpyAsync, pinned host memory"
    assert found["pageable H2D"]["achieved by"] == "cudaMemcpyAsync, pageable host memory"
    assert found["P2P"]["achieved by"] == "cudaMemcpyPeerAsync"
    both = found["bidirectional"]["achieved by"]
    assert both == "cudaMemcpyAsync in both directions at once, pinned host memory"


def test_latency_stands_beside_the_time_that_a_program_sees() -> None:
    row = cells(result("a"))["H2D"]
    assert " µs ±" in row["latency"] and row["call to completion"].endswith("µs")


def test_equivalent_paths_are_counted_with_the_slowest_and_the_fastest() -> None:
    rows = cells(result("a"))
    assert rows["P2P"]["all such paths, GB/s"].startswith("56: ")
    slow = "device@gpu:0 -> device@gpu:1 by copy-engine"
    fast = "device@gpu:1 -> device@gpu:0 by copy-engine"
    found = cells(
        entry(
            subject(
                curve(slow, postal(2e-6, 1e11), (8, 2**26, 2**30)),
                curve(fast, postal(2e-6, 4e11), (8, 2**26)),
            ),
            name="a",
        )
    )
    row = found["P2P"]
    assert row["size"] == "1 GiB" and float(row["GB/s"].split()[0]) == pytest.approx(100, 0.01)
    low, high = row["all such paths, GB/s"].removeprefix("2: ").split(" at ")[0].split("–")
    assert float(low) == pytest.approx(100, 0.02) and float(high) == pytest.approx(400, 0.02)
    assert row["all such paths, GB/s"].endswith("at 64 MiB"), "at a size that both have"


def test_machines_are_compared_if_path_and_size_are_the_same() -> None:
    large, small = result("a", "a-"), result("b", "b-", (2**21, 2**24))
    assert "%)" in beside(large, result("b", "b-"))["P2P, GB/s"].cells[2].note
    assert "(at 16 MiB)" in beside(large, small)["P2P, GB/s"].cells[2].note


def test_host_memory_is_that_of_the_default_threads_and_says_how_many() -> None:
    machine = msgspec.structs.replace(profiles.machine(), caches=(Cache(3, 2**28, (0,)),))
    memory = curve(HOST, postal(1e-7, 12e9), (2**26, 2**29))
    cached = curve(f"{HOST}[threads=8]", postal(1e-7, 290e9), (2**26,))
    row = cells(entry(subject(memory, cached, machine=machine), name="a"))["host copy"]
    assert row["GB/s"].startswith("12") and row["size"] == "512 MiB"
    assert row["achieved by"] == "memcpy in 1 thread, pageable host memory"
    alone = curve(HOST, postal(1e-7, 290e9), (2**20, 2**26))
    row = cells(entry(subject(alone, machine=machine), name="a"))["host copy"]
    assert row["size"] == "64 MiB (cached)"


def test_a_copy_in_the_cache_of_a_gpu_is_no_headline() -> None:
    """Two sides of 16 MiB fit into the cache of a GPU; of 256 MiB they do not."""
    local = "device@gpu:0 -> device@gpu:0 by copy-engine"
    within = curve(local, lambda size: size / (3e12 if size < 2**26 else 2e12), (2**24, 2**28))
    row = cells(entry(subject(within), name="a"))["local copy"]
    assert row["size"] == "256 MiB" and float(row["GB/s"].split()[0]) < 2100


def test_a_file_has_a_row_of_its_own() -> None:
    read = "file@file:{} -> pageable@numa:0 by direct-io"
    curves = [curve(read.format(name), postal(1e-4, 2e9), (2**20, 2**26)) for name in ("a", "b")]
    other = curve("file@file:a -> pageable@numa:0 by direct-io[depth=1]", postal(1e-4, 1e9))
    found = headline_rows(profiles.machine(), entry(subject(*curves, other), name="a").curves)
    assert [(row.group, row.call) for row in found] == [
        ("file read", f"read(2) with O_DIRECT, file:{name} to pageable host memory")
        for name in ("a", "b")
    ]


def test_without_headline_paths_the_fastest_of_each_family_is_shown() -> None:
    """Compared at a size that most of the candidates have."""
    paths = "device@gpu:0 -> device@gpu:1 by {}"
    slow = curve(paths.format("one-tool"), postal(1e-6, 1e11), (8, 2**20, 2**26, 2**30))
    fast = curve(paths.format("other-tool"), postal(1e-6, 2e11), (8, 2**20, 2**26))
    few = curve(paths.format("sm"), postal(1e-9, 9e11), (8, 64))
    (row,) = headline_rows(profiles.machine(), entry(subject(slow, fast, few), name="a").curves)
    assert (row.group, row.first.text) == ("P2P", paths.format("other-tool"))


def test_an_exchange_names_the_setting_that_makes_it_faster() -> None:
    path = "device@rank:0-3 -> device@rank:0-3 by alltoall{}"
    default = curve(path.format(""), postal(1e-5, 7e9), (2**20, 2**21))
    staged = curve(path.format("[strategy=duplicate-pointer]"), postal(1e-5, 2e10), (2**20, 2**25))
    found = entry(subject(default, staged), name="a").curves
    (row,) = headline_rows(profiles.machine(), found)
    assert row.first.text == path.format("")
    assert "GB/s at 32 MiB by strategy=duplicate-pointer" in row.call
    (alone,) = headline_rows(profiles.machine(), entry(subject(default), name="a").curves)
    assert " at " not in alone.call


SECOND = "pinned@numa:0 -> device@gpu:1 by copy-engine"


def test_a_few_bytes_are_a_latency_and_no_bandwidth() -> None:
    small = [curve(path, postal(5e-6, 55e9), (8, 4096)) for path in (profiles.H2D, SECOND)]
    found = entry(subject(*small), name="a")
    (row,) = headline_rows(found.subject.machine, found.curves)
    assert (row.large, row.at, row.paths, row.paths_at) == (None, "", (), "")
    columns = cells(found)["H2D"]
    assert columns["latency"].startswith("5.0") and not {"GB/s", "of the bound"} & set(columns)
    (sheet,) = headlines([found]).blocks
    assert isinstance(sheet, Sheet) and "GB/s" not in sheet.caption


def test_a_path_without_a_large_size_does_not_reduce_the_others() -> None:
    paths = [f"pinned@numa:0 -> device@gpu:{gpu} by copy-engine" for gpu in range(3)]
    sizes = ((8, 512, 4096), (8, 2**26), (8, 2**26))
    large = [curve(path, postal(5e-6, 55e9), each) for path, each in zip(paths, sizes, strict=True)]
    machine = captured("h200-vm-8gpu")
    (row,) = headline_rows(machine, entry(subject(*large, machine=machine), name="a").curves)
    assert row.first.text == paths[1] and row.at == row.paths_at == "64 MiB"
    assert {line.curve for line in row.paths} == set(paths[1:])
    (row,) = headline_rows(machine, entry(subject(*large[:2], machine=machine), name="a").curves)
    assert row.large is not None and row.paths == ()


def test_a_common_size_that_a_cache_holds_is_marked() -> None:
    local = "device@gpu:{0} -> device@gpu:{0} by copy-engine"
    first = curve(local.format(0), postal(2e-6, 2e12), (8, 2**20, 2**30))
    second = curve(local.format(1), postal(2e-6, 4e12), (8, 2**20))
    row = cells(entry(subject(first, second), name="a"))["local copy"]
    assert row["size"] == "1 GiB"
    assert row["all such paths, GB/s"].endswith("at 1 MiB (cached)")


def test_all_such_paths_have_the_digits_of_the_command_line() -> None:
    fast = curve(profiles.H2D, postal(5e-6, 38.123e9), (8, 2**26), noise=1e-5, between=1e-5)
    slow = curve(SECOND, postal(5e-6, 31.2e9), (8, 2**26), noise=0.02, between=0.02)
    found = entry(subject(fast, slow), name="a")
    (row,) = headline_rows(found.subject.machine, found.curves)
    ends = range_of(row.paths, lambda point: point.rate, format_rate)
    assert cells(found)["H2D"]["all such paths, GB/s"] == f"2: {ends} at 64 MiB"


@pytest.mark.parametrize(("rate", "is_shown"), [(40e9, True), (10.5e9, False), (5e9, False)])
def test_a_copy_of_the_transfer_library_has_a_row_if_it_is_faster(
    rate: float, is_shown: bool
) -> None:
    pageable = "pageable@numa:0 -> device@gpu:0 by"
    plain = curve(f"{pageable} copy-engine", postal(6e-6, 10e9))
    library = curve(f"{pageable} staged[threads=8]", postal(20e-6, rate))
    made = entry(subject(plain, library))
    rows = headline_rows(made.subject.machine, made.curves, library=True)
    calls = [row.call for row in rows if row.group == "pageable H2D"]
    expected = ["cudaMemcpyAsync, pageable host memory"]
    if is_shown:
        expected.append("waywiser.transfer.copy in 8 threads, pageable host memory")
    assert calls == expected
    assert len(headline_rows(made.subject.machine, made.curves)) == 1


def test_a_copy_over_relays_has_no_row() -> None:
    """It is fast only if other GPUs are idle."""
    pinned = "pinned@numa:0 -> device@gpu:0 by"
    plain = curve(f"{pinned} copy-engine", postal(6e-6, 50e9))
    relay = curve(f"{pinned} relay", postal(20e-6, 100e9))
    made = entry(subject(plain, relay))
    assert len(headline_rows(made.subject.machine, made.curves, library=True)) == 1


def test_the_headline_stands_at_the_size_that_several_processes_measured() -> None:
    """One process measured 1 GiB, and was disturbed."""
    line = postal(2e-6, 55e9)
    repeated = curve(profiles.H2D, line, (8, 2**20, 2**26), blocks=4)
    once = curve(profiles.H2D, postal(2e-6, 40e9), (2**30,), blocks=1)
    seen = subject([*repeated, *once])
    (row,) = headline_rows(seen.machine, seen.curves)
    assert row.large is not None and row.large.bytes == 2**26
    assert row.large.rate == pytest.approx(55e9, rel=0.02)
    alone = subject(curve(profiles.H2D, line, (8, 2**20, 2**30), blocks=1))
    (row,) = headline_rows(alone.machine, alone.curves)
    assert row.large is not None and row.large.bytes == 2**30  # no size is repeated


GLOSSARY = ROOT / "docs" / "glossary.md"


@pytest.mark.parametrize(
    "word",
    [
        *(column.name for column in COLUMNS if column.name not in ("path", "GB/s", "size")),
        *(
            "visit",
            "layout",
            "preset",
            "setting",
            "proc.",
            "without time",
            "not needed",
            "headline",
        ),
    ],
)
def test_words_that_are_printed_everywhere_are_in_the_glossary(word: str) -> None:
    known = GLOSSARY.read_text().casefold()
    terms = {"of the bound": "bound", "achieved by": "method", "all such paths, GB/s": "equivalent"}
    assert re.search(rf"^\| [^|]*{re.escape(terms.get(word, word))}", known, re.MULTILINE), word


def host(nodes: int, cpus: int) -> Machine:
    """A machine without GPUs."""
    numa = [
        NumaNode(n, tuple(range(n * cpus, n * cpus + cpus)), 2**36, package=n) for n in range(nodes)
    ]
    return msgspec.structs.replace(profiles.machine(), gpus=(), numa=tuple(numa))


def test_all_cores_come_before_one_thread_on_a_machine_without_gpus() -> None:
    across = "pageable@numa:0 -> pageable@numa:1 by cpu[threads=8]"
    curves = [
        curve(HOST, postal(1e-7, 12e9)),
        curve(f"{HOST}[threads=3]", postal(1e-7, 30e9)),
        curve(f"{HOST}[threads=8]", postal(1e-6, 90e9)),
        curve(f"{HOST}[stores=streaming,threads=8]", postal(1e-6, 95e9)),
        curve(across, postal(1e-6, 40e9)),
    ]
    found = entry(subject(*curves, machine=host(2, 8)), name="a")
    rows = headline_rows(found.subject.machine, found.curves)
    assert [(row.group, row.first.text) for row in rows] == [
        ("host copy, all cores", f"{HOST}[threads=8]"),
        ("between nodes, all cores", across),
        ("host copy", HOST),
    ]
    assert rows[0].call == "memcpy in 8 threads, pageable host memory"
    assert next(tile.name for tile in tiles(found)) == "host copy, all cores"


@pytest.mark.parametrize(("nodes", "cpus"), [(1, 16), (2, 12)])
def test_some_of_the_cores_are_not_all(nodes: int, cpus: int) -> None:
    found = entry(
        subject(
            curve(HOST, postal(1e-7, 12e9)),
            curve(f"{HOST}[threads=8]", postal(1e-6, 90e9)),
            machine=host(nodes, cpus),
        ),
        name="a",
    )
    rows = headline_rows(found.subject.machine, found.curves)
    assert [row.group for row in rows] == ["host copy"]


def test_a_machine_with_gpus_has_no_row_of_all_cores() -> None:
    made = entry(subject(curve(f"{HOST}[threads=8]", postal(1e-6, 90e9))), name="a")
    assert made.subject.machine.gpus
    groups = [row.group for row in headline_rows(made.subject.machine, made.curves)]
    assert "host copy, all cores" not in groups
