"""Profiles as notebooks open them."""

from __future__ import annotations

from pathlib import Path

import kept
import waywiser
from waywiser.exchange.imports.profiles import import_files
from waywiser.notebook.profile_view import ProfileView

SURVEYS = kept.RESULTS / "2026-11-23-surveys"
NVBANDWIDTH = Path(__file__).parent.parent / "exchange" / "imports" / "data" / "nvbandwidth.json"


def unpacked(folder: Path, name: str) -> Path:
    return kept.unpacked(SURVEYS / f"{name}.wwp.xz", folder / f"{name}.wwp")


def surveyed(folder: Path, name: str = "two-h200-check-1") -> ProfileView:
    """A profile of a survey of real GPUs."""
    return waywiser.open(unpacked(folder, name))


def imported(folder: Path) -> ProfileView:
    """A profile of another tool's results, without a topology."""
    target = folder / "imported.wwp"
    import_files([NVBANDWIDTH], target)
    return waywiser.open(target)
