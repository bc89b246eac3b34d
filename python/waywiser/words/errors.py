"""What goes wrong on purpose: one line with what, where and remedy."""

from __future__ import annotations

from waywiser.errors import WaywiserError as WaywiserError


class WordError(WaywiserError, ValueError):
    """A text that is not in the grammar of the words."""
