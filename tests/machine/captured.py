"""The captured machines under tests/captures, and others' that may lie beside the repository."""

from __future__ import annotations

from pathlib import Path

import pytest

from waywiser.machine.assemble import machine_from
from waywiser.machine.capture import load_capture
from waywiser.machine.machine import Machine

CAPTURES = Path(__file__).resolve().parent.parent / "captures"
SHARED = Path(__file__).resolve().parents[2].parent / "shared" / "data" / "hwloc"
ALL = sorted(path.stem for path in CAPTURES.glob("*.json"))


def machine(name: str) -> Machine:
    return machine_from(load_capture(CAPTURES / f"{name}.json"))


def shared_file(name: str) -> Path:
    """The path, or a skip that names the file."""
    path = SHARED / name
    if not path.exists():
        pytest.skip(f"the file {name} of other people is not here")
    return path
