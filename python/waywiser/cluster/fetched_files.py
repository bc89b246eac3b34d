"""Fetches files of nodes, part by part, from several nodes at once."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from pathlib import Path

from waywiser.cluster.coordinator import Coordinator
from waywiser.cluster.protocol import FilePart, NodeFile, ReadPart
from waywiser.words import WaywiserError
from waywiser.words.number_format import count

MOST_AT_ONCE = 16
"""Nodes whose files are fetched at the same time: the coordinator holds a part of each."""

MOST_FILE_BYTES = 1 << 30
"""A profile has some MB."""

PART_SECONDS = 60.0

NewFile = Callable[[str], AbstractContextManager[Path]]
"""Makes an empty file for that of a node, which is kept if the block ends well
(`waywiser.profile.cluster_folder.ClusterFolder.new_profile`)."""


class FetchError(WaywiserError):
    """The file of a node does not come, or not as it was."""


def fetch_files(
    coordinator: Coordinator, files: Mapping[str, NodeFile], new_file: NewFile
) -> dict[str, str]:
    """Returns why files did not come, by node; empty if all did."""

    def fetch(node: str) -> str:
        try:
            with new_file(node) as path:
                fetch_file(coordinator, node, files[node], path)
        except WaywiserError as error:
            return error.what
        return ""

    with ThreadPoolExecutor(MOST_AT_ONCE) as threads:
        problems = zip(files, threads.map(fetch, files), strict=True)
        return {node: problem for node, problem in problems if problem}


def fetch_file(coordinator: Coordinator, node: str, file: NodeFile, path: Path) -> None:
    """Writes the file of a node to ``path``. Raises `FetchError`, `OSError`."""
    if file.bytes > MOST_FILE_BYTES:
        raise FetchError(f"the file has {count(file.bytes, 'byte')}", where=node)
    digest = hashlib.sha256()
    offset = 0
    with path.open("wb") as target:
        while offset < file.bytes:
            reply = coordinator.ask({node: ReadPart(file.name, offset)}, PART_SECONDS)[node]
            if not isinstance(reply, FilePart):
                reason = getattr(reply, "reason", "it answered something else")
                raise FetchError(f"it was not received: {reason}", where=node)
            if not reply.content:
                raise FetchError("the file became shorter while it was read", where=node)
            target.write(reply.content)
            digest.update(reply.content)
            offset += len(reply.content)
    if digest.hexdigest() != file.sha256:
        raise FetchError("the file arrived with other bytes than it had", where=node)
