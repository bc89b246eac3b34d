"""``waywiser show``: a profile as tables, with the quality flags of its numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from waywiser.cli.app import Json, Only, ProfileFile, print_result, verb

if TYPE_CHECKING:
    from waywiser.curves import Overview
    from waywiser.profile import Profile


@verb("Show the curves and the headline paths of a profile.")
def show(
    file: ProfileFile, only: Only = None, everything: bool = False, json: Json = False
) -> None:
    """Show what a profile says: a line for each curve, what is missing and why, headline paths; of
    a trace its copies by line.

    --all: Also show every size, every setting and every path.

    waywiser show node.wwp
        show headline paths and a line for each curve
    waywiser show node.wwp --only 'p2p memcpy' --all
        show every size of P2P by the cudaMemcpy family
    """
    show_profile(file, json=json, only=only or (), everything=everything)


def show_profile(
    file: str,
    *,
    json: bool = False,
    only: Sequence[str] = (),
    everything: bool = False,
    headline_last: bool = False,
) -> None:
    """Raises `WaywiserError` for bad files and patterns."""
    from waywiser.profile import is_trace

    if is_trace(file):
        from waywiser.cli.trace import show_trace

        show_trace(file, everything=everything, json=json)
        return
    from waywiser.curves.overview import overview
    from waywiser.profile import Profile
    from waywiser.report.views.profile import profile_parts

    with Profile.open(file) as profile:
        found = overview(profile, only)
        parts = profile_parts(
            profile, found, only=only, everything=everything, headline_last=headline_last
        )
        print_result(_document(profile, found) if json else None, parts, json=json)


def _document(profile: Profile, found: Overview) -> dict[str, Any]:
    """The JSON form, with the headline paths beside those of other machines."""
    import msgspec

    from waywiser.curves import curves_of, normal_paths, path_document

    normal = normal_paths(profile.machine, curves_of(found.series))
    overview = msgspec.to_builtins(found.for_json())
    return {**overview, "normal": [path_document(path) for path in normal]}
