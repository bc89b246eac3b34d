"""The survey of each node by itself: made on all at once, fetched, and compared as a fleet."""

from __future__ import annotations

