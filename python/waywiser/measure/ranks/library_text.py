"""Prints what the MPI library of a bridge calls itself, in a process of its own, since a library
that does not fit can end its process.

    python -m waywiser.measure.ranks.library_text BRIDGE
"""

from __future__ import annotations

import sys

from waywiser.machine import native
from waywiser.measure.ranks.bridge_file import loaded_bridge
from waywiser.words import WaywiserError


def main() -> int:
    """The command."""
    library = native.load()
    try:
        print(loaded_bridge(library, sys.argv[1]).library)
    except (library.MessengerError, WaywiserError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
