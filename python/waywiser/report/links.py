"""Where in a report the curve of a series is."""

from __future__ import annotations

import hashlib
import re

from waywiser.words import Value

_SIZE = re.compile(
    r"( by [a-z0-9-]+(?:\[[^\]]*\])?(?: as [a-z]+\[[^\]]*\])?) of \d+(?: [KMGT]iB| B)?"
)


class Links(Value, frozen=True):
    """The curves of one machine that a report shows, and what their anchors begin with."""

    key: str
    texts: frozenset[str]

    def to(self, series: str) -> str:
        """The anchor of the curve that a series (or a curve) is on; empty where it is not shown."""
        if not series:
            return ""
        curve = series if series in self.texts else _SIZE.sub(r"\1", series)
        return self.anchor(curve) if curve in self.texts else ""

    def anchor(self, curve: str) -> str:
        """Of a curve that is shown."""
        return f"{self.key}curve-{hashlib.sha256(curve.encode()).hexdigest()[:10]}"
