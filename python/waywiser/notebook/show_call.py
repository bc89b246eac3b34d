"""What a profile, or a trace, says: `waywiser.show`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from waywiser.notebook.verb_result import FileName, VerbResult
from waywiser.notebook.without_effect import require_effect
from waywiser.profile import is_trace

if TYPE_CHECKING:
    pass


def show_file(
    file: FileName,
    *,
    only: Sequence[str] = (),
    profile: FileName | None = None,
    everything: bool = False,
    headline_last: bool = False,
) -> VerbResult:
    """As `waywiser.show`. ``headline_last`` is for the end of a survey. Raises `WaywiserError`."""
    if is_trace(os.fspath(file)):
        from waywiser.notebook.trace_call import show_trace

        require_effect({"a trace has no curves": {"--only": only}})
        return show_trace(os.fspath(file), profile, everything=everything)
    require_effect({"it is for a trace": {"--profile": profile}})
    from waywiser.curves.overview import overview
    from waywiser.profile import Profile
    from waywiser.render.views.profile import profile_parts

    with Profile.open(file) as opened:
        found, machine = overview(opened, only), opened.machine
        shown = tuple(
            profile_parts(
                opened, found, only=only, everything=everything, headline_last=headline_last
            )
        )

    def document() -> dict[str, Any]:
        """The JSON form, with the headline paths beside those of other machines."""
        import msgspec

        from waywiser.curves import curves_of, normal_paths, path_document

        normal = normal_paths(machine, curves_of(found.series))
        whole = msgspec.to_builtins(found.for_json())
        return {**whole, "normal": [path_document(path) for path in normal]}

    return VerbResult(found, document, lambda: shown)
