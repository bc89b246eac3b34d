"""The scripted NVML of the tests, wherever it lies in their folder."""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path
from typing import Any

_TESTS = Path(os.environ["COMPARE_OUTPUT_TESTS"])
_FILE = next(_TESTS.rglob("scripted_nvml.py"))

sys.path.append(str(_TESTS))
_scripted = importlib.import_module(".".join(_FILE.relative_to(_TESTS).with_suffix("").parts))
sys.path.remove(str(_TESTS))


def __getattr__(name: str) -> Any:
    return getattr(_scripted, name)
