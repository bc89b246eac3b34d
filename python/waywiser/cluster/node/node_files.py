"""Files of a node that the coordinator reads, part by part, and those that it stores there."""

from __future__ import annotations

import hashlib
import os
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path

from waywiser.cluster.connection.protocol import (
    PART_BYTES,
    BridgePath,
    FilePart,
    FindBridge,
    NodeFile,
    PutBridge,
    ReadPart,
)
from waywiser.measure.ranks.bridge_file import received_bridge, sha256_of, store_bridge
from waywiser.words import Closeable, TemporaryFolder, WaywiserError

_PREFIX = "waywiser-agent-"


class NodeFileError(WaywiserError):
    """There is no such file, or it is another one."""


class NodeFiles(Closeable):
    """A temporary folder, of which `read` reads files and nothing else. An agent that is killed
    leaves it to the next one on its node; therefore it is made when it is needed first."""

    def __init__(self) -> None:
        self._resources = ExitStack()

    @cached_property
    def folder(self) -> Path:
        """The path of the folder. Raises `OSError` if none can be made."""
        return self._resources.enter_context(TemporaryFolder(_PREFIX)).path

    def offer(self, name: str) -> NodeFile:
        """A file of the folder, to be read from now on as it is. Raises `NodeFileError`."""
        try:
            with (self.folder / name).open("rb") as file:
                digest = hashlib.file_digest(file, "sha256")
                return NodeFile(name, os.fstat(file.fileno()).st_size, digest.hexdigest())
        except OSError as error:
            raise NodeFileError(f"cannot be read: {error.strerror}", where=name) from error

    def read(self, request: ReadPart) -> FilePart:
        """A part of a file. Raises `NodeFileError`."""
        if os.path.basename(request.name) != request.name or request.name in ("", ".", ".."):
            raise NodeFileError("is no name of a file", where=request.name)
        try:
            with (self.folder / request.name).open("rb") as file:
                file.seek(request.offset)
                return FilePart(file.read(PART_BYTES))
        except (OSError, ValueError, OverflowError) as error:
            raise NodeFileError(f"cannot be read: {error}", where=request.name) from error

    def close(self) -> None:
        self._resources.close()


def find_bridge(request: FindBridge) -> BridgePath:
    """Where the bridge is on this node. Raises `CacheError`."""
    for path in (request.path, _bridge(request.sha256)):
        if path and sha256_of(path) == request.sha256:
            return BridgePath(path)
    return BridgePath("")


def put_bridge(request: PutBridge) -> BridgePath:
    """Stores the bridge under its hash. Raises `NodeFileError`, `CacheError`."""
    if hashlib.sha256(request.content).hexdigest() != request.sha256:
        raise NodeFileError("the bridge arrived with other bytes than it was sent with")
    path = _bridge(request.sha256)
    store_bridge(Path(path), request.content)
    return BridgePath(path)


def _bridge(sha256: str) -> str:
    if len(sha256) != 64 or not all(c in "0123456789abcdef" for c in sha256):
        raise NodeFileError("is no SHA-256", where=sha256[:80])
    return str(received_bridge(sha256))
