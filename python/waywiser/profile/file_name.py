"""Names of profile files: the default, an unused one, and those in a folder."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

SUFFIX = ".wwp"

PACKED = ("", ".xz", ".gz", ".bz2", ".zst")
"""What follows the suffix in the names of profiles, of compressed ones too."""


def profiles_in(folder: Path) -> list[str]:
    """The files of a folder that have the name of a profile, in alphabetical order."""
    ends = tuple(f"{SUFFIX}{end}" for end in PACKED)
    before = str(folder / "_")[:-1]
    with suppress(OSError), os.scandir(folder) as entries:
        return sorted(f"{before}{each.name}" for each in entries if each.name.endswith(ends))
    return []


def default_name(hostname: str, now: datetime | None = None) -> Path:
    """``<hostname>-<UTC time>.wwp`` in the current folder: ``node7-20261120T143005Z.wwp``.

    Characters of the host name that trouble shells or file systems become ``-``.
    """
    moment = (now or datetime.now(UTC)).astimezone(UTC)
    host = re.sub(r"[^A-Za-z0-9._-]+", "-", hostname).strip("-.") or "host"
    return Path(f"{host}-{moment:%Y%m%dT%H%M%SZ}{SUFFIX}")


def unused_file(file: Path, is_used: Callable[[Path], bool] = os.path.lexists) -> Path:
    """``file`` if nothing has this name, else ``NAME-2.wwp``, ``NAME-3.wwp`` …; of a packed one
    ``NAME-2.wwp.xz``."""
    stem, suffix, packed = file.name.rpartition(SUFFIX)
    if not suffix:
        stem, packed = file.stem, file.suffix
    names = (file.with_name(f"{stem}-{n}{suffix}{packed}") for n in itertools.count(2))
    return next(name for name in itertools.chain((file,), names) if not is_used(name))


def why_no_profile(folder: str) -> str:
    """Says why a folder has no profile: it has none, or it cannot be read."""
    if os.access(folder, os.R_OK | os.X_OK):
        return f"no *{SUFFIX} is in this folder"
    return "this folder cannot be read: permission denied"
