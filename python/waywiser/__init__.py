"""Waywiser measures every way bytes can move in a machine with CPUs and GPUs.

    import waywiser

    profile = waywiser.open("machine.wwp")  # tables and figures of one profile
    waywiser.compare("before.wwp", "now.wwp")  # what got slower

See docs/python.md. Nothing else is imported before one of the two is called.
"""

from __future__ import annotations

__version__ = "0.1.0"
"""The only place of the version: the build, the command line and the profile read it here."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from waywiser.notebook.comparison_view import ComparisonView, Side
    from waywiser.notebook.profile_view import ProfileView

__all__ = ["__version__", "compare"]
"""Without `open`: a star import must not replace the builtin function."""


def open(path: str | os.PathLike[str]) -> ProfileView:
    """Reads a profile (``.wwp``) and closes the file.

    Raises `waywiser.profile.ProfileError`: there is no such file, it is no profile, it is damaged.
    """
    from waywiser.notebook.profile_view import read_profile

    return read_profile(path)


def compare(
    base: Side | Sequence[Side],
    new: Side | Sequence[Side],
    *,
    threshold: float | None = None,
    repeat: Side | Sequence[Side] = (),
) -> ComparisonView:
    """Compares new profiles with baseline profiles path by path, as ``waywiser compare`` does.

    A side is the path of a profile, an opened profile, or several of these. ``threshold`` is the
    relative change that matters, by default 0.03. ``repeat`` are profiles in which suspected paths
    were measured again. Raises `waywiser.errors.WaywiserError`.
    """
    from waywiser.notebook.comparison_view import compare_profiles

    return compare_profiles(base, new, threshold=threshold, repeat=repeat)
