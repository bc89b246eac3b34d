"""A capture without what identifies a person or a machine: for files that are sent or published."""

from __future__ import annotations

import re

import msgspec

from waywiser.machine.capture import Capture
from waywiser.machine.facts import GpuProcess

HOSTNAME = "anonymous"

_IDENTIFYING_INFO = re.compile(
    r"[ \t]*<info name=\"(?:HostName|LinuxCgroup|ProcessName|OSVersion|Address|[^\"]*Serial[^\"]*|"
    r"[^\"]*GUID|Port\d+\w*|DMI[^\"]*(?:UUID|AssetTag)|SerialNumber)\" value=\"[^\"]*\"/>\r?\n?"
)
"""Infos of hwloc that name a host, a user's job, an address or a serial number."""

_UUID = re.compile(
    r"\b(GPU|MIG)-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.IGNORECASE
)


def anonymised(capture: Capture) -> Capture:
    """The same machine: host name, job, addresses and serial numbers are gone, UUIDs are numbered
    from 0 in the order of their appearance, and other people's processes have no names."""
    gpus = capture.nvml.gpus if capture.nvml else ()
    quiet = tuple(
        msgspec.structs.replace(
            gpu, processes=tuple(GpuProcess(0, "", p.memory_bytes) for p in gpu.processes)
        )
        for gpu in gpus
    )
    plain = msgspec.structs.replace(
        capture,
        hwloc=_IDENTIFYING_INFO.sub("", capture.hwloc),
        system=msgspec.structs.replace(capture.system, hostname=HOSTNAME),
        nvml=msgspec.structs.replace(capture.nvml, gpus=quiet) if capture.nvml else None,
    )
    numbers: dict[str, int] = {}

    def numbered(match: re.Match[str]) -> str:
        number = numbers.setdefault(match[0].lower(), len(numbers))
        return f"{match[1]}-{number:08x}-0000-0000-0000-{number:012x}"

    text = _UUID.sub(numbered, msgspec.json.encode(plain).decode())
    return msgspec.json.decode(text, type=Capture)
