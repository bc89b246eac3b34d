"""What a profile says that was to be measured, as much of it as readers ask for."""

from __future__ import annotations

import msgspec


class Asked(msgspec.Struct, frozen=True):
    """Of a survey."""

    preset: str = ""
    only: tuple[str, ...] = ()
    sizes: str = ""
    workloads: tuple[str, ...] = ()


class Foreseen(msgspec.Struct, frozen=True):
    visits: int


class Planned(msgspec.Struct, frozen=True):
    """None for what the plan does not tell, as that of another program."""

    request: Asked | None = None
    estimate: Foreseen | None = None


def planned(plan_json: str) -> Planned:
    """Of a profile's `plan_json`; nothing is known of a plan that cannot be read."""
    try:
        return msgspec.json.decode(plan_json, type=Planned)
    except msgspec.MsgspecError:
        return Planned()
