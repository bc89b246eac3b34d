"""The file of a trace: what is written is read again, and no damage goes unseen or has a
traceback."""

from __future__ import annotations

import json
import random
from pathlib import Path

import msgspec
import pytest

from analysis.trace import recorded_traces as recorded
from waywiser.profile.errors import DamagedProfile, MissingProfile, NotWritable
from waywiser.profile.trace_file import (
    TraceError,
    is_trace,
    read_processes,
    read_trace,
    write_trace,
)
from waywiser.words import WaywiserError


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    made = recorded.training(profile="node.wwp")
    write_trace(made, tmp_path / "a.wwt")
    assert read_trace(tmp_path / "a.wwt") == made
    assert is_trace(tmp_path / "a.wwt") and not is_trace(tmp_path / "none")
    write_trace(recorded.trace(), tmp_path / "a.wwt")
    assert read_trace(tmp_path / "a.wwt").processes == (), "a former trace is replaced"
    assert [file.name for file in tmp_path.iterdir()] == ["a.wwt"]


def test_processes_are_read_in_the_order_of_their_starts(tmp_path: Path) -> None:
    for pid, start in ((3, 30), (1, 10), (2, 20)):
        process = recorded.process([recorded.python_site(1)], [recorded.group(0)], pid=pid)
        facts = msgspec.structs.replace(process.process, start_ns=start)
        process = msgspec.structs.replace(process, process=facts)
        (tmp_path / f"trace-{pid}-{start}.json").write_bytes(msgspec.json.encode(process))
    (tmp_path / "trace-9-1.json").write_text("{")
    found, unreadable = read_processes(tmp_path)
    assert [each.process.pid for each in found] == [1, 2, 3]
    assert len(unreadable) == 1 and "trace-9-1.json" in unreadable[0]


def test_a_later_tracer_may_write_more(tmp_path: Path) -> None:
    process = msgspec.to_builtins(recorded.process([recorded.python_site(1)], [recorded.group(0)]))
    process["groups"][0]["colour"] = "red"
    process["weather"] = {"rain": True}
    (tmp_path / "trace-1-1.json").write_text(json.dumps(process))
    found, unreadable = read_processes(tmp_path)
    assert len(found) == 1 and not unreadable


def test_another_version_says_so(tmp_path: Path) -> None:
    file = tmp_path / "a.wwt"
    document = msgspec.to_builtins(recorded.training())
    file.write_text(json.dumps({**document, "version": 99}))
    with pytest.raises(TraceError, match="version 99"):
        read_trace(file)


@pytest.mark.parametrize("change", [
    {"copies": 0}, {"site": 99}, {"site": -1}, {"copies": -1}, {"device_ns": -5},
    {"copies": "many"},
])  # fmt: skip
def test_impossible_values_are_damage(tmp_path: Path, change: dict[str, object]) -> None:
    document = msgspec.to_builtins(recorded.training())
    document["processes"][0]["groups"][1].update(change)
    file = tmp_path / "a.wwt"
    file.write_text(json.dumps(document))
    with pytest.raises(DamagedProfile):
        read_trace(file)


def test_damaged_bytes_have_one_line(tmp_path: Path) -> None:
    file = tmp_path / "a.wwt"
    write_trace(recorded.training(), file)
    whole = file.read_bytes()
    rng = random.Random(5)
    for _ in range(300):
        data = bytearray(whole)
        for _ in range(rng.randint(1, 6)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        file.write_bytes(bytes(data[: rng.choice((len(data), rng.randrange(len(data)))) or 1]))
        try:
            read_trace(file)
        except WaywiserError as error:
            assert "\n" not in str(error)
    for other in (b"", b"{}", b"[]", b"SQLite format 3\0", b'{"format": "other"}'):
        file.write_bytes(other)
        with pytest.raises(WaywiserError):
            read_trace(file)
    with pytest.raises(MissingProfile):
        read_trace(tmp_path / "none")


def test_a_folder_that_takes_no_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(NotWritable, match="none"):
        write_trace(recorded.trace(), tmp_path / "none" / "a.wwt")
