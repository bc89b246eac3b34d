"""Files and programs that name the nodes of a run and their groups."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from waywiser.cluster.surveys.hosts import (
    HostsError,
    groups_among,
    has_address,
    read_groups,
    read_hostfile,
    slurm_groups,
    slurm_hosts,
    topology_groups,
)
from waywiser.words import WordError

TOPOLOGY = """\
SwitchName=leaf1 Level=0 LinkSpeed=1 Nodes=n[01-04]
SwitchName=leaf2 Level=0 LinkSpeed=1 Nodes=n[05-08]
SwitchName=spine Level=1 LinkSpeed=1 Nodes=n[01-08] Switches=leaf[1-2]
"""
BLOCKS = "BlockName=b1 BlockIndex=0 Nodes=n[1-2] BlockSize=2\nBlockName=b2 BlockIndex=1 Nodes=n3\n"
FILES = st.lists(
    st.sampled_from(
        ["n1", "n[1-3]", "n2 slots=8", "n3:4", "# x", "", "a:", "a: n1", "SwitchName=s0 Nodes=n1"]
    )
    | st.text(alphabet="n12[]-,:= #\t\r\0äS", max_size=12),
    max_size=8,
).map("\n".join)


def everywhere(name: str) -> bool:
    return True


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "hosts"


def said(file: Path, text: str, *, groups: bool = False) -> str:
    """What the error says after the name of the file."""
    file.write_text(text)
    with pytest.raises(HostsError) as caught:
        read_groups(str(file)) if groups else read_hostfile(str(file), everywhere)
    assert caught.value.exit_code == 2
    return str(caught.value).removeprefix(str(file))


def test_a_hostfile_is_read_in_its_order(file: Path) -> None:
    file.write_text("# nodes\n\nn3 slots=8\nn1:4\r\nn[10-11] slots=2 max-slots=4 # more\nlogin\n")
    assert read_hostfile(str(file), everywhere) == ("n3", "n1", "n10", "n11", "login")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("n1\nn2\nn1 slots=2\n", ", line 3: n1 is named twice, before in line 1"),
        ("n1\nn[1-2]\n", ", line 2: n1 is named twice, before in line 1"),
        ("n1\n\nn2 n3\n", ", line 3: 'n3' is no option of a host (write one host per line"),
        ("n1\nn[2-\n", ", line 2: a bracket is not closed"),
        ("n1\n$(reboot)\n", ", line 2: '$(reboot)' is no host name"),
        ("user@n1\n", ", line 1: 'user@n1' is no host name"),
        ("# nothing\n", ": names no host"),
        ("n[0-90000]\nm[0-90000]\n", ": names more than 100,000 hosts"),
    ],
)
def test_garbage_names_file_and_line(file: Path, text: str, says: str) -> None:
    assert said(file, text).startswith(says)


def test_unknown_hosts_are_named_with_their_lines(file: Path) -> None:
    file.write_text("n1\nn2\nn3\nn4\nn5\n")
    with pytest.raises(HostsError) as caught:
        read_hostfile(str(file), lambda name: name == "n2")
    assert (
        str(caught.value)
        .removeprefix(str(file))
        .startswith(
            ", line 1: n1 is unknown: it has no address; so are n3 (line 3), n4 (line 4) and 1 more"
        )
    )


def test_a_host_has_an_address_if_it_resolves() -> None:
    assert has_address("127.0.0.1")
    assert not has_address("no..name")
    assert not has_address("x" * 300)


@pytest.mark.parametrize("kind", ["missing", "directory", "binary"])
def test_a_file_that_is_no_hostfile_is_one_line(file: Path, kind: str) -> None:
    if kind == "directory":
        file.mkdir()
    elif kind == "binary":
        file.write_bytes(b"\x7fELF\xff\xfe")
    for read in (read_hostfile, read_groups):
        with pytest.raises(HostsError, match=str(file)):
            read(str(file))


def test_slurm_names_the_nodes_of_an_allocation() -> None:
    assert slurm_hosts({"SLURM_JOB_NODELIST": "n[01-02],m3"}) == ("n01", "n02", "m3")
    assert slurm_hosts({}) == ()
    with pytest.raises(WordError):
        slurm_hosts({"SLURM_JOB_NODELIST": "n[01"})


def test_leaf_switches_are_groups() -> None:
    groups = topology_groups(TOPOLOGY, "topology")
    assert groups == {
        "leaf1": ("n01", "n02", "n03", "n04"),
        "leaf2": ("n05", "n06", "n07", "n08"),
    }
    assert topology_groups(BLOCKS, "topology") == {"b1": ("n1", "n2"), "b2": ("n3",)}
    assert topology_groups("No topology information available\n", "topology") == {}


def test_a_switch_that_cannot_be_read_names_its_line() -> None:
    with pytest.raises(HostsError, match=r"scontrol, line 2: .* counts down"):
        topology_groups("SwitchName=a Nodes=n1\nSwitchName=b Nodes=n[3-2]", "scontrol")


@pytest.mark.parametrize(
    ("does", "groups"),
    [
        (f"cat <<'.'\n{TOPOLOGY}.\n", 2),
        ("echo slurm_load_topo error >&2; exit 1", 0),
        ("exec sleep 60", 0),
    ],
)
def test_scontrol_is_run_for_the_switches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, does: str, groups: int
) -> None:
    program = tmp_path / "scontrol"
    program.write_text(f"#!/bin/sh\n{does}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert len(slurm_groups(seconds=0.3 if "sleep" in does else 60)) == groups


def test_without_slurm_there_are_no_switches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert slurm_groups() == {}


def test_a_file_of_groups_is_read(file: Path) -> None:
    file.write_text("# racks\nleft: n[1-2], n5\nright n[3-4]\n")
    assert read_groups(str(file)) == {"left": ("n1", "n2", "n5"), "right": ("n3", "n4")}
    file.write_text(TOPOLOGY)
    assert list(read_groups(str(file))) == ["leaf1", "leaf2"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a: n1\nb: n2,n1\n", ", line 2: n1 is named twice, before in line 1 (group a)"),
        ("a: n1\na: n2\n", ", line 2: the group a is defined twice, before in line 1"),
        ("a: n1\nb\n", ", line 2: 'b' is no group (write NAME: n[01-16] per line)"),
        ("a: n[1\n", ", line 1: a bracket is not closed"),
        ("\n", ": names no group"),
    ],
)
def test_wrong_groups_name_file_and_line(file: Path, text: str, says: str) -> None:
    assert said(file, text, groups=True).startswith(says)


def test_groups_keep_the_nodes_of_the_run() -> None:
    groups = {"a": ("n1", "n2"), "b": ("n3",), "c": ("n4", "n5")}
    assert groups_among(groups, ["n2", "n5", "n4"]) == {"a": ("n2",), "c": ("n4", "n5")}


@given(FILES)
def test_any_file_is_read_or_gives_one_line(
    tmp_path_factory: pytest.TempPathFactory, text: str
) -> None:
    file = tmp_path_factory.getbasetemp() / "any-hosts"
    file.write_bytes(text.encode())
    for read in (lambda: read_hostfile(str(file), everywhere), lambda: read_groups(str(file))):
        try:
            assert read()
        except HostsError as error:
            assert "\n" not in str(error)
            assert str(file) in str(error)


@given(FILES)
def test_any_topology_is_groups_or_one_line(text: str) -> None:
    try:
        groups = topology_groups(text, "topology")
    except HostsError as error:
        assert "\n" not in str(error)
    else:
        members = [node for nodes in groups.values() for node in nodes]
        assert len(members) == len(set(members))
