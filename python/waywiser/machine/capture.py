"""A capture: everything that was read of a machine, before anybody interprets it.

One JSON document with a ``schema`` number: hwloc's XML as it came, what NVML answered, and a few
facts of the operating system. A captured machine is therefore studied by the same code
as the one underfoot.
"""

from __future__ import annotations

import datetime
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from waywiser.machine.facts import NvmlFacts, SystemFacts
from waywiser.machine.hwloc import read_xml
from waywiser.machine.nvml import is_scripted
from waywiser.machine.nvml_facts import read_nvml
from waywiser.machine.system import read_system
from waywiser.version import __version__
from waywiser.words import Value, WaywiserError, read_regular, why_not_read

SCHEMA = 1
"""Raised whenever an older reader would misunderstand a newer file."""

_HIDE_ERRORS = "HWLOC_HIDE_ERRORS"
"""The variable that says which errors hwloc writes to standard error: 2 for none."""

LIMIT_BYTES = 32 * 2**20
"""Size of a capture or hwloc XML: over a hundred times what a host of eight GPUs takes."""


class CaptureError(WaywiserError):
    """A machine that cannot be captured, or a file that is neither a capture nor hwloc XML."""


class Capture(Value, frozen=True):
    """``nvml`` is None if it was not read: the topology was a bare hwloc file."""

    hwloc: str
    system: SystemFacts = SystemFacts()
    nvml: NvmlFacts | None = None
    schema: int = SCHEMA
    waywiser: str = ""
    taken: str = ""
    """UTC, ISO 8601."""


def capture_live() -> Capture:
    """This machine, now; NVML only, so no CUDA context is made.

    Raises `waywiser.machine.native.NativeError` without the native library (it brings hwloc) and
    `CaptureError` if hwloc cannot read the machine.
    """
    from waywiser.machine import native  # readers of a profile need no library

    try:
        with _quiet_hwloc():
            xml = native.load().hwloc_xml()
    except (RuntimeError, ValueError) as error:
        raise CaptureError(str(error), remedy="see 'waywiser topology FILE'") from error
    system = read_system()
    if is_scripted():  # the bus of this machine is not that of the GPUs that are played
        system = msgspec.structs.replace(system, pci=())
    return Capture(
        hwloc=xml,
        system=system,
        nvml=read_nvml(addresses=[device.address for device in system.pci]),
        waywiser=__version__,
        taken=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    )


@contextmanager
def _quiet_hwloc() -> Iterator[None]:
    """hwloc writes about what the system does not show to standard error; notes say it instead."""
    before = os.environ.get(_HIDE_ERRORS)
    os.environ[_HIDE_ERRORS] = before or "2"
    try:
        yield
    finally:
        if before is None:
            del os.environ[_HIDE_ERRORS]


def load_capture(file: str | Path, *, or_profile: bool = False) -> Capture:
    """A capture as `capture_text` writes it, or the XML of hwloc's ``lstopo`` (1.x to 3.x).
    ``or_profile``: errors say that a profile is taken too.

    Raises `CaptureError` naming the file for anything else, and for more than `LIMIT_BYTES`.
    """
    try:
        data = read_regular(file, LIMIT_BYTES)
    except OSError as error:
        raise CaptureError(
            why_not_read(error),
            where=str(file),
            remedy=f"name {'a profile, ' if or_profile else ''}a capture or hwloc XML",
        ) from error
    head = data.lstrip(b"\xef\xbb\xbf \t\r\n")[:1]
    if head == b"<":
        return _load_xml(data, file)
    if head == b"{":
        return _load_json(data, file)
    raise CaptureError(
        "neither a profile nor a capture nor hwloc XML"
        if or_profile
        else "neither a capture nor hwloc XML",
        where=str(file),
        remedy="write one with 'waywiser topology --capture FILE' or 'lstopo FILE.xml'",
    )


def _load_xml(data: bytes, file: str | Path) -> Capture:
    text = data.decode("utf-8", errors="replace")
    read_xml(text, where=str(file))
    return Capture(hwloc=text)


def _load_json(data: bytes, file: str | Path) -> Capture:
    where = str(file)
    try:
        schema = msgspec.json.decode(data, type=_Versioned).schema
        if schema > SCHEMA:
            raise CaptureError(
                f"capture of schema {schema}, and this waywiser reads up to {SCHEMA}",
                where=where,
                remedy="use a newer waywiser",
            )
        capture = msgspec.json.decode(data, type=Capture)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise CaptureError(f"not a capture: {error}", where=where) from error
    read_xml(capture.hwloc, where=f"{where}, its hwloc XML")
    return capture


class _Versioned(msgspec.Struct):
    schema: int


def capture_text(capture: Capture) -> str:
    """The capture as JSON."""
    return msgspec.json.format(msgspec.json.encode(capture), indent=1).decode() + "\n"
