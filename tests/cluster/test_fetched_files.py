"""Files of nodes come whole, or with the reason."""

from __future__ import annotations

import hashlib
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import cast

import pytest
from joined_agents import LONG, TOKEN, AgentThread
from msgspec.structs import replace

from waywiser.cluster.connection import fetched_files
from waywiser.cluster.connection.coordinator import Coordinator, NoAnswer, Reply
from waywiser.cluster.connection.fetched_files import (
    MOST_AT_ONCE,
    FetchError,
    NewFile,
    fetch_file,
    fetch_files,
)
from waywiser.cluster.connection.protocol import (
    PART_BYTES,
    Answer,
    BridgePath,
    CheckEnded,
    FilePart,
    FindBridge,
    NodeFile,
    PutBridge,
    ReadPart,
    Request,
    RunCheck,
)
from waywiser.cluster.node.node_files import NodeFileError, NodeFiles, find_bridge, put_bridge
from waywiser.cluster.surveys.node_surveys import survey_nodes
from waywiser.measure.supervise.deadline import NEVER, Deadline
from waywiser.profile.cluster_folder import ClusterFolder
from waywiser.words.cluster import ClusterNode, ClusterPlan


@contextmanager
def node(read: Callable[[ReadPart], Answer]) -> Iterator[Coordinator]:
    with Coordinator("127.0.0.1:0", TOKEN, ["n1"]) as coordinator:
        agent = AgentThread(coordinator.address, "n1", {ReadPart: read})
        coordinator.admit(LONG)
        yield coordinator
    assert agent.join() is None


@contextmanager
def new_file(path: Path) -> Iterator[Path]:
    try:
        yield path
    except BaseException:
        path.unlink()
        raise


def new_files(folder: Path) -> NewFile:
    return lambda name: new_file(folder / name)


@pytest.mark.parametrize("size", [0, 1, PART_BYTES, 2 * PART_BYTES + 7])
def test_a_file_comes_as_it_was(tmp_path: Path, size: int) -> None:
    content = os.urandom(size)
    with NodeFiles() as files, node(files.read) as coordinator:
        (files.folder / "check.wwp").write_bytes(content)
        file = files.offer("check.wwp")
        assert file == NodeFile("check.wwp", size, hashlib.sha256(content).hexdigest())
        fetch_file(coordinator, "n1", file, tmp_path / "got", Deadline(LONG))
    assert (tmp_path / "got").read_bytes() == content
    assert not files.folder.exists()


def test_a_file_that_changed_is_no_file(tmp_path: Path) -> None:
    with NodeFiles() as files, node(files.read) as coordinator:
        (files.folder / "a").write_bytes(b"first")
        file = files.offer("a")
        (files.folder / "a").write_bytes(b"other")
        with pytest.raises(FetchError, match="other bytes"):
            fetch_file(coordinator, "n1", file, tmp_path / "got", Deadline(LONG))
        (files.folder / "a").write_bytes(b"fir")
        with pytest.raises(FetchError, match="became shorter"):
            fetch_file(coordinator, "n1", file, tmp_path / "got", Deadline(LONG))
        with pytest.raises(FetchError, match="bytes"):
            fetch_file(
                coordinator, "n1", replace(file, bytes=1 << 40), tmp_path / "got", Deadline(LONG)
            )


def test_what_fails_of_many_files_is_named_and_leaves_none(tmp_path: Path) -> None:
    with NodeFiles() as files, node(files.read) as coordinator:
        (files.folder / "a").write_bytes(b"right")
        file = files.offer("a")
        files_of = {"n1": file, "n2": file}
        found = fetch_files(coordinator, files_of, new_files(tmp_path), NEVER)
    assert found == {"n2": "it was not received: it did not join"}
    assert os.listdir(tmp_path) == ["n1"]
    assert (tmp_path / "n1").read_bytes() == b"right"


def test_a_node_that_sends_little_at_a_time_costs_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetched_files, "FILE_SECONDS", 0.2)
    file = NodeFile("x", 200 << 20, "0" * 64)
    with node(lambda request: FilePart(b"a")) as coordinator:
        found = fetch_files(coordinator, {"n1": file}, new_files(tmp_path), NEVER)
    assert "of 209,715,200 came in 0.2 s" in found["n1"]
    assert os.listdir(tmp_path) == []


