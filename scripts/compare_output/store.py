"""A folder of recorded outputs: an index of commands, and each different content once."""

from __future__ import annotations

import hashlib
import json
import os
import zlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

MOST_BYTES = 16 << 20
"""Bytes that are kept of one content; the digest is of all of it."""

INDEX, ABOUT = "index.jsonl", "about.json"


@dataclass(frozen=True)
class Recorded:
    """What one command did: its exit code, and the digests of its outputs by name."""

    command: str
    exit_code: int
    outputs: dict[str, str] = field(default_factory=dict)
    """``stdout``, ``stderr``, and the paths of files that were written."""
    cpu_seconds: float = 0.0


class Store:
    """The folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def keep(self, content: bytes) -> str:
        """The digest of the content, which is stored."""
        digest = hashlib.sha256(content).hexdigest()[:32]
        path = self._path(digest)
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            part = path.with_suffix(f".{os.getpid()}.part")
            part.write_bytes(zlib.compress(content[:MOST_BYTES], 3))
            part.replace(path)
        return digest

    def content(self, digest: str) -> bytes:
        return zlib.decompress(self._path(digest).read_bytes())

    @property
    def is_one(self) -> bool:
        """Whether the folder is a record, finished or not."""
        return (self.folder / ABOUT).exists()

    def begin(self) -> None:
        """Makes the folder."""
        self.folder.mkdir(parents=True)
        (self.folder / ABOUT).write_text("{}\n")

    def finish(self, recorded: Iterable[Recorded], about: dict[str, Any]) -> None:
        """Writes the index."""
        lines = [json.dumps(vars(each)) for each in sorted(recorded, key=lambda r: r.command)]
        (self.folder / INDEX).write_text("\n".join(lines) + "\n")
        (self.folder / ABOUT).write_text(json.dumps(about, indent=1) + "\n")

    def index(self) -> dict[str, Recorded]:
        """What was recorded, by command."""
        lines = (self.folder / INDEX).read_text().splitlines()
        return {(found := Recorded(**json.loads(line))).command: found for line in lines}

    def about(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.folder / ABOUT).read_text())
        return found

    def _path(self, digest: str) -> Path:
        return self.folder / "contents" / digest[:2] / digest[2:]
