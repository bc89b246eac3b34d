"""The model itself as JSON. It loses nothing."""

from __future__ import annotations

import msgspec

from waywiser.model.capacity import CapacityModel


def model_json(model: CapacityModel) -> str:
    """One JSON object: the fields of `CapacityModel`, with its schema."""
    return msgspec.json.format(msgspec.json.encode(model), indent=2).decode() + "\n"