class DrippingNodes:
    """A coordinator whose nodes send a byte at a time, and survey themselves at once."""

    def __init__(self, file: NodeFile) -> None:
        self.file = file
        self.limits: list[float] = []
        """The seconds of each request for a part."""

    def ask(self, requests: Mapping[str, Request], seconds: float) -> dict[str, Reply]:
        if all(isinstance(request, RunCheck) for request in requests.values()):
            return dict.fromkeys(requests, CheckEnded(0, self.file))
        self.limits.append(seconds)
        time.sleep(0.001)
        return dict.fromkeys(requests, FilePart(b"a") if seconds else NoAnswer("none"))


def test_many_nodes_that_drip_have_one_deadline(tmp_path: Path) -> None:
    file = NodeFile("x", 200 << 20, "0" * 64)
    coordinator = cast(Coordinator, DrippingNodes(file))
    names = [f"n{number}" for number in range(3 * MOST_AT_ONCE)]
    found = fetch_files(
        coordinator,
        dict.fromkeys(names, file),
        new_files(tmp_path),
        Deadline(0.2),
    )
    assert list(found) == names
    for name in names[MOST_AT_ONCE:]:
        assert found[name] == "others took the 0.2 s that the deadline left for all"
    assert os.listdir(tmp_path) == []


def test_profiles_are_received_before_the_deadline_of_the_run(tmp_path: Path) -> None:
    drip = DrippingNodes(NodeFile("x", 20, "0" * 64))
    nodes = [ClusterNode("n1"), ClusterNode("n2")]
    notes: list[str] = []
    with ClusterFolder.create(tmp_path / "c", ClusterPlan("mpi", 1)) as folder:
        survey_nodes(folder, cast(Coordinator, drip), nodes, notes.append, Deadline(7.0))
    assert len(notes) == 2 and all("its profile was not received" in note for note in notes)
    assert len(drip.limits) == 40 and max(drip.limits) <= 7.0


def test_a_part_beyond_the_end_is_no_part(tmp_path: Path) -> None:
    file = NodeFile("x", 3, hashlib.sha256(b"aaaa").hexdigest())
    with node(lambda request: FilePart(b"aaaa")) as coordinator:
        found = fetch_files(coordinator, {"n1": file}, new_files(tmp_path), NEVER)
    assert found == {"n1": "the file became longer while it was read"}


def test_a_signal_ends_the_fetching_of_a_file(tmp_path: Path) -> None:
    requested = threading.Event()

    def drip(request: ReadPart) -> FilePart:
        if request.offset == 3:
            os.kill(os.getpid(), signal.SIGINT)
        requested.set()
        return FilePart(b"a")

    file = NodeFile("x", 200 << 20, "0" * 64)
    with node(drip) as coordinator, pytest.raises(KeyboardInterrupt):
        fetch_files(coordinator, {"n1": file}, new_files(tmp_path), Deadline(LONG))
    assert requested.is_set()
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("name", ["", ".", "..", "/etc/passwd", "../x", "a/b", "a\0b", "absent"])
def test_only_files_of_the_folder_are_read(name: str) -> None:
    with NodeFiles() as files:
        with pytest.raises(NodeFileError):
            files.read(ReadPart(name))
        (files.folder / "a").write_bytes(b"12345")
        assert files.read(ReadPart("a", 2)) == FilePart(b"345")
        assert files.read(ReadPart("a", 9)) == FilePart(b"")
        for offset in (-1, 1 << 70):
            with pytest.raises(NodeFileError):
                files.read(ReadPart("a", offset))


def test_a_bridge_is_found_by_its_hash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    content = b"\x7fELF"
    sha256 = hashlib.sha256(content).hexdigest()
    shared = tmp_path / "bridge.so"
    assert find_bridge(FindBridge(sha256, str(shared))) == BridgePath("")
    shared.write_bytes(b"of another library")
    assert find_bridge(FindBridge(sha256, str(shared))) == BridgePath("")
    stored = put_bridge(PutBridge(sha256, content))
    assert Path(stored.path).read_bytes() == content
    assert find_bridge(FindBridge(sha256, str(shared))) == stored
    shared.write_bytes(content)
    assert find_bridge(FindBridge(sha256, str(shared))) == BridgePath(str(shared))
    Path(stored.path).write_bytes(b"damaged")
    assert find_bridge(FindBridge(sha256)) == BridgePath("")


def test_a_bridge_with_other_bytes_is_not_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(NodeFileError, match="other bytes"):
        put_bridge(PutBridge("0" * 64, b"x"))
    for wrong in ("", "../../x", "Z" * 64):
        with pytest.raises(NodeFileError):
            find_bridge(FindBridge(wrong))
