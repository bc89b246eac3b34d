"""The lowest version of PyTorch that copies work with."""

from __future__ import annotations

import re
from typing import Any

LOWEST_TORCH = (2, 1)
"""Earlier versions cannot count a write to a tensor for autograd, and have no size of a dtype."""

REMEDY = "python -m pip install 'torch>={}.{}'".format(*LOWEST_TORCH)


def too_old(torch: Any) -> str | None:
    """Why this PyTorch cannot be used; None if it can be, or has no version that is known."""
    found = re.match(r"(\d+)\.(\d+)", str(getattr(torch, "__version__", "")))
    if found is None or (int(found[1]), int(found[2])) >= LOWEST_TORCH:
        return None
    lowest = ".".join(map(str, LOWEST_TORCH))
    return f"PyTorch {torch.__version__} is installed, and {lowest} or later is needed"
