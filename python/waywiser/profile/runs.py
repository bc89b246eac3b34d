"""The runs of a survey that wrote to a profile."""

from __future__ import annotations

from waywiser.words import Health, Value


class Run(Value, frozen=True):
    """One call of ``survey`` that wrote to a profile. Times are UTC, ISO 8601."""

    number: int
    started: str
    ended: str | None
    """None while it runs, and where it was killed."""
    version: str
    command: tuple[str, ...]


class RunHealth(Value, frozen=True):
    """Error counters around one run; None if they were not read, as where it was killed."""

    run: int
    start: Health | None
    end: Health | None
