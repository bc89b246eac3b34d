"""The user's folders: ``~/.cache/waywiser`` for what can be made again, and
``~/.local/share/waywiser`` for what cannot."""

from __future__ import annotations

import os
from pathlib import Path

from waywiser.errors import WaywiserError
from waywiser.words.trusted_file import UntrustedPath, require_trusted_folder

VARIABLE = "XDG_CACHE_HOME"
"""Replaces ``~/.cache``."""

DATA_VARIABLE = "XDG_DATA_HOME"
"""Replaces ``~/.local/share``."""


class CacheError(WaywiserError):
    """The folder cannot be found or made."""


def user_cache(part: str, what: str, remedy: str, *, for_code: bool = False) -> Path:
    """The folder ``part`` of the user's cache, made if need be, for this user alone. ``what`` names
    it in errors. ``for_code``: code is loaded from it, so it must be trusted
    (`waywiser.words.trusted_file`); the path then has no links. Raises `CacheError`."""
    above = Path(os.environ.get(VARIABLE) or "~/.cache")
    return _made(above / "waywiser" / part, what, remedy, for_code=for_code)


def data_folder(part: str) -> Path:
    """The folder ``part`` of what cannot be made again, whether it exists or not."""
    above = Path(os.environ.get(DATA_VARIABLE) or "~/.local/share")
    return above / "waywiser" / part


def user_data(part: str, what: str, remedy: str) -> Path:
    """The same, made if need be, for this user alone. Raises `CacheError`."""
    return _made(data_folder(part), what, remedy, for_code=False)


def _made(folder: Path, what: str, remedy: str, *, for_code: bool) -> Path:
    try:
        folder = folder.expanduser()
        _make(folder)
        return require_trusted_folder(folder) if for_code else folder
    except UntrustedPath as error:
        remedies = [each for each in (error.remedy, remedy) if each]
        raise CacheError(
            f"{what} is not trusted: {error.what}",
            where=error.where,
            remedy=", or ".join(remedies),
        ) from error
    except RuntimeError as error:  # no HOME, and no entry of the user in /etc/passwd
        raise CacheError(
            f"{what}, {folder}, cannot be found: user {os.getuid()} has no home", remedy=remedy
        ) from error
    except OSError as error:
        raise CacheError(
            f"{what} cannot be made: {error.strerror}", where=str(folder), remedy=remedy
        ) from error


def _make(folder: Path) -> None:
    """Makes a folder and those above it that are missing, for this user alone."""
    if not folder.is_dir():
        if folder.parent != folder:
            _make(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)
