"""``waywiser topology``: what this machine, or a captured one, is made of."""

from __future__ import annotations

import sys


def run_topology(xml: str | None, capture: str | None, json: bool, anonymous: bool = False) -> int:
    """Prints the machine (live, or of the file ``xml``), or writes a capture of it to a file
    (``-``: to standard output); ``anonymous`` leaves out what points at somebody.

    Returns the exit code. Raises `WaywiserError` for a file that is no topology, a capture that
    exists already, and a live machine without the native library.
    """
    from waywiser.topology.anonymous import anonymised
    from waywiser.topology.assemble import machine_from
    from waywiser.topology.capture import capture_live, capture_text, load_capture, save_capture

    found = load_capture(xml) if xml is not None else capture_live()
    if anonymous:
        found = anonymised(found)
    machine = machine_from(found)
    if capture == "-":
        sys.stdout.write(capture_text(found))
        return 0
    if capture is not None:
        save_capture(found, capture)
        names = "" if anonymous else " (it names the host, its GPUs and processes on them)"
        print(f"captured in {capture}{names}")
        return 0
    if json:
        import msgspec

        from waywiser.topology.peaks import peaks

        document = {"schema": 1, "machine": machine, "peaks": list(peaks(machine))}
        text = msgspec.json.format(msgspec.json.encode(document), indent=2)
        sys.stdout.write(text.decode() + "\n")
        return 0
    from waywiser.cli.picture import print_machine

    print_machine(machine)
    return 0
