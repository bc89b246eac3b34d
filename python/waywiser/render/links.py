"""Where in a report the curve of a series is."""

from __future__ import annotations

import hashlib
import re

from waywiser.words import Value, without_sizes


def slug(text: str) -> str:
    """The text as a part of an anchor or of a figure's name."""
    text = text.replace("<->", "and back")
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


class Links(Value, frozen=True):
    """The curves of one machine that a report shows, and what their anchors begin with."""

    key: str
    texts: frozenset[str]

    def to(self, series: str) -> str:
        """The anchor of the curve that a series (or a curve) is on; empty if it is not shown."""
        if not series:
            return ""
        curve = series if series in self.texts else without_sizes(series)
        return self.anchor(curve) if curve in self.texts else ""

    def anchor(self, curve: str) -> str:
        """The anchor of a curve that is shown."""
        return f"{self.key}curve-{hashlib.sha256(curve.encode()).hexdigest()[:10]}"
