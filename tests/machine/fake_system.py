"""A made-up /proc and /sys in a folder."""

from __future__ import annotations

from pathlib import Path

from waywiser.machine.system_files import SystemFiles


def system(root: Path, **files: str) -> SystemFiles:
    """Files by path with ``__`` for ``/``: ``proc__loadavg="0.1 0.1 0.1"``."""
    return system_of(root, {name.replace("__", "/"): text for name, text in files.items()})


def system_of(root: Path, files: dict[str, str]) -> SystemFiles:
    for name, text in files.items():
        path = root / name.lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")
    return SystemFiles(root)
