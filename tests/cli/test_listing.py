from __future__ import annotations

import io
import json
import re

import msgspec
import pytest
from rich.console import Console

import profiles
from waywiser.cli.listing import show_list
from waywiser.curves.name import SETS
from waywiser.machine.catalogue import list_executors, list_memories, list_operations
from waywiser.measure import scope
from waywiser.render.terminal import print_parts
from waywiser.render.views.registry import registry_parts


@pytest.fixture(scope="module")
def text() -> str:
    return listed(Console(file=io.StringIO(), width=80))


def listed(console: Console) -> str:
    parts = registry_parts(list_executors(), list_memories(), list_operations())
    print_parts(console, parts)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def entry(text: str, name: str) -> str:
    """From the entry's name to the empty line after."""
    return text.split(f"\n  {name} ")[1].split("\n\n")[0]


def test_everything_registered_is_listed(text: str) -> None:
    for entries in (list_executors(), list_memories(), list_operations()):
        for each in entries:
            assert f"\n  {each.name} " in text


def test_it_ends_with_the_sets(text: str) -> None:
    sets = text.split("\nSets: ")[1].splitlines()
    assert [line.split()[0] for line in sets if line.startswith("  ")] == list(SETS)


def test_an_executor_of_layouts_says_which(text: str) -> None:
    for executor in list_executors():
        moves = f"moves: {', '.join(executor.layouts)}"
        assert (moves in entry(text, executor.name)) == (executor.layouts != ("contiguous",))


def test_operations_stand_with_their_place_and_family(text: str) -> None:
    operations = text.split("\nOperations: ")[1]
    at_node, at_gpu = operations.split("  at gpu:N\n")
    for operation in list_operations():
        if operation.places in (("numa",), ("gpu",)):
            part = at_node if operation.places == ("numa",) else at_gpu
            assert f"\n  {operation.name} " in part
    # one source and one list of sizes for both
    assert entry(operations, "host-register").count("source:") == 1
    assert "host-unregister" in entry(operations, "host-register")


def without_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = msgspec.structs.replace(profiles.machine(), gpus=(), gpu_reason="no driver")
    monkeypatch.setattr(scope, "live_machine", lambda *_: machine)


def test_on_a_host_without_a_gpu_one_line_counts_the_paths(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    without_gpus(monkeypatch)
    show_list(everything=False, json=False)
    *_, last = capsys.readouterr().out.splitlines()
    found = re.fullmatch(
        r"not measured: (\d+) paths that need a GPU: no driver; --list --all lists them", last
    )
    assert found is not None
    show_list(everything=True, json=False)
    listed = capsys.readouterr().out.split("\nnot measured: no driver (")[1]
    assert listed.startswith(f"{found[1]} paths)\n  device@gpu:0 -> ")
    below = listed.split("\nnot measured: ")[0].splitlines()[1:]
    assert len(below) == int(found[1])


def test_with_gpus_nothing_is_counted(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(scope, "live_machine", profiles.machine)
    show_list(everything=False, json=False)
    assert "not measured" not in capsys.readouterr().out
    show_list(everything=True, json=False)
    assert "not measured: neither end is a file (" in capsys.readouterr().out


def test_settings_in_bytes_have_units(text: str) -> None:
    assert "(1MiB, 2MiB, 4MiB, 8MiB)" in entry(text, "staged")
    assert not re.search(r"\b(1048576|4096|65536)\b", text)


@pytest.mark.parametrize("width", [60, 80, 200])
def test_it_fits_a_terminal(width: int) -> None:
    text = listed(Console(file=io.StringIO(), width=width, force_terminal=True, color_system=None))
    assert max(map(len, text.splitlines())) <= width


def test_json_carries_all(capsys: pytest.CaptureFixture[str]) -> None:
    show_list(everything=False, json=True)
    listed = json.loads(capsys.readouterr().out)
    assert {e["name"]: e["layouts"] for e in listed["executors"]} == {
        e.name: list(e.layouts) for e in list_executors()
    }
    assert len(listed["operations"]) == len(list_operations())
    assert len(listed["memories"]) == len(list_memories())
