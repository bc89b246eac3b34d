"""``waywiser topology``: what this machine, or one of a file, is made of."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from waywiser.cli.app import Json, print_result, verb
from waywiser.cli.streams import put_line
from waywiser.words import WaywiserError

if TYPE_CHECKING:
    from waywiser.machine import Machine


@verb("Show CPUs, memory, GPUs and links of a machine.")
def topology(
    file: str | None = None,
    capture: str | None = None,
    anonymous: bool = False,
    json: Json = False,
) -> None:
    """Show CPUs, memory, GPUs and links of a machine, with the peak bandwidth of each link.

    [FILE]: A profile, a capture or hwloc XML; by default this machine.
    --capture FILE: Write a capture of the machine to FILE, to send to others; - for standard
        output.
    --anonymous: Leave host name, jobs, addresses, serial numbers and UUIDs out of the capture.

    waywiser topology
        show this machine
    waywiser topology node.wwp
        show the machine of a profile
    """
    from waywiser.profile import Profile, is_profile

    if file is not None and not os.path.lexists(file):
        raise WaywiserError(
            "there is no such file", where=file, remedy="name a profile, a capture or hwloc XML"
        )
    if file is None or not is_profile(Path(file)):
        _of_capture(file, capture, json=json, anonymous=anonymous)
        return
    if capture is not None or anonymous:
        raise WaywiserError(
            "a profile has no capture of its machine",
            where=file,
            remedy="show it without --capture and --anonymous",
        )
    with Profile.open(file) as profile:
        _show(profile.machine, json=json)


def _of_capture(file: str | None, capture: str | None, *, json: bool, anonymous: bool) -> None:
    from waywiser.machine import capture_live, load_capture, machine_from
    from waywiser.machine.anonymous import anonymised
    from waywiser.machine.capture import capture_text
    from waywiser.profile import STANDARD_OUTPUT, write_output

    found = load_capture(file, or_profile=True) if file is not None else capture_live()
    if anonymous:
        found = anonymised(found)
    if capture is not None:
        write_output(capture, capture_text(found).encode())
        names = "" if anonymous else " (it names the host, its GPUs and processes on them)"
        if capture != STANDARD_OUTPUT:
            put_line(f"captured in {capture}{names}")
        return
    _show(machine_from(found), json=json)


def _show(machine: Machine, *, json: bool) -> None:
    from waywiser.machine.peaks import peaks
    from waywiser.report.views.machine import machine_parts

    document = {"schema": 1, "machine": machine, "peaks": list(peaks(machine)) if json else []}
    print_result(document, machine_parts(machine), json=json)
