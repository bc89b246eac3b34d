"""The MPI library of this machine, and what it does with each kind of memory, for ``doctor``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from waywiser.render.parts import Block, Section


def mpi_answer(
    mpicc: str, launcher: str, *, tries: bool
) -> tuple[dict[str, Any], Iterable[Block | Section]]:
    """Its JSON form and its text; with ``tries`` ranks are started. Raises `WaywiserError` if there
    is no library."""
    from waywiser.measure.ranks.mpi_library import find_library
    from waywiser.render.views.mpi import library_parts

    library = find_library(mpicc)
    tried = None
    if tries:
        from waywiser.measure import scope
        from waywiser.measure.ranks.tries import try_all

        tried = list(try_all(library, scope.working_machine(), launcher))
    document = {
        "library": library.name,
        "version": library.version,
        "text": library.text,
        "mpicc": library.mpicc,
        "launcher": launcher or library.launcher,
        "bridge": library.bridge,
        "was_cached": library.was_cached,
        "tries": tried,
    }
    return document, library_parts(library, launcher, tried)
