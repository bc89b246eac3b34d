"""The captured networks under tests/captures/interfaces."""

from __future__ import annotations

import json
import os
from pathlib import Path

from waywiser.machine.system_files import SystemFiles

FOLDER = Path(__file__).resolve().parent.parent / "captures" / "interfaces"
NAMES = sorted(path.stem for path in FOLDER.glob("*.json"))


def captured_network(name: str, root: Path) -> SystemFiles:
    """The files of a capture below a folder; links stay below it."""
    for path, text in json.loads((FOLDER / f"{name}.json").read_text()).items():
        place = root / path.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        if text.startswith("-> "):
            place.symlink_to(os.path.relpath(root / text[3:].lstrip("/"), place.parent))
        else:
            place.write_text(f"{text}\n")
    return SystemFiles(root)
