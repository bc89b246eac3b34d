"""``waywiser topology``: what this machine, or one of a file, is made of."""

from __future__ import annotations

import os
from pathlib import Path

from waywiser.machine.machine import Machine
from waywiser.words import WaywiserError


def run_topology(file: str | None, capture: str | None, json: bool, anonymous: bool = False) -> int:
    """Prints the machine (live, or of a capture, a profile or hwloc XML), or writes a capture of it
    to a file (``-``: to standard output); ``anonymous`` leaves out what points at somebody.

    Returns the exit code. Raises `WaywiserError` for a file that has no topology, a capture that
    exists already, a capture of a profile, and a live machine without the native library.
    """
    from waywiser.profile.opening import is_profile

    if file is not None and not os.path.lexists(file):
        raise WaywiserError(
            "there is no such file", where=file, remedy="name a profile, a capture or hwloc XML"
        )
    if file is not None and is_profile(Path(file)):
        if capture is not None or anonymous:
            raise WaywiserError(
                "a profile has no capture of its machine",
                where=file,
                remedy="show it without --capture and --anonymous",
            )
        from waywiser.profile import Profile

        with Profile.open(file) as profile:
            return _show(profile.machine, json)
    from waywiser.machine.anonymous import anonymised
    from waywiser.machine.assemble import machine_from
    from waywiser.machine.capture import capture_live, capture_text, load_capture
    from waywiser.profile.output_file import STANDARD_OUTPUT, write_output

    found = load_capture(file, or_profile=True) if file is not None else capture_live()
    if anonymous:
        found = anonymised(found)
    if capture is not None:
        write_output(capture, capture_text(found).encode())
        names = "" if anonymous else " (it names the host, its GPUs and processes on them)"
        if capture != STANDARD_OUTPUT:
            print(f"captured in {capture}{names}")
        return 0
    return _show(machine_from(found), json)


def _show(machine: Machine, json: bool) -> int:
    if json:
        from waywiser.cli.streams import print_json
        from waywiser.machine.peaks import peaks

        document = {"schema": 1, "machine": machine, "peaks": list(peaks(machine))}
        print_json(document)
        return 0
    from waywiser.cli.picture import print_machine

    print_machine(machine)
    return 0
