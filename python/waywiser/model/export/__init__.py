"""Models in the files of other programs; one file per format. Each file says what it loses."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from waywiser.model.capacity import CapacityModel
from waywiser.model.export.astra_sim import astra_sim_yaml
from waywiser.model.export.simgrid import simgrid_xml


def model_json(model: CapacityModel) -> str:
    """One JSON object: the fields of `CapacityModel`, with its schema. It loses nothing."""
    return msgspec.json.format(msgspec.json.encode(model), indent=2).decode() + "\n"


EXPORTS: Mapping[str, Callable[[CapacityModel], str]] = {
    "simgrid": simgrid_xml,
    "astra-sim": astra_sim_yaml,
    "model": model_json,
}
"""Name of the format -> what writes it. All raise `ModelError` for a model that the format cannot
hold."""
