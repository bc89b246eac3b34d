from __future__ import annotations

import io
import json
from pathlib import Path

import msgspec
import pytest
from rich.console import Console

from kept import RESULTS, unpacked
from machine.captured import ALL, CAPTURES, machine, shared_file
from waywiser import cli
from waywiser.cli.topology import topology
from waywiser.machine.capture import load_capture
from waywiser.machine.machine import Gpu, Machine, StatedAccess
from waywiser.profile import ExistingFile
from waywiser.render.terminal import print_parts
from waywiser.render.views.machine import machine_parts


def drawn_machine(shown: Machine, width: int) -> str:
    file = io.StringIO()
    console = Console(
        file=file, width=width, highlight=False, force_terminal=True, color_system=None
    )
    print_parts(console, machine_parts(shown))
    return file.getvalue()


def picture(name: str, width: int) -> str:
    return drawn_machine(machine(name), width)


def test_a_capture_may_go_to_standard_output(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    topology(str(CAPTURES / "small-vm.json"), capture="-")
    (tmp_path / "sent.json").write_text(capsys.readouterr().out)
    assert load_capture("sent.json") == load_capture(CAPTURES / "small-vm.json")
    assert [file.name for file in tmp_path.iterdir()] == ["sent.json"]


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("width", [60, 80, 160])
def test_every_machine_fits_its_terminal(name: str, width: int) -> None:
    text = picture(name, width)
    assert max(map(len, text.splitlines())) <= width
    assert "…" not in text  # nothing is cut off
    assert "\x1b" not in text  # no colours outside a terminal
    for node in machine(name).numa:
        assert f"numa:{node.index}" in text
    for gpu in machine(name).gpus:
        assert f"gpu:{gpu.index} " in text and gpu.pci in text


def test_links_peaks_and_peers_are_shown() -> None:
    text = picture("h200-vm-8gpu", 120)
    assert "8 × NVIDIA H200" in text
    assert "PCIe 5 x16: 16 lanes × 32 GT/s × 128/130 / 8 = 63.0 GB/s" in text
    assert "NVLink: 18 lanes × 26.562 GB/s = 478.1 GB/s" in text
    assert "peer access between all pairs of GPUs: over NVLink" in text


def test_clocks_that_a_data_sheet_cannot_show_are_not_zero() -> None:
    text = picture("dgx-1", 120)
    assert "gpu:0-7: clocks at most: SM 1480 MHz, memory 715 MHz" in text


def test_what_is_wrong_with_a_gpu_is_shown() -> None:
    text = picture("two-socket-4gpu", 120)
    assert "gpu:1: held down by thermal slowdown" in text
    assert "gpu:2: in use by 4711 python 2048 MiB" in text
    assert "1 x8      4 x16" in text


def test_an_uneven_peer_matrix_is_drawn() -> None:
    whole = machine("two-socket-4gpu")
    gpus = tuple(
        msgspec.structs.replace(gpu, peers=tuple(p for p in gpu.peers if p != 3))
        for gpu in whole.gpus
    )
    drawn = drawn_machine(msgspec.structs.replace(whole, gpus=gpus), 80)
    assert "N over NVLink, - none" in drawn
    assert "gpu:0  ·  N  N  -" in drawn
    assert "gpu:3  N  N  N  ·" in drawn


def test_what_the_firmware_states_of_a_node_is_shown_below_it() -> None:
    whole = machine("two-socket-4gpu")
    stated = (StatedAccess(1, 12800 * 2.0**20, 80e-9), StatedAccess(0, 0.0, 140e-9))
    nodes = (whole.numa[0], msgspec.structs.replace(whole.numa[1], stated=stated))
    drawn = drawn_machine(msgspec.structs.replace(whole, numa=nodes), 120)
    assert "the firmware states 13.42 GB/s, latency 80.0 ns from its own CPUs" in drawn
    assert "the firmware states latency 140 ns from the CPUs of numa:0" in drawn
    assert drawn.count("the firmware states") == 2


def test_links_that_a_topology_file_leaves_out_are_unknown() -> None:
    whole = machine("two-socket-4gpu")
    gpus = tuple(Gpu(gpu.index, "", gpu.name, gpu.pci) for gpu in whole.gpus)
    without = tuple(msgspec.structs.replace(gpu, nvlinks=(), peers=()) for gpu in whole.gpus)
    every = tuple(range(len(gpus)))
    peers = tuple(msgspec.structs.replace(gpu, peers=every) for gpu in gpus)
    for shown, lanes, between in (
        (gpus, "unknown", "unknown"),
        (peers, "unknown", "over an unknown link"),
        (without, "none", "none"),
    ):
        drawn = drawn_machine(msgspec.structs.replace(whole, gpus=shown), 80).splitlines()
        rows = [line.rstrip() for line in drawn if line.startswith("gpu:") and line[5] == " "]
        assert len(rows) == 4 and all(row.endswith(lanes) for row in rows)
        assert f"peer access between all pairs of GPUs: {between}" in drawn


def test_json_has_the_machine_and_its_peaks(capsys: pytest.CaptureFixture[str]) -> None:
    topology(str(CAPTURES / "h200-vm-8gpu.json"), json=True)
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == 1
    assert len(document["machine"]["gpus"]) == 8
    assert len(document["peaks"]) == 2 * 8 + 8 * 8
    first = document["peaks"][0]
    assert (first["source"], first["destination"]) == ("numa:0", "gpu:0")
    assert first["bytes_per_second"] == pytest.approx(63.015e9, rel=1e-4)


def test_the_machine_of_a_profile_is_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = RESULTS / "2026-11-23-surveys" / "two-h200-check-1.wwp.xz"
    file = str(unpacked(kept, tmp_path / "a.wwp"))
    topology(file)
    assert "gpu:1" in capsys.readouterr().out
    assert cli.run(["topology", file, "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["machine"]["gpus"]) == 2
    assert cli.run(["topology", file, "--capture", "-"]) == 2
    assert "a profile has no capture of its machine" in capsys.readouterr().err
    assert cli.run(["topology", file, "--xml", file]) == 2
    assert cli.run(["topology", str(tmp_path / "none.wwp")]) == 2


def test_a_capture_is_written_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, target = str(CAPTURES / "two-socket-4gpu.json"), str(tmp_path / "sent.json")
    topology(source, capture=target, anonymous=True)
    assert target in capsys.readouterr().out
    assert load_capture(target).system.hostname == "anonymous"
    with pytest.raises(ExistingFile):
        topology(source, capture=target)


def test_sixteen_gpus_fit_eighty_columns(capsys: pytest.CaptureFixture[str]) -> None:
    path = shared_file("nvidiaDGX2.xml")
    topology(str(path))
    text = capsys.readouterr().out
    assert "16 × Tesla V100-SXM3-32GB-H" in text
    assert "gpu:15  0000:e7:00.0" in text
    assert text.count("is unknown") == 1
