"""Options that change nothing of what a verb is called for: each is an error, at one place."""

from __future__ import annotations

from collections.abc import Mapping

from waywiser.words import WaywiserError


def require_effect(
    idle: Mapping[str, Mapping[str, object]], error: type[WaywiserError] = WaywiserError
) -> None:
    """Raises an error for the first option that was given. ``idle`` has, for each reason, the
    values of options that have no effect for it; a value that is not true was not given."""
    for why, options in idle.items():
        for option, value in options.items():
            if value:
                raise error(f"{option} has no effect here: {why}", remedy=f"remove {option}")
