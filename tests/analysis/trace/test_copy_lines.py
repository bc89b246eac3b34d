"""Copies by line: what is merged, how places and paths are named."""

from __future__ import annotations

import msgspec
import pytest

from analysis.trace import recorded_traces as recorded
from waywiser.analysis.trace.copy_lines import UNKNOWN_PLACE, copy_lines
from waywiser.profile.trace_file import Frame, MemorySide, Site


def test_a_line_has_the_sums_of_its_groups_in_all_processes() -> None:
    site = recorded.python_site(12)
    one = recorded.process([site], [recorded.group(0, copies=3, seconds=0.1)], pid=1)
    other = recorded.process([recorded.python_site(99), site],
                             [recorded.group(1, copies=5, seconds=0.2)], pid=2)  # fmt: skip
    (line,) = copy_lines(recorded.trace(one, other))
    assert (line.place, line.copies, line.processes) == ("train.py:12", 8, 2)
    assert line.seconds == pytest.approx(0.3) and line.bytes == 8 * 64 * recorded.MIB


def test_sizes_directions_memories_and_gpus_are_lines_of_their_own() -> None:
    site = recorded.python_site(12)
    groups = [
        recorded.group(0),
        recorded.group(0, size=4096),
        recorded.group(0, "D2H"),
        recorded.group(0, host="pinned"),
        recorded.group(0, destination=MemorySide("device", 1)),
    ]
    lines = copy_lines(recorded.trace(recorded.process([site], groups)))
    assert len(lines) == 5
    assert {line.path for line in lines} == {
        "H2D, pageable -> gpu:0", "D2H, gpu:0 -> pageable", "H2D, pinned -> gpu:0",
        "H2D, pageable -> gpu:1",
    }  # fmt: skip


def test_the_line_with_the_most_exposed_time_is_first() -> None:
    sites = [recorded.python_site(line) for line in (1, 2, 3)]
    groups = [
        recorded.group(0, seconds=0.1),
        recorded.group(1, seconds=0.3),
        recorded.group(2, seconds=0.9, exposed_ns=0),
    ]
    lines = copy_lines(recorded.trace(recorded.process(sites, groups)))
    assert [line.place for line in lines] == ["train.py:2", "train.py:1", "train.py:3"]


def test_callers_are_lines_of_their_own_with_the_whole_chain() -> None:
    sites = [recorded.python_site(12, 40), recorded.python_site(12, 50)]
    trace = recorded.trace(recorded.process(sites, [recorded.group(0), recorded.group(1)]))
    assert len(copy_lines(trace)) == 1
    chains = {line.chain for line in copy_lines(trace, whole_chain=True)}
    assert chains == {"train.py:12 < train.py:40", "train.py:12 < train.py:50"}


def test_files_are_named_from_the_folder_of_all() -> None:
    sites = [
        recorded.python_site(3, file="/home/user/project/train.py"),
        recorded.python_site(4, file="/home/user/project/data/load.py"),
        recorded.native_site("read_batch"),
        recorded.native_site(None),
        Site((Frame("python", file="<string>", line=1),)),
        Site(),
    ]
    groups = [recorded.group(n) for n in range(len(sites))]
    lines = copy_lines(recorded.trace(recorded.process(sites, groups)))
    assert {line.place for line in lines} == {
        "train.py:3", "data/load.py:4", "read_batch (libloader.so)", "libloader.so+0x1a2b",
        "<string>:1", UNKNOWN_PLACE,
    }  # fmt: skip


@pytest.mark.parametrize(("nodes", "end"), [
    ({"1": 90, "0": 10}, "pageable@numa:1"),
    ({"1": 50, "0": 50}, "pageable"),
    ({}, "pageable"),
])  # fmt: skip
def test_memory_has_the_node_of_most_pages(nodes: dict[str, int], end: str) -> None:
    group = recorded.group(0, nodes=nodes, sampled_pages=100)
    (line,) = copy_lines(recorded.trace(recorded.process([recorded.python_site(1)], [group])))
    assert line.source.text == end and line.destination.text == "gpu:0"
    assert line.new_pages == 0.0


def test_new_pages_are_said_if_most_are() -> None:
    group = recorded.group(0, "D2H", new_pages=70, sampled_pages=100)
    (line,) = copy_lines(recorded.trace(recorded.process([recorded.python_site(1)], [group])))
    assert line.path == "D2H, gpu:0 -> pageable, new pages"
    group = msgspec.structs.replace(group, new_pages=0, sampled_pages=0)
    (line,) = copy_lines(recorded.trace(recorded.process([recorded.python_site(1)], [group])))
    assert line.new_pages is None and not line.has_new_pages


def test_small_copies_take_the_time_in_which_they_are_waited_for() -> None:
    small = recorded.group(0, copies=1000, size=64, seconds=0.01, call_ns=100_000_000,
                           exposed_ns=10_000_000, lost_ns=90_000_000)  # fmt: skip
    (line,) = copy_lines(recorded.trace(recorded.process([recorded.python_site(1)], [small])))
    assert line.time_seconds == line.exposed_seconds == pytest.approx(0.09)
    older = msgspec.structs.replace(small, lost_ns=None)
    (line,) = copy_lines(recorded.trace(recorded.process([recorded.python_site(1)], [older])))
    assert line.time_seconds == line.exposed_seconds == pytest.approx(0.01)


@pytest.mark.parametrize(("asynchronous", "waited", "is_waited_for"), [
    (0, 0, True), (80, 0, False), (80, 80, True), (80, 10, False), (20, 0, True),
])  # fmt: skip
def test_who_waits_is_known(asynchronous: int, waited: int, is_waited_for: bool) -> None:
    for host in ("pinned", "pageable"):  # a call for pageable memory moves it itself
        group = recorded.group(0, host=host, asynchronous=asynchronous, waited=waited)
        (line,) = copy_lines(recorded.trace(recorded.process([recorded.python_site(1)], [group])))
        assert line.is_waited_for == (is_waited_for or host == "pageable")
