"""The figures that one asks for first."""

from __future__ import annotations

import msgspec

import profiles
from analysis.subjects import curve, postal, subject
from report import machines
from waywiser.report.chapters.headlines import headlines
from waywiser.report.entry import Entry, entry
from waywiser.report.parts import Sheet, SheetRow
from waywiser.topology.machine import Cache

HOST = "pageable@numa:0 -> pageable@numa:0 by cpu"


def result(name: str, key: str = "", sizes: tuple[int, ...] = machines.SIZES) -> Entry:
    found = machines.subject(machines.eight_gpus(name), blocks=1, count=6, sizes=sizes)
    return entry(found, name=name, key=key)


def rows(*entries: Entry) -> dict[str, SheetRow]:
    (sheet,) = headlines(entries).blocks
    assert isinstance(sheet, Sheet)
    return {row.cells[0].text.removesuffix(", GB/s"): row for row in sheet.rows}


def test_of_ways_that_are_as_fast_the_plainest_is_reported() -> None:
    """Copies by the engine and by a kernel differ by the noise alone."""
    assert "pinned → device, copy-engine" in rows(result("a"))["host to device (H2D)"].cells[3].text


def test_what_a_program_waits_stands_beside_the_time_of_one_in_a_row() -> None:
    row = rows(result("a"))["host to device (H2D)"]
    assert row.cells[4].text.endswith("µs") and row.cells[5].text.endswith("µs")


def test_machines_are_compared_where_they_went_the_same_way_at_the_same_size() -> None:
    large, small = result("a", "a-"), result("b", "b-", (2**21, 2**24))
    assert "%)" in rows(large, result("b", "b-"))["device to device (P2P)"].cells[2].note
    assert "(another path)" in rows(large, small)["device to device (P2P)"].cells[2].note


def test_what_caches_hold_is_not_what_host_memory_carries() -> None:
    machine = msgspec.structs.replace(profiles.machine(), caches=(Cache(3, 2**28, (0,)),))
    memory = curve(HOST, postal(1e-7, 12e9), (2**26, 2**29))
    cached = curve(f"{HOST}[threads=8]", postal(1e-7, 290e9), (2**26,))
    found = rows(entry(subject(memory, cached, machine=machine), name="a"))
    assert found["host to host (H2H), one NUMA node"].cells[1].text.startswith("12")
    alone = rows(entry(subject(cached, machine=machine), name="a"))
    assert alone["host to host (H2H), one NUMA node"].cells[1].text.startswith("2")


def test_what_was_measured_at_small_sizes_alone_is_reported_at_these() -> None:
    found = rows(result("a", sizes=(2**18, 2**20)))
    assert found["device to device (P2P)"].cells[3].text.endswith("1 MiB")
    assert float(found["device to device (P2P)"].cells[1].text) > 10
