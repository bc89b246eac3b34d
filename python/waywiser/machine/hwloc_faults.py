"""Numbers that versions of hwloc are known to write wrong into their files.

- Until 2.9.0, and perhaps until 2.9.3, each NVLink of the third and fourth generation has 50 GB/s,
  which is the sum of both directions; in one direction it has 25 (hwloc's issue 574).
- Until 2.10, a build with NVML writes PCIe 3 for each later generation, with the width that NVML
  says.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import NamedTuple

from waywiser.machine import pcie

HwlocVersion = tuple[int, int, int]

_DOUBLED_UNTIL: HwlocVersion = (2, 9, 0)
_RIGHT_FROM: HwlocVersion = (2, 10, 0)
_LATER_PCIE_FROM: HwlocVersion = (2, 11, 0)

_DOUBLE_LANE = 50.0
"""GB/s that a doubled lane has, and one of NVLink 5."""

_LANES = frozenset({20.0, 25.0, 50.0})
"""GB/s of lanes that hwloc writes."""

_PCIE_3_MODELS = re.compile(
    r"\b(Tesla|Quadro|TITAN|GTX|K[1-8]0|M\d0|P\d+|V100S?|T4|RTX 20\d\d)\b", re.IGNORECASE
)
"""Models that have PCIe 3 at most."""


class Lanes(NamedTuple):
    """The NVLinks of a model, by NVIDIA's data sheets."""

    models: re.Pattern[str]
    most: int
    gb_per_s: float
    may_double: bool
    """Whether hwloc may have doubled their rate."""


_MODELS = (
    Lanes(re.compile(r"\bP100\b"), 4, 20.0, False),
    Lanes(re.compile(r"\b(V100S?|GV100)\b"), 6, 25.0, False),
    Lanes(re.compile(r"\b(RTX [568]000|TITAN RTX|RTX 2080( Ti)?)\b"), 2, 25.0, True),
    Lanes(re.compile(r"\bA[18]00X?\b"), 12, 25.0, True),
    Lanes(re.compile(r"\bA30\b"), 4, 25.0, True),
    Lanes(re.compile(r"\bG?H([128]00|20)\b"), 18, 25.0, True),
    Lanes(re.compile(r"\bG?B[123]00\b"), 18, 50.0, False),
)


class LaneRates(NamedTuple):
    """How to read a matrix of NVLinks."""

    gb_per_s_per_lane: float = 0.0
    """0 if the lanes cannot be counted."""
    factor: float = 1.0
    """What each entry is multiplied by; 0 if the rates are not known."""
    notes: tuple[str, ...] = ()


def hwloc_version(text: str) -> HwlocVersion | None:
    """The version in ``2.9.0`` or ``2.10.0rc1-git``; None for a text without one."""
    found = re.match(r"(\d+)\.(\d+)(?:\.(\d+))?", text)
    return (int(found[1]), int(found[2]), int(found[3] or 0)) if found else None


def lane_rates(
    rows: Sequence[Sequence[int]], models: Sequence[str], version: HwlocVersion | None
) -> LaneRates:
    """How to read the MB/s of each GPU's links, which a file of this version has; ``models`` are
    the names of the GPUs."""
    entries = [entry for row in rows for entry in row]
    if not entries:
        return LaneRates()
    common = math.gcd(*entries) / 1000
    total = max(sum(row) for row in rows) / 1000
    lanes = _of_models(models)
    might_be_doubled = common % _DOUBLE_LANE == 0 and (version is None or version < _RIGHT_FROM)
    if lanes is None:
        if might_be_doubled:
            return _unknown(version, "the model of its GPUs is not known")
        return LaneRates(common if common in _LANES else 0.0)
    most = lanes.most * lanes.gb_per_s
    is_old = version is not None and version <= _DOUBLED_UNTIL
    if lanes.may_double and ((is_old and might_be_doubled) or most < total <= 2 * most):
        note = (
            f"hwloc {_text(version)} states the NVLinks of {models[0]} with the rate of both "
            f"directions ({total:.1f} GB/s for a GPU): half of it counts"
        )
        return LaneRates(lanes.gb_per_s, 0.5, (note,))
    if lanes.may_double and might_be_doubled and total < most:
        return _unknown(version, f"{total:.1f} GB/s for a {models[0]} may be either")
    return LaneRates(lanes.gb_per_s)


def _of_models(models: Sequence[str]) -> Lanes | None:
    """The one kind of all models; None if they differ, or one is not known."""
    kinds = {next((kind for kind in _MODELS if kind.models.search(name)), None) for name in models}
    return kinds.pop() if len(kinds) == 1 else None


def _unknown(version: HwlocVersion | None, why: str) -> LaneRates:
    note = (
        f"hwloc {_text(version)} may state NVLinks with the rate of both directions, and {why}: "
        "the rate of the NVLinks is unknown (write the file with hwloc 2.10 or later)"
    )
    return LaneRates(0.0, 0.0, (note,))


def _text(version: HwlocVersion | None) -> str:
    return ".".join(map(str, version)) if version else "of an unknown version"


def is_pcie_3_for_later(
    gb_per_s: float, *, is_from_nvml: bool, model: str, version: HwlocVersion | None
) -> bool:
    """Whether a link's rate may be that of PCIe 3 only since hwloc knew no later generation."""
    known = version is not None and version >= _LATER_PCIE_FROM
    if not is_from_nvml or known or _PCIE_3_MODELS.search(model):
        return False
    return any(
        math.isclose(gb_per_s * 1e9, pcie.bytes_per_second(3, width), rel_tol=1e-3)
        for width in (1, 2, 4, 8, 16)
    )
