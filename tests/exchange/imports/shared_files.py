"""Result files of other people's machines, which are no part of this repository.

They are looked for beside it; a test that needs one is skipped, and says which, where it is absent.
"""

from __future__ import annotations

from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[3].parent / "shared" / "data"


def shared(name: str) -> Path:
    """The file or folder; skips the test where there is none."""
    path = FOLDER / name
    if not path.exists():
        pytest.skip(f"no {path}: results of other machines are not part of this repository")
    return path
