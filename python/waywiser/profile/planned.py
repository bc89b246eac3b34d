"""What a profile says that was to be measured, as much of it as readers ask for."""

from __future__ import annotations

import shlex

import msgspec

TUNING = "tune"
"""The entry of a run's environment that says what a tuning searched
(`waywiser.measure.tune.run`)."""


class StoredRequest(msgspec.Struct, frozen=True):
    """The request of a survey, as a profile stores it."""

    preset: str = ""
    only: tuple[str, ...] = ()
    sizes: str = ""
    workloads: tuple[str, ...] = ()
    model: bool = False

    @property
    def options(self) -> list[str]:
        """The same as options of ``waywiser survey``."""
        pairs = [
            ("--preset", self.preset),
            *(("--only", each) for each in self.only),
            *(("--workload", each) for each in self.workloads),
            ("--sizes", self.sizes),
        ]
        words = [word for option, value in pairs if value for word in (option, value)]
        return [*words, "--model"] if self.model else words


class Foreseen(msgspec.Struct, frozen=True):
    visits: int


class Planned(msgspec.Struct, frozen=True):
    """None for what the plan does not say, as that of another program."""

    request: StoredRequest | None = None
    estimate: Foreseen | None = None
    validation: tuple[str, ...] = ()
    """Identities of the series that models are compared with, and never fitted to."""


def stored_request(text: str) -> StoredRequest | None:
    """The request of a survey from its JSON; None if it is not known."""
    try:
        return msgspec.json.decode(text, type=StoredRequest)
    except (msgspec.MsgspecError, RecursionError):
        return None


def resume_command(file: str) -> str:
    """The command that continues the survey in a profile."""
    return shlex.join(["waywiser", "survey", "--resume", "-o", file])


def planned(plan_json: str) -> Planned:
    """The plan in a profile's `plan_json`; an empty one if it cannot be read."""
    try:
        return msgspec.json.decode(plan_json, type=Planned)
    except (msgspec.MsgspecError, RecursionError):
        return Planned()
