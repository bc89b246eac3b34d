"""A planted lost GPU: the first line of each command names it by its address. A planted container
has a note on the GPUs that it was not given, and no error."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from analysis.comparison import nodes
from machine.captured import CAPTURES, machine
from machine.fake_system import system_of
from scripted_host import scripted_host
from waywiser import cli
from waywiser.fitness import diagnosis
from waywiser.fitness.situation import Situation
from waywiser.machine.machine import Machine, UnusableGpu
from waywiser.profile import Profile

Output = pytest.CaptureFixture[str]

ADDRESS = "0000:b1:00.0"
LOST = f"1 NVIDIA GPU does not answer: {ADDRESS} (GPU is lost); the others are gpu:0-2"
NOT_GIVEN = "6 NVIDIA GPUs are not given to this process"


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Machine], None]]:
    with scripted_host(monkeypatch) as become:
        yield become


def idle(name: str) -> Machine:
    """A captured machine whose GPUs nobody uses."""
    found = machine(name)
    replace = msgspec.structs.replace
    return replace(found, gpus=tuple(replace(gpu, processes=()) for gpu in found.gpus))


def check(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    """Runs the doctor on a captured machine."""
    situation = Situation(machine(name), system_of(folder, {}), "cuda", "12.0")
    monkeypatch.setattr(diagnosis, "live_situation", lambda: situation)
    return cli.run(["doctor", "--severity", "error"])


def test_the_first_line_of_topology_names_it(capsys: Output) -> None:
    assert cli.run(["topology", str(CAPTURES / "lost-gpu.json")]) == 0
    assert capsys.readouterr().out.splitlines()[0] == f"error: {LOST}"
    assert cli.run(["topology", str(CAPTURES / "lost-gpu.json"), "--json"]) == 0
    (gpu,) = json.loads(capsys.readouterr().out)["machine"]["unusable_gpus"]
    assert gpu == {"pci": ADDRESS, "state": "lost", "reason": "GPU is lost"}


def test_the_first_line_of_doctor_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    assert check("lost-gpu", tmp_path, monkeypatch) == 1
    first = capsys.readouterr().out.splitlines()[0]
    assert first.split() == ["error", "lost-gpu:", *LOST.split()]


def test_the_first_line_of_survey_names_it_and_how_to_go_on(
    host: Callable[[Machine], None], tmp_path: Path, capsys: Output
) -> None:
    host(idle("lost-gpu"))
    file = tmp_path / "a.wwp"
    assert cli.run(["survey", "--preset", "check", "-o", str(file)]) == 1
    said = capsys.readouterr()
    assert said.out == "" and said.err.startswith(f"waywiser: error: {LOST} (see the Xid messages")
    assert "to measure without it: --gpus 0,1,2" in said.err
    assert not file.exists()


def test_selected_gpus_are_measured_without_it_and_the_profile_says_so(
    host: Callable[[Machine], None], tmp_path: Path, capsys: Output
) -> None:
    host(idle("lost-gpu"))
    file = tmp_path / "a.wwp"
    selected = ["--only", "pinned@numa:1 -> device@gpu:2 by copy-engine", "--gpus", "0,1,2"]
    assert cli.run(["survey", "--dry-run", *selected]) == 0
    assert capsys.readouterr().out.splitlines()[0] == f"error: {LOST}"
    assert cli.run(["survey", "--preset", "check", *selected, "-o", str(file)]) == 0
    assert capsys.readouterr().err.splitlines()[0] == f"error: {LOST}"
    with Profile.open(file) as profile:
        assert profile.machine.unusable_gpus == (UnusableGpu(ADDRESS, "lost", "GPU is lost"),)
        assert [gpu.index for gpu in profile.machine.gpus] == [0, 1, 2]
    assert cli.run(["doctor", str(file), "--severity", "error"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].endswith(f"describes it: {LOST}") and f"lost-gpu: {LOST}" in lines[1]


def test_a_survey_that_lost_a_gpu_is_not_resumed(
    host: Callable[[Machine], None], tmp_path: Path, capsys: Output
) -> None:
    file = tmp_path / "a.wwp"
    host(idle("two-socket-4gpu"))
    command = ["survey", "-o", str(file), "--preset", "check", "--only", "pinned h2d gpu:0"]
    assert cli.run(command) == 0
    host(idle("lost-gpu"))
    capsys.readouterr()
    assert cli.run(["survey", "-o", str(file), "--resume"]) == 1
    # What disturbs the machine is printed before.
    assert f"\nwaywiser: error: {LOST}" in capsys.readouterr().err


def test_the_first_line_of_check_names_it(tmp_path: Path, capsys: Output) -> None:
    base = nodes.node(1, gpus=2, blocks=8)
    now = nodes.node(2, gpus=2, blocks=8)
    lost = (UnusableGpu("0000:03:00.0", "lost", "GPU is lost"),)
    changed = msgspec.structs.replace(now.machine, unusable_gpus=lost)
    files = [
        str(nodes.stored(node, tmp_path / f"{name}.wwp"))
        for name, node in (
            ("base", base),
            ("now", msgspec.structs.replace(now, machine=changed)),
        )
    ]
    assert cli.run(["check", files[1], "--baseline", files[0], "--within", "0"]) == 1
    first = capsys.readouterr().out.splitlines()[0]
    assert first.startswith(
        "FAILED node0: 1 NVIDIA GPU does not answer: 0000:03:00.0 (GPU is lost); the others are "
        "gpu:0-1"
    )


def test_a_container_has_a_note_and_no_error(
    host: Callable[[Machine], None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Output,
) -> None:
    assert cli.run(["topology", str(CAPTURES / "container.json")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("container · ")
    assert [line.startswith(f"note: {NOT_GIVEN}") for line in lines].count(True) == 1
    assert check("container", tmp_path, monkeypatch) == 0
    said = capsys.readouterr().out
    assert "error" not in said and f"topology: {NOT_GIVEN}" in said
    host(idle("container"))
    assert cli.run(["survey", "--dry-run", "--preset", "check"]) == 0
    assert NOT_GIVEN in capsys.readouterr().out.splitlines()[1]


def test_a_gpu_that_no_driver_holds_is_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    bare = (UnusableGpu("0000:03:00.0", "no driver"),)
    changed = msgspec.structs.replace(machine("container"), unusable_gpus=bare)
    situation = Situation(changed, system_of(tmp_path, {}), "cuda", "12.0")
    monkeypatch.setattr(diagnosis, "live_situation", lambda: situation)
    assert cli.run(["doctor"]) == 1
    assert "no-driver: no driver holds 1 NVIDIA GPU: 0000:03:00.0" in capsys.readouterr().out
