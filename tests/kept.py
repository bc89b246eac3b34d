"""Profiles of real machines, which ``docs/results`` keeps compressed."""

from __future__ import annotations

import lzma
from pathlib import Path

RESULTS = Path(__file__).parent.parent / "docs" / "results"


def unpacked(packed: Path, file: Path) -> Path:
    """``file``, which is the packed profile now."""
    file.write_bytes(lzma.decompress(packed.read_bytes()))
    return file
