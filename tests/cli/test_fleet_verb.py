"""``check`` of a folder: bad nodes first, what could not be read is listed, machines read JSON."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from analysis.comparison import nodes
from effort import result_and_calls
from waywiser.analysis.comparison.fleet import Fleet
from waywiser.cli import run
from waywiser.curves.subject import LoadedLink

Output = pytest.CaptureFixture[str]

HOSTS = 12


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Twelve hosts: n03 has a link at half its width, n07's gpu:0 is 6 % slower."""
    folder = tmp_path_factory.mktemp("fleet")
    made = []
    for number in range(HOSTS):
        name = f"n{number:02}"
        slow = {3: nodes.slow_host_link(1, 2.0), 7: nodes.slow_host_link(0, 1.06)}.get(number)
        links = {1: LoadedLink(5, 8)} if number == 3 else {}
        one = nodes.node(1, name, gpus=2, slow=slow or (lambda _: 1.0), links=links,
                         between_hosts=0.001, between_blocks=0.0005)  # fmt: skip
        made.append(str(nodes.stored(one, folder / f"{name}.wwp")))
    return made


def test_bad_nodes_come_first_with_device_and_remedy(files: list[str], capsys: Output) -> None:
    assert run(["check", *files]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "1 failed, 1 inconclusive, 10 ok of 12 hosts"
    assert lines[2].split()[:3] == ["n03", "failed", "peers"]
    lines = lines[lines.index("1 bad, 1 suspect, 10 fine of 12 hosts") :]
    assert lines[1] == "class: 2 × Test GPU; Test CPU: 12 hosts"
    assert lines[2].startswith("    smallest loss of one host that is found: 3.0 % of H2D")
    assert lines[3] == "bad     n03"
    bad = lines[4 : lines.index("suspect n07")]
    assert "    gpu:1 ran at PCIe 5 x8 of 5 x16 under load" in bad
    assert "      on gpu:1 (0000:02:00.0, GPU-n03-1)" in bad
    suspect = lines[lines.index("suspect n07") :]
    assert any("measure again: waywiser survey --only" in line for line in suspect)


def test_files_that_cannot_be_read_are_listed_and_not_fatal(
    files: list[str], tmp_path: Path, capsys: Output
) -> None:
    broken = tmp_path / "broken.wwp"
    broken.write_bytes(Path(files[0]).read_bytes()[:9000])
    gone = str(tmp_path / "gone.wwp")
    assert run(["check", *files, str(broken), gone]) == 1
    said = capsys.readouterr().out
    assert f"not read: {broken}: the profile is damaged" in said
    assert f"not read: {gone}: there is no such file" in said
    assert run(["check", gone]) == 2


def test_json_has_everything(files: list[str], capsys: Output) -> None:
    assert run(["check", *files, "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert [each["status"] for each in document["hosts"][:2]] == ["failed", "inconclusive"]
    found = msgspec.convert(document["peers"], Fleet)
    assert [host.host for host in found.hosts[:2]] == ["n03", "n07"]
    assert found.hosts[0].faults[0].devices[0].pci == "0000:02:00.0"
    assert found.classes[0].hosts == HOSTS


def test_few_nodes_are_not_determined(files: list[str], capsys: Output) -> None:
    """Nor is one of them alone."""
    assert run(["check", *files[:2]]) == run(["check", files[0]]) == 3
    assert "not determined: fewer hosts than" in capsys.readouterr().out


def test_healthy_nodes_are_fine(files: list[str]) -> None:
    assert run(["check", *files[8:]]) == 0


def test_reading_a_node_takes_few_calls(files: list[str]) -> None:
    """About 1000 for a small one, so that 400 are read in a second."""
    from waywiser.curves.subject import read_subject

    read_subject(files[0], links=True)  # what it needs is imported
    for file in files:
        _, calls = result_and_calls(lambda file=file: read_subject(file, links=True))
        assert calls < 4000


def test_a_folder_stands_for_its_profiles(files: list[str], tmp_path: Path, capsys: Output) -> None:
    assert run(["check", str(Path(files[0]).parent)]) == 1
    assert "\n1 bad, 1 suspect, 10 fine of 12 hosts\n" in capsys.readouterr().out
    assert run(["check", str(tmp_path)]) == 2
    said = capsys.readouterr()
    assert said.out == "" and f"{tmp_path}: no *.wwp is in this folder: no host" in said.err


def test_too_few_hosts_are_said_to_be_too_few(files: list[str], capsys: Output) -> None:
    assert run(["check", files[0], files[1]]) == 3
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "2 inconclusive of 2 hosts"
    lines = lines[lines.index("2 not determined of 2 hosts") :]
    assert lines[1].endswith("2 hosts (not determined: fewer hosts than 4)")


def test_a_name_that_is_too_long_is_not_read(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["check", "a" * 300]) == 2
    said = capsys.readouterr()
    assert said.out == "" and "a: cannot be read: File name too long" in said.err


def test_one_line_says_that_nothing_was_read(tmp_path: Path, capsys: Output) -> None:
    names = [str(tmp_path / name) for name in ("gone", "lost", "away")]
    assert run(["check", *names, "--json", "--junit", str(tmp_path / "f.xml")]) == 2
    said = capsys.readouterr()
    (line,) = said.err.splitlines()
    assert (
        f"{names[0]}: there is no such file: no host to check; 2 more files cannot be read" in line
    )
    assert "(name profiles of nodes, or a folder of them)" in line
    assert list(json.loads(said.out)["peers"]["unreadable"]) == names
    assert (tmp_path / "f.xml").exists()
