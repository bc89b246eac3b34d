"""``waywiser show``: a profile as tables, with the quality flags of its numbers."""

from __future__ import annotations

import waywiser
from waywiser.cli.app import Json, Only, ProfileFile, print_verb, verb


@verb("Show the curves and the headline paths of a profile.")
def show(
    file: ProfileFile, only: Only = None, profile: str = "", all: bool = False, json: Json = False
) -> None:
    """Show what a profile says: a line for each curve, what is missing and why, headline paths; of
    a trace its copies by line.

    --profile FILE: By default the one that it was traced with.
    --all: Also every size, every setting and every path.

    waywiser show node.wwp
        show headline paths and a line for each curve
    waywiser show node.wwp --only 'p2p memcpy' --all
        show every size of P2P by the cudaMemcpy family
    """
    print_verb(waywiser.show(file, only=only or (), profile=profile, all=all), json=json)
