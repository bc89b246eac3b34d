"""Remedies of errors about a profile that no survey can add to."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from waywiser.words import WaywiserError


@contextmanager
def possible_remedies(file: str) -> Iterator[None]:
    """Errors about the profile ``file`` name no survey as their remedy, if its numbers are those of
    another tool or of a simulated machine."""
    try:
        yield
    except WaywiserError as error:
        if "survey" not in error.remedy:
            raise
        remedy = _without_survey(file, error.remedy)
        if remedy == error.remedy:
            raise
        raise type(error)(error.what, where=error.where, remedy=remedy) from error


def _without_survey(file: str, remedy: str) -> str:
    from waywiser.curves import imported_from, origin_of
    from waywiser.profile import Profile

    try:
        with Profile.open(file) as profile:
            origin = origin_of(profile.machine, profile.environment)
            tools = " or ".join(imported_from(profile.environment))
    except WaywiserError:
        return remedy  # it is the file that is at fault
    if origin == "surveyed":
        return remedy
    kept = [each for each in remedy.split(", or ") if "survey" not in each]
    if not kept and tools:
        kept = [f"measure it with {tools} if that can, and import it"]
    return ", or ".join(kept)
