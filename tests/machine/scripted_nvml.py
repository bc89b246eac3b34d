"""A module in the place of ``pynvml``, for workers over the fake GPU: as many H200s as it has,
whose counters count one script, whatever really moves.

Of every three readings of a GPU the second shows `MOVED` bytes more than the first on each kind of
link and in each direction, and the third nothing more. PCIe counters begin shortly before they
begin anew; GPU 1 does not count what it receives by NVLink.
"""

from __future__ import annotations

import os
import re
from types import SimpleNamespace
from typing import Any

from machine.fake_nvml import NVLINK_COUNTERS, PCIE_COUNTERS, FakeNvml, counting, h200_answers

MOVED = 18 << 24
LINKS = 18
GPUS = int((re.findall(r"\bdevices=(\d+)", os.environ.get("WAYWISER_FAKE", "")) or [2])[-1])
_SHOWN = 2
"""Fields asked for at once, up to which it is no reading but a question what there is."""


def _gpu(index: int) -> dict[str, Any]:
    answers = counting(h200_answers(index, GPUS), LINKS)
    answers["UUID"] = f"GPU-fake0000-0000-0000-0000-{index:012x}"
    answers["PciInfo"] = SimpleNamespace(busId=f"00000000:{0x10 + 2 * index:02X}:00.0")
    fields = {
        key: 2**32 - 1000 if key[0] in PCIE_COUNTERS else v for key, v in answers["fields"].items()
    }
    if index == 1:
        fields = {key: value for key, value in fields.items() if key[0] != 139}
    return {**answers, "fields": fields, "readings": 0}


_fake = FakeNvml([_gpu(index) for index in range(GPUS)])


def nvmlDeviceGetFieldValues(gpu: dict[str, Any], fields: list[tuple[int, int]]) -> list[Any]:
    if len(fields) > _SHOWN:
        if gpu["readings"] % 3 == 1:
            for key in gpu["fields"]:
                if key[0] in PCIE_COUNTERS:
                    gpu["fields"][key] += MOVED
                elif key[0] in NVLINK_COUNTERS:
                    gpu["fields"][key] += MOVED // LINKS // 1024
        gpu["readings"] += 1
    return _fake.nvmlDeviceGetFieldValues(gpu, fields)


def __getattr__(name: str) -> Any:
    return getattr(_fake, name)
