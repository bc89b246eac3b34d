"""Fetches files of nodes, part by part, from several nodes at once."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from pathlib import Path

from waywiser.cluster.connection.coordinator import Coordinator, NoAnswer
from waywiser.cluster.connection.interruptible import run_interruptibly
from waywiser.cluster.connection.protocol import FilePart, NodeFile, ReadPart
from waywiser.measure.supervise import Deadline
from waywiser.words import WaywiserError, count

MOST_AT_ONCE = 16
"""Nodes whose files are fetched at the same time: the coordinator holds a part of each."""

MOST_FILE_BYTES = 256 << 20
"""A profile has some MB."""

FILE_SECONDS = 60.0
"""Seconds for all parts of a file: a node that sends little at a time costs its profile."""

NewFile = Callable[[str], AbstractContextManager[Path]]
"""Makes an empty file for that of a node, which is kept if the block ends well
(`waywiser.profile.cluster_folder.ClusterFolder.new_profile`)."""


class FetchError(WaywiserError):
    """The file of a node does not come, or not as it was."""


def fetch_files(
    coordinator: Coordinator,
    files: Mapping[str, NodeFile],
    new_file: NewFile,
    deadline: Deadline,
) -> dict[str, str]:
    """Returns why files did not come, by node; empty if all did. It ends at the deadline, and each
    file has at most `FILE_SECONDS` before that. If this thread is interrupted, as signals do,
    nothing more is requested."""
    is_ended = threading.Event()

    def fetch(node: str) -> str:
        if deadline.is_over:
            return f"others took the {deadline.seconds:.3g} s that the deadline left for all"
        try:
            with new_file(node) as path:
                limit = deadline.within(FILE_SECONDS)
                fetch_file(coordinator, node, files[node], path, limit, is_ended.is_set)
        except WaywiserError as error:
            return error.what
        return ""

    problems: dict[str, str] = {}

    def work() -> None:
        with ThreadPoolExecutor(MOST_AT_ONCE) as threads:
            found = zip(files, threads.map(fetch, files), strict=True)
            problems.update((node, problem) for node, problem in found if problem)

    run_interruptibly(work, is_ended.set)
    return problems


def fetch_file(
    coordinator: Coordinator,
    node: str,
    file: NodeFile,
    path: Path,
    deadline: Deadline,
    is_ended: Callable[[], bool] = lambda: False,
) -> None:
    """Writes the file of a node to ``path`` before the deadline. Raises `FetchError`,
    `OSError`."""
    if file.bytes > MOST_FILE_BYTES:
        raise FetchError(f"the file has {count(file.bytes, 'byte')}", where=node)
    digest = hashlib.sha256()
    offset = 0
    with path.open("wb") as target:
        while offset < file.bytes:
            if is_ended():
                raise FetchError("the survey was interrupted", where=node)
            reply = coordinator.ask({node: ReadPart(file.name, offset)}, deadline.left)[node]
            if isinstance(reply, NoAnswer):
                had = f"{count(offset, 'byte')} of {file.bytes:,} came in {deadline.seconds:.3g} s"
                raise FetchError(had, where=node)
            if not isinstance(reply, FilePart):
                reason = getattr(reply, "reason", "it answered something else")
                raise FetchError(f"it was not received: {reason}", where=node)
            if not reply.content:
                raise FetchError("the file became shorter while it was read", where=node)
            if offset + len(reply.content) > file.bytes:
                raise FetchError("the file became longer while it was read", where=node)
            target.write(reply.content)
            digest.update(reply.content)
            offset += len(reply.content)
    if digest.hexdigest() != file.sha256:
        raise FetchError("the file arrived with other bytes than it had", where=node)
