"""`waywiser.topology`: a machine as tables, from a file, a profile or this machine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

import waywiser
from api import opened
from machine.captured import ALL, CAPTURES, machine
from waywiser.cli import run
from waywiser.machine.capture import CaptureError
from waywiser.notebook.machine_view import MachineView


@pytest.mark.parametrize("name", ALL)
def test_tables_have_what_the_command_line_shows(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = CAPTURES / f"{name}.json"
    view = waywiser.topology(file)
    assert run(["topology", str(file), "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert json.loads(msgspec.json.encode(view.machine)) == shown["machine"]
    assert view.numa["numa"] == [node["index"] for node in shown["machine"]["numa"]]
    assert view.numa["cpus"] == [len(node["cpus"]) for node in shown["machine"]["numa"]]
    assert view.gpus["gpu"] == [gpu["index"] for gpu in shown["machine"]["gpus"]]
    assert view.gpus["pci"] == [gpu["pci"] for gpu in shown["machine"]["gpus"]]
    assert len(view.peaks) == len(shown["peaks"])
    for row, peak in zip(view.peaks, shown["peaks"], strict=True):
        assert (row.source, row.destination, row.made_of) == (
            peak["source"], peak["destination"], peak["made_of"],
        )  # fmt: skip
        rate = peak["bytes_per_second"]
        assert row.gb_per_s == (None if rate is None else rate / 1e9)


def test_links_are_known_absent_or_unknown() -> None:
    h200 = waywiser.topology(CAPTURES / "h200-vm-4gpu.json").gpus[0]
    assert (h200.pcie_generation, h200.pcie_width) == (5, 16)
    assert h200.nvlinks and h200.nvlinks != "none"
    assert h200.peers == "1-3"
    bare = waywiser.topology(CAPTURES / "hwloc-1.xml")
    assert all(row.nvlinks is None and row.pcie_generation is None for row in bare.gpus)


def test_it_shows_its_tables() -> None:
    view = waywiser.topology(CAPTURES / "h200-vm-4gpu.json")
    text, page = repr(view), view._repr_html_()
    assert text.startswith(view.machine.hostname)
    assert "GPUs: 4 rows" in text and text.count("NVIDIA H200") == 5
    assert page.count("<table>") == 3
    none = waywiser.topology(CAPTURES / "no-gpu.json")
    assert f"no GPU ({none.machine.gpu_reason})" in repr(none)
    assert none._repr_html_().count("<table>") == 1


def test_names_of_strangers_are_no_html() -> None:
    name = "<script>alert(1)</script>\x1b[31m"
    view = MachineView(msgspec.structs.replace(machine("h200-vm-4gpu"), hostname=name))
    assert "<script>" not in view._repr_html_()
    assert "\x1b" not in view._repr_html_() + repr(view)


def test_the_machine_of_a_profile(tmp_path: Path) -> None:
    profile = opened.surveyed(tmp_path)
    for view in (waywiser.topology(profile), waywiser.topology(profile.path)):
        assert view.machine == profile.machine
        assert view.gpus["name"] == ["NVIDIA H200"] * 2


def test_this_machine_is_read_without_measuring() -> None:
    pytest.importorskip("waywiser._native")
    view = waywiser.topology()
    assert view.machine.hostname and len(view.numa)


def test_a_file_without_a_machine_is_an_error_of_one_line(tmp_path: Path) -> None:
    for name, text in (("missing.json", None), ("text.json", "no machine")):
        file = tmp_path / name
        if text is not None:
            file.write_text(text)
        with pytest.raises(CaptureError) as error:
            waywiser.topology(file)
        assert str(file) in str(error.value) and "\n" not in str(error.value)
        assert "a profile" in str(error.value)


@pytest.mark.parametrize("wrong", ["", "a\0b", 3])
def test_what_names_no_file_is_an_error_of_one_line(wrong: Any) -> None:
    with pytest.raises(CaptureError, match="is not the name of a file"):
        waywiser.topology(wrong)
