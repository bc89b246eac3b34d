"""The file of a compiled bridge on a node that may have no files in common with the others."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from waywiser.words.user_cache import VARIABLE as CACHE_VARIABLE
from waywiser.words.user_cache import user_cache


def sha256_of(path: str) -> str:
    """The hash of a file; empty if there is no such file."""
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except (OSError, ValueError):
        return ""


def received_bridge(sha256: str) -> Path:
    """Where the bridge with this hash is, if another node has sent it. Raises `CacheError`."""
    folder = user_cache(
        "mpi", "the folder of compiled bridges", f"name a folder with {CACHE_VARIABLE}"
    )
    return folder / f"received-{sha256}.so"


def bridge_here(path: str, sha256: str = "") -> str:
    """The path of the bridge on this node: the same as on that which compiled it, if there is such
    a file with this hash; else that of the one received. Raises `CacheError`."""
    if not sha256 or sha256_of(path) == sha256:
        return path
    received = str(received_bridge(sha256))
    return received if os.path.exists(received) else path
