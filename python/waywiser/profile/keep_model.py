"""Stores a fitted model in its profile. Measurements are not touched."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path

from waywiser.profile import writing
from waywiser.profile.errors import NotWritable
from waywiser.profile.lock import lock
from waywiser.profile.opening import explained, open_writable
from waywiser.profile.profile import KeptModel
from waywiser.profile.schema import MODEL


def keep_model(path: Path, model: KeptModel) -> None:
    """Stores the model, in place of a former one, in one transaction.

    Raises `NotWritable` for a file that may not be written or belongs to another user,
    `LockedProfile` while a survey writes to it, and the `ProfileError` of a bad file.
    """
    _require_own(path)
    held = lock(path)
    try:
        with closing(open_writable(path)) as connection, explained(path):
            connection.execute("BEGIN IMMEDIATE")
            # Made anew: the table of a file from elsewhere may have other columns.
            connection.execute(f"DROP TABLE IF EXISTS {MODEL.name}")
            connection.execute(MODEL.sql())
            writing.put(connection, MODEL.name, (1, *model))
            connection.execute("COMMIT")
    finally:
        os.close(held)


def _require_own(path: Path) -> None:
    try:
        owner = path.stat().st_uid
    except OSError as error:
        raise NotWritable(f"cannot be read: {error.strerror}", where=str(path)) from error
    if owner != os.geteuid():
        raise NotWritable(
            "belongs to another user", where=str(path), remedy="copy it, to keep a model in it"
        )
    if not os.access(path, os.W_OK):
        raise NotWritable(
            "may not be written", where=str(path), remedy="copy it, to keep a model in it"
        )
