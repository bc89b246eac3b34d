"""Errors of models."""

from __future__ import annotations

from waywiser.words import WaywiserError


class ModelError(WaywiserError):
    """A model cannot be made or changed, or does not answer this question."""
