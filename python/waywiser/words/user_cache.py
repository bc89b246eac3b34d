"""The folder for what can be made again: ``~/.cache/waywiser``."""

from __future__ import annotations

import os
from pathlib import Path

from waywiser.errors import WaywiserError

VARIABLE = "XDG_CACHE_HOME"
"""Replaces ``~/.cache``."""


class CacheError(WaywiserError):
    """The folder cannot be found or made."""


def user_cache(part: str, what: str, remedy: str) -> Path:
    """The folder ``part`` of the user's cache, made if need be. ``what`` names it in errors.
    Raises `CacheError`."""
    folder = Path(os.environ.get(VARIABLE) or "~/.cache") / "waywiser" / part
    try:
        folder = folder.expanduser()
        folder.mkdir(parents=True, exist_ok=True)
    except RuntimeError as error:  # no HOME, and no entry of the user in /etc/passwd
        raise CacheError(
            f"{what}, {folder}, cannot be found: user {os.getuid()} has no home", remedy=remedy
        ) from error
    except OSError as error:
        raise CacheError(
            f"{what} cannot be made: {error.strerror}", where=str(folder), remedy=remedy
        ) from error
    return folder
