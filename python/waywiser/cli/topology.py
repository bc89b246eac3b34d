"""``waywiser topology``: what this machine, or one of a file, is made of."""

from __future__ import annotations

import waywiser
from waywiser.cli.app import Json, print_verb, verb
from waywiser.cli.streams import put_line


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
    found = waywiser.topology(file, capture=capture, anonymous=anonymous)
    if capture is None:
        print_verb(found, json=json)
        return
    for note in found.said:
        put_line(note)
